//! `flashgrain advise`: workloads and profiles as users give them, files that it writes, what it refuses.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stderr, stdout};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures/960evo.json");

#[test]
fn designs_are_ranked_for_a_preset() {
    let shown = stdout(
        &flashgrain().args(["advise", "--profile", PROFILE, "--workload", "ycsb-b"]).assert().success(),
    );
    for text in ["Designs, best first", "operations/s", "limited by", "Changes that alter the ranking"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[test]
fn settings_go_to_a_file_or_alone_to_standard_output() {
    let folder = folder();
    let advise = |arguments: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["advise", "--profile", PROFILE]).args(arguments);
        stdout(&command.assert().success())
    };
    let printed = advise(&["--for", "mariadb"]);
    let explained = advise(&["--for", "mariadb", "-o", "flashgrain.cnf"]);
    assert_eq!(fs::read_to_string(folder.path().join("flashgrain.cnf")).unwrap(), printed);
    assert!(printed.contains("\ninnodb_buffer_pool_size = 6144M\n"), "{printed}");
    assert!(explained.contains("innodb_buffer_pool_size") && explained.contains("gain"), "{explained}");
    let all: Value = serde_json::from_str(&advise(&["--json"])).unwrap();
    assert!(
        all["engines"].as_array().unwrap().len() > 1
            && all["ranking"]["rows"][0]["rate_per_second"]["low"].is_f64()
    );
}

#[test]
fn versions_of_an_engine_are_named_by_their_first_numbers() {
    let advise = |version: &str| {
        let mut command = flashgrain();
        command.args(["advise", "--profile", PROFILE, "--for", "rocksdb", "--engine-version", version]);
        command.assert()
    };
    for (given, head) in [("11", "rocksdb_version=11.8.1\n"), ("7.8", "rocksdb_version=7.8.3\n")] {
        let printed = stdout(&advise(given).success());
        assert!(printed.contains(head), "{given}: {printed}");
    }
    let said = stderr(&advise("9").code(2));
    assert!(said.contains("RocksDB \"9\"") && said.contains("7.8, 11.8"), "{said}");
}

#[test]
fn a_printed_workload_can_be_changed_and_given_back() {
    let folder = folder();
    let printed =
        stdout(&flashgrain().args(["advise", "--workload", "ycsb-e", "--print-workload"]).assert().success());
    let changed = printed.replace("count = 100000000", "count = 1000000");
    assert_ne!(printed, changed);
    fs::write(folder.path().join("mine.toml"), changed).unwrap();
    let shown = flashgrain()
        .current_dir(&folder)
        .args(["advise", "--profile", PROFILE, "--workload", "mine.toml", "--memory", "64MiB"])
        .assert()
        .success();
    let shown = stdout(&shown);
    assert!(shown.contains("1 M of 24 + 1000 bytes") && shown.contains("64 MiB"), "{shown}");
}

#[test]
fn impossible_workloads_are_refused_with_field_and_range() {
    let folder = folder();
    let text =
        stdout(&flashgrain().args(["advise", "--workload", "ycsb-a", "--print-workload"]).assert().success());
    fs::write(folder.path().join("bad.toml"), text.replace("updates = 0.5", "updates = 0.6")).unwrap();
    fs::write(folder.path().join("odd.toml"), text + "[cache]\nbytes = 1\n").unwrap();
    let refused = |workload: &str, texts: &[&str]| {
        let arguments = ["advise", "--profile", PROFILE, "--workload", workload];
        fails(flashgrain().current_dir(&folder).args(arguments), 2, texts);
    };
    refused("bad.toml", &["bad.toml", "`operations`", "1.1", "sum is 1"]);
    refused("odd.toml", &["odd.toml", "unknown field `cache`", "`records`"]);
    refused("ycsb-z", &["ycsb-z", "ycsb-a"]);
    let missing = ["advise", "--profile", PROFILE, "--workload", "none.toml"];
    fails(flashgrain().current_dir(&folder).args(missing), 1, &["none.toml"]);
    fails(flashgrain().current_dir(&folder).args(["advise"]), 1, &["flashgrain-out"]);
    let tiny = ["advise", "--profile", PROFILE, "--memory", "512"];
    fails(flashgrain().current_dir(&folder).args(tiny), 2, &["`memory_bytes` is 512", "1048576"]);
    fails(flashgrain().current_dir(&folder).args(["advise", "-o", "x"]), 2, &["--for"]);
}

#[test]
fn a_profile_of_the_first_schema_gives_advice() {
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json");
    let advised = flashgrain().args(["advise", "--profile", old, "--for", "sqlite"]).assert().success();
    assert!(stdout(&advised).contains("PRAGMA journal_mode = WAL;"));
    assert!(stderr(&advised).contains("page_size takes effect"));
}

#[test]
fn an_observed_workload_says_what_it_could_not_know() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures");
    for (name, text) in [
        ("rocksdb-log.txt", "clients (--clients) not known"),
        ("db-bench.txt", "memory (--memory) not known"),
        ("mariadb-status.txt", "rows taken as 8 + 200 bytes"),
        ("bench-lookup.json", "durability not known"),
    ] {
        let file = format!("{fixtures}/{name}");
        let advised =
            flashgrain().args(["advise", "--profile", PROFILE, "--observe", &file]).assert().success();
        let shown = stdout(&advised).replace("\n  ", " ");
        assert!(shown.contains(text), "{name}: {shown}");
    }
    let wrong = ["advise", "--profile", PROFILE, "--observe", PROFILE];
    fails(flashgrain().args(wrong), 2, &["960evo.json", "neither `operation` nor `kinds`"]);
}

#[test]
fn the_script_for_flashgrain_makes_a_store() {
    let folder = folder();
    let arguments =
        ["advise", "--profile", PROFILE, "--workload", "ycsb-e", "--for", "flashgrain", "-o", "make.sh"];
    flashgrain().current_dir(&folder).args(arguments).assert().success();
    let made = assert_cmd::Command::new("sh")
        .arg("make.sh")
        .current_dir(&folder)
        .env("FLASHGRAIN", env!("CARGO_BIN_EXE_flashgrain"))
        .env("STORE", "store")
        .env("PROFILE", PROFILE)
        .assert()
        .success();
    let made = stdout(&made);
    assert!(made.contains("write unit") && made.contains("64 KiB"), "{made}");
    let script = fs::read_to_string(folder.path().join("make.sh")).unwrap();
    assert!(script.contains("Db::builder().path(store).cache_bytes("), "{script}");
    flashgrain().current_dir(&folder).args(["db", "stats", "store"]).assert().success();
}

/// What is predicted is the tree that the store decides.
#[test]
fn the_script_for_writes_makes_the_lsm_tree_that_was_predicted() {
    let folder = folder();
    let print = ["advise", "--workload", "ycsb-a", "--memory", "512MiB", "--records", "8000000"];
    let printed = stdout(&flashgrain().args(print).arg("--print-workload").assert().success());
    let lazy = printed.replace("promise = \"sync\"", "promise = \"none\"");
    let lazy = lazy.replace("value_bytes = 1000", "value_bytes = 100");
    assert_ne!(printed, lazy, "{printed}");
    fs::write(folder.path().join("mine.toml"), lazy).unwrap();
    let arguments =
        ["advise", "--profile", PROFILE, "--workload", "mine.toml", "--for", "flashgrain", "-o", "make.sh"];
    let shown = stdout(&flashgrain().current_dir(&folder).args(arguments).assert().success());
    assert!(shown.contains("--kind") && shown.contains("lsm"), "{shown}");
    let mut script = assert_cmd::Command::new("sh");
    script.arg("make.sh").current_dir(&folder).env("FLASHGRAIN", env!("CARGO_BIN_EXE_flashgrain"));
    script.env("STORE", "store").env("TREE", "orders").env("PROFILE", PROFILE).assert().success();
    let all: Value = serde_json::from_str(&stdout(
        &flashgrain().current_dir(&folder).args(&arguments[..7]).arg("--json").assert().success(),
    ))
    .unwrap();
    let settings = all["engines"][0]["settings"].as_array().unwrap();
    let reason = settings.iter().find(|one| one["name"] == "--kind").unwrap()["reason"].as_str().unwrap();
    let explain = ["db", "explain", "store", "orders", "--json"];
    let explained: Value =
        serde_json::from_str(&stdout(&flashgrain().current_dir(&folder).args(explain).assert().success()))
            .unwrap();
    let decided = |name: &str| {
        let all = explained.as_array().unwrap();
        all.iter().find(|one| one["setting"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    };
    let design = format!(
        "an LSM-tree ({}, fanout {}, level 0 of {} runs)",
        decided("layout of runs"),
        decided("fanout"),
        decided("runs of level 0")
    );
    assert!(reason.contains(&design), "{design}: {reason}");
    assert_eq!(decided("filter"), "10 bits a key");
    let again = ["db", "create-tree", "store", "orders", "--kind", "lsm"];
    fails(flashgrain().current_dir(&folder).args(again), 2, &["there is a tree `orders` already"]);
}

#[test]
fn prices_add_the_servers_that_the_same_money_buys() {
    let advise = |arguments: &[&str]| {
        let mut command = flashgrain();
        command.args(["advise", "--profile", PROFILE]).args(arguments);
        command.assert()
    };
    let title = "Memory or drives for the same money";
    assert!(!stdout(&advise(&[]).success()).contains(title));
    let papers = stdout(&advise(&["--prices"]).success());
    for text in [title, "18.8 times", "2.512 TB", "32.000 TB"] {
        assert!(papers.contains(text), "{text}: {papers}");
    }
    let json = |prices: &str| -> Value {
        serde_json::from_str(&stdout(&advise(&["--json", prices]).success())).unwrap()
    };
    let [cheap, dear] = ["--prices=15000,7500,2,100", "--prices=15000,7500,2,200"].map(json);
    let number = |of: &Value, name: &str| of["memory_or_drives"][name].as_f64().unwrap();
    assert_eq!(2.0 * number(&cheap, "break_even_s"), number(&dear, "break_even_s"));
    assert!(number(&dear, "break_even_s") > 0.0 && dear["ranking"]["rows"].is_array());
    fails(flashgrain().args(["advise", "--profile", PROFILE, "--prices=1,2,3,4"]), 2, &["BUDGET,SERVER"]);
}
