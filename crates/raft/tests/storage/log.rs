//! Longer logs than openraft's tests have.

use flashgrain_raft::{Command, KeyValue};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{Entry, EntryPayload, RaftLogReader};

use crate::types::{Log, Types, group, id, put, run, store};

async fn indexes(log: &mut Log) -> Vec<u64> {
    let entries = log.try_get_log_entries(..).await.unwrap();
    entries.iter().map(|entry| entry.log_id.index).collect()
}

#[test]
fn truncations_and_purges_of_many_commits_leave_the_right_entries() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (mut log, _state) = group(folder.path());
        log.blocking_append((0..5000).map(|index| put(1, index, "k"))).await.unwrap();
        log.truncate(id(1, 4500)).await.unwrap();
        assert_eq!(indexes(&mut log).await, (0..4500).collect::<Vec<_>>());
        log.purge(id(1, 3299)).await.unwrap();
        assert_eq!(indexes(&mut log).await, (3300..4500).collect::<Vec<_>>());
        log.truncate(id(1, 3300)).await.unwrap();
        assert!(indexes(&mut log).await.is_empty());
        let state = log.get_log_state().await.unwrap();
        assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(id(1, 3299)), Some(id(1, 3299))));
        log.purge(id(2, 9000)).await.unwrap();
        log.blocking_append([put(2, 9001, "k")]).await.unwrap();
        let state = log.get_log_state().await.unwrap();
        assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(id(2, 9000)), Some(id(2, 9001))));
    });
}

#[test]
fn an_append_longer_than_a_commit_takes_is_appended_in_several() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (mut log, _state) = group(folder.path());
        let key = "k".repeat(700);
        log.blocking_append((0..20_000).map(|index| put(1, index, &key))).await.unwrap();
        assert_eq!(indexes(&mut log).await, (0..20_000).collect::<Vec<_>>());
    });
}

/// A reply that is too long for the network would be asked for again and again.
#[test]
fn messages_get_entries_up_to_a_number_of_bytes_and_one_at_least() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (mut log, _state) = group(folder.path());
        let lengths = [300_000, 300_000, 300_000, 300_000, 1_500_000, 1];
        let entries = (0..).zip(lengths).map(|(index, length)| put(1, index, &"k".repeat(length)));
        log.blocking_append(entries).await.unwrap();
        let mut sent = Vec::new();
        while (sent.iter().sum::<u64>() as usize) < lengths.len() {
            let start = sent.iter().sum();
            sent.push(log.limited_get_log_entries(start, 6).await.unwrap().len() as u64);
        }
        assert_eq!(sent, [3, 1, 1, 1]);
        assert!(log.limited_get_log_entries(6, 9).await.unwrap().is_empty());
    });
}

#[test]
fn an_entry_that_is_too_long_is_refused_and_the_longest_one_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (mut log, mut state) = store.group::<Types, _>("g", KeyValue).unwrap();
    let with_bytes = |bytes: u64| {
        let (key, value) = (b"k".to_vec(), vec![7; bytes as usize]);
        Entry { log_id: id(1, 0), payload: EntryPayload::Normal(Command::Put { key, value }) }
    };
    let limit = store.entry_bytes_max();
    run(async {
        let refused = log.blocking_append([with_bytes(limit)]).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("the limit is {limit} bytes")), "{refused}");
        assert_eq!(log.get_log_state().await.unwrap().last_log_id, None);
        let longest = with_bytes(limit - 30);
        log.blocking_append([longest.clone()]).await.unwrap();
        state.apply([longest]).await.unwrap();
        assert_eq!(state.reader().get("k").unwrap().unwrap().len() as u64, limit - 30);
    });
}
