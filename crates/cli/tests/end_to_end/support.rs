//! Shared parts of the end-to-end tests: the binary, folders on the disk that the workspace lies on, and
//! checks of the files left behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::assert::Assert;
use tempfile::TempDir;

/// The binary under test, with nothing from the environment that changes what it prints.
pub fn flashgrain() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_flashgrain"));
    command.env_remove("RUST_BACKTRACE");
    command
}

/// Whether an engine's program is there; says so where it is not.
pub fn is_installed(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed; scripts/install-peers.sh --engines installs it");
    }
    found
}

/// A new folder on a disk: `/tmp` may be in memory.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Every file below a folder with its contents.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

pub fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

pub fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// Asserts the exit code, that standard error has each of the texts and that nothing reads like a crash.
#[track_caller]
pub fn fails(command: &mut assert_cmd::Command, code: i32, texts: &[&str]) {
    let assert = command.assert();
    let said = stderr(&assert);
    assert_eq!(assert.get_output().status.code(), Some(code), "{said}");
    for text in texts {
        assert!(said.contains(text), "expected {text:?} in:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// The command's arguments run in the background until standard error has a line with `text`: then it is in
/// the middle of its work.
pub fn start_until(arguments: &[&str], current: &Path, text: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_flashgrain"))
        .args(arguments)
        .current_dir(current)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while said.read_line(&mut line).unwrap() > 0 {
        if line.contains(text) {
            // The pipe must stay open, or the child's own words would fail.
            std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
            return child;
        }
        line.clear();
    }
    let status = child.wait().unwrap();
    panic!("{arguments:?} ended with {status} before it said {text:?}");
}

/// Sends a signal by name, such as `INT`.
pub fn signal(child: &Child, name: &str) {
    // The shell's own `kill`: the command is missing on small systems.
    let status = Command::new("sh").args(["-c", &format!("kill -s {name} {}", child.id())]).status().unwrap();
    assert!(status.success());
}

/// A block device over a file of ours, gone with the value.
pub struct LoopDevice(pub String);

impl LoopDevice {
    /// `None`, and a word about it, where loop devices cannot be made: that takes privileges.
    pub fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        match made {
            Ok(output) if output.status.success() => {
                Some(Self(String::from_utf8(output.stdout).unwrap().trim().to_owned()))
            }
            _ => {
                eprintln!("skipped: loop devices cannot be made here");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}
