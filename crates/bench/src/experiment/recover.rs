//! A store that is killed at full write load, and how long it takes to open.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail};
use flashgrain::Stats;
use flashgrain_device::{Nanos, clock};
use flashgrain_profile::Error;
use flashgrain_report::unit;
use serde::Serialize;

use super::Experiment;
use crate::killed::Killed;
use crate::store::StoreLocation;

/// The other process says so when the store is filled.
const RUNNING: &str = "running updates";

/// Between two looks at the interrupt flag.
const TICK: Duration = Duration::from_millis(20);

/// Duration and work of the recovery.
#[derive(Debug, Serialize)]
pub struct RecoverResult {
    flashgrain_version: &'static str,
    target: String,
    records: u64,
    /// Bytes of the store's live pages.
    live_bytes: u64,
    /// Time of the opening after the kill.
    opened_s: f64,
    map_s: f64,
    replay_s: f64,
    replayed_records: u64,
    replayed_bytes: u64,
    replayed_records_per_s: f64,
    /// Time of the opening after a close.
    opened_clean_s: f64,
}

/// Kills `updates` with SIGKILL in the middle of random updates, opens the store that they were made in,
/// which replays its log, closes it and opens it again. `updates` is this program, told to run the
/// experiment's updates on the experiment's target for ever.
///
/// # Errors
/// Those of the target, the store and the process.
pub fn recover(experiment: &Experiment<'_>, updates: Command) -> anyhow::Result<RecoverResult> {
    if !experiment.options.target.is_dir() {
        return Err(Error::Argument("the killed store must lie on a drive: name a directory".into()).into());
    }
    let place = experiment.place()?;
    place.remove()?;
    let keep = experiment.options.keep;
    if keep {
        let left = format!("the benchmark's store stays in {}", place.describe());
        experiment.listener.leaves(left);
    }
    let result = measure(experiment, &place, updates);
    if !keep {
        place.remove()?;
    }
    result
}

fn measure(
    experiment: &Experiment<'_>,
    place: &StoreLocation,
    updates: Command,
) -> anyhow::Result<RecoverResult> {
    kill_under_load(experiment, updates)?;
    let (after_kill, opened) = open(experiment, place)?;
    let (after_close, opened_clean) = open(experiment, place)?;
    let recovery = &after_kill.recovery;
    if recovery.was_closed || !after_close.recovery.was_closed {
        bail!("the store was not killed in the middle of its work, or not closed afterwards");
    }
    Ok(RecoverResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: place.describe(),
        records: experiment.options.records.count,
        live_bytes: after_close.space.live_bytes,
        opened_s: opened.seconds(),
        map_s: recovery.map_s,
        replay_s: recovery.replay_s,
        replayed_records: recovery.records,
        replayed_bytes: recovery.log_bytes,
        replayed_records_per_s: recovery.records as f64 / recovery.replay_s,
        opened_clean_s: opened_clean.seconds(),
    })
}

/// Opens the store, and closes it. It gives its statistics once it was open, and how long that took.
pub(super) fn open(experiment: &Experiment<'_>, place: &StoreLocation) -> anyhow::Result<(Stats, Nanos)> {
    let began = clock::now();
    let db = place.builder(&experiment.options.store).open()?;
    let took = clock::now() - began;
    let stats = db.stats();
    db.close()?;
    Ok((stats, took))
}

/// Has a process of its own fill a store and update it, and kills that.
pub(super) fn kill_under_load(experiment: &Experiment<'_>, mut updates: Command) -> anyhow::Result<()> {
    let mut child = updates
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start the process that is to be killed")?;
    let said = child.stderr.take();
    let _child = Killed(child);
    experiment.listener.note("filling a store, then updating it, in a process of its own");
    let mut last = String::new();
    let mut lines = said.into_iter().flat_map(|said| BufReader::new(said).lines());
    let began = lines.by_ref().map_while(Result::ok).any(|line| {
        last = line;
        last.contains(RUNNING)
    });
    if !began {
        bail!("the process that was to be killed ended by itself: {last}");
    }
    let end = clock::now() + Nanos::from_seconds(experiment.options.seconds);
    while clock::now() < end {
        if experiment.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        std::thread::park_timeout(TICK);
    }
    Ok(())
}

impl RecoverResult {
    /// The result as a table for people.
    pub fn table(&self) -> String {
        format!(
            "store   {} in {}, {} of live pages\n\nafter SIGKILL   open in {}: the page table in {}, {} of log with {} in {}, {} records/s\nafter a close   open in {}\n",
            unit::things(self.records, "record"),
            self.target,
            unit::bytes(self.live_bytes as f64),
            unit::seconds(self.opened_s),
            unit::seconds(self.map_s),
            unit::bytes(self.replayed_bytes as f64),
            unit::things(self.replayed_records, "record"),
            unit::seconds(self.replay_s),
            unit::count(self.replayed_records_per_s),
            unit::seconds(self.opened_clean_s),
        )
    }
}
