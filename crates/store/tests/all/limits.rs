//! Keys and values of the greatest length, with whatever settings a store may have.

use std::sync::Arc;

use flashgrain::{
    AppendOperator, Builder, Db, Durability, IndexKind, LsmLayout, LsmOptions, Readable, TreeOptions,
};
use flashgrain_device::MemoryDevice;

const NODE_BYTES: u32 = 64 << 10;
const KEY_BYTES: usize = 16 << 10;

fn on(device: &Arc<MemoryDevice>) -> Builder {
    Db::builder().device(Arc::clone(device) as _).workers(1).durability(Durability::None)
}

/// The smallest write units and segments.
fn small_units(mebibytes: u64) -> (Arc<MemoryDevice>, Builder) {
    let device = Arc::new(MemoryDevice::new(mebibytes << 20, 0).unwrap());
    let builder = on(&device).write_unit_bytes(64 << 10).segment_bytes(256 << 10);
    (device, builder)
}

fn key(number: u32, length: usize) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(length, number as u8);
    key
}

/// A page of the next larger class, which takes the longer names of old versions, would not fit into a unit.
#[test]
fn old_versions_of_the_longest_records_are_kept_whatever_the_units() {
    let db = small_units(128).1.cache_bytes(2 << 20).create().unwrap();
    let tree = db.tree_with("t", &TreeOptions::new().node_bytes(NODE_BYTES)).unwrap();
    let all = || (0..100).map(|number| key(number, KEY_BYTES));
    all().for_each(|key| tree.insert(key, [0; 100]).unwrap());
    let snapshots: Vec<_> = (1..=4)
        .map(|round| {
            let snapshot = db.snapshot().unwrap();
            all().for_each(|key| match round {
                4 => tree.remove(key).unwrap(),
                _ => tree.insert(key, [round; 100]).unwrap(),
            });
            snapshot
        })
        .collect();
    for (round, snapshot) in (0..).zip(&snapshots) {
        for key in all() {
            assert_eq!(snapshot.get(&tree, key).unwrap().unwrap(), [round; 100]);
        }
    }
    drop(snapshots);
    assert_eq!(tree.iter().unwrap().count(), 0);
    db.check().unwrap();
    drop(tree);
    db.close().unwrap();
}

/// The list of tables has two keys of each, and is larger than the memory here.
#[test]
fn a_list_of_tables_that_is_larger_than_the_cache_is_written() {
    let (device, builder) = small_units(256);
    let db = builder.cache_bytes(1 << 20).create().unwrap();
    let lsm = LsmOptions::new().layout(LsmLayout::LazyLeveled).fanout(2).level_zero_runs(1);
    let options = TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm).node_bytes(NODE_BYTES);
    let tree = db.tree_with("t", &options.merge_operator(AppendOperator::NAME)).unwrap();
    for number in 0..1500_u32 {
        tree.insert(key(number * 7919 % 1500, KEY_BYTES), [1; 10_000]).unwrap();
        tree.merge(key(number * 31 % 1500, KEY_BYTES), [2; 100]).unwrap();
    }
    let stats = tree.lsm_stats().unwrap();
    let tables: u64 = stats.levels.iter().map(|level| level.tables).sum();
    assert!(tables * 2 * KEY_BYTES as u64 > 1 << 20, "{tables} tables");
    drop(tree);
    db.close().unwrap();
    let db = on(&device).cache_bytes(1 << 20).open().unwrap();
    assert_eq!(db.reclaim().unwrap(), Some(0), "lists that were replaced are freed");
    db.check().unwrap();
    db.close().unwrap();
}

/// The last block of a table has a key of each of its partitions, and is in one segment.
#[test]
fn tables_are_no_larger_than_the_list_of_their_keys_allows() {
    let db = small_units(128).1.cache_bytes(64 << 20).create().unwrap();
    let lsm = LsmOptions::new().table_bytes(16 << 20).memtable_bytes(2 << 20);
    let tree = db.tree_with("t", &TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm)).unwrap();
    for number in 0..24_000 {
        tree.insert(key(number, 1000), []).unwrap();
    }
    drop(tree);
    db.close().unwrap();
}
