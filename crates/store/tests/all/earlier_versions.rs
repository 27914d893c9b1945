//! Stores that earlier versions of the format left behind.
//!
//! `fixtures/version-3.sparse` was made by the last program that wrote version 3: three trees, one of them
//! dropped, overflow values, a checkpoint, and behind it a log to be replayed; the process was killed then.
//! It is the file's length, and then what is not zero: offset, length and bytes of each stretch.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flashgrain::{DATA_FILE, Db, Tree};

use super::bad_input::folder;

const VERSION_3: &[u8] = include_bytes!("fixtures/version-3.sparse");

fn unpack(mut sparse: &[u8], folder: &Path) {
    let file = File::create(folder.join(DATA_FILE)).unwrap();
    file.set_len(u64::from_le_bytes(*sparse.split_off(..8).unwrap().first_chunk().unwrap())).unwrap();
    while let Some(head) = sparse.split_off(..12) {
        let offset = u64::from_le_bytes(*head.first_chunk().unwrap());
        let length = u32::from_le_bytes(*head[8..].first_chunk().unwrap());
        file.write_all_at(sparse.split_off(..length as usize).unwrap(), offset).unwrap();
    }
}

/// The versions of the superblocks of even and odd generations.
fn versions(folder: &Path) -> [u32; 2] {
    let file = File::open(folder.join(DATA_FILE)).unwrap();
    [0, 64 << 10].map(|at| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at + 12).unwrap();
        u32::from_le_bytes(bytes)
    })
}

fn value(key: u64, round: u64) -> Vec<u8> {
    (0..40 + key % 60).map(|byte| (key * 31 + round * 7 + byte) as u8).collect()
}

fn large(seed: u64) -> Vec<u8> {
    (0..20_000 + seed * 100).map(|byte| ((byte / 64) * (seed + 3)) as u8).collect()
}

/// What the fixture has under this key, in its tree `a`.
fn expected(key: u64) -> Option<Vec<u8>> {
    (!key.is_multiple_of(7)).then(|| value(key, u64::from(key.is_multiple_of(3))))
}

fn check(db: &Db) {
    assert_eq!(db.tree_names(), ["a", "b", "c"]);
    let [a, b, c] = ["a", "b", "c"].map(|name| db.existing_tree(name).unwrap());
    for key in 0..500_u64 {
        assert_eq!(got(&a, key.to_be_bytes()), expected(key), "{key}");
    }
    assert_eq!(count(&a), (0..500).filter_map(expected).count());
    for (key, seed) in [(0_u64, 0), (1, 9), (2, 2)] {
        assert_eq!(got(&b, key.to_be_bytes()), Some(large(seed)), "{key}");
    }
    assert_eq!((count(&b), got(&c, "late")), (3, Some(b"log".to_vec())));
}

fn got(tree: &Tree, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    tree.get(key).unwrap().map(|value| value.to_vec())
}

fn count(tree: &Tree) -> usize {
    tree.iter().unwrap().count()
}

#[test]
fn a_store_of_version_3_is_opened_replayed_written_and_opened_again() {
    let folder = folder();
    unpack(VERSION_3, folder.path());
    let builder = || Db::builder().path(folder.path()).cache_bytes(16 << 20).workers(1);
    check(&builder().open_read_only().unwrap());
    assert_eq!(versions(folder.path()), [3, 3]);
    let db = builder().open().unwrap();
    assert_eq!(versions(folder.path()).iter().max(), Some(&13), "it is opened as one of today's");
    assert!(!db.stats().recovery.was_closed && db.stats().recovery.records > 200);
    check(&db);
    db.tree("new").unwrap().insert("of", "today").unwrap();
    db.existing_tree("a").unwrap().insert(1_000_u64.to_be_bytes(), large(1)).unwrap();
    let log_bytes = db.stats().space.log_bytes;
    db.close().unwrap();
    assert_eq!(versions(folder.path()), [13, 13]);
    let db = builder().open().unwrap();
    assert_eq!(db.stats().space.log_bytes, log_bytes, "what did not grow does not");
    assert!(db.stats().recovery.was_closed);
    assert_eq!(got(&db.existing_tree("new").unwrap(), "of"), Some(b"today".to_vec()));
    let a = db.existing_tree("a").unwrap();
    assert_eq!(got(&a, 1_000_u64.to_be_bytes()), Some(large(1)));
    a.remove(1_000_u64.to_be_bytes()).unwrap();
    db.drop_tree("new").unwrap();
    check(&db);
}
