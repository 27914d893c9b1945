//! Overflow values that come and go piece by piece.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use flashgrain::{CpuCosts, Db, Durability, Error, ErrorKind, Readable, Simulated, Tree, VALUE_BYTES_MAX};

use super::bulk::{drive, on};

/// Bytes from a seed; reads give odd lengths.
struct Bytes {
    seed: u8,
    at: u64,
    length: u64,
}

fn byte(seed: u8, at: u64) -> u8 {
    (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ (at >> 16) as u8 ^ seed
}

fn value(length: u64, seed: u8) -> Vec<u8> {
    (0..length).map(|at| byte(seed, at)).collect()
}

fn source(length: u64, seed: u8) -> Bytes {
    Bytes { seed, at: 0, length }
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = (into.len() as u64).min(self.length - self.at).min(12_345 + self.at % 7) as usize;
        (self.at..).zip(&mut into[..bytes]).for_each(|(at, into)| *into = byte(self.seed, at));
        self.at += bytes as u64;
        Ok(bytes)
    }
}

/// Fails when it was read for a while.
struct Failing(Bytes);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.at > 3 << 20 { Err(io::Error::other("the cable is out")) } else { self.0.read(into) }
    }
}

fn db() -> Db {
    Db::in_memory(16 << 20).unwrap()
}

fn read_all(from: &impl Readable, tree: &Tree, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.reader(tree, key).unwrap().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Pages of the store when what was given up is freed.
fn settled_pages(db: &Db) -> u64 {
    for _ in 0..10_000 {
        if let Some(garbage) = db.reclaim().unwrap() {
            assert_eq!(garbage, 0, "pages without an owner");
            return db.stats().cache.pages;
        }
        db.sleep_until(db.now() + Duration::from_millis(1)).unwrap();
    }
    panic!("the store does not come to rest")
}

/// Waits for pages to be freed in the background.
fn wait_for_pages(db: &Db, expected: u64) {
    for _ in 0..10_000 {
        if settled_pages(db) == expected {
            return;
        }
        db.sleep_until(db.now() + Duration::from_millis(1)).unwrap();
    }
    panic!("{} pages, not {expected}", db.stats().cache.pages);
}

const LENGTHS: [u64; 9] = [0, 1, 900, 5000, 65_480, 65_481, 1 << 20, 1_047_680, 5_000_001];

#[test]
fn values_of_any_length_go_in_and_come_out_piece_by_piece() {
    let db = db();
    let tree = db.tree("t").unwrap();
    for (key, length) in LENGTHS.into_iter().enumerate() {
        assert_eq!(tree.insert_from(key.to_string(), source(length, 1)).unwrap(), length);
        let expected = value(length, 1);
        assert!(tree.get(key.to_string()).unwrap().unwrap() == expected, "{length} at once");
        assert!(read_all(&db, &tree, &key.to_string()) == expected, "{length} in pieces");
        let mut reader = tree.reader(key.to_string()).unwrap().unwrap();
        assert_eq!(reader.length(), length);
        for from in [length, length / 3, length.saturating_sub(7), length / 2, 0, length + 5] {
            let mut piece = vec![0; 70_000];
            assert_eq!(reader.seek(SeekFrom::Start(from)).unwrap(), from);
            let read = reader.by_ref().take(70_000).read(&mut piece).unwrap();
            let start = from.min(length) as usize;
            assert!(piece[..read] == expected[start..start + read], "{length} from {from}");
            assert!(read > 0 || from >= length);
        }
        assert!(reader.seek(SeekFrom::End(-1 - length as i64)).is_err());
    }
    assert!(tree.reader("none").unwrap().is_none());
    db.check().unwrap();
}

#[test]
fn a_reader_goes_on_with_its_value_whatever_becomes_of_it() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let empty = settled_pages(&db);
    tree.insert_from("key", source(3_000_000, 1)).unwrap();
    let mut readers: Vec<_> = (0..3).map(|_| tree.reader("key").unwrap().unwrap()).collect();
    let mut first = [0; 1000];
    readers[0].read_exact(&mut first).unwrap();
    tree.insert_from("key", source(2_000_000, 2)).unwrap();
    assert!(read_all(&db, &tree, "key") == value(2_000_000, 2));
    tree.remove("key").unwrap();
    assert!(tree.reader("key").unwrap().is_none());
    drop(tree);
    db.drop_tree("t").unwrap();
    db.checkpoint().unwrap();
    for (mut reader, read) in readers.into_iter().zip([1000, 0, 0]) {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest == value(3_000_000, 1)[read..]);
    }
    // Trees that were in use when they were dropped are looked after with the next one.
    drop(db.tree("other").unwrap());
    db.drop_tree("other").unwrap();
    // But for the root of the tree.
    wait_for_pages(&db, empty - 1);
}

#[test]
fn a_transaction_reads_what_it_was_given_piece_by_piece() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let empty = settled_pages(&db);
    let expected = value(2_000_000, 1);
    let mut transaction = db.begin().unwrap();
    transaction.insert_from(&tree, "key", source(2_000_000, 1)).unwrap();
    assert!(transaction.get(&tree, "key").unwrap().unwrap() == expected);
    assert!(transaction.contains_key(&tree, "key").unwrap());
    assert!(read_all(&transaction, &tree, "key") == expected);
    assert!(!tree.contains_key("key").unwrap(), "nobody else sees it");
    let (iter, late) = (transaction.iter(&tree).unwrap(), transaction.iter(&tree).unwrap());
    let mut reader = transaction.reader(&tree, "key").unwrap().unwrap();
    transaction.commit().unwrap();
    // Those who read the transaction's own write go on, whatever becomes of it.
    assert!(iter.last().unwrap().unwrap().1 == expected);
    tree.remove("key").unwrap();
    db.checkpoint().unwrap();
    tree.insert_from("other", source(4_000_000, 7)).unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes == expected);
    assert!(late.last().unwrap().unwrap().1 == expected);
    drop(reader);
    tree.remove("other").unwrap();
    wait_for_pages(&db, empty);
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let db = db();
    let tree = db.tree("t").unwrap();
    tree.insert("key", "small").unwrap();
    let empty = settled_pages(&db);
    let mut batch = db.batch();
    batch.insert_from(&tree, "key", source(5_000_000, 1)).unwrap();
    // Others must not take its pages for garbage.
    assert_eq!(db.reclaim().unwrap(), Some(0));
    assert!(db.stats().cache.pages > empty);
    drop(batch);
    wait_for_pages(&db, empty);
    let failed = tree.insert_from("key", Failing(source(5_000_000, 1))).unwrap_err();
    assert!(
        failed.kind() == ErrorKind::Source && failed.to_string().contains("the cable is out"),
        "{failed}"
    );
    wait_for_pages(&db, empty);
    let mut transaction = db.begin().unwrap();
    transaction.insert_from(&tree, "key", source(5_000_000, 1)).unwrap();
    transaction.insert_from(&tree, "key", source(4_000_000, 2)).unwrap();
    transaction.insert_from(&tree, "other", source(4_000_000, 2)).unwrap();
    transaction.rollback();
    transaction.insert_from(&tree, "key", source(5_000_000, 3)).unwrap();
    tree.insert("key", "faster").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    wait_for_pages(&db, empty);
    assert_eq!(tree.get("key").unwrap().unwrap(), "faster");
    let other = db.tree("dropped").unwrap();
    db.drop_tree("dropped").unwrap();
    let refused = other.insert_from("key", source(5_000_000, 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Dropped);
}

#[test]
fn a_removed_value_that_its_transaction_still_reads_is_no_garbage() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert_from(&tree, "key", source(2_000_000, 1)).unwrap();
    let mut reader = transaction.reader(&tree, "key").unwrap().unwrap();
    transaction.commit().unwrap();
    tree.remove("key").unwrap();
    for _ in 0..100 {
        assert_eq!(db.reclaim().unwrap(), None);
        db.sleep_until(db.now() + Duration::from_millis(1)).unwrap();
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes == value(2_000_000, 1));
}

/// Pages of values that are given up while the store looks for garbage were taken for it.
#[test]
fn regression_values_are_given_up_while_garbage_is_looked_for() {
    let db = db();
    let tree = db.tree("t").unwrap();
    tree.insert_from("kept", source(2_000_000, 1)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..3000_u64 {
                let mut batch = db.batch();
                batch.insert_from(&tree, "given up", source(20_000, round as u8)).unwrap();
                drop(batch);
                if round % 200 == 0 {
                    tree.insert_from("replaced", source(1_000_000, (round / 200) as u8)).unwrap();
                    db.checkpoint().unwrap();
                }
            }
        });
        while !writer.is_finished() {
            assert_eq!(db.reclaim().unwrap().unwrap_or(0), 0);
        }
    });
    assert!(read_all(&db, &tree, "kept") == value(2_000_000, 1));
    assert!(read_all(&db, &tree, "replaced") == value(1_000_000, 14));
    db.check().unwrap();
}

#[test]
fn a_value_without_end_is_refused_as_it_grows() {
    // A commit takes an eighth of the log: a value of about 400 MiB at 64 KiB pages.
    let builder =
        Db::builder().device(Arc::new(flashgrain_device::MemoryDevice::new(64 << 20, 64 << 20).unwrap()));
    let db = builder.cache_bytes(8 << 20).workers(1).create().unwrap();
    let tree = db.tree("t").unwrap();
    let refused = tree.insert_from("key", io::repeat(7)).unwrap_err();
    let is_limit = matches!(refused, Error::Full { .. } | Error::BatchLength { .. })
        || matches!(refused, Error::ValueLength { got, .. } if got > VALUE_BYTES_MAX);
    assert!(is_limit, "{refused}");
    tree.insert("key", "goes on").unwrap();
}

/// Its commit was logged over a checkpoint that has nothing of it although it was begun before.
#[test]
fn regression_a_value_that_was_begun_before_a_checkpoint_is_replayed() {
    for ends in [false, true] {
        let device = drive(1);
        let mut store = Simulated::create(on(&device), CpuCosts::default()).unwrap();
        let empty = store.run(|db| {
            drop(db.tree("t").unwrap());
            db.checkpoint().unwrap();
            db.stats().cache.pages
        });
        store.run(move |db| {
            let tree = db.tree("t").unwrap();
            let mut batch = db.batch().durability(Durability::Sync);
            batch.insert_from(&tree, "key", source(300_000, 1)).unwrap();
            db.checkpoint().unwrap();
            batch.insert_from(&tree, "other", source(200_000, 2)).unwrap();
            db.checkpoint().unwrap();
            match ends {
                true => batch.commit().unwrap(),
                // What is not committed is there until the crash.
                false => std::mem::forget(batch),
            }
        });
        store.abandon();
        let mut store = Simulated::open(on(&device), CpuCosts::default()).unwrap();
        store.run(move |db| {
            let tree = db.existing_tree("t").unwrap();
            assert_eq!(
                db.reclaim().unwrap(),
                Some(0),
                "a crash leaves nothing of a value that was not committed"
            );
            if ends {
                assert!(read_all(db, &tree, "key") == value(300_000, 1));
                assert!(read_all(db, &tree, "other") == value(200_000, 2));
            } else {
                assert_eq!((tree.iter().unwrap().count(), db.stats().cache.pages), (0, empty));
            }
            db.check().unwrap();
        });
    }
}

/// Pages were counted as if all were of the largest size, so that a batch of overflow values was refused only
/// at its commit.
#[test]
fn regression_overflow_values_over_the_limit_of_a_batch_are_refused_as_they_are_gathered() {
    let device = flashgrain_device::MemoryDevice::new(128 << 20, 128 << 20).unwrap();
    let builder = Db::builder().device(Arc::new(device)).cache_bytes(8 << 20).workers(1).node_bytes(4096);
    let db = builder.log_bytes(1 << 20).create().unwrap();
    let tree = db.tree("t").unwrap();
    let (mut batch, mut taken) = (db.batch(), 0_u32);
    let refused = loop {
        match batch.insert(&tree, taken.to_be_bytes(), value(1100, 1)) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    let Error::BatchLength { got, limit } = refused else { panic!("{refused}") };
    assert!(got - limit < 100, "{refused}");
    assert!(matches!(batch.insert_from(&tree, "more", source(5000, 1)), Err(Error::BatchLength { .. })));
    batch.insert(&tree, 0_u32.to_be_bytes(), "short").unwrap();
    batch.commit().unwrap();
    assert_eq!(tree.iter().unwrap().count(), taken as usize);
}
