//! Trees that get other names.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flashgrain::{Builder, CpuCosts, Db, ErrorKind, Simulated};
use flashgrain_ssdsim::{SimConfig, SimDevice};

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
    super::crashed::copy(&path, &crashed);
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
fn a_tree_that_takes_the_place_of_another_does_so_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let db = small(&path).create().unwrap();
    let (fruit, new) = (db.tree("fruit").unwrap(), db.tree("new").unwrap());
    fruit.insert("apple", "red").unwrap();
    new.insert("apple", "green").unwrap();
    let refused = |name, by| db.replace_tree(name, by).unwrap_err().kind();
    assert_eq!(refused("fruit", "none"), ErrorKind::NotFound);
    assert_eq!(refused("none", "fruit"), ErrorKind::NotFound);
    assert_eq!(refused("fruit", "fruit"), ErrorKind::Exists);
    db.replace_tree("fruit", "new").unwrap();
    assert!([&fruit, &new].iter().all(|old| old.get("apple").is_err()));
    db.existing_tree("fruit").unwrap().insert("pear", "yellow").unwrap();
    // What a crash would leave: the files as they are now.
    let crashed = folder.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    super::crashed::copy(&path, &crashed);
    drop((fruit, new));
    db.close().unwrap();
    for path in [path, crashed] {
        let db = small(&path).open().unwrap();
        assert_eq!(db.tree_names(), ["fruit"]);
        let fruit = db.existing_tree("fruit").unwrap();
        assert_eq!(fruit.get("apple").unwrap().as_deref(), Some(&b"green"[..]));
        assert_eq!(fruit.iter().unwrap().count(), 2);
        drop(fruit);
        assert_eq!(db.check().unwrap().records, 2);
        db.close().unwrap();
        // It may be freeing the old one at this moment.
        assert_eq!(small(&path).open().unwrap().reclaim().unwrap().unwrap_or(0), 0);
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

/// A commit has pages of its value before the log has its record. Under the old name it began, under the new
/// one it is known.
#[test]
fn nothing_is_reclaimed_from_a_commit_whose_tree_gets_another_name() {
    const ROUNDS: u32 = 60;
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    let drive = Arc::new(SimDevice::new(&config, "sim:905p", 1).unwrap());
    let builder = Db::builder().cache_bytes(1 << 20).workers(1).device(drive);
    let costs = CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE };
    let mut store = Simulated::create(builder, costs).unwrap();
    store.run(|db| db.tree("0").unwrap());
    let writer = |task: u32| {
        move |db: &Db| {
            let mut keys = Vec::new();
            for round in 0..ROUNDS {
                let Some(tree) = db.tree_names().first().and_then(|name| db.existing_tree(name).ok()) else {
                    continue;
                };
                let key = (round * 10 + task).to_be_bytes();
                if tree.insert(key, vec![task as u8; 20_000]).is_ok() {
                    keys.push(key);
                }
            }
            keys
        }
    };
    let writers: Vec<_> = (0..4).map(|task| store.spawn(writer(task))).collect();
    let renames = store.spawn(|db| {
        for number in 0..ROUNDS {
            db.rename_tree(&number.to_string(), &(number + 1).to_string()).unwrap();
            db.reclaim().unwrap();
        }
    });
    store.run_until_idle();
    renames.join().unwrap();
    let keys: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert!(keys.len() > 20, "{} values", keys.len());
    store.run(move |db| {
        let tree = db.existing_tree(&ROUNDS.to_string()).unwrap();
        for key in keys {
            assert_eq!(tree.get(key).unwrap().unwrap().len(), 20_000, "{key:?}");
        }
        db.check().unwrap();
    });
}
