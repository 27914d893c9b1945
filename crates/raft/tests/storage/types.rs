//! A group of keys and values, on a store in a temporary folder.

use std::path::Path;

use flashgrain::Db;
use flashgrain_raft::{Answer, Command, KeyValue, LogStore, RaftStore, StateMachine};
use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId};

openraft::declare_raft_types!(pub Types: D = Command, R = Answer, SnapshotData = tokio::fs::File);

pub type Log = LogStore<Types>;
pub type State = StateMachine<Types, KeyValue>;

/// The store in `folder`, which is made if there is none.
pub fn store(folder: &Path) -> RaftStore {
    let db = Db::builder().path(folder.join("store")).cache_bytes(16 << 20).open_or_create().unwrap();
    RaftStore::new(db, folder.join("snapshots")).unwrap()
}

/// The group "g" of the store in `folder`.
pub fn group(folder: &Path) -> (Log, State) {
    store(folder).group("g", KeyValue).unwrap()
}

pub fn id(term: u64, index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(term, 0), index)
}

/// Puts its index under `key`.
pub fn put(term: u64, index: u64, key: &str) -> Entry<Types> {
    let command = Command::Put { key: key.into(), value: index.to_string().into_bytes() };
    Entry { log_id: id(term, index), payload: EntryPayload::Normal(command) }
}

/// A runtime as nodes have.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}
