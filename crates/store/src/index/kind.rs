//! The kinds of index structures.

use smallvec::SmallVec;

/// The structure that a tree is kept in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexKind {
    /// A B+-tree.
    #[default]
    BTree,
    /// An LSM-tree: records are sorted in memory, written in order as tables, and merged later. Writes read
    /// nothing, and cost a small part of the writes to a B+-tree that is larger than memory.
    Lsm,
    /// A Bε-tree: changes gather in the buffers of inner nodes, and come to the leaves many at a time. Writes
    /// read nothing; look-ups read about as much as in a B+-tree.
    BeTree,
}

/// An index's description in the catalog, used to open it again. Only the factory interprets it.
pub(crate) type Parameters = SmallVec<[u8; 16]>;
