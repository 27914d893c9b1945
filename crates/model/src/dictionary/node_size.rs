//! What designs cost over their node size, and the best size under any device model.

use serde::{Deserialize, Serialize};

use super::{BEpsilonTree, Cost, Demand, Design, Operation, Situation, price};
use crate::IoModel;

/// A point of a node-size curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSizeCost {
    /// Bytes of a node.
    pub node_bytes: f64,
    /// What the mix of operations costs with it.
    pub cost: Cost,
}

/// Powers of two between two sizes, both included if they are ones.
pub fn powers_of_two(bytes_min: f64, bytes_max: f64) -> Vec<f64> {
    let first = bytes_min.max(1.0).log2().ceil() as i32;
    let last = bytes_max.max(1.0).log2().floor() as i32;
    (first..=last).map(|power| f64::from(power).exp2()).collect()
}

/// The cost of a mix of operations (share and operation) with designs of several node sizes. Sizes for which
/// the model has no costs are left out.
pub fn node_size_curve<D: Design>(
    node_bytes: &[f64],
    design: impl Fn(f64) -> D,
    mix: &[(f64, Operation)],
    situation: &Situation,
    model: &dyn IoModel,
) -> Vec<NodeSizeCost> {
    let point = |&node_bytes: &f64| {
        let cost = price(&mixed_demand(&design(node_bytes), mix, situation), model, situation)?;
        Some(NodeSizeCost { node_bytes, cost })
    };
    node_bytes.iter().filter_map(point).collect()
}

/// The point with the highest rate; the smallest node of those.
pub fn best_node_size(curve: &[NodeSizeCost]) -> Option<NodeSizeCost> {
    curve.iter().copied().reduce(|best, point| {
        if point.cost.operations_per_second > best.cost.operations_per_second { point } else { best }
    })
}

/// The Bε-tree with the highest rate for a mix of operations among nodes of these sizes and all fanouts that
/// are powers of two and leave a buffer at least as large as its pivots (Corollaries 11 and 12: F grows with
/// the square root of B, as far as inserts allow). `tree` makes one of a node size and a fanout.
pub fn best_b_epsilon_tree(
    node_bytes: &[f64],
    tree: impl Fn(f64, f64) -> BEpsilonTree,
    mix: &[(f64, Operation)],
    situation: &Situation,
    model: &dyn IoModel,
) -> Option<(BEpsilonTree, Cost)> {
    let mut best: Option<(BEpsilonTree, Cost)> = None;
    for &bytes in node_bytes {
        let records = &situation.records;
        let fanout_max = (bytes / (2.0 * (records.key_bytes + super::b_tree::POINTER_BYTES))).max(2.0);
        for fanout in powers_of_two(2.0, fanout_max) {
            let tree = tree(bytes, fanout);
            let cost = price(&mixed_demand(&tree, mix, situation), model, situation)?;
            if best.is_none_or(|(_, best)| cost.operations_per_second > best.operations_per_second) {
                best = Some((tree, cost));
            }
        }
    }
    best
}

/// The average operation of a mix of shares and operations.
pub fn mixed_demand(design: &dyn Design, mix: &[(f64, Operation)], situation: &Situation) -> Demand {
    Demand::mix(mix.iter().map(|&(share, operation)| (share, design.demand(operation, situation))))
}
