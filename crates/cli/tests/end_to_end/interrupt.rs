//! Ctrl-C, termination and kill -9 in the middle of the work: nothing is left behind.

use crate::support::{contents, folder, signal, start_until};

const LONG_IO: &[&str] = &["io", ".", "--file-size", "4MiB", "--seconds", "60", "--read-share", "50%"];

#[test]
fn ctrl_c_ends_a_load_with_130_and_what_was_measured() {
    let folder = folder();
    let child = start_until(LONG_IO, folder.path(), "running");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(contents(folder.path()).is_empty());
    assert!(String::from_utf8(output.stdout).unwrap().contains("IOPS"));
}

#[test]
fn ctrl_c_ends_a_simulation_with_130_and_what_it_showed() {
    let folder = folder();
    let child = start_until(&["sim", "run", "905p", "--seconds", "100000"], folder.path(), "running");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stdout).unwrap().contains("digest"));
}

#[test]
fn a_termination_request_ends_with_143() {
    let folder = folder();
    let mut child = start_until(LONG_IO, folder.path(), "running");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn kill_9_in_the_middle_of_a_load_leaves_no_file() {
    let folder = folder();
    let mut child = start_until(LONG_IO, folder.path(), "running");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn a_benchmark_that_is_ended_keeps_a_whole_store_or_none() {
    for (records, until, remains) in [("100000000", "filling: ", 0), ("20000", "running", 1)] {
        let folder = folder();
        let arguments =
            ["bench", "lookup", ".", "--keep", "--cache", "4MiB", "--seconds", "60", "--records", records];
        let mut child = start_until(&arguments, folder.path(), until);
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(contents(folder.path()).len(), remains, "{until}");
    }
}
