//! Bε-trees: caches of other sizes than the one that a tree was made with, loads beside commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{
    BeTreeOptions, Builder, Bytes, Db, Durability, ErrorKind, IndexKind, Setting, Tree, TreeOptions,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use tempfile::TempDir;

use super::bad_input::folder;

const SEED: u64 = 1;

/// Keys of the first half of these are loaded, the others are committed beside that.
const LOADED: u32 = 60_000;

fn options(node_bytes: u64, fanout: u32) -> TreeOptions {
    TreeOptions::new()
        .kind(IndexKind::BeTree)
        .be_tree(BeTreeOptions::new().node_bytes(node_bytes).fanout(fanout))
}

fn on(folder: &TempDir, cache_bytes: u64) -> Builder {
    Db::builder().path(folder.path()).cache_bytes(cache_bytes).workers(2)
}

fn part_bytes(tree: &Tree) -> u64 {
    let part = tree.layout().into_iter().find_map(|decision| match decision.setting {
        Setting::NodePart(Bytes(bytes)) => Some(bytes),
        _ => None,
    });
    part.unwrap()
}

/// Records that are changed in no order.
fn change(tree: &Tree, model: &mut BTreeMap<u32, Vec<u8>>, random: &mut Pcg64, steps: u32) {
    for step in 0..steps {
        let key = random.random_range(0..20_000);
        if step % 5 == 4 {
            tree.remove(u32::to_be_bytes(key)).unwrap();
            model.remove(&key);
        } else {
            let value = vec![step as u8; random.random_range(0..300)];
            tree.insert(u32::to_be_bytes(key), &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn assert_same(tree: &Tree, model: &BTreeMap<u32, Vec<u8>>) {
    let mut count = 0;
    for (record, (key, value)) in tree.iter().unwrap().zip(model) {
        let (found_key, found) = record.unwrap();
        assert!(found_key == key.to_be_bytes() && found == *value, "seed {SEED}: key {key}");
        count += 1;
    }
    assert!(count == model.len() && tree.iter().unwrap().count() == count, "seed {SEED}: {count} records");
}

#[test]
fn the_parts_of_a_tree_stay_as_they_were_made_in_caches_of_any_size() {
    let (folder, mut random) = (folder(), Pcg64::seed_from_u64(SEED));
    let mut model = BTreeMap::new();
    let db = on(&folder, 1 << 20).create().unwrap();
    let tree = db.tree_with("t", &options(1 << 20, 4)).unwrap();
    // What the smallest cache has room for.
    assert_eq!(part_bytes(&tree), 64 << 10);
    change(&tree, &mut model, &mut random, 20_000);
    drop(tree);
    db.close().unwrap();
    for cache_mebibytes in [16, 1, 64] {
        let db = on(&folder, cache_mebibytes << 20).open().unwrap();
        let tree = db.existing_tree("t").unwrap();
        assert_eq!(part_bytes(&tree), 64 << 10);
        assert_same(&tree, &model);
        change(&tree, &mut model, &mut random, 20_000);
        assert_same(&tree, &model);
        db.check().unwrap();
        drop(tree);
        db.close().unwrap();
    }
}

/// No checkpoint has the tree: it is made again from the log, and keys that were allowed are still.
#[test]
fn regression_a_tree_that_the_log_alone_has_keeps_its_parts_in_a_smaller_cache() {
    let folder = folder();
    let db = on(&folder, 64 << 20).create().unwrap();
    let tree = db.tree_with("t", &options(1 << 20, 8)).unwrap();
    let (bytes, longest) = (part_bytes(&tree), vec![7; tree.key_bytes_max()]);
    tree.insert(&longest, "first").unwrap();
    // What a crash would leave: the files as they are now.
    let crashed = tempfile::tempdir().unwrap();
    super::crashed::copy(folder.path(), crashed.path());
    let db = on(&crashed, 1 << 20).open().unwrap();
    let tree = db.existing_tree("t").unwrap();
    assert_eq!((part_bytes(&tree), tree.key_bytes_max()), (bytes, longest.len()));
    assert_eq!(tree.get(&longest).unwrap().unwrap(), b"first");
    tree.insert(&longest, "again").unwrap();
    db.check().unwrap();
}

/// The log has more versions of a key than a node has room for. None is needed but the last one.
#[test]
fn regression_a_key_that_the_log_has_very_often_is_replayed_into_one_node() {
    const ROUNDS: u32 = 400;
    let folder = folder();
    let builder = on(&folder, 1 << 20).log_bytes(16 << 20).recovery_log_bytes(16 << 20);
    let db = builder.create().unwrap();
    let tree = db.tree_with("t", &options(16 << 10, 4)).unwrap();
    let hot = vec![7; tree.key_bytes_max()];
    let value = |round: u32| [&round.to_be_bytes()[..], &vec![1; 20_000]].concat();
    for round in 0..ROUNDS {
        tree.insert(&hot, value(round)).unwrap();
        tree.insert(round.to_be_bytes(), vec![2; 400]).unwrap();
    }
    let crashed = tempfile::tempdir().unwrap();
    super::crashed::copy(folder.path(), crashed.path());
    let db = on(&crashed, 1 << 20).open().unwrap();
    let tree = db.existing_tree("t").unwrap();
    tree.insert("after", "the replay").unwrap();
    assert_eq!(tree.get(&hot).unwrap().unwrap(), value(ROUNDS - 1));
    assert_eq!(tree.iter().unwrap().count(), ROUNDS as usize + 2);
    db.check().unwrap();
    // Values that the replay left out are given back, after a moment.
    let pages = db.reclaim().unwrap();
    assert!(pages.is_none_or(|pages| pages == 0), "{pages:?} pages of values are left");
}

#[test]
fn a_cache_that_has_no_room_for_the_parts_of_a_tree_is_refused() {
    let folder = folder();
    let db = on(&folder, 64 << 20).create().unwrap();
    let tree = db.tree_with("t", &options(2 << 20, 8)).unwrap();
    assert_eq!(part_bytes(&tree), 256 << 10);
    tree.insert("a", "b").unwrap();
    drop(tree);
    db.close().unwrap();
    let error = on(&folder, 1 << 20).open().unwrap_err();
    assert!(error.kind() == ErrorKind::Argument && error.to_string().contains("2097152"), "{error}");
    let db = on(&folder, 2 << 20).open().unwrap();
    assert_eq!(db.existing_tree("t").unwrap().get("a").unwrap().unwrap(), b"b");
    db.close().unwrap();
}

#[test]
fn records_are_loaded_beside_commits() {
    let (folder, ended) = (folder(), AtomicBool::new(false));
    let db = on(&folder, 4 << 20).create().unwrap();
    let tree = db.tree_with("t", &options(64 << 10, 4)).unwrap();
    let committed = std::thread::scope(|scope| {
        let committing = scope.spawn(|| {
            let (mut random, mut model) = (Pcg64::seed_from_u64(SEED), BTreeMap::new());
            while !ended.load(Ordering::Relaxed) || model.is_empty() {
                let key = LOADED + random.random_range(0..LOADED);
                let mut batch = db.batch().durability(Durability::None);
                batch.insert(&tree, key.to_be_bytes(), key.to_le_bytes()).unwrap();
                batch.commit().unwrap();
                model.insert(key, key.to_le_bytes().to_vec());
            }
            model
        });
        for _ in 0..2 {
            let records = (0..LOADED).map(|key| (key.to_be_bytes(), [key as u8; 40]));
            assert_eq!(tree.load(records).unwrap(), u64::from(LOADED));
        }
        ended.store(true, Ordering::Relaxed);
        committing.join().unwrap()
    });
    let mut model: BTreeMap<u32, Vec<u8>> = (0..LOADED).map(|key| (key, vec![key as u8; 40])).collect();
    model.extend(committed);
    assert_same(&tree, &model);
    drop(tree);
    db.close().unwrap();
    let db = on(&folder, 4 << 20).open().unwrap();
    assert_same(&db.existing_tree("t").unwrap(), &model);
    db.check().unwrap();
}

/// However small the memtables are, and in whichever opening, they take the longest records.
#[test]
fn the_longest_records_fit_into_the_smallest_memtables() {
    let folder = folder();
    let be_tree = BeTreeOptions::new().node_bytes(1 << 20).fanout(2).memtable_bytes(64 << 10);
    let options = TreeOptions::new().kind(IndexKind::BeTree).node_bytes(64 << 10).be_tree(be_tree);
    let record = |tree: &Tree, number: u8| {
        let key = vec![number; tree.key_bytes_max()];
        (key, vec![number; 16_000])
    };
    let db = on(&folder, 16 << 20).create().unwrap();
    let tree = db.tree_with("records", &options).unwrap();
    assert_eq!(tree.key_bytes_max(), 16 << 10);
    for number in 0..20 {
        let (key, value) = record(&tree, number);
        tree.insert(key, value).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    let db = on(&folder, 8 << 20).open().unwrap();
    let tree = db.existing_tree("records").unwrap();
    for number in 0..20 {
        let (key, value) = record(&tree, number);
        assert_eq!(tree.get(&key).unwrap().unwrap(), value);
        tree.insert(key, value).unwrap();
    }
    drop(tree);
    db.close().unwrap();
}
