//! Results of an experiment.

use std::time::Duration;

use flashgrain::{Durability, Stats};
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use serde::Serialize;

use super::raw::Raw;
use crate::drive::Driven;
use crate::fill::Filled;
use crate::measure::{Direction, Inside, table};
use crate::processor::ProcessorCosts;
use crate::store::Options;

/// The counts of the measured time.
pub(super) struct Measured {
    elapsed: Duration,
    operations: u64,
    /// Of each operation; none if they were done by batches.
    latency: Option<Latency>,
    cpu: Duration,
    before: Stats,
    after: Stats,
    is_interrupted: bool,
}

impl From<Driven<Stats>> for Measured {
    fn from(driven: Driven<Stats>) -> Self {
        let Driven { elapsed, tally, cpu, before, after, is_interrupted, .. } = driven;
        let latency_ns = tally.latency_ns();
        let latency = (!latency_ns.is_empty()).then(|| Latency::of(&latency_ns));
        Self { elapsed, operations: tally.operations(), latency, cpu, before, after, is_interrupted }
    }
}

impl From<Filled<Stats>> for Measured {
    fn from(filled: Filled<Stats>) -> Self {
        let Filled { elapsed, records, cpu, before, after, is_interrupted, .. } = filled;
        Self { elapsed, operations: records, latency: None, cpu, before, after, is_interrupted }
    }
}

/// For programs; the table for people is made from it.
#[derive(Debug, Serialize)]
pub struct ExperimentResult {
    pub(super) flashgrain_version: &'static str,
    pub(super) target: String,
    pub(super) operation: String,
    pub(super) records: u64,
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    pub(super) cache_bytes: u64,
    pub(super) workers: u32,
    pub(super) tasks: u32,
    pub(super) distribution: String,
    pub(super) durability: &'static str,
    pub(super) placement: &'static str,
    pub(super) seed: u64,
    pub(super) elapsed_s: f64,
    pub(super) operations: u64,
    pub(super) operations_per_s: f64,
    pub(super) latency: Option<Latency>,
    pub(super) cpu_us_per_operation: f64,
    /// Share of the workers' time that they worked.
    pub(super) worker_use: f64,
    /// Processor time that simulated workers were charged.
    pub(super) cpu_costs: Option<ProcessorCosts>,
    pub(super) device: DeviceUse,
    /// Images of live pages over the room for pages, at the end.
    pub(super) space_use: f64,
    /// The same share with every page counted whole.
    pub(super) page_use: f64,
    /// Statistics of a simulated drive.
    pub(super) drive: Option<Inside>,
    pub(super) raw: Raw,
    /// Reads per second of the store's device over those of the raw device.
    pub(super) share_of_raw: Option<f64>,
    /// It was ended early.
    pub interrupted: bool,
    pub(super) stats: Stats,
}

/// Device traffic of the measured time.
#[derive(Debug, Serialize)]
pub(super) struct DeviceUse {
    pub(super) reads_per_s: f64,
    pub(super) read_bytes_per_s: f64,
    pub(super) writes_per_s: f64,
    pub(super) written_bytes_per_s: f64,
    pub(super) flushes_per_s: f64,
    /// Of the pages that operations needed, those that were in memory.
    pub(super) cache_hits: Option<f64>,
    /// Bytes written for pages, cleaning included, for each byte of a changed page; none if no page was
    /// written.
    pub(super) write_amplification: Option<f64>,
    /// Of the bytes written for pages, those in whole aligned write units.
    pub(super) aligned_share: Option<f64>,
    /// Checkpoints that were completed.
    pub(super) checkpoints: u64,
    /// Bytes written for pages, page table and log, cleaning included, for each operation.
    pub(super) store_bytes_per_operation: f64,
    /// Growth of the store's device, in bytes.
    pub(super) grown_bytes: u64,
}

/// The durability as it is typed.
fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Buffered => "buffered",
        Durability::None => "none",
    }
}

impl DeviceUse {
    fn new(before: &Stats, after: &Stats, elapsed_s: f64, operations: f64) -> Self {
        let rate = |of: fn(&Stats) -> u64| (of(after) - of(before)) as f64 / elapsed_s;
        let delta = |of: fn(&Stats) -> u64| (of(after) - of(before)) as f64;
        let share = |part: f64, whole: f64| (whole > 0.0).then_some(part / whole);
        let dirty = delta(|stats| stats.written.dirty_page_bytes);
        let full = delta(|stats| stats.written.full_unit_bytes);
        Self {
            reads_per_s: rate(|stats| stats.device.reads),
            read_bytes_per_s: rate(|stats| stats.device.read_bytes),
            writes_per_s: rate(|stats| stats.device.writes),
            written_bytes_per_s: rate(|stats| stats.device.written_bytes),
            flushes_per_s: rate(|stats| stats.device.flushes),
            cache_hits: share(
                delta(|stats| stats.cache.hits),
                delta(|stats| stats.cache.hits + stats.cache.misses),
            ),
            write_amplification: share(
                delta(|stats| stats.written.page_bytes + stats.written.moved_bytes),
                dirty,
            ),
            aligned_share: share(full, full + delta(|stats| stats.written.partial_unit_bytes)),
            checkpoints: after.checkpoints.completed - before.checkpoints.completed,
            store_bytes_per_operation: delta(|stats| {
                let pages = stats.written.full_unit_bytes + stats.written.partial_unit_bytes;
                pages + stats.log.written_bytes
            }) / operations,
            grown_bytes: after.space.device_bytes.saturating_sub(before.space.device_bytes),
        }
    }
}

impl ExperimentResult {
    pub(super) fn new(
        operation: &str,
        target: String,
        options: &Options,
        cpu_costs: Option<ProcessorCosts>,
        measured: Measured,
        raw: Raw,
    ) -> Self {
        let Measured { elapsed, operations, latency, cpu, before, after, is_interrupted } = measured;
        let (elapsed_s, cpu_s, count) = (elapsed.as_secs_f64(), cpu.as_secs_f64(), operations.max(1) as f64);
        let device = DeviceUse::new(&before, &after, elapsed_s, count);
        let space = &after.space;
        let room = space.segments_bytes.max(1) as f64;
        let (records, store) = (&options.records, &options.store);
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            target,
            operation: operation.to_owned(),
            records: records.count,
            key_bytes: records.key_bytes,
            value_bytes: records.value_bytes,
            cache_bytes: store.cache_bytes,
            workers: store.workers,
            tasks: store.tasks,
            distribution: options.distribution.to_string(),
            durability: durability_name(store.durability),
            placement: if store.in_place { "in place" } else { "out of place" },
            seed: options.seed,
            elapsed_s,
            operations,
            operations_per_s: operations as f64 / elapsed_s,
            latency,
            cpu_us_per_operation: cpu_s * 1e6 / count,
            worker_use: cpu_s / elapsed_s / f64::from(store.workers),
            cpu_costs,
            share_of_raw: raw.reads_per_s().filter(|raw| *raw > 0.0).map(|raw| device.reads_per_s / raw),
            device,
            space_use: space.live_bytes as f64 / room,
            page_use: (after.cache.pages * store.page_bytes()) as f64 / room,
            drive: None,
            raw,
            interrupted: is_interrupted,
            stats: after,
        }
    }

    fn record_bytes(&self) -> f64 {
        (self.key_bytes + self.value_bytes) as f64
    }

    /// The lines that describe the measurement.
    pub(super) fn heading(&self) -> String {
        let mut text = format!(
            "store   {} of {} + {} bytes in {}, {} in all; cache {}\n",
            unit::things(self.records, "record"),
            self.key_bytes,
            self.value_bytes,
            self.target,
            unit::bytes(self.records as f64 * self.record_bytes()),
            unit::bytes(self.cache_bytes as f64),
        );
        text += &format!(
            "run     {} by {}, {} under way, {}, durability {}, {}, seed {}\n",
            self.operation,
            unit::things(self.workers as u64, "worker"),
            self.tasks,
            self.distribution,
            self.durability,
            self.placement,
            self.seed
        );
        if let Some(costs) = self.cpu_costs {
            text += &format!("costs   {}\n", costs.describe());
        }
        text
    }

    /// The result as a table for people.
    pub fn table(&self) -> String {
        let mut text = self.heading() + "\n" + &self.rows();
        let device = &self.device;
        text += &format!(
            "\ndevice  {} reads/s ({}), {} writes/s ({}), {} flushes/s\n",
            unit::count(device.reads_per_s),
            unit::rate(device.read_bytes_per_s),
            unit::count(device.writes_per_s),
            unit::rate(device.written_bytes_per_s),
            unit::count(device.flushes_per_s),
        );
        if let Some(hits) = device.cache_hits {
            let hits = unit::share(hits);
            text += &format!("cache   {hits} of the pages that operations needed were in it\n");
        }
        if let (Some(amplification), Some(aligned)) = (device.write_amplification, device.aligned_share) {
            let aligned = unit::share(aligned);
            text += &format!(
                "pages   {amplification:.2} bytes written per byte of a changed page, {aligned} in whole aligned units; pages take {} of the room, their images {}\n",
                unit::share(self.page_use),
                unit::share(self.space_use)
            );
        }
        if device.store_bytes_per_operation > 0.0 {
            text += &format!(
                "upkeep  {}, {} written per operation for pages and log; it grew by {}\n",
                unit::things(device.checkpoints, "checkpoint"),
                unit::bytes(device.store_bytes_per_operation),
                unit::bytes(device.grown_bytes as f64)
            );
        }
        text += &format!(
            "CPU     {} per operation, workers busy for {} of the time",
            unit::micros(self.cpu_us_per_operation),
            unit::share(self.worker_use)
        );
        if let Some(cpu) = self.raw.cpu_us_per_read().filter(|_| self.cpu_costs.is_none()) {
            text += &format!("; a raw read takes {}", unit::micros(cpu));
        }
        text.push('\n');
        if let Some(share) = self.share_of_raw {
            text += &format!("limit   {share:.2} of the raw device's reads per second at the same depth\n");
        }
        let throttle = &self.stats.throttle;
        if throttle.delayed > 0 {
            text += &format!(
                "waits   {}, of {} in all since the store was made; at the end for {:?}\n",
                unit::things(throttle.delayed, "delayed commit"),
                unit::seconds(throttle.waited_s),
                throttle.reason
            );
        }
        if let Some(inside) = &self.drive {
            text += &format!("\n{}", inside.tables());
        }
        text
    }

    fn rows(&self) -> String {
        let own = self.latency.map(|latency| Direction {
            requests_per_s: self.operations_per_s,
            bytes_per_s: self.operations_per_s * self.record_bytes(),
            latency,
        });
        let raw = self.raw.runs.iter().filter_map(|run| Some(("raw reads".to_owned(), run.read.as_ref()?)));
        match &own {
            Some(own) => table(std::iter::once((self.operation.clone(), own)).chain(raw)),
            None => {
                let rate = unit::count(self.operations_per_s);
                format!("{}   {rate}/s over {}\n", self.operation, unit::seconds(self.elapsed_s))
            }
        }
    }
}
