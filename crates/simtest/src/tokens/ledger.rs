//! Facts that all tasks share outside of the store.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most tasks that there may be.
pub const TASKS_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Records that were inserted among the ashes.
    pub inserted: AtomicU64,
    /// Records that removals of ranges said to have removed.
    pub removed: AtomicU64,
    /// Numbers of each task's pair.
    pub pairs: [Numbers; TASKS_MAX],
}

/// Bounds on the number of a pair. Only the pair's own task raises the number.
#[derive(Debug, Default)]
pub struct Numbers {
    /// A commit with that number has begun.
    begun: AtomicU64,
    /// The last one that has returned.
    returned: AtomicU64,
    /// The last one that has returned and was to be durable then.
    durable: AtomicU64,
}

impl Numbers {
    /// A commit of `number` is about to begin.
    pub fn begin(&self, number: u64) {
        self.begun.store(number, Ordering::SeqCst);
    }

    /// It has returned.
    pub fn end(&self, number: u64, is_durable: bool) {
        self.returned.store(number, Ordering::SeqCst);
        if is_durable {
            self.durable.store(number, Ordering::SeqCst);
        }
    }

    /// No commit beyond that one has begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// All up to that one can be seen.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::SeqCst)
    }

    /// After a crash, takes over `found`, the number that the pair has.
    ///
    /// # Errors
    /// A durable commit that is gone, or a number that no commit had.
    pub fn recover(&self, found: u64) -> Result<(), String> {
        let (durable, begun) = (self.durable.load(Ordering::SeqCst), self.begun());
        if !(durable..=begun).contains(&found) {
            return Err(format!(
                "a pair is at {found} after a crash; {durable} was durable, {begun} the last"
            ));
        }
        self.begun.store(found, Ordering::SeqCst);
        self.returned.store(found, Ordering::SeqCst);
        Ok(())
    }
}
