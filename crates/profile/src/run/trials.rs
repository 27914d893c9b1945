//! The run of all trials.

use super::bench::Bench;
use super::rounds::{Bounds, Outcome, run_together};
use super::sustained;
use crate::Error;
use crate::plan::PlannedTrial;
use crate::schema::Regime;
use crate::target::Site;

/// Runs all trials until they are tight enough or the bounds are reached: first those that any state of the
/// write cache is good for or an empty one is needed for, then those that need a full one, which are not
/// interrupted by anything that lets it drain. The time is divided in proportion to the time of a round of
/// each.
pub(super) fn run(
    bench: &mut Bench<'_>,
    site: &Site,
    planned: Vec<PlannedTrial>,
    bounds: Bounds,
) -> Result<Outcome, Error> {
    let is_sustained = |one: &PlannedTrial| one.trial.regime == Some(Regime::Sustained);
    let (sustained, others): (Vec<_>, Vec<_>) = planned.into_iter().partition(is_sustained);
    let Some(cache) = bounds.cache.filter(|_| !sustained.is_empty()) else {
        return Ok(run_together(bench, site, others, bounds)?.0.concluded());
    };
    // Experiments that run first have time of their own.
    let is_later = |one: &&PlannedTrial| !bounds.first_s.contains_key(&one.trial.experiment);
    let others_s = others.iter().filter(is_later).map(|one| one.expected_s).sum::<f64>();
    let share = others_s / (others_s + sustained::expected_s(&sustained, cache)).max(f64::MIN_POSITIVE);
    let now_s = bench.elapsed_s();
    let remaining_s = (bounds.deadline_s - now_s).max(0.0);
    let first_s = bounds.first_s.values().sum::<f64>().min(remaining_s);
    let first = Bounds { deadline_s: now_s + first_s + (remaining_s - first_s) * share, ..bounds.clone() };
    let (outcome, write_bytes) = run_together(bench, site, others, first)?;
    if bench.concluding {
        return Ok(outcome.concluded());
    }
    let more = sustained::run(bench, site, sustained, Bounds { write_bytes, ..bounds }, cache)?;
    Ok(outcome.and(more).concluded())
}
