//! What the dictionaries paper proves, in numbers: its closed forms, and the designs with all their
//! constants.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use flashgrain_model::dictionary::{
    AffineForms, BEpsilonTree, BTree, Demand, Design, Operation, Records, Situation, price,
};
use flashgrain_model::{Affine, AffineCosts};

const ALPHAS: [f64; 7] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

/// Records and pivots have the same size here, as in the paper's unit: a slot of 8 bytes beside a record of
/// 16, a pointer of 8 beside a key of 16.
const ELEMENT_BYTES: f64 = 24.0;

fn forms(alpha: f64) -> AffineForms {
    AffineForms { alpha, data_over_memory: 1e6 }
}

/// So many records that the level more or less which the size of a leaf makes does not count; nothing in
/// memory.
fn situation() -> Situation {
    Situation::new(Records { count: 1e300, key_bytes: 16.0, value_bytes: 0.0 }, 0.0, 1.0)
}

/// A drive with a setup of a second, so that costs are in setups.
fn drive(alpha: f64) -> Affine {
    let costs = AffineCosts::from_alpha(1.0, alpha, ELEMENT_BYTES);
    Affine::from_costs(4096.0, costs, costs)
}

fn setups(design: &dyn Design, operation: Operation, alpha: f64) -> f64 {
    let demand: Demand = design.demand(operation, &situation());
    price(&demand, &drive(alpha), &situation()).unwrap().path_seconds
}

/// The node size between two with the least cost, in elements.
fn cheapest(elements_min: f64, elements_max: f64, cost: impl Fn(f64) -> f64) -> f64 {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (elements_min.ln(), elements_max.ln());
    for _ in 0..60 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if cost(left.exp()) <= cost(right.exp()) {
            high = right;
        } else {
            low = left;
        }
    }
    ((low + high) / 2.0).exp()
}

/// Slope of the cost over the size, both as logarithms: 1 if the cost is proportional to the size.
fn slope(size: f64, cost: impl Fn(f64) -> f64) -> f64 {
    (cost(2.0 * size) / cost(size)).log2()
}

#[test]
fn corollary_7s_node_solves_its_equation_and_is_the_minimum_of_lemma_5() {
    for alpha in ALPHAS {
        let forms = forms(alpha);
        let node = forms.b_tree_node();
        let (left, right) = (1.0 + alpha * node, alpha * (1.0 + node) * node.ln_1p());
        assert!((left / right - 1.0).abs() < 1e-9, "α {alpha}: {left} {right}");
        for other in [0.5, 0.9, 1.1, 2.0] {
            assert!(forms.b_tree(other * node) > forms.b_tree(node), "α {alpha}: {other}");
        }
    }
}

#[test]
fn the_best_b_tree_node_is_below_the_half_bandwidth_and_grows_as_the_closed_form() {
    let ratios: Vec<f64> = ALPHAS
        .into_iter()
        .map(|alpha| {
            let forms = forms(alpha);
            let node = forms.b_tree_node();
            // The same from the design with fill, records in leaves and levels of a real tree, priced.
            let cost = |elements: f64| {
                setups(&BTree::new(elements * ELEMENT_BYTES), Operation::PointHit, alpha)
            };
            let priced = cheapest(4.0, 4.0 / alpha, cost);
            let below = priced * alpha;
            let ratio = node / forms.b_tree_node_hint();
            println!(
                "α {alpha:.0e}: best {node:.4e} elements, design {priced:.4e}, half bandwidth {:.0e}, closed form \
                 × {ratio:.3}",
                forms.half_bandwidth()
            );
            assert!(node < forms.half_bandwidth() && below < 1.0, "α {alpha}: {node} {priced}");
            // Nodes are ln 2 full, which makes a larger node of as many elements: less than 1/ln 2.
            assert!((0.9..1.5).contains(&(priced / node)), "α {alpha}: {node}, design {priced}");
            ratio
        })
        .collect();
    // Θ: bounded, and towards 1 as α falls.
    assert!(ratios.iter().all(|ratio| (1.0..2.0).contains(ratio)), "{ratios:?}");
    let away: Vec<f64> = ratios.iter().map(|ratio| ratio - 1.0).collect();
    assert!(away[2..].windows(2).all(|pair| pair[1] < pair[0]), "{ratios:?}");
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

#[test]
fn corollary_12s_tree_answers_as_fast_as_the_best_b_tree_and_inserts_log_1_over_alpha_faster() {
    let mut rows = Vec::new();
    for alpha in ALPHAS {
        let forms = forms(alpha);
        let (fanout, node) = forms.b_epsilon_optimum();
        let best_b_tree = forms.b_tree(forms.b_tree_node());
        let query = (1.0 + alpha * node / fanout + alpha * fanout)
            * (forms.data_over_memory.ln() / fanout.ln())
            / best_b_tree;
        let gain = best_b_tree / forms.b_epsilon_insert(node, fanout);

        // The designs with their constants; an insert of a B-tree reads its path and writes a leaf.
        let tree = BEpsilonTree::optimised(node * ELEMENT_BYTES, fanout);
        let b_tree = BTree::new(forms.b_tree_node() * ELEMENT_BYTES);
        let priced_gain = setups(&b_tree, Operation::Update, alpha) / setups(&tree, Operation::Update, alpha);
        let priced_query =
            setups(&tree, Operation::PointHit, alpha) / setups(&b_tree, Operation::PointHit, alpha);
        let logarithm = (1.0 / alpha).ln();
        println!(
            "α {alpha:.0e}: query × {query:.3}, insert gain {gain:.2} = {:.3} ln 1/α; designs: query × \
             {priced_query:.3}, gain {priced_gain:.2} = {:.3} ln 1/α",
            gain / logarithm,
            priced_gain / logarithm
        );
        rows.push((query, gain / logarithm, priced_gain / logarithm, priced_query));
    }
    for (query, gain, priced_gain, priced_query) in &rows {
        assert!((1.0..1.3).contains(query) && (0.7..1.1).contains(gain), "{rows:?}");
        assert!((0.2..0.4).contains(priced_gain) && (0.95..1.3).contains(priced_query), "{rows:?}");
    }
    // Up to low-order terms: the loss of queries vanishes.
    assert!(rows.windows(2).all(|pair| pair[1].0 <= pair[0].0), "{rows:?}");
    // Θ(log 1/α): over five powers of ten the factor in front of the logarithm changes little.
    let (low, high) =
        rows[2..].iter().fold((f64::INFINITY, 0f64), |(low, high), row| (low.min(row.2), high.max(row.2)));
    assert!(high / low < 1.3, "{rows:?}");
}
