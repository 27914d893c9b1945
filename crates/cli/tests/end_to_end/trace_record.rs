//! `flashgrain trace record`: what is recorded can be read, whatever ends the recording. Parts that need
//! root, tracefs or strace are left out where there is none.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, signal, start_until, stderr, stdout};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures/960evo.json");

/// Whether system calls can be recorded here.
fn has_strace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|output| output.status.success())
}

fn checked(folder: &Path, trace: &str) -> Value {
    let mut command = flashgrain();
    command.current_dir(folder).args(["trace", "check", trace, "--profile", PROFILE, "--json"]);
    serde_json::from_str(&stdout(&command.assert().success())).unwrap()
}

#[test]
fn the_calls_of_a_command_are_recorded_with_their_files() {
    if !has_strace() {
        return;
    }
    let folder = folder();
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "record", "-o", "dd.trace", "--no-blocks", "--"]);
    let assert = command.args(["dd", "if=/dev/zero", "of=out", "bs=4096", "count=25", "conv=fsync"]).assert();
    let said = stderr(&assert.success());
    assert!(said.contains("wrote dd.trace"), "{said}");
    assert!(!folder.path().join("dd.trace.partial").exists());
    let found = checked(folder.path(), "dd.trace");
    let files = found["files"].as_array().unwrap();
    let out = files.iter().find(|file| file["name"].as_str().unwrap().ends_with("/out")).unwrap();
    assert_eq!((&out["writes"]["requests"], &out["writes"]["bytes"]), (&25.into(), &102_400.into()));
    assert_eq!((&out["flushes"], &out["kind"]), (&1.into(), &"appended".into()));
}

#[test]
fn the_source_of_the_calls_is_said_and_can_be_asked_for() {
    let folder = folder();
    let record = |source: &str| {
        let mut command = flashgrain();
        let arguments = ["trace", "record", "-o", "a.trace", "--no-blocks", "--calls-by", source];
        command.current_dir(&folder).args(arguments).args(["--", "sh", "-c", "echo a > b"]);
        command.assert()
    };
    let by_kernel = record("kernel");
    if by_kernel.get_output().status.success() {
        let said = stderr(&by_kernel);
        assert!(said.contains("by the kernel's trace events"), "{said}");
        let found = checked(folder.path(), "a.trace");
        let files = found["files"].as_array().unwrap();
        assert!(files.iter().any(|file| file["name"].as_str().unwrap().ends_with("/b")), "{found}");
    } else {
        let said = stderr(&by_kernel.code(1));
        eprintln!("not recorded by the kernel here: {said}");
        assert!(said.contains("system calls cannot be recorded by the kernel: "), "{said}");
    }
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "record", "--calls-by", "wish", "--", "true"]);
    fails(&mut command, 2, &["wish", "kernel", "strace"]);
}

#[test]
fn a_command_that_fails_leaves_its_trace_and_the_reason() {
    if !has_strace() {
        return;
    }
    let folder = folder();
    let record = |arguments: &[&str], code: i32, texts: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["trace", "record", "--no-blocks"]).args(arguments);
        fails(&mut command, code, texts);
    };
    record(&["-o", "a.trace", "--", "sh", "-c", "echo a > b; exit 3"], 1, &["exit status: 3", "a.trace"]);
    assert!(checked(folder.path(), "a.trace")["requests"].as_u64().unwrap() > 0);
    // It is there, but no program.
    record(
        &["-o", "b.trace", "--calls-by", "strace", "--", "./b"],
        1,
        &["strace ended with", "it says why above"],
    );
}

#[test]
fn ctrl_c_ends_the_command_and_keeps_what_was_recorded() {
    if !has_strace() {
        return;
    }
    let folder = folder();
    let arguments = ["-v", "trace", "record", "-o", "a.trace", "--no-blocks", "--"];
    let script = "echo a > b; echo begun >&2; sleep 100";
    let child = start_until(&[&arguments[..], &["sh", "-c", script]].concat(), folder.path(), "begun");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let found = checked(folder.path(), "a.trace");
    let files = found["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["name"].as_str().unwrap().ends_with("/b")), "{found}");
}

/// However soon it is killed, and with what was handed on until then.
#[test]
fn a_killed_recorder_leaves_a_trace_that_is_cut_off() {
    if !has_strace() {
        return;
    }
    let folder = folder();
    let partial = || {
        let text = fs::read_to_string(folder.path().join("a.trace.partial"));
        text.expect("the recording has ended before the file of the write was in it")
    };
    let arguments = ["trace", "record", "-o", "a.trace", "--no-blocks", "--"];
    let script = "echo a > b; echo begun >&2; sleep 10";
    let mut child = start_until(&[&arguments[..], &["sh", "-c", script]].concat(), folder.path(), "begun");
    assert!(partial().starts_with("flashgrain trace 1\nnote recorded: sh"), "{}", partial());
    while !partial().contains("/b\n") {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    signal(&child, "KILL");
    // The command goes on without it.
    child.wait().unwrap();
    let mut command = flashgrain();
    command.current_dir(&folder).args(["trace", "check", "a.trace.partial", "--profile", PROFILE, "--json"]);
    let assert = command.assert().code(1);
    assert!(stderr(&assert).contains("cut off"), "{}", stderr(&assert));
    let found: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    let files = found["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["name"].as_str().unwrap().ends_with("/b")), "{found}");
}

#[test]
fn what_cannot_be_recorded_is_refused_with_the_reason() {
    let folder = folder();
    fs::write(folder.path().join("text"), "once upon a time").unwrap();
    let refused = |arguments: &[&str], code: i32, texts: &[&str]| {
        let mut command = flashgrain();
        fails(command.current_dir(&folder).args(["trace", "record"]).args(arguments), code, texts);
    };
    refused(&[], 2, &["-- COMMAND", "--pid", "--device"]);
    refused(&["--pid", "4194305"], 2, &["4194305", "no such process"]);
    refused(&["--device", "/dev/no-such-drive"], 1, &["/dev/no-such-drive", "No such file"]);
    refused(&["--device", "/proc"], 1, &["/proc", "no block device"]);
    refused(&["-o", "text", "--", "true"], 2, &["text exists and is no trace"]);
    // An older trace stays.
    fs::write(folder.path().join("older"), "flashgrain trace 1\nend\n").unwrap();
    for command in ["./no-such-command", "no-such-command"] {
        refused(&["-o", "older", "--", command], 2, &["there is no command", command]);
    }
    assert_eq!(fs::read_to_string(folder.path().join("older")).unwrap(), "flashgrain trace 1\nend\n");
    // A program that is nowhere: strace.
    let mut command = flashgrain();
    command.current_dir(&folder).env("PATH", "/nowhere").args([
        "trace",
        "record",
        "--no-blocks",
        "--calls-by",
        "strace",
        "--",
        "/bin/true",
    ]);
    fails(&mut command, 1, &["strace", "not installed", "--no-calls"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn block_requests_are_recorded_where_the_kernel_can_be_traced() {
    let folder = folder();
    let mut command = flashgrain();
    command.current_dir(&folder).args([
        "trace",
        "record",
        "-o",
        "a.trace",
        "--no-calls",
        "--device",
        ".",
        "--",
    ]);
    let assert = command.args(["dd", "if=/dev/zero", "of=out", "bs=4096", "count=1", "conv=fsync"]).assert();
    let said = stderr(&assert);
    if !assert.get_output().status.success() {
        // No root, no tracefs, or a folder that is on no drive: it says which.
        let reasons = ["only root", "no tracefs is mounted", "no trace events", "no block device"];
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
        return;
    }
    assert!(said.contains("its counters have"), "{said}");
    assert_eq!(fs::read(folder.path().join("out")).unwrap().len(), 4096, "the command has run");
    assert!(checked(folder.path(), "a.trace")["requests"].as_u64().unwrap() > 0);
    // Of a drive alone, Ctrl-C is the end of the recording, and nothing is left in the kernel.
    let arguments = ["trace", "record", "-o", "b.trace", "--device", "."];
    let child = start_until(&arguments, folder.path(), "recording");
    let instance = format!("/sys/kernel/tracing/instances/flashgrain-{}", child.id());
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!Path::new(&instance).exists());
    checked(folder.path(), "b.trace");
}
