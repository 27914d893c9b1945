//! Faults of simulated drives on the command line and in files.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stdout};

const RUN: [&str; 6] = ["sim", "run", "905p", "--requests", "1000", "--depth=1"];

fn max_us(arguments: &[&str]) -> f64 {
    let printed = stdout(&flashgrain().args(arguments).arg("--json").assert().success());
    let result: Value = serde_json::from_str(&printed).unwrap();
    result["read"]["latency"]["max_us"].as_f64().unwrap()
}

#[test]
fn a_fault_happens_when_it_is_asked_for() {
    assert!(max_us(&RUN) < 100.0);
    let stall = "kind = 'stall', span_ns = 5000000, at = { nth = 100 }";
    let stalled = max_us(&[&RUN[..], &["--fault", stall]].concat());
    assert!((5000.0..5200.0).contains(&stalled), "{stalled}");

    // The same in a file.
    let folder = folder();
    let drive = stdout(&flashgrain().args(["sim", "show", "905p"]).assert().success());
    let section = "[[fault]]\nkind = 'stall'\nspan_ns = 5000000\nat = { nth = 100 }\n";
    fs::write(folder.path().join("tired.toml"), format!("{drive}\n{section}")).unwrap();
    let file = folder.path().join("tired.toml").to_str().unwrap().to_owned();
    let stalled = max_us(&["sim", "run", &file, "--requests", "1000", "--depth=1"]);
    assert!((5000.0..5200.0).contains(&stalled), "{stalled}");
}

#[test]
fn errors_of_the_drive_end_the_run_and_are_named() {
    fails(flashgrain().args(RUN).args(["--fault", "read-error"]), 1, &["Input/output error"]);
    fails(flashgrain().args(RUN).args(["--fault", "device-gone"]), 1, &["No such device"]);
}

#[test]
fn mistakes_in_a_fault_are_named() {
    for (fault, text) in [
        ("gremlins", "expected one of `power-cut`"),
        ("stall", "'span_ns' is missing"),
        ("kind = 'no-space', bit = 3", "has no field 'bit'"),
        ("kind = 'no-space', at = { probability = 2.0 }", "allowed is 0 to 1"),
    ] {
        fails(flashgrain().args(RUN).args(["--fault", fault]), 2, &[text]);
    }
}
