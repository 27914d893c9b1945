//! Counts made while an index is walked.

/// Counts of a tree's records, nodes and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Records in all leaves.
    pub records: u64,
    pub leaves: u64,
    pub inner_nodes: u64,
    /// Levels, with that of the leaves.
    pub levels: u32,
    /// Bytes of all nodes that keys, values, slots and headers take.
    pub used_bytes: u64,
    /// Bytes of all nodes.
    pub page_bytes: u64,
}
