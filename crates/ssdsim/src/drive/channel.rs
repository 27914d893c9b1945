//! A channel to a simulated drive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::{Arena, Channel, Completion, Error, Geometry, Nanos, Request};

use super::world::World;

/// Moves virtual time when it waits. Several channels may be used from one thread in turn: while one waits,
/// the requests of the others go on, too.
pub(super) struct SimChannel {
    pub world: Arc<Mutex<World>>,
    pub geometry: Geometry,
    pub number: u32,
    pub depth: usize,
    pub in_flight: usize,
    /// Keeps the memory of requests that are still in flight when the channel is dropped.
    pub _arena: Option<Arc<Arena>>,
}

impl SimChannel {
    fn world(&self) -> MutexGuard<'_, World> {
        // A panic in another thread's simulation is that thread's failure; the world's state is still that
        // from before the event.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves waiting completions to the caller, as many as it has room for.
fn reap(world: &mut World, number: u32, completions: &mut Vec<Completion>) -> usize {
    let waiting = world.completions(number);
    let count = waiting.len().min(completions.capacity() - completions.len());
    completions.extend(waiting.drain(..count));
    count
}

/// Requests are in flight and nothing is going to happen: an error is better than a caller that waits for
/// ever.
fn standstill(in_flight: usize) -> Error {
    let source = std::io::Error::other(format!("{in_flight} requests in flight and no event to come"));
    Error::Os { doing: "simulate a drive (this is a bug of the simulator)".into(), source }
}

impl Channel for SimChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.in_flight >= self.depth {
            return Err(Error::QueueFull);
        }
        self.geometry.check(&request)?;
        self.world().submit(self.number, &request);
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let count = reap(&mut self.world(), self.number, completions);
        self.in_flight -= count;
        Ok(count)
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let room = completions.capacity() - completions.len();
        let wanted = at_least.min(self.in_flight).min(room);
        let count = {
            let mut world = self.world();
            world.run(self.number, wanted, until.map_or(u64::MAX, |until| until.0));
            let short = world.completions(self.number).len() < wanted.max(1);
            if let Some(until) = until.filter(|_| short && (room > 0 || self.in_flight == 0)) {
                world.run(self.number, 1, until.0);
                if world.completions(self.number).is_empty() {
                    world.events.pass(until.0);
                }
            }
            let count = reap(&mut world, self.number, completions);
            if count < wanted && until.is_none() {
                return Err(standstill(self.in_flight - count));
            }
            count
        };
        self.in_flight -= count;
        Ok(count)
    }

    fn now(&self) -> Nanos {
        Nanos(self.world().events.now())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl Drop for SimChannel {
    fn drop(&mut self) {
        let mut world = self.world();
        if std::thread::panicking() {
            // The memory that was lent may be gone already.
            world.abort();
        }
        world.run(self.number, self.in_flight, u64::MAX);
        world.completions(self.number).clear();
    }
}
