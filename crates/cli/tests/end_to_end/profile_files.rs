//! Files that are no profile, or not one that this version can read: every command that reads profiles says
//! so and names the file.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stderr, stdout};

/// Content of each file, and a text that the message must contain.
const WRONG: &[(&str, &str, &str)] = &[
    ("empty.json", "", "profile"),
    ("text.json", "once upon a time", "profile"),
    ("foreign.json", r#"{"name": "left-pad", "version": "1.0.0"}"#, "profile"),
    (
        "cut.json",
        r#"{"format": "flashgrain device profile", "schema_version": 1, "provenance": {"ident"#,
        "profile",
    ),
    ("newer.json", r#"{"format": "flashgrain device profile", "schema_version": 999}"#, "999"),
    ("hollow.json", r#"{"format": "flashgrain device profile", "schema_version": 1}"#, "provenance"),
];

#[test]
fn every_reader_refuses_what_is_no_profile() {
    let folder = folder();
    for (name, content, text) in WRONG {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let file = path.to_str().unwrap();
        for command in [
            vec!["report", file],
            vec!["compare", file],
            vec!["profile", "show", file],
            vec!["profile", "export", file, "--format", "iocost"],
            vec!["profile", "diff", file, file],
        ] {
            fails(flashgrain().current_dir(&folder).args(&command), 1, &[file, text]);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), *content);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), WRONG.len(), "nothing else was written");
}

#[test]
fn bytes_that_are_no_text_are_refused_too() {
    let folder = folder();
    let path = folder.path().join("profile.json");
    fs::write(&path, (0..=255).collect::<Vec<u8>>()).unwrap();
    fails(flashgrain().args(["profile", "show"]).arg(&path), 1, &[path.to_str().unwrap()]);
}

#[test]
fn a_missing_profile_is_named() {
    fails(
        flashgrain().args(["report", "/nowhere/profile.json"]),
        1,
        &["/nowhere/profile.json", "No such file"],
    );
}

#[test]
fn a_samples_file_that_is_malformed_is_refused_with_its_line() {
    let folder = folder();
    let path = folder.path().join("samples.csv");
    fs::write(&path, "experiment,repeat\norder,first\n").unwrap();
    fails(flashgrain().arg("compare").arg(&path), 1, &["samples.csv", "line 1"]);
}

/// A profile in the form of schema version 1, as kept for the readers' tests.
const VERSION_1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json");

#[test]
fn a_profile_of_the_first_schema_is_read_by_all() {
    let folder = folder();
    for command in [
        vec!["profile", "show", VERSION_1],
        vec!["compare", VERSION_1],
        vec!["profile", "diff", VERSION_1, VERSION_1],
        vec!["report", VERSION_1, "-o", "page.html"],
    ] {
        flashgrain().current_dir(&folder).args(command).assert().success();
    }
    assert!(fs::metadata(folder.path().join("page.html")).unwrap().len() > 0);
}

#[test]
fn a_profile_can_be_exported_for_other_software() {
    let mut profile: Value = serde_json::from_slice(&fs::read(VERSION_1).unwrap()).unwrap();
    // It was made without `sequential`: let what `mix` measured stand for it.
    let mut points = profile["measurements"]["mix"].clone();
    for point in points.as_array_mut().unwrap() {
        point["workload"]["random_share"] = 0.0.into();
    }
    profile["measurements"]["sequential"] = points;
    let folder = folder();
    let file = folder.path().join("profile.json");
    fs::write(&file, profile.to_string()).unwrap();
    let export = |arguments: &[&str]| {
        stdout(&flashgrain().args(["profile", "export"]).arg(&file).args(arguments).assert().success())
    };
    let yaml = export(&["--format", "iotune", "--mount-point", "/data"]);
    assert!(yaml.contains("mountpoint: /data") && yaml.contains("write_iops: "), "{yaml}");
    let line = export(&["--format", "iocost", "--device-number", "259:0"]);
    assert!(line.starts_with("259:0 ctrl=user model=linear rbps=") && line.ends_with('\n'), "{line}");
    let iocost = ["--format", "iocost", "--device-number", "259:0"];
    let exported = flashgrain().args(["profile", "export"]).arg(&file).args(iocost).assert().success();
    let said = String::from_utf8_lossy(&exported.get_output().stderr).into_owned();
    assert!(said.contains("writes: short bursts"), "{said}");
}

#[test]
fn a_number_that_no_drive_has_is_refused_with_field_and_value() {
    let folder = folder();
    let good =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json"))
            .unwrap();
    let mut profile: Value = serde_json::from_str(&good).unwrap();
    profile["measurements"]["size"][0]["bytes_per_second"] = 1e308.into();
    let path = folder.path().join("profile.json");
    fs::write(&path, profile.to_string()).unwrap();
    let said = ["measurements.size[0].bytes_per_second is 1e308", "make the profile again"];
    fails(flashgrain().current_dir(&folder).args(["report", "profile.json"]), 1, &said);
    assert!(!folder.path().join("report.html").exists());
}

#[test]
fn readers_take_the_folder_of_results_and_samples_from_a_pipe() {
    let folder = folder();
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json");
    fs::copy(fixture, results.join("profile.json")).unwrap();
    for command in [&["report", "results"][..], &["profile", "show", "results"], &["compare", "results"]] {
        flashgrain().current_dir(&folder).args(command).assert().success();
    }
    assert!(results.join("report.html").exists());
    let shown = stdout(
        &flashgrain().current_dir(&folder).args(["profile", "show", "results", "--json"]).assert().success(),
    );
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["schema_version"], 1);
    let mut samples = "access,request_bytes,concurrency,bytes_per_second\n".to_owned();
    for power in 12..22 {
        let bytes = f64::from(1 << power);
        samples += &format!("read,{bytes},1,{}\n", bytes / (80e-6 + bytes / 2e9));
    }
    let compared =
        flashgrain().args(["compare", "/dev/stdin"]).write_stdin(samples.clone()).assert().success();
    let compared = stdout(&compared);
    assert!(compared.contains("affine") && compared.contains("No rows for writes"), "{compared}");

    // As a shell's process substitution hands it over, with the constants as JSON.
    let compared = assert_cmd::Command::new("bash")
        .args(["-c", "exec \"$FLASHGRAIN\" compare --json <(printf %s \"$SAMPLES\")"])
        .env("FLASHGRAIN", env!("CARGO_BIN_EXE_flashgrain"))
        .env("SAMPLES", samples)
        .assert()
        .success();
    let compared: Value = serde_json::from_str(&stdout(&compared)).unwrap();
    let affine = compared["models"]["affine"]["parameters"].as_array().unwrap();
    let setup = &affine.iter().find(|parameter| parameter["symbol"] == "s").unwrap()["estimate"];
    let bound = |name: &str| setup[name].as_f64().unwrap();
    assert!((bound("value") - 80.0).abs() < 0.1 && bound("low") <= bound("value"), "{setup}");
    let missing = compared["without_row"].as_array().unwrap();
    assert!(missing.iter().any(|row| row["access"] == "write"), "{missing:?}");

    // A profile has its fits with it, but no samples beside a pipe.
    let profile = fs::read_to_string(fixture).unwrap();
    let mut of_one_thread = flashgrain();
    of_one_thread.args(["compare", "--one-thread", "/dev/stdin"]).write_stdin(profile.clone());
    fails(&mut of_one_thread, 1, &["name the samples.csv"]);
    let compared = flashgrain().args(["compare", "/dev/stdin"]).write_stdin(profile).assert().success();
    assert!(!stderr(&compared).contains("samples.csv"), "{}", stderr(&compared));
    assert!(stdout(&compared).contains("Constants that do not depend on k"), "{}", stdout(&compared));
}

/// As in Figure 2 of the MQSSD paper: with the costs of one thread the affine model is right for one thread, and
/// knows nothing of more; PDAM gains with their number.
#[test]
fn models_are_given_the_costs_of_one_thread() {
    let mut samples = "access,request_bytes,concurrency,bytes_per_second\n".to_owned();
    for streams in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
        for power in [12, 14, 16, 20] {
            let bytes = f64::from(1 << power);
            let seconds = 80e-6 / f64::min(streams, 8.0) + bytes / 2e9;
            samples += &format!("read,{bytes},{streams},{}\n", bytes / seconds);
        }
    }
    let compare = |more: &[&str]| {
        let arguments = ["compare", "/dev/stdin", "--one-thread"];
        stdout(&flashgrain().args(arguments).args(more).write_stdin(samples.clone()).assert().success())
    };
    let compared: Value = serde_json::from_str(&compare(&["--json"])).unwrap();
    let rows = compared["one_thread"].as_array().unwrap();
    let ratio = |model: &str, k: f64| {
        let row = rows.iter().find(|row| row["model"] == model && row["costs_of"] == "one_thread").unwrap();
        let all = row["predicted_over_measured"].as_array().unwrap();
        all.iter().find(|one| one[0] == k).unwrap()[1].as_f64().unwrap()
    };
    assert!((ratio("affine", 1.0) - 1.0).abs() < 1e-3 && ratio("affine", 32.0) < 0.6, "{rows:?}");
    assert!(ratio("pdam", 2.0) > 1.5 * ratio("dam", 2.0), "{rows:?}");
    let text = compare(&[]);
    for part in ["Models given the costs of one thread", "one thread", "all k", "k = 32"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}
