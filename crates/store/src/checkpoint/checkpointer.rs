//! Scheduling of checkpoints: one at a time, in the background, on request.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::run::Run;
use super::{Base, CheckpointStats, Parts, Superblock};
use flashgrain_device::Nanos;

use crate::Error;
use crate::io_context::{Devices, now, sleep_until};
use crate::log::Lsn;
use crate::segment::Leave;
use crate::task::{Executor, Waker, park, waker};

/// Time that the next checkpoint waits after one that had no room.
const AFTER_FULL: Nanos = Nanos(20_000_000);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Checkpointer {
    shared: Arc<CheckpointerState>,
}

struct CheckpointerState {
    executor: Executor,
    devices: Devices,
    slot: Mutex<RunSlot>,
    /// Whether a checkpoint was asked for that has not begun: looked at without the lock.
    wanted: AtomicBool,
    busy: AtomicBool,
    stats: Arc<Mutex<CheckpointStats>>,
}

/// The right to make a checkpoint, and its waiters.
struct RunSlot {
    /// `None` while a checkpoint is being made.
    run: Option<Box<Run>>,
    /// Checkpoints that have begun, and those that have ended.
    begun: u64,
    ended: u64,
    /// Number and error of the last checkpoint that failed.
    failed: Option<(u64, Error)>,
    /// No checkpoint is made any more.
    is_ended: bool,
    waiting: Vec<Waker>,
}

impl Checkpointer {
    pub fn new(parts: Parts, base: Base, executor: Executor) -> Self {
        let replay_start = base.superblock.state.replay_start;
        parts.log.long_at(Lsn(replay_start.0 + parts.log_step_bytes()));
        let stats = Arc::new(Mutex::new(CheckpointStats::default()));
        let devices = parts.devices.clone();
        let run = Box::new(Run::new(parts, base, Arc::clone(&stats)));
        let slot = RunSlot {
            run: Some(run),
            begun: 0,
            ended: 0,
            failed: None,
            is_ended: false,
            waiting: Vec::new(),
        };
        let (wanted, busy) = (AtomicBool::new(false), AtomicBool::new(false));
        Self {
            shared: Arc::new(CheckpointerState {
                executor,
                devices,
                slot: Mutex::new(slot),
                wanted,
                busy,
                stats,
            }),
        }
    }

    /// Statistics of all checkpoints so far.
    pub fn stats(&self) -> CheckpointStats {
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a checkpoint that contains everything done before. It returns at once; may be called from
    /// anywhere, any number of times.
    pub fn want(&self) {
        if !self.shared.wanted.swap(true, Ordering::AcqRel) {
            let checkpointer = self.clone();
            self.shared.executor.spawn(move || checkpointer.make_wanted());
        }
    }

    /// Whether a checkpoint is being made.
    pub fn is_busy(&self) -> bool {
        self.shared.busy.load(Ordering::Acquire)
    }

    /// As [`Checkpointer::want`], for the parts that checkpoints use: the result does not keep the
    /// checkpointer alive. With `even_if_busy` false, requests while a checkpoint is being made are ignored.
    pub fn wanting(&self, even_if_busy: bool) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || {
            if let Some(checkpointer) = shared.upgrade().map(|shared| Self { shared })
                && (even_if_busy || !checkpointer.is_busy())
            {
                checkpointer.want();
            }
        }
    }

    /// A fatal failure poisons; after any other one the next request tries again.
    fn make_wanted(&self) {
        let guard = self.lock();
        self.shared.wanted.store(false, Ordering::Release);
        let _told_to_those_who_wait = guard.make(false);
    }

    /// Makes a checkpoint that contains everything done before, or waits for one.
    ///
    /// # Errors
    /// [`Error::Full`] if the device has no room for one; [`Error::Poisoned`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        let needed = self.shared.slot().begun + 1;
        self.want();
        loop {
            {
                let mut slot = self.shared.slot();
                if slot.ended >= needed {
                    return match &slot.failed {
                        Some((number, error)) if *number >= needed => Err(error.clone()),
                        _ => Ok(()),
                    };
                }
                slot.waiting.push(waker());
            }
            park();
        }
    }

    /// The last checkpoint, if it can be made: nothing else is under way, and those still asked for are not
    /// made, as the store would count as open after them.
    ///
    /// # Errors
    /// As [`Checkpointer::checkpoint`].
    pub fn close(&self) -> Result<(), Error> {
        self.lock().make(true)
    }

    /// From now on no checkpoint is made, as the trees are about to be closed: a checkpoint without them
    /// would lack the changes that are in the log alone. It waits for one that is under way.
    pub fn end(&self) {
        let _guard = self.lock();
        self.shared.slot().is_ended = true;
    }

    /// Moves the log to its first place, if it fits there.
    ///
    /// # Errors
    /// As [`Checkpointer::checkpoint`].
    pub fn move_log_back(&self) -> Result<(), Error> {
        self.lock().run().move_log_back()
    }

    /// Gives back the room at the device's end, as far as it is free and `leave` does not keep it, and the
    /// log's room. See [`Run::give_back`].
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn give_back(&self, keep: usize, leave: Leave) -> Result<(), Error> {
        self.lock().run().give_back(keep, leave)
    }

    /// The current superblock.
    pub fn superblock(&self) -> Superblock {
        self.lock().run().superblock().clone()
    }

    fn lock(&self) -> CheckpointGuard<'_> {
        loop {
            {
                let mut slot = self.shared.slot();
                if slot.run.is_some() {
                    return CheckpointGuard {
                        shared: &self.shared,
                        run: slot.run.take(),
                        begun: None,
                        result: Ok(()),
                    };
                }
                slot.waiting.push(waker());
            }
            park();
        }
    }
}

/// The right to make a checkpoint. Its drop gives it back on every path, panics included, as others wait for
/// it.
struct CheckpointGuard<'a> {
    shared: &'a CheckpointerState,
    /// There until the end.
    run: Option<Box<Run>>,
    /// The number of the checkpoint that is made, and its result.
    begun: Option<u64>,
    result: Result<(), Error>,
}

impl CheckpointGuard<'_> {
    fn run(&mut self) -> &mut Run {
        self.run.as_mut().unwrap_or_else(|| unreachable!("it is given back at the end"))
    }

    fn make(mut self, closed: bool) -> Result<(), Error> {
        let is_ended = {
            let mut slot = self.shared.slot();
            slot.begun += 1;
            self.begun = Some(slot.begun);
            slot.is_ended
        };
        if is_ended {
            // Commits that wait for a checkpoint are refused.
            let log = &self.run().parts.log;
            match log.is_written() {
                true => log.no_room(),
                false => drop(log.checkpoint_failed(&Error::Closed)),
            }
            self.result = Err(Error::Closed);
            return Err(Error::Closed);
        }
        self.result = Err(Error::Poisoned { first: "a panic while a checkpoint was made".into() });
        self.shared.busy.store(true, Ordering::Release);
        let result = self.run().checkpoint(closed);
        if matches!(&result, Err(error) if !matches!(error, Error::Poisoned { .. })) {
            // Cleaners and other tasks are making room meanwhile. Without a clock the next attempt comes at
            // once.
            let until = now(&self.shared.devices) + AFTER_FULL;
            let _at_once = sleep_until(&self.shared.devices, until);
        }
        if closed && result.is_ok() {
            self.shared.slot().is_ended = true;
        }
        self.result = result.clone();
        result
    }
}

impl Drop for CheckpointGuard<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut slot = self.shared.slot();
            if let Some(number) = self.begun {
                self.shared.busy.store(false, Ordering::Release);
                slot.ended = number;
                if let Err(error) = std::mem::replace(&mut self.result, Ok(())) {
                    slot.failed = Some((number, error));
                }
            }
            slot.run = self.run.take();
            std::mem::take(&mut slot.waiting)
        };
        waiting.into_iter().for_each(|waker| waker.wake());
    }
}

impl CheckpointerState {
    fn slot(&self) -> MutexGuard<'_, RunSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
