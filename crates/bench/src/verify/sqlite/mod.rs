//! SQLite, through the `sqlite3` program.
//!
//! Each client is a program of its own that reads statements, one per line, and answers each with one line
//! once it is committed: the lines are counted. The table has integer keys, since those are SQLite's own.

mod clients;
mod statements;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::EngineAdvice;

use super::adapt::Adapted;
use super::scratch::Scratch;
use super::turns::Side;
use super::{Client, program};
use clients::Clients;
use statements::{Statements, fill, popularity};

const PROGRAM: &str = "sqlite3";
const REMEDY: &str = "scripts/install-peers.sh --engines or apt-get install sqlite3 installs it";

/// Two databases and their workload.
pub(super) struct Sqlite<'a> {
    workload: Workload,
    seconds: u32,
    scratch: &'a Scratch,
    interrupt: &'a AtomicBool,
    /// In the order of [`Side::ALL`].
    pragmas: [String; 2],
}

pub(super) fn is_installed() -> anyhow::Result<()> {
    program::is_installed(PROGRAM, REMEDY)
}

/// The workload as the statements can run it.
pub(super) fn adapted(workload: &Workload) -> Adapted {
    Adapted::of_a_table(workload, "the client of sqlite3")
}

impl<'a> Sqlite<'a> {
    /// Each connection runs its side's PRAGMAs; the defaults have the advised memory.
    pub fn new(
        workload: &Workload,
        advice: &EngineAdvice,
        seconds: u32,
        scratch: &'a Scratch,
        interrupt: &'a AtomicBool,
    ) -> Self {
        let cache = advice.value("cache_size").map(|size| format!("PRAGMA cache_size = {size};\n"));
        let pragmas = [cache.unwrap_or_default(), advice.file.clone()];
        Self { workload: workload.clone(), seconds, scratch, interrupt, pragmas }
    }

    fn pragmas(&self, side: Side) -> &str {
        &self.pragmas[side as usize]
    }

    fn command(&self, side: Side) -> Command {
        let mut command = Command::new(PROGRAM);
        let database: PathBuf = self.scratch.join(&format!("{}.sqlite", side.name()));
        // No file of the user's may change settings.
        command.args(["-init", "/dev/null", "-batch", "-bail"]).arg(database);
        command
    }
}

impl Client for Sqlite<'_> {
    fn fill(&self, side: Side, _seed: u64) -> anyhow::Result<()> {
        let script = self.scratch.join("fill.sql");
        let text = fill(self.pragmas(side), self.workload.records);
        std::fs::write(&script, text).with_context(|| format!("write {}", script.display()))?;
        let mut command = self.command(side);
        command.arg(format!(".read \"{}\"", script.display()));
        program::output(&mut command, &self.scratch.join("log"), self.interrupt).map(drop)
    }

    fn run(&self, side: Side, seed: u64) -> anyhow::Result<f64> {
        let mut clients = Clients::default();
        let popularity = popularity(&self.workload);
        for client in 0..self.workload.clients {
            let statements = Statements::new(&self.workload, popularity, seed, client.into());
            let log = self.scratch.join(&format!("log-{client}"));
            clients.start(self.command(side), self.pragmas(side), statements, &log)?;
        }
        clients.rate(self.seconds, self.interrupt)
    }
}
