//! What nodes and clients say to each other.

use std::collections::BTreeSet;
use std::fmt;

use flashgrain_raft::{Answer, Command};
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(pub Types: D = Command, R = Answer, SnapshotData = tokio::fs::File);

#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    Peer { from: u64, call: PeerCall },
    Client(ClientCall),
}

#[derive(Debug, Serialize, Deserialize)]
pub enum PeerCall {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClientCall {
    Init,
    AddLearner {
        id: u64,
        address: String,
    },
    ChangeMembership {
        ids: BTreeSet<u64>,
    },
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    /// A read that may be stale asks the node alone, whatever it has applied.
    Get {
        key: Vec<u8>,
        is_stale_allowed: bool,
    },
    Snapshot,
    Status,
    /// For tests: the node refuses to speak to these ones, until it is told others.
    Cut {
        peers: BTreeSet<u64>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    Append(Result<AppendEntriesResponse<u64>, RaftError<u64>>),
    Vote(Result<VoteResponse<u64>, RaftError<u64>>),
    Snapshot(Result<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>>),
    /// The link to that node is cut.
    CutOff,
    Done,
    Value(Option<Vec<u8>>),
    Status(Status),
    /// The leader's address, if the node knows it.
    NotLeader(Option<String>),
    /// No majority at present, or a membership change under way: it may be asked again.
    Unavailable(String),
    Failed(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub id: u64,
    pub role: String,
    pub term: u64,
    pub leader: Option<u64>,
    pub voters: BTreeSet<u64>,
    pub last_log_index: Option<u64>,
    pub applied_index: Option<u64>,
    pub snapshot_index: Option<u64>,
    pub purged_index: Option<u64>,
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
        write!(
            formatter,
            "node {}: {} in term {}, leader {}, voters {:?}, log {}, applied {}, snapshot {}, purged {}",
            self.id,
            self.role,
            self.term,
            shown(self.leader),
            self.voters,
            shown(self.last_log_index),
            shown(self.applied_index),
            shown(self.snapshot_index),
            shown(self.purged_index),
        )
    }
}
