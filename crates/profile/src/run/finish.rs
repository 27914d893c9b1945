//! From measurements to the profile: fits, verification, learning, decisions.

use std::collections::BTreeMap;

use flashgrain_device::{Device, Identity, calendar_seconds};
use flashgrain_model::{Comparison, FitOptions, Models, Sample, compare, fit};

use super::bench::Bench;
use super::cache::Cache;
use super::rounds::{Bounds, Outcome};
use super::trials;
use super::{Measured, Profiled, regime};
use crate::config::ExperimentName;
use crate::experiment::{record, sustain};
use crate::learn::{self, Evidence};
use crate::plan::{Limits, Plan, VERIFICATION_ROUNDS, allot};
use crate::samples::Samples;
use crate::schema::{
    Budget, DeviceProfile, ExperimentUse, FORMAT, Measurements, Provenance, Regime, SCHEMA_VERSION,
    Verification,
};
use crate::series::Series;
use crate::stats::median;
use crate::trial::Trial;
use crate::{Error, date, decide, trust, verify};

/// Share of the budget by which the last measurement ends, so that the files are written within it.
const LAST_MEASUREMENT_FRACTION: f64 = 0.99;

/// The part of its planned time that verification gets at least, even if the fits took too long because other
/// programs used the processor.
const VERIFICATION_FRACTION_MIN: f64 = 0.5;

/// Concludes everything that the measurements allow.
pub(super) fn finish(bench: &mut Bench<'_>, plan: &Plan, measured: Measured) -> Result<Profiled, Error> {
    let config = bench.config;
    let Measured { outcome, creation, bytes_per_second, cap, mut left_out, write_cache } = measured;
    let mut measurements = Measurements::default();
    for name in ExperimentName::ALL {
        record(name, &of(name, &outcome.series), config.seed, &mut measurements);
    }
    let is_burst = |series: &&Series| series.trial.regime == Some(Regime::Burst);
    measurements.burst = outcome.series.iter().filter(is_burst).filter_map(Series::point).collect();
    let samples_of = |burst: bool| -> Vec<Sample> {
        let series = outcome.series.iter().filter(|series| is_burst(series) == burst);
        series.filter(|series| series.trial.experiment.feeds_models()).flat_map(Series::samples).collect()
    };
    let samples = samples_of(false);
    let options = FitOptions { resamples: config.resamples, seed: config.seed, ..FitOptions::default() };
    bench.step("fitting")?;
    let models = fit_models(&samples, &options, &mut left_out);
    let burst_samples = samples_of(true);
    let burst_models = if burst_samples.is_empty() { None } else { fit(&burst_samples, &options).ok() };
    let cache = write_cache.as_ref().and_then(Cache::of);
    measurements.write_cache = write_cache;
    let (verified, verification) = match &models {
        Some(sustained) if plan.verification.seconds > 0.0 && !bench.concluding => {
            let fitted = Fitted { sustained, burst: burst_models.as_ref(), cache };
            verify_models(bench, plan, fitted, bytes_per_second, &mut left_out)?
        }
        _ => (Vec::new(), Vec::new()),
    };
    bench.step("learning")?;
    let mut comparison = compare_models(&samples, &options, &mut left_out);
    let distrust = trust::distrust(&outcome.series);
    if let (Some(why), Some(comparison)) = (&distrust, &mut comparison) {
        comparison.conclude_nothing(why);
    }
    let evidence = Evidence {
        series: &outcome.series,
        creation: &creation,
        page_bytes: plan.site.page_bytes,
        align_bytes: plan.site.align_bytes,
        direct: bench.target.device.geometry().direct,
        seed: config.seed,
        cap: cap.as_ref(),
    };
    let (learned, decisions) = match &distrust {
        None => {
            let learned = learn::learn(&evidence);
            let decisions =
                decide::decide(&learned, &measurements, bench.target.device.identity().backend.parse().ok());
            (learned, decisions)
        }
        // The profile says once why.
        Some(_) => (learn::nothing(trust::NOTHING_CONCLUDED), decide::defaults(trust::NOTHING_CONCLUDED)),
    };
    if let Some(stage) = plan.sustain.filter(|_| !bench.concluding) {
        bench.raise_limits(stage.write_bytes, stage.seconds);
        match sustain::run(bench, &plan.site) {
            Ok(sustained) => measurements.sustain = Some(sustained),
            Err(error) => left_out.push(bench.conclude(error)?),
        }
    }
    let experiments = experiment_uses(&outcome, &measurements);
    let profile = DeviceProfile {
        format: FORMAT.to_owned(),
        schema_version: SCHEMA_VERSION,
        provenance: Provenance {
            identity: identity(bench.target.device),
            geometry: bench.target.device.geometry().clone(),
            date_utc: date::rfc3339(calendar_seconds()),
            seed: config.seed,
            flashgrain_version: env!("CARGO_PKG_VERSION").to_owned(),
            precondition: config.precondition.describe().to_owned(),
        },
        budget: Budget {
            limit_s: plan.budget_s + plan.sustain.map_or(0.0, |stage| stage.seconds),
            limit_write_bytes: plan.budget_write_bytes + plan.sustain.map_or(0, |stage| stage.write_bytes),
            used_s: bench.elapsed_s(),
            used_write_bytes: bench.written_bytes,
            file_bytes: bench
                .target
                .device
                .geometry()
                .capacity_bytes
                .min(config.region_bytes.unwrap_or(u64::MAX)),
            experiments,
            processor: bench.processor(),
            left_out,
        },
        measurements,
        models,
        burst_models,
        comparison,
        distrust,
        learned,
        decisions,
        verification,
        store: None,
    };
    let samples = Samples { series: outcome.series, verification: verified };
    Ok(Profiled { profile, samples })
}

/// Identity of the device, with shortages that came to light during the run.
fn identity(device: &dyn Device) -> Identity {
    let mut identity = device.identity().clone();
    identity.notes.extend(device.shortages());
    identity
}

fn of(name: ExperimentName, series: &[Series]) -> Vec<&Series> {
    let is_burst = |series: &Series| series.trial.regime == Some(Regime::Burst);
    series.iter().filter(|series| series.trial.experiment == name && !is_burst(series)).collect()
}

/// Fits the models; a model that the samples cannot support is left out with the reason.
fn fit_models(samples: &[Sample], options: &FitOptions, left_out: &mut Vec<String>) -> Option<Models> {
    let fitted = (!samples.is_empty()).then(|| fit(samples, options))?;
    fitted.map_err(|error| left_out.push(format!("models: {error}"))).ok()
}

/// Compares the models, which takes much longer than to fit them once: each is fitted to many parts.
fn compare_models(
    samples: &[Sample],
    options: &FitOptions,
    left_out: &mut Vec<String>,
) -> Option<Comparison> {
    let compared = (!samples.is_empty()).then(|| compare(samples, options))?;
    compared.map_err(|error| left_out.push(format!("comparison: {error}"))).ok()
}

/// Models that predictions are made with.
#[derive(Clone, Copy)]
struct Fitted<'a> {
    sustained: &'a Models,
    burst: Option<&'a Models>,
    cache: Option<Cache>,
}

impl Fitted<'_> {
    fn predict(self, trial: &Trial) -> Option<f64> {
        let models = if trial.regime == Some(Regime::Burst) { self.burst? } else { self.sustained };
        verify::predict(models, trial.workload()?)
    }
}

/// Predicts fresh workloads, then measures them.
fn verify_models(
    bench: &mut Bench<'_>,
    plan: &Plan,
    fitted: Fitted<'_>,
    bytes_per_second: Option<f64>,
    left_out: &mut Vec<String>,
) -> Result<(Vec<Series>, Vec<Verification>), Error> {
    let (now_s, planned_s) = (bench.elapsed_s(), plan.verification.seconds);
    let deadline_s = (plan.budget_s * LAST_MEASUREMENT_FRACTION)
        .min(now_s + planned_s + plan.finishing_s / 2.0)
        .max(now_s + planned_s * VERIFICATION_FRACTION_MIN);
    let stage = crate::plan::Stage {
        seconds: (deadline_s - bench.elapsed_s()).max(0.0),
        write_bytes: plan.verification.write_bytes.min(bench.remaining_write_bytes()),
    };
    let limits = Limits {
        rounds: VERIFICATION_ROUNDS,
        write_rounds: VERIFICATION_ROUNDS,
        full_bytes_per_stream: None,
        ..plan.limits(stage, bench.config, ExperimentName::Order, bytes_per_second)
    };
    let mut named = verify::trials(&plan.site);
    named.trials.retain(|trial| fitted.predict(trial).is_some());
    if named.trials.is_empty() {
        left_out.push("verification: these experiments do not suffice to fit the MQSSD model".into());
    }
    let mut allotted = match fitted.cache {
        Some(cache) => regime::allot_regimes(named, limits, cache),
        None => allot(named, limits),
    };
    allotted.trials.retain(|planned| fitted.predict(&planned.trial).is_some());
    left_out.extend(allotted.left_out.iter().map(|text| verify::left_out_text(text)));
    let half = stage.write_bytes;
    let write_bytes = BTreeMap::from([(ExperimentName::Order, half), (ExperimentName::Mix, half)]);
    let bounds = Bounds {
        deadline_s,
        rounds: VERIFICATION_ROUNDS,
        seed: bench.config.seed,
        write_bytes,
        first_s: BTreeMap::new(),
        what: "verification",
        cache: fitted.cache,
    };
    let outcome = trials::run(bench, &plan.site, allotted.trials, bounds)?;
    left_out.extend(outcome.left_out.iter().map(|text| verify::left_out_text(text)));
    let judge = |series: &Series| verify::judge(series, fitted.predict(&series.trial)?);
    let verification = outcome.series.iter().filter_map(judge).collect();
    Ok((outcome.series, verification))
}

/// Time, bytes and noise of each experiment.
fn experiment_uses(outcome: &Outcome, measurements: &Measurements) -> Vec<ExperimentUse> {
    let of_rounds = outcome.used.iter().map(|(name, used)| {
        let noises: Vec<f64> =
            of(*name, &outcome.series).iter().filter_map(|series| series.noise()).collect();
        ExperimentUse {
            name: name.as_str().to_owned(),
            trials: used.trials,
            used_s: used.seconds,
            used_write_bytes: used.write_bytes,
            noise: median(&noises),
        }
    });
    let sustain = measurements.sustain.as_ref().map(|sustain| ExperimentUse {
        name: ExperimentName::Sustain.as_str().to_owned(),
        trials: sustain.rounds.len() as u32,
        used_s: sustain.rounds.last().map_or(0.0, |round| round.at_s),
        used_write_bytes: sustain.rounds.last().map_or(0, |round| round.written_bytes),
        noise: None,
    });
    of_rounds.chain(sustain).collect()
}
