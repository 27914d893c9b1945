//! Stores that are opened to be read only.

use std::fs;
use std::path::Path;

use flashgrain::{Builder, DATA_FILE, Db, ErrorKind};

fn small(path: &Path) -> Builder {
    Db::builder().path(path).cache_bytes(8 << 20).workers(1).log_bytes(1 << 20)
}

/// A store that was closed, and one as a crash left it, with a log that has to be replayed; both with the
/// same records.
fn closed_and_crashed(folder: &Path) -> [std::path::PathBuf; 2] {
    let (path, crashed) = (folder.join("closed"), folder.join("crashed"));
    let db = small(&path).create().unwrap();
    let tree = db.tree("t").unwrap();
    (0..2000u32).for_each(|key| tree.insert(key.to_be_bytes(), [7; 100]).unwrap());
    tree.insert("large", vec![8; 300_000]).unwrap();
    fs::create_dir(&crashed).unwrap();
    super::crashed::copy(&path, &crashed);
    drop(tree);
    db.close().unwrap();
    [path, crashed]
}

#[test]
fn reading_changes_no_byte_even_if_a_log_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    for path in closed_and_crashed(folder.path()) {
        let before = fs::read(path.join(DATA_FILE)).unwrap();
        for _ in 0..2 {
            let db = small(&path).open_read_only().unwrap();
            let tree = db.existing_tree("t").unwrap();
            assert_eq!(tree.iter().unwrap().count(), 2001);
            assert_eq!(tree.get("large").unwrap().unwrap(), vec![8; 300_000]);
            assert_eq!(db.check().unwrap().records, 2001);
            drop(tree);
            db.close().unwrap();
        }
        assert!(fs::read(path.join(DATA_FILE)).unwrap() == before, "{} was changed", path.display());
        // It is what it was for those who write, too.
        let db = small(&path).open().unwrap();
        assert_eq!(db.existing_tree("t").unwrap().iter().unwrap().count(), 2001);
        db.close().unwrap();
    }
}

#[test]
fn whatever_would_change_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [path, _] = closed_and_crashed(folder.path());
    let db = small(&path).open_read_only().unwrap();
    let tree = db.existing_tree("t").unwrap();
    let mut batch = db.batch();
    batch.insert(&tree, "key", "value").unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert(&tree, "key", "value").unwrap();
    for refused in [
        tree.insert("key", "value"),
        tree.remove("key"),
        tree.remove_range::<&str>(..).map(drop),
        tree.load([("key", "value")]).map(drop),
        batch.commit(),
        transaction.commit(),
        db.tree("new").map(drop),
        db.drop_tree("t"),
        db.rename_tree("t", "new"),
        db.checkpoint(),
        db.reclaim().map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn readers_share_a_store_and_writers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let [path, _] = closed_and_crashed(folder.path());
    let one = small(&path).open_read_only().unwrap();
    let other = small(&path).open_read_only().unwrap();
    assert_eq!(small(&path).open().unwrap_err().kind(), ErrorKind::Locked);
    // A copy is made by reading.
    assert_eq!(one.backup(small(&folder.path().join("copy"))).unwrap().records, 2001);
    drop((one, other));
    let writer = small(&path).open().unwrap();
    for refused in [small(&path).open_read_only(), small(&path).open()] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        assert!(refused.to_string().contains("this process has this store open already"), "{refused}");
    }
    writer.close().unwrap();
}
