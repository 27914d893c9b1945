//! A process, or a user, that is given little: what can be done without goes on, and what cannot names the
//! limit and how it is raised.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{folder, stderr, stdout};

/// A test that waits for longer fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under a limit of prlimit(1), as a user whom limits bind: root may lock what it likes. `None`,
/// and a word about it, where there is no such user.
fn limited(folder: &Path, limit: &str, arguments: &str) -> Option<assert_cmd::Command> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let binary = env!("CARGO_BIN_EXE_flashgrain");
    let command = |limit: &str| {
        let mut command = Command::new(if is_root() { "setpriv" } else { "prlimit" });
        if is_root() {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "prlimit"]);
        }
        command.arg(limit).current_dir(folder);
        command
    };
    let probe = command("--core=0").args(["sh", "-c", "test -x \"$0\" && test -w .", binary]).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is nobody here whom limits bind");
        return None;
    }
    let mut command = command(limit);
    command.arg(binary).args(arguments.split(' '));
    let mut command = assert_cmd::Command::from_std(command);
    command.timeout(PATIENCE);
    Some(command)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn without_locked_memory_another_backend_takes_over_and_names_the_limit() {
    let folder = folder();
    let io = "io . --file-size 1MiB --seconds 0.2 --warmup 0.05 --depth 64 --workers 2 --json";
    let Some(mut command) = limited(folder.path(), "--memlock=65536", io) else { return };
    let assert = command.assert().success();
    let result: Value = serde_json::from_str(&stdout(&assert)).unwrap();
    assert_eq!(result["identity"]["backend"], "libaio");
    let said = stderr(&assert);
    assert!(said.contains("64 KiB") && said.contains("ulimit -l"), "{said}");
    for arguments in [
        "db create store --log-size 1MiB",
        "db put store key value",
        "profile . --seconds 1 --write-bytes 64MiB --only order",
    ] {
        let Some(mut command) = limited(folder.path(), "--memlock=65536", arguments) else { return };
        let said = stderr(&command.assert().success());
        assert!(said.contains("ulimit -l"), "{arguments}: {said}");
    }
}

#[test]
fn asked_for_by_name_the_backend_fails_with_the_limit_and_its_remedy() {
    let folder = folder();
    let io = "io . --file-size 1MiB --seconds 0.2 --depth 1024 --backend io_uring";
    let Some(mut command) = limited(folder.path(), "--memlock=65536", io) else { return };
    let said = stderr(&command.assert().code(1));
    assert!(said.contains("ulimit -l"), "{said}");
}

#[test]
fn a_worker_that_cannot_start_ends_the_load_with_the_reason() {
    let folder = folder();
    let io = "io . --file-size 8MiB --seconds 1 --depth 1024 --workers 64 --backend sync";
    let Some(mut command) = limited(folder.path(), "--nproc=20", io) else { return };
    let said = stderr(&command.assert().code(1));
    assert!(said.contains("start worker") && said.contains("of 64") && said.contains("ulimit -u"), "{said}");
}

#[test]
fn too_few_files_or_addresses_are_named_with_their_remedy() {
    let folder = folder();
    for (limit, arguments, remedy) in [
        ("--nofile=4", "db create store", "ulimit -n"),
        ("--as=100000000", "db create store --cache 1GiB", "ulimit -v"),
    ] {
        let Some(mut command) = limited(folder.path(), limit, arguments) else { return };
        let said = stderr(&command.assert().code(1));
        assert!(said.contains(remedy), "{limit} {arguments}: {said}");
    }
}
