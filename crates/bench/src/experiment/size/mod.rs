//! What a store costs as its data grow: memory, opening, checkpoints, cleaning, look-ups.

mod figure;

use std::process::Command;

use flashgrain_profile::Error;
use flashgrain_profile::schema::Latency;
use flashgrain_report::page::Unit;
use flashgrain_report::unit;
use serde::Serialize;

use super::recover::{kill_under_load, open};
use super::{Experiment, ExperimentResult, Operation, Work};
use crate::measure::machine;
use crate::measure::{forget_peak_memory, peak_memory_bytes};
use crate::store::{Options, StoreLocation};
use crate::study::{Part, Sheet};

/// A store of one size.
#[derive(Debug, Serialize)]
pub struct SizeRow {
    records: u64,
    record_bytes: u64,
    cache_bytes: u64,
    /// Bytes of live pages once the records are in.
    live_bytes: u64,
    /// Time of opening the store after a close.
    opened_s: f64,
    /// The same with the page table alone.
    map_s: f64,
    /// The most memory of the process while the store was open for look-ups, beyond its cache and the memory
    /// that the process had before.
    memory_bytes: u64,
    lookups_per_s: f64,
    lookup_latency: Option<Latency>,
    /// Reads of the drive for each look-up.
    reads_per_lookup: f64,
    /// Reads per second of the store over those of the raw drive.
    share_of_raw: Option<f64>,
    updates_per_s: f64,
    /// Bytes written for pages, cleaning included, for each byte of a changed page.
    write_amplification: Option<f64>,
    /// Bytes written for the page table, for each byte of a changed page.
    map_share: Option<f64>,
    checkpoints: u64,
    longest_checkpoint_s: f64,
    /// Time of opening the store after a kill in the middle of updates, with the replay of its log.
    killed_opened_s: f64,
    replay_s: f64,
    replayed_records: u64,
}

/// A row for each size, in order.
#[derive(Debug, Serialize)]
pub struct SizeResult {
    flashgrain_version: &'static str,
    target: String,
    tasks: u32,
    workers: u32,
    seconds: f64,
    seed: u64,
    /// The rows.
    pub rows: Vec<SizeRow>,
}

/// Fills a store of each size in turn, measures it, and removes it. An experiment is of one size, with the
/// command that updates its store until it is killed.
///
/// # Errors
/// Those of the target, the stores and the processes.
pub fn size<'a>(
    experiments: impl IntoIterator<Item = (Experiment<'a>, Command)>,
) -> anyhow::Result<SizeResult> {
    let mut result: Option<SizeResult> = None;
    for (experiment, updates) in experiments {
        let options = &experiment.options;
        let place = experiment.place()?;
        place.remove()?;
        let row = measure(&experiment, &place, updates);
        place.remove()?;
        let of_first = || SizeResult {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            target: place.describe(),
            tasks: options.store.tasks,
            workers: options.store.workers,
            seconds: options.seconds,
            seed: options.seed,
            rows: Vec::new(),
        };
        result.get_or_insert_with(of_first).rows.push(row?);
    }
    result.ok_or_else(|| Error::Argument("no sizes were given".into()).into())
}

fn measure(experiment: &Experiment<'_>, place: &StoreLocation, updates: Command) -> anyhow::Result<SizeRow> {
    let Options { records, store: store_options, .. } = &experiment.options;
    experiment.filled(place)?.close()?;
    let (opened, opened_took) = open(experiment, place)?;
    forget_peak_memory();
    let memory_before = peak_memory_bytes();
    let lookups = experiment.measure("lookups", place, Work::Operate(Operation::Lookup), 0)?;
    let memory_bytes =
        peak_memory_bytes().saturating_sub(memory_before).saturating_sub(lookups.stats.cache.budget_bytes);
    unless_interrupted(&lookups)?;
    let updated = experiment.measure("updates", place, Work::Operate(Operation::Update), 0)?;
    unless_interrupted(&updated)?;
    kill_under_load(experiment, updates)?;
    let (killed, killed_took) = open(experiment, place)?;
    let dirty = updated.stats.written.dirty_page_bytes;
    Ok(SizeRow {
        records: records.count,
        record_bytes: records.bytes(),
        cache_bytes: store_options.cache_bytes,
        live_bytes: opened.space.live_bytes,
        opened_s: opened_took.seconds(),
        map_s: opened.recovery.map_s,
        memory_bytes,
        lookups_per_s: lookups.operations_per_s,
        reads_per_lookup: lookups.device.reads_per_s / lookups.operations_per_s,
        share_of_raw: lookups.share_of_raw,
        lookup_latency: lookups.latency,
        updates_per_s: updated.operations_per_s,
        write_amplification: updated.device.write_amplification,
        map_share: (dirty > 0).then(|| updated.stats.written.map_bytes as f64 / dirty as f64),
        checkpoints: updated.device.checkpoints,
        longest_checkpoint_s: updated.stats.checkpoints.longest_s,
        killed_opened_s: killed_took.seconds(),
        replay_s: killed.recovery.replay_s,
        replayed_records: killed.recovery.records,
    })
}

fn unless_interrupted(result: &ExperimentResult) -> anyhow::Result<()> {
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

fn bytes(bytes: u64) -> String {
    unit::bytes(bytes as f64)
}

impl SizeResult {
    /// The result as a page with charts.
    pub fn sheet(&self) -> Sheet {
        let conditions = vec![
            format!("Flashgrain {}, {}, {}", self.flashgrain_version, machine(), self.target),
            format!(
                "Records of {} bytes, a cache of {} of them, {} of look-ups and of updates by {} tasks on {}, seed {}",
                self.bytes_of_record(),
                Unit::Share.show(self.cache_share()),
                unit::seconds(self.seconds),
                self.tasks,
                unit::things(u64::from(self.workers), "worker"),
                self.seed
            ),
        ];
        let part = Part {
            id: "size",
            title: "Memory, opening, look-ups and checkpoints".into(),
            text: Vec::new(),
            tables: Vec::new(),
            figures: figure::figure(self).into_iter().collect(),
        };
        Sheet { title: "Cost over size".into(), conditions, parts: vec![part], comparisons: Vec::new() }
    }

    fn bytes_of_record(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.record_bytes / row.records.max(1))
    }

    fn cache_share(&self) -> f64 {
        self.rows.first().map_or(f64::NAN, |row| row.cache_bytes as f64 / row.record_bytes as f64)
    }

    /// The result as a table for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "store   in {}\nrun     {} of look-ups and of updates by {}, {} under way, seed {}\n\n",
            self.target,
            unit::seconds(self.seconds),
            unit::things(u64::from(self.workers), "worker"),
            self.tasks,
            self.seed
        );
        let heads = [
            "records",
            "cache",
            "memory",
            "opened",
            "lookups/s",
            "reads",
            "of raw",
            "p99",
            "updates/s",
            "write amp.",
            "map",
            "checkpoint",
            "killed",
            "replayed",
        ];
        heads.iter().for_each(|head| text += &format!("{head:>11}"));
        text.push('\n');
        for row in &self.rows {
            let share = |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{share:.3}"));
            let cells = [
                bytes(row.record_bytes),
                bytes(row.cache_bytes),
                bytes(row.memory_bytes),
                unit::seconds(row.opened_s),
                unit::count(row.lookups_per_s),
                format!("{:.3}", row.reads_per_lookup),
                share(row.share_of_raw),
                row.lookup_latency.as_ref().map_or_else(|| "-".into(), |of| unit::micros(of.p99_us)),
                unit::count(row.updates_per_s),
                share(row.write_amplification),
                share(row.map_share),
                unit::seconds(row.longest_checkpoint_s),
                unit::seconds(row.killed_opened_s),
                unit::count(row.replayed_records as f64),
            ];
            cells.iter().for_each(|cell| text += &format!("{cell:>11}"));
            text.push('\n');
        }
        text + "\nmemory is that of the process beyond the cache; map is what is written for the page table, for each byte of a changed page; checkpoint is the longest one; killed is the time to open after SIGKILL\n"
    }
}
