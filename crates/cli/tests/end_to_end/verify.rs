//! `flashgrain advise --verify`: both sides are run and nothing is left behind, however it ends.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{contents, fails, flashgrain, folder, is_installed, signal, start_until, stdout};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures/960evo.json");

/// A workload that takes seconds.
const TINY: &[&str] = &[
    "advise",
    "--profile",
    PROFILE,
    "--records",
    "2000",
    "--memory",
    "64MiB",
    "--clients",
    "2",
    "--verify",
    ".",
    "--seconds",
    "1",
];

#[test]
fn rocksdb_runs_with_its_defaults_and_as_advised() {
    if !is_installed("db_bench") {
        return;
    }
    let updates = "name = \"updates\"\nmemory_bytes = \"64MiB\"\n[operations]\nupdates = 1.0\n\
                   [records]\ncount = 2000\nkey_bytes = 24\nvalue_bytes = 1000\n";
    let elsewhere = folder();
    let file = elsewhere.path().join("updates.toml");
    fs::write(&file, updates).unwrap();
    let cases = [
        ("ycsb-b", "keys are picked uniformly"),
        ("ycsb-c", "keys are picked uniformly"),
        ("ycsb-e", "inserts run as updates"),
        (file.to_str().unwrap(), "cores is"),
    ];
    for (workload, change) in cases {
        let folder = folder();
        let result = verified("rocksdb", workload, folder.path());
        assert!(result["changes"].to_string().contains(change), "{result}");
        assert!(result["file"].as_str().unwrap().contains("[DBOptions]"), "{result}");
    }
}

/// The result of two rounds, in a folder with a file that must stay the only one.
fn verified(engine: &str, workload: &str, folder: &Path) -> Value {
    fs::write(folder.join("other"), "stays").unwrap();
    let arguments = ["--for", engine, "--rounds", "2", "--json", "--workload", workload];
    let mut command = flashgrain();
    command.current_dir(folder).args(TINY).args(arguments);
    let result: Value = serde_json::from_str(&stdout(&command.assert().success())).unwrap();
    for side in ["default", "advised"] {
        let rounds = result[side]["measured_per_second"]["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        assert!(rounds.iter().all(|rate| rate.as_f64().unwrap() > 0.0), "{result}");
        assert!(result[side]["predicted_per_second"]["value"].as_f64().unwrap() > 0.0, "{result}");
    }
    let median = |side: &str| result[side]["measured_per_second"]["median"].as_f64().unwrap();
    let gain = result["measured_gain"]["median"].as_f64().unwrap();
    assert!((gain - median("advised") / median("default")).abs() < 1e-9, "{result}");
    let left: Vec<String> = contents(folder).into_keys().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    result
}

#[test]
fn sqlite_runs_with_its_defaults_and_as_advised() {
    if !is_installed("sqlite3") {
        return;
    }
    for workload in ["ycsb-a", "ycsb-e"] {
        let folder = folder();
        let result = verified("sqlite", workload, folder.path());
        assert!(result["changes"].to_string().contains("keys are integers"), "{result}");
        assert!(result["file"].as_str().unwrap().contains("PRAGMA journal_mode = WAL"), "{result}");
    }
}

#[test]
fn our_own_store_runs_with_its_defaults_and_as_advised() {
    for workload in ["ycsb-d", "ycsb-e"] {
        let folder = folder();
        let result = verified("flashgrain", workload, folder.path());
        let changes = result["changes"].to_string();
        // What is dropped for other engines is run here.
        assert!(!changes.contains("uniformly") && !changes.contains("inserts"), "{changes}");
        assert!(result["file"].as_str().unwrap().contains("db create"), "{result}");
    }
}

#[test]
fn mariadb_runs_with_its_defaults_and_as_advised() {
    if !is_installed("mariadbd") || !is_installed("sysbench") {
        return;
    }
    for workload in ["ycsb-d", "ycsb-e"] {
        let folder = folder();
        let result = verified("mariadb", workload, folder.path());
        let changes = result["changes"].to_string();
        assert!(!changes.contains("uniformly") && !changes.contains("inserts"), "{changes}");
        assert!(result["file"].as_str().unwrap().contains("innodb_buffer_pool_size"), "{result}");
    }
}

#[test]
#[cfg(feature = "wiredtiger")]
fn wiredtiger_runs_with_its_defaults_and_as_advised() {
    for workload in ["ycsb-d", "ycsb-e"] {
        let folder = folder();
        let result = verified("wiredtiger", workload, folder.path());
        assert!(!result["changes"].to_string().contains("uniformly"), "{result}");
        assert!(result["file"].as_str().unwrap().contains("transaction_sync="), "{result}");
    }
}

#[test]
fn predicted_and_measured_are_shown_beside_each_other() {
    if !is_installed("db_bench") {
        return;
    }
    let folder = folder();
    let mut command = flashgrain();
    command.current_dir(&folder).args(TINY).args(["--for", "rocksdb", "--rounds", "1"]);
    let shown = stdout(&command.assert().success());
    for text in ["predicted", "measured: median", "limited by", "defaults", "advised", "gain", "seed 1"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

/// The cells of one engine, of which the second is ended.
#[test]
fn cells_that_were_measured_before_ctrl_c_are_shown_with_the_verdict() {
    if !is_installed("sqlite3") {
        return;
    }
    let folder = folder();
    let arguments = [TINY, &["--for", "sqlite", "--rounds", "1", "--workload", "all"]].concat();
    let child = start_until(&arguments, folder.path(), "cell: SQLite with ycsb-b");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("SQLite")).collect();
    assert!(rows.len() == 1 && rows[0].contains("ycsb-a"), "{shown}");
    for aim in ["never below 0.95", "at least 1.2 x", "within a factor of 1.5"] {
        assert!(shown.contains(aim), "{aim}: {shown}");
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn ctrl_c_leaves_nothing() {
    let engines: &[(&str, &[&str])] = &[
        ("rocksdb", &["db_bench"]),
        ("sqlite", &["sqlite3"]),
        ("mariadb", &["mariadbd", "sysbench"]),
        ("flashgrain", &[]),
        #[cfg(feature = "wiredtiger")]
        ("wiredtiger", &[]),
    ];
    for (engine, programs) in engines {
        if !programs.iter().all(|program| is_installed(program)) {
            continue;
        }
        for until in ["filling: the advised", "round 1 of 1000"] {
            let folder = folder();
            let arguments = [TINY, &["--for", engine, "--rounds", "1000"]].concat();
            let child = start_until(&arguments, folder.path(), until);
            signal(&child, "INT");
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "{engine}: {until}");
            assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "{engine}: {until}");
        }
    }
}

#[test]
fn what_cannot_be_verified_is_refused_before_anything_is_written() {
    let folder = folder();
    let refused = |arguments: &[&str], code: i32, texts: &[&str]| {
        let arguments = [TINY, arguments].concat();
        fails(flashgrain().current_dir(&folder).env("PATH", "").args(&arguments), code, texts);
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    };
    refused(&["--for", "rocksdb"], 1, &["db_bench is not installed", "install-peers.sh --engines"]);
    #[cfg(not(feature = "wiredtiger"))]
    refused(&["--for", "wiredtiger"], 1, &["built without WiredTiger", "libwiredtiger-dev"]);
    refused(&["--for", "mariadb"], 1, &["mariadbd is not installed", "apt-get install mariadb-server"]);
    #[cfg(not(feature = "wiredtiger"))]
    refused(&[], 1, &["none of the engines can be run here"]);
    refused(&["--workload", "all"], 1, &[]);
    refused(&["--for", "rocksdb", "--output", "x"], 2, &["--output"]);
    fails(flashgrain().args(["advise", "--for", "rocksdb", "--rounds", "2"]), 2, &["--verify"]);
}

#[test]
fn a_workload_without_room_is_refused_with_one_that_has() {
    if !is_installed("db_bench") {
        return;
    }
    let folder = folder();
    let arguments =
        ["advise", "--profile", PROFILE, "--for", "rocksdb", "--verify", ".", "--records", "1000000000000"];
    fails(flashgrain().current_dir(&folder).args(arguments), 1, &["there is room for --records", "--memory"]);
    let missing = ["advise", "--profile", PROFILE, "--for", "rocksdb", "--verify", "none", "--records", "9"];
    fails(flashgrain().current_dir(&folder).args(missing), 2, &["none", "no directory"]);
}

/// A grid that takes seconds.
const TINY_GRID: &[&str] = &[
    "bench",
    "rocksdb",
    ".",
    "--profile",
    PROFILE,
    "--records",
    "20000",
    "--cache",
    "1MiB",
    "--file-size",
    "256KiB",
    "--fanouts",
    "2,8",
    "--block-sizes",
    "4KiB,16KiB",
    "--threads",
    "1,2",
    "--seconds",
    "1",
];

#[test]
fn a_grid_of_trees_is_measured_beside_its_prediction() {
    if !is_installed("db_bench") {
        return;
    }
    let folder = folder();
    let mut command = flashgrain();
    command.current_dir(&folder).args(TINY_GRID).args(["--json", "--rounds", "1"]);
    let result: Value = serde_json::from_str(&stdout(&command.assert().success())).unwrap();
    for kind in ["point_queries", "scans"] {
        let cells = result[kind]["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 8, "{result}");
        let number = |cell: &Value, name: &str| cell.pointer(name).and_then(Value::as_f64).unwrap();
        for cell in cells {
            assert!(
                number(cell, "/operations_per_s") > 0.0 && number(cell, "/predicted/value") > 0.0,
                "{cell}"
            );
        }
        let correlations = result[kind]["rank_correlations"].as_array().unwrap();
        assert_eq!(correlations.len(), 2, "{result}");
        assert!(correlations.iter().all(|of| of[1].as_f64().is_some_and(|value| value.abs() <= 1.0)));
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_grid_that_is_ended_early_shows_what_it_has_and_leaves_nothing() {
    if !is_installed("db_bench") {
        return;
    }
    let folder = folder();
    let arguments = [TINY_GRID, &["--rounds", "9"]].concat();
    let child = start_until(&arguments, folder.path(), "round 2 of 9: fanout 2, blocks of 4 KiB");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("point queries") && shown.contains("4 KiB"), "{shown}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_grid_needs_its_program_and_its_directory() {
    let folder = folder();
    let mut command = flashgrain();
    command.current_dir(&folder).env("PATH", "").args(TINY_GRID);
    fails(&mut command, 1, &["db_bench is not installed", "install-peers.sh --engines"]);
    let bad = ["bench", "rocksdb", "none", "--profile", PROFILE, "--fanouts", "1"];
    fails(flashgrain().args(bad), 2, &["--fanouts", "2"]);
    if is_installed("db_bench") {
        let missing = ["bench", "rocksdb", "none", "--profile", PROFILE];
        fails(flashgrain().current_dir(&folder).args(missing), 2, &["none", "no directory"]);
    }
}
