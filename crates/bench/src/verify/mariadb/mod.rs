//! MariaDB: a server on a data directory for each side, and `sysbench` with a script that draws operations
//! as the workload says.
//!
//! A run starts the server, warms up, measures and ends the server in order, so that the next run begins
//! with everything written.

mod script;
mod server;

use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::EngineAdvice;

use super::adapt::Adapted;
use super::scratch::Scratch;
use super::turns::Side;
use super::{Client, program};
use server::{DataDirectory, SOCKET};

const SYSBENCH: &str = "sysbench";
const POOL: &str = "innodb_buffer_pool_size";

/// Two servers and their workload.
pub(super) struct MariaDb<'a> {
    workload: Workload,
    seconds: u32,
    scratch: &'a Scratch,
    interrupt: &'a AtomicBool,
    /// In the order of [`Side::ALL`].
    directories: [DataDirectory; 2],
}

pub(super) fn is_installed() -> anyhow::Result<()> {
    let remedy = |package: &str| {
        format!("scripts/install-peers.sh --engines or apt-get install {package} installs it")
    };
    program::is_installed(server::SERVER, &remedy("mariadb-server"))?;
    program::is_installed(server::INSTALLER, &remedy("mariadb-server"))?;
    program::is_installed(server::CLIENT, &remedy("mariadb-client"))?;
    program::is_installed(SYSBENCH, &remedy(SYSBENCH))
}

/// The workload as the script can run it.
pub(super) fn adapted(workload: &Workload) -> Adapted {
    Adapted::of_a_table(workload, "the script of sysbench")
}

impl<'a> MariaDb<'a> {
    /// Writes both sides' settings and sysbench's script.
    pub fn new(
        workload: &Workload,
        advice: &EngineAdvice,
        seconds: u32,
        scratch: &'a Scratch,
        interrupt: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let directories = Side::ALL.map(|side| DataDirectory {
            data: scratch.join(&format!("{}.data", side.name())),
            settings: scratch.join(&format!("{}.cnf", side.name())),
            log: scratch.join("server.log"),
        });
        // The defaults have the advised memory.
        let pool = advice.value(POOL).map(|bytes| format!("{POOL} = {bytes}\n"));
        let texts = [format!("[mariadbd]\n{}", pool.unwrap_or_default()), advice.file.clone()];
        for (directory, text) in directories.iter().zip(texts) {
            write(&directory.settings, &text)?;
        }
        write(&scratch.join("events.lua"), &script::events(workload))?;
        Ok(Self { workload: workload.clone(), seconds, scratch, interrupt, directories })
    }

    fn directory(&self, side: Side) -> &DataDirectory {
        &self.directories[side as usize]
    }

    fn sysbench(&self, side: Side, seed: u64) -> anyhow::Result<f64> {
        let mut command = std::process::Command::new(SYSBENCH);
        command
            .arg(format!("--mysql-socket={SOCKET}"))
            .args(["--mysql-user=root", &format!("--mysql-db={}", script::DATABASE)])
            .arg(format!("--threads={}", self.workload.clients))
            .arg(format!("--time={}", self.seconds))
            // 0 would be the time.
            .arg(format!("--rand-seed={}", seed % SEEDS + 1))
            .arg(self.scratch.join("events.lua"))
            .arg("run")
            .current_dir(&self.directory(side).data);
        let said = program::output(&mut command, &self.scratch.join("log"), self.interrupt)?;
        script::rate(&said).with_context(|| format!("sysbench told no rate:\n{said}"))
    }
}

/// Seeds of `sysbench` have 31 bits.
const SEEDS: u64 = 1 << 30;

fn write(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

impl Client for MariaDb<'_> {
    fn fill(&self, side: Side, _seed: u64) -> anyhow::Result<()> {
        let directory = self.directory(side);
        directory.make(self.interrupt)?;
        let script = self.scratch.join("fill.sql");
        write(&script, &script::fill(self.workload.records))?;
        let log = self.scratch.join("log");
        let server = directory.start(self.interrupt)?;
        server.execute(&format!("source {}", script.display()), &log, self.interrupt)?;
        server.stop(&log, self.interrupt)
    }

    fn run(&self, side: Side, seed: u64) -> anyhow::Result<f64> {
        let server = self.directory(side).start(self.interrupt)?;
        // The first warms up.
        self.sysbench(side, seed)?;
        let rate = self.sysbench(side, seed.wrapping_add(1))?;
        server.stop(&self.scratch.join("log"), self.interrupt)?;
        Ok(rate)
    }
}
