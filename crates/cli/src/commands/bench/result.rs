//! What a benchmark found.

use flashgrain::Stats;
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use serde::Serialize;

use super::costs::Costs;
use super::drive::Driven;
use super::options::BenchOptions;
use super::raw::Raw;
use crate::commands::sim::Inside;
use crate::workload::{Direction, table};

/// For programs; the table for people is made from it.
#[derive(Debug, Serialize)]
pub struct BenchResult {
    pub flashgrain_version: &'static str,
    pub target: String,
    pub operation: String,
    pub records: u64,
    pub key_bytes: u32,
    pub value_bytes: u32,
    pub cache_bytes: u64,
    pub workers: u32,
    pub tasks: u32,
    pub distribution: String,
    pub durability: &'static str,
    pub placement: &'static str,
    pub seed: u64,
    pub elapsed_s: f64,
    pub operations: u64,
    pub operations_per_s: f64,
    pub latency: Option<Latency>,
    pub cpu_us_per_operation: f64,
    /// Share of the workers' time in which they worked.
    pub worker_use: f64,
    /// What simulated processors take.
    pub cpu_costs: Option<Costs>,
    pub device: DeviceUse,
    /// Images of live pages over the room for pages, at the end.
    pub space_use: f64,
    /// The same with every page counted whole.
    pub page_use: f64,
    /// What happened inside a simulated drive.
    pub drive: Option<Inside>,
    pub raw: Raw,
    /// Reads per second of the store's device over those of the raw device.
    pub share_of_raw: Option<f64>,
    pub interrupted: bool,
    pub stats: Stats,
}

/// What the measured time brought on the devices.
#[derive(Debug, Serialize)]
pub struct DeviceUse {
    pub reads_per_s: f64,
    pub read_bytes_per_s: f64,
    pub writes_per_s: f64,
    pub written_bytes_per_s: f64,
    pub flushes_per_s: f64,
    /// Of the pages that operations needed, those that were in memory.
    pub cache_hits: Option<f64>,
    /// Bytes written for pages, cleaning included, for each byte of a changed page; none if no page was written.
    pub write_amplification: Option<f64>,
    /// Of the bytes written for pages, those in whole aligned write units.
    pub aligned_share: Option<f64>,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// Bytes written for pages, page table and log, cleaning included, for each operation.
    pub store_bytes_per_operation: f64,
    /// Bytes by which the store's device has grown.
    pub grown_bytes: u64,
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

impl BenchResult {
    pub fn new(
        operation: &str,
        target: String,
        options: &BenchOptions,
        cpu_costs: Option<Costs>,
        driven: Driven,
        raw: Raw,
    ) -> Self {
        let operations = driven.operations.max(1) as f64;
        let device = DeviceUse::new(&driven.before, &driven.after, driven.elapsed_s, operations);
        let space = &driven.after.space;
        let room = (space.segments * space.segment_bytes).max(1) as f64;
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            target,
            operation: operation.to_owned(),
            records: options.records,
            key_bytes: options.key_bytes,
            value_bytes: options.value_bytes,
            cache_bytes: options.cache_bytes(),
            workers: options.workers(),
            tasks: options.tasks,
            distribution: options.distribution.to_string(),
            durability: options.durability.name(),
            placement: if options.in_place { "in place" } else { "out of place" },
            seed: options.seed,
            elapsed_s: driven.elapsed_s,
            operations: driven.operations,
            operations_per_s: driven.operations as f64 / driven.elapsed_s,
            latency: (!driven.latency_ns.is_empty()).then(|| Latency::of(&driven.latency_ns)),
            cpu_us_per_operation: driven.cpu.as_secs_f64() * 1e6 / operations,
            worker_use: driven.cpu.as_secs_f64() / driven.elapsed_s / f64::from(options.workers()),
            cpu_costs,
            share_of_raw: raw.reads_per_s().filter(|raw| *raw > 0.0).map(|raw| device.reads_per_s / raw),
            device,
            space_use: space.live_bytes as f64 / room,
            page_use: (driven.after.cache.pages * options.node_bytes()) as f64 / room,
            drive: None,
            raw,
            interrupted: driven.interrupted,
            stats: driven.after,
        }
    }

    /// What was measured.
    pub fn heading(&self) -> String {
        let mut text = format!(
            "store   {} records of {} + {} bytes in {}, {} in all; cache {}\n",
            unit::count(self.records as f64),
            self.key_bytes,
            self.value_bytes,
            self.target,
            unit::bytes((self.records * u64::from(self.key_bytes + self.value_bytes)) as f64),
            unit::bytes(self.cache_bytes as f64),
        );
        text += &format!(
            "run     {} by {} workers, {} under way, {}, durability {}, {}, seed {}\n",
            self.operation,
            self.workers,
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
                "upkeep  {} checkpoints, {} written per operation for pages and log; it grew by {}\n",
                device.checkpoints,
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
                "waits   {} commits waited {} in all since the store was made; at the end for {:?}\n",
                unit::count(throttle.delayed as f64),
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
            bytes_per_s: self.operations_per_s * f64::from(self.key_bytes + self.value_bytes),
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
