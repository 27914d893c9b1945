//! The costs of external-memory dictionaries: the requests that an operation makes, and their prices on a
//! drive.
//!
//! The question is split in two, and either half can be replaced:
//!
//! 1. A [`Design`] (a B-tree, a Bε-tree, …) says which requests an [`Operation`] makes in a [`Situation`]:
//!    its [`Demand`], a list of [`Transfer`]s. It knows records, memory and clients, but no drive.
//! 2. A device model ([`IoModel`](crate::IoModel)) prices the demand: [`price`] gives the [`Cost`]. It knows
//!    the drive, but no data structure.
//!
//! All sizes are in bytes and all times in seconds. Numbers of nodes, levels and requests are expectations,
//! so they are real numbers: a tree of 2.4 levels is one that has three levels for some record counts and two
//! for others. Formulas follow "External-memory Dictionaries in the Affine and PDAM Models" (*dictionaries
//! paper* below) with the constants that its asymptotic notation leaves out.
//!
//! | in the paper | here |
//! | --- | --- |
//! | Lemma 2, 3 and 5: B-trees | [`BTree`] |
//! | Theorem 4 and Lemma 8: Bε-trees with whole nodes | [`BEpsilonTree::naive`] |
//! | Theorem 9: Bε-trees in parts | [`BEpsilonTree::optimised`] |
//! | Lemma 13: B-trees with nodes of P blocks | [`PdamBTree`] |
//! | – (this project's store) | [`OutOfPlaceBTree`], [`OutOfPlaceBTreeOfBlocks`] |
//! | – (its Bε-tree) | [`OutOfPlaceBEpsilonTree`] |
//! | – (moved by its cleaner) | [`cleaning_amplification`] |

mod b_epsilon_tree;
mod b_tree;
mod cleaning;
mod demand;
mod design;
mod images;
mod levels;
mod log;
mod operation;
mod out_of_place;
mod out_of_place_b_epsilon;
mod out_of_place_blocks;
mod overflow;
mod pdam_b_tree;
mod price;
mod records;
mod situation;
mod skew;
mod uses;

pub use b_epsilon_tree::{BEpsilonTree, NodeLayout};
pub use b_tree::{BTree, WriteBack};
pub use cleaning::{cleaning_amplification, victim_live_share};
pub use demand::{Demand, Transfer};
pub use design::Design;
pub(crate) use images::PAGE_TABLE_BYTES;
pub use levels::{Level, Levels, Shape};
pub use log::{Durability, log_write};
pub use operation::Operation;
pub use out_of_place::OutOfPlaceBTree;
pub use out_of_place_b_epsilon::{OutOfPlaceBEpsilonTree, PART_MEMORY_DIVISOR_MIN};
pub use out_of_place_blocks::OutOfPlaceBTreeOfBlocks;
pub use overflow::is_outside;
pub use pdam_b_tree::PdamBTree;
pub use price::{Binding, Cost, price};
pub use records::Records;
pub use situation::{Processor, Situation};
pub use skew::Skew;
pub(crate) use uses::{Kind, Uses, time_to_fill};

/// Powers of two between two sizes, both included if they are ones.
pub fn powers_of_two(bytes_min: f64, bytes_max: f64) -> Vec<f64> {
    let first = bytes_min.max(1.0).log2().ceil() as i32;
    let last = bytes_max.max(1.0).log2().floor() as i32;
    (first..=last).map(|power| f64::from(power).exp2()).collect()
}

#[cfg(test)]
mod tests {
    use super::powers_of_two;

    #[test]
    fn sizes_are_powers_of_two_within_the_bounds() {
        assert_eq!(powers_of_two(4096.0, 16_384.0), [4096.0, 8192.0, 16_384.0]);
        assert_eq!(powers_of_two(5000.0, 10_000.0), [8192.0]);
        assert_eq!(powers_of_two(5000.0, 6000.0), [0.0; 0]);
    }
}
