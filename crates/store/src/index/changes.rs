//! Trees, and the changes that transactions make to their keys.

use std::sync::Arc;

use super::{Index, Version};
use crate::log::Timestamp;

/// A tree's number. Numbers are given once and never again. 0 is the catalog itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TreeId(pub u32);

/// A tree that transactions read and write.
#[derive(Clone)]
pub(crate) struct Tree {
    pub id: TreeId,
    pub index: Arc<dyn Index>,
}

/// A transaction's change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write<'a> {
    Put(&'a [u8]),
    /// A value in overflow pages: the reference that the record keeps, and the description of those pages for
    /// the log.
    PutOverflow {
        reference: &'a [u8],
        logged: &'a [u8],
    },
    Remove,
    /// A list of [operands](super::operands), for an index that [takes](Index::takes_operands) them.
    Merge(&'a [u8]),
}

impl<'a> Write<'a> {
    /// The version that it makes in a commit, and the value of that version, or its reference.
    pub fn version(self, timestamp: Timestamp) -> (Version, &'a [u8]) {
        match self {
            Self::Put(value) => (Version::put(timestamp), value),
            Self::PutOverflow { reference, .. } => (Version::overflow(timestamp), reference),
            Self::Remove => (Version::tombstone(timestamp), &[]),
            Self::Merge(operands) => (Version::operands(timestamp), operands),
        }
    }
}

/// A key and its change.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub tree: &'a Tree,
    pub key: &'a [u8],
    pub write: Write<'a>,
}
