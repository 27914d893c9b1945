//! Predictions for the operations that an experiment measures.

use flashgrain::Stats;
use flashgrain_advisor::engine::{PredictedTree, StoreFacts, TreeStructure, predicted_tree};
use flashgrain_advisor::workload::{Durability, Operations, Records};
use flashgrain_advisor::{Drive, Interval, ProcessorTimes, Workload};

use super::Operation;
use crate::processor::ProcessorCosts;
use crate::store::Options;

/// The input of predictions in addition to the options.
pub(super) struct Prediction {
    /// The drive as its profile has it.
    pub drive: Drive,
    /// Exponent of the distribution of keys; 0 if it is uniform.
    pub skew: f64,
    /// Processor times, as measured or given.
    pub costs: ProcessorCosts,
}

impl Prediction {
    /// The prediction for `operation` on a tree, in a store that is as full as its `stats` say.
    pub fn of(
        &self,
        options: &Options,
        operation: Operation,
        (structure, node_bytes): (TreeStructure, u64),
        stats: &Stats,
    ) -> PredictedTree {
        let facts = StoreFacts { processor: self.processor(operation), utilisation: utilisation(stats) };
        predicted_tree(&self.workload(options, operation), &self.drive, structure, node_bytes as f64, &facts)
    }

    /// Processor times without doubt: they were measured on this machine.
    fn processor(&self, operation: Operation) -> ProcessorTimes {
        let exact = |ns: u64| Interval::exact(ns as f64 * 1e-9);
        let ProcessorCosts { look_up_ns, write_ns, wait_ns, request_ns, .. } = self.costs;
        let own = if operation == Operation::Update { write_ns } else { look_up_ns };
        ProcessorTimes {
            operation: exact(own),
            request: exact(request_ns + wait_ns),
            ..ProcessorTimes::OF_GOOD_STORE
        }
    }

    /// The same operations, as the advisor knows them.
    fn workload(&self, options: &Options, operation: Operation) -> Workload {
        let records = options.records;
        let operations = match operation {
            Operation::Range(length) => Operations {
                ranges: 1.0,
                range_bytes: u64::from(length) * records.record_bytes(),
                ..Operations::default()
            },
            Operation::Update => Operations { updates: 1.0, ..Operations::default() },
            _ => Operations { point_hits: 1.0, ..Operations::default() },
        };
        Workload {
            name: "one operation".into(),
            operations,
            records: Records {
                count: records.count,
                key_bytes: records.key_bytes as u64,
                value_bytes: records.value_bytes as u64,
            },
            memory_bytes: options.store.cache_bytes,
            skew: self.skew,
            clients: options.store.tasks,
            rate_per_second: None,
            cores: Some(options.store.workers),
            durability: Durability::None,
            lifetime: None,
            assumptions: Vec::new(),
        }
    }
}

/// Share of the segments' bytes that live images take; `None` of a store that has next to no images, as those
/// of LSM-trees have.
pub(super) fn utilisation(stats: &Stats) -> Option<f64> {
    let space = &stats.space;
    let segments_bytes = space.segments_bytes.max(1) as f64;
    (space.live_bytes > space.owned_bytes).then(|| (space.live_bytes as f64 / segments_bytes).min(1.0))
}
