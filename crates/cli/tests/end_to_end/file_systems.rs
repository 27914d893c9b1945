//! Places that cannot hold a scratch file, or not the way it should be: a message that says what to do, or a
//! visible note.

use std::path::Path;
use std::process::Command;

use crate::support::{contents, fails, flashgrain, folder, stderr, stdout};

const QUICK: &[&str] = &["--file-size", "1MiB", "--seconds", "0.2", "--warmup", "0.05", "--depth", "4"];

/// Runs the binary with a file system of its own mounted on `folder`; the mount is seen by nobody else and
/// ends with the process. `None` where mounting is not allowed (a container without privileges); says so.
fn with_mount(folder: &Path, mount: &str, arguments: &[&str]) -> Option<assert_cmd::assert::Assert> {
    let namespace = |command: &mut Command| {
        command.args(["--mount", "--propagation", "private"]);
        // Without privileges, a user namespace may still grant the right to mount.
        command.args(["--user", "--map-root-user"]);
    };
    let mut probe = Command::new("unshare");
    namespace(&mut probe);
    let allowed = probe.args(["sh", "-c", &format!("mount {mount} \"$0\"")]).arg(folder).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mounting is not allowed here");
        return None;
    }
    let mut command = Command::new("unshare");
    namespace(&mut command);
    command
        .args(["sh", "-c", &format!("mount {mount} \"$0\" && exec \"$@\"")])
        .arg(folder)
        .arg(env!("CARGO_BIN_EXE_flashgrain"))
        .args(arguments);
    Some(assert_cmd::Command::from_std(command).assert())
}

#[test]
fn a_missing_path_is_named() {
    fails(flashgrain().args(["io", "/nowhere/at/all"]), 1, &["/nowhere/at/all", "No such file"]);
    fails(flashgrain().args(["tune", "/nowhere/at/all"]), 1, &["/nowhere/at/all", "No such file"]);
}

#[test]
fn a_file_larger_than_the_free_space_is_refused_before_anything_is_written() {
    let folder = folder();
    fails(
        flashgrain().arg("io").arg(folder.path()).args(["--file-size", "1000TiB"]),
        2,
        &["must be free", "--file-size"],
    );
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn a_full_file_system_says_how_much_is_needed() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let arguments = ["io", path];
    let Some(assert) = with_mount(folder.path(), "-t tmpfs -o size=8m none", &arguments) else { return };
    let said = stderr(&assert);
    assert_eq!(assert.get_output().status.code(), Some(1), "{said}");
    assert!(said.contains("1024 MiB") && said.contains("--file-size"), "{said}");
}

#[test]
fn a_read_only_file_system_is_a_failure_with_its_name() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    for command in ["io", "tune"] {
        let Some(assert) = with_mount(folder.path(), "-t tmpfs -o ro none", &[command, path]) else { return };
        let said = stderr(&assert);
        assert_eq!(assert.get_output().status.code(), Some(1), "{said}");
        assert!(said.contains(path) && said.contains("Read-only"), "{said}");
    }
}

#[test]
fn a_store_on_a_read_only_file_system_can_be_read() {
    let folder = crate::db::store();
    crate::db::db(&folder, "put store key value");
    let store = folder.path().join("store");
    let path = store.to_str().unwrap();
    let mount = format!("--bind {path} {path} && mount -o remount,ro,bind {path} #");
    for words in ["get {} key", "scan {}", "check {}", "stats {}", "trees {}"] {
        let words = words.replace("{}", path);
        let arguments: Vec<&str> = std::iter::once("db").chain(words.split(' ')).collect();
        let script = format!("mount {mount}\nexec \"$@\"");
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            &script,
            "sh",
        ]);
        let probe = Command::new("unshare").args(["--mount", "--user", "--map-root-user", "true"]).status();
        if !probe.is_ok_and(|status| status.success()) {
            eprintln!("skipped: mounting is not allowed here");
            return;
        }
        command.arg(env!("CARGO_BIN_EXE_flashgrain")).args(&arguments);
        assert_cmd::Command::from_std(command).assert().success();
    }
}

#[test]
fn without_o_direct_it_runs_buffered_and_says_so() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let assert = flashgrain().arg("io").arg(memory.path()).args(QUICK).arg("--json").assert().success();
    let result: serde_json::Value = serde_json::from_str(&stdout(&assert)).unwrap();
    assert_eq!(result["geometry"]["direct"], false);
    assert!(stderr(&assert).contains("O_DIRECT"), "{}", stderr(&assert));
}

#[test]
fn buffered_on_request_is_noted_too() {
    let folder = folder();
    let assert = flashgrain()
        .arg("io")
        .arg(folder.path())
        .args(QUICK)
        .args(["--json", "--buffered"])
        .assert()
        .success();
    let result: serde_json::Value = serde_json::from_str(&stdout(&assert)).unwrap();
    assert_eq!(result["geometry"]["direct"], false);
    assert!(stderr(&assert).contains("page cache"), "{}", stderr(&assert));
}
