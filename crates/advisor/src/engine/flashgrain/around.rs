//! An LSM-tree around its size.

use flashgrain_cost::dictionary::{Demand, Design, Operation, Records, Situation};
use flashgrain_cost::lsm::OutOfPlaceLsmTree;
use flashgrain_settings::LsmWorkload;

/// An LSM-tree that is the mean of those of the sizes that its design was chosen for, with memory in
/// proportion. How full its levels are at one of them is luck: next to another size, or with other memtables,
/// the same tree writes a third more.
pub(super) struct AroundItsSize(pub OutOfPlaceLsmTree);

/// Weight of each size.
const SIZE_FRACTION: f64 = 1.0 / LsmWorkload::SIZES.len() as f64;

impl AroundItsSize {
    /// The situations of the tree at all sizes; the middle one is the tree's own.
    fn at_sizes<'a>(&'a self, situation: &'a Situation) -> impl Iterator<Item = Situation> + 'a {
        let left_bytes = situation.cache_bytes - self.0.memory_bytes(situation);
        LsmWorkload::SIZES.into_iter().map(move |size| {
            let size = size / LsmWorkload::SIZE_MEAN;
            let count = (situation.records.count * size).max(1.0);
            let sized = Situation { records: Records { count, ..situation.records }, ..*situation };
            Situation { cache_bytes: self.0.memory_bytes(&sized) + size * left_bytes, ..sized }
        })
    }
}

impl Design for AroundItsSize {
    fn name(&self) -> String {
        self.0.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        Demand::mix(self.at_sizes(situation).map(|sized| (SIZE_FRACTION, self.0.demand(operation, &sized))))
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.at_sizes(situation).map(|sized| SIZE_FRACTION * self.0.space_amplification(&sized)).sum()
    }

    fn memory_bytes(&self, situation: &Situation) -> f64 {
        self.0.memory_bytes(situation)
    }
}
