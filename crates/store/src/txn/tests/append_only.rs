//! What transactions do to an index that reads nothing before it writes.

use super::*;

/// Without a snapshot, with one, and with the keys of others in the table of recent commits.
#[test]
fn blind_writes_and_batches_read_nothing() {
    let (transactions, _harness) = store(1);
    let (tree, index, map) = transactions.append_only(1);
    for round in 0..3_u32 {
        for key in 0..100_u32 {
            put(&transactions, &tree, &key.to_be_bytes(), &round.to_le_bytes());
        }
        for key in (0..100_u32).step_by(7) {
            remove(&transactions, &tree, &key.to_be_bytes());
        }
        let keys: Vec<_> = (50..150_u32).map(u32::to_be_bytes).collect();
        let put = |key| Written { tree: &tree, key, write: Write::Put(b"batch") };
        let batch: Vec<_> = keys.iter().map(|key| put(key)).collect();
        transactions.commit(None, &[], &batch, Durability::None).unwrap();
        let snapshot = transactions.snapshot().unwrap();
        let since = Some(snapshot.timestamp());
        transactions.commit(since, &[], &batch, Durability::None).unwrap();
        // Its own keys were committed since: here the index has to be asked, and says so.
        let lost = transactions.commit(since, &[], &batch[..1], Durability::None);
        assert!(matches!(lost, Err(Error::Conflict)));
    }
    assert_eq!(index.reads(), 3, "once for each conflict");
    assert_eq!(map.draws(), 0, "accesses to pages");
    let stats = transactions.conflict_stats();
    assert_eq!(stats.refused_unsure, 0);
    assert!((3..30).contains(&stats.asked), "{stats:?}");
}

/// Whoever commits a key of the same group is told from whoever commits the key itself by the index.
#[test]
fn nobody_loses_to_a_commit_of_another_key() {
    for kind in KINDS {
        let (transactions, _harness) = store(1);
        let (tree, _) = transactions.tree_of(kind);
        let snapshot = transactions.snapshot().unwrap();
        for key in 0..200_000_u32 {
            put(&transactions, &tree, &key.to_be_bytes(), b"");
        }
        for key in 200_000..200_300_u32 {
            let key = key.to_be_bytes();
            let written = Written { tree: &tree, key: &key, write: Write::Put(b"own") };
            let since = Some(snapshot.timestamp());
            transactions.commit(since, &[], &[written], Durability::None).unwrap();
        }
        let stats = transactions.conflict_stats();
        assert!(stats.asked > 200 && stats.refused_unsure == 0, "{stats:?}");
    }
}

/// Versions go from memory to pages while others read, and stay as long as a snapshot sees them.
#[test]
fn versions_move_to_pages_and_go_when_nobody_needs_them() {
    let (transactions, _harness) = store(1);
    let (tree, _, map) = transactions.append_only(1);
    let mut snapshots = Vec::new();
    for round in 0..6_u32 {
        for key in (0..40_u32).filter(|key| (key + round) % 3 > 0) {
            put(&transactions, &tree, &key.to_be_bytes(), &round.to_le_bytes());
        }
        for key in (0..40_u32).step_by(5) {
            remove(&transactions, &tree, &key.to_be_bytes());
        }
        if round % 2 == 0 {
            let snapshot = transactions.snapshot().unwrap();
            let content = scan(&tree, &snapshot);
            snapshots.push((snapshot, content));
        }
        if round == 3 {
            transactions.before_cut(May::Wait).unwrap();
            assert!(map.len() > 100 && transactions.indexes.replay_from().is_none());
        }
    }
    assert!(transactions.indexes.replay_from().is_some());
    transactions.settle().unwrap();
    assert!(transactions.indexes.replay_from().is_none());
    for (snapshot, content) in &snapshots {
        assert_eq!(scan(&tree, snapshot), *content);
        for key in 0..40_u32 {
            let expected = content.iter().find(|(other, _)| *other == key.to_be_bytes());
            let found = get(&transactions, &tree, &key.to_be_bytes(), Some(snapshot));
            assert_eq!(found.as_ref(), expected.map(|(_, value)| value));
        }
    }
    let kept = map.len();
    snapshots.clear();
    transactions.settle().unwrap();
    let now = transactions.snapshot().unwrap();
    assert!(map.len() == scan(&tree, &now).len() && kept > 60, "{kept}, {}", map.len());
}
