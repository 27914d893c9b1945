//! Snapshots on their way between nodes.

use std::fs;
use std::io::SeekFrom;
use std::path::Path;

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{Entry, EntryPayload, Membership, RaftSnapshotBuilder, StoredMembership};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::types::{State, Types, group, id, put, run};

async fn bytes(snapshot: &mut Snapshot<Types>) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot.snapshot.seek(SeekFrom::Start(0)).await.unwrap();
    snapshot.snapshot.read_to_end(&mut bytes).await.unwrap();
    bytes
}

async fn filled(folder: &Path, keys: u64) -> (State, Snapshot<Types>) {
    let (_, mut state) = group(folder);
    state.apply((0..keys).map(|index| put(1, index, &format!("key{index}")))).await.unwrap();
    let snapshot = state.get_snapshot_builder().await.build_snapshot().await.unwrap();
    (state, snapshot)
}

async fn install(state: &mut State, of: &Snapshot<Types>, bytes: &[u8]) -> Result<(), String> {
    let mut received = state.begin_receiving_snapshot().await.unwrap();
    received.write_all(bytes).await.unwrap();
    state.install_snapshot(&of.meta, received).await.map_err(|error| error.to_string())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_installed_snapshot_replaces_state_and_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (_leader, mut snapshot) = filled(&folder.path().join("leader"), 1000).await;
        let sent = bytes(&mut snapshot).await;
        let follower = folder.path().join("follower");
        let (mut state, _) = filled(&follower, 1).await;
        state.apply([put(1, 1, "only here")]).await.unwrap();
        let reader = state.reader();
        install(&mut state, &snapshot, &sent).await.unwrap();
        for _ in 0..2 {
            assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 999)));
            assert_eq!(state.reader().get("key999").unwrap().unwrap(), "999");
            assert!(state.reader().get("only here").unwrap().is_none());
            let mut current = state.get_current_snapshot().await.unwrap().unwrap();
            assert_eq!(current.meta, snapshot.meta);
            assert_eq!(bytes(&mut current).await, sent);
            assert_eq!(names(&follower.join("snapshots")), ["g.snapshot"]);
        }
        assert_eq!(reader.range::<&str>(..).unwrap().count(), 1000, "readers see the new state");
        state.apply([put(1, 1000, "next")]).await.unwrap();
        drop((state, reader));
        let state = group(&follower).1;
        assert_eq!(state.reader().range::<&str>(..).unwrap().count(), 1001);
    });
}

#[test]
fn equal_states_have_equal_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (_one, mut first) = filled(&folder.path().join("one"), 300).await;
        let (_other, mut second) = filled(&folder.path().join("other"), 300).await;
        assert_eq!(first.meta, second.meta);
        assert_eq!(bytes(&mut first).await, bytes(&mut second).await);
    });
}

#[test]
fn a_snapshot_has_the_state_when_its_builder_was_made() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (_leader, newer) = filled(&folder.path().join("leader"), 50).await;
        let (_, mut state) = group(&folder.path().join("node"));
        state.apply([put(1, 0, "old")]).await.unwrap();
        let mut builder = state.get_snapshot_builder().await;
        state.apply([put(1, 1, "new")]).await.unwrap();
        // Even if another state takes its place meanwhile.
        let mut newer = newer;
        let sent = bytes(&mut newer).await;
        install(&mut state, &newer, &sent).await.unwrap();
        let built = builder.build_snapshot().await.unwrap();
        assert_eq!(built.meta.last_log_id, Some(id(1, 0)));
        let current = state.get_current_snapshot().await.unwrap().unwrap();
        assert_eq!(current.meta, newer.meta, "an older snapshot does not replace a newer one");
    });
}

#[test]
fn a_changed_snapshot_is_refused_and_the_state_stays() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (_leader, mut snapshot) = filled(&folder.path().join("leader"), 20).await;
        let sent = bytes(&mut snapshot).await;
        let (_, mut state) = group(&folder.path().join("follower"));
        state.apply([put(1, 0, "own")]).await.unwrap();
        for place in (0..sent.len()).step_by(41) {
            let mut changed = sent.clone();
            changed[place] ^= 0x10;
            install(&mut state, &snapshot, &changed).await.unwrap_err();
        }
        for length in (0..sent.len()).step_by(41) {
            install(&mut state, &snapshot, &sent[..length]).await.unwrap_err();
        }
        install(&mut state, &snapshot, &[&sent[..], b"x"].concat()).await.unwrap_err();
        assert!(names(&folder.path().join("follower/snapshots")).is_empty());
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 0)));
        assert_eq!(state.reader().get("own").unwrap().unwrap(), "0");
        assert!(state.get_current_snapshot().await.unwrap().is_none());
        install(&mut state, &snapshot, &sent).await.unwrap();
        assert_eq!(state.applied_state().await.unwrap().0, Some(id(1, 19)));
    });
}

#[test]
fn an_empty_snapshot_empties_the_state() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (_leader, mut snapshot) = filled(&folder.path().join("leader"), 0).await;
        assert_eq!(snapshot.meta.last_log_id, None);
        let sent = bytes(&mut snapshot).await;
        let follower = folder.path().join("follower");
        let (mut state, _) = filled(&follower, 3).await;
        install(&mut state, &snapshot, &sent).await.unwrap();
        for _ in 0..2 {
            assert_eq!(state.applied_state().await.unwrap().0, None);
            assert_eq!(state.reader().range::<&str>(..).unwrap().count(), 0);
            drop(state);
            state = group(&follower).1;
        }
    });
}

#[test]
fn a_snapshot_has_the_last_applied_membership() {
    let folder = tempfile::tempdir().unwrap();
    let members = |index, ids: &[u64]| {
        let membership = Membership::new(vec![ids.iter().copied().collect()], ());
        Entry { log_id: id(1, index), payload: EntryPayload::Membership(membership) }
    };
    run(async {
        let (mut leader, _) = filled(&folder.path().join("leader"), 3).await;
        leader.apply([members(3, &[1]), put(1, 4, "k"), members(5, &[1, 2, 3])]).await.unwrap();
        let mut snapshot = leader.get_snapshot_builder().await.build_snapshot().await.unwrap();
        let sent = bytes(&mut snapshot).await;
        let follower = folder.path().join("follower");
        let (mut state, _) = filled(&follower, 1).await;
        let mut other = Snapshot { meta: snapshot.meta.clone(), snapshot: snapshot.snapshot };
        other.meta.last_membership = StoredMembership::default();
        install(&mut state, &other, &sent).await.unwrap_err();
        let right = Snapshot { meta: leader.get_current_snapshot().await.unwrap().unwrap().meta, ..other };
        install(&mut state, &right, &sent).await.unwrap();
        for _ in 0..2 {
            let (last, membership) = state.applied_state().await.unwrap();
            assert_eq!((last, *membership.log_id()), (Some(id(1, 5)), Some(id(1, 5))));
            assert_eq!(membership.voter_ids().collect::<Vec<_>>(), [1, 2, 3]);
            drop(state);
            state = group(&follower).1;
        }
    });
}
