//! `flashgrain db`: stores made, filled and looked into from the command line.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{contents, fails, flashgrain, folder, signal, stderr, stdout};

/// A test that waits for longer fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a new store in `store`.
pub fn store() -> TempDir {
    let folder = folder();
    db(&folder, "create store --log-size 1MiB");
    folder
}

pub fn command(folder: &TempDir, arguments: &str) -> assert_cmd::Command {
    let mut command = flashgrain();
    command.current_dir(folder).timeout(PATIENCE).arg("db").args(arguments.split(' '));
    command
}

/// Output of a command that succeeds.
#[track_caller]
pub fn db(folder: &TempDir, arguments: &str) -> String {
    stdout(&command(folder, arguments).assert().success())
}

#[test]
fn records_go_in_come_out_and_go() {
    let folder = store();
    for (key, value) in [("apple", "red"), ("banana", "yellow"), ("cherry", "red"), ("blueberry", "blue")] {
        assert_eq!(db(&folder, &format!("put store {key} {value}")), "");
    }
    assert_eq!(db(&folder, "get store banana"), "yellow\n");
    assert_eq!(db(&folder, "scan store"), "apple\tred\nbanana\tyellow\nblueberry\tblue\ncherry\tred\n");
    assert_eq!(db(&folder, "scan store --prefix b --keys-only"), "banana\nblueberry\n");
    assert_eq!(db(&folder, "scan store --from banana --to cherry --reverse --limit 1"), "blueberry\tblue\n");
    assert_eq!(db(&folder, "del store banana"), "");
    fails(&mut command(&folder, "get store banana"), 1, &["no key `banana`", "`default`"]);
    let check = db(&folder, "check store");
    assert!(check.contains("sound: 1 tree, 3 records"), "{check}");
}

#[test]
fn lines_are_loaded_in_any_order_and_a_backup_is_a_store() {
    let folder = store();
    db(&folder, "put store melon old");
    let lines = "melon\tgreen\napple\tred\nfig\t\napple\ta\ttab\n";
    let loaded = stdout(&command(&folder, "load store").write_stdin(lines).assert().success());
    assert_eq!(loaded, "loaded 4 lines into the tree `default`\n");
    let expected = "apple\ta\\ttab\nfig\t\nmelon\tgreen\n";
    assert_eq!(db(&folder, "scan store"), expected);
    let hex = db(&folder, "scan store --hex");
    std::fs::write(folder.path().join("lines"), hex).unwrap();
    db(&folder, "load store lines --hex --tree other");
    assert_eq!(db(&folder, "scan store --tree other"), expected);
    std::fs::write(folder.path().join("lines"), "a\tb\nno tab\n").unwrap();
    fails(
        &mut command(&folder, "load store lines"),
        2,
        &["line 2", "a tab and a value", "no record was loaded"],
    );

    for place in ["store", "./store/."] {
        let mut command = command(&folder, &format!("backup store {place}"));
        fails(&mut command, 2, &["is the store that is to be copied", "another place"]);
    }
    let copied = db(&folder, "backup store copy");
    assert!(copied.starts_with("copied 2 trees, 6 records"), "{copied}");
    db(&folder, "del store fig");
    fails(
        &mut command(&folder, "backup store copy"),
        1,
        &["copy", "is there already: if it is a store, open it"],
    );
    // Restored by copying.
    std::fs::create_dir(folder.path().join("restored")).unwrap();
    let file = |place: &str| folder.path().join(place).join("data.flashgrain");
    std::fs::copy(file("copy"), file("restored")).unwrap();
    for place in ["copy", "restored"] {
        assert_eq!(db(&folder, &format!("scan {place}")), expected);
        assert!(db(&folder, &format!("check {place}")).contains("sound: 2 trees, 6 records"));
    }
}

#[test]
fn values_come_from_files_and_standard_input_and_any_bytes_survive() {
    let folder = store();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    std::fs::write(folder.path().join("file"), &bytes).unwrap();
    db(&folder, "put store from-file --value-file file");
    command(&folder, "put store from-stdin -").write_stdin(bytes.clone()).assert().success();
    for key in ["from-file", "from-stdin"] {
        db(&folder, &format!("get store {key} --output back"));
        assert!(std::fs::read(folder.path().join("back")).unwrap() == bytes);
    }
    db(&folder, "put store 00ff 0a0b --hex");
    assert_eq!(db(&folder, "get store 00ff --hex"), "0a0b\n");
    assert_eq!(db(&folder, "scan store --limit 1"), "\\x00\\xff\t\\n\\x0b\n");
    fails(&mut command(&folder, "put store 0g 00 --hex"), 2, &["two hexadecimal digits per byte"]);
    fails(&mut command(&folder, "put store key"), 2, &["VALUE"]);
}

#[test]
fn json_is_one_object_per_record_or_one_in_all() {
    let folder = store();
    db(&folder, "put store a 1 --tree numbers");
    db(&folder, "put store b 2 --tree numbers");
    let lines = db(&folder, "scan store --tree numbers --json");
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        records,
        [serde_json::json!({"key": "a", "value": "1"}), serde_json::json!({"key": "b", "value": "2"})]
    );
    let stats: Value = serde_json::from_str(&db(&folder, "stats store --json")).unwrap();
    assert_eq!(stats["trees"][0]["name"], "numbers");
    assert!(stats["stats"]["space"]["segments"].as_u64().unwrap() > 0);
    let check: Value = serde_json::from_str(&db(&folder, "check store --json")).unwrap();
    assert_eq!(check["records"], 2);
}

#[test]
fn the_layout_is_explained_when_a_store_is_made() {
    let folder = folder();
    let said = db(&folder, "create store --node-size 16KiB --log-size 1MiB");
    for text in ["write unit", "default: there is no profile", "16 KiB", "set by hand", "fdatasync"] {
        assert!(said.contains(text), "{text} in\n{said}");
    }
    let decisions: Vec<Value> =
        serde_json::from_str(&db(&folder, "create other --json --log-size 1MiB")).unwrap();
    assert!(decisions.iter().all(|one| !one["because"].as_str().unwrap().is_empty()));
}

#[test]
fn a_striped_store_is_named_with_commas() {
    let folder = folder();
    db(&folder, "create one,two --log three --log-size 1MiB");
    db(&folder, "put one,two key value --log three");
    assert_eq!(db(&folder, "get two,one key --log three"), "value\n");
    fails(&mut command(&folder, "get one key --log three"), 1, &["2 members, 1 of them"]);
    fails(&mut command(&folder, "get one,two key"), 1, &["log"]);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_touched() {
    let folder = store();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/letter"), "dear").unwrap();
    fails(&mut command(&folder, "create mine"), 1, &["not empty"]);
    fails(&mut command(&folder, "create store"), 1, &["is there already: if it is a store, open it"]);
    fails(&mut command(&folder, "get mine key"), 1, &["not a Flashgrain store"]);
    fails(&mut command(&folder, "get nowhere key"), 1, &["not a Flashgrain store", "nowhere"]);
    fails(&mut command(&folder, "get store key --tree none"), 1, &["no tree `none`"]);
    fails(&mut command(&folder, "get store key --cache 1KiB"), 2, &["too small", "at least"]);
    fails(&mut command(&folder, "create other --node-size 5000"), 2, &["a power of two"]);
    assert!(!folder.path().join("other").exists());
    assert_eq!(contents(&folder.path().join("mine")).len(), 1);
    let long = "k".repeat(2000);
    fails(&mut command(&folder, &format!("put store {long} v")), 2, &["2000 bytes", "1 to"]);
}

#[test]
fn damage_is_found_and_named() {
    let folder = store();
    for key in 0..50 {
        db(&folder, &format!("put store key{key} {}", "value".repeat(100)));
    }
    flip_where(&folder.path().join("store/data.flashgrain"), b"valuevalue");
    db(&folder, "put store a b --tree other");
    let mut check = command(&folder, "check store");
    fails(&mut check, 1, &["is damaged: expected", "byte"]);
    let listed = String::from_utf8(check.output().unwrap().stdout).unwrap();
    assert!(
        listed.contains("damaged  default: ") && listed.contains("sound    other, 1 record\n"),
        "{listed}"
    );
    let mut copy = command(&folder, "backup store copy");
    fails(&mut copy, 1, &["is damaged: expected"]);
    db(&folder, "backup store copy --tree other");
    db(&folder, "check copy");
}

/// Flips a bit in every 4 KiB of a file in which `text` stands.
fn flip_where(path: &Path, text: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    let mut block = vec![0; 4096];
    for offset in (0..length).step_by(block.len()) {
        file.read_exact_at(&mut block, offset).unwrap();
        if let Some(at) = block.windows(text.len()).position(|window| window == text) {
            file.write_all_at(&[block[at] ^ 1], offset + at as u64).unwrap();
        }
    }
}

/// The signals that a process catches, as bits.
fn caught(child: &std::process::Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(line.trim(), 16).unwrap_or(0)
}

#[test]
fn a_load_that_waits_for_its_input_ends_at_once_when_it_is_asked_to() {
    for (name, number, code) in [("INT", 2, 130), ("TERM", 15, 143)] {
        let folder = store();
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_flashgrain"))
            .args(["db", "load", "store"])
            .current_dir(&folder)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"a\t1\nb\t2\n").unwrap();
        while caught(&child) & (1 << (number - 1)) == 0 {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        signal(&child, name);
        // Its input is still open.
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("ending: ") && said.contains("no record was loaded"), "{said}");
        drop(input);
        assert_eq!(db(&folder, "trees store").lines().count(), 1);
    }
}

/// Pieces are of 64 MiB, a record counting for 64 bytes more than it has.
#[test]
fn a_load_that_fails_says_which_records_there_are_and_goes_on_from_there() {
    const RECORDS: u32 = 1_000_000;
    let folder = store();
    let line = |number: u32| format!("{}\t\n", number.wrapping_mul(2_654_435_761));
    let mut lines: String = (0..RECORDS).map(line).collect();
    lines.push_str("no tab\nlast\t\n");
    let path = folder.path().join("lines");
    std::fs::write(&path, &lines).unwrap();
    let wrong = format!("line {}", RECORDS + 1);
    let mut command = command(&folder, "load store lines --kind lsm");
    let said = stderr(&command.assert().code(2));
    assert!(said.contains(&wrong) && said.contains("stay there, and none after them"), "{said}");
    assert!(said.contains("without the kind of the tree"), "{said}");
    let (_, skip) = said.split_once("--skip ").unwrap();
    let skip: u32 = skip.split('`').next().unwrap().parse().unwrap();
    assert!(skip > 0 && skip < RECORDS, "{said}");
    assert!(said.contains(&format!("the first {skip} records were loaded")), "{said}");
    let check = |records: u32| {
        let check: Value = serde_json::from_str(&db(&folder, "check store --json")).unwrap();
        assert_eq!(check["records"], records);
    };
    check(skip);
    std::fs::write(&path, lines.replace("no tab\n", "first\t\n")).unwrap();
    let loaded = db(&folder, &format!("load store lines --skip {skip}"));
    assert_eq!(loaded, format!("loaded {} lines into the tree `default`\n", RECORDS + 2 - skip));
    check(RECORDS + 2);
}

#[test]
fn records_are_counted_as_users_count_them_and_versions_apart() {
    let folder = store();
    for kind in ["btree", "lsm", "be-tree"] {
        db(&folder, &format!("create-tree store {kind} --kind {kind}"));
        for round in 0..3 {
            let lines: String = (0..100).map(|key| format!("k{key}\t{round}\n")).collect();
            command(&folder, &format!("load store --tree {kind}")).write_stdin(lines).assert().success();
        }
        db(&folder, &format!("del store --tree {kind} k7"));
    }
    let check: Value = serde_json::from_str(&db(&folder, "check store --json")).unwrap();
    assert_eq!(check["records"], 297);
    let (text, versions) = (db(&folder, "check store"), check["versions"].as_u64().unwrap());
    assert!(versions >= 297);
    let said = format!("3 trees, 297 records, kept as {versions} versions or messages, in");
    assert!(versions == 297 || text.contains(&said), "{text}");
    for tree in db(&folder, "trees store").lines().skip(1) {
        assert!(tree.contains("  99  "), "{tree}");
    }
}
