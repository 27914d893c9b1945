//! Look-ups on ever more simulated drives, and the resource that binds.

use flashgrain_profile::Error;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use serde::Serialize;

use super::{Experiment, ExperimentResult, Operation, Work};
use crate::store::Options;

/// A resource binds if it is used for at least this share of its capacity.
const BINDS_FROM: f64 = 0.9;

/// The resource that binds the rate.
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
    result: ExperimentResult,
}

/// One row for each number of drives.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ScaleResult {
    rows: Vec<Row>,
    /// The name of one of the drives.
    #[serde(skip)]
    drive: String,
    #[serde(skip)]
    options: Options,
}

/// Look-ups on each number of simulated drives; on one, two, up to as many as the target has if there are no
/// numbers.
///
/// # Errors
/// Those of the target and the stores; only simulated drives can be had in any number.
pub fn scale(experiment: &Experiment<'_>, numbers: Option<Vec<u32>>) -> anyhow::Result<ScaleResult> {
    let Some(name) = experiment.options.simulated() else {
        let wanted = "only simulated drives can be had in any number: name one such as sim:8xpm1733";
        return Err(Error::Argument(wanted.into()).into());
    };
    let config = SimConfig::named(name)?;
    let costs = experiment.processor_costs()?;
    let mut rows: Vec<Row> = Vec::new();
    for drives in numbers.unwrap_or_else(|| (1..=config.drives).collect()) {
        experiment.listener.note(&format!("with {drives} of the drives"));
        let set = SimConfig { drives, ..config.clone() };
        let place = experiment.simulated_place(&set, costs)?;
        let result = experiment.measure("lookups", &place, Work::Operate(Operation::Lookup), 0)?;
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
    Ok(ScaleResult { rows, drive: config.name, options: experiment.options.clone() })
}

impl ScaleResult {
    /// The result as a table for people.
    pub fn table(&self) -> String {
        let (options, rows) = (&self.options, &self.rows);
        let mut text = format!(
            "store   {} of {} + {} bytes, {} in all; cache {}; on drives like {}, shrunk, simulated\nrun     lookups by {}, {} under way, {}, seed {}\n",
            unit::things(options.records.count, "record"),
            options.records.key_bytes,
            options.records.value_bytes,
            unit::bytes(options.records.bytes() as f64),
            unit::bytes(options.store.cache_bytes as f64),
            self.drive,
            unit::things(options.store.workers as u64, "worker"),
            options.store.tasks,
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
        text + "\nlinear: look-ups per second and drive, over those of the first line. drive use: share of the raw drives' reads at the same depth.\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_most_binds_if_it_is_used_up() {
        assert_eq!(Bound::of(0.97, 0.5), Bound::Drives);
        assert_eq!(Bound::of(0.91, 0.99), Bound::Workers);
        assert_eq!(Bound::of(0.8, 0.8), Bound::Latency);
    }
}
