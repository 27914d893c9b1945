//! What a run on a simulated drive showed, outside and inside.

use flashgrain_device::{Device, Geometry, Identity};
use flashgrain_model::Workload;
use flashgrain_profile::load::{Load, Measured};
use flashgrain_report::unit;
use flashgrain_ssdsim::mqsim::{self, FlowResult};
use flashgrain_ssdsim::{Counters, SimDevice, StageTotals, Statistics};
use serde::Serialize;

use crate::workload::{Direction, directions_table, table};

/// The result, for programs; the tables for people are made from it.
#[derive(Debug, Serialize)]
pub struct SimResult<'a> {
    flashgrain_version: &'static str,
    identity: &'a Identity,
    geometry: &'a Geometry,
    workload: Workload,
    rate_per_s: Option<f64>,
    seed: u64,
    /// Virtual.
    elapsed_s: f64,
    read: Option<Direction>,
    write: Option<Direction>,
    inside: Inside,
    /// Of the simulation.
    cpu_us_per_request: f64,
    interrupted: bool,
}

/// What the drive counted.
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

/// Mean time of a command in each stage, in the order in which it passes them.
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

/// What is counted, and the count in words.
type Line = (&'static str, String);

fn count(count: u64) -> String {
    unit::count(count as f64)
}

fn bytes(bytes: u64) -> String {
    unit::bytes(bytes as f64)
}

impl Inside {
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

    /// Where the time went.
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
                // Zero is what a stage takes that is not there.
                let cell = if micros == 0.0 { "-".to_owned() } else { unit::micros(micros) };
                text += &format!("{cell:>11}");
            }
            text.push('\n');
        }
        text
    }

    /// What happened behind the host's back; lines for what did not happen are left out.
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

    pub fn tables(&self) -> String {
        format!("{}\n{}", self.stages_table(), self.counters_table())
    }
}

/// What a scenario of MQSim's reached.
#[derive(Debug, Serialize)]
pub struct ScenarioResult {
    /// Counted from 1.
    scenario: u32,
    /// Virtual.
    elapsed_s: f64,
    flows: Vec<Flow>,
    inside: Inside,
    /// Of the simulation.
    cpu_us_per_request: f64,
    interrupted: bool,
}

/// What one flow reached in the time until its last completion.
#[derive(Debug, Serialize)]
struct Flow {
    elapsed_s: f64,
    read: Option<Direction>,
    write: Option<Direction>,
    failed: u64,
}

impl ScenarioResult {
    pub fn new(scenario: u32, device: &SimDevice, reached: &mqsim::ScenarioResult) -> Self {
        let flow = |flow: &FlowResult| {
            let elapsed_s = flow.elapsed.seconds();
            Flow {
                elapsed_s,
                read: Direction::new(flow.bytes_read, &flow.read_latency_ns, elapsed_s),
                write: Direction::new(flow.bytes_written, &flow.write_latency_ns, elapsed_s),
                failed: flow.failed,
            }
        };
        let requests: u64 = reached.flows.iter().map(FlowResult::requests).sum();
        Self {
            scenario,
            elapsed_s: reached.elapsed.seconds(),
            flows: reached.flows.iter().map(flow).collect(),
            inside: Inside::new(device),
            cpu_us_per_request: reached.cpu.seconds() * 1e6 / requests.max(1) as f64,
            interrupted: reached.interrupted,
        }
    }

    pub fn table(&self) -> String {
        let rows = self.flows.iter().zip(1..).flat_map(|(flow, number)| {
            let row = |name: &str, direction| Some((format!("flow {number} {name}"), direction?));
            [row("reads", flow.read.as_ref()), row("writes", flow.write.as_ref())]
        });
        let mut text = table(rows.flatten()) + "\n" + &self.inside.tables();
        let failed: u64 = self.flows.iter().map(|flow| flow.failed).sum();
        if failed > 0 {
            text += &format!("{:<19} {failed} requests\n", "failed");
        }
        text + &simulation_line(self.cpu_us_per_request, self.elapsed_s) + "\n"
    }
}

impl<'a> SimResult<'a> {
    pub fn new(device: &'a SimDevice, load: &Load, measured: &Measured) -> Self {
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            identity: device.identity(),
            geometry: device.geometry(),
            workload: load.workload,
            rate_per_s: load.rate_per_s,
            seed: load.seed,
            elapsed_s: measured.elapsed.seconds(),
            read: Direction::of_reads(measured),
            write: Direction::of_writes(measured),
            inside: Inside::new(device),
            cpu_us_per_request: measured.cpu_us_per_request(),
            interrupted: measured.interrupted,
        }
    }

    pub fn table(&self) -> String {
        directions_table(self.read.as_ref(), self.write.as_ref())
            + "\n"
            + &self.inside.tables()
            + &simulation_line(self.cpu_us_per_request, self.elapsed_s)
    }
}

/// How fast the simulation was.
pub fn simulation_line(cpu_us_per_request: f64, virtual_s: f64) -> String {
    let (cpu, span) = (unit::micros(cpu_us_per_request), unit::seconds(virtual_s));
    format!("{:<19} {cpu} of CPU per request; {span} of virtual time\n", "simulation")
}
