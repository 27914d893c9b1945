//! What keeps commits waiting, and what does not.

use flashgrain::{Db, Durability, Readable};

/// A store in a directory, of small segments, with so many records of 8 bytes.
fn store(folder: &tempfile::TempDir, cache_bytes: u64, records: u64) -> (Db, flashgrain::Tree) {
    let db = Db::builder()
        .path(folder.path().join("store"))
        .cache_bytes(cache_bytes)
        .write_unit_bytes(64 << 10)
        .segment_bytes(256 << 10)
        .durability(Durability::None)
        .create()
        .unwrap();
    let tree = db.tree("t").unwrap();
    tree.load((0..records).map(|key| (key.to_be_bytes(), [7; 8]))).unwrap();
    db.checkpoint().unwrap();
    (db, tree)
}

/// Old versions fill the memory, but whoever needs it writes them: nobody waits for a checkpoint, which would
/// not.
#[test]
fn a_snapshot_that_is_held_keeps_no_commit_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (db, tree) = store(&folder, 4 << 20, 80_000);
    let snapshot = db.snapshot().unwrap();
    for step in 0..80 {
        let mut batch = db.batch();
        for key in step * 1000..(step + 1) * 1000_u64 {
            batch.insert(&tree, key.to_be_bytes(), [8; 8]).unwrap();
        }
        batch.commit().unwrap();
    }
    let throttle = db.stats().throttle;
    assert_eq!(throttle.delayed, 0, "{throttle:?}");
    assert_eq!(snapshot.get(&tree, 5_u64.to_be_bytes()).unwrap().unwrap().as_ref(), [7; 8]);
}

/// Each checkpoint would write all that is dirty to make a segment or two free: more room costs nothing. The
/// few checkpoints that are made are those of the log's ring, which grows at each: their number depends on how
/// far writers have come when one is complete. One for each segment or two of space would be about 300.
#[test]
fn a_store_that_may_grow_does_so_before_it_makes_checkpoints_for_space() {
    let folder = tempfile::tempdir().unwrap();
    let (db, tree) = store(&folder, 16 << 20, 200_000);
    let before = db.stats().checkpoints.completed;
    let mut random = 1_u64;
    for update in 0..200_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tree.insert(((random >> 33) % 200_000).to_be_bytes(), update.to_be_bytes()).unwrap();
    }
    let stats = db.stats();
    let checkpoints = stats.checkpoints.completed - before;
    assert!(checkpoints <= 30, "{checkpoints} checkpoints; {:?}", stats.space);
}
