//! `flashgrain io` does what its arguments say and reports it in full.

use crate::support::{contents, flashgrain, folder, stderr, stdout};
use serde_json::Value;

const SMALL: &[&str] = &["--file-size", "4MiB", "--warmup", "0.05", "--depth", "8"];
const BRIEF: &[&str] = &["--seconds", "0.3"];

fn result(arguments: &[&str]) -> Value {
    result_of(&[BRIEF, arguments].concat())
}

fn result_of(arguments: &[&str]) -> Value {
    let folder = folder();
    let assert = flashgrain()
        .arg("io")
        .arg(folder.path())
        .args(SMALL)
        .args(arguments)
        .arg("--json")
        .assert()
        .success();
    assert!(contents(folder.path()).is_empty());
    serde_json::from_str(&stdout(&assert)).unwrap()
}

#[test]
fn reads_have_rates_percentiles_and_a_cpu_cost() {
    let result = result(&[]);
    assert!(result["write"].is_null());
    let read = &result["read"];
    assert!(read["requests_per_s"].as_f64().unwrap() > 0.0);
    let bytes_per_request = read["bytes_per_s"].as_f64().unwrap() / read["requests_per_s"].as_f64().unwrap();
    assert!((bytes_per_request - 4096.0).abs() < 1.0, "{bytes_per_request}");
    assert!(result["cpu_us_per_request"].as_f64().unwrap() > 0.0);
    let latency = &read["latency"];
    let percentiles: Vec<f64> = ["p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"]
        .iter()
        .map(|key| latency[*key].as_f64().unwrap())
        .collect();
    assert!(percentiles.is_sorted() && percentiles[0] > 0.0, "{percentiles:?}");
}

#[test]
fn a_mix_has_both_directions_in_its_proportion() {
    let result = result(&["--read-share", "75%"]);
    let count = |direction: &str| result[direction]["latency"]["count"].as_f64().unwrap();
    let share = count("read") / (count("read") + count("write"));
    assert!((share - 0.75).abs() < 0.1, "{share}");
}

#[test]
fn every_backend_that_works_here_carries_the_load() {
    let listed = stdout(&flashgrain().args(["backends", "--json"]).assert().success());
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let names: Vec<_> = listed.iter().filter(|row| row["available"] == true).collect();
    assert!(!names.is_empty());
    for row in names {
        let name = row["backend"].as_str().unwrap();
        if ["nvme-passthrough", "polled"].contains(&name) {
            continue; // ways to certain drives, not to a directory
        }
        assert_eq!(result(&["--backend", name, "--read-share", "50%"])["identity"]["backend"], name);
    }
}

#[test]
fn a_rate_is_kept_by_open_loop_arrivals() {
    let result = result_of(&["--rate", "200", "--seconds", "2"]);
    let rate = result["read"]["requests_per_s"].as_f64().unwrap();
    // 400 Poisson arrivals: five standard deviations are a quarter.
    assert!((rate - 200.0).abs() < 50.0, "{rate}");
}

#[test]
fn durable_writes_work_by_each_method() {
    for method in ["dsync", "linked-flush", "fdatasync"] {
        let result = result(&["--read-share", "0", "--sync", method]);
        assert!(result["write"]["latency"]["count"].as_u64().unwrap() > 0, "{method}");
    }
}

#[test]
fn several_directories_form_a_stripe_set() {
    let (one, other) = (folder(), folder());
    let assert = flashgrain()
        .arg("io")
        .args([one.path(), other.path()])
        .args(SMALL)
        .args(BRIEF)
        .args([
            "--stripe-unit",
            "16KiB",
            "--block-size",
            "64KiB",
            "--read-share",
            "50%",
            "--workers",
            "2",
            "--json",
        ])
        .assert()
        .success();
    let result: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    assert_eq!(result["geometry"]["members"], 2);
    assert_eq!(result["geometry"]["stripe_unit_bytes"], 16384);
    assert!(result["read"]["latency"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn the_table_fits_a_hundred_columns_and_quiet_says_only_that() {
    let folder = folder();
    let assert = flashgrain()
        .arg("--quiet")
        .arg("io")
        .arg(folder.path())
        .args(SMALL)
        .args(BRIEF)
        .args(["--read-share", "50%", "--pattern", "seq"])
        .assert()
        .success();
    let table = stdout(&assert);
    for word in ["IOPS", "p99.9", "reads", "writes", "CPU"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert_eq!(stderr(&assert), "");
}
