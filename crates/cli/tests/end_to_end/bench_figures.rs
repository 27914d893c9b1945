//! `flashgrain bench scale`, `placement`, `commit` and `recover`, and stores of fixed size: each with little
//! of everything.

use serde_json::Value;

use crate::support::{contents, fails, flashgrain, folder, stdout};

/// Processors that are not measured, so that a simulation repeats exactly.
const COSTS: &str = "--cpu-costs 600,2000,500,1500";

fn result(arguments: &str) -> Value {
    let assert = flashgrain()
        .arg("bench")
        .args(arguments.split_whitespace())
        .args(["--json", "--raw-seconds", "0.2s"])
        .assert()
        .success();
    serde_json::from_str(&stdout(&assert)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn look_ups_scale_with_the_drives_until_workers_bind() {
    let rows = result(&format!(
        "scale sim:8xpm1733 --drives 1,2 --workers 1 --tasks 512 --records 30000 --cache 2MiB --operations 20000 {COSTS}"
    ));
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.iter().map(|row| number(&row["drives"])).collect::<Vec<_>>(), [1.0, 2.0]);
    for row in rows {
        // One worker cannot keep a drive busy that reads 1.5 million times a second.
        assert_eq!(row["bound"], "workers", "{row}");
        assert!(number(&row["worker_use"]) > 0.95 && number(&row["drive_use"]) < 0.5, "{row}");
    }
    // A second drive does not help it.
    assert!((0.4..0.6).contains(&number(&rows[1]["linear"])), "{}", rows[1]["linear"]);
}

#[test]
fn in_place_and_out_of_place_are_measured_on_like_drives() {
    let result = result(&format!(
        "placement sim:905p --space-use 50% --fill-order random --value-bytes 120 --records 100000 --cache 2MiB --workers 2 --tasks 16 --operations 5000 {COSTS}"
    ));
    let (in_place, out_of_place) = (&result["in_place"], &result["out_of_place"]);
    assert_eq!(
        (in_place["placement"].as_str(), out_of_place["placement"].as_str()),
        (Some("in place"), Some("out of place"))
    );
    assert!(number(&result["ratio"]) > 0.0);
    for one in [in_place, out_of_place] {
        assert!(number(&one["drive"]["counters"]["writes"]) > 0.0, "{one}");
    }
    // A page is written whole in place, and without what it does not use out of place.
    assert!((number(&in_place["device"]["write_amplification"]) - 1.0).abs() < 0.01, "{in_place}");
    assert!(number(&out_of_place["device"]["write_amplification"]) < 1.0, "{out_of_place}");
    // One write per page is never a whole unit.
    assert!(number(&in_place["device"]["aligned_share"]) < 0.1, "{in_place}");
    assert!(number(&out_of_place["device"]["aligned_share"]) > 0.3, "{out_of_place}");
}

#[test]
fn commits_are_measured_beside_raw_durable_writes() {
    let folder = folder();
    let path = folder.path().display();
    let result = result(&format!(
        "commit {path} --records 2000 --cache 8MiB --workers 1 --committers 16 --seconds 0.5 --warmup 0.1"
    ));
    assert_eq!(result["raw"].as_array().unwrap().len(), 3);
    let (one, many) = (&result["one"], &result["many"]);
    assert!(number(&one["per_s"]) > 0.0 && number(&many["per_s"]) > 0.0);
    // Nobody shares with one committer; many do.
    assert!(number(&one["per_group"]) < 1.1 && number(&many["per_group"]) > 1.5, "{result}");
    assert!(contents(folder.path()).is_empty(), "the store is gone");
    fails(flashgrain().args(["bench", "commit", "mem"]), 2, &["name a directory"]);
}

#[test]
fn a_killed_store_replays_its_log_and_a_closed_one_has_none() {
    let folder = folder();
    let path = folder.path().display();
    let result =
        result(&format!("recover {path} --records 20000 --cache 8MiB --workers 1 --tasks 16 --seconds 0.5"));
    assert!(number(&result["replayed_records"]) > 0.0 && number(&result["replayed_bytes"]) > 0.0, "{result}");
    assert!(number(&result["opened_s"]) > 0.0 && number(&result["opened_clean_s"]) > 0.0, "{result}");
    assert!(contents(folder.path()).is_empty(), "the store is gone");
}

#[test]
fn stores_of_growing_size_are_measured_side_by_side() {
    let folder = folder();
    let path = folder.path().display();
    let result = result(&format!(
        "size {path} --sizes 2MiB,8MiB --cache 1MiB --workers 1 --tasks 16 --seconds 0.5 --warmup 0.1"
    ));
    let rows = result["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().map(|row| number(&row[name])).collect::<Vec<_>>();
    assert_eq!(of("record_bytes"), [2097152.0, 8388608.0]);
    assert!(of("live_bytes").is_sorted_by(|small, large| small < large), "{result}");
    for name in ["opened_s", "killed_opened_s", "lookups_per_s", "updates_per_s"] {
        assert!(of(name).iter().all(|value| *value > 0.0), "{name}: {result}");
    }
    // A cache of the same size misses more of more records.
    assert!(of("reads_per_lookup").is_sorted_by(|small, large| small < large), "{result}");
    assert!(contents(folder.path()).is_empty(), "the stores are gone");
}

#[test]
fn a_store_of_fixed_size_is_as_full_as_was_asked_for() {
    let folder = folder();
    let path = folder.path().display();
    let result = result(&format!(
        "update {path} --space-use 60% --records 400000 --cache 8MiB --workers 1 --tasks 16 --seconds 0.5 --warmup 0.1 --recovery-log 16MiB"
    ));
    // Images take less, and how much depends on what the last checkpoint has written of the updates.
    let used = number(&result["page_use"]);
    assert!((0.5..0.65).contains(&used), "{used}");
    assert!(number(&result["device"]["cache_hits"]) < 1.0, "{result}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (arguments, text) in [
        ("scale mem", "only simulated drives"),
        ("scale sim:8xpm1733 --drives 0", "1-8"),
        ("update mem --space-use 95%", "1% to 90%"),
        ("recover sim:905p", "name a directory"),
        ("commit sim:905p", "name a directory"),
        ("size sim:905p --sizes 8MiB", "name a directory"),
        ("size mem --sizes 8MiB", "name a directory"),
        ("size /tmp --sizes 1", "a record alone has 128 bytes"),
    ] {
        fails(flashgrain().arg("bench").args(arguments.split(' ')), 2, &[text]);
    }
}
