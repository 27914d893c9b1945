//! `flashgrain bench placement`: updates out of place beside the same updates in place.

use clap::Args;
use flashgrain_profile::Error;
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::drive::Operation;
use super::measure::{Bench, Work};
use super::options::BenchOptions;
use super::result::BenchResult;
use crate::output::{Context, print, print_json};

/// Random updates of a store that keeps each page at its place, then of one that writes pages out of place, each on a drive of the same size and state.
///
/// A simulated drive is shrunk so that pages, each counted whole, take the share of it that `--space-use` says, begins in the steady state of random writes over that share, and as many pages are updated as it has before
/// anything is counted.
#[derive(Debug, Args)]
#[command(mut_arg("space_use", |argument| argument.default_value("80%")))]
#[command(mut_arg("records", |argument| argument.default_value("2000000")))]
#[command(mut_arg("fill_order", |argument| argument.default_value("stretches")))]
#[command(mut_arg("value_bytes", |argument| argument.default_value("240")))]
#[command(mut_arg("operations", |argument| argument.default_value("200000")))]
#[command(mut_arg("tasks", |argument| argument.default_value("256")))]
pub struct PlacementArguments {
    #[command(flatten)]
    options: BenchOptions,
}

/// Both, and how they compare.
#[derive(Debug, Serialize)]
struct PlacementResult {
    in_place: BenchResult,
    out_of_place: BenchResult,
    /// Updates per second out of place over those in place.
    ratio: f64,
}

pub fn run(arguments: &PlacementArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.clone().for_target();
    options.check()?;
    let interrupt = context.interrupt.watch()?;
    let mut bench = Bench { options, settling: 0, context, interrupt };
    if bench.options.simulated().is_some() {
        // The same for both.
        bench.options.cpu_costs = Some(bench.costs()?);
    }
    let in_place = measure(&mut bench, true)?;
    let out_of_place = measure(&mut bench, false)?;
    let ratio = out_of_place.operations_per_s / in_place.operations_per_s;
    let result = PlacementResult { in_place, out_of_place, ratio };
    if bench.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}

fn measure(bench: &mut Bench<'_>, in_place: bool) -> anyhow::Result<BenchResult> {
    bench.options.in_place = in_place;
    bench.context.note(if in_place { "in place" } else { "out of place" });
    let place = match bench.options.simulated() {
        Some(name) => {
            let working_set = bench.options.space_use.unwrap_or(1.0);
            let state = StartState::SteadyRandom { working_set };
            let config = SimConfig { state, ..SimConfig::named(name)? };
            let place = bench.simulated_place(&config, bench.costs()?)?;
            bench.settling = place.bytes().unwrap_or(0) / bench.options.node_bytes();
            place
        }
        None => bench.place()?,
    };
    let result = bench.measure("updates", &place, Work::Operate(Operation::Update));
    place.remove()?;
    let result = result?;
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(result) }
}

impl PlacementResult {
    fn table(&self) -> String {
        let Self { in_place, out_of_place, ratio } = self;
        let mut text = out_of_place.heading() + "\n";
        let rows = [("in place", in_place), ("out of place", out_of_place)];
        text += &format!(
            "{:<14} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12} {:>10} {:>8} {:>8} {:>12}\n",
            "",
            "updates/s",
            "p50",
            "p99",
            "reads/s",
            "written/s",
            "per changed",
            "aligned",
            "pages",
            "images",
            "worker use"
        );
        for (name, result) in rows {
            let latency = |of: fn(&Latency) -> f64| {
                result.latency.as_ref().map_or_else(|| "-".into(), |latency| unit::micros(of(latency)))
            };
            let optional =
                |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
            let device = &result.device;
            text += &format!(
                "{name:<14} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12} {:>10} {:>8} {:>8} {:>12}\n",
                unit::count(result.operations_per_s),
                latency(|latency| latency.p50_us),
                latency(|latency| latency.p99_us),
                unit::count(device.reads_per_s),
                unit::rate(device.written_bytes_per_s),
                optional(device.write_amplification, |bytes| format!("{bytes:.2}")),
                optional(device.aligned_share, unit::share),
                unit::share(result.page_use),
                unit::share(result.space_use),
                unit::share(result.worker_use),
            );
        }
        text += &format!("\nout of place does {ratio:.2} times the updates per second of in place\n");
        for (name, result) in rows {
            if let Some(inside) = &result.drive {
                text += &format!("\ninside the drive, {name}\n{}", inside.tables());
            }
        }
        text
    }
}
