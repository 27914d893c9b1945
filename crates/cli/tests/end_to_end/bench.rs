//! `flashgrain bench`: it runs what it says, reports it in full, and leaves nothing behind.

use serde_json::Value;

use crate::support::{contents, fails, flashgrain, folder, stderr, stdout};

const SMALL: &[&str] =
    &["--records", "20000", "--cache", "2MiB", "--workers", "1", "--tasks", "16", "--warmup", "0.1"];
const BRIEF: &[&str] = &["--seconds", "0.5", "--raw-seconds", "0.3"];

fn result(arguments: &[&str]) -> Value {
    let assert =
        flashgrain().arg("bench").args(arguments).args(SMALL).args(BRIEF).arg("--json").assert().success();
    serde_json::from_str(&stdout(&assert)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn lookups_out_of_memory_read_about_a_page_each() {
    let result = result(&["lookup", "mem"]);
    let rate = number(&result["operations_per_s"]);
    let reads = number(&result["device"]["reads_per_s"]);
    // 2.5 MB of records and a cache of 2 MiB: some are in memory, and none needs two pages.
    assert!(rate > 0.0 && reads > 0.1 * rate && reads < 1.1 * rate, "{reads} reads for {rate} look-ups");
    assert!(number(&result["cpu_us_per_operation"]) > 0.0 && number(&result["share_of_raw"]) > 0.0);
    assert_eq!(result["raw"]["runs"].as_array().unwrap().len(), 2);
    let latency = &result["latency"];
    assert!(number(&latency["p50_us"]) <= number(&latency["p99_us"]), "{latency}");
}

#[test]
fn updates_write_pages_in_whole_units() {
    let folder = folder();
    let path = folder.path().display().to_string();
    let result = result(&["update", &path, "--distribution", "zipf"]);
    let device = &result["device"];
    assert!(number(&device["writes_per_s"]) > 0.0, "{device}");
    assert!(contents(folder.path()).is_empty(), "the store is gone");
    assert_eq!(result["distribution"], "zipf:0.99");
}

#[test]
fn filling_counts_every_record() {
    for order in ["sequential", "random"] {
        let result = result(&["fill", "mem", "--order", order]);
        assert_eq!(result["operations"], 20000, "{order}");
        assert!(number(&result["stats"]["log"]["records"]) > 0.0);
    }
}

#[test]
fn a_kept_store_is_used_again() {
    let folder = folder();
    let path = folder.path().display().to_string();
    let run = || {
        let assert = flashgrain()
            .args(["bench", "mixed", &path, "--keep", "--read-share", "90%"])
            .args(SMALL)
            .args(BRIEF)
            .assert()
            .success();
        (stdout(&assert), stderr(&assert))
    };
    let (table, said) = run();
    assert!(said.contains("filling a store") && table.contains("mixed"), "{said}{table}");
    for word in ["IOPS", "p99.9", "raw reads", "device", "CPU", "limit"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let (_, said) = run();
    assert!(said.contains("using the store") && !said.contains("filling"), "{said}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (arguments, text) in [
        ("lookup nowhere", "not a directory"),
        ("lookup mem --records 0", "1..="),
        ("lookup mem --key-bytes 4", "8..="),
        ("lookup mem --cache 0%", "above 0%"),
        ("lookup mem --workers 4 --tasks 2", "each needs at least one"),
        ("lookup mem --distribution normal", "uniform, zipf"),
        ("lookup mem --cache 1KiB", "too small"),
    ] {
        fails(flashgrain().arg("bench").args(arguments.split(' ')), 2, &[text]);
    }
}
