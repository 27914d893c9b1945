//! The loop body of a worker.

use std::cell::RefCell;
use std::sync::Arc;

use flashgrain_device::Nanos;

use crate::Error;
use crate::lane::{Devices, Lane, enter};
use crate::task::{Home, Scheduler};

/// Foreground tasks that a step lets run at most, each until it waits.
const FOREGROUND_SHARE: usize = 64;

/// Background tasks that a step lets run at most.
const BACKGROUND_SHARE: usize = 16;

/// How large a worker's queues are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Foreground tasks that are under way at a time; others wait their turn.
    pub tasks_max: usize,
    /// Requests in flight on each device.
    pub depth: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { tasks_max: 1024, depth: 1024 }
    }
}

/// See the module. It stays on the thread that made it.
pub(crate) struct Worker {
    /// First, so that nothing is in flight any longer when the tasks are unwound.
    lane: RefCell<Lane>,
    scheduler: Scheduler,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Tasks that ran.
    pub ran: usize,
    /// Requests that were answered.
    pub answered: usize,
}

impl Worker {
    /// A worker for the calling thread, which is reached at `home`.
    ///
    /// # Errors
    /// [`Error::Device`] if a device refuses a channel.
    pub fn new(devices: &Devices, home: Arc<Home>, bounds: Bounds) -> Result<Self, Error> {
        let lane = RefCell::new(devices.open_lane(bounds.depth)?);
        Ok(Self { lane, scheduler: Scheduler::new(home, bounds.tasks_max) })
    }

    /// Where it is reached.
    pub fn home(&self) -> &Arc<Home> {
        self.scheduler.home()
    }

    /// Lets ready tasks run, hands their requests over, and takes in what is answered. Does not wait.
    ///
    /// # Errors
    /// [`Error::Device`] if a queue itself fails.
    pub fn step(&mut self) -> Result<Step, Error> {
        let scheduler = &mut self.scheduler;
        // Without memory for more stacks, jobs wait until other tasks have ended.
        let ran = enter(&self.lane, || scheduler.run(FOREGROUND_SHARE, BACKGROUND_SHARE)).unwrap_or(0);
        let answered = self.lane.borrow_mut().poll(|task| self.scheduler.wake(task))?;
        Ok(Step { ran, answered })
    }

    /// Whether a step would do something.
    pub fn has_ready(&self) -> bool {
        self.scheduler.has_ready()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.lane.borrow().in_flight()
    }

    /// Tasks that have not ended, and jobs that have not begun.
    pub fn unfinished(&self) -> usize {
        self.scheduler.alive() + self.scheduler.queued()
    }

    /// Waits for an answer, or until `until`. Returns at once if nothing is in flight and there is no `until`.
    ///
    /// # Errors
    /// As [`Worker::step`].
    pub fn wait(&mut self, until: Option<Nanos>) -> Result<usize, Error> {
        Ok(self.lane.borrow_mut().wait(until, |task| self.scheduler.wake(task))?)
    }
}
