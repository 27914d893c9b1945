//! `flashgrain sim run`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use flashgrain_device::Device;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Stop};
use flashgrain_ssdsim::config::StartState;
use flashgrain_ssdsim::fault::Fault;
use flashgrain_ssdsim::mqsim::{self, import_workload};
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::result::{ScenarioResult, SimResult};
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::{count_within, parse_seconds, parse_share};
use crate::workload::WorkloadOptions;

/// Run one workload on a simulated drive and show its inside.
///
/// Throughput and latency percentiles as `io` has them, time by stage, write amplification, the mapping
/// cache, garbage collection, and the speed of the simulation.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A preset, a FILE.toml, or MQSim's ssdconfig.xml.
    #[arg(value_name = "DRIVE", required_unless_present = "config")]
    drive: Option<String>,
    /// The drive, as MQSim names it: the same as DRIVE.
    #[arg(long, value_name = "FILE", conflicts_with = "drive")]
    config: Option<String>,
    /// Run the scenarios of MQSim's workload.xml, each on a fresh drive, instead of the workload that the
    /// other options describe.
    #[arg(long = "workload", value_name = "FILE", conflicts_with_all = WORKLOAD_OPTIONS)]
    mqsim_workload: Option<PathBuf>,
    /// Only this scenario of it, counted from 1.
    #[arg(long, value_name = "NUMBER", requires = "mqsim_workload", value_parser = count_within::<u32>(1..))]
    scenario: Option<u32>,
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Virtual time that is measured. By default 10 s or a million requests, whichever comes first.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Requests that are measured.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u64>(1..))]
    requests: Option<u64>,
    /// Virtual time before that, which is not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    warmup: Option<f64>,
    /// The drive's state at the start instead of that of its description: `fresh`, `filled`, or
    /// `steady-random`, after random writes over the whole drive or, as `steady-random:85%`, over a share of
    /// it.
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    state: Option<StartState>,
    /// Something that goes wrong, as a `[[fault]]` section of a drive's TOML file has it, on one line:
    /// `stall` needs more than its name, as in
    /// --fault 'kind = "stall", span_ns = 1000000, at = { nth = 100 }'. May be given several times;
    /// docs/faults.md lists them.
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Options that a workload file sets itself.
const WORKLOAD_OPTIONS: [&str; 10] = [
    "pattern",
    "read_share",
    "block_size",
    "depth",
    "sync",
    "rate",
    "region",
    "seconds",
    "requests",
    "warmup",
];

/// How much is simulated unless it is said.
const SECONDS: f64 = 10.0;
const REQUESTS: u64 = 1_000_000;

fn parse_state(text: &str) -> Result<StartState, String> {
    match text.split_once(':').unwrap_or((text, "100%")) {
        ("fresh", _) => Ok(StartState::Fresh),
        ("filled", _) => Ok(StartState::Filled),
        ("steady-random", share) => Ok(StartState::SteadyRandom { working_set: parse_share(share)? }),
        _ => Err(
            "expected fresh, filled, steady-random, or steady-random with a share as in steady-random:85%"
                .into(),
        ),
    }
}

pub fn run(arguments: &RunArguments, context: &Context) -> anyhow::Result<()> {
    let name = arguments.drive.as_ref().or(arguments.config.as_ref()).map_or("", String::as_str);
    let mut config = SimConfig::named(name)?;
    config.state = arguments.state.unwrap_or(config.state);
    config.faults.extend(arguments.faults.iter().cloned());
    if name.ends_with(".xml") {
        let notes = config.about.assumed.len();
        context.note(&format!("{notes} of MQSim's fields count for nothing here or for something else: `flashgrain sim show {name}` lists them"));
    }
    match &arguments.mqsim_workload {
        Some(path) => run_scenarios(&config, name, path, arguments, context),
        None => run_workload(&config, name, arguments, context),
    }
}

fn run_workload(
    config: &SimConfig,
    name: &str,
    arguments: &RunArguments,
    context: &Context,
) -> anyhow::Result<()> {
    arguments.workload.check()?;
    let interrupt = context.interrupt.watch()?;
    let seed = arguments.workload.seed;
    let device = SimDevice::new(config, name, seed)?;
    context.note(&format!("running {} on {}", arguments.workload.describe(), config.name));
    if let Some(warmup_s) = arguments.warmup {
        // Other places than those that are measured then, as if it had run before.
        let load = Load { seed: !seed, ..arguments.workload.load(device.geometry(), 0.0, warmup_s) };
        load::run(&device, &load, interrupt)?;
        device.reset_statistics();
    }
    let load = arguments.load(&device);
    let measured = load::run(&device, &load, interrupt)?;
    let result = SimResult::new(&device, &load, &measured);
    if arguments.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if measured.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

/// Runs the scenarios of a file of MQSim's.
fn run_scenarios(
    config: &SimConfig,
    name: &str,
    path: &Path,
    arguments: &RunArguments,
    context: &Context,
) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(named)?;
    let scenarios = import_workload(&text, &named(), path.parent().unwrap_or(Path::new("")))?;
    let interrupt = context.interrupt.watch()?;
    let count = scenarios.len();
    let wanted = arguments.scenario;
    if let Some(number) = wanted.filter(|number| *number as usize > count) {
        return Err(Usage(format!("--scenario {number}: there are {count} in {}", named())).into());
    }
    let mut results = Vec::new();
    for (scenario, number) in scenarios.iter().zip(1..) {
        if wanted.is_some_and(|wanted| wanted != number) {
            continue;
        }
        context.note(&format!("scenario {number} of {count} on {}", config.name));
        scenario.notes.iter().for_each(|note| context.detail(note));
        let device = SimDevice::new(&scenario.prepare(config), name, arguments.workload.seed)?;
        let reached = mqsim::run(&device, scenario, interrupt)?;
        let result = ScenarioResult::new(number, &device, &reached);
        if !arguments.json {
            print(&result.table())?;
        }
        results.push(result);
        if reached.interrupted {
            return Err(Error::Interrupted.into());
        }
    }
    if arguments.json { print_json(&results) } else { Ok(()) }
}

impl RunArguments {
    fn load(&self, device: &SimDevice) -> Load {
        let unless_said = self.seconds.is_none() && self.requests.is_none();
        let stop = Stop {
            after_s: self.seconds.or(unless_said.then_some(SECONDS)),
            after_requests: self.requests.or(unless_said.then_some(REQUESTS)),
            ..Stop::default()
        };
        Load { stop, warmup_share: 0.0, ..self.workload.load(device.geometry(), 0.0, SECONDS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read() {
        assert_eq!(parse_state("fresh"), Ok(StartState::Fresh));
        assert_eq!(parse_state("steady-random"), Ok(StartState::SteadyRandom { working_set: 1.0 }));
        assert_eq!(parse_state("steady-random:85%"), Ok(StartState::SteadyRandom { working_set: 0.85 }));
        for nonsense in ["full", "steady-random:2", "steady-random:"] {
            assert!(parse_state(nonsense).is_err(), "{nonsense}");
        }
    }
}
