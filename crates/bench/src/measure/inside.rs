//! Statistics of a simulated drive.

use flashgrain_report::unit;
use flashgrain_ssdsim::{Counters, SimDevice, StageTotals, Statistics};
use serde::Serialize;

/// Counts of the drive.
#[derive(Debug, Serialize)]
pub struct Inside {
    /// Mean over the commands that read.
    read_stages: Option<Stages>,
    /// Mean over the commands that wrote.
    write_stages: Option<Stages>,
    mean_in_flight: f64,
    write_amplification: Option<f64>,
    mapping_hit_share: Option<f64>,
    counters: Counters,
    /// Of all events since the drive was made: equal for equal runs.
    digest: String,
}

/// Mean time of a command in each stage, in the order of the stages.
#[derive(Debug, Serialize)]
struct Stages {
    queue_us: f64,
    controller_us: f64,
    link_us: f64,
    mapping_us: f64,
    wait_us: f64,
    collect_us: f64,
    medium_us: f64,
    total_us: f64,
}

impl Stages {
    fn new(totals: &StageTotals, commands: u64) -> Option<Self> {
        let mean = |nanos: u64| nanos as f64 * 1e-3 / commands as f64;
        (commands > 0).then(|| Self {
            queue_us: mean(totals.queue_ns),
            controller_us: mean(totals.controller_ns),
            link_us: mean(totals.link_ns),
            mapping_us: mean(totals.mapping_ns),
            wait_us: mean(totals.wait_ns),
            collect_us: mean(totals.collect_ns),
            medium_us: mean(totals.medium_ns),
            total_us: mean(totals.sum_ns()),
        })
    }

    fn columns(&self) -> [f64; 8] {
        let Self { queue_us, controller_us, link_us, mapping_us, wait_us, collect_us, medium_us, total_us } =
            *self;
        [queue_us, controller_us, link_us, mapping_us, wait_us, collect_us, medium_us, total_us]
    }
}

/// The name of a count, and the count in words.
type Line = (&'static str, String);

fn count(count: u64) -> String {
    unit::count(count as f64)
}

fn bytes(bytes: u64) -> String {
    unit::bytes(bytes as f64)
}

impl Inside {
    /// Of the drive since its statistics were reset.
    pub fn new(device: &SimDevice) -> Self {
        let Statistics { elapsed_ns, in_flight_ns, read_stages, write_stages, counters, .. } =
            device.statistics();
        Self {
            read_stages: Stages::new(&read_stages, counters.reads),
            write_stages: Stages::new(&write_stages, counters.writes),
            mean_in_flight: in_flight_ns as f64 / elapsed_ns.max(1) as f64,
            write_amplification: counters.write_amplification(),
            mapping_hit_share: (counters.mapping_lookups > 0)
                .then(|| counters.mapping_hits as f64 / counters.mapping_lookups as f64),
            counters,
            digest: format!("{:016x}", device.digest()),
        }
    }

    /// The time in each stage.
    fn stages_table(&self) -> String {
        let mut text = format!("{:<11}", "mean time");
        for stage in ["queue", "controller", "link", "mapping", "wait", "gc wait", "medium", "total"] {
            text += &format!("{stage:>11}");
        }
        text.push('\n');
        for (name, stages) in [("reads", &self.read_stages), ("writes", &self.write_stages)] {
            let Some(stages) = stages else { continue };
            text += &format!("  {name:<9}");
            for micros in stages.columns() {
                // Zero means that the drive does not have the stage.
                let cell = if micros == 0.0 { "-".to_owned() } else { unit::micros(micros) };
                text += &format!("{cell:>11}");
            }
            text.push('\n');
        }
        text
    }

    /// Counts of events inside the drive; lines for events that did not happen are left out.
    fn counters_table(&self) -> String {
        let mut lines = self.flash_lines();
        lines.extend(self.cache_lines());
        lines.extend(self.disk_lines());
        if self.counters.flushes > 0 {
            lines.push(("flushes", count(self.counters.flushes)));
        }
        lines.push(("in flight", format!("{:.1} requests in the mean", self.mean_in_flight)));
        lines.push(("digest", self.digest.clone()));
        lines.into_iter().map(|(name, text)| format!("{name:<19} {text}\n")).collect()
    }

    fn flash_lines(&self) -> Vec<Line> {
        let counters = &self.counters;
        let mut lines = Vec::new();
        if counters.flash_reads + counters.flash_programs + counters.erases > 0 {
            let text = format!(
                "{} reads, {} programs, {} erases",
                count(counters.flash_reads),
                count(counters.flash_programs),
                count(counters.erases)
            );
            lines.push(("flash", text));
        }
        if let Some(amplification) = self.write_amplification.filter(|amplification| *amplification > 0.0) {
            let text = format!(
                "{amplification:.3}: {} from the host; programmed {} for it, {} by collection, {} for the mapping, {} by flushes",
                bytes(counters.host_bytes_written),
                bytes(counters.programmed_bytes),
                bytes(counters.collect_programmed_bytes),
                bytes(counters.mapping_programmed_bytes),
                bytes(counters.journal_programmed_bytes)
            );
            lines.push(("write amplification", text));
        }
        if counters.collected_blocks > 0 {
            let (blocks, units) = (count(counters.collected_blocks), count(counters.moved_units));
            lines.push(("garbage collection", format!("{blocks} blocks, {units} units moved")));
        }
        lines
    }

    fn cache_lines(&self) -> Vec<Line> {
        let counters = &self.counters;
        let mut lines = Vec::new();
        if let Some(hits) = self.mapping_hit_share {
            let (lookups, reads) = (count(counters.mapping_lookups), count(counters.mapping_reads));
            let text = format!("{} of {lookups} lookups hit, {reads} page reads", unit::share(hits));
            lines.push(("mapping cache", text));
        }
        if counters.write_cache_hits > 0 {
            lines.push(("write cache", format!("{} units read from it", count(counters.write_cache_hits))));
        }
        lines
    }

    fn disk_lines(&self) -> Vec<Line> {
        let counters = &self.counters;
        let mut lines = Vec::new();
        if counters.seeks > 0 {
            let mean = |nanos: u64| unit::micros(nanos as f64 * 1e-3 / counters.seeks as f64);
            let (seek, rotation) = (mean(counters.seek_ns), mean(counters.rotation_ns));
            lines.push((
                "seeks",
                format!("{}, {seek} and {rotation} of rotation in the mean", count(counters.seeks)),
            ));
        }
        if counters.read_ahead_hits + counters.platter_bytes_written > 0 {
            let (hits, written) = (count(counters.read_ahead_hits), bytes(counters.platter_bytes_written));
            lines.push(("disk cache", format!("{hits} reads from it, {written} written out")));
        }
        lines
    }

    /// The result as tables for people.
    pub fn tables(&self) -> String {
        format!("{}\n{}", self.stages_table(), self.counters_table())
    }
}
