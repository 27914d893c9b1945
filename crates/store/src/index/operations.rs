//! Counts of the operations on a tree.

use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_settings::LsmWorkload;
use serde::Serialize;

use crate::pool::own_place;

/// Operations on a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeOperations {
    /// Keys that commits have given a value, or removed. Keys of loads that became tables at once do not
    /// count.
    pub writes: u64,
    /// Look-ups of a key.
    pub look_ups: u64,
    /// Scans, of any number of records.
    pub scans: u64,
}

impl TreeOperations {
    /// All operations.
    pub fn sum(&self) -> u64 {
        self.writes.saturating_add(self.look_ups).saturating_add(self.scans)
    }

    /// Their shares as a workload; `None` if nothing was done.
    pub fn workload(&self) -> Option<LsmWorkload> {
        let shares = [self.writes, self.look_ups, self.scans].map(|count| count as f64);
        let [writes, look_ups, scans] = shares;
        (self.sum() > 0).then(|| LsmWorkload::new(writes, look_ups, scans))
    }

    /// The numbers for the manifest.
    pub(crate) fn numbers(&self) -> [u64; 3] {
        [self.writes, self.look_ups, self.scans]
    }

    pub(crate) fn of_numbers([writes, look_ups, scans]: [u64; 3]) -> Self {
        Self { writes, look_ups, scans }
    }
}

/// Threads count in this number of places; each has its own unless the process has more threads.
const PLACES: usize = 16;

/// The counts of the threads that share a place. They are not part of explored schedules, as nothing waits
/// for them.
#[derive(Default)]
#[repr(align(64))]
struct Counts {
    writes: AtomicU64,
    look_ups: AtomicU64,
    scans: AtomicU64,
}

/// Counts operations without a locked instruction: where threads share a place, a few may be lost.
#[derive(Default)]
pub(crate) struct OperationCounts {
    /// Counts of earlier openings.
    before: TreeOperations,
    places: Box<[Counts; PLACES]>,
}

#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

impl OperationCounts {
    /// Continues the counts of earlier openings.
    pub fn from(before: TreeOperations) -> Self {
        Self { before, ..Self::default() }
    }

    #[inline]
    fn own(&self) -> &Counts {
        &self.places[own_place() % PLACES]
    }

    #[inline]
    pub fn look_up(&self) {
        add(&self.own().look_ups, 1);
    }

    #[inline]
    pub fn scan(&self) {
        add(&self.own().scans, 1);
    }

    #[inline]
    pub fn writes(&self, count: usize) {
        add(&self.own().writes, count as u64);
    }

    /// All so far.
    pub fn all(&self) -> TreeOperations {
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            self.places.iter().map(|place| of(place).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        let own = [sum(|place| &place.writes), sum(|place| &place.look_ups), sum(|place| &place.scans)];
        let [before, own] = [self.before.numbers(), own];
        TreeOperations::of_numbers(std::array::from_fn(|at| before[at].saturating_add(own[at])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_from_those_of_earlier_openings() {
        let counts = OperationCounts::from(TreeOperations { writes: 1, look_ups: 2, scans: u64::MAX });
        counts.writes(7);
        counts.look_up();
        counts.scan();
        assert_eq!(counts.all(), TreeOperations { writes: 8, look_ups: 3, scans: u64::MAX });
        assert_eq!(TreeOperations::default().workload(), None);
        let mixed = TreeOperations { writes: 1, look_ups: 2, scans: 1 };
        assert_eq!(mixed.workload(), Some(LsmWorkload::new(1.0, 2.0, 1.0)));
    }
}
