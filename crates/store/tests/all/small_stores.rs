//! Stores take what their records take: they begin small, and segments and log grow with what is written.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flashgrain::{DATA_FILE, Db, Durability, IndexKind, TreeOptions};
use flashgrain_device::MemoryDevice;
use tempfile::TempDir;

use super::bad_input::folder;

fn bytes_of(store: &Path) -> u64 {
    fs::metadata(store.join(DATA_FILE)).unwrap().len()
}

/// What a store that is in use has in its file, with nothing under way, opened as after the end of its
/// process.
fn open_copy(store: &Path) -> (TempDir, Db) {
    let copy = folder();
    super::crashed::copy(store, copy.path());
    let db = Db::builder().path(copy.path()).open().unwrap();
    (copy, db)
}

#[test]
fn a_store_of_one_record_is_small_and_stays_so() {
    let folder = folder();
    let db = Db::builder().path(folder.path()).create().unwrap();
    let said = db.layout().iter().find_map(|one| one.setting.first_space()).map(|bytes| bytes.0);
    assert_eq!(said, Some(bytes_of(folder.path())), "it says what it takes");
    drop(db);
    for round in 0..40 {
        let db = Db::builder().path(folder.path()).open().unwrap();
        db.tree("t").unwrap().insert("key", format!("value {round}")).unwrap();
        db.checkpoint().unwrap();
        db.close().unwrap();
        assert!(bytes_of(folder.path()) <= 8 << 20, "{} bytes", bytes_of(folder.path()));
    }
}

/// What is reserved for memtables, merges and flushes follows from what there is.
#[test]
fn few_records_of_any_kind_take_little_room_once_compacted() {
    const KINDS: [IndexKind; 3] = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];
    for kinds in [&KINDS[..1], &KINDS[1..2], &KINDS[2..], &KINDS[..]] {
        let folder = folder();
        let open = || Db::builder().path(folder.path()).durability(Durability::None);
        let db = open().create().unwrap();
        for kind in kinds {
            let tree = db.tree_with(&format!("{kind:?}"), &TreeOptions::new().kind(*kind)).unwrap();
            (0..2000_u32).for_each(|key| tree.insert(key.to_be_bytes(), [7; 14]).unwrap());
        }
        db.compact().unwrap();
        assert!(bytes_of(folder.path()) <= 6 << 20, "{kinds:?}: {:?}", db.stats().space);
        db.close().unwrap();
        let db = open().open().unwrap();
        for kind in kinds {
            assert_eq!(db.existing_tree(&format!("{kind:?}")).unwrap().iter().unwrap().count(), 2000);
        }
        assert!(bytes_of(folder.path()) <= 6 << 20, "{kinds:?}");
    }
}

#[test]
fn a_transaction_that_is_longer_than_the_log_has_it_grow() {
    let folder = folder();
    let open = || Db::builder().path(folder.path()).cache_bytes(64 << 20);
    let db = open().create().unwrap();
    let (tree, before) = (db.tree("t").unwrap(), db.stats().space.log_bytes);
    let mut batch = db.batch();
    for key in 0..8000_u32 {
        batch.insert(&tree, key.to_be_bytes(), [7; 500]).unwrap();
    }
    batch.commit().unwrap();
    let after = db.stats().space.log_bytes;
    assert!(before <= 256 << 10 && after >= 8 * 4_000_000, "{before} {after}");
    tree.insert("last", "one").unwrap();
    // It is as if the process had been killed.
    let (_copy, copied) = open_copy(folder.path());
    assert_eq!(copied.existing_tree("t").unwrap().iter().unwrap().count(), 8001);
    drop((tree, db));
    let db = open().open().unwrap();
    assert_eq!(db.stats().space.log_bytes, after);
    assert_eq!(db.existing_tree("t").unwrap().iter().unwrap().count(), 8001);
}

#[test]
fn a_log_grows_with_the_store_and_is_read_wherever_it_is() {
    let folder = folder();
    let open = || Db::builder().path(folder.path()).cache_bytes(16 << 20).durability(Durability::None);
    let db = open().create().unwrap();
    let tree = db.tree("t").unwrap();
    let (mut random, mut lengths) = (7_u64, vec![db.stats().space.log_bytes]);
    for round in 0..60_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tree.insert(((random >> 33) % 40_000).to_be_bytes(), [round as u8; 200]).unwrap();
        let now = db.stats().space.log_bytes;
        if lengths.last() != Some(&now) {
            lengths.push(now);
        }
    }
    // No checkpoint is under way while the file is copied.
    db.checkpoint().unwrap();
    tree.insert("last", "one").unwrap();
    db.sync().unwrap();
    assert!(lengths.len() >= 3 && lengths.is_sorted(), "{lengths:?}");
    let count = tree.iter().unwrap().count();
    let (_copy, copied) = open_copy(folder.path());
    assert_eq!(copied.existing_tree("t").unwrap().iter().unwrap().count(), count);
    copied.check().unwrap();
    db.check().unwrap();
}

#[test]
fn a_device_of_fixed_size_is_used_as_a_whole() {
    let device = Arc::new(MemoryDevice::new(64 << 20, 0).unwrap());
    let db = Db::builder().device(device).cache_bytes(4 << 20).create().unwrap();
    let space = db.stats().space;
    assert_eq!((space.device_bytes, space.segments_bytes), (64 << 20, space.segments * space.segment_bytes));
    assert!(space.log_bytes > 4 << 20, "{space:?}");
}

#[test]
fn a_backup_takes_what_its_records_take() {
    let folders = [(); 3].map(|()| folder());
    let [store, copy, larger_copy] = folders.each_ref().map(TempDir::path);
    let db = Db::builder().path(store).cache_bytes(32 << 20).create().unwrap();
    let tree = db.tree("t").unwrap();
    tree.insert("key", "value").unwrap();
    db.backup(Db::builder().path(copy)).unwrap();
    assert!(bytes_of(copy) <= 2 << 20, "{} bytes", bytes_of(copy));
    // It is a store like any other.
    let copied = Db::builder().path(copy).open().unwrap();
    copied.existing_tree("t").unwrap().insert("another", "value").unwrap();
    copied.check().unwrap();
    copied.close().unwrap();
    assert!(bytes_of(copy) <= 8 << 20, "{} bytes", bytes_of(copy));
    tree.load((0..100_000_u64).map(|key| (key.to_be_bytes(), [7; 200]))).unwrap();
    let records = db.backup(Db::builder().path(larger_copy).cache_bytes(32 << 20)).unwrap();
    let bytes = bytes_of(larger_copy);
    assert!(bytes < records.bytes * 13 / 10 + (8 << 20), "{bytes} bytes for {}", records.bytes);
    let copied = Db::builder().path(larger_copy).open_read_only().unwrap();
    copied.check().unwrap();
    assert_eq!(copied.existing_tree("t").unwrap().iter().unwrap().count(), 100_001);
}
