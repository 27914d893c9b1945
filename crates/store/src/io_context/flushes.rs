//! Flushes of a device, one at a time, shared by all callers that come meanwhile.
//!
//! A flush covers the writes that had completed when it *began*. So a caller that comes while one is under
//! way waits for the next one, which covers all callers that have come by then. The kernel reports a failed
//! flush to only one of several callers, and may have dropped the writes of all; therefore no flush succeeds
//! after a failure.

use crate::sync::{Mutex, MutexGuard, PoisonError};

use super::failed::Failed;
use crate::task::{Waker, park, waker};

/// The flushes of a device.
#[derive(Default)]
pub(super) struct Flushes(Mutex<FlushState>);

#[derive(Default)]
struct FlushState {
    begun: u64,
    /// The last one that has succeeded.
    succeeded: u64,
    is_under_way: bool,
    failed: Option<i32>,
    waiting: Vec<Waker>,
}

/// The error number of a flush whose request did not reach the device.
const NOT_SENT: i32 = libc::EIO;

/// A flush that is under way. If it is dropped before it has ended, as by a panic, it counts as failed.
struct UnderWay<'a> {
    flushes: &'a Flushes,
    number: u64,
    failed: Option<i32>,
}

impl Flushes {
    fn state(&self) -> MutexGuard<'_, FlushState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a flush has succeeded that began after this call. The caller or another one executes it.
    pub fn join(&self, flush: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        let needed = self.state().begun + 1;
        self.wait_or(needed, flush)
    }

    /// Calls `flush`, which writes and flushes, when no other flush is under way.
    pub fn alone(&self, flush: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        self.wait_or(u64::MAX, flush)
    }

    fn wait_or(&self, needed: u64, flush: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        let number = loop {
            {
                let mut state = self.state();
                if let Some(errno) = state.failed {
                    return Err(Failed::Errno(errno));
                }
                if state.succeeded >= needed {
                    return Ok(());
                }
                if !state.is_under_way {
                    state.is_under_way = true;
                    state.begun += 1;
                    break state.begun;
                }
                state.waiting.push(waker());
            }
            park();
        };
        let mut under_way = UnderWay { flushes: self, number, failed: Some(NOT_SENT) };
        let result = flush();
        under_way.failed = match &result {
            Ok(()) => None,
            Err(Failed::Errno(errno)) => Some(*errno),
            Err(Failed::Device(_)) => Some(NOT_SENT),
        };
        result
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.flushes.state();
            state.is_under_way = false;
            match self.failed {
                None => state.succeeded = self.number,
                Some(_) if planted!(FailedFlushRetried) => {}
                Some(_) if planted!(CheckpointForgivesFlush) => {}
                failed => state.failed = state.failed.or(failed),
            }
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|waker| waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use flashgrain_device::Nanos;
    use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss, PowerCut, Survivors};
    use flashgrain_ssdsim::{SimConfig, SimDevice};

    use super::super::{Block, Devices, Role, flush, now, sleep_until};
    use crate::worker::Harness;

    const TASKS: u64 = 40;

    fn drive() -> (Arc<SimDevice>, Devices) {
        let config = SimConfig::from_toml(include_str!("../engine/tests/drive.toml"), "drive.toml").unwrap();
        let device = Arc::new(SimDevice::new(&config, "sim:small", 1).unwrap());
        let devices = Devices::new(Arc::clone(&device) as _, None);
        (device, devices)
    }

    /// Starts tasks one after another that each write a block and flush. Returns the results of `then`.
    fn write_and_flush<T: Send + 'static>(
        devices: &Devices,
        then: impl Fn(u64, bool) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        let mut harness = Harness::new(devices, 2);
        let results: Arc<Mutex<Vec<T>>> = Arc::default();
        for place in 0..TASKS {
            let (devices, then, results) = (devices.clone(), then.clone(), Arc::clone(&results));
            drop(harness.spawn(place as usize % 2, move || {
                // Much less than a flush takes.
                sleep_until(&devices, Nanos(place * 30_000)).unwrap();
                let mut block = Block::new(4096).unwrap();
                block.bytes().fill(place as u8 + 1);
                block.write(&devices, Role::Data, place * 4096).unwrap();
                let is_durable = flush(&devices, Role::Data).is_ok();
                results.lock().unwrap().push(then(place, is_durable));
            }));
        }
        harness.run_until_idle();
        assert_eq!(harness.unfinished(), 0);
        std::mem::take(&mut *results.lock().unwrap())
    }

    /// A write that completes while another one's flush is under way is not in that flush.
    #[test]
    fn a_flush_covers_what_was_written_when_it_was_asked_for_and_serves_many() {
        let (device, devices) = drive();
        let images = {
            let device = Arc::clone(&device);
            write_and_flush(&devices, move |place, is_durable| {
                assert!(is_durable);
                (place, device.image())
            })
        };
        assert_eq!(images.len() as u64, TASKS);
        let flushes = devices.traffic().flushes;
        assert!((2..TASKS / 2).contains(&flushes), "{flushes} flushes for {TASKS}");
        let cut = PowerCut { survivors: Survivors::None, ..PowerCut::default() };
        for (place, image) in images {
            let (other, devices) = drive();
            other.restore(&image.after(&cut)).unwrap();
            let mut block = Block::new(4096).unwrap();
            block.read(&devices, Role::Data, place * 4096).unwrap();
            assert!(block.bytes().iter().all(|byte| *byte == place as u8 + 1), "{place} was flushed");
        }
    }

    #[test]
    fn after_a_failed_flush_none_succeeds() {
        let (device, devices) = drive();
        device.inject(Fault::new(FaultKind::FlushError { data: FlushLoss::Dropped }));
        let results = write_and_flush(&devices, |_, is_durable| is_durable);
        assert_eq!(results, [false; TASKS as usize]);
        device.disarm_faults();
        assert!(flush(&devices, Role::Data).is_err() && now(&devices) > Nanos(0));
        assert_eq!(devices.traffic().flushes, 1, "it is not tried again");
    }
}
