//! `flashgrain trace check`: what people and programs are told of a trace.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stdout};

/// A profile of the paper's SSD-S: hot in the middle of its chunks, flash page undetermined.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures/960evo.json");

/// A log as the paper's Figure 7 has it, and reads of database pages as its Figure 6 has them.
fn sqlite() -> String {
    let mut trace =
        String::from("1 0.000001 openat(AT_FDCWD, \"/d/test.db-wal\", O_RDWR|O_CREAT|O_EXCL) = 3\n");
    trace += "1 0.000002 openat(AT_FDCWD, \"/d/test.db\", O_RDWR) = 4\n";
    for frame in 0..4_u32 {
        let at = 32 + frame * 65560;
        trace += &format!("1 0.00001{frame} pwrite64(3, \"\"..., 24, {at}) = 24 <0.000010>\n");
        trace += &format!("1 0.00001{frame} pwrite64(3, \"\"..., 65536, {}) = 65536 <0.000010>\n", at + 24);
        trace +=
            &format!("1 0.00001{frame} pread64(4, \"\"..., 65536, {}) = 65536 <0.000010>\n", frame * 65536);
    }
    trace + "1 0.000020 fdatasync(3) = 0\n"
}

#[test]
fn a_trace_of_sqlite_breaks_what_the_paper_says() {
    let folder = folder();
    fs::write(folder.path().join("sqlite.strace"), sqlite()).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["trace", "check", "sqlite.strace", "--profile", PROFILE]);
        stdout(&command.args(arguments).assert().success())
    };
    let text = check(&["--endurance", "200TB", "--html", "page.html"]);
    for expected in
        ["Rule 5 skipped: flash_page_bytes is undetermined", "SQLite WAL", "use-hot-locations", "endurance"]
    {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("fig-spread-0") && page.contains("offset within the stripe"));
    // A page is written over an older one, and over nothing else.
    check(&["--html", "page.html"]);
    let mut over = flashgrain();
    over.current_dir(&folder).args(["trace", "check", "sqlite.strace", "--profile", PROFILE]);
    fails(over.args(["--html", "sqlite.strace"]), 1, &["sqlite.strace exists and is no page"]);
    let found: Value = serde_json::from_str(&check(&["--json"])).unwrap();
    assert_eq!(found["requests"], 13);
    let file = |name: &str| {
        let files = found["files"].as_array().unwrap();
        files.iter().find(|file| file["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let log = file("/d/test.db-wal");
    assert_eq!(log["kind"], "sqlite_wal");
    assert_eq!((&log["rules"][0]["broken"], &log["rules"][2]["broken"]), (&4.into(), &8.into()));
    assert_eq!(log["rules"][4], Value::Null);
    let database = file("/d/test.db");
    assert_eq!(database["rules"][1]["broken"], 4);
    assert!(database["rules"][1]["cost_seconds"].as_f64().unwrap() > 0.0, "{database}");
    assert_eq!(found["rules"][0]["skipped"], Value::Null);
    assert!(found["rules"][4]["skipped"].as_str().unwrap().contains("undetermined"));
}

#[test]
fn damaged_foreign_and_missing_traces_are_named() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("foreign", "hello\n");
    write("empty", "");
    write("cut", "flashgrain trace 1\nname 0 /d/f\nW 1 - 0:0 - 512 -\n");
    write("damaged", "fio version 2 iolog\nf write 0 512\nf write x 512\n");
    let refused = |arguments: &[&str], code: i32, texts: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["trace", "check"]);
        fails(command.args(arguments), code, texts);
    };
    let with = |trace| [trace, "--profile", PROFILE];
    refused(&with("foreign"), 1, &["foreign", "no trace that Flashgrain reads"]);
    refused(&with("empty"), 1, &["no trace that Flashgrain reads"]);
    refused(&with("none"), 1, &["none", "No such file"]);
    refused(&with("."), 1, &["Is a directory"]);
    refused(&["cut", "--profile", "none.json"], 1, &["none.json"]);
    refused(&with("cut"), 1, &["cut off after line 3"]);
    refused(&with("damaged"), 1, &["line 3", "f write x 512"]);
    // What came before the damage is told all the same.
    let assert =
        flashgrain().current_dir(&folder).args(["trace", "check"]).args(with("damaged")).assert().failure();
    assert!(stdout(&assert).contains("Not read to its end"));
}
