//! Trials of one kind of writes with a full cache, and the judgement of each: steady, or left out.

use std::collections::BTreeSet;

use flashgrain_model::Workload;

use super::bench::Bench;
use super::byte_shares::ByteShares;
use super::cache::{self, Cache};
use super::rounds::{Bounds, Outcome, run_together};
use crate::Error;
use crate::config::ExperimentName;
use crate::plan::PlannedTrial;
use crate::series::Series;
use crate::stats::median;
use crate::target::Site;

/// A write rate above this multiple of the drive's passing-on rate has gone into the cache.
const INTO_CACHE_RATIO: f64 = 1.25;

/// A write rate below this share of it lets the cache drain.
const DRAINING_FRACTION: f64 = 0.9;

/// A repeat that is this many times as fast as another is no steady state.
const REPEATS_RATIO_MAX: f64 = 4.0;

/// One kind of writes while the cache is full of them.
pub(super) struct Steady<'a> {
    pub site: &'a Site,
    pub cache: Cache,
    /// Bytes per second that the drive passes on of this kind.
    pub passed_on: f64,
    /// Pure writes of the kind.
    pub workload: Workload,
    /// Experiments that the kind belongs to.
    pub names: BTreeSet<ExperimentName>,
}

impl Steady<'_> {
    /// Runs all trials of the kind: pure writes before mixed ones, which let the cache drain, and in both the
    /// most writers first. A series that is no steady state is left out, and counted. Returns the rest of the
    /// bytes that may fill the cache.
    pub fn run(
        &self,
        bench: &mut Bench<'_>,
        trials: Vec<PlannedTrial>,
        (bounds, shares, mut fill_bytes): (&mut Bounds, &mut ByteShares, u64),
        outcome: &mut Outcome,
    ) -> Result<u64, Error> {
        let parts = in_order(trials);
        let mut remaining_s: f64 = parts.iter().map(|one| one.expected_s).sum();
        let kind_end_s = bounds.deadline_s;
        let mut is_full = true;
        let mut unsteady: Vec<String> = Vec::new();
        for (index, one) in parts.iter().enumerate() {
            let now_s = bench.elapsed_s();
            let share = (one.expected_s / remaining_s.max(f64::MIN_POSITIVE)).min(1.0);
            remaining_s -= one.expected_s;
            let write_bytes = shares.take(std::slice::from_ref(one), &bounds.write_bytes);
            let deadline_s = now_s + (kind_end_s - now_s) * share;
            let own = Bounds { deadline_s, write_bytes: write_bytes.clone(), ..bounds.clone() };
            let is_mixed = one.trial.write_share() < 1.0;
            let is_first_mixed = is_mixed && index > 0 && parts.get(index - 1).is_some_and(is_pure);
            if is_first_mixed {
                match self.fill_again(bench, (deadline_s, fill_bytes), outcome) {
                    Ok(written) => fill_bytes = fill_bytes.saturating_sub(written),
                    Err(error) => {
                        outcome.left_out.push(bench.conclude(error)?);
                        return Ok(fill_bytes);
                    }
                }
            }
            let (more, remaining) = self.run_one(bench, one, own, &mut is_full)?;
            for (name, own) in write_bytes {
                let spent = own - remaining.get(&name).copied().unwrap_or(0);
                bounds.write_bytes.entry(name).and_modify(|bytes| *bytes = bytes.saturating_sub(spent));
            }
            self.keep_steady(more, outcome, &mut unsteady);
            if bench.concluding {
                break;
            }
        }
        if let Some(first) = unsteady.first() {
            outcome.left_out.push(format!(
                "{first}: no steady state beyond the write cache (and {} more of this size)",
                unsteady.len() - 1
            ));
        }
        Ok(fill_bytes)
    }

    /// Runs a trial. A mixed one that lets a full cache drain begins with an empty one, which a repeat that
    /// does not count tells.
    fn run_one(
        &self,
        bench: &mut Bench<'_>,
        one: &PlannedTrial,
        mut bounds: Bounds,
        is_full: &mut bool,
    ) -> Result<(Outcome, std::collections::BTreeMap<ExperimentName, u64>), Error> {
        if one.trial.write_share() < 1.0 && *is_full {
            let probe = PlannedTrial { repeats_max: 1, ..one.clone() };
            let (found, write_bytes) =
                run_together(bench, self.site, vec![probe], Bounds { rounds: 1, ..bounds.clone() })?;
            bounds.write_bytes = write_bytes;
            let lets_it_drain = |series: &Series| {
                write_rate(series).is_some_and(|rate| rate < DRAINING_FRACTION * self.passed_on)
            };
            if found.series.iter().any(lets_it_drain) && !bench.concluding {
                bench.idle(self.cache.capacity_bytes as f64 / self.passed_on)?;
                *is_full = false;
            }
        }
        run_together(bench, self.site, vec![one.clone()], bounds)
    }

    /// Fills the cache that single writers have let drain; the bytes that this took.
    fn fill_again(
        &self,
        bench: &mut Bench<'_>,
        limits: (f64, u64),
        outcome: &mut Outcome,
    ) -> Result<u64, Error> {
        let (began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
        let steady = (self.cache.piece_bytes(), INTO_CACHE_RATIO * self.passed_on);
        cache::fill_again(bench, self.site, self.workload, steady, limits)?;
        let written = bench.written_bytes - written_before;
        outcome.book(&self.names, (bench.elapsed_s() - began_s, written));
        Ok(written)
    }

    fn keep_steady(&self, mut more: Outcome, outcome: &mut Outcome, unsteady: &mut Vec<String>) {
        let all = std::mem::take(&mut more.series);
        for series in all {
            match self.is_steady(&series) {
                true => more.series.push(series),
                false => unsteady.push(series.trial.describe()),
            }
        }
        *outcome = std::mem::take(outcome).and(more);
    }

    /// Whether a series is of writes that the drive passes on as fast as they come: each repeat wrote more
    /// than the cache holds, or none was faster than the drive passes on by more than noise.
    fn is_steady(&self, series: &Series) -> bool {
        let share = series.trial.write_share();
        let rates = series.throughputs();
        let (least, most) = rates
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        let is_long = series.repeats.iter().all(|repeat| {
            repeat.bytes_per_second * repeat.seconds * share >= self.cache.capacity_bytes as f64
        });
        let is_passed_on = write_rate(series).is_some_and(|rate| rate <= INTO_CACHE_RATIO * self.passed_on);
        (is_long || is_passed_on) && most < REPEATS_RATIO_MAX * least
    }
}

fn is_pure(one: &PlannedTrial) -> bool {
    one.trial.write_share() >= 1.0
}

/// Pure writes first, and the most writers in flight first.
fn in_order(mut trials: Vec<PlannedTrial>) -> Vec<PlannedTrial> {
    let writers = |one: &PlannedTrial| {
        one.trial.workload().map_or(0.0, |workload| workload.concurrency) * one.trial.write_share()
    };
    trials.sort_by(|a, b| is_pure(b).cmp(&is_pure(a)).then(writers(b).total_cmp(&writers(a))));
    trials
}

/// Median bytes per second that a series wrote.
fn write_rate(series: &Series) -> Option<f64> {
    Some(median(&series.throughputs())? * series.trial.write_share())
}

#[cfg(test)]
mod tests {
    use flashgrain_model::Access;

    use super::*;
    use crate::experiment::testing;
    use crate::series::Repeat;
    use crate::trial::Trial;

    const MIB: f64 = 1_048_576.0;

    fn trial(read_share: f64, concurrency: f64) -> Trial {
        let workload = Workload { read_share, ..Workload::random(Access::Write, 4096.0, concurrency) };
        Trial::load(ExperimentName::Mix, 0, workload)
    }

    /// Repeats of these rates in bytes per second; each moves `mib`.
    fn series(trial: Trial, mib: f64, rates: &[f64]) -> Series {
        let mut series = Series::new(trial);
        let repeat =
            |rate: &f64| Repeat { bytes_per_second: *rate, seconds: mib * MIB / rate, ..Repeat::default() };
        series.repeats = rates.iter().map(repeat).collect();
        series
    }

    /// A cache of 64 MiB that passes on 100 MB/s.
    #[test]
    fn steady_writes_are_no_faster_than_the_drive_passes_on_or_fill_the_cache() {
        let site = testing::site();
        let workload = Workload::random(Access::Write, 4096.0, 32.0);
        let cache = Cache {
            workload,
            burst_bytes: 80 << 20,
            capacity_bytes: 64 << 20,
            sustained_bytes_per_second: 1e8,
        };
        let names = BTreeSet::from([ExperimentName::Mix]);
        let kind = Steady { site: &site, cache, passed_on: 1e8, workload, names };
        let steady = |trial, mib, rates: &[f64]| kind.is_steady(&series(trial, mib, rates));
        assert!(steady(trial(0.0, 8.0), 1.0, &[1e8, 1.1e8, 0.9e8]));
        assert!(steady(trial(0.0, 1.0), 1.0, &[3e7, 3e7]), "it waits for itself");
        // The cache took them.
        assert!(!steady(trial(0.0, 8.0), 1.0, &[4e8, 4e8, 1e8]));
        // The cache is too small for them.
        assert!(steady(trial(0.0, 8.0), 65.0, &[1.5e8, 1.5e8]));
        // Of 400 MB/s a quarter are writes.
        assert!(steady(trial(0.75, 64.0), 1.0, &[4e8, 4e8]));
        assert!(!steady(trial(0.25, 64.0), 1.0, &[4e8, 4e8]));
        // No steady state has repeats like these.
        assert!(!steady(trial(0.0, 8.0), 1.0, &[1e8, 1e8, 2.4e7]));
    }

    #[test]
    fn whatever_lets_the_cache_drain_comes_last() {
        let limits = crate::plan::Limits {
            seconds: 10.0,
            write_bytes: 1 << 30,
            bytes_per_second: 1e9,
            rounds: 2,
            write_rounds: 2,
            sustained_bytes_min: 0,
            full_bytes_per_stream: None,
        };
        let trials = [(0.5, 64.0), (0.0, 1.0), (0.0, 64.0), (0.9, 8.0), (0.1, 8.0), (0.0, 8.0)]
            .map(|(read_share, concurrency)| trial(read_share, concurrency));
        let named = crate::experiment::Trials { trials: trials.to_vec(), left_out: Vec::new() };
        let ordered = in_order(crate::plan::allot(named, limits).trials);
        let order: Vec<(f64, f64)> = ordered
            .iter()
            .filter_map(|one| one.trial.workload())
            .map(|workload| (workload.read_share, workload.concurrency))
            .collect();
        let right = [(0.0, 64.0), (0.0, 8.0), (0.0, 1.0), (0.5, 64.0), (0.1, 8.0), (0.9, 8.0)];
        assert_eq!(order, right);
    }
}
