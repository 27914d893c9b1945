//! Nodes of one process: a call to another node is a call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use openraft::error::{Infallible, InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::impls::{OneshotResponder, TokioRuntime};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, Raft, RaftTypeConfig};
use tokio::io::{AsyncRead, AsyncSeek, AsyncWrite};

/// Types of the nodes of both stores.
pub trait Types:
    RaftTypeConfig<
        NodeId = u64,
        Node = BasicNode,
        AsyncRuntime = TokioRuntime,
        Responder = OneshotResponder<Self>,
        SnapshotData: AsyncRead + AsyncWrite + AsyncSeek + Unpin,
    >
{
}

impl<C> Types for C where
    C: RaftTypeConfig<
            NodeId = u64,
            Node = BasicNode,
            AsyncRuntime = TokioRuntime,
            Responder = OneshotResponder<C>,
            SnapshotData: AsyncRead + AsyncWrite + AsyncSeek + Unpin,
        >
{
}

/// The nodes of a cluster.
pub struct Network<C: Types>(Arc<Mutex<BTreeMap<u64, Raft<C>>>>);

impl<C: Types> Network<C> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn add(&self, id: u64, node: Raft<C>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, node);
    }

    /// A node, if it was added.
    pub fn node(&self, id: u64) -> Option<Raft<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// All nodes, which are no longer reached.
    pub fn take(&self) -> BTreeMap<u64, Raft<C>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<C: Types> Clone for Network<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Types> RaftNetworkFactory<C> for Network<C> {
    type Network = Peer<C>;

    async fn new_client(&mut self, target: u64, _: &BasicNode) -> Peer<C> {
        Peer { target, network: self.clone() }
    }
}

pub struct Peer<C: Types> {
    target: u64,
    network: Network<C>,
}

type Failure<E = Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl<C: Types> Peer<C> {
    #[expect(clippy::result_large_err, reason = "it is openraft's error")]
    fn node<E: std::error::Error>(&self) -> Result<Raft<C>, Failure<E>> {
        let gone = || RPCError::Unreachable(Unreachable::new(&std::io::Error::other("no such node")));
        self.network.node(self.target).ok_or_else(gone)
    }

    #[expect(clippy::result_large_err, reason = "it is openraft's error")]
    fn remote<T, E: std::error::Error>(&self, done: Result<T, RaftError<u64, E>>) -> Result<T, Failure<E>> {
        done.map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
    }
}

impl<C: Types> RaftNetwork<C> for Peer<C> {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<C>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        let done = self.node()?.append_entries(request).await;
        self.remote(done)
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<C>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        let done = self.node()?.install_snapshot(request).await;
        self.remote(done)
    }

    async fn vote(&mut self, request: VoteRequest<u64>, _: RPCOption) -> Result<VoteResponse<u64>, Failure> {
        let done = self.node()?.vote(request).await;
        self.remote(done)
    }
}
