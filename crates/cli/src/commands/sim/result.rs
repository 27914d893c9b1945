//! Result of a run on a simulated drive, as seen from outside and inside.

use flashgrain_bench::measure::{Direction, Inside, directions_table, table};
use flashgrain_device::{Device, Geometry, Identity};
use flashgrain_model::Workload;
use flashgrain_profile::load::{Load, Measured};
use flashgrain_report::unit;
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::mqsim::{self, FlowResult};
use serde::Serialize;

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
    /// Processor time of the simulation.
    cpu_us_per_request: f64,
    interrupted: bool,
}

/// Result of a scenario of MQSim.
#[derive(Debug, Serialize)]
pub struct ScenarioResult {
    /// Counted from 1.
    scenario: u32,
    /// Virtual.
    elapsed_s: f64,
    flows: Vec<Flow>,
    inside: Inside,
    /// Processor time of the simulation.
    cpu_us_per_request: f64,
    interrupted: bool,
}

/// Result of one flow, until its last completion.
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
            text += &format!("{:<19} {}\n", "failed", unit::things(failed, "request"));
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
