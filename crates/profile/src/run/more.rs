//! Spends the rest of the budget: as long as a hidden parameter is undetermined, there is time, and there are
//! bytes to write, its experiment is repeated. Regions of `request-size` are made anew for that, in another
//! order: the effect of their places shows in nothing else.

use std::collections::BTreeMap;

use super::bench::Bench;
use super::rounds::{Bounds, Outcome, Used};
use super::trials;
use super::{Measured, create};
use crate::Error;
use crate::config::ExperimentName;
use crate::experiment::{Trials, request_size};
use crate::learn::{self, Evidence};
use crate::plan::{Plan, ROUNDS, Stage, allot};
use crate::schema::LearnedValue;
use crate::series::Series;
use crate::stats::mix_seed;
use crate::trial::Work;

/// Repeats after which more would not help.
const REPEATS_MAX: u64 = 8;

/// Seed of regions that are made anew, and of the reads: the same reads in the same order tell nothing new.
const SEED: u64 = 0x4e6;

/// Repeats experiments whose conclusions are open until `deadline_s`.
pub(super) fn use_the_rest(
    bench: &mut Bench<'_>,
    plan: &Plan,
    measured: &mut Measured,
    deadline_s: f64,
) -> Result<(), Error> {
    for repeat in 1..=REPEATS_MAX {
        let open = open_experiments(bench, plan, measured);
        let began_s = bench.elapsed_s();
        // As long as the earlier ones took on average.
        let of = |name: &ExperimentName| measured.outcome.used.get(name).map_or(0.0, |used| used.seconds);
        let expected_s = open.iter().map(of).sum::<f64>() / repeat as f64;
        if bench.concluding || open.is_empty() || began_s + expected_s > deadline_s {
            return Ok(());
        }
        let stage = Stage { seconds: expected_s, write_bytes: 0 };
        let seed = mix_seed(bench.config.seed, mix_seed(SEED, repeat));
        let mut trials = Vec::new();
        for name in open {
            let Some(named) = named(bench, plan, measured, (name, seed, expected_s))? else { continue };
            let limits = plan.limits(stage, bench.config, name, measured.bytes_per_second);
            trials.extend(allot(named, limits).trials);
        }
        if trials.is_empty() {
            return Ok(());
        }
        let bounds = Bounds {
            deadline_s,
            rounds: ROUNDS,
            seed,
            write_bytes: BTreeMap::new(),
            first_s: BTreeMap::new(),
            what: "measuring again",
            cache: None,
        };
        let outcome = trials::run(bench, &plan.site, trials, bounds)?;
        merge(measured, outcome);
    }
    Ok(())
}

/// The experiments of sweeps whose conclusions are open, though they were run.
fn open_experiments(bench: &Bench<'_>, plan: &Plan, measured: &Measured) -> Vec<ExperimentName> {
    let series = &measured.outcome.series;
    let was_run = |name| series.iter().any(|one| one.trial.experiment == name);
    if !was_run(ExperimentName::RequestSize) && !was_run(ExperimentName::Location) {
        return Vec::new();
    }
    let learned = learn::learn(&Evidence {
        series,
        creation: &measured.creation,
        page_bytes: plan.site.page_bytes,
        align_bytes: plan.site.align_bytes,
        direct: bench.target.device.geometry().direct,
        seed: bench.config.seed,
        cap: None,
    });
    let is_open = |values: &[&LearnedValue]| values.iter().any(|value| value.estimate.value().is_none());
    let mut open = Vec::new();
    let sizes = [&learned.desirable_write_bytes, &learned.stripe_bytes];
    if was_run(ExperimentName::RequestSize) && is_open(&sizes) {
        open.push(ExperimentName::RequestSize);
    }
    if was_run(ExperimentName::Location) && is_open(&[&learned.chunk_bytes]) {
        open.push(ExperimentName::Location);
    }
    open
}

/// The trials of a repeat of an experiment; `None` if no more may be written, or its regions could not be
/// made.
fn named(
    bench: &mut Bench<'_>,
    plan: &Plan,
    measured: &mut Measured,
    (name, order, seconds): (ExperimentName, u64, f64),
) -> Result<Option<Trials>, Error> {
    if name != ExperimentName::RequestSize {
        return Ok(Some(plan.trials(bench.target, bench.config, name)));
    }
    let needed_bytes = request_size::creation_bytes(&request_size::regions(&plan.site, order));
    if bench.remaining_write_bytes() < needed_bytes + plan.verification.write_bytes {
        return Ok(None);
    }
    let (began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
    let pace = (seconds, measured.bytes_per_second.unwrap_or(1e8));
    let created = create::create(bench, plan, pace, order)?;
    let used = measured.outcome.used.entry(name).or_default();
    used.seconds += bench.elapsed_s() - began_s;
    used.write_bytes += bench.written_bytes - written_before;
    let made = !created.regions.is_empty();
    Ok(made.then(|| Trials { trials: request_size::sweeps(&created.regions), left_out: Vec::new() }))
}

/// Adds the reads of a repeat to those of the same trials.
fn merge(measured: &mut Measured, outcome: Outcome) {
    let length = |series: &Series| match &series.trial.work {
        Work::Sweep(sweep) => Some(sweep.length_bytes),
        Work::Load(_) => None,
    };
    for series in outcome.series {
        let is_same = |one: &&mut Series| {
            one.trial.experiment == series.trial.experiment && length(one) == length(&series)
        };
        if let Some(same) = measured.outcome.series.iter_mut().find(is_same) {
            same.extend(series);
        }
    }
    for (name, used) in outcome.used {
        let sum: &mut Used = measured.outcome.used.entry(name).or_default();
        sum.trials += used.trials;
        sum.seconds += used.seconds;
        sum.write_bytes += used.write_bytes;
    }
}
