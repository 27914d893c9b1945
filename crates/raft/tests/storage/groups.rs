//! Groups of one store, and their names.

use flashgrain_raft::{Error, KeyValue, RaftStore};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{RaftLogReader, RaftSnapshotBuilder, Vote};

use crate::types::{Types, id, put, run, store};

#[test]
fn names_that_are_paths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    for name in ["", "../g", "a/b", "a.b", &"g".repeat(101)] {
        let refused = RaftStore::group::<Types, _>(&store, name, KeyValue);
        assert!(matches!(refused, Err(Error::GroupName { .. })), "{name}");
    }
}

#[test]
fn a_group_is_open_once_until_all_of_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let open = || store.clone().group::<Types, _>("g", KeyValue);
    let is_open = || matches!(open(), Err(Error::GroupOpen { name }) if name == "g");
    let (log, mut state) = open().unwrap();
    assert!(is_open());
    store.group::<Types, _>("other", KeyValue).unwrap();
    let (reader, builder) = (state.reader(), run(state.get_snapshot_builder()));
    drop(log);
    assert!(is_open());
    drop(state);
    assert!(is_open());
    drop(builder);
    assert!(is_open());
    drop(reader);
    open().unwrap();
}

#[test]
fn a_name_that_begins_with_another_is_another_group() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["g", "g1", "g-state", "g_log"];
    run(async {
        let store = store(folder.path());
        for (number, name) in (1..).zip(names) {
            let (mut log, mut state) = store.group::<Types, _>(name, KeyValue).unwrap();
            log.save_vote(&Vote::new(number, number)).await.unwrap();
            log.blocking_append((0..number + 5).map(|index| put(number, index, name))).await.unwrap();
            state.apply((0..number).map(|index| put(number, index, name))).await.unwrap();
            state.get_snapshot_builder().await.build_snapshot().await.unwrap();
        }
        let (mut log, _state) = store.group::<Types, _>("g", KeyValue).unwrap();
        log.truncate(id(1, 4)).await.unwrap();
        log.purge(id(1, 0)).await.unwrap();
        assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 3);
        for (number, name) in (2..).zip(&names[1..]) {
            let (mut log, mut state) = store.group::<Types, _>(name, KeyValue).unwrap();
            assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new(number, number)));
            assert_eq!(log.try_get_log_entries(..).await.unwrap().len() as u64, number + 5);
            let last = Some(id(number, number - 1));
            assert_eq!(state.applied_state().await.unwrap().0, last);
            assert_eq!(state.get_current_snapshot().await.unwrap().unwrap().meta.last_log_id, last);
            let records: Vec<_> = state.reader().range::<&str>(..).unwrap().map(Result::unwrap).collect();
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].0, name.as_bytes());
        }
    });
}

/// An entry that a replica cannot apply would stop it again whenever it is started.
#[test]
fn a_key_that_is_too_long_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut state) = crate::types::group(folder.path());
    run(async {
        let lengths = [0, 512, 513, 5000];
        let entries = (0..).zip(lengths).map(|(index, length)| put(1, index, &"k".repeat(length)));
        let answers = state.apply(entries).await.unwrap();
        let are_done: Vec<bool> = answers.iter().map(|answer| answer.is_done).collect();
        assert_eq!(are_done, [true, true, false, false]);
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 3)));
        assert_eq!(state.reader().get("").unwrap().unwrap(), "0");
        assert!(state.reader().get("k".repeat(5000)).unwrap().is_none());
    });
}
