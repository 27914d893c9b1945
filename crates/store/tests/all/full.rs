//! Devices with little room: nothing fails before they are full, and then only what grows.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashgrain::testing::trees_of;
use flashgrain::{
    Builder, Db, Durability, Error, ErrorKind, IndexKind, LsmLayout, LsmOptions, Tree, TreeOptions,
};
use flashgrain_device::{Device, MemoryDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

type Model = BTreeMap<u32, Vec<u8>>;

fn device(mebibytes: u64) -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(mebibytes << 20, 0).unwrap())
}

fn on(device: &Arc<dyn Device>, cache_bytes: u64) -> Builder {
    Db::builder()
        .device(Arc::clone(device))
        .cache_bytes(cache_bytes)
        .workers(2)
        .durability(Durability::Buffered)
}

fn put(tree: &Tree, model: &mut Model, key: u32, value: Vec<u8>) -> Result<(), Error> {
    tree.insert(key.to_be_bytes(), &value)?;
    model.insert(key, value);
    Ok(())
}

fn check(tree: &Tree, model: &Model) {
    let mut expected = model.iter();
    for record in tree.iter().unwrap() {
        let (key, value) = record.unwrap();
        let (model_key, model_value) = expected.next().unwrap();
        let (found, length) = (u32::from_be_bytes(key.as_slice().try_into().unwrap()), value.len());
        assert!(
            found == *model_key && value == model_value.as_slice(),
            "{model_key} of {} bytes: {found} of {length} bytes {:?}..., not {:?}...",
            model_value.len(),
            value.first(),
            model_value.first()
        );
    }
    assert!(expected.next().is_none());
}

/// Of an LSM-tree less fits in: merges need room for what they write beside what they read.
const LEAST_PERCENT: [(IndexKind, u64); 3] =
    [(IndexKind::BTree, 40), (IndexKind::Lsm, 30), (IndexKind::BeTree, 30)];

/// A megabyte that is written again and again, with checkpoints and a fresh start now and then.
#[test]
fn few_records_are_changed_on_a_small_device_for_ever() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        let _kind = trees_of(kind);
        println!("{kind:?}");
        few_records_are_changed();
    }
}

fn few_records_are_changed() {
    for (mebibytes, cache_mebibytes) in [(16, 1), (24, 8), (32, 64), (128, 4)] {
        let device = device(mebibytes);
        let mut random = Pcg64::seed_from_u64(mebibytes);
        let (mut db, mut model) = (on(&device, cache_mebibytes << 20).create().unwrap(), Model::new());
        let mut tree = db.tree("t").unwrap();
        let rounds = 3 * mebibytes * 1000 / 4;
        for round in 0..rounds {
            let mut value = vec![round as u8; random.random_range(0..800)];
            if round % 500 == 0 {
                value.resize(30_000, 7);
            }
            let put = put(&tree, &mut model, random.random_range(0..2500), value);
            put.unwrap_or_else(|error| panic!("{mebibytes} MiB, round {round}: {error}: {:?}", db.stats()));
            if random.random_range(0..300) == 0 {
                db.checkpoint().unwrap_or_else(|error| {
                    panic!("{mebibytes} MiB, round {round}: {error}: {:?}", db.stats())
                });
            }
            if round % (rounds / 3) == rounds / 3 - 1 {
                let stats = db.stats();
                drop(tree);
                db.close()
                    .unwrap_or_else(|error| panic!("{mebibytes} MiB, round {round}: {error}: {stats:?}"));
                db = on(&device, cache_mebibytes << 20).open().unwrap();
                tree = db.existing_tree("t").unwrap();
                check(&tree, &model);
            }
        }
        check(&tree, &model);
    }
}

/// Fills the device until it refuses; how many were put.
fn fill(tree: &Tree, model: &mut Model, from: u32, length: usize) -> Error {
    for key in from.. {
        assert!(key - from < 900_000, "more than the device holds");
        // Scattered, so that leaves are split everywhere.
        let value = vec![key as u8; length];
        if let Err(error) = put(tree, model, key.wrapping_mul(0x9e37_79b9), value) {
            return error;
        }
    }
    unreachable!("keys do not end")
}

#[test]
fn a_full_store_reads_removes_and_takes_more_again() {
    for (kind, least_percent) in LEAST_PERCENT {
        let _kind = trees_of(kind);
        println!("{kind:?}");
        a_full_store_takes_more_again(least_percent);
    }
}

fn a_full_store_takes_more_again(least_percent: u64) {
    for (mebibytes, cache_mebibytes, length) in [(16, 1, 100), (32, 64, 500), (24, 4, 20_000)] {
        let device = device(mebibytes);
        let (db, mut model) = (on(&device, cache_mebibytes << 20).create().unwrap(), Model::new());
        let tree = db.tree("t").unwrap();
        let case = format!("{mebibytes} MiB, cache {cache_mebibytes} MiB, values of {length}");
        for round in 0..3_u32 {
            let error = fill(&tree, &mut model, round * 1_000_000, length);
            assert_eq!(error.kind(), ErrorKind::Full, "{case}: {error}");
            let live: usize = model.values().map(|value| value.len() + 24).sum();
            assert!(
                live as u64 > (mebibytes << 20) * least_percent / 100,
                "{case}: full with {live} bytes: {:?}",
                db.stats()
            );
            check(&tree, &model);
            let keys: Vec<u32> = model.keys().copied().step_by(2).collect();
            for key in keys {
                tree.remove(key.to_be_bytes()).unwrap_or_else(|error| panic!("{case}: {error}"));
                model.remove(&key);
            }
        }
        let error = fill(&tree, &mut model, 7_000_000, length);
        assert_eq!(error.kind(), ErrorKind::Full, "{case}: {error}");
        drop(tree);
        db.close().unwrap_or_else(|error| panic!("{case}: {error}"));
        let db = on(&device, cache_mebibytes << 20).open().unwrap();
        let tree = db.existing_tree("t").unwrap();
        check(&tree, &model);
        db.check().unwrap();
    }
}

/// Segments are as small as 256 of them want, and few of them are kept or half empty.
#[test]
fn a_small_device_holds_half_its_size_in_records_of_any_kind() {
    for (kind, least_percent) in [(IndexKind::BTree, 60), (IndexKind::Lsm, 50), (IndexKind::BeTree, 50)] {
        let _kind = trees_of(kind);
        let (device, mut model) = (device(24), Model::new());
        let db = on(&device, 4 << 20).create().unwrap();
        let error = fill(&db.tree("t").unwrap(), &mut model, 0, 1000);
        assert_eq!(error.kind(), ErrorKind::Full, "{kind:?}: {error}");
        let percent = model.len() as u64 * 1004 * 100 / (24 << 20);
        println!("{kind:?}: {percent} %");
        assert!(percent >= least_percent, "{kind:?}: full at {percent} %: {:?}", db.stats().space);
    }
}

/// Refusals after which a store counts as full for good.
const REFUSALS_MAX: u32 = 4;

#[test]
fn half_of_a_full_lsm_tree_is_removed_and_makes_room() {
    use LsmLayout::{LazyLeveled, Leveled, SingleLevel, Tiered};
    for (layout, mebibytes, seed) in
        [(Leveled, 32, 1), (Leveled, 32, 2), (Tiered, 16, 1), (LazyLeveled, 16, 1), (SingleLevel, 16, 1)]
    {
        let case = format!("{layout:?}, {mebibytes} MiB, seed {seed}");
        let builder = on(&device(mebibytes), (mebibytes / 2) << 20).durability(Durability::None);
        let db = builder.create().unwrap();
        let options = TreeOptions::new().kind(IndexKind::Lsm).lsm(LsmOptions::new().layout(layout));
        let tree = db.tree_with("t", &options).unwrap();
        let mut random = Pcg64::seed_from_u64(seed);
        let put_any = |random: &mut Pcg64| {
            let key: u64 = random.random();
            let put = tree.insert(key.to_be_bytes(), random.random::<[u8; 100]>());
            put.map(|()| key).map_err(|error| assert_eq!(error.kind(), ErrorKind::Full, "{case}: {error}"))
        };
        let (mut keys, mut refusals) = (Vec::new(), 0);
        while refusals < REFUSALS_MAX {
            put_any(&mut random).map_or_else(|()| refusals += 1, |key| keys.push(key));
        }
        let filled = keys.len();
        for _ in 0..filled / 2 {
            let key = keys.swap_remove(random.random_range(0..keys.len()));
            tree.remove(key.to_be_bytes()).unwrap_or_else(|error| panic!("{case}: {error}"));
        }
        let (mut again, mut refusals) = (0, 0);
        while again < filled / 4 {
            put_any(&mut random).map_or_else(|()| refusals += 1, |_| again += 1);
            assert!(
                refusals <= REFUSALS_MAX,
                "{case}: {again} of {filled} records: {:?} {:?}",
                db.stats().space,
                tree.lsm_stats()
            );
        }
        let found = tree.iter().unwrap().inspect(|record| assert!(record.is_ok(), "{case}")).count();
        assert_eq!(found, keys.len() + again, "{case}");
        db.check().unwrap();
    }
}

/// Flushes that make room in several children side by side need more than a full device has. Removes that
/// wait for one that waits for room wait for ever.
#[test]
fn removes_go_on_in_a_full_be_tree_whose_flushes_have_little_room() {
    let _kind = trees_of(IndexKind::BeTree);
    let (device, mut model) = (device(64), Model::new());
    let db = on(&device, 16 << 20).create().unwrap();
    let (tree, mut random) = (db.tree("t").unwrap(), Pcg64::seed_from_u64(2));
    for _ in 0..3 {
        let refused =
            (0..).find_map(|_| put(&tree, &mut model, random.random(), vec![7; 100]).err()).unwrap();
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    }
    let gone: Vec<u32> = model.keys().step_by(2).copied().collect();
    for key in gone {
        tree.remove(key.to_be_bytes()).unwrap();
        model.remove(&key);
    }
    // Their messages make room once they are in leaves.
    for key in 0..model.len() as u32 / 2 {
        let is_in = (0..50).any(|_| put(&tree, &mut model, key, vec![8; 100]).is_ok());
        assert!(is_in, "{key}: {:?}", db.stats().space);
    }
    check(&tree, &model);
}

/// Rounds of [`overflow_values_leave_room_for_removes`].
fn rounds() -> u64 {
    std::env::var("FULL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3)
}

/// Has one thing done with a store that is opened for it, as a command line does.
fn once<T>(device: &Arc<dyn Device>, act: impl FnOnce(&Db, &Tree) -> T) -> T {
    let db = on(device, 16 << 20).open().unwrap();
    let tree = db.existing_tree("t").unwrap();
    let result = act(&db, &tree);
    let stats = db.stats();
    drop(tree);
    db.close().unwrap_or_else(|error| panic!("{error}: {stats:?}"));
    result
}

/// They are written before their commit, and by one process after the other, each of which opens segments of
/// its own.
#[test]
fn overflow_values_leave_room_for_removes() {
    for (kind, least_percent) in LEAST_PERCENT {
        let _kind = trees_of(kind);
        println!("{kind:?}");
        overflow_values_leave_room(least_percent);
    }
}

fn overflow_values_leave_room(least_percent: u64) {
    for seed in 0..rounds() {
        let device = device(64);
        let mut random = Pcg64::seed_from_u64(seed);
        let db = on(&device, 16 << 20).log_bytes(1 << 20).create().unwrap();
        drop(db.tree("t").unwrap());
        db.close().unwrap();
        let mut model = Model::new();
        // Those of 150 KiB do not fit into a write unit twice, so no cleaning wins anything.
        let kibibytes = [2048..=2048, 100..=5000, 150..=150, 600..=600, 20..=900, 100..=2000];
        let (shortest, longest) = kibibytes[seed as usize % kibibytes.len()].clone().into_inner();
        let lengths = (shortest << 10)..=(longest << 10);
        let mut next = 0;
        for turn in 0..3 {
            loop {
                let value = vec![next as u8; random.random_range(lengths.clone())];
                let result = once(&device, |_, tree| put(tree, &mut model, next, value));
                next += 1;
                match result {
                    Ok(()) => assert!(next < 10_000, "more than the device holds"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Full, "seed {seed}: {error}");
                        break;
                    }
                }
            }
            let live: usize = model.values().map(Vec::len).sum();
            assert!(
                live > (64 << 20) * least_percent as usize / 100,
                "seed {seed}, turn {turn}: full with {live} bytes"
            );
            once(&device, |_, tree| check(tree, &model));
            let keys: Vec<u32> = model.keys().copied().step_by(2).collect();
            for key in keys {
                once(&device, |db, tree| {
                    tree.remove(key.to_be_bytes())
                        .unwrap_or_else(|error| panic!("seed {seed}: {error}: {:?}", db.stats()));
                });
                model.remove(&key);
            }
        }
        once(&device, |db, tree| {
            check(tree, &model);
            db.check().unwrap()
        });
    }
}

/// Each overflow value is written alone, so that much of its unit stays empty; the cleaner wins that back,
/// like garbage.
#[test]
fn values_that_are_inserted_singly_fill_as_much_of_a_device_as_many_at_a_time() {
    // How far an LSM-tree gets depends on which merges have ended when it asks for room.
    for (kind, least_percent, margin_percent) in [(IndexKind::BTree, 70, 2), (IndexKind::Lsm, 55, 15)] {
        let _kind = trees_of(kind);
        values_fill_as_much(least_percent, margin_percent);
    }
}

fn values_fill_as_much(least_percent: u64, margin_percent: u64) {
    let filled_percent = |batch: u32| {
        let db = on(&device(64), 16 << 20).durability(Durability::None).create().unwrap();
        let tree = db.tree("t").unwrap();
        let mut count = 0;
        loop {
            let mut writes = db.batch();
            (count..count + batch)
                .for_each(|key| writes.insert(&tree, key.to_be_bytes(), [1; 1000]).unwrap());
            match writes.commit() {
                Ok(()) => count += batch,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    return u64::from(count) * 1004 * 100 / (64 << 20);
                }
            }
        }
    };
    let (singly, together) = (filled_percent(1), filled_percent(200));
    let is_as_much = singly + margin_percent >= together && singly >= least_percent;
    assert!(is_as_much, "{singly} % singly, {together} % together");
}
