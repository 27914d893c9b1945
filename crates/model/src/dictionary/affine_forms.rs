//! The dictionaries paper's costs under the affine model as it writes them, and what they are least at.
//!
//! Costs are in setups: an I/O of x elements costs 1 + αx, where an element is a record or a pivot of unit
//! size. These are orders with the constants left out; the [`Design`](super::Design)s have the constants.

use serde::{Deserialize, Serialize};

/// A dictionary on an affine drive, in the paper's units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffineForms {
    /// α: the transfer of an element over a setup, between 0 and 1. From a drive's α per byte: times the
    /// bytes of an element.
    pub alpha: f64,
    /// N/M: elements of the dictionary over those that memory holds, above 1.
    pub data_over_memory: f64,
}

impl AffineForms {
    /// Lemma 5: a look-up, an insert or a delete in a B-tree with nodes of B elements:
    /// (1 + αB) · log_{B+1}(N/M).
    pub fn b_tree(&self, node: f64) -> f64 {
        (1.0 + self.alpha * node) * self.levels(node + 1.0)
    }

    /// Lemma 8: an insert or a delete in a Bε-tree with nodes of B elements and F children:
    /// (F/B + αF) · log_F(N/M). Theorem 9 has the same.
    pub fn b_epsilon_insert(&self, node: f64, fanout: f64) -> f64 {
        (fanout / node + self.alpha * fanout) * self.levels(fanout)
    }

    /// Lemma 8: a look-up in a Bε-tree that reads whole nodes: (1 + αB) · log_F(N/M).
    pub fn b_epsilon_whole_query(&self, node: f64, fanout: f64) -> f64 {
        (1.0 + self.alpha * node) * self.levels(fanout)
    }

    /// Theorem 9: a look-up in a Bε-tree that reads a part of each node: (1 + αB/F + αF) · log_F(N/M) · (1 +
    /// 1/log₂ F). The last factor is for fanouts that are balanced by weight.
    pub fn b_epsilon_query(&self, node: f64, fanout: f64) -> f64 {
        let read = 1.0 + self.alpha * node / fanout + self.alpha * fanout;
        read * self.levels(fanout) * (1.0 + fanout.log2().recip())
    }

    /// Corollary 6: the half-bandwidth size 1/α, at which neither look-ups nor range queries take more than
    /// twice the time they need.
    pub fn half_bandwidth(&self) -> f64 {
        self.alpha.recip()
    }

    /// Corollary 7: the node size with the cheapest look-ups, inserts and deletes in a B-tree, the root of
    /// 1 + αx = α(1 + x)·ln(1 + x).
    pub fn b_tree_node(&self) -> f64 {
        // The right side less the left grows from -1 - αx to above 0: its derivative is α·ln(1 + x).
        let excess = |x: f64| self.alpha * (1.0 + x) * x.ln_1p() - 1.0 - self.alpha * x;
        let (mut low, mut high) = (0.0, self.half_bandwidth().max(1.0) * std::f64::consts::E);
        while excess(high) < 0.0 {
            high *= 2.0;
        }
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            if excess(middle) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low + high) / 2.0
    }

    /// Corollary 7's closed form, 1/(α·ln(1/α)): right up to a factor that tends to 1 only slowly.
    pub fn b_tree_node_hint(&self) -> f64 {
        (self.alpha * self.alpha.recip().ln()).recip()
    }

    /// Corollary 12: the fanout and the node size of a Bε-tree whose look-ups cost as much as those of the
    /// best B-tree up to low-order terms, and whose inserts cost Θ(log 1/α) times less: F = the best B-tree's
    /// node, B = F².
    pub fn b_epsilon_optimum(&self) -> (f64, f64) {
        let fanout = self.b_tree_node().max(2.0);
        (fanout, fanout * fanout)
    }

    fn levels(&self, base: f64) -> f64 {
        self.data_over_memory.ln() / base.ln()
    }
}

/// Each halves the interval around the root; enough for all digits of a double.
const BISECTIONS: u32 = 100;
