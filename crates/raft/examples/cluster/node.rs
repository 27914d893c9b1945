//! A node: a store, a Raft group on it, and a listener.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use flashgrain::Db;
use flashgrain_raft::{Command, KEY_BYTES_MAX, KeyValue, RaftStore, StateReader};
use openraft::error::{
    ChangeMembershipError, CheckIsLeaderError, ClientWriteError, ForwardToLeader, RaftError,
};
use openraft::{BasicNode, Config, Raft, RaftMetrics, SnapshotPolicy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::connection::{receive, send};
use crate::message::{ClientCall, PeerCall, Reply, Request, Status, Types};
use crate::network::{Cuts, Network};

#[derive(Args)]
pub struct Options {
    /// The node's number, the same in all its lives
    #[arg(long)]
    id: u64,
    /// Address for other nodes and clients; port 0 chooses one, which is printed
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Folder of the store and its snapshots
    #[arg(long)]
    folder: PathBuf,
    /// Entries after which a snapshot is built
    #[arg(long, default_value_t = 5000)]
    snapshot_every: u64,
    /// End with the process at the other end of the standard input
    #[arg(long)]
    until_input_ends: bool,
}

/// The most bytes of an entry that are neither key nor value: its id, lengths and kinds.
const ENTRY_BYTES_OVERHEAD: u64 = 64;

struct Node {
    id: u64,
    address: String,
    raft: Raft<Types>,
    reader: StateReader,
    cuts: Cuts,
    entry_bytes_max: u64,
}

/// Runs until it is killed.
pub async fn run(options: Options) -> anyhow::Result<()> {
    if options.until_input_ends {
        std::thread::spawn(|| {
            // An error ends it, too.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            std::process::exit(0);
        });
    }
    let listener = listen(&options.listen).await;
    let listener = listener.with_context(|| format!("cannot listen at {}", options.listen))?;
    let address = listener.local_addr()?.to_string();
    let db = Db::builder().path(options.folder.join("store")).cache_bytes(32 << 20).open_or_create()?;
    check_id(&options)?;
    let store = RaftStore::new(db, options.folder.join("snapshots"))?;
    let (log, state) = store.group::<Types, _>("registers", KeyValue)?;
    let (reader, entry_bytes_max) = (state.reader(), store.entry_bytes_max());
    let config = Config {
        cluster_name: "flashgrain".to_owned(),
        heartbeat_interval: 100,
        election_timeout_min: 400,
        election_timeout_max: 800,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_every),
        max_in_snapshot_log_to_keep: options.snapshot_every / 5,
        ..Config::default()
    };
    let cuts = Cuts::default();
    let network = Network { id: options.id, cuts: cuts.clone() };
    let raft = Raft::new(options.id, Arc::new(config.validate()?), network, log, state).await?;
    println!("listening on {address}");
    tokio::spawn(end_with(raft.metrics()));
    let node = Arc::new(Node { id: options.id, address, raft, reader, cuts, entry_bytes_max });
    loop {
        let (stream, _) = listener.accept().await?;
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            // It ends with the caller's connection.
            let _ = node.serve(stream).await;
        });
    }
}

/// Refuses the folder of another node: its votes would be taken for this one's, and acknowledged writes lost.
fn check_id(options: &Options) -> anyhow::Result<()> {
    let path = options.folder.join("id");
    match std::fs::read_to_string(&path) {
        Ok(id) if id.trim() == options.id.to_string() => Ok(()),
        Ok(id) => bail!(
            "{} is the folder of node {}, not of node {}: name that node's own folder",
            options.folder.display(),
            id.trim(),
            options.id
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut file = std::fs::File::create(&path).context("make the file of the node's number")?;
            file.write_all(options.id.to_string().as_bytes())?;
            Ok(file.sync_all()?)
        }
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

/// Ends the process when its Raft has ended: a supervisor can start it again.
async fn end_with(mut metrics: watch::Receiver<RaftMetrics<u64, BasicNode>>) {
    let reason = loop {
        if let Err(error) = &metrics.borrow().running_state {
            break error.to_string();
        }
        if metrics.changed().await.is_err() {
            break "it has panicked".to_owned();
        }
    };
    eprintln!("Raft has ended: {reason}");
    std::process::exit(1);
}

/// Listens at `address`, a while later if another connection has that port just now.
async fn listen(address: &str) -> std::io::Result<TcpListener> {
    for _ in 0..50 {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            bound => return bound,
        }
    }
    TcpListener::bind(address).await
}

impl Node {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let reply = match receive(&mut stream).await? {
                Request::Client(call) => self.client(call).await,
                Request::Peer { from, .. } if self.cuts.has(from) => Reply::CutOff,
                Request::Peer { from, call } => {
                    let reply = self.peer(call).await;
                    if self.cuts.has(from) { Reply::CutOff } else { reply }
                }
            };
            send(&mut stream, &reply).await?;
        }
    }

    async fn peer(&self, call: PeerCall) -> Reply {
        match call {
            PeerCall::Append(request) => Reply::Append(self.raft.append_entries(request).await),
            PeerCall::Vote(request) => Reply::Vote(self.raft.vote(request).await),
            PeerCall::Snapshot(request) => Reply::Snapshot(self.raft.install_snapshot(request).await),
        }
    }

    async fn client(&self, call: ClientCall) -> Reply {
        match call {
            ClientCall::Init => {
                let members = BTreeMap::from([(self.id, BasicNode::new(self.address.clone()))]);
                done(self.raft.initialize(members).await)
            }
            ClientCall::AddLearner { id, address } => {
                written(self.raft.add_learner(id, BasicNode::new(address), true).await)
            }
            ClientCall::ChangeMembership { ids } => written(self.raft.change_membership(ids, false).await),
            ClientCall::Put { key, value } => self.put(key, value).await,
            ClientCall::Get { key, is_stale_allowed } => self.get(key, is_stale_allowed).await,
            ClientCall::Snapshot => done(self.raft.trigger().snapshot().await),
            ClientCall::Status => Reply::Status(self.status()),
            ClientCall::Cut { peers } => {
                self.cuts.set(peers);
                Reply::Done
            }
        }
    }

    async fn put(&self, key: Vec<u8>, value: Vec<u8>) -> Reply {
        // An entry has some bytes more.
        let limit = self.entry_bytes_max.saturating_sub(ENTRY_BYTES_OVERHEAD);
        if key.len() > KEY_BYTES_MAX || (key.len() + value.len()) as u64 > limit {
            return Reply::Failed(format!("keys have {KEY_BYTES_MAX} bytes at most, puts {limit}"));
        }
        written(self.raft.client_write(Command::Put { key, value }).await)
    }

    async fn get(&self, key: Vec<u8>, is_stale_allowed: bool) -> Reply {
        if !is_stale_allowed {
            match self.raft.ensure_linearizable().await {
                Ok(_) => {}
                Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(to))) => return leader(to),
                Err(RaftError::APIError(error)) => return Reply::Unavailable(error.to_string()),
                Err(RaftError::Fatal(error)) => return Reply::Failed(error.to_string()),
            }
        }
        let reader = self.reader.clone();
        match tokio::task::spawn_blocking(move || reader.get(key)).await {
            Ok(Ok(value)) => Reply::Value(value.map(|value| value.to_vec())),
            Ok(Err(error)) => Reply::Failed(error.to_string()),
            Err(error) => Reply::Failed(error.to_string()),
        }
    }

    fn status(&self) -> Status {
        let metrics = self.raft.metrics().borrow().clone();
        Status {
            id: self.id,
            role: format!("{:?}", metrics.state).to_lowercase(),
            term: metrics.current_term,
            leader: metrics.current_leader,
            voters: metrics.membership_config.voter_ids().collect::<BTreeSet<_>>(),
            last_log_index: metrics.last_log_index,
            applied_index: metrics.last_applied.map(|id| id.index),
            snapshot_index: metrics.snapshot.map(|id| id.index),
            purged_index: metrics.purged.map(|id| id.index),
        }
    }
}

fn leader(to: ForwardToLeader<u64, BasicNode>) -> Reply {
    Reply::NotLeader(to.leader_node.map(|node| node.addr))
}

fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> Reply {
    match result {
        Ok(_) => Reply::Done,
        Err(error) => Reply::Failed(error.to_string()),
    }
}

fn written<T>(result: Result<T, RaftError<u64, ClientWriteError<u64, BasicNode>>>) -> Reply {
    match result {
        Err(RaftError::APIError(ClientWriteError::ForwardToLeader(to))) => leader(to),
        Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(
            ChangeMembershipError::InProgress(change),
        ))) => Reply::Unavailable(change.to_string()),
        other => done(other),
    }
}
