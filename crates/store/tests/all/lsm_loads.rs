//! Loads of LSM-trees, which write tables at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashgrain::testing::lsm_trees_of;
use flashgrain::{
    Db, Error, ErrorKind, IndexKind, LsmLayout, LsmOptions, LsmStats, Readable, Tree, TreeOptions,
};
use flashgrain_device::MemoryDevice;
use proptest::prelude::*;

const LAYOUTS: [LsmLayout; 4] =
    [LsmLayout::Leveled, LsmLayout::Tiered, LsmLayout::LazyLeveled, LsmLayout::SingleLevel];

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn lsm(options: LsmOptions) -> TreeOptions {
    TreeOptions::new().kind(IndexKind::Lsm).lsm(options)
}

fn records(keys: std::ops::Range<u64>, round: u8) -> impl Iterator<Item = ([u8; 8], Vec<u8>)> {
    keys.map(move |key| (key.to_be_bytes(), vec![key as u8 ^ round; 60 + (key % 50) as usize]))
}

fn bytes_of(records: impl Iterator<Item = ([u8; 8], Vec<u8>)>) -> u64 {
    records.map(|(key, value)| (key.len() + value.len()) as u64).sum()
}

fn count(tree: &Tree) -> u64 {
    tree.iter().unwrap().map(|record| record.map(drop)).collect::<Result<Vec<()>, _>>().unwrap().len() as u64
}

fn stats(tree: &Tree) -> LsmStats {
    tree.lsm_stats().unwrap()
}

#[test]
fn a_load_is_written_once_and_stays_where_it_is() {
    const KEYS: u64 = 60_000;
    for layout in LAYOUTS {
        let device = Arc::new(MemoryDevice::new(256 << 20, 0).unwrap());
        let builder = || Db::builder().device(device.clone()).cache_bytes(1 << 20).workers(2);
        let db = builder().create().unwrap();
        let options = LsmOptions::new().layout(layout).fanout(3).level_zero_runs(2);
        let tree = db.tree_with("t", &lsm(options)).unwrap();
        let before = db.snapshot().unwrap();
        let written_bytes = db.stats().device.written_bytes;
        assert_eq!(tree.load(records(0..KEYS, 0)).unwrap(), KEYS);
        let loaded = stats(&tree);
        assert_eq!((loaded.loads, loaded.flushes, loaded.merges), (1, 0, 0), "{layout:?}");
        assert!(loaded.levels[0].tables == 0 && loaded.levels.len() > 1, "{layout:?}: {loaded:?}");
        let written_bytes = (db.stats().device.written_bytes - written_bytes) as f64;
        let times = written_bytes / bytes_of(records(0..KEYS, 0)) as f64;
        assert!((1.0..1.3).contains(&times), "{layout:?}: {times}");
        assert_eq!(count(&tree), KEYS);
        assert_eq!(before.iter(&tree).unwrap().count(), 0, "an older snapshot sees nothing of it");
        assert_eq!(before.get(&tree, 7_u64.to_be_bytes()).unwrap(), None);
        // Behind it, and then over it.
        assert_eq!(tree.load(records(KEYS..2 * KEYS, 0)).unwrap(), KEYS);
        assert_eq!((stats(&tree).loads, stats(&tree).flushes), (2, 0), "{layout:?}");
        let middle = db.snapshot().unwrap();
        assert_eq!(tree.load(records(100..5000, 1)).unwrap(), 4900);
        assert_eq!(stats(&tree).loads, 2, "records among others go in steps");
        for (key, value) in records(100..5000, 0) {
            assert_eq!(middle.get(&tree, key).unwrap().unwrap(), value);
        }
        drop((before, middle, tree));
        db.close().unwrap();
        let db = builder().open().unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(count(&tree), 2 * KEYS, "{layout:?}");
        for (key, value) in records(0..100, 0).chain(records(100..5000, 1)).chain(records(5000..2 * KEYS, 0))
        {
            assert_eq!(tree.get(key).unwrap().unwrap(), value, "{layout:?}");
        }
        db.check().unwrap();
    }
}

#[test]
fn a_transaction_that_has_read_what_a_load_replaces_conflicts() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree_with("t", &lsm(LsmOptions::new())).unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert(&tree, 70_u64.to_be_bytes(), "mine").unwrap();
    let mut other = db.begin().unwrap();
    other.insert(&tree, 70_000_u64.to_be_bytes(), "mine").unwrap();
    tree.load(records(0..5000, 0)).unwrap();
    assert_eq!(stats(&tree).loads, 1);
    assert!(matches!(transaction.commit(), Err(Error::Conflict)));
    other.commit().unwrap();
    assert_eq!(count(&tree), 5001);
}

#[test]
fn what_is_in_between_ends_a_load_and_the_rest_goes_in_steps() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree_with("t", &lsm(LsmOptions::new())).unwrap();
    tree.insert(30_000_u64.to_be_bytes(), "old").unwrap();
    tree.insert(60_000_u64.to_be_bytes(), "old").unwrap();
    assert_eq!(tree.load(records(0..50_000, 0)).unwrap(), 50_000);
    assert_eq!(stats(&tree).loads, 1);
    for (key, value) in records(0..50_000, 0) {
        assert_eq!(tree.get(key).unwrap().unwrap(), value);
    }
    assert_eq!(count(&tree), 50_001);
    // A value that is too long for a block, in the middle.
    let mut with_long: Vec<_> = records(70_000..80_000, 0).collect();
    with_long[5000].1 = vec![7; 100_000];
    tree.load(with_long.clone()).unwrap();
    assert_eq!(stats(&tree).loads, 2);
    for (key, value) in with_long {
        assert_eq!(tree.get(key).unwrap().unwrap(), value);
    }
    db.check().unwrap();
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let device = Arc::new(MemoryDevice::new(32 << 20, 0).unwrap());
    let db = Db::builder().device(device).cache_bytes(1 << 20).workers(2).create().unwrap();
    let tree = db.tree_with("t", &lsm(LsmOptions::new())).unwrap();
    let free = |db: &Db| {
        db.checkpoint().unwrap();
        db.checkpoint().unwrap();
        db.stats().space.free_bytes
    };
    let before = free(&db);
    // Out of order at its end.
    let error = tree.load(records(0..50_000, 0).chain(records(7..8, 0))).unwrap_err();
    assert!(matches!(error, Error::Order { record: 50_000 }), "{error}");
    assert_eq!((count(&tree), stats(&tree).loads), (0, 0));
    assert!(free(&db) + (1 << 20) >= before);
    // More than the device has room for.
    let error = tree.load(records(0..1_000_000, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert_eq!((count(&tree), stats(&tree).loads), (0, 0));
    assert!(free(&db) + (1 << 20) >= before);
    // An iterator that panics.
    let panicking = records(0..40_000, 0).inspect(|(key, _)| assert!(*key < 30_000_u64.to_be_bytes()));
    let load = std::panic::AssertUnwindSafe(|| tree.load(panicking));
    assert!(std::panic::catch_unwind(load).is_err());
    assert_eq!(count(&tree), 0);
    assert!(free(&db) + (1 << 20) >= before);
    tree.load(records(0..50_000, 0)).unwrap();
    assert_eq!(count(&tree), 50_000);
    db.check().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Load(Vec<(Vec<u8>, Vec<u8>)>),
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Clear(Vec<u8>, Vec<u8>),
    Snapshot,
    Checkpoint,
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..6, 1..4)
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), 0..80_usize).prop_map(|(byte, length)| vec![byte; length])
}

fn steps() -> impl Strategy<Value = Step> {
    let records = proptest::collection::btree_map(keys(), values(), 1..30);
    prop_oneof![
        4 => records.prop_map(|records| Step::Load(records.into_iter().collect())),
        4 => (keys(), values()).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => keys().prop_map(Step::Remove),
        1 => (keys(), keys()).prop_map(|(one, other)| Step::Clear(one.clone().min(other.clone()), one.max(other))),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Checkpoint),
    ]
}

fn play(steps: &[Step], layout: LsmLayout) {
    let _eager = lsm_trees_of(LsmOptions::new().layout(layout).fanout(2).level_zero_runs(1), true);
    let device = Arc::new(MemoryDevice::new(64 << 20, 0).unwrap());
    let builder = || Db::builder().device(device.clone()).cache_bytes(1 << 20).workers(1);
    let db = builder().create().unwrap();
    let tree = db.tree("t").unwrap();
    let (mut model, mut snapshots) = (Model::new(), Vec::new());
    for step in steps {
        match step.clone() {
            Step::Load(records) => {
                assert_eq!(
                    tree.load(&records.iter().cloned().collect::<Model>()).unwrap(),
                    records.len() as u64
                );
                model.extend(records);
            }
            Step::Insert(key, value) => {
                tree.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            Step::Remove(key) => {
                tree.remove(&key).unwrap();
                model.remove(&key);
            }
            Step::Clear(lower, upper) => {
                tree.clear_range(lower.clone()..upper.clone()).unwrap();
                model.retain(|key, _| !(&lower..&upper).contains(&key));
            }
            Step::Snapshot => snapshots.push((db.snapshot().unwrap(), model.clone())),
            Step::Checkpoint => db.checkpoint().unwrap(),
        }
        same(tree.iter().unwrap(), &model);
        for key in model.keys() {
            assert_eq!(tree.get(key).unwrap().as_deref(), model.get(key).map(Vec::as_slice));
        }
    }
    for (snapshot, model) in &snapshots {
        same(snapshot.iter(&tree).unwrap(), model);
    }
    assert!(stats(&tree).loads > 0 || !steps.iter().any(|step| matches!(step, Step::Load(_))));
    drop((snapshots, tree));
    db.close().unwrap();
    let db = builder().open().unwrap();
    let tree = db.tree("t").unwrap();
    same(tree.iter().unwrap(), &model);
    same_backward(&tree, &model);
    db.check().unwrap();
}

fn same<E: std::fmt::Debug>(
    found: impl Iterator<Item = Result<(flashgrain::Value, flashgrain::Value), E>>,
    model: &Model,
) {
    let found: Model =
        found.map(|record| record.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(&found, model);
}

fn same_backward(tree: &Tree, model: &Model) {
    let backward = tree.iter().unwrap().rev().map(|record| record.unwrap().0.to_vec());
    assert!(backward.eq(model.keys().rev().cloned()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn loads_among_other_writes_are_as_in_a_map(
        steps in proptest::collection::vec(steps(), 1..25),
        layout in proptest::sample::select(&LAYOUTS),
    ) {
        play(&steps, layout);
    }
}
