//! A cluster of processes for a test.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::client;
use crate::message::{ClientCall, Reply, Status};
use crate::process::Process;

pub const TIMEOUT: Duration = Duration::from_secs(2);
const PATIENCE: usize = 600;

pub struct Nodes {
    pub all: Vec<Process>,
    _folder: TempDir,
}

/// The example, which is built with this test.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/cluster");
    assert!(program.exists(), "{program:?} is missing: cargo build -p flashgrain_raft --example cluster");
    program
}

impl Nodes {
    /// Three nodes, all of them voters.
    pub async fn start(snapshot_every: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let start = |id: u64| {
            Process::start(&program(), id, &folder.path().join(format!("node{id}")), snapshot_every).unwrap()
        };
        let nodes = Self { all: (1..=3).map(start).collect(), _folder: folder };
        nodes.ask_leader(ClientCall::Init).await;
        nodes.add(2).await;
        nodes.add(3).await;
        nodes.ask_leader(ClientCall::ChangeMembership { ids: (1..=3).collect() }).await;
        nodes
    }

    pub fn address(&self, id: u64) -> &str {
        &self.all.iter().find(|node| node.id == id).unwrap().address
    }

    pub fn addresses(&self) -> Vec<String> {
        self.all.iter().map(|node| node.address.clone()).collect()
    }

    pub fn node(&mut self, id: u64) -> &mut Process {
        self.all.iter_mut().find(|node| node.id == id).unwrap()
    }

    /// Has a node get the log.
    pub async fn add(&self, id: u64) {
        let address = self.address(id).to_owned();
        self.ask_leader(ClientCall::AddLearner { id, address }).await;
    }

    /// A reply of the leader, asked again until there is one.
    pub async fn ask_leader(&self, request: ClientCall) -> Reply {
        let mut why = String::new();
        for attempt in 0..PATIENCE {
            let node = &self.all[attempt % self.all.len()];
            let of_first = matches!(request, ClientCall::Init).then(|| self.all[0].address.as_str());
            let address = of_first.unwrap_or(&node.address);
            match client::call_leader(address, request.clone(), TIMEOUT).await {
                Ok(reply) => return reply,
                Err(error) => why = format!("{error:#}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no reply to {request:?}: {why}");
    }

    pub async fn put(&self, key: &str, value: u64) {
        let (key, value) = (key.as_bytes().to_vec(), value.to_string().into_bytes());
        self.ask_leader(ClientCall::Put { key, value }).await;
    }

    pub async fn status(&self, id: u64) -> Option<Status> {
        match client::call(self.address(id), ClientCall::Status, TIMEOUT).await {
            Ok(Reply::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// Waits until a node's status is as it should be.
    pub async fn wait(&self, id: u64, why: &str, is_right: impl Fn(&Status) -> bool) -> Status {
        let mut last = None;
        for _ in 0..PATIENCE {
            last = self.status(id).await;
            if let Some(status) = &last
                && is_right(status)
            {
                return status.clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{why}: {last:?}");
    }

    /// The node that one of `among` believes to be the leader, and that believes it too.
    pub async fn leader(&self, among: &[u64]) -> u64 {
        for _ in 0..PATIENCE {
            for &id in among {
                if self.status(id).await.is_some_and(|status| status.leader == Some(id)) {
                    return id;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("none of {among:?} became the leader");
    }

    pub async fn cut(&self, id: u64, peers: impl IntoIterator<Item = u64>) {
        let peers: BTreeSet<u64> = peers.into_iter().collect();
        // A killed node has no links.
        let _ = client::call(self.address(id), ClientCall::Cut { peers }, TIMEOUT).await;
    }
}
