//! What the dictionaries paper proves, in numbers, of designs with all their constants.

use flashgrain_cost::AffineCosts;
use flashgrain_cost::dictionary::{
    BEpsilonTree, BTree, Demand, Design, Operation, Records, Situation, price,
};

/// Records and pivots have the same size here, as in the paper's unit: a slot of 8 bytes beside a record of
/// 16, a pointer of 8 beside a key of 16.
const ELEMENT_BYTES: f64 = 24.0;

/// So many records that the level more or less which the size of a leaf makes does not count; nothing in
/// memory.
fn situation() -> Situation {
    Situation::new(Records { count: 1e300, key_bytes: 16.0, value_bytes: 0.0 }, 0.0, 1.0)
}

/// Cost in setups: on a drive with a setup of a second.
fn setups(design: &dyn Design, operation: Operation, alpha: f64) -> f64 {
    let demand: Demand = design.demand(operation, &situation());
    price(&demand, &AffineCosts::from_alpha(1.0, alpha, ELEMENT_BYTES), &situation()).unwrap().path_seconds
}

/// Slope of the cost over the size, both as logarithms: 1 if the cost is proportional to the size.
fn slope(size: f64, cost: impl Fn(f64) -> f64) -> f64 {
    (cost(2.0 * size) / cost(size)).log2()
}

#[test]
fn beyond_the_half_bandwidth_b_trees_get_dearer_with_b_and_b_epsilon_trees_hardly() {
    for alpha in [1e-3, 1e-4, 1e-5] {
        let b_tree =
            |elements: f64| setups(&BTree::new(elements * ELEMENT_BYTES), Operation::PointHit, alpha);
        let b_epsilon = |elements: f64| {
            let tree = BEpsilonTree::optimised(elements * ELEMENT_BYTES, elements.sqrt());
            setups(&tree, Operation::PointHit, alpha)
        };
        let half_bandwidth = 1.0 / alpha;
        let growth = |cost: &dyn Fn(f64) -> f64| cost(64.0 * half_bandwidth) / cost(half_bandwidth);
        let (b_tree_growth, b_epsilon_growth) = (growth(&b_tree), growth(&b_epsilon));
        println!(
            "α {alpha:.0e}, from 1/α to 64/α: B-tree × {b_tree_growth:.1}, Bε-tree × {b_epsilon_growth:.3}; slopes far \
             beyond: {:.2}, {:.2}",
            slope(1e4 * half_bandwidth, b_tree),
            slope(1e3 / alpha.powi(2), b_epsilon)
        );
        assert!(b_tree_growth > 15.0 && b_epsilon_growth < 1.35, "{b_tree_growth} {b_epsilon_growth}");
        // Corollary 10: nearly linear in B, and in its square root where that is beyond the half bandwidth.
        assert!((0.85..1.0).contains(&slope(1e4 * half_bandwidth, b_tree)));
        assert!((0.35..0.5).contains(&slope(1e3 / alpha.powi(2), b_epsilon)));
    }
}
