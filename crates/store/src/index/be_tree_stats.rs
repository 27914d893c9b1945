//! Statistics of a Bε-tree.

use serde::Serialize;

/// A level of a Bε-tree: its pages, and its operations since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BeTreeLevelStats {
    /// Pages: parts, or of level 0 basement nodes.
    pub pages: u64,
    /// Bytes of the pages of parts.
    pub page_bytes: u64,
    /// Bytes of these that messages take.
    pub buffered_bytes: u64,
    /// Bytes of these that pivots take.
    pub pivot_bytes: u64,
    /// Pages of this level that look-ups of a key have come to.
    pub look_ups: u64,
    /// Times that messages have arrived.
    pub flushes: u64,
    /// Bytes of these messages.
    pub flushed_bytes: u64,
    /// Bytes of the pages that they arrived in, at that time.
    pub rewritten_bytes: u64,
    /// Times that nodes of this level were rebuilt as their weights were out of balance.
    pub rebuilds: u64,
}

/// State of a Bε-tree, and its work since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BeTreeStats {
    /// Memtables, frozen ones included.
    pub memtables: u64,
    /// Memtables that were flushed.
    pub memtables_flushed: u64,
    /// Keys whose operands flushes have left as they are, as the merge operator failed.
    pub operator_failures: u64,
    /// The levels, from the leaves on, which are level 0, up to the root.
    pub levels: Vec<BeTreeLevelStats>,
}
