//! The time in which a tree is filled.

use crate::IoModel;
use crate::dictionary::{Design, Operation, Situation, price};

/// Parts of a load; each is priced by the tree at its middle.
const PARTS: u32 = 100;

/// Seconds until all records of the situation are in a tree and its background work is done, as by
/// db_bench's `filluniquerandom` and `waitforcompaction` (MQSSD paper §5.3.1). The records arrive in random
/// order, each once: the sum of Eq. 9 or 11 over a tree that grows. `None` if the model has no data of a kind
/// of request.
pub fn load_seconds(tree: &dyn Design, model: &dyn IoModel, situation: &Situation) -> Option<f64> {
    let part = |part: u32| {
        let mut grown = *situation;
        grown.records.count *= (f64::from(part) + 0.5) / f64::from(PARTS);
        let cost = price(&tree.demand(Operation::Insert, &grown), model, &grown)?;
        Some(situation.records.count / f64::from(PARTS) / cost.operations_per_second)
    };
    (0..PARTS).map(part).sum()
}
