//! The binary: suites that go on where they ended, and their results side by side.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;

use assert_cmd::Command;
use flashgrain_bench::run::RunResult;
use serde_json::from_str;

fn bench() -> Command {
    Command::cargo_bin("flashgrain-bench").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// One question, so many rounds; what it says.
fn suite(folder: &Path, rounds: &str) -> String {
    let output = bench()
        .current_dir(folder)
        .args(["suite", "memory", "--directory", ".", "--results", "results.jsonl", "--rounds", rounds])
        .args(["--engines", "flashgrain", "--records", "5000", "--seconds", "0.2", "--warmup", "0"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_suite_does_what_is_missing_and_its_results_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    suite(folder.path(), "1");
    let said = suite(folder.path(), "2");
    assert!(said.contains("2 runs, 1 of them done before"), "{said}");
    let lines = std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    let results: Vec<RunResult> = lines.lines().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(results.iter().map(|run| run.round).collect::<Vec<_>>(), [0, 1]);
    for run in &results {
        assert!(run.operations > 0 && run.cpu_us_per_operation > 0.0 && run.is_sound(), "{run:?}");
        assert!(run.raw.is_some_and(|raw| raw.reads_per_s > 0.0), "{run:?}");
        assert_eq!(run.kinds["read"].latency.count, run.operations);
    }
    assert!(!folder.path().join("flashgrain").exists(), "the engine's files are removed");

    let output = bench()
        .current_dir(folder.path())
        .args(["compare", "results.jsonl", "--out", "page.html"])
        .output()
        .unwrap();
    let tables = text(&output.stdout);
    assert!(
        tables.contains("## lookup, one core, in memory") && tables.contains("\n| flashgrain"),
        "{tables}"
    );
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<figure") && page.contains("Only 2 of at least 3 rounds"));
}

#[test]
fn an_open_loop_has_the_drive_alone_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench()
        .current_dir(folder.path())
        .args(["suite", "tail", "--directory", ".", "--results", "results.jsonl", "--rounds", "1"])
        .args(["--engines", "flashgrain", "--records", "100000", "--seconds", "0.2", "--warmup", "0"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    let results: Vec<RunResult> = lines.lines().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(results.iter().filter(|run| run.rate_per_s.is_some()).count(), 4);
    for run in &results {
        // Memory and overlays have no counters, so that nobody knows what the drive was asked for.
        let is_measured = run.rate_per_s.is_some() && run.device.is_some_and(|device| device.reads > 0.0);
        assert_eq!(run.raw_latency.is_some(), is_measured, "{run:?}");
    }
}

#[test]
fn updates_are_counted_at_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench()
        .args(["run", "flashgrain", "overwrite"])
        .arg(folder.path())
        .args(["--records", "1000", "--cache", "16777216", "--clients", "4", "--cores", "2"])
        .args(["--durability", "full", "--seconds", "0.3", "--warmup", "0", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run: RunResult = from_str(&text(&output.stdout)).unwrap();
    // Memory and overlays have no counters.
    if let Some(device) = run.device {
        assert!(device.writes > 0.0 && run.write_amplification.is_some_and(|times| times > 1.0), "{run:?}");
    }
    assert!(run.space_bytes > 0 && run.peak_memory_bytes > 0, "{run:?}");
}

#[test]
fn what_there_is_not_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench().args(["run", "flashgrain", "no-such"]).arg(folder.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("see `flashgrain-bench workloads`"));
    let bad = folder.path().join("bad.jsonl");
    std::fs::write(&bad, "{}\n").unwrap();
    let output = bench().arg("compare").arg(&bad).output().unwrap();
    assert!(
        text(&output.stderr).contains("bad.jsonl, line 1: no result of a run"),
        "{}",
        text(&output.stderr)
    );
}
