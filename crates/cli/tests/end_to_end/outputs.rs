//! Targets of output: files are replaced whole, everything else is written through, and a target that cannot
//! be written is reported before the work.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::db::{command, db, store};
use crate::support::{contents, fails, flashgrain, folder, stdout};

#[test]
fn standard_output_links_and_devices_are_written_through() {
    let folder = store();
    let bytes: Vec<u8> = (0..=255).collect();
    fs::write(folder.path().join("value"), &bytes).unwrap();
    db(&folder, "put store key --value-file value");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "much older and longer than what is written now").unwrap();
    symlink("file", at("link")).unwrap();
    symlink("/dev/stdout", at("out")).unwrap();
    for output in ["--output -", "--output /dev/stdout", "--output out", "--raw"] {
        let assert = command(&folder, &format!("get store key {output}")).assert().success();
        assert!(assert.get_output().stdout == bytes, "{output}");
    }
    db(&folder, "get store key --output link");
    assert!(fs::read(at("file")).unwrap() == bytes);
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    db(&folder, "get store key --output /dev/null");
    assert!(!fs::symlink_metadata("/dev/null").unwrap().is_file());
    let into = |file: &str| {
        format!("{} db get store key --output /dev/stdout >> {file}", env!("CARGO_BIN_EXE_flashgrain"))
    };
    fs::write(at("log"), "before").unwrap();
    let script =
        std::process::Command::new("sh").args(["-c", &into("log")]).current_dir(&folder).status().unwrap();
    assert!(script.success());
    assert_eq!(fs::read(at("log")).unwrap(), [b"before", &bytes[..]].concat());
}

#[test]
fn a_results_folder_that_takes_nothing_is_refused_before_the_work() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    fs::create_dir_all(folder.path().join("out/report.html")).unwrap();
    for (out, why) in
        [("file", "results"), ("out", "report.html: cannot be written"), ("/proc/none", "/proc/none")]
    {
        let mut tune = flashgrain();
        // Long enough for the test to fail if it is only found out at the end.
        tune.current_dir(&folder)
            .args(["tune", ".", "--seconds", "600", "--out", out])
            .timeout(std::time::Duration::from_secs(60));
        fails(&mut tune, 1, &[why]);
    }
}

#[test]
fn a_block_size_that_the_drive_cannot_take_is_refused_before_anything_is_written() {
    let folder = folder();
    let mut io = flashgrain();
    io.current_dir(&folder).args(["io", ".", "--file-size", "64MiB", "--block-size", "5000"]);
    let assert = io.assert().code(2);
    let said = crate::support::stderr(&assert);
    assert!(said.contains("5000") && !said.contains("writing the scratch file"), "{said}");
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn an_interrupted_profile_keeps_what_was_measured_if_asked() {
    let folder = folder();
    let arguments = [
        "profile",
        "sim:905p",
        "--seconds",
        "100000",
        "--keep-interrupted",
        "--out",
        "kept",
        "--only",
        "order",
    ];
    let child = crate::support::start_until(&arguments, folder.path(), "results");
    // Until there are samples.
    std::thread::park_timeout(std::time::Duration::from_secs(2));
    crate::support::signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let profile = fs::read(folder.path().join("kept/profile.json")).unwrap();
    let profile: Value = serde_json::from_slice(&profile).unwrap();
    let left_out = profile["budget"]["left_out"].to_string();
    assert!(left_out.contains("interrupted"), "{left_out}");
    let show =
        flashgrain().current_dir(&folder).args(["profile", "show", "kept/profile.json"]).assert().success();
    assert!(!stdout(&show).is_empty());
}
