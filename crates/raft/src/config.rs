//! Types of a Raft group that these stores can keep.

use openraft::{Entry, RaftTypeConfig, TokioRuntime};
use tokio::fs::File;

/// Type configurations that this crate has stores for: openraft's own [`Entry`], tokio, and snapshots in
/// files. Node ids, nodes, requests and responses are free. Implemented for all that fit:
///
/// ```
/// use flashgrain_raft::{Answer, Command};
///
/// openraft::declare_raft_types!(
///     pub Registers: D = Command, R = Answer, SnapshotData = tokio::fs::File
/// );
/// # fn fits<C: flashgrain_raft::GroupConfig>() {}
/// # fits::<Registers>();
/// ```
pub trait GroupConfig:
    RaftTypeConfig<Entry = Entry<Self>, SnapshotData = File, AsyncRuntime = TokioRuntime>
{
}

impl<C> GroupConfig for C where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = File, AsyncRuntime = TokioRuntime>
{
}
