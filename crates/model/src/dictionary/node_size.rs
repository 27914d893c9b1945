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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{AffineForms, BTree, Records};
    use crate::{Affine, AffineCosts, FitOptions, fit, read_csv};

    const MIB: f64 = 1_048_576.0;

    fn situation() -> Situation {
        Situation::new(Records { count: 1e12, key_bytes: 16.0, value_bytes: 100.0 }, 0.0, 1.0)
    }

    /// The 1 TB WD Black of 2011.
    fn disk() -> Affine {
        let costs = AffineCosts { setup_seconds: 0.012, transfer_seconds_per_byte: 0.000_035 / 4096.0 };
        Affine::from_costs(4096.0, costs, costs)
    }

    #[test]
    fn sizes_are_powers_of_two_within_the_bounds() {
        assert_eq!(powers_of_two(4096.0, 16_384.0), [4096.0, 8192.0, 16_384.0]);
        assert_eq!(powers_of_two(5000.0, 10_000.0), [8192.0]);
        assert_eq!(powers_of_two(5000.0, 6000.0), [0.0; 0]);
    }

    #[test]
    fn a_drive_whose_writes_were_not_measured_prices_reads_only() {
        let reads = "access,request_bytes,concurrency,bytes_per_second\nread,4096,1,1e6\nread,65536,1,1e7\n";
        let models = fit(&read_csv(reads.as_bytes()).unwrap(), &FitOptions::default()).unwrap();
        let affine = models.affine.unwrap();
        let curve =
            |operation| node_size_curve(&[4096.0], BTree::new, &[(1.0, operation)], &situation(), &affine);
        assert_eq!(curve(Operation::PointHit).len(), 1);
        assert_eq!(curve(Operation::Update), []);
        assert_eq!(best_node_size(&curve(Operation::Update)), None);
    }

    #[test]
    fn a_b_epsilon_tree_gets_the_fanout_that_its_operations_want() {
        let sizes = powers_of_two(4096.0, 64.0 * MIB);
        let best = |shares: [f64; 2]| {
            let mix = [(shares[0], Operation::PointHit), (shares[1], Operation::Update)];
            best_b_epsilon_tree(&sizes, BEpsilonTree::optimised, &mix, &situation(), &disk()).unwrap()
        };
        // Corollary 11: a node costs a look-up little more than a setup.
        let (tree, _) = best([1.0, 0.0]);
        let read = tree.node_bytes / tree.fanout + 24.0 * tree.fanout;
        let setups = 1.0 + 0.000_035 / 4096.0 / 0.012 * read;
        println!("look-ups: {tree:?}, {setups:.3} setups a node");
        assert!(setups < 1.3 && tree.fanout > 500.0, "{tree:?} {setups}");
        // Changes alone want few children, ε near 0; a mix wants a fanout between, and is at least as good as
        // that of Corollary 12.
        let (of_changes, _) = best([0.0, 1.0]);
        let (of_both, cost) = best([0.1, 0.9]);
        println!("changes: {of_changes:?}\nboth: {of_both:?}");
        assert!(
            of_changes.fanout <= 16.0 && of_changes.fanout < of_both.fanout && of_both.fanout < tree.fanout
        );
        let element = 124.0;
        let alpha = disk().alpha(crate::Access::Read, element).unwrap();
        let (fanout, node) = AffineForms { alpha, data_over_memory: 1e12 }.b_epsilon_optimum();
        let theirs = BEpsilonTree::optimised(node * element, fanout);
        let mix = [(0.1, Operation::PointHit), (0.9, Operation::Update)];
        let theirs = price(&mixed_demand(&theirs, &mix, &situation()), &disk(), &situation()).unwrap();
        assert!(cost.operations_per_second >= theirs.operations_per_second, "{cost:?} {theirs:?}");
    }
}
