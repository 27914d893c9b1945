//! The boundary between data structures and drives.

use super::{Demand, Operation, Records, Situation};

/// A dictionary's data structure with its parameters.
///
/// Implementations state expectations over a dictionary in its steady state, which has had many changes:
/// nodes are as full as that leaves them, background work is counted with the operations that cause it.
pub trait Design {
    /// Name with the parameters that matter, such as `B-tree, 16 KiB nodes`.
    fn name(&self) -> String;

    /// The requests that an operation makes, on average.
    fn demand(&self, operation: Operation, situation: &Situation) -> Demand;

    /// Bytes on the drive over bytes of all keys and values, in the steady state of updates.
    fn space_amplification(&self, situation: &Situation) -> f64;

    /// Memory that the design cannot do without, in bytes, such as pinned filters or a page table. It is
    /// taken out of the situation's cache.
    fn memory_bytes(&self, _situation: &Situation) -> f64 {
        0.0
    }

    /// The records as the log has them: references to values in overflow pages, which are on the drive before
    /// the commit.
    fn logged_records(&self, situation: &Situation) -> Records {
        situation.records
    }
}
