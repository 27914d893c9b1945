//! Values that do not fit into a node.

use std::sync::Arc;
use std::time::Duration;

use flashgrain::{Db, Durability, ErrorKind, IndexKind, Readable, TreeOptions};
use flashgrain_device::{Device, MemoryDevice};

fn value(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

const LENGTHS: [usize; 7] = [0, 900, 1_100, 5_000, 70_000, 1_000_000, 3_333_333];

fn device() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(256 << 20, 256 << 20).unwrap())
}

fn create(device: &Arc<dyn Device>) -> Db {
    let builder = Db::builder().device(Arc::clone(device)).cache_bytes(32 << 20).workers(1);
    builder.node_bytes(4096).create().unwrap()
}

fn open(device: &Arc<dyn Device>) -> Db {
    Db::builder().device(Arc::clone(device)).cache_bytes(32 << 20).workers(1).open().unwrap()
}

#[test]
fn values_of_any_length_come_back_now_in_snapshots_and_after_reopening() {
    let device = device();
    let db = create(&device);
    let tree = db.tree("t").unwrap();
    let mut batch = db.batch();
    for length in LENGTHS {
        batch.insert(&tree, format!("{length:08}"), value(length, 1)).unwrap();
    }
    batch.commit().unwrap();
    let snapshot = db.snapshot().unwrap();
    for length in LENGTHS {
        tree.insert(format!("{length:08}"), value(length / 2, 2)).unwrap();
    }
    tree.remove("03333333").unwrap();
    for length in LENGTHS {
        let key = format!("{length:08}");
        assert!(snapshot.get(&tree, &key).unwrap().unwrap() == value(length, 1), "{length} in the snapshot");
        let now = tree.get(&key).unwrap();
        let expected = (length != 3_333_333).then(|| value(length / 2, 2));
        assert!(now.as_deref() == expected.as_deref(), "{length} now");
    }
    drop(snapshot);
    // Once from the log, once from pages.
    drop((tree, db));
    for closes in [false, true, false] {
        let db = open(&device);
        let tree = db.existing_tree("t").unwrap();
        let all: Vec<_> = tree.iter().unwrap().map(|record| record.unwrap()).collect();
        assert_eq!(all.len(), LENGTHS.len() - 1);
        for ((key, found), length) in all.iter().zip(LENGTHS) {
            assert!(*key == format!("{length:08}") && *found == value(length / 2, 2), "{length} reopened");
        }
        if closes {
            drop(tree);
            db.close().unwrap();
        }
    }
}

#[test]
fn a_refused_commit_leaves_nothing_of_its_overflow_values() {
    let device = device();
    let db = create(&device);
    let tree = db.tree("t").unwrap();
    for round in 0..90_u32 {
        let mut transaction = db.begin().unwrap();
        transaction.set_durability(Durability::Buffered);
        transaction.insert(&tree, "key", value(3 << 20, round as u8)).unwrap();
        tree.insert("key", "small").unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        // Otherwise the device were full of them.
    }
    assert_eq!(tree.get("key").unwrap().unwrap(), "small");
}

/// It took the pages of values that were written, and not yet committed, if their writers came just after it
/// had looked for some. Closing gave up no old versions, so that the pages of large ones stayed for good.
#[test]
fn regression_a_closed_store_has_no_pages_of_old_versions() {
    let device = device();
    let db = create(&device);
    let tree = db.tree("t").unwrap();
    tree.insert("key", value(70_000, 1)).unwrap();
    let snapshot = db.snapshot().unwrap();
    tree.insert("key", value(80_000, 2)).unwrap();
    drop(snapshot);
    drop(tree);
    db.close().unwrap();
    let db = open(&device);
    assert_eq!(db.reclaim().unwrap(), Some(0));
    assert_eq!(db.tree("t").unwrap().get("key").unwrap().unwrap(), value(80_000, 2));
}

#[test]
fn regression_pages_of_a_value_that_is_being_written_are_not_reclaimed() {
    const VALUES: u32 = 3000;
    let device = device();
    let db = create(&device);
    let tree = db.tree("t").unwrap();
    let writer = {
        let (db, tree) = (db.clone(), tree.clone());
        std::thread::spawn(move || {
            for key in 0..VALUES {
                tree.insert(key.to_be_bytes(), value(9000, key as u8)).unwrap();
                db.sleep_until(db.now() + Duration::from_micros(u64::from(key % 7) * 50)).unwrap();
            }
        })
    };
    while !writer.is_finished() {
        db.reclaim().unwrap();
    }
    writer.join().unwrap();
    for key in 0..VALUES {
        assert_eq!(tree.get(key.to_be_bytes()).unwrap().unwrap(), value(9000, key as u8), "value {key}");
    }
    db.check().unwrap();
}

/// Who reads without a snapshot may find the pages of a value gone that was replaced meanwhile.
#[test]
fn a_value_that_is_replaced_while_it_is_read_is_read_as_a_whole() {
    let device = device();
    let db = Db::builder().device(device).cache_bytes(16 << 20).workers(2).create().unwrap();
    let tree = db.tree("t").unwrap();
    tree.insert("k", value(200_000, 0)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..600_u32 {
                tree.insert("k", value(200_000 + round as usize % 7, round as u8)).unwrap();
                if round % 50 == 0 {
                    db.checkpoint().unwrap();
                }
            }
        });
        while !writer.is_finished() {
            let found = tree.get("k").unwrap().unwrap();
            assert!(found == value(found.len(), found[0]), "a value in part");
        }
    });
}

/// Each was freed by a task of its own, whose stacks were more than a process may map.
#[test]
fn regression_very_many_overflow_values_are_given_up_at_once() {
    let device = Arc::new(MemoryDevice::new(512 << 20, 512 << 20).unwrap());
    let db = Db::builder().device(device).node_bytes(4096).cache_bytes(32 << 20).create().unwrap();
    let tree = db.tree("t").unwrap();
    for first in (0..80_000_u32).step_by(4000) {
        let mut batch = db.batch();
        (first..first + 4000).for_each(|key| batch.insert(&tree, key.to_be_bytes(), [7; 1100]).unwrap());
        batch.commit().unwrap();
    }
    assert!(db.check().unwrap().overflow_values > 0, "they have pages of their own");
    let snapshot = db.snapshot().unwrap();
    tree.remove_range::<&[u8]>(..).unwrap();
    // Nobody sees them from now on.
    drop(snapshot);
    tree.insert("another", "commit").unwrap();
    db.close().unwrap();
}

/// Pages without an owner in a store that was closed while an iterator could see overflow values that have
/// been replaced since.
fn leaked_under_a_reader(kind: IndexKind) -> u64 {
    let device = device();
    let db = create(&device);
    let tree = db.tree_with("t", &TreeOptions::new().kind(kind)).unwrap();
    let fill = |seed| {
        (0..20_u8).for_each(|key| tree.insert([key], value(20_000, seed)).unwrap());
        db.checkpoint().unwrap();
        db.compact().unwrap();
    };
    fill(1);
    let mut reader = tree.iter().unwrap();
    reader.next().unwrap().unwrap();
    fill(2);
    db.clone().close().unwrap();
    let goes_on = reader.find_map(Result::err);
    assert_eq!(goes_on.map(|error| error.kind()), Some(ErrorKind::Closed));
    drop((reader, tree, db));
    let db = open(&device);
    let leaked = loop {
        match db.reclaim().unwrap() {
            Some(pages) => break pages,
            None => db.checkpoint().unwrap(),
        }
    };
    assert_eq!(db.existing_tree("t").unwrap().get([7]).unwrap().unwrap(), value(20_000, 2));
    leaked
}

#[test]
fn closing_leaks_no_value_that_is_still_read() {
    let kinds = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];
    assert_eq!(kinds.map(leaked_under_a_reader), [0; 3]);
}

/// Its reader holds on to it beyond the commit that replaces it.
#[test]
fn regression_closing_leaks_no_replaced_value_that_its_own_transaction_reads() {
    let device = device();
    let db = create(&device);
    let tree = db.tree("t").unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert_from(&tree, "key", &value(70_000, 1)[..]).unwrap();
    let reader = transaction.reader(&tree, "key").unwrap().unwrap();
    transaction.commit().unwrap();
    tree.insert("key", "small").unwrap();
    db.close().unwrap();
    drop((reader, tree));
    assert_eq!(open(&device).reclaim().unwrap(), Some(0));
}
