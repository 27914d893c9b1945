//! Programs that read statements and answer each with a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use flashgrain_device::clock;
use flashgrain_profile::Error;

use super::statements::Statements;
use crate::killed::Killed;

/// Between two looks at the interrupt flag.
const TICK: Duration = Duration::from_millis(50);

/// A client waits for the others' locks as long as it takes.
const BUSY_TIMEOUT_MS: u32 = 600_000;

/// Clients at work; they are killed with the value.
pub(super) struct Clients {
    programs: Vec<Killed>,
    answers: Arc<AtomicU64>,
    /// Receives the log of each client that ended by itself.
    ended: (Sender<PathBuf>, Receiver<PathBuf>),
}

impl Default for Clients {
    fn default() -> Self {
        Self { programs: Vec::new(), answers: Arc::default(), ended: mpsc::channel() }
    }
}

impl Clients {
    /// Starts one more, which runs `pragmas` first.
    pub fn start(
        &mut self,
        mut command: Command,
        pragmas: &str,
        statements: Statements,
        log: &Path,
    ) -> anyhow::Result<()> {
        let errors = File::create(log).with_context(|| format!("write {}", log.display()))?;
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn();
        let mut program = Killed(spawned.context("run sqlite3")?);
        let stdin = program.0.stdin.take().context("standard input was piped")?;
        let stdout = program.0.stdout.take().context("standard output was piped")?;
        self.programs.push(program);
        let first = format!(".timeout {BUSY_TIMEOUT_MS}\n{pragmas}\n");
        thread::spawn(move || ask(stdin, &first, statements));
        let (answers, ended, log) = (Arc::clone(&self.answers), self.ended.0.clone(), log.to_owned());
        thread::spawn(move || {
            count(stdout, &answers);
            // Once the measurement is over, no thread waits for it.
            let _unheard = ended.send(log);
        });
        Ok(())
    }

    /// Answers per second, after as long a time of warming up.
    pub fn rate(self, seconds: u32, interrupt: &AtomicBool) -> anyhow::Result<f64> {
        self.wait(seconds, interrupt)?;
        let (before, began) = (self.answers.load(Ordering::Relaxed), clock::now());
        self.wait(seconds, interrupt)?;
        let (after, ended) = (self.answers.load(Ordering::Relaxed), clock::now());
        if after == before {
            bail!("sqlite3 answered no statement in {seconds} s");
        }
        Ok((after - before) as f64 / (ended - began).seconds())
    }

    fn wait(&self, seconds: u32, interrupt: &AtomicBool) -> anyhow::Result<()> {
        let began = clock::now();
        while (clock::now() - began).seconds() < f64::from(seconds) {
            match self.ended.1.recv_timeout(TICK) {
                _ if interrupt.load(Ordering::Relaxed) => return Err(Error::Interrupted.into()),
                Ok(log) => return Err(failure(&log)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("all clients of sqlite3 are gone"),
            }
        }
        Ok(())
    }
}

/// Writes statements as fast as the program takes them, until it is gone.
fn ask(mut stdin: ChildStdin, first: &str, mut statements: Statements) {
    let mut written = stdin.write_all(first.as_bytes());
    while written.is_ok() {
        written = stdin.write_all(statements.next_line().as_bytes());
    }
}

/// Counts lines until the program is gone. It writes out each before it reads the next statement.
fn count(stdout: ChildStdout, answers: &AtomicU64) {
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        answers.fetch_add(1, Ordering::Relaxed);
        line.clear();
    }
}

fn failure(log: &Path) -> anyhow::Error {
    let said = std::fs::read(log).unwrap_or_default();
    anyhow!("a client of sqlite3 ended:\n{}", String::from_utf8_lossy(&said).trim())
}
