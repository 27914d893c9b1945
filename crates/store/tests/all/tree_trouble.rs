//! The trouble of one tree is that tree's: damaged pages of it stop its flushes and the replay of its log,
//! and nothing else. The store opens, checks, copies and changes its other trees, and drops the bad one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use flashgrain::{
    BeTreeOptions, Builder, DATA_FILE, Db, Durability, Error, ErrorKind, IndexKind, Tree, TreeOptions,
};
use tempfile::TempDir;

use super::bad_input::folder;

/// Only pages of the bad tree have this, which no compression hides.
const MARK: &[u8; 16] = b"the bad tree's\x01\x02";
const RECORDS: u32 = 2000;

fn on(folder: &TempDir) -> Builder {
    Db::builder().path(folder.path()).cache_bytes(4 << 20).workers(2)
}

fn options(kind: IndexKind) -> TreeOptions {
    TreeOptions::new().kind(kind).be_tree(BeTreeOptions::new().node_bytes(64 << 10).fanout(4))
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(20)
}

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn assert_whole(tree: &Tree, count: u32) {
    let records: Vec<_> = tree.iter().unwrap().map(|record| record.unwrap()).collect();
    assert_eq!(records.len(), count as usize);
    for (number, (found, content)) in (0_u32..).zip(records) {
        assert!(*found == key(number) && *content == value(number), "record {number}");
    }
    assert_eq!(tree.check().unwrap().trees, 1);
}

/// A store of a good tree of each kind and a bad one, all of whose pages with records are damaged.
fn damaged(folder: &TempDir, bad: IndexKind) {
    let db = on(folder).create().unwrap();
    for (name, kind) in [("btree", IndexKind::BTree), ("be-tree", IndexKind::BeTree), ("lsm", IndexKind::Lsm)]
    {
        let good = db.tree_with(name, &options(kind)).unwrap();
        let records = (0..RECORDS).map(|number| (key(number), value(number)));
        good.load(records).unwrap();
    }
    let tree = db.tree_with("bad", &options(bad)).unwrap();
    let marked = |number: u32| [&MARK[..], &number.to_le_bytes()].concat();
    for number in 0..RECORDS {
        tree.insert(key(number), marked(number)).unwrap();
    }
    db.close().unwrap();
    let path = folder.path().join(DATA_FILE);
    let bytes = std::fs::read(&path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let places = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| window == MARK);
    let count = places.map(|(at, _)| file.write_all_at(b"T", at as u64).unwrap()).count();
    assert!(count >= RECORDS as usize, "{count} marks");
}

/// Fills the bad tree until its flushes have failed; the error.
fn refused(db: &Db) -> Error {
    let bad = db.existing_tree("bad").unwrap();
    let written = (0..100_000).map(|number: u32| bad.insert(key(number % RECORDS), vec![7; 900]));
    written.filter_map(Result::err).next().unwrap()
}

/// Values with pages of their own are written before their commit is refused.
fn nothing_is_left_of_refused_values(db: &Db, bad: &Tree) {
    let (long, pages) = (vec![7; 100_000], db.stats().cache.pages);
    assert_eq!(bad.insert(key(0), &long).unwrap_err().kind(), ErrorKind::TreeFailed);
    let mut batch = db.batch();
    batch.insert(&db.existing_tree("btree").unwrap(), key(0), long.clone()).unwrap();
    batch.insert(bad, key(0), long).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::TreeFailed);
    assert_eq!(db.stats().cache.pages, pages);
}

fn others_are_whole(db: &Db, count: u32) {
    for name in ["btree", "be-tree", "lsm"] {
        assert_whole(&db.existing_tree(name).unwrap(), count);
    }
}

#[test]
fn a_be_tree_whose_flushes_fail_takes_no_writes_and_leaves_others_alone() {
    let folder = folder();
    damaged(&folder, IndexKind::BeTree);
    let db = on(&folder).open().unwrap();
    let error = refused(&db);
    assert_eq!(error.kind(), ErrorKind::TreeFailed, "{error}");
    // What came to memory is still read.
    let bad = db.existing_tree("bad").unwrap();
    assert_eq!(bad.get(key(0)).unwrap().as_deref(), Some(&[7; 900][..]));
    assert_eq!(bad.clear_range(key(0)..key(9)).unwrap_err().kind(), ErrorKind::TreeFailed);
    assert_eq!(db.check().unwrap_err().kind(), ErrorKind::Corrupt);
    nothing_is_left_of_refused_values(&db, &bad);
    db.checkpoint().unwrap();
    for name in ["btree", "be-tree", "lsm"] {
        db.existing_tree(name).unwrap().insert(key(RECORDS), value(RECORDS)).unwrap();
    }
    db.sync().unwrap();
    others_are_whole(&db, RECORDS + 1);
    drop(bad);
    db.close().unwrap();
    dropped_and_copied(&folder, RECORDS + 1);
}

#[test]
fn a_store_opens_whose_log_cannot_be_replayed_into_one_tree() {
    for kind in [IndexKind::BeTree, IndexKind::Lsm] {
        let folder = folder();
        damaged(&folder, kind);
        let db = on(&folder).open().unwrap();
        let bad = db.existing_tree("bad").unwrap();
        bad.insert(key(5), "in the log").unwrap();
        db.existing_tree("btree").unwrap().insert(key(RECORDS), value(RECORDS)).unwrap();
        db.existing_tree("be-tree").unwrap().insert(key(RECORDS), value(RECORDS)).unwrap();
        db.existing_tree("lsm").unwrap().insert(key(RECORDS), value(RECORDS)).unwrap();
        drop(bad);
        // As after the end of the process.
        let copy = self::folder();
        super::crashed::copy(folder.path(), copy.path());
        drop(db);
        let db = on(&copy).open().unwrap();
        let bad = db.existing_tree("bad").unwrap();
        assert_eq!(bad.get(key(5)).unwrap_err().kind(), ErrorKind::TreeFailed);
        assert_eq!(bad.insert(key(5), "more").unwrap_err().kind(), ErrorKind::TreeFailed);
        assert_eq!(bad.iter().unwrap().next().unwrap().unwrap_err().kind(), ErrorKind::TreeFailed);
        assert_eq!(bad.check().unwrap_err().kind(), ErrorKind::TreeFailed);
        others_are_whole(&db, RECORDS + 1);
        db.checkpoint().unwrap();
        let others = ["btree", "be-tree", "lsm"].map(|name| db.existing_tree(name).unwrap());
        let target = self::folder();
        assert_eq!(db.backup(on(&target)).unwrap_err().kind(), ErrorKind::TreeFailed);
        db.backup_trees(&others.each_ref(), on(&target)).unwrap();
        others_are_whole(&on(&target).open().unwrap(), RECORDS + 1);
        drop((bad, others));
        db.close().unwrap();
        // The log still has what the tree lacks.
        let db = on(&copy).open().unwrap();
        assert_eq!(db.existing_tree("bad").unwrap().get(key(5)).unwrap_err().kind(), ErrorKind::TreeFailed);
        drop(db);
        dropped_and_copied(&copy, RECORDS + 1);
    }
}

/// The bad tree is dropped, and then the store is as any other.
fn dropped_and_copied(folder: &TempDir, count: u32) {
    let db = on(folder).open().unwrap();
    db.drop_tree("bad").unwrap();
    db.check().unwrap();
    let copy = self::folder();
    db.backup(on(&copy)).unwrap();
    db.close().unwrap();
    let db = on(&copy).open().unwrap();
    others_are_whole(&db, count);
    assert_eq!(db.tree_names(), ["be-tree", "btree", "lsm"]);
    others_are_whole(&on(folder).open().unwrap(), count);
}

/// Checkpoints would lack a part of some commits then, so none is made. A commit that waits for one is told,
/// and keeps the pages of its value: it is made, and durable once the tree is dropped.
#[test]
fn regression_without_a_log_the_trouble_of_a_tree_takes_nothing_but_durability() {
    let folder = folder();
    damaged(&folder, IndexKind::BeTree);
    let db = on(&folder).write_log(false).durability(Durability::None).open().unwrap();
    assert_eq!(refused(&db).kind(), ErrorKind::TreeFailed);
    assert_eq!(db.checkpoint().unwrap_err().kind(), ErrorKind::Corrupt);
    let (btree, long) = (db.existing_tree("btree").unwrap(), vec![9; 100_000]);
    let mut batch = db.batch().durability(Durability::Sync);
    batch.insert(&btree, key(RECORDS), long.clone()).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::NotDurable);
    btree.insert(key(RECORDS + 1), value(1)).unwrap();
    assert_eq!(btree.get(key(RECORDS)).unwrap().as_deref(), Some(&long[..]));
    drop(btree);
    db.drop_tree("bad").unwrap();
    db.close().unwrap();
    let db = on(&folder).open().unwrap();
    assert_eq!(db.existing_tree("btree").unwrap().get(key(RECORDS)).unwrap().as_deref(), Some(&long[..]));
    db.check().unwrap();
}
