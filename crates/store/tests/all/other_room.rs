//! Trees that a crash leaves in the log alone, made anew where there is less room, or more.

use std::fs;
use std::path::Path;

use flashgrain::{BeTreeOptions, Builder, Db, IndexKind, LsmOptions, LsmWorkload, TreeOptions};

const CACHES_MIB: [u64; 3] = [1, 16, 64];

fn on(folder: &Path, cache_mib: u64) -> Builder {
    Db::builder().path(folder).cache_bytes(cache_mib << 20).workers(1)
}

/// A tree of each kind, with defaults and with all that may be given.
fn options(cache_mib: u64) -> Vec<(String, TreeOptions)> {
    let quarter_bytes = (cache_mib << 20) / 4;
    let lsm = |options| TreeOptions::new().kind(IndexKind::Lsm).lsm(options);
    let be_tree = |options| TreeOptions::new().kind(IndexKind::BeTree).be_tree(options);
    [
        TreeOptions::new(),
        lsm(LsmOptions::new()),
        lsm(LsmOptions::new().memtable_bytes(quarter_bytes)),
        lsm(LsmOptions::new().table_bytes(256 << 20)),
        lsm(LsmOptions::new().workload(LsmWorkload::new(1.0, 0.0, 0.0))),
        be_tree(BeTreeOptions::new()),
        be_tree(BeTreeOptions::new().memtable_bytes(quarter_bytes)),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, options)| (format!("t{number}"), options))
    .collect()
}

fn check(db: &Db, names: &[String]) {
    for name in names {
        let tree = db.existing_tree(name).unwrap();
        assert_eq!(tree.get("key").unwrap().unwrap(), name.as_bytes(), "{name}");
    }
    assert_eq!(db.check().unwrap().records, names.len() as u64);
}

#[test]
fn trees_in_the_log_alone_are_opened_with_any_cache() {
    for made_mib in CACHES_MIB {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let db = on(&at("made"), made_mib).create().unwrap();
        let mut names = Vec::new();
        for (name, options) in options(made_mib) {
            let tree = db.tree_with(&name, &options).unwrap();
            tree.insert("key", name.as_bytes()).unwrap();
            names.push(name);
        }
        for opened_mib in CACHES_MIB {
            let crashed = at(&format!("crashed-{opened_mib}"));
            fs::create_dir(&crashed).unwrap();
            super::crashed::copy(&at("made"), &crashed);
            let db = on(&crashed, opened_mib).open_read_only().unwrap();
            check(&db, &names);
            db.close().unwrap();
            let db = on(&crashed, opened_mib).open().unwrap();
            check(&db, &names);
            let copy = at(&format!("copy-{opened_mib}"));
            db.backup(Db::builder().path(&copy)).unwrap();
            db.close().unwrap();
            let db = on(&copy, opened_mib).open().unwrap();
            check(&db, &names);
            db.close().unwrap();
        }
        db.close().unwrap();
    }
}
