//! Clients write and read while nodes are killed with -9 and links are cut, from a seed; their history is
//! judged. `FLASHGRAIN_RAFT_SEED` and `FLASHGRAIN_RAFT_ROUNDS` choose another seed and another length.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::client;
use crate::connection::Connection;
use crate::linearizable::{Kind, Operation, is_linearizable};
use crate::message::{ClientCall, Reply, Request};
use crate::nodes::{Nodes, TIMEOUT};

const CLIENTS: u64 = 4;
/// Few enough that a history is judged at once.
const OPERATIONS_OF_KEY: u64 = 48;
const OPERATION_TIMEOUT: Duration = Duration::from_millis(700);

#[derive(Default)]
struct History {
    /// Orders calls and returns of all clients.
    clock: AtomicU64,
    operations: AtomicU64,
    of_key: Mutex<BTreeMap<u64, Vec<Operation>>>,
    is_over: AtomicBool,
}

impl History {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn add(&self, key: u64, operation: Operation) {
        self.of_key.lock().unwrap().entry(key).or_default().push(operation);
    }

    /// One operation of a client on `key`, by the node at the other end of `connection`. The address to go to
    /// afterwards if that did not succeed.
    async fn operate(
        &self,
        connection: &mut Connection,
        key: u64,
        write: Option<u64>,
    ) -> Result<(), Option<String>> {
        let name = format!("key{key}").into_bytes();
        let call = match write {
            Some(value) => ClientCall::Put { key: name, value: value.to_string().into_bytes() },
            None => ClientCall::Get { key: name, is_stale_allowed: false },
        };
        let called = self.now();
        let reply = tokio::time::timeout(OPERATION_TIMEOUT, connection.call(&Request::Client(call))).await;
        let returned = Some(self.now());
        match (write, reply) {
            (Some(value), Ok(Ok(Reply::Done))) => {
                self.add(key, Operation { kind: Kind::Write(value), called, returned });
                Ok(())
            }
            (None, Ok(Ok(Reply::Value(value)))) => {
                let read = value.map(|value| String::from_utf8(value).unwrap().parse().unwrap());
                self.add(key, Operation { kind: Kind::Read(read), called, returned });
                Ok(())
            }
            (Some(value), reply) => {
                self.add(key, Operation { kind: Kind::Write(value), called, returned: None });
                Err(match reply {
                    Ok(Ok(Reply::NotLeader(leader))) => leader,
                    _ => None,
                })
            }
            (None, Ok(Ok(Reply::NotLeader(leader)))) => Err(leader),
            (None, _) => Err(None),
        }
    }
}

async fn run_client(history: Arc<History>, addresses: Vec<String>, seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut connection = Connection::new(addresses[0].clone());
    while !history.is_over.load(Ordering::Relaxed) {
        let number = history.operations.fetch_add(1, Ordering::Relaxed);
        let write = random.random_bool(0.5).then_some(number);
        if let Err(leader) = history.operate(&mut connection, number / OPERATIONS_OF_KEY, write).await {
            let other = || addresses[random.random_range(0..addresses.len())].clone();
            connection = Connection::new(leader.unwrap_or_else(other));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A second of trouble, and what it was.
async fn trouble(nodes: &mut Nodes, random: &mut Pcg64Mcg) -> String {
    let id = random.random_range(1..=3_u64);
    let pause = Duration::from_millis(random.random_range(300..1000));
    let action = random.random_range(0..4);
    match action {
        0 | 1 => {
            nodes.node(id).kill();
            tokio::time::sleep(pause).await;
            nodes.node(id).restart().unwrap();
            format!("killed {id}")
        }
        2 => {
            nodes.cut(id, (1..=3).filter(|other| *other != id)).await;
            tokio::time::sleep(pause).await;
            nodes.cut(id, []).await;
            format!("cut {id} off")
        }
        _ => {
            let other = id % 3 + 1;
            nodes.cut(id, [other]).await;
            nodes.node(other).kill();
            tokio::time::sleep(pause).await;
            nodes.node(other).restart().unwrap();
            nodes.cut(id, []).await;
            format!("cut {id} from {other} and killed {other}")
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_are_linearizable_while_nodes_are_killed_and_links_are_cut() {
    let (seed, rounds) = (number("FLASHGRAIN_RAFT_SEED", 1), number("FLASHGRAIN_RAFT_ROUNDS", 5));
    println!("FLASHGRAIN_RAFT_SEED={seed} FLASHGRAIN_RAFT_ROUNDS={rounds}");
    let mut nodes = Nodes::start(100).await;
    let history = Arc::<History>::default();
    let start =
        |client| tokio::spawn(run_client(Arc::clone(&history), nodes.addresses(), seed * 100 + client));
    let clients: Vec<_> = (0..CLIENTS).map(start).collect();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for _ in 0..rounds {
        println!("{}", trouble(&mut nodes, &mut random).await);
        tokio::time::sleep(Duration::from_millis(random.random_range(200..1200))).await;
        for id in 1..=3 {
            assert!(nodes.status(id).await.is_some(), "node {id} has ended by itself");
        }
    }
    history.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    read_all(&nodes, &history).await;
    judge(&history);
}

/// What was acknowledged is still there: a read of each key after all else.
async fn read_all(nodes: &Nodes, history: &History) {
    let keys: Vec<u64> = history.of_key.lock().unwrap().keys().copied().collect();
    for key in keys {
        let leader = nodes.leader(&[1, 2, 3]).await;
        let mut connection = Connection::new(nodes.address(leader).to_owned());
        while history.operate(&mut connection, key, None).await.is_err() {
            let leader = nodes.leader(&[1, 2, 3]).await;
            connection = Connection::new(nodes.address(leader).to_owned());
        }
    }
    // All nodes have the same state in the end.
    let leader = nodes.leader(&[1, 2, 3]).await;
    let end = nodes.status(leader).await.unwrap().applied_index;
    for id in 1..=3 {
        nodes.wait(id, "the node catches up", |status| status.applied_index >= end).await;
    }
    let last = history.of_key.lock().unwrap().keys().next_back().copied().unwrap();
    let mut values = Vec::new();
    for id in 1..=3 {
        let key = format!("key{last}").into_bytes();
        let get = ClientCall::Get { key, is_stale_allowed: true };
        let Reply::Value(value) = client::call(nodes.address(id), get, TIMEOUT).await.unwrap() else {
            panic!("node {id} has no value");
        };
        values.push(value);
    }
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
}

fn judge(history: &History) {
    let of_key = history.of_key.lock().unwrap();
    let (mut answered, mut unanswered) = (0, 0);
    for (key, operations) in &*of_key {
        let done = operations.iter().filter(|operation| operation.returned.is_some()).count();
        (answered, unanswered) = (answered + done, unanswered + operations.len() - done);
        assert!(is_linearizable(operations), "key {key}: {operations:#?}");
    }
    println!("{} keys, {answered} operations, {unanswered} writes without an answer", of_key.len());
    assert!(answered > 100, "the cluster answered only {answered} operations");
}
