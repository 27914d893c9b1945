//! The designs that are ranked, each with the parameters that are tried.

use flashgrain_model::dictionary::{BTree, Design, WriteBack};
use serde::Serialize;

/// A kind of design; its best parameters stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// B+-tree with pages in place.
    BTree,
}

impl Family {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::BTree => "B-tree in place",
        }
    }
}

/// Node sizes that are tried.
const NODE_BYTES: [f64; 9] = [4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 256e3, 512e3, 1024e3];

/// A design with parameters.
pub(crate) struct Candidate {
    pub family: Family,
    pub design: Box<dyn Design>,
}

/// All that are tried; `write_concurrency` are the writes that background work keeps outstanding.
pub(crate) fn candidates(write_concurrency: f64) -> Vec<Candidate> {
    let node_bytes = NODE_BYTES.map(|kilobytes| kilobytes / 1000.0 * 1024.0);
    let b_tree = node_bytes.map(|node_bytes| Candidate {
        family: Family::BTree,
        design: Box::new(BTree {
            write_back: WriteBack::Background { concurrency: write_concurrency },
            ..BTree::new(node_bytes)
        }),
    });
    b_tree.into_iter().collect()
}
