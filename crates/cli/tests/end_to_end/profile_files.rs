//! Files that are no profile, or not one that this version can read: every command that reads profiles says so and names the file.

use std::fs;

use crate::support::{fails, flashgrain, folder};

/// What each file holds, and what the message must say about it.
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
