//! The main job, and everything that reads what it wrote: one short run, looked at from all sides.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::support::{contents, fails, flashgrain, folder, signal, start_until, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;

const BUDGET: &[&str] = &["--seconds", "20", "--write-bytes", "256MiB", "--file-size", "64MiB"];

struct Tuned {
    folder: TempDir,
    stdout: String,
    stderr: String,
}

impl Tuned {
    fn result(&self, name: &str) -> PathBuf {
        self.folder.path().join("flashgrain-out").join(name)
    }

    fn profile(&self) -> Value {
        serde_json::from_slice(&fs::read(self.result("profile.json")).unwrap()).unwrap()
    }
}

/// One run in a folder that holds a file of the user's.
fn tuned() -> &'static Tuned {
    static RUN: OnceLock<Tuned> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = folder();
        fs::write(folder.path().join("precious.db"), "do not touch").unwrap();
        let assert = flashgrain().current_dir(&folder).arg("tune").args(BUDGET).assert().success();
        Tuned { stdout: stdout(&assert), stderr: stderr(&assert), folder }
    })
}

#[test]
fn it_says_first_what_it_will_do() {
    let said = &tuned().stderr;
    for text in ["20 s", "256 MiB", "64 MiB", "scratch", "backend", "seed", "flashgrain-out"] {
        assert!(said.contains(text), "expected {text:?} in:\n{said}");
    }
}

#[test]
fn it_writes_its_results_and_nothing_else() {
    let found = contents(tuned().folder.path());
    assert_eq!(found[&tuned().folder.path().join("precious.db").display().to_string()], b"do not touch");
    let names: BTreeSet<_> =
        found.keys().map(|path| Path::new(path).file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        BTreeSet::from(["precious.db", "profile.json", "report.html", "samples.csv", "samples.jsonl"])
    );
}

#[test]
fn it_stays_within_its_write_budget() {
    let profile = tuned().profile();
    let used = profile["budget"]["used_write_bytes"].as_u64().unwrap();
    assert!(used >= 64 << 20, "the scratch file counts: {used}");
    assert!(used <= 256 << 20, "{used}");
}

#[test]
fn a_store_several_times_its_cache_is_measured_beside_prediction_and_raw_device() {
    let profile = tuned().profile();
    let store = &profile["store"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    let (stored, cache) = (number(&store["stored_bytes"]), number(&store["cache_bytes"]));
    assert!(stored > 4.0 * cache, "{stored} bytes with a cache of {cache}");
    assert!(number(&store["records"]) * 128.0 < stored, "no record can be missing");
    let layout = store["layout"].as_array().unwrap();
    for setting in ["write unit", "segment", "log block", "sync method", "node"] {
        let decision = layout.iter().find(|decision| decision["setting"] == setting);
        let because = decision.unwrap_or_else(|| panic!("{setting}"))["because"].as_str().unwrap();
        assert!(because.len() > 5, "{setting}: {because}");
    }
    let operations = store["operations"].as_array().unwrap();
    let names: Vec<_> =
        operations.iter().map(|one| (one["operation"].as_str().unwrap(), &one["concurrency"])).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for operation in operations {
        for key in ["measured_per_second", "predicted_per_second", "raw_per_second", "cpu_us_per_operation"] {
            assert!(operation[key].as_f64() > Some(0.0), "{key} of {operation}: {:?}", profile["budget"]);
        }
    }
    let look_ups = operations.iter().find(|one| one["operation"] == "random look-ups").unwrap();
    let reads = number(&look_ups["reads_per_operation"]);
    assert!((0.5..1.01).contains(&reads), "{reads} reads for a look-up with a cache of a fifth");
}

#[test]
fn the_store_is_shown_with_its_layout_in_the_summary_and_in_the_report() {
    let report = fs::read_to_string(tuned().result("report.html")).unwrap();
    assert!(report.contains(r#"<figure id="fig-store""#));
    for place in [&tuned().stdout, &report] {
        for text in
            ["A store on this drive", "every page write becomes part of a large", "durable commits × 64"]
        {
            assert!(place.contains(text), "expected {text:?} in:\n{place}");
        }
    }
    assert!(tuned().stderr.contains("store, "), "{}", tuned().stderr);
}

#[test]
fn the_profile_says_where_it_comes_from() {
    let provenance = &tuned().profile()["provenance"];
    assert_eq!(provenance["flashgrain_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(provenance["seed"], 1);
    for key in ["kernel", "file_system", "backend"] {
        assert!(!provenance["identity"][key].as_str().unwrap().is_empty(), "{key}");
    }
}

#[test]
fn the_models_are_compared_and_the_predictions_checked() {
    let profile = tuned().profile();
    assert_eq!(profile["comparison"]["ranking"].as_array().unwrap().len(), 4);
    assert!(!profile["verification"].as_array().unwrap().is_empty());
    assert!(!profile["decisions"].as_array().unwrap().is_empty());
}

#[test]
fn the_summary_fits_a_hundred_columns_and_names_the_files() {
    let summary = &tuned().stdout;
    for line in summary.lines() {
        // Paths of the files may be longer than any screen.
        assert!(line.chars().count() <= 100 || line.contains("flashgrain-out"), "{line}");
    }
    for text in ["MQSSD", "Decisions", "Advice for a default mix", "profile.json", "report.html"] {
        assert!(summary.contains(text), "expected {text:?} in:\n{summary}");
    }
}

#[test]
fn the_report_is_one_file_without_fetches() {
    let page = fs::read_to_string(tuned().result("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
    for fetch in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(fetch), "the page fetches: {fetch}");
    }
}

#[test]
fn the_format_documentation_names_every_key() {
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    found.insert(key.clone());
                    keys(value, found);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    keys(&tuned().profile(), &mut found);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profile-format.md");
    let page = fs::read_to_string(page).unwrap();
    let missing: Vec<_> = found.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/profile-format.md does not explain {missing:?}");
}

#[test]
fn the_stored_profile_can_be_shown_and_reported_again() {
    let file = tuned().result("profile.json");
    let shown = stdout(&flashgrain().args(["profile", "show"]).arg(&file).assert().success());
    assert!(tuned().stdout.contains(shown.trim_end()), "what is shown is what tune printed");

    let copy = tuned().folder.path().join("flashgrain-out/copy.html");
    flashgrain().arg("report").arg(&file).arg("-o").arg(&copy).assert().success();
    assert_eq!(fs::read(&copy).unwrap(), fs::read(tuned().result("report.html")).unwrap());
    fs::remove_file(&copy).unwrap();
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let file = tuned().result("profile.json");
    let same = stdout(&flashgrain().args(["profile", "diff"]).args([&file, &file]).assert().success());
    assert!(same.contains("no difference") || same.contains("No difference"), "{same}");
}

#[test]
fn the_comparison_can_be_made_again_from_the_profile_and_from_its_samples() {
    for name in ["profile.json", "samples.csv"] {
        let assert = flashgrain().arg("compare").arg(tuned().result(name)).arg("--json").assert().success();
        let comparison: Value = serde_json::from_str(&stdout(&assert)).unwrap();
        assert_eq!(comparison["ranking"], tuned().profile()["comparison"]["ranking"], "{name}");
    }
}

#[test]
fn json_on_standard_output_is_the_profile_and_quiet_is_silent() {
    let folder = folder();
    let assert = flashgrain()
        .current_dir(&folder)
        .args(["--quiet", "profile", ".", "--only", "flush", "--json"])
        .args(BUDGET)
        .assert()
        .success();
    assert_eq!(stderr(&assert), "");
    let printed: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    let written = fs::read(folder.path().join("flashgrain-out/profile.json")).unwrap();
    assert_eq!(printed, serde_json::from_slice::<Value>(&written).unwrap());
    let run: Vec<_> =
        printed["budget"]["experiments"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(run, ["flush"]);
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing() {
    let folder = folder();
    let arguments = ["tune", "--seconds", "60", "--write-bytes", "128MiB", "--file-size", "32MiB"];
    let mut child = start_until(&arguments, folder.path(), "seed");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn kill_9_in_the_middle_leaves_no_file() {
    let folder = folder();
    let arguments = ["tune", "--seconds", "60", "--write-bytes", "128MiB", "--file-size", "32MiB"];
    let mut child = start_until(&arguments, folder.path(), "seed");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn results_do_not_replace_a_file_that_is_not_flashgrains() {
    let folder = folder();
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    fs::write(results.join("profile.json"), r#"{"name": "somebody else's"}"#).unwrap();
    let before = contents(folder.path());
    fails(
        flashgrain().current_dir(&folder).args(["tune", "--out", "results"]).args(BUDGET),
        2,
        &["profile.json", "--out"],
    );
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn a_scratch_file_cannot_be_laid_out_without_writing() {
    let folder = folder();
    fails(flashgrain().arg("tune").arg(folder.path()).args(["--write-bytes", "0"]), 2, &["--write-bytes"]);
    fails(
        flashgrain().arg("tune").arg(folder.path()).args(["--write-bytes", "1MiB", "--file-size", "32MiB"]),
        2,
        &["--write-bytes", "--file-size"],
    );
}
