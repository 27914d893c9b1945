//! Which commits can be seen: all up to a timestamp, in the order of the log, however they are applied.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, PoisonError};

use crate::Error;
use crate::log::{Log, Logged, Lsn, Timestamp};
use crate::poison::Poison;
use crate::task::{Waker, park, waker};

/// Commits that may be under way, logged and not visible yet; a power of two.
const SLOTS: u64 = 1 << 16;

/// See the module. Every atomic access is sequentially consistent: who marks a commit as applied looks at its
/// neighbours, and of two neighbours one must see the other.
pub(crate) struct Visible {
    /// The last commit that can be seen; so can all before it.
    visible: AtomicU64,
    /// The last timestamp given.
    given: AtomicU64,
    /// By timestamp modulo their number: the last commit that was applied there, and where the record of the
    /// last one given begins.
    slots: Box<[CommitSlot]>,
    waiting: Mutex<Vec<(Timestamp, Waker)>>,
    waiters: AtomicUsize,
}

#[derive(Default)]
struct CommitSlot {
    applied: AtomicU64,
    start: AtomicU64,
}

impl Visible {
    /// Everything up to `last` can be seen.
    pub fn new(last: Timestamp) -> Self {
        Self {
            visible: AtomicU64::new(last.0),
            given: AtomicU64::new(last.0),
            slots: (0..SLOTS).map(|_| CommitSlot::default()).collect(),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
        }
    }

    /// The last commit that can be seen.
    pub fn get(&self) -> Timestamp {
        Timestamp(self.visible.load(Ordering::SeqCst))
    }

    /// The last timestamp given.
    pub fn given(&self) -> Timestamp {
        Timestamp(self.given.load(Ordering::SeqCst))
    }

    fn slot(&self, timestamp: u64) -> &CommitSlot {
        &self.slots[(timestamp % SLOTS) as usize]
    }

    /// To be called before a record is appended: waits while too many commits are under way.
    pub fn admit(&self, poison: &Poison) -> Result<(), Error> {
        let given = self.given().0;
        if given - self.get().0.min(given) < SLOTS / 2 {
            return Ok(());
        }
        self.wait(Timestamp(given - SLOTS / 2), poison)
    }

    /// A record was appended; called in the order of timestamps.
    pub fn begin(&self, logged: Logged) {
        self.slot(logged.timestamp.0).start.store(logged.start.0, Ordering::SeqCst);
        self.given.store(logged.timestamp.0, Ordering::SeqCst);
    }

    /// The commit is applied.
    pub fn applied(&self, timestamp: Timestamp) {
        self.slot(timestamp.0).applied.store(timestamp.0, Ordering::SeqCst);
        let mut moved = false;
        loop {
            let visible = self.visible.load(Ordering::SeqCst);
            let next = visible + 1;
            if self.slot(next).applied.load(Ordering::SeqCst) != next {
                break;
            }
            let advanced = self.visible.compare_exchange(visible, next, Ordering::SeqCst, Ordering::SeqCst);
            moved |= advanced.is_ok();
        }
        if moved && self.waiters.load(Ordering::SeqCst) > 0 {
            self.wake(false);
        }
    }

    /// Waits until the commit can be seen.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: a commit before it may never be applied.
    pub fn wait(&self, timestamp: Timestamp, poison: &Poison) -> Result<(), Error> {
        while self.get() < timestamp {
            {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push((timestamp, waker()));
                self.waiters.store(waiting.len(), Ordering::SeqCst);
            }
            if self.get() >= timestamp {
                break;
            }
            poison.check()?;
            park();
        }
        Ok(())
    }

    /// Wakes those whose commit can be seen, or all.
    pub fn wake(&self, all: bool) {
        let visible = self.get();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let ready: Vec<_> = waiting
            .extract_if(.., |(timestamp, _)| all || *timestamp <= visible)
            .map(|(_, waker)| waker)
            .collect();
        self.waiters.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
        ready.into_iter().for_each(|waker| waker.wake());
    }

    /// From where on the log must be replayed if all that is applied now is on the device, and the last
    /// timestamp before that.
    pub fn replay_start(&self, log: &Log) -> (Lsn, Timestamp) {
        let (end, last) = log.end_and_last();
        let visible = self.get();
        if visible >= last || planted!(ReplayStartsTooLate) {
            return (end, last);
        }
        (Lsn(self.slot(visible.0 + 1).start.load(Ordering::SeqCst)), visible)
    }
}
