//! A kernel that forbids io_uring, as container runtimes make it: the next backend takes over and says so.

use std::collections::BTreeMap;

use crate::support::{fails, flashgrain, folder, stderr, stdout};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

const QUICK: &[&str] =
    &["io", ".", "--file-size", "1MiB", "--seconds", "0.2", "--warmup", "0.05", "--depth", "4"];

/// Runs `work` where these system calls fail with EPERM; processes that it starts inherit that.
fn without_system_calls(calls: &[i64], work: impl FnOnce() + Send) {
    let rules: BTreeMap<_, _> = calls.iter().map(|call| (*call, Vec::new())).collect();
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    // The filter is the thread's own, and ends with it.
    std::thread::scope(|scope| {
        scope.spawn(move || {
            apply_filter(&filter).unwrap();
            work();
        });
    });
}

#[test]
fn libaio_takes_over_with_a_note() {
    let folder = folder();
    without_system_calls(&[libc::SYS_io_uring_setup], || {
        let assert = flashgrain().current_dir(&folder).args(QUICK).arg("--json").assert().success();
        let result: serde_json::Value = serde_json::from_str(&stdout(&assert)).unwrap();
        assert_eq!(result["identity"]["backend"], "libaio");
        assert!(stderr(&assert).contains("io_uring"), "{}", stderr(&assert));
    });
}

#[test]
fn sync_takes_over_when_libaio_is_forbidden_too() {
    let folder = folder();
    without_system_calls(&[libc::SYS_io_uring_setup, libc::SYS_io_setup], || {
        let assert = flashgrain().current_dir(&folder).args(QUICK).arg("--json").assert().success();
        let result: serde_json::Value = serde_json::from_str(&stdout(&assert)).unwrap();
        assert_eq!(result["identity"]["backend"], "sync");
    });
}

#[test]
fn asking_for_io_uring_by_name_fails_with_the_reason_and_a_way_out() {
    let folder = folder();
    without_system_calls(&[libc::SYS_io_uring_setup], || {
        fails(
            flashgrain().current_dir(&folder).args(QUICK).args(["--backend", "io_uring"]),
            1,
            &["io_uring backend is not available", "libaio"],
        );
    });
}

#[test]
fn backends_says_why() {
    without_system_calls(&[libc::SYS_io_uring_setup], || {
        let said = stdout(&flashgrain().arg("backends").assert().success());
        let line = said.lines().find(|line| line.contains("io_uring")).unwrap();
        assert!(line.contains("not permitted") || line.contains("forbid"), "{said}");
    });
}
