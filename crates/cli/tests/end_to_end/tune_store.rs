//! The store that `tune` builds: where there can be none, on what the user gave up, on a simulated drive, and
//! when it is interrupted.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{contents, flashgrain, folder, signal, start_until, stderr, stdout};

const ENOUGH: &[&str] = &["--seconds", "8", "--write-bytes", "240MiB"];

/// The profile in the results folder in `folder`.
fn profile(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("flashgrain-out/profile.json")).unwrap()).unwrap()
}

#[test]
fn without_enough_budget_there_is_none_and_the_reason_says_what_would_be_enough() {
    for (arguments, why) in [
        (&["--seconds", "2", "--write-bytes", "240MiB"][..], "give --seconds at least 7.50 s"),
        (&["--seconds", "8", "--write-bytes", "64MiB"], "give --write-bytes at least 240 MiB"),
        (
            &["--seconds", "8", "--write-bytes", "1GiB", "--file-size", "16MiB"],
            "give --file-size at least 30 MiB",
        ),
        (&["--seconds", "2", "--write-bytes", "240MiB", "--no-store"], "left out on request"),
    ] {
        let folder = folder();
        let assert = flashgrain().current_dir(&folder).arg("tune").args(arguments).assert().success();
        let profile = profile(folder.path());
        assert!(profile.get("store").is_none(), "{arguments:?}");
        let left_out = profile["budget"]["left_out"].as_array().unwrap();
        let said = left_out
            .iter()
            .any(|one| one.as_str().unwrap().starts_with("store: ") && one.as_str().unwrap().contains(why));
        assert!(said, "{why:?} in {left_out:?}");
        assert!(stderr(&assert).contains("no store") && stderr(&assert).contains(why), "{}", stderr(&assert));
        assert!(stdout(&assert).contains("Not built: "), "{}", stdout(&assert));
        let report = fs::read_to_string(folder.path().join("flashgrain-out/report.html")).unwrap();
        assert!(report.contains(r#"<section id="store">"#) && !report.contains("fig-store"));
    }
}

#[test]
fn what_may_only_be_read_gets_none() {
    let folder = folder();
    fs::write(folder.path().join("precious.db"), vec![7; 64 << 20]).unwrap();
    let arguments = ["tune", "precious.db", "--seconds", "8", "--write-bytes", "0"];
    flashgrain().current_dir(&folder).args(arguments).assert().success();
    let profile = profile(folder.path());
    assert!(profile.get("store").is_none());
    assert_eq!(fs::read(folder.path().join("precious.db")).unwrap(), vec![7; 64 << 20]);
}

#[test]
fn a_file_that_was_given_up_holds_one() {
    let folder = folder();
    fs::write(folder.path().join("scratch.db"), vec![7; 64 << 20]).unwrap();
    let arguments = ["tune", "scratch.db", "--destroy-contents-of", "scratch.db"];
    // Records are inserted for a part of the time: enough for a machine that does other things, too.
    let enough = ["--seconds", "20", "--write-bytes", "240MiB"];
    flashgrain().current_dir(&folder).args(arguments).args(enough).assert().success();
    assert!(profile(folder.path())["store"]["records"].as_u64().unwrap() > 50_000);
    assert_eq!(fs::metadata(folder.path().join("scratch.db")).unwrap().len(), 64 << 20);
}

#[test]
fn on_a_simulated_drive_it_runs_in_virtual_time_the_same_every_time() {
    let run = || {
        let folder = folder();
        let arguments = ["tune", "sim:960evo", "--file-size", "64MiB"];
        let assert = flashgrain().current_dir(&folder).args(arguments).args(ENOUGH).assert().success();
        assert!(stdout(&assert).contains("A store on this drive"), "{}{}", stdout(&assert), stderr(&assert));
        profile(folder.path())
    };
    let first = run();
    let operations = first["store"]["operations"].as_array().unwrap();
    assert!(
        operations.iter().all(|one| one["cpu_us_per_operation"].is_null()),
        "simulated processors cost nothing"
    );
    let look_ups = operations.iter().find(|one| one["operation"] == "random look-ups").unwrap();
    let rate = |key: &str| look_ups[key].as_f64().unwrap();
    // Nothing disturbs it, and nothing but the drive takes time.
    let share = rate("measured_per_second") / rate("raw_per_second");
    assert!((0.9..1.1).contains(&share), "{look_ups}");
    assert_eq!(first["store"], run()["store"]);
}

#[test]
fn ctrl_c_and_kill_9_while_it_is_worked_on_leave_nothing() {
    for (name, code) in [("INT", Some(130)), ("KILL", None)] {
        let folder = folder();
        let mut child = start_until(
            &["tune", "--seconds", "8", "--write-bytes", "240MiB"],
            folder.path(),
            "looking up records",
        );
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        assert!(contents(folder.path()).is_empty(), "{name}");
    }
}
