//! Trees that get other names.

use std::fs;
use std::path::Path;

use flashgrain::{Builder, Db, ErrorKind};

fn small(path: &Path) -> Builder {
    Db::builder().path(path).cache_bytes(8 << 20).workers(1).log_bytes(1 << 20)
}

#[test]
fn a_new_name_survives_a_crash_and_old_handles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let db = small(&path).create().unwrap();
    let old = db.tree("old").unwrap();
    old.insert("before", "1").unwrap();
    db.rename_tree("old", "new").unwrap();
    let new = db.existing_tree("new").unwrap();
    new.insert("after", "2").unwrap();
    assert!(old.get("after").is_err() && old.insert("key", "lost?").is_err());
    // What a crash would leave: the files as they are now.
    let crashed = folder.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    fs::copy(path.join(flashgrain::DATA_FILE), crashed.join(flashgrain::DATA_FILE)).unwrap();
    drop((old, new));
    db.close().unwrap();
    for path in [path, crashed] {
        let db = small(&path).open().unwrap();
        assert_eq!(db.tree_names(), ["new"]);
        assert_eq!(db.existing_tree("new").unwrap().iter().unwrap().count(), 2);
        // The old name is free, for another tree.
        assert_eq!(db.tree("old").unwrap().iter().unwrap().count(), 0);
        db.check().unwrap();
        db.drop_tree("new").unwrap();
        db.close().unwrap();
        assert_eq!(small(&path).open().unwrap().tree_names(), ["old"]);
    }
}

#[test]
fn a_renamed_tree_that_is_dropped_keeps_its_pages_for_those_who_read_it() {
    let db = Db::in_memory(8 << 20).unwrap();
    let first = db.tree("first").unwrap();
    (0..3000u32).for_each(|key| first.insert(key.to_be_bytes(), [7; 50]).unwrap());
    let reader = first.iter().unwrap();
    db.rename_tree("first", "second").unwrap();
    db.rename_tree("second", "third").unwrap();
    db.drop_tree("third").unwrap();
    let other = db.tree("other").unwrap();
    (0..3000u32).for_each(|key| other.insert(key.to_be_bytes(), [8; 50]).unwrap());
    assert_eq!(reader.filter(|record| record.as_ref().unwrap().1 == [7; 50]).count(), 3000);
    drop(first);
    db.check().unwrap();
}

#[test]
fn names_that_are_taken_missing_or_none_are_refused() {
    let db = Db::in_memory(8 << 20).unwrap();
    db.tree("one").unwrap().insert("key", "1").unwrap();
    db.tree("two").unwrap();
    for (name, new_name, kind) in [
        ("one", "two", ErrorKind::Exists),
        ("one", "one", ErrorKind::Exists),
        ("none", "three", ErrorKind::NotFound),
        ("one", "", ErrorKind::Argument),
    ] {
        assert_eq!(db.rename_tree(name, new_name).unwrap_err().kind(), kind, "{name} to {new_name}");
    }
    assert_eq!(db.tree("one").unwrap().get("key").unwrap().unwrap(), "1");
}
