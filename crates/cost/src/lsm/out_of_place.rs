//! The LSM-tree of a store that has pages as well, written out of place.

use super::LsmTree;
use crate::dictionary::{Demand, Design, Operation, OutOfPlaceBTree, PAGE_TABLE_BYTES, Records, Situation};

/// An LSM-tree whose blocks have a reference only of each value that is longer than a quarter of them. The
/// value is in overflow pages, which every change writes. They stay where they are while merges move the
/// reference, and go with the version that a merge leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutOfPlaceLsmTree {
    /// The tree.
    pub tree: LsmTree,
    /// Overflow pages are those of this tree, which has blocks of the same size.
    pub pages: OutOfPlaceBTree,
}

impl Design for OutOfPlaceLsmTree {
    fn name(&self) -> String {
        self.tree.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.pages.stored(operation, situation);
        let cache_bytes = situation.cache_bytes - stored.values() * PAGE_TABLE_BYTES;
        let inline = Situation { cache_bytes, ..stored.inline };
        let asked = self.tree.demand(stored.operation(), &inline);
        let mut demand = Demand { transfers: asked.transfers, ..Demand::of(operation, &situation.records) };
        let left_bytes = cache_bytes - self.tree.memory_bytes(&inline) - inline.records.total_bytes();
        stored.add_reads(&mut demand, left_bytes, 1.0);
        self.pages.writes(&inline).of_values(&stored).add(&mut demand, stored.put(), &inline);
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        let stored = self.pages.stored(Operation::Update, situation);
        let versions =
            1.0 + situation.replaced_share.unwrap_or(0.0) * self.tree.older_versions(&stored.inline);
        let values = versions * stored.total_bytes() / self.pages.utilisation;
        let tables = self.tree.space_amplification(&stored.inline) * stored.inline.records.total_bytes();
        (tables + values) / situation.records.total_bytes()
    }

    fn memory_bytes(&self, situation: &Situation) -> f64 {
        let stored = self.pages.stored(Operation::Update, situation);
        self.tree.memory_bytes(&stored.inline) + stored.values() * PAGE_TABLE_BYTES
    }

    fn logged_records(&self, situation: &Situation) -> Records {
        self.pages.logged_records(situation)
    }
}
