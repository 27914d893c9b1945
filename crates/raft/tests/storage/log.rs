//! Longer logs than openraft's tests have.

use openraft::RaftLogReader;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};

use crate::types::{Log, group, id, put, run};

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
