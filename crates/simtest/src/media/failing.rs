//! Which request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the requests of all disks that have it, and says which fail.
#[derive(Debug)]
pub struct FailPlan {
    asked: AtomicU64,
    first: u64,
    behind_last: u64,
}

impl FailPlan {
    /// The `nth` request fails, counted from 1, and with `sticky` all later ones.
    pub fn new(nth: u64, sticky: bool) -> Arc<Self> {
        let behind_last = if sticky { u64::MAX } else { nth.saturating_add(1) };
        Arc::new(Self { asked: AtomicU64::new(0), first: nth, behind_last })
    }

    /// None fails.
    pub fn none() -> Arc<Self> {
        Self::new(u64::MAX, true)
    }

    /// Requests so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether the request that comes now does.
    pub(super) fn next_fails(&self) -> bool {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        (self.first..self.behind_last).contains(&number)
    }
}
