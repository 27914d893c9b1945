//! Profile files: what is written reads back, the first version reads for ever, and nothing else does.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common::{Character, TestDrive};
use flashgrain_profile::settings::{Bytes, SegmentShape, SyncMethod, drive};
use flashgrain_profile::{Config, DeviceProfile, Error, ExperimentName, Silent, Target, file, run};

/// A profile of schema version 1, made by the first Flashgrain that wrote them.
const VERSION_1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/profile-v1.json");

fn small_profile() -> DeviceProfile {
    let drive = TestDrive::new(Character { capacity_bytes: 64 << 20, ..Character::default() });
    let config = Config {
        budget_s: 2.0,
        write_bytes: 300 << 20,
        experiments: vec![
            ExperimentName::Parallel,
            ExperimentName::Size,
            ExperimentName::Mix,
            ExperimentName::Flush,
            ExperimentName::RequestSize,
            ExperimentName::Location,
        ],
        location_groups: 4,
        resamples: 20,
        ..Config::default()
    };
    run(&Target::new(&drive), &config, &mut Silent, &AtomicBool::new(false)).unwrap().profile
}

fn problem(path: &Path) -> String {
    match file::read(path) {
        Err(Error::File { problem, .. }) => problem,
        other => panic!("{:?}", other.map(|profile| profile.format)),
    }
}

#[test]
fn what_is_written_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let profile = small_profile();
    file::write(&path, &profile).unwrap();
    let back = file::read(&path).unwrap();
    assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&profile).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn version_1_reads() {
    let profile = file::read(Path::new(VERSION_1)).unwrap();
    assert_eq!(profile.schema_version, 1);
    assert_eq!(profile.provenance.identity.target, "test drive");
    assert!(!profile.measurements.parallel.is_empty() && !profile.verification.is_empty());
    assert!(profile.models.is_some() && profile.comparison.is_some());
}

/// Files of the first version have no amounts, and settings that nothing takes.
#[test]
fn the_decisions_of_version_1_have_types() {
    let profile = file::read(Path::new(VERSION_1)).unwrap();
    let (unit, decision) = profile.decided(drive::Setting::write_unit).unwrap();
    assert_eq!((unit, decision.from_default), (Bytes(64 << 10), true));
    let (segment, _) = profile.decided(drive::Setting::segment).unwrap();
    assert_eq!(segment, SegmentShape { bytes: 8 << 20, align_bytes: 64 << 10 });
    let (method, decision) = profile.decided(drive::Setting::sync_method).unwrap();
    assert_eq!((method, decision.from_default), (SyncMethod::Fdatasync, false));
    let (window, _) = profile.decided(drive::Setting::group_commit_window).unwrap();
    assert_eq!(window, Duration::from_micros(1020));
    let is_unknown = |one: &&drive::Decision| matches!(one.setting, drive::Setting::Unknown(_));
    let unknown: Vec<&str> =
        profile.decisions.iter().filter(is_unknown).map(|one| one.setting.name()).collect();
    assert_eq!(unknown, ["table write size", "compaction and flush parallelism"]);
}

/// The profile of version 1 with another row in front of its decisions.
fn with_decision(row: &str) -> Result<DeviceProfile, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let text = std::fs::read_to_string(VERSION_1).unwrap();
    std::fs::write(&path, text.replacen("\"decisions\": [", &format!("\"decisions\": [{row},"), 1)).unwrap();
    file::read(&path).map_err(|error| error.to_string())
}

#[test]
fn settings_of_later_versions_are_kept_and_impossible_ones_refused() {
    let row = |setting: &str, amount: &str| {
        format!(
            r#"{{"setting": "{setting}", "value": "9 things", "amount": {amount}, "because": "", "from_default": false}}"#
        )
    };
    let later = with_decision(&row("spin-up", r#"{"turns": 9}"#)).unwrap();
    let first = &later.decisions[0].setting;
    assert_eq!((first.name(), first.value().as_str()), ("spin-up", "9 things"));
    for (setting, amount, problem) in [
        ("write unit", r#"{"bytes": 9}"#, "`write unit` is 9 B, but must be between 512 B and 1 TiB"),
        ("write unit", r#"{"bytes": 1e300}"#, "decisions[0].amount.bytes is 1e300"),
        ("requests in flight", r#"{"count": 99999999}"#, "`requests in flight` is 99999999, but must be"),
        ("read-ahead", r#"{"count": 9}"#, "`read-ahead` has an amount that does not belong to it"),
    ] {
        let error = with_decision(&row(setting, amount)).unwrap_err();
        assert!(error.contains("is damaged") && error.contains(problem), "{error}");
    }
}

#[test]
fn a_cut_off_profile_is_refused_wherever_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let whole = std::fs::read(VERSION_1).unwrap();
    // The last brace and newline are the only end that leaves a whole profile.
    for length in (0..whole.len() - 2).step_by(whole.len() / 200) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let problem = problem(&path);
        assert!(
            problem.contains("cut off") || problem.contains("not a Flashgrain profile"),
            "{length}: {problem}"
        );
    }
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let text = std::fs::read_to_string(VERSION_1).unwrap();
    std::fs::write(&path, text.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1)).unwrap();
    let problem = problem(&path);
    assert!(problem.contains("schema version 2") && problem.contains("up to 1"), "{problem}");
}

#[test]
fn missing_files_and_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no such file.json");
    let error = file::read(&missing).unwrap_err().to_string();
    assert!(
        error.contains("no such file.json")
            && error.contains("does not exist")
            && error.contains("flashgrain tune"),
        "{error}"
    );
    let error = file::write(&missing.join("deeper.json"), &small_profile()).unwrap_err().to_string();
    assert!(error.contains("deeper.json") && error.contains("cannot be written"), "{error}");
    assert!(file::read(folder.path()).is_err());
}
