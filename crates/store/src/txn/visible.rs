//! The visibility of commits: all up to a timestamp, in the order of the log, in whatever order they are
//! applied.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, PoisonError};

use crate::Error;
use crate::log::{Log, Logged, Lsn, Timestamp};
use crate::poison::Poison;
use crate::task::{Waker, park, waker};

/// Commits that may be under way, logged and not visible yet; a power of two.
const SLOTS: u64 = 1 << 16;

/// See the module. Every atomic access is sequentially consistent. A commit first marks its slot and then
/// looks at that of the next commit and at `visible`; so of two neighbours that are marked at the same time,
/// at least one sees the other and moves `visible` over both.
pub(crate) struct Visible {
    /// The last visible commit; all before it are visible, too.
    visible: AtomicU64,
    /// The last timestamp given.
    given: AtomicU64,
    /// Slots by timestamp modulo their number. Each has the last commit that was applied there, and the log
    /// position of the last one that was begun there.
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
    /// All commits up to `last` are visible.
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

    /// Waits while too many commits are under way. To be called before a record is appended.
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

    /// Waits until the commit is visible.
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

    /// Wakes the waiters whose commits are visible, or all.
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

    /// The position where replay of the log must begin if all changes applied by now are on the device, and
    /// the last timestamp before it.
    pub fn replay_start(&self, log: &Log) -> (Lsn, Timestamp) {
        let (end, last) = log.end_and_last();
        let visible = self.get();
        if visible >= last || planted!(ReplayStartsTooLate) {
            return (end, last);
        }
        (Lsn(self.slot(visible.0 + 1).start.load(Ordering::SeqCst)), visible)
    }
}
