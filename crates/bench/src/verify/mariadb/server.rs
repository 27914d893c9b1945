//! A server on a data directory of its own, that only this program can reach.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use flashgrain_device::{Nanos, clock};
use flashgrain_profile::Error;

use super::super::program;
use crate::killed::Killed;

pub(super) const SERVER: &str = "mariadbd";
pub(super) const INSTALLER: &str = "mariadb-install-db";
pub(super) const CLIENT: &str = "mariadb";

/// In the data directory: a full path might be longer than sockets allow.
pub(super) const SOCKET: &str = "socket";

/// The server writes it to its log.
const READY: &str = "ready for connections";

/// Between two looks at the server.
const TICK: Nanos = Nanos(50_000_000);

/// A server that starts or ends for so long is broken.
const SECONDS_MAX: f64 = 300.0;

/// A data directory with its settings.
pub(super) struct DataDirectory {
    pub data: PathBuf,
    pub settings: PathBuf,
    pub log: PathBuf,
}

impl DataDirectory {
    /// Makes it with the system's tables.
    pub fn make(&self, interrupt: &AtomicBool) -> anyhow::Result<()> {
        for folder in [&self.data, &self.temporary()] {
            fs::create_dir(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        let mut command = self.command(INSTALLER)?;
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        // It starts programs of its own, which would outlive it, so that it takes the seconds that it needs.
        let never = AtomicBool::new(false);
        program::output(&mut command, &self.log, &never)?;
        match interrupt.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted.into()),
            false => Ok(()),
        }
    }

    /// The folder for temporary tables: in `/tmp` others may remove them.
    fn temporary(&self) -> PathBuf {
        self.data.with_extension("tmp")
    }

    /// With the settings alone: no file of the user's may change any.
    fn command(&self, program: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        command
            .arg(format!("--defaults-file={}", self.settings.display()))
            .arg(format!("--datadir={}", self.data.display()))
            .arg(format!("--tmpdir={}", self.temporary().display()));
        // As root it refuses to run unless it is told to.
        let owner = fs::metadata(&self.data).with_context(|| format!("look at {}", self.data.display()))?;
        if owner.uid() == 0 {
            command.arg("--user=root");
        }
        // Ctrl-C is for this program, which ends the server in order.
        command.process_group(0);
        Ok(command)
    }

    /// Starts the server and waits until it answers.
    pub fn start(&self, interrupt: &AtomicBool) -> anyhow::Result<Server<'_>> {
        let errors = File::create(&self.log).with_context(|| format!("write {}", self.log.display()))?;
        let mut command = self.command(SERVER)?;
        command.args([&format!("--socket={SOCKET}"), "--skip-networking"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let process = Killed(command.spawn().with_context(|| format!("run {SERVER}"))?);
        let mut server = Server { process, directory: self };
        server.wait(interrupt, |server, ended| {
            let said = fs::read(&server.directory.log).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            match ended {
                true => Err(program::last_lines(&format!("{SERVER} ended while it started"), &said)),
                false => Ok(said.contains(READY)),
            }
        })?;
        Ok(server)
    }
}

/// A server at work; it is killed with the value.
pub(super) struct Server<'a> {
    process: Killed,
    directory: &'a DataDirectory,
}

impl Server<'_> {
    /// Has it execute some text.
    pub fn execute(&self, text: &str, log: &Path, interrupt: &AtomicBool) -> anyhow::Result<()> {
        let mut command = Command::new(CLIENT);
        command
            .arg("--no-defaults")
            .args(["--user=root", &format!("--socket={SOCKET}"), &format!("--execute={text}")])
            .current_dir(&self.directory.data);
        program::output(&mut command, log, interrupt).map(drop)
    }

    /// Ends it with everything written.
    pub fn stop(mut self, log: &Path, interrupt: &AtomicBool) -> anyhow::Result<()> {
        self.execute("SHUTDOWN", log, interrupt)?;
        self.wait(interrupt, |_, ended| Ok(ended))
    }

    /// Until `is_done`, which hears whether the server has ended.
    fn wait(
        &mut self,
        interrupt: &AtomicBool,
        is_done: impl Fn(&Self, bool) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let began = clock::now();
        loop {
            let ended = self.process.0.try_wait().context("look at the server")?.is_some();
            if is_done(self, ended)? {
                return Ok(());
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted.into());
            }
            if (clock::now() - began).seconds() > SECONDS_MAX {
                bail!("{SERVER} takes more than {SECONDS_MAX} s to start or to end");
            }
            clock::sleep_until(clock::now() + TICK);
        }
    }
}
