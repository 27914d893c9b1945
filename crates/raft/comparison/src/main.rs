//! Throughput of Raft clusters on this store, and on openraft's store on RocksDB, in one run: three voters
//! in one process, which call each other without a network, so that logs are what they wait for. Each client
//! puts 128 bytes under a key of its own, and again once that is committed.
//!
//! Both make entries durable before they answer. Groups are in one store per node here; openraft's store is a
//! database for each group. Its state machine is in memory; this one is in the store.
//!
//! ```text
//! cargo run --release -- FOLDER [SECONDS]
//! ```

mod network;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flashgrain::Db;
use flashgrain_raft::{Answer, Command, KeyValue, RaftStore};
use network::{Network, Types};
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use openraft_rocksstore_v2::{RocksRequest, TypeConfig as RocksTypes};

openraft::declare_raft_types!(
    pub FlashgrainTypes: D = Command, R = Answer, SnapshotData = tokio::fs::File
);

const NODES: u64 = 3;
const ROUNDS: usize = 3;
const VALUE_BYTES: usize = 128;
/// Groups, and clients of each.
const CASES: [(u64, u64); 5] = [(1, 1), (1, 8), (1, 64), (8, 1), (64, 1)];

/// Starts node `id` of a cluster.
async fn start<C: Types>(
    network: &Network<C>,
    id: u64,
    log: impl RaftLogStorage<C>,
    state: impl RaftStateMachine<C>,
) -> anyhow::Result<()> {
    let config = Config {
        // No leader is to change because 192 nodes share two cores.
        heartbeat_interval: 1000,
        election_timeout_min: 5000,
        election_timeout_max: 10_000,
        snapshot_policy: SnapshotPolicy::Never,
        ..Config::default()
    };
    let node = Raft::new(id, Arc::new(config.validate()?), network.clone(), log, state).await?;
    network.add(id, node);
    Ok(())
}

async fn flashgrain(folder: &Path, groups: u64) -> anyhow::Result<Vec<Network<FlashgrainTypes>>> {
    let clusters: Vec<_> = (0..groups).map(|_| Network::new()).collect();
    for id in 0..NODES {
        let folder = folder.join(format!("flashgrain{id}"));
        let db = Db::builder().path(folder.join("store")).cache_bytes(64 << 20).open_or_create()?;
        let store = RaftStore::new(db, folder.join("snapshots"))?;
        for (group, network) in clusters.iter().enumerate() {
            let (log, state) = store.group::<FlashgrainTypes, _>(&format!("g{group}"), KeyValue)?;
            start(network, id, log, state).await?;
        }
    }
    Ok(clusters)
}

async fn rocksdb(folder: &Path, groups: u64) -> anyhow::Result<Vec<Network<RocksTypes>>> {
    let clusters: Vec<_> = (0..groups).map(|_| Network::new()).collect();
    for id in 0..NODES {
        for (group, network) in clusters.iter().enumerate() {
            let folder = folder.join(format!("rocksdb{id}-{group}"));
            let (log, state) = openraft_rocksstore_v2::new(folder).await;
            start(network, id, log, state).await?;
        }
    }
    Ok(clusters)
}

async fn client<C: Types>(
    leader: Raft<C>,
    request: C::D,
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> anyhow::Result<()>
where
    C::D: Clone,
{
    while !is_over.load(Ordering::Relaxed) {
        leader.client_write(request.clone()).await?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Puts per second of all groups together.
async fn measure<C: Types>(
    clusters: Vec<Network<C>>,
    clients: u64,
    request: impl Fn(String, String) -> C::D,
    duration: Duration,
) -> anyhow::Result<f64>
where
    C::D: Clone,
{
    for cluster in &clusters {
        let members: BTreeMap<u64, BasicNode> = (0..NODES).map(|id| (id, BasicNode::default())).collect();
        let first = cluster.node(0).context("no node")?;
        first.initialize(members).await?;
        first.wait(Some(Duration::from_secs(60))).current_leader(0, "elected").await?;
    }
    let (is_over, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let mut running = Vec::new();
    for cluster in &clusters {
        for number in 0..clients {
            let leader = cluster.node(0).context("no leader")?;
            let request = request(format!("key{number}"), "v".repeat(VALUE_BYTES));
            running.push(tokio::spawn(client(leader, request, Arc::clone(&is_over), Arc::clone(&done))));
        }
    }
    // Connections and caches of the first moments are not measured.
    tokio::time::sleep(duration / 4).await;
    let (before, start) = (done.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(duration).await;
    let (puts, elapsed) = (done.load(Ordering::Relaxed) - before, start.elapsed());
    is_over.store(true, Ordering::Relaxed);
    for client in running {
        client.await??;
    }
    for cluster in clusters {
        for node in cluster.take().into_values() {
            node.shutdown().await?;
        }
    }
    Ok(puts as f64 / elapsed.as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else { bail!("name a folder") };
    let duration = Duration::from_secs_f64(arguments.next().map_or(Ok(2.0), |seconds| seconds.parse())?);
    let put = |key: String, value: String| Command::Put { key: key.into(), value: value.into() };
    let set = |key, value| RocksRequest::Set { key, value };
    println!("groups  clients of each  flashgrain puts/s  rocksdb puts/s  ratio");
    for (groups, clients) in CASES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let folder = tempfile::tempdir_in(&folder)?;
            ours.push(measure(flashgrain(folder.path(), groups).await?, clients, put, duration).await?);
            theirs.push(measure(rocksdb(folder.path(), groups).await?, clients, set, duration).await?);
        }
        println!("  each round: {ours:.0?} {theirs:.0?}");
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{groups:6} {clients:16} {ours:18.0} {theirs:15.0} {:6.2}", ours / theirs);
    }
    Ok(())
}
