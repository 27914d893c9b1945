//! Profile files: what is written reads back, the first version reads for ever, and nothing else does.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::{Character, TestDrive};
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
    assert!(error.contains("no such file.json") && error.contains("cannot be read"), "{error}");
    let error = file::write(&missing.join("deeper.json"), &small_profile()).unwrap_err().to_string();
    assert!(error.contains("deeper.json") && error.contains("cannot be written"), "{error}");
    assert!(file::read(folder.path()).is_err());
}
