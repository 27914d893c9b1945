//! The files as a killed process leaves them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine, Snapshot};
use openraft::{RaftLogReader, RaftSnapshotBuilder, StorageHelper, Vote};

use crate::types::{State, Types, group, id, put, run, store};

/// Copies a store that is in use, as the page cache has it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn told_appends_and_saved_votes_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (mut log, _state) = group(&folder.path().join("node"));
        for index in 0..20 {
            log.blocking_append([put(1, index, "k")]).await.unwrap();
            log.save_vote(&Vote::new(index, 7)).await.unwrap();
            let crashed = folder.path().join(format!("crashed{index}"));
            copy(&folder.path().join("node"), &crashed);
            let (mut log, _) = group(&crashed);
            assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new(index, 7)));
            assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(id(1, index)));
        }
    });
}

/// Truncation, purge and applied entries need no flush of their own: the next append takes them along.
#[test]
fn commits_before_a_told_append_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (mut log, mut state) = group(&folder.path().join("node"));
        log.blocking_append((0..10).map(|index| put(1, index, "k"))).await.unwrap();
        state.apply((0..5).map(|index| put(1, index, "k"))).await.unwrap();
        log.purge(id(1, 2)).await.unwrap();
        log.truncate(id(1, 7)).await.unwrap();
        log.blocking_append([put(2, 7, "k")]).await.unwrap();
        let crashed = folder.path().join("crashed");
        copy(&folder.path().join("node"), &crashed);
        let (mut log, mut state) = group(&crashed);
        let entries = log.try_get_log_entries(..).await.unwrap();
        let ids: Vec<_> = entries.iter().map(|entry| entry.log_id).collect();
        assert_eq!(ids, [id(1, 3), id(1, 4), id(1, 5), id(1, 6), id(2, 7)]);
        assert_eq!(log.get_log_state().await.unwrap().last_purged_log_id, Some(id(1, 2)));
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 4)));
    });
}

/// A snapshot is durable before the entries that it has: opening brings the state up to it.
#[test]
fn a_state_older_than_its_snapshot_is_replaced_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let (node, crashed) = (folder.path().join("node"), folder.path().join("crashed"));
    run(async {
        let (mut log, mut state) = group(&node);
        log.blocking_append((0..10).map(|index| put(1, index, "k"))).await.unwrap();
        copy(&node, &crashed);
        state.apply((0..10).map(|index| put(1, index, "k"))).await.unwrap();
        state.get_snapshot_builder().await.build_snapshot().await.unwrap();
        copy(&node.join("snapshots"), &crashed.join("snapshots"));
        let (_, mut state) = group(&crashed);
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 9)));
        assert_eq!(state.reader().get("k").unwrap().unwrap(), "9");
        assert_eq!(state.get_current_snapshot().await.unwrap().unwrap().meta.last_log_id, Some(id(1, 9)));
    });
}

/// A snapshot is in a file of its own, and the truncation that made room for its entries in the log: neither
/// a snapshot that was built nor one that was installed brings the truncated entries back.
#[test]
fn entries_in_conflict_with_a_snapshot_do_not_outlive_it() {
    for is_installed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (node, crashed) = (folder.path().join("node"), folder.path().join("crashed"));
        run(async {
            let (mut log, mut state) = group(&node);
            log.blocking_append((0..12).map(|index| put(1, index, "old"))).await.unwrap();
            log.truncate(id(1, 0)).await.unwrap();
            let entries = (0..9).map(|index| put(2, index, "new"));
            if is_installed {
                let (_, mut leader) = group(&folder.path().join("leader"));
                leader.apply(entries).await.unwrap();
                let snapshot = leader.get_snapshot_builder().await.build_snapshot().await.unwrap();
                state.install_snapshot(&snapshot.meta, snapshot.snapshot).await.unwrap();
            } else {
                state.apply(entries).await.unwrap();
                state.get_snapshot_builder().await.build_snapshot().await.unwrap();
            }
            copy(&node, &crashed);
            for _ in 0..2 {
                let (mut log, mut state) = group(&crashed);
                StorageHelper::new(&mut log, &mut state).get_initial_state().await.unwrap();
                assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(id(2, 8)));
                assert_eq!(state.applied_state().await.unwrap().0, Some(id(2, 8)));
                assert_eq!(state.reader().get("new").unwrap().unwrap(), "8");
            }
        });
    }
}

/// A crash amid an installation, before its snapshot is the current one, leaves the state as it was.
#[test]
fn an_installation_that_was_cut_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = folder.path().join("snapshots");
    run(async {
        let (_, mut state) = group(folder.path());
        state.apply([put(1, 0, "k")]).await.unwrap();
        let received = state.begin_receiving_snapshot().await.unwrap();
        assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 1);
        drop((received, state));
        fs::write(snapshots.join("g.building"), "half of a snapshot").unwrap();
        store(folder.path()).db().tree("g.installing").unwrap().load([("half", "loaded")]).unwrap();
        let (log, state) = group(folder.path());
        assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 0);
        assert_eq!(state.reader().get("k").unwrap().unwrap(), "0");
        drop((log, state));
        assert_eq!(store(folder.path()).db().tree_names(), ["g.log", "g.meta", "g.state"]);
    });
}

/// Received, not installed: a snapshot through entry 19 of another node.
async fn received(folder: &Path, state: &mut State) -> Snapshot<Types> {
    let (_, mut leader) = group(&folder.join("leader"));
    leader.apply((0..20).map(|index| put(2, index, "new"))).await.unwrap();
    let sent = leader.get_snapshot_builder().await.build_snapshot().await.unwrap();
    let mut file = state.begin_receiving_snapshot().await.unwrap();
    tokio::io::copy(&mut { sent.snapshot }, &mut file).await.unwrap();
    Snapshot { meta: sent.meta, snapshot: file }
}

/// openraft purges the log through a snapshot while that is installed, and appends what follows: before the
/// installation ends, a crash leaves the state, the entries and the log's end as they were.
#[test]
fn a_purge_waits_for_the_installation_that_it_relies_on() {
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    run(async {
        let (mut log, mut state) = group(&node);
        log.blocking_append((0..10).map(|index| put(1, index, "old"))).await.unwrap();
        state.apply((0..5).map(|index| put(1, index, "old"))).await.unwrap();
        let snapshot = received(folder.path(), &mut state).await;
        log.purge(id(2, 19)).await.unwrap();
        let seen = log.get_log_state().await.unwrap();
        assert_eq!((seen.last_purged_log_id, seen.last_log_id), (Some(id(2, 19)), Some(id(2, 19))));
        let mut appending = log.clone();
        let mut appended = tokio::spawn(async move { appending.blocking_append([put(2, 20, "new")]).await });
        // Whatever makes everything else durable.
        log.save_vote(&Vote::new(3, 7)).await.unwrap();
        let is_told = tokio::time::timeout(Duration::from_millis(200), &mut appended).await;
        assert!(is_told.is_err(), "an entry after a gap is not durable");

        let crashed = folder.path().join("crashed");
        copy(&node, &crashed);
        for _ in 0..2 {
            let (mut log, mut state) = group(&crashed);
            StorageHelper::new(&mut log, &mut state).get_initial_state().await.unwrap();
            let seen = log.get_log_state().await.unwrap();
            assert_eq!((seen.last_purged_log_id, seen.last_log_id), (None, Some(id(1, 9))));
            assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 10);
            assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 4)));
        }

        state.install_snapshot(&snapshot.meta, snapshot.snapshot).await.unwrap();
        appended.await.unwrap().unwrap();
        copy(&node, &folder.path().join("later"));
        for (mut log, mut state) in [(log, state), group(&folder.path().join("later"))] {
            let seen = log.get_log_state().await.unwrap();
            assert_eq!((seen.last_purged_log_id, seen.last_log_id), (Some(id(2, 19)), Some(id(2, 20))));
            assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 1);
            assert_eq!(state.applied_state().await.unwrap().0, Some(id(2, 19)));
        }
    });
}

/// The file of the snapshot is there, and the state and the log are of before.
#[test]
fn a_purge_is_made_when_opening_ends_the_installation() {
    let folder = tempfile::tempdir().unwrap();
    let (node, crashed) = (folder.path().join("node"), folder.path().join("crashed"));
    run(async {
        let (mut log, mut state) = group(&node);
        log.blocking_append((0..10).map(|index| put(1, index, "old"))).await.unwrap();
        let snapshot = received(folder.path(), &mut state).await;
        log.purge(id(2, 19)).await.unwrap();
        let mut appending = log.clone();
        let appended = tokio::spawn(async move { appending.blocking_append([put(2, 20, "new")]).await });
        log.save_vote(&Vote::new(3, 7)).await.unwrap();
        copy(&node, &crashed);
        state.install_snapshot(&snapshot.meta, snapshot.snapshot).await.unwrap();
        appended.await.unwrap().unwrap();
        copy(&node.join("snapshots"), &crashed.join("snapshots"));
        let (mut log, mut state) = group(&crashed);
        StorageHelper::new(&mut log, &mut state).get_initial_state().await.unwrap();
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(2, 19)));
        assert_eq!(log.get_log_state().await.unwrap().last_purged_log_id, Some(id(2, 19)));
        let first = log.try_get_log_entries(..).await.unwrap().first().map(|entry| entry.log_id.index);
        assert!(first.is_none_or(|first| first == 20), "{first:?}");
    });
}

/// Entries that were there before the purge was held, after its end, are there after a crash.
#[test]
fn a_held_purge_that_is_forgotten_removes_no_older_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (node, crashed) = (folder.path().join("node"), folder.path().join("crashed"));
    run(async {
        let (mut log, mut state) = group(&node);
        log.blocking_append((0..30).map(|index| put(2, index, "k"))).await.unwrap();
        let _snapshot = received(folder.path(), &mut state).await;
        log.purge(id(2, 19)).await.unwrap();
        log.save_vote(&Vote::new(3, 7)).await.unwrap();
        copy(&node, &crashed);
        let (mut log, _) = group(&crashed);
        assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 30);
        assert_eq!(log.get_log_state().await.unwrap().last_purged_log_id, None);
    });
}

/// A refused snapshot keeps the log, and ends what waits for it.
#[test]
fn a_refused_snapshot_leaves_the_log_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    run(async {
        let (mut log, mut state) = group(&node);
        log.blocking_append((0..10).map(|index| put(1, index, "old"))).await.unwrap();
        let snapshot = received(folder.path(), &mut state).await;
        log.purge(id(2, 19)).await.unwrap();
        let mut appending = log.clone();
        let appended = tokio::spawn(async move { appending.blocking_append([put(2, 20, "new")]).await });
        log.save_vote(&Vote::new(3, 7)).await.unwrap();
        snapshot.snapshot.set_len(100).await.unwrap();
        state.install_snapshot(&snapshot.meta, snapshot.snapshot).await.unwrap_err();
        appended.await.unwrap().unwrap_err();
        drop((log, state));
        let (mut log, mut state) = group(&node);
        StorageHelper::new(&mut log, &mut state).get_initial_state().await.unwrap();
        assert_eq!(log.get_log_state().await.unwrap().last_log_id, Some(id(1, 9)));
    });
}

/// The state has all that the snapshot has: the node starts without it, sends no damaged one, and builds
/// another.
#[test]
fn a_damaged_snapshot_is_left_out_if_the_state_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshots/g.snapshot");
    run(async {
        for damage in 0..4 {
            let (mut log, mut state) = group(folder.path());
            let first = damage * 10;
            let entries = || (first..first + 10).map(|index| put(1, index, "k"));
            log.blocking_append(entries()).await.unwrap();
            state.apply(entries()).await.unwrap();
            state.get_snapshot_builder().await.build_snapshot().await.unwrap();
            log.purge(id(1, first + 5)).await.unwrap();
            assert!(state.get_current_snapshot().await.unwrap().is_some());
            drop((log, state));
            let mut bytes = fs::read(&file).unwrap();
            match damage {
                0 => bytes.clear(),
                1 => bytes.truncate(10),
                2 => drop(bytes.pop()),
                _ => *bytes.iter_mut().rev().nth(20).unwrap() ^= 1,
            }
            fs::write(&file, bytes).unwrap();
            let (_, mut state) = group(folder.path());
            assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, first + 9)));
            assert!(state.get_current_snapshot().await.unwrap().is_none(), "damage {damage}");
            assert!(!file.exists());
            let built = state.get_snapshot_builder().await.build_snapshot().await.unwrap();
            assert_eq!(built.meta.last_log_id, Some(id(1, first + 9)));
        }
    });
}
