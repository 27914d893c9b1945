//! Filters and fence pointers that stay in memory.

use std::sync::Arc;

use flashgrain::{Db, IndexKind, LsmLayout, LsmMetadata, LsmOptions, Tree, TreeOptions};
use flashgrain_device::MemoryDevice;

use crate::lsm::at_rest;

const RECORDS: u64 = 8000;
const LOOK_UPS: u64 = 40;
const CACHE_BYTES: u64 = 2 << 20;

/// Long keys, so that a partition has the fence pointers of few records: of some sixty.
fn key(number: u64) -> String {
    format!("{number:0200}")
}

/// Requests to read of look-ups far from each other, after many in another part of the tree.
fn reads_of_look_ups(metadata: LsmMetadata) -> u64 {
    let device = Arc::new(MemoryDevice::new(256 << 20, 0).unwrap());
    let builder = || Db::builder().device(device.clone()).cache_bytes(CACHE_BYTES).workers(1);
    let db = builder().create().unwrap();
    let lsm = LsmOptions::new()
        .layout(LsmLayout::SingleLevel)
        .level_zero_runs(1)
        .filter_bits_per_key(0.0)
        .metadata(metadata);
    let tree = db.tree_with("t", &TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm)).unwrap();
    for number in 0..RECORDS {
        tree.insert(key(number), [number as u8; 1000]).unwrap();
    }
    db.checkpoint().unwrap();
    at_rest(&db, &tree);
    // The option lasts.
    drop(tree);
    db.close().unwrap();
    let db = builder().open().unwrap();
    let tree = db.existing_tree("t").unwrap();
    let shown = tree.layout().into_iter().find_map(|decision| decision.setting.metadata());
    assert_eq!(shown, (metadata == LsmMetadata::Pinned).then_some(metadata));
    look_up(&tree, (0..RECORDS).step_by(20));
    look_up(&tree, 0..RECORDS / 2);
    let before = db.stats().device.reads;
    look_up(&tree, (RECORDS / 2..RECORDS).step_by((RECORDS / 2 / LOOK_UPS) as usize));
    db.stats().device.reads - before
}

fn look_up(tree: &Tree, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        assert_eq!(tree.get(key(number)).unwrap().unwrap()[..], [number as u8; 1000], "{number}");
    }
}

#[test]
fn pinned_fence_pointers_are_not_read_again() {
    let [pinned, cached] = [LsmMetadata::Pinned, LsmMetadata::Cached].map(reads_of_look_ups);
    assert!(pinned <= LOOK_UPS, "{pinned} reads of {LOOK_UPS} blocks");
    assert!(cached > pinned, "{cached} reads, {pinned} with pinned fence pointers");
}
