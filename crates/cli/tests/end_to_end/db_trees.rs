//! Whole trees and ranges from the command line: out and in again in every form, listed, renamed, removed.

use serde_json::Value;

use crate::db::{command, db, store};
use crate::support::{fails, folder, stderr, stdout};

#[test]
fn what_scan_prints_can_be_loaded_back() {
    let folder = store();
    for (key, value) in
        [("plain", "text"), ("quoted", "a,\"b\""), ("tab\tin key", "C:\\dir\nnext"), ("ümlaut", "")]
    {
        let mut put = command(&folder, "put store --");
        put.args([key, value]).assert().success();
    }
    std::fs::write(folder.path().join("bytes"), [0, 255, b'"', b'\n', b'\\', b',']).unwrap();
    db(&folder, "put store bytes --value-file bytes");
    let expected = db(&folder, "scan store --hex");
    for form in ["text", "json", "csv"] {
        for hex in ["", " --hex"] {
            let printed = command(&folder, &format!("scan store --format {form}{hex}")).assert().success();
            let printed = printed.get_output().stdout.clone();
            let tree = format!("{form}{}", hex.len());
            command(&folder, &format!("load store --tree {tree} --format {form}{hex}"))
                .write_stdin(printed)
                .assert()
                .success();
            assert_eq!(db(&folder, &format!("scan store --hex --tree {tree}")), expected, "{tree}");
        }
    }
    let raw = command(&folder, "load store --raw --tree raw").write_stdin("a\tC:\\dir\n").assert().success();
    drop(raw);
    assert_eq!(db(&folder, "get store a --raw --tree raw"), "C:\\dir");
}

#[test]
fn merges_add_and_append() {
    let folder = store();
    fails(&mut command(&folder, "merge store visits 1 --tree counts"), 1, &["there is no tree `counts`"]);
    db(&folder, "merge store visits 40 --tree counts --operator add");
    db(&folder, "merge store visits 5 --tree counts");
    db(&folder, "merge store visits -3 --tree counts");
    assert_eq!(db(&folder, "get store 766973697473 --tree counts --hex"), "2a00000000000000\n");
    fails(&mut command(&folder, "merge store visits many --tree counts"), 2, &["`many` is no whole number"]);
    db(&folder, "merge store words one --tree texts --operator append");
    db(&folder, "merge store words ,two --tree texts");
    db(&folder, "convert store texts --kind btree");
    db(&folder, "merge store words ,three --tree texts");
    assert_eq!(db(&folder, "get store words --tree texts"), "one,two,three\n");
    db(&folder, "put store key value");
    fails(&mut command(&folder, "merge store key more"), 1, &["has no merge operator"]);
    db(&folder, "check store");
    db(&folder, "backup store copy");
    assert_eq!(db(&folder, "get copy 766973697473 --tree counts --hex"), "2a00000000000000\n");
}

#[test]
fn a_tree_of_any_kind_is_made_with_its_merge_operator() {
    let folder = store();
    for kind in ["btree", "lsm", "be-tree"] {
        db(&folder, &format!("create-tree store {kind} --kind {kind} --merge-operator append"));
        for operand in ["one", ",two"] {
            db(&folder, &format!("merge store words {operand} --tree {kind}"));
        }
        assert_eq!(db(&folder, &format!("get store words --tree {kind}")), "one,two\n");
    }
}

#[test]
fn trees_are_listed_renamed_and_dropped() {
    let folder = store();
    for key in 0..20 {
        db(&folder, &format!("put store key{key} value --tree fruit"));
    }
    db(&folder, "put store key value --tree other");
    let rows: Value = serde_json::from_str(&db(&folder, "trees store --json")).unwrap();
    assert_eq!((&rows[0]["name"], &rows[0]["records"]), (&"fruit".into(), &20.into()));
    assert!(rows[0]["used_bytes"].as_u64().unwrap() >= 20 * 9);
    let table = db(&folder, "trees store");
    assert!(table.contains("records") && table.contains("fruit") && table.contains("20"), "{table}");
    fails(&mut command(&folder, "rename store fruit other"), 1, &["there is a tree of this name"]);
    db(&folder, "rename store fruit food");
    assert_eq!(db(&folder, "get store key7 --tree food"), "value\n");
    db(&folder, "drop store other");
    fails(&mut command(&folder, "get store key --tree other"), 1, &["no tree `other`"]);
    fails(&mut command(&folder, "drop store other"), 1, &["no tree `other`"]);
    assert!(db(&folder, "check store").contains("1 tree, 20 records"));
}

#[test]
fn ranges_are_removed() {
    let folder = store();
    for key in ["a", "b1", "b2", "c", "d"] {
        db(&folder, &format!("put store {key} value"));
    }
    assert_eq!(db(&folder, "del store --prefix b"), "removed 2 records\n");
    assert_eq!(db(&folder, "del store --from c --to d"), "removed 1 record\n");
    assert_eq!(db(&folder, "scan store --keys-only"), "a\nd\n");
    fails(&mut command(&folder, "del store"), 2, &["required"]);
    fails(&mut command(&folder, "del store a --prefix b"), 2, &["cannot be used with"]);
    assert_eq!(db(&folder, "scan store --keys-only"), "a\nd\n");
}

#[test]
fn what_is_refused_leaves_no_empty_tree() {
    let folder = store();
    let long = format!("{}\tvalue\n", "k".repeat(2000));
    for (lines, why) in [
        ("a\tb\nno tab\n", "line 2"),
        ("a\tb\n\tempty\n", "line 2: a key of 0 bytes"),
        (&long, "line 1: a key of 2000"),
    ] {
        let mut load = command(&folder, "load store --tree new");
        load.write_stdin(lines);
        fails(&mut load, 2, &[why]);
    }
    let mut put = command(&folder, "put store --tree new --");
    fails(put.args(["", "value"]), 2, &["a key of 0 bytes"]);
    fails(&mut command(&folder, "get store a --tree new"), 1, &["no tree `new`"]);
    // Of a tree that was there, nothing goes.
    db(&folder, "put store key value");
    fails(command(&folder, "load store").write_stdin("no tab\n"), 2, &["line 1"]);
    assert_eq!(db(&folder, "scan store"), "key\tvalue\n");
}

#[test]
fn commas_in_names_are_not_taken_for_stripes_and_stripes_are_said() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("one,two")).unwrap();
    db(&folder, "create one,two --log-size 1MiB");
    db(&folder, "put one,two key value");
    assert!(folder.path().join("one,two/data.flashgrain").exists() && !folder.path().join("one").exists());
    db(&folder, "create new\\,name --log-size 1MiB");
    assert!(folder.path().join("new,name/data.flashgrain").exists());
    let striped = command(&folder, "create three,four --log-size 1MiB").assert().success();
    let said = stderr(&striped);
    assert!(said.contains("striped over 2 places: three, four"), "{said}");
    assert!(!stdout(&striped).contains("striped over 2 places"));
}

#[test]
fn a_store_is_compacted() {
    let folder = store();
    let file = folder.path().join("store").join("data.flashgrain");
    let bytes = || std::fs::metadata(&file).unwrap().len();
    let small = bytes();
    let lines: String = (0..60_000).map(|key| format!("key{key:06}\t{}\n", "x".repeat(400))).collect();
    command(&folder, "load store --tree old").write_stdin(lines).assert().success();
    db(&folder, "put store key value --tree kept");
    db(&folder, "del store --from key000001 --tree old");
    let large = bytes();
    let said: Value = serde_json::from_str(&db(&folder, "compact store --json")).unwrap();
    assert_eq!((&said["before_bytes"], &said["after_bytes"]), (&large.into(), &bytes().into()));
    assert!(bytes() < large / 2 && bytes() < 2 * small, "{small} {large} {}", bytes());
    assert!(db(&folder, "compact store").contains("live pages"));
    assert_eq!(db(&folder, "get store key --tree kept"), "value\n");
    assert!(db(&folder, "check store").contains("2 trees, 2 records"));
}

#[test]
fn a_tree_is_converted_and_keeps_its_records() {
    let folder = store();
    let lines: String = (0..3000).map(|key| format!("key{key:05}\tvalue {key}\n")).collect();
    let mut load = command(&folder, "load store --tree fruit");
    load.write_stdin(lines).assert().success();
    let before = db(&folder, "scan store --tree fruit");
    let said = db(&folder, "convert store fruit --kind lsm --layout tiered --fanout 5");
    assert_eq!(said, "the tree `fruit` is an LSM-tree of 3000 records now\n");
    assert_eq!(db(&folder, "scan store --tree fruit"), before);
    assert_eq!(db(&folder, "get store key00007 --tree fruit"), "value 7\n");
    let rows: Value = serde_json::from_str(&db(&folder, "trees store --json")).unwrap();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["kind"]), (1, &"LSM-tree".into()));
    let stats: Value = serde_json::from_str(&db(&folder, "stats store --json")).unwrap();
    // A load writes its tables to the level they belong to.
    let levels = stats["trees"][0]["lsm"]["levels"].as_array().unwrap();
    assert_eq!(levels.iter().filter_map(|level| level["records"].as_u64()).sum::<u64>(), 3000, "{stats}");
    let stats = db(&folder, "stats store");
    assert!(stats.contains("LSM-tree  fruit") && stats.contains("level 0"), "{stats}");
    assert!(stats.contains("became tables at once: 1, of") && stats.contains("0 writes"), "{stats}");
    assert!(db(&folder, "check store").contains("1 tree, 3000 records"));
    let explained = db(&folder, "explain store fruit");
    assert!(explained.contains("tiered") && explained.contains("set by hand"), "{explained}");
    db(&folder, "convert store fruit --kind lsm --workload 100,0,0 --compression lz4 --pin-metadata");
    let explained: Value = serde_json::from_str(&db(&folder, "explain store fruit --json")).unwrap();
    assert_eq!(
        (&explained[0]["setting"], &explained[0]["value"]),
        (&"layout of runs".into(), &"lazy leveled".into())
    );
    assert!(explained[0]["because"].as_str().unwrap().starts_with("100 % writes"), "{explained}");
    let is_metadata = |decision: &&Value| decision["setting"] == "filters and fence pointers";
    let metadata = explained.as_array().unwrap().iter().find(is_metadata).unwrap();
    assert_eq!((&metadata["value"], &metadata["because"]), (&"pinned".into(), &"set by hand".into()));
    assert_eq!(db(&folder, "scan store --tree fruit"), before);
    db(&folder, "convert store fruit --kind btree --node-size 16KiB");
    assert!(db(&folder, "explain store fruit").contains("16 KiB"));
    assert_eq!(db(&folder, "scan store --tree fruit --reverse").lines().count(), 3000);
    let rows: Value = serde_json::from_str(&db(&folder, "trees store --json")).unwrap();
    assert_eq!((&rows[0]["kind"], &rows[0]["node_bytes"]), (&"B+-tree".into(), &16384.into()));
}

#[test]
fn what_cannot_be_a_tree_is_refused_and_nothing_changes() {
    let folder = store();
    db(&folder, "put store key value --tree fruit");
    for (options, code, why) in [
        ("convert store fruit", 2, "--kind lsm"),
        ("convert store fruit --fanout 5", 2, "add `--kind lsm`"),
        ("convert store fruit --kind lsm --fanout 1", 2, "a fanout of 1"),
        ("convert store fruit --kind lsm --filter-bits 99", 2, "give 0 to 30"),
        ("convert store fruit --kind lsm --workload 1,2", 2, "three shares"),
        ("convert store fruit --kind lsm --workload observed", 2, "nothing was observed"),
        ("explain store fruit --observed", 2, "nothing was observed"),
        ("convert store nuts --kind lsm", 1, "no tree `nuts`"),
    ] {
        fails(&mut command(&folder, options), code, &[why]);
    }
    // A tree of the name that the new one would have is somebody's.
    db(&folder, "put store apple red --tree fruit.converted");
    let mut convert = command(&folder, "convert store fruit --kind lsm");
    fails(&mut convert, 1, &["there is a tree `fruit.converted`", "db rename"]);
    assert_eq!(db(&folder, "get store apple --tree fruit.converted"), "red\n");
    let mut load = command(&folder, "load store --tree fruit --kind lsm");
    fails(load.write_stdin("a\tb\n"), 2, &["there is a tree `fruit` already"]);
    assert_eq!(db(&folder, "scan store --tree fruit"), "key\tvalue\n");
    let mut load = command(&folder, "load store --tree nuts --kind lsm");
    load.write_stdin("a\tb\n").assert().success();
    assert_eq!(db(&folder, "get store a --tree nuts"), "b\n");
    assert!(db(&folder, "trees store").contains("LSM-tree"));
}

#[test]
fn a_tree_has_nodes_of_as_many_blocks_as_the_drive_serves_at_a_time() {
    let folder = store();
    db(&folder, "create-tree store wide --node-blocks drive");
    let explained = db(&folder, "explain store wide");
    assert!(explained.contains("blocks of a node"), "{explained}");
    let mut wrong = command(&folder, "create-tree store odd --node-blocks 3");
    fails(&mut wrong, 2, &["power of two from 2 to 16"]);
    let mut wrong = command(&folder, "create-tree store odd --kind lsm --node-blocks 4");
    fails(&mut wrong, 2, &["--node-blocks"]);
}

#[test]
fn a_tree_is_converted_to_what_was_observed() {
    let folder = store();
    db(&folder, "create-tree store orders --kind lsm --workload 100,0,0");
    let opened = flashgrain::Db::builder().path(folder.path().join("store")).open().unwrap();
    let orders = opened.existing_tree("orders").unwrap();
    for key in 0..100_u32 {
        orders.insert(key.to_be_bytes(), "value").unwrap();
        (0..20).for_each(|_| assert!(orders.get(key.to_be_bytes()).unwrap().is_some()));
    }
    for _ in 0..900 {
        assert_eq!(orders.iter().unwrap().count(), 100);
    }
    drop(orders);
    opened.close().unwrap();
    let stats = db(&folder, "stats store");
    assert!(stats.contains("  100 writes, 2000 look-ups, 900 scans so far\n"), "{stats}");
    let explained = db(&folder, "explain store orders --observed");
    assert!(explained.starts_with("100 writes, 2000 look-ups, 900 scans so far\n"), "{explained}");
    assert!(explained.contains("lazy leveled, would be leveled"), "{explained}");
    assert!(explained.contains("3.3 % writes, 66.7 % look-ups, 30 % scans"), "{explained}");
    let both: Value = serde_json::from_str(&db(&folder, "explain store orders --observed --json")).unwrap();
    assert_eq!(
        (&both["operations"]["look_ups"], &both["layout"][0]["value"]),
        (&2000.into(), &"lazy leveled".into())
    );
    db(&folder, "convert store orders --kind lsm --workload observed");
    let now: Value = serde_json::from_str(&db(&folder, "explain store orders --json")).unwrap();
    assert_eq!(now[0]["value"], both["observed"][0]["value"]);
    assert_eq!(db(&folder, "scan store --hex --tree orders").lines().count(), 100);
}
