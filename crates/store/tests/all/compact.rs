//! Stores that give room back.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashgrain::{DATA_FILE, Db, Durability, ErrorKind, IndexKind, LsmLayout, LsmOptions, Tree, TreeOptions};

use super::bad_input::folder;

const MIB: u64 = 1 << 20;

fn bytes_of(store: &Path) -> u64 {
    fs::metadata(store.join(DATA_FILE)).unwrap().len()
}

/// Records of a thousand bytes, which do not compress.
fn value(key: u32) -> Vec<u8> {
    let mut state = u64::from(key) + 1;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    bytes.take(1000).collect()
}

/// Trees, and the segments that each keeps free for its next merges.
fn kinds() -> [(TreeOptions, u64); 3] {
    let lsm = |layout| {
        let lsm = LsmOptions::new().layout(layout).fanout(3).level_zero_runs(2).table_bytes(4 * MIB);
        (TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm), 15)
    };
    let btree = TreeOptions::new().kind(IndexKind::BTree);
    [(btree, 0), lsm(LsmLayout::Leveled), lsm(LsmLayout::Tiered)]
}

fn fill(db: &Db, tree: &Tree, keys: std::ops::Range<u32>) {
    for first in keys.clone().step_by(1000) {
        let mut batch = db.batch();
        for key in first..(first + 1000).min(keys.end) {
            batch.insert(tree, key.to_be_bytes(), value(key)).unwrap();
        }
        batch.commit().unwrap();
    }
}

/// Removes all but every tenth record, so that something is live everywhere.
fn thin_out(db: &Db, tree: &Tree, keys: std::ops::Range<u32>) {
    for first in keys.clone().step_by(1000) {
        let mut batch = db.batch();
        for key in (first..(first + 1000).min(keys.end)).filter(|key| key % 10 > 0) {
            batch.remove(tree, key.to_be_bytes()).unwrap();
        }
        batch.commit().unwrap();
    }
}

fn check(db: &Db, keys: impl Iterator<Item = u32>) {
    db.check().unwrap();
    let tree = db.existing_tree("t").unwrap();
    let mut found = tree.iter().unwrap();
    for key in keys {
        let (found_key, found_value) = found.next().unwrap().unwrap();
        assert_eq!((found_key.as_ref(), found_value.as_ref()), (&key.to_be_bytes()[..], &value(key)[..]));
    }
    assert!(found.next().is_none());
}

#[test]
fn a_compacted_store_is_as_small_as_what_is_left_and_stays_whole() {
    kinds().iter().for_each(is_small_when_compacted_and_whole);
}

fn is_small_when_compacted_and_whole((kind, kept_segments): &(TreeOptions, u64)) {
    println!("{kind:?}");
    let folder = folder();
    let open = || Db::builder().path(folder.path()).cache_bytes(16 * MIB).durability(Durability::None);
    let db = open().create().unwrap();
    let tree = db.tree_with("t", kind).unwrap();
    fill(&db, &tree, 0..60_000);
    thin_out(&db, &tree, 0..60_000);
    // Merges go on until compaction begins, so that only it knows the length before.
    let compacted = db.compact().unwrap();
    let (before, after) = (compacted.before_bytes, bytes_of(folder.path()));
    assert_eq!(compacted.after_bytes, after);
    // Six million bytes are left; the nodes of a tree that was thinned out are half full.
    let space = db.stats().space;
    let most = 48 * MIB + kept_segments * space.segment_bytes;
    assert!(before > 60 * MIB && after < most, "{before} {after} {space:?}");
    check(&db, (0..60_000).step_by(10));
    // It goes on, grows again, and comes to rest.
    fill(&db, &tree, 60_000..120_000);
    assert!(bytes_of(folder.path()) > 60 * MIB);
    tree.remove_range(60_000_u32.to_be_bytes()..).unwrap();
    db.compact().unwrap();
    drop(tree);
    db.close().unwrap();
    let db = open().open().unwrap();
    assert!(bytes_of(folder.path()) < most, "{}", bytes_of(folder.path()));
    check(&db, (0..60_000).step_by(10));
}

#[test]
fn a_store_is_compacted_while_others_write_and_read() {
    kinds().iter().for_each(is_compacted_beside_others);
}

fn is_compacted_beside_others((kind, kept_segments): &(TreeOptions, u64)) {
    println!("{kind:?}");
    let folder = folder();
    let db = Db::builder().path(folder.path()).cache_bytes(16 * MIB).create().unwrap();
    let tree = db.tree_with("t", kind).unwrap();
    fill(&db, &tree, 0..50_000);
    thin_out(&db, &tree, 0..50_000);
    let before = bytes_of(folder.path());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rounds = 0_u32;
            while !ends.load(Ordering::Relaxed) || rounds < 2 {
                for key in (0..50_000_u32).step_by(10) {
                    assert_eq!(tree.get(key.to_be_bytes()).unwrap().unwrap(), value(key)[..]);
                }
                rounds += 1;
            }
        });
        scope.spawn(|| {
            let other = db.tree_with("other", kind).unwrap();
            let mut key = 0_u32;
            while !ends.load(Ordering::Relaxed) {
                key += 1;
                other.insert((key % 500).to_be_bytes(), value(key)).unwrap();
            }
        });
        db.compact().unwrap();
        ends.store(true, Ordering::Relaxed);
    });
    db.compact().unwrap();
    let after = bytes_of(folder.path());
    let space = db.stats().space;
    let most = before / 2 + 2 * kept_segments * space.segment_bytes;
    assert!(after < most, "{before} {after} {space:?}");
    check(&db, (0..50_000).step_by(10));
}

/// While the tree is freed, the cleaner may move what stays to the end (two of a hundred stores), and then
/// only a compaction gives back: one of several stores must do it by itself.
#[test]
fn a_checkpoint_gives_back_what_a_dropped_tree_leaves_at_the_end() {
    assert!((0..4).any(|_| a_dropped_trees_room_is_given_back()));
}

fn a_dropped_trees_room_is_given_back() -> bool {
    let folder = folder();
    let db = Db::builder().path(folder.path()).durability(Durability::None).create().unwrap();
    let (kept, dropped) = (db.tree("t").unwrap(), db.tree("dropped").unwrap());
    fill(&db, &kept, 0..100);
    fill(&db, &dropped, 0..100_000);
    db.checkpoint().unwrap();
    let before = bytes_of(folder.path());
    drop(dropped);
    db.drop_tree("dropped").unwrap();
    // The tree is freed in the background.
    let is_shorter = (0..300).any(|_| {
        fill(&db, &kept, 0..100);
        db.checkpoint().unwrap();
        db.sleep_until(db.now() + Duration::from_millis(50)).unwrap();
        bytes_of(folder.path()) < before / 4 * 3
    });
    check(&db, 0..100);
    is_shorter
}

/// A store that was set aside as a whole keeps its room until somebody asks.
#[test]
fn room_that_was_set_aside_is_given_back_on_request_only() {
    let folder = folder();
    let size = 64 * MIB;
    let db = Db::builder().path(folder.path()).size_bytes_max(size).create().unwrap();
    db.tree("t").unwrap().insert(0_u32.to_be_bytes(), value(0)).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = Db::open(folder.path()).unwrap();
    db.checkpoint().unwrap();
    assert!(bytes_of(folder.path()).abs_diff(size) < MIB, "{}", bytes_of(folder.path()));
    let compacted = db.compact().unwrap();
    assert!(compacted.after_bytes < compacted.before_bytes, "{compacted:?}");
    check(&db, 0..1);
}

#[test]
fn a_compaction_ends_when_it_is_told_to_and_needs_a_store_that_may_be_written() {
    let folder = folder();
    let db = Db::builder().path(folder.path()).durability(Durability::None).create().unwrap();
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 0..20_000);
    thin_out(&db, &tree, 0..20_000);
    let mut rounds = 0;
    db.compact_while(|_| {
        rounds += 1;
        false
    })
    .unwrap();
    assert_eq!(rounds, 1);
    check(&db, (0..20_000).step_by(10));
    drop(tree);
    db.close().unwrap();
    let db = Db::builder().path(folder.path()).open_read_only().unwrap();
    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_store_in_memory_gives_memory_back() {
    let db = Db::in_memory(16 * MIB).unwrap();
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 0..40_000);
    thin_out(&db, &tree, 0..40_000);
    let compacted = db.compact().unwrap();
    assert!(compacted.after_bytes < compacted.before_bytes / 2, "{compacted:?}");
    check(&db, (0..40_000).step_by(10));
}

/// A store takes what a copy of it takes, but for some free segments, and a copy is never made longer. With few
/// records no segment is long.
#[test]
fn a_compacted_store_is_about_as_short_as_its_backup_and_a_backup_stays_as_short() {
    const ALL: [IndexKind; 3] = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];
    for kinds in [&ALL[..1], &ALL[1..2], &ALL[2..], &ALL[..]] {
        let (folder, copy) = (folder(), folder());
        let open = |path: &Path| Db::builder().path(path).cache_bytes(16 * MIB).durability(Durability::None);
        let db = open(folder.path()).create().unwrap();
        let name = |kind: &IndexKind| format!("{kind:?}");
        for kind in kinds {
            let tree = db.tree_with(&name(kind), &TreeOptions::new().kind(*kind)).unwrap();
            for first in (0..40_000_u32).step_by(1000) {
                let mut batch = db.batch();
                for key in (first..first + 1000).map(|number| number.wrapping_mul(2_654_435_761)) {
                    batch.insert(&tree, key.to_be_bytes(), &value(key)[..70]).unwrap();
                }
                batch.commit().unwrap();
            }
        }
        db.backup(open(copy.path())).unwrap();
        let backup = bytes_of(copy.path());
        let before = db.compact().unwrap();
        let space = db.stats().space;
        let most = backup / 4 * 5 + 4 * space.segment_bytes;
        assert!(
            before.after_bytes <= before.before_bytes.min(most),
            "{kinds:?} {backup} {before:?} {space:?}"
        );
        db.close().unwrap();
        assert_eq!(bytes_of(folder.path()), before.after_bytes, "closing makes it no longer");

        let db = open(copy.path()).open().unwrap();
        let compacted = db.compact().unwrap();
        assert!(compacted.after_bytes <= backup, "{kinds:?} {backup} {compacted:?} {:?}", db.stats().space);
        db.close().unwrap();
        assert!(bytes_of(copy.path()) <= backup);
        // It goes on to work, and grows for that.
        let db = open(copy.path()).open().unwrap();
        for kind in kinds {
            let tree = db.existing_tree(&name(kind)).unwrap();
            assert_eq!(tree.iter().unwrap().count(), 40_000);
            (0..2000_u32).for_each(|key| tree.insert(key.to_be_bytes(), value(key)).unwrap());
        }
        db.check().unwrap();
    }
}
