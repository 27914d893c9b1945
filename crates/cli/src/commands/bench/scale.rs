//! `flashgrain bench scale`: look-ups on ever more simulated drives, and what binds.

use clap::Args;
use flashgrain_profile::Error;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use serde::Serialize;

use super::drive::Operation;
use super::measure::{Bench, Work};
use super::options::BenchOptions;
use super::result::BenchResult;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};

/// Look-ups on one simulated drive, two, and so on: how the rate grows, and whether drives or processors bind.
///
/// The drives are shrunk to twice what the records need, or 1 GiB each. What processors take is measured on this machine at first.
#[derive(Debug, Args)]
#[command(mut_arg("workers", |argument| argument.default_value("64")))]
#[command(mut_arg("tasks", |argument| argument.default_value("4096")))]
#[command(mut_arg("records", |argument| argument.default_value("4000000")))]
#[command(mut_arg("operations", |argument| argument.default_value("500000")))]
pub struct ScaleArguments {
    /// Numbers of drives, such as 1-8 or 1,2,4,8; by default one to as many as the target has.
    #[arg(long, value_name = "NUMBERS", value_parser = parse_drives)]
    drives: Option<Drives>,
    #[command(flatten)]
    options: BenchOptions,
}

/// Numbers of drives, as they are typed.
#[derive(Clone, Debug, PartialEq)]
struct Drives(Vec<u32>);

/// A resource binds if it is used for at least this share of what it can do.
const BINDS_FROM: f64 = 0.9;

fn parse_drives(text: &str) -> Result<Drives, String> {
    const HELP: &str = "expected numbers of drives such as 1-8 or 1,2,4,8";
    let number = |text: &str| text.trim().parse().ok().filter(|count| (1..=1024).contains(count)).ok_or(HELP);
    let numbers: Vec<u32> = match text.split_once('-') {
        Some((first, last)) => (number(first)?..=number(last)?).collect(),
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    if numbers.is_empty() { Err(HELP.into()) } else { Ok(Drives(numbers)) }
}

/// What binds the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    Drives,
    Workers,
    /// Neither: more tasks would do more.
    Latency,
}

impl Bound {
    fn of(drive_use: f64, worker_use: f64) -> Self {
        match drive_use.max(worker_use) >= BINDS_FROM {
            true if drive_use >= worker_use => Self::Drives,
            true => Self::Workers,
            false => Self::Latency,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Drives => "drives",
            Self::Workers => "workers",
            Self::Latency => "latency",
        }
    }
}

/// One number of drives.
#[derive(Debug, Serialize)]
struct Row {
    drives: u32,
    /// Look-ups per second over those of the first row, per drive.
    linear: f64,
    /// Reads per second over those of the raw drives at the same depth.
    drive_use: f64,
    worker_use: f64,
    bound: Bound,
    #[serde(flatten)]
    result: BenchResult,
}

pub fn run(arguments: &ScaleArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.clone().for_target();
    options.check()?;
    let Some(name) = options.simulated() else {
        return Err(Usage(
            "only simulated drives can be had in any number: name one such as sim:8xpm1733".into(),
        )
        .into());
    };
    let config = SimConfig::named(name)?;
    let interrupt = context.interrupt.watch()?;
    let bench = Bench { options: options.clone(), settling: 0, context, interrupt };
    let costs = bench.costs()?;
    let numbers = arguments.drives.clone().unwrap_or_else(|| Drives((1..=config.drives).collect()));
    let mut rows: Vec<Row> = Vec::new();
    for drives in numbers.0 {
        context.note(&format!("with {drives} of the drives"));
        let set = SimConfig { drives, ..config.clone() };
        let place = bench.simulated_place(&set, costs)?;
        let result = bench.measure("lookups", &place, Work::Operate(Operation::Lookup))?;
        if result.interrupted {
            return Err(Error::Interrupted.into());
        }
        let first = rows.first().map_or((&result, drives), |row: &Row| (&row.result, row.drives));
        let linear =
            result.operations_per_s * f64::from(first.1) / (first.0.operations_per_s * f64::from(drives));
        let (drive_use, worker_use) = (result.share_of_raw.unwrap_or(0.0), result.worker_use);
        let bound = Bound::of(drive_use, worker_use);
        rows.push(Row { drives, linear, drive_use, worker_use, bound, result });
    }
    if options.json { print_json(&rows) } else { Ok(print(&table(&config, &options, &rows))?) }
}

fn table(config: &SimConfig, options: &BenchOptions, rows: &[Row]) -> String {
    let mut text = format!(
        "store   {} records of {} + {} bytes, {} in all; cache {}; on drives like {}, shrunk, simulated\nrun     lookups by {} workers, {} under way, {}, seed {}\n",
        unit::count(options.records as f64),
        options.key_bytes,
        options.value_bytes,
        unit::bytes(options.data_bytes() as f64),
        unit::bytes(options.cache_bytes() as f64),
        config.name,
        options.workers(),
        options.tasks,
        options.distribution,
        options.seed
    );
    if let Some(costs) = rows.first().and_then(|row| row.result.cpu_costs) {
        text += &format!("costs   {}\n", costs.describe());
    }
    text += &format!(
        "\n{:>6} {:>11} {:>9} {:>11} {:>11} {:>10} {:>12} {:>10} {:>10}  {}\n",
        "drives",
        "lookups/s",
        "linear",
        "reads/s",
        "raw reads/s",
        "drive use",
        "worker use",
        "p50",
        "p99",
        "bound by"
    );
    for Row { drives, linear, drive_use, worker_use, bound, result } in rows {
        let latency = |of: fn(&flashgrain_profile::schema::Latency) -> f64| {
            result.latency.as_ref().map_or_else(|| "-".into(), |latency| unit::micros(of(latency)))
        };
        text += &format!(
            "{drives:>6} {:>11} {linear:>9.2} {:>11} {:>11} {:>10} {:>12} {:>10} {:>10}  {}\n",
            unit::count(result.operations_per_s),
            unit::count(result.device.reads_per_s),
            result.raw.reads_per_s().map_or_else(|| "-".into(), unit::count),
            unit::share(*drive_use),
            unit::share(*worker_use),
            latency(|latency| latency.p50_us),
            latency(|latency| latency.p99_us),
            bound.name()
        );
    }
    text + "\nlinear: look-ups per second and drive, over those of the first line. drive use: of what the raw drives read at the same depth.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_drives_are_ranges_or_lists() {
        assert_eq!(parse_drives("1-4"), Ok(Drives(vec![1, 2, 3, 4])));
        assert_eq!(parse_drives("1, 8"), Ok(Drives(vec![1, 8])));
        for nonsense in ["", "0", "4-1", "a", "1-", "2000"] {
            assert!(parse_drives(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn what_is_used_most_binds_if_it_is_used_up() {
        assert_eq!(Bound::of(0.97, 0.5), Bound::Drives);
        assert_eq!(Bound::of(0.91, 0.99), Bound::Workers);
        assert_eq!(Bound::of(0.8, 0.8), Bound::Latency);
    }
}
