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

/// Processors that are not measured, so that a simulation repeats exactly.
const COSTS: &[&str] = &["--cpu-costs", "600,2000,500,1500"];

#[test]
fn simulated_drives_take_virtual_time_and_repeat_exactly() {
    let run = || {
        let mut arguments = vec!["lookup", "sim:905p", "--operations", "20000"];
        arguments.extend(COSTS);
        result(&arguments)
    };
    let (first, second) = (run(), run());
    // Of the 600 ns of each look-up in memory, and 2000 ns more for each read.
    let reads = number(&first["device"]["reads_per_s"]) / number(&first["operations_per_s"]);
    let expected = 0.6 + 2.0 * reads;
    let spent = number(&first["cpu_us_per_operation"]);
    assert!((spent - expected).abs() < 0.1 * expected, "{spent} us for {reads} reads, {expected} expected");
    assert!(number(&first["worker_use"]) <= 1.001 && number(&first["share_of_raw"]) > 0.1, "{first}");
    for key in ["operations", "elapsed_s", "latency", "worker_use"] {
        assert_eq!(first[key], second[key], "{key}");
    }
}

#[test]
fn simulated_processors_bind_where_all_is_in_memory() {
    let mut arguments = vec!["lookup", "sim:905p", "--operations", "20000", "--cache", "16MiB"];
    arguments.extend(COSTS);
    let assert = flashgrain()
        .arg("bench")
        .args(&arguments)
        .args(["--records", "20000", "--workers", "2", "--tasks", "16", "--json"])
        .assert()
        .success();
    let result: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    // Two workers that spend 600 ns each.
    let rate = number(&result["operations_per_s"]);
    assert!((3.0e6..3.4e6).contains(&rate), "{rate}");
    assert!(number(&result["worker_use"]) > 0.95, "{result}");
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
        ("lookup mem --cpu-costs 1,2,3", "LOOKUP,WRITE,WAIT,REQUEST"),
        ("lookup sim:905p --keep", "vanishes"),
        ("lookup sim:floppy --cpu-costs 1,2,3,4", "floppy"),
    ] {
        fails(flashgrain().arg("bench").args(arguments.split(' ')), 2, &[text]);
    }
}

#[test]
fn structures_of_trees_are_measured_beside_what_the_profile_predicts() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    flashgrain()
        .args(["profile", "sim:960evo", "--quiet", "--only", "order,size,depth", "--out", out])
        .assert()
        .success();
    let profile = folder.path().join("profile.json");
    let profile = profile.to_str().unwrap();
    let mut arguments = vec!["trees", "sim:960evo", "--profile", profile, "--operations", "5000"];
    arguments.extend(["--settling", "5000", "--range-bytes", "4KiB", "--node-blocks", "4"]);
    arguments.extend(COSTS);
    let result = result(&arguments);
    let trees = result["trees"].as_array().unwrap();
    let structures: Vec<_> = trees.iter().map(|tree| tree["structure"].as_str().unwrap()).collect();
    assert_eq!(structures, ["btree", "blocks", "be-tree", "lsm"]);
    for tree in trees {
        let operations = tree["operations"].as_array().unwrap();
        assert_eq!(operations.len(), 3, "{tree}");
        for row in operations {
            let rate = &row["per_second"];
            assert!(number(&rate["measured"]) > 0.0 && number(&rate["predicted"]) > 0.0, "{row}");
        }
        let written = number(&operations[2]["written_bytes"]["measured"]);
        assert!(written > 0.0, "{tree}");
        // The size of the error depends on the profile, and this one was short.
        assert!(number(&tree["median_error_of_counts"]).is_finite(), "{tree}");
    }
    // The depth experiment has shown what a busy drive transfers in the time of a setup.
    let layout = trees[2]["layout"].as_array().unwrap();
    let reason = |name: &str| {
        let decision = layout.iter().find(|decision| decision["setting"] == name).unwrap();
        decision["because"].as_str().unwrap().to_owned()
    };
    assert!(reason("node").contains("1/α") && reason("fanout").contains("1/α"), "{layout:?}");
    fails(flashgrain().args(["bench", "trees", "sim:960evo"]), 2, &["--profile"]);
}

#[test]
fn node_sizes_are_measured_beside_what_the_profile_predicts() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    flashgrain()
        .args(["profile", "sim:960evo", "--quiet", "--only", "order,size,depth", "--out", out])
        .assert()
        .success();
    let profile = folder.path().join("profile.json");
    let profile = profile.to_str().unwrap();
    let sizes = ["--sizes", "4KiB,32KiB", "--profile", profile, "--operations", "5000"];
    let mut arguments = vec!["nodes", "sim:960evo"];
    arguments.extend(sizes.iter().chain(COSTS));
    let result = result(&arguments);
    for (kind, least_reads) in [("lookups", 0.1), ("ranges", 0.3)] {
        let curve = &result[kind];
        let points = curve["points"].as_array().unwrap();
        assert_eq!(points.len(), 2, "{kind}");
        for point in points {
            let (measured, predicted) = (number(&point["operations_per_s"]), &point["predicted"]);
            assert!(measured > 0.0 && number(&point["reads_per_operation"]) > least_reads, "{kind}: {point}");
            // Not how well: that depends on the profile, and this one was short.
            assert!(number(&predicted["low"]) <= number(&predicted["value"]), "{kind}: {point}");
        }
        let best = number(&curve["predicted_best_over_best"]);
        assert!(best > 0.0 && best <= 1.0, "{kind}: {best}");
    }
    // A larger node is read for the same record.
    let rate = |index: usize| number(&result["lookups"]["points"][index]["operations_per_s"]);
    assert!(rate(0) > rate(1), "{} beside {}", rate(0), rate(1));
    fails(flashgrain().args(["bench", "nodes", "sim:960evo"]), 2, &["--profile"]);
}
