//! Nodes as processes of their own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// A running node; killed with -9 when it is dropped. It ends by itself if this process is killed.
pub struct Process {
    pub id: u64,
    pub address: String,
    program: PathBuf,
    folder: PathBuf,
    snapshot_every: u64,
    child: Option<Child>,
}

impl Process {
    /// Starts a node at a port that is free.
    pub fn start(program: &Path, id: u64, folder: &Path, snapshot_every: u64) -> anyhow::Result<Self> {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let address = "127.0.0.1:0".to_owned();
        let mut process = Self { id, address, program, folder, snapshot_every, child: None };
        process.restart()?;
        Ok(process)
    }

    /// Starts it again where it was.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        let mut child = Command::new(&self.program)
            .args(["node", "--id", &self.id.to_string(), "--listen", &self.address])
            .args(["--snapshot-every", &self.snapshot_every.to_string(), "--folder"])
            .arg(&self.folder)
            .arg("--until-input-ends")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = child.stdout.take();
        self.child = Some(child);
        let mut line = String::new();
        BufReader::new(output.context("no output of the node")?).read_line(&mut line)?;
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            bail!("node {} did not start: {line:?}", self.id);
        };
        address.clone_into(&mut self.address);
        Ok(())
    }

    /// Kills it with -9, if it runs.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that has ended by itself needs no kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
