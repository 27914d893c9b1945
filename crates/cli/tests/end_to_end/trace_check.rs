//! `flashgrain trace check`: what people and programs are told of a trace.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, is_installed, stdout};

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

/// Writes to a database in WAL mode and to its log, of which all break rules.
fn writes_to(database: &str) -> String {
    let mut trace = format!("1 0.1 openat(AT_FDCWD, \"{database}\", O_RDWR) = 3\n");
    trace += &format!("1 0.1 openat(AT_FDCWD, \"{database}-wal\", O_RDWR) = 4\n");
    for at in [4096, 12_288] {
        trace += &format!("1 0.2 pwrite64(3, \"\"..., 4096, {at}) = 4096\n");
        trace += &format!("1 0.2 pwrite64(4, \"\"..., 4096, {}) = 4096\n", at + 24);
    }
    trace
}

/// The output of a shell that knows this program.
fn shell(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_flashgrain")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("rror"), "{command}: {said}{errors}");
    said
}

#[test]
fn remedies_run_as_they_stand_and_have_the_page_size_of_the_advice() {
    if !is_installed("sqlite3") {
        return;
    }
    let folder = folder();
    let printed = ["advise", "--workload", "ycsb-e", "--memory", "256MiB", "--print-workload"];
    let workload = stdout(&flashgrain().args(printed).assert().success());
    // One client alone waits for no lock, so that the size of its pages is worth advice.
    let workload = workload.replace("clients = 32", "clients = 1");
    fs::write(folder.path().join("mine.toml"), workload).unwrap();
    let database = folder.path().join("my orders.db").display().to_string();
    let remade = format!(
        "rm -f '{database}'; sqlite3 '{database}' 'PRAGMA journal_mode = WAL' 'CREATE TABLE t(v)' 'INSERT INTO t VALUES(1)'"
    );
    fs::write(folder.path().join("trace"), writes_to(&database)).unwrap();
    let with = ["--profile", PROFILE, "--workload", "mine.toml"];
    let check = ["trace", "check", "trace", "--json"];
    let mut command = flashgrain();
    command.current_dir(&folder).args(check).args(with);
    let report: Value = serde_json::from_str(&stdout(&command.assert().success())).unwrap();
    let run = |kind: &str| {
        shell(&remade, folder.path());
        let kinds = report["kinds"].as_array().unwrap();
        let of_kind = kinds.iter().find(|of| of["kind"] == kind).unwrap();
        for mending in of_kind["mending"].as_array().unwrap() {
            let commands = mending["commands"].as_array().unwrap();
            assert!(!commands.is_empty(), "{mending}");
            commands.iter().for_each(|command| drop(shell(command.as_str().unwrap(), folder.path())));
        }
    };
    run("sqlite_database");
    let shown =
        shell(&format!("sqlite3 '{database}' 'PRAGMA page_size' 'PRAGMA journal_mode'"), folder.path());
    let mut advise = flashgrain();
    advise.current_dir(&folder).args(["advise", "--for", "sqlite"]).args(with);
    let advised = stdout(&advise.assert().success());
    let page_size = shown.lines().next().unwrap();
    assert_ne!(page_size, "4096");
    assert!(advised.contains(&format!("PRAGMA page_size = {page_size};")), "{shown}: {advised}");
    assert!(shown.ends_with("wal\n") && advised.contains("PRAGMA journal_mode = WAL;"), "{shown}");
    run("sqlite_wal");
    let info = shell(&format!("flashgrain vfs info '{database}.flashgrain'"), folder.path());
    assert!(info.contains("hot:65536:32768+log:65536"), "{info}");
    // Where the default stays, no remedy has another size.
    let mut command = flashgrain();
    command.current_dir(&folder).args(check).args(["--profile", PROFILE]);
    let text = stdout(&command.assert().success());
    assert!(text.contains("page_size stays at its default") && !text.contains("PRAGMA page_size"), "{text}");
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
