//! Updates out of place compared with the same updates in place.

use flashgrain_profile::Error;
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::StartState;
use serde::Serialize;

use super::{Experiment, ExperimentResult, Operation, Work};

/// Both, and how they compare.
#[derive(Debug, Serialize)]
pub struct PlacementResult {
    in_place: ExperimentResult,
    out_of_place: ExperimentResult,
    /// Updates per second out of place over those in place.
    ratio: f64,
}

/// Random updates of a store that keeps each page at its place, then of one that writes pages out of place,
/// each on a drive of the same size and state.
///
/// # Errors
/// Errors of the target and the stores.
pub fn placement(mut experiment: Experiment<'_>) -> anyhow::Result<PlacementResult> {
    if experiment.options.simulated().is_some() {
        // Both stores have the same processor costs.
        experiment.options.processor = Some(experiment.processor_costs()?);
    }
    let in_place = measure(&mut experiment, true)?;
    let out_of_place = measure(&mut experiment, false)?;
    let ratio = out_of_place.operations_per_s / in_place.operations_per_s;
    Ok(PlacementResult { in_place, out_of_place, ratio })
}

fn measure(experiment: &mut Experiment<'_>, in_place: bool) -> anyhow::Result<ExperimentResult> {
    experiment.options.store.in_place = in_place;
    experiment.listener.note(if in_place { "in place" } else { "out of place" });
    let (place, settling) = match experiment.options.simulated() {
        Some(name) => {
            let working_set = experiment.options.space_use.unwrap_or(1.0);
            let state = StartState::SteadyRandom { working_set };
            let config = SimConfig { state, ..SimConfig::named(name)? };
            let place = experiment.simulated_place(&config, experiment.processor_costs()?)?;
            let pages = place.bytes().unwrap_or(0) / experiment.options.store.page_bytes();
            (place, pages)
        }
        None => (experiment.place()?, 0),
    };
    let result = experiment.measure("updates", &place, Work::Operate(Operation::Update), settling);
    place.remove()?;
    let result = result?;
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(result) }
}

impl PlacementResult {
    /// The result as a table for people.
    pub fn table(&self) -> String {
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
