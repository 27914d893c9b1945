//! openraft's calls to other nodes.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use openraft::error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, error::Infallible};

use crate::connection::Connection;
use crate::message::{PeerCall, Reply, Request, Types};

/// Nodes that a node does not speak to: a cut link, for tests.
#[derive(Clone, Default)]
pub struct Cuts(Arc<RwLock<BTreeSet<u64>>>);

impl Cuts {
    pub fn set(&self, peers: BTreeSet<u64>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    pub fn has(&self, peer: u64) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&peer)
    }
}

pub struct Network {
    pub id: u64,
    pub cuts: Cuts,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        let connection = Connection::new(node.addr.clone());
        Peer { from: self.id, target, cuts: self.cuts.clone(), connection }
    }
}

/// Another node.
pub struct Peer {
    from: u64,
    target: u64,
    cuts: Cuts,
    connection: Connection,
}

type Failure<E = Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Peer {
    async fn call<E: std::error::Error>(&mut self, call: PeerCall) -> Result<Reply, Failure<E>> {
        let cut = || RPCError::Unreachable(Unreachable::new(&io::Error::other("the link is cut")));
        if self.cuts.has(self.target) {
            return Err(cut());
        }
        let reply = self.connection.call(&Request::Peer { from: self.from, call }).await;
        match reply {
            Ok(Reply::CutOff) => Err(cut()),
            Ok(_) if self.cuts.has(self.target) => Err(cut()),
            Ok(reply) => Ok(reply),
            Err(error) => Err(RPCError::Unreachable(Unreachable::new(&error))),
        }
    }

    #[expect(clippy::result_large_err, reason = "it is openraft's error")]
    fn remote<T, E: std::error::Error>(&self, done: Result<T, RaftError<u64, E>>) -> Result<T, Failure<E>> {
        done.map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
    }
}

fn unexpected<E: std::error::Error>(reply: &Reply) -> Failure<E> {
    RPCError::Network(NetworkError::new(&io::Error::other(format!("an unexpected reply: {reply:?}"))))
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        match self.call(PeerCall::Append(request)).await? {
            Reply::Append(done) => self.remote(done),
            other => Err(unexpected(&other)),
        }
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        match self.call(PeerCall::Snapshot(request)).await? {
            Reply::Snapshot(done) => self.remote(done),
            other => Err(unexpected(&other)),
        }
    }

    async fn vote(&mut self, request: VoteRequest<u64>, _: RPCOption) -> Result<VoteResponse<u64>, Failure> {
        match self.call(PeerCall::Vote(request)).await? {
            Reply::Vote(done) => self.remote(done),
            other => Err(unexpected(&other)),
        }
    }
}
