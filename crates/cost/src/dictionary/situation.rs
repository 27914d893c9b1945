//! The conditions of an operation: data, memory, clients, durability.

use serde::{Deserialize, Serialize};

use super::{Durability, Operation, Records, Skew, Uses};

/// Everything about an operation's surroundings that is neither the design nor the drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Situation {
    /// The stored records.
    pub records: Records,
    /// M: memory that holds parts of the dictionary, in bytes. Memory that a design always needs
    /// ([`Design::memory_bytes`](super::Design::memory_bytes)) is taken out of it first.
    pub cache_bytes: f64,
    /// k: clients, each with one operation at a time, without pauses.
    pub clients: f64,
    /// Which records the operations ask for.
    pub skew: Skew,
    /// The moment at which a change counts as done.
    pub durability: Durability,
    /// Share of the changes that replace or remove a record; the others add one. `None` if nothing changes.
    pub replaced_share: Option<f64>,
    /// Changes between two checkpoints. Designs that change nodes in memory write all changed ones at a
    /// checkpoint; `None` if nodes are written only when they leave the memory.
    pub changes_per_checkpoint: Option<f64>,
    /// Number of operations since the memory was empty; the cost is their average. `None` for a steady state.
    /// Early queries read nodes that later ones find in memory; benchmarks that start anew after loading show
    /// that.
    pub operations_since_empty: Option<f64>,
    /// Processor time of an operation without I/O.
    pub processor: Processor,
}

/// Time that operations take of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Cores that operations can use at the same time.
    pub cores: f64,
    /// Seconds of one core per operation.
    pub seconds_per_operation: f64,
}

impl Processor {
    /// A processor that takes no time, to see the I/O alone.
    pub const FREE: Self = Self { cores: 1.0, seconds_per_operation: 0.0 };
}

impl Situation {
    /// Uniform accesses, changes of records that are there, no log, no checkpoints, a steady state, a
    /// processor that takes no time: the surroundings of the dictionaries paper.
    pub fn new(records: Records, cache_bytes: f64, clients: f64) -> Self {
        Self {
            records,
            cache_bytes,
            clients,
            skew: Skew::Uniform,
            durability: Durability::NoLog,
            replaced_share: Some(1.0),
            changes_per_checkpoint: None,
            operations_since_empty: None,
            processor: Processor::FREE,
        }
    }

    /// The surroundings as the operation meets them: a new record's key lies anywhere, whatever the skew is.
    pub(crate) fn of(&self, operation: Operation) -> Self {
        let is_new = operation == Operation::Insert;
        Self { skew: if is_new { Skew::Uniform } else { self.skew }, ..*self }
    }

    /// The keys that changes of this kind reach.
    pub(crate) fn changed_keys(&self, operation: Operation) -> Uses {
        match operation {
            Operation::Insert => Uses::all_new(),
            _ => Uses::of(&self.skew, self.records.count, 1.0),
        }
    }
}
