//! An existing target is written only when the user names it with the flag that says that its contents are
//! lost.

use std::fs;
use std::path::PathBuf;

use crate::support::{LoopDevice, fails, flashgrain, folder};
use tempfile::TempDir;

const QUICK: &[&str] = &["--seconds", "0.2", "--warmup", "0.05", "--depth", "4"];

fn precious() -> (TempDir, PathBuf, Vec<u8>) {
    let folder = folder();
    let path = folder.path().join("precious.db");
    let bytes: Vec<u8> = (0..1 << 20).map(|index| (index % 251) as u8).collect();
    fs::write(&path, &bytes).unwrap();
    (folder, path, bytes)
}

#[test]
fn reading_an_existing_file_needs_nothing_and_changes_nothing() {
    let (_folder, path, bytes) = precious();
    flashgrain().arg("io").arg(&path).args(QUICK).assert().success();
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn writing_without_the_flag_is_refused_and_the_message_says_what_would_be_lost() {
    let (_folder, path, bytes) = precious();
    let name = path.to_str().unwrap();
    fails(
        flashgrain().arg("io").arg(&path).args(QUICK).args(["--read-share", "0"]),
        2,
        &[name, "--destroy-contents-of"],
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn consent_to_another_file_is_no_consent() {
    let (folder, path, bytes) = precious();
    let other = folder.path().join("other.db");
    fs::write(&other, &bytes).unwrap();
    fails(
        flashgrain()
            .arg("io")
            .arg(&path)
            .args(QUICK)
            .args(["--read-share", "0", "--destroy-contents-of"])
            .arg(&other),
        2,
        &["--destroy-contents-of"],
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read(&other).unwrap(), bytes);
}

#[test]
fn with_the_flag_the_file_is_written_and_keeps_its_size() {
    let (_folder, path, bytes) = precious();
    flashgrain()
        .arg("io")
        .arg(&path)
        .args(QUICK)
        .args(["--read-share", "0", "--destroy-contents-of"])
        .arg(&path)
        .assert()
        .success();
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len(), bytes.len());
    assert_ne!(after, bytes);
}

#[test]
fn a_raw_device_is_read_freely_and_written_only_with_the_flag_that_names_it() {
    let (_folder, path, bytes) = precious();
    let Some(device) = LoopDevice::over(&path) else { return };
    flashgrain().args(["io", &device.0]).args(QUICK).assert().success();
    let writing = ["io", &device.0, "--read-share", "0"];
    fails(flashgrain().args(writing).args(QUICK), 2, &[&device.0, "--destroy-contents-of"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    flashgrain().args(writing).args(QUICK).args(["--destroy-contents-of", &device.0]).assert().success();
    assert_ne!(fs::read(&path).unwrap(), bytes);
}
