//! Devices with little room: nothing fails before they are full, and then only what grows.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashgrain::{Builder, Db, Durability, Error, ErrorKind, Tree};
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
        assert!(key == model_key.to_be_bytes() && value == model_value.as_slice(), "{model_key}");
    }
    assert!(expected.next().is_none());
}

/// A megabyte that is written again and again, with checkpoints and a fresh start now and then.
#[test]
fn few_records_are_changed_on_a_small_device_for_ever() {
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
                live as u64 > (mebibytes << 20) * 2 / 5,
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
