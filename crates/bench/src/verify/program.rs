//! Runs an engine's program.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use flashgrain_profile::Error;

use crate::killed::Killed;

/// Between two looks at the interrupt flag.
const TICK: Duration = Duration::from_millis(50);

/// Lines of a failed program that are shown.
const SHOWN_LINES: usize = 5;

/// Refuses if the program is not installed; `remedy` says how to install it.
pub(super) fn is_installed(program: &str, remedy: &str) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        true => Ok(()),
        false => bail!("{program} is not installed: {remedy}"),
    }
}

/// Runs the command to its end and returns its standard output. Standard error goes to `log`. On an interrupt
/// the program is killed.
pub(super) fn output(command: &mut Command, log: &Path, interrupt: &AtomicBool) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let errors = OpenOptions::new().create(true).write(true).truncate(true).open(log);
    let errors = errors.with_context(|| format!("write {}", log.display()))?;
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn();
    let mut child = Killed(spawned.with_context(|| format!("run {name}"))?);
    let mut stdout = child.0.stdout.take().context("standard output was piped")?;
    let (sender, receiver) = mpsc::channel();
    // Reading to the end takes a thread of its own: this one looks at the flag meanwhile.
    thread::spawn(move || {
        let mut said = Vec::new();
        let read = stdout.read_to_end(&mut said).map(|_| said);
        // After an interrupt, no thread waits for it.
        let _unheard = sender.send(read);
    });
    let said = loop {
        match receiver.recv_timeout(TICK) {
            _ if interrupt.load(Ordering::Relaxed) => return Err(Error::Interrupted.into()),
            Ok(said) => break said.with_context(|| format!("read the output of {name}"))?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the output of {name} was lost"),
        }
    };
    let status = child.0.wait().with_context(|| format!("wait for {name}"))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    if interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted.into());
    }
    if status.success() { Ok(said) } else { Err(failure(&name, status, &said, log)) }
}

fn failure(name: &str, status: ExitStatus, said: &str, log: &Path) -> anyhow::Error {
    let errors = fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let shown = if errors.trim().is_empty() { said } else { &errors };
    last_lines(&format!("{name} failed ({status})"), shown)
}

/// The problem, with the last lines of a program's output.
pub(super) fn last_lines(problem: &str, said: &str) -> anyhow::Error {
    let lines: Vec<&str> = said.split(['\n', '\r']).filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    anyhow!("{problem}:\n{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, interrupted: bool) -> anyhow::Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(interrupted);
        output(Command::new("sh").args(["-c", script]), &folder.path().join("log"), &interrupt)
    }

    #[test]
    fn output_is_returned_and_failures_show_what_was_said() {
        assert_eq!(run("echo one; echo two >&2", false).unwrap(), "one\n");
        let failed = run("echo one; echo two >&2; exit 3", false).unwrap_err().to_string();
        assert!(failed.contains("exit status: 3") && failed.contains("two") && !failed.contains("one"));
        let failed = run("echo one; kill -9 $$", false).unwrap_err().to_string();
        assert!(failed.contains("signal: 9") && failed.contains("one"), "{failed}");
    }

    #[test]
    fn an_interrupt_ends_the_program() {
        let error = run("exec sleep 600", true).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Error::Interrupted)));
    }

    #[test]
    fn a_missing_program_is_named_with_its_remedy() {
        let error = is_installed("no-such-program-of-flashgrain", "install it").unwrap_err();
        assert_eq!(error.to_string(), "no-such-program-of-flashgrain is not installed: install it");
        is_installed("true", "").unwrap();
    }
}
