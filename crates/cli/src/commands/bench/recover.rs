//! `flashgrain bench recover`: a store that is killed at full write load, and how long it takes to open.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use flashgrain::Stats;
use flashgrain_device::{Channel, ChannelOptions, Device, MemoryDevice, Nanos};
use flashgrain_profile::Error;
use flashgrain_report::unit;
use serde::Serialize;

use super::measure::Bench;
use super::options::BenchOptions;
use super::target::Place;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};

/// Kills a store with SIGKILL in the middle of random updates, opens it, which replays its log, closes it and opens it again.
///
/// The updates run in a process of their own for `--seconds`. The cache is large, so that it is the log that brings checkpoints about, and much of it is there to replay.
#[derive(Debug, Args)]
#[command(mut_arg("durability", |argument| argument.default_value("buffered")))]
#[command(mut_arg("cache", |argument| argument.default_value("400%")))]
pub struct RecoverArguments {
    #[command(flatten)]
    options: BenchOptions,
}

/// What the other process says when the store is filled.
const RUNNING: &str = "running updates";

/// Between two looks at the interrupt flag.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize)]
struct RecoverResult {
    flashgrain_version: &'static str,
    target: String,
    records: u64,
    /// Of the store's live pages.
    live_bytes: u64,
    /// After the kill.
    opened_s: f64,
    map_s: f64,
    replay_s: f64,
    replayed_records: u64,
    replayed_bytes: u64,
    replayed_records_per_s: f64,
    /// After a close.
    opened_clean_s: f64,
}

/// A process that is killed however this one goes on.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

pub fn run(arguments: &RecoverArguments, context: &Context) -> anyhow::Result<()> {
    let options = &arguments.options;
    options.check()?;
    if !options.target.is_dir() {
        return Err(Usage("what is killed must lie on a drive: name a directory".into()).into());
    }
    let interrupt = context.interrupt.watch()?;
    let bench = Bench { options: options.clone(), settling: 0, context, interrupt };
    let place = bench.place()?;
    place.remove()?;
    if options.keep {
        context.interrupt.leaves(format!("what the benchmark has made stays in {}", place.describe()));
    }
    let result = measure(&bench, &place);
    if !options.keep {
        place.remove()?;
    }
    let result = result?;
    if options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}

fn measure(bench: &Bench<'_>, place: &Place) -> anyhow::Result<RecoverResult> {
    kill_under_load(bench)?;
    let (after_kill, opened) = open(bench, place)?;
    let (after_close, opened_clean) = open(bench, place)?;
    let recovery = &after_kill.recovery;
    if recovery.was_closed || !after_close.recovery.was_closed {
        bail!("the store was not killed in the middle of its work, or not closed afterwards");
    }
    Ok(RecoverResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: place.describe(),
        records: bench.options.records,
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

/// Opens the store, and closes it. What it says of itself once it was open, and how long that took.
fn open(bench: &Bench<'_>, place: &Place) -> anyhow::Result<(Stats, Nanos)> {
    let clock = clock()?;
    let began = clock.now();
    let db = place.builder(&bench.options)?.open()?;
    let took = clock.now() - began;
    let stats = db.stats();
    db.close()?;
    Ok((stats, took))
}

/// The system's clock, as a device tells it.
fn clock() -> anyhow::Result<Box<dyn Channel>> {
    let options = ChannelOptions { depth: 1, arena: None, polled: false };
    Ok(MemoryDevice::new(1 << 20, 1 << 20)?.open_channel(&options)?)
}

/// Fills a store and updates it in a process of its own, and kills that.
fn kill_under_load(bench: &Bench<'_>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("find the program itself")?;
    let mut child = Command::new(program)
        .args(["bench", "update"])
        .arg(&bench.options.target)
        .args(arguments(&bench.options))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start the process that is to be killed")?;
    let said = child.stderr.take();
    let _child = Killed(child);
    bench.context.note("filling a store, then updating it, in a process of its own");
    let mut last = String::new();
    let mut lines = said.into_iter().flat_map(|said| BufReader::new(said).lines());
    let began = lines.by_ref().map_while(Result::ok).any(|line| {
        last = line;
        last.contains(RUNNING)
    });
    if !began {
        bail!("the process that was to be killed ended by itself: {last}");
    }
    let clock = clock()?;
    let end = clock.now() + Nanos::from_seconds(bench.options.seconds);
    while clock.now() < end {
        if bench.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        std::thread::park_timeout(TICK);
    }
    Ok(())
}

/// The same store, updated until the process is killed.
fn arguments(options: &BenchOptions) -> Vec<String> {
    const LONG_S: &str = "86400";
    let mut arguments = vec!["--keep".to_owned()];
    let mut give = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
    give("records", options.records.to_string());
    give("key-bytes", options.key_bytes.to_string());
    give("value-bytes", options.value_bytes.to_string());
    give("cache", options.cache_bytes().to_string());
    give("workers", options.workers().to_string());
    give("tasks", options.tasks.to_string());
    give("distribution", options.distribution.to_string());
    give("durability", options.durability.name().to_owned());
    give("seed", options.seed.to_string());
    give("seconds", LONG_S.to_owned());
    give("raw-seconds", "0s".to_owned());
    let mut perhaps = |name: &str, value: Option<String>| {
        arguments.extend(value.into_iter().flat_map(|value| [format!("--{name}"), value]));
    };
    perhaps("space-use", options.space_use.map(|share| share.to_string()));
    perhaps("log-size", options.log_size.map(|bytes| bytes.to_string()));
    perhaps("recovery-log", options.recovery_log.map(|bytes| bytes.to_string()));
    perhaps("node-size", options.node_size.map(|bytes| bytes.to_string()));
    perhaps("profile", options.profile.as_ref().map(|path| path.display().to_string()));
    perhaps("log", options.log.as_ref().map(|path| path.display().to_string()));
    arguments
}

impl RecoverResult {
    fn table(&self) -> String {
        format!(
            "store   {} records in {}, {} of live pages\n\nafter SIGKILL   open in {}: the page table in {}, {} of log with {} records in {}, {} records/s\nafter a close   open in {}\n",
            unit::count(self.records as f64),
            self.target,
            unit::bytes(self.live_bytes as f64),
            unit::seconds(self.opened_s),
            unit::seconds(self.map_s),
            unit::bytes(self.replayed_bytes as f64),
            unit::count(self.replayed_records as f64),
            unit::seconds(self.replay_s),
            unit::count(self.replayed_records_per_s),
            unit::seconds(self.opened_clean_s),
        )
    }
}
