//! Trials of the sustained regime: writes behind a full cache.
//!
//! A cache passes on its oldest data first: a write behind a full cache goes as fast as the writes before it
//! are put away, whatever their size. Trials that write the same *kind* (size and order) therefore follow one
//! another, behind as many bytes of their kind as the cache holds.
//!
//! 1. [`affordable`] keeps the most important kinds for which the bytes suffice.
//! 2. The cache is filled from empty by the writes that it was found with: many small ones might never fill
//!    it.
//! 3. Kinds follow from large to small requests, since the content of the cache decides how long it takes to
//!    replace it. Each has its share of the time, fills the cache and runs its trials, repeats one after the
//!    other.

use std::collections::{BTreeMap, BTreeSet};

use flashgrain_model::Workload;

use super::bench::Bench;
use super::cache::{self, Cache};
use super::rounds::{Bounds, Outcome, run_together};
use crate::Error;
use crate::config::ExperimentName;
use crate::plan::PlannedTrial;
use crate::target::Site;

/// Share of the bytes that may be written which goes into filling the cache, at most.
pub(super) const FILL_FRACTION: f64 = 0.5;

/// A kind has filled the cache if it has written this share of the bytes that this takes before its time
/// ended.
const FILLED_FRACTION: f64 = 0.8;

/// Share of a kind's time that filling may take.
const FILL_SECONDS_FRACTION: f64 = 0.5;

/// Streams that fill.
const FILL_STREAMS: f64 = 32.0;

/// Size of requests and share of random ones, per mille.
type Kind = (u64, u64);

/// Trials of one kind.
struct Group {
    kind: Kind,
    trials: Vec<PlannedTrial>,
}

impl Group {
    /// A round of its trials, and filling the cache.
    fn expected_s(&self, cache: Cache) -> f64 {
        self.trials.iter().map(|one| one.expected_s).sum::<f64>() + cache.drain_s(cache.capacity_bytes)
    }

    /// Rank of the most important trial.
    fn rank(&self) -> u32 {
        self.trials.iter().map(|one| one.trial.rank).min().unwrap_or(u32::MAX)
    }

    /// Pure writes of the kind, as many streams as leave each a few requests of `bytes`.
    fn fill(&self, bytes: u64) -> Workload {
        let request_bytes = self.kind.0 as f64;
        let streams = (bytes as f64 / 4.0 / request_bytes).floor().clamp(1.0, FILL_STREAMS);
        Workload {
            request_bytes,
            read_share: 0.0,
            random_share: self.kind.1 as f64 / 1e3,
            concurrency: streams,
        }
    }
}

/// Runs all trials of the kinds for which bytes and time suffice.
pub(super) fn run(
    bench: &mut Bench<'_>,
    site: &Site,
    planned: Vec<PlannedTrial>,
    mut bounds: Bounds,
    cache: Cache,
) -> Result<Outcome, Error> {
    let fill_bytes = set_aside(&mut bounds.write_bytes).min(bench.remaining_write_bytes());
    let (groups, too_many) = affordable(planned, fill_bytes, cache);
    let mut outcome = Outcome::default();
    if too_many > 0 {
        outcome.left_out.push(format!(
            "sustained writes: the bytes that may be written do not fill the cache for {too_many} trials"
        ));
    }
    let end_s = bounds.deadline_s;
    let mut remaining_s: f64 = groups.iter().map(|group| group.expected_s(cache)).sum();
    let mut shares = ByteShares::of(&groups);
    let mut is_empty = true;
    for group in groups {
        let (now_s, own_s) = (bench.elapsed_s(), group.expected_s(cache));
        bounds.deadline_s = now_s + (end_s - now_s) * (own_s / remaining_s.max(f64::MIN_POSITIVE)).min(1.0);
        remaining_s -= own_s;
        let written_before = bench.written_bytes;
        let filled = fill(bench, site, &group, bounds.deadline_s, cache, is_empty);
        let written = bench.written_bytes - written_before;
        let names: BTreeSet<ExperimentName> = group.trials.iter().map(|one| one.trial.experiment).collect();
        book(&mut outcome, &names, (bench.elapsed_s() - now_s, written));
        is_empty = false;
        match filled {
            Err(error) => {
                outcome.left_out.push(bench.conclude(error)?);
                return Ok(outcome);
            }
            Ok(false) => {
                outcome.add_never_run(&group.trials);
                shares.take(&group.trials, &bounds.write_bytes);
                continue;
            }
            Ok(true) => {}
        }
        // All repeats of pure writes come before the first read, which lets the cache drain.
        let is_pure = |one: &PlannedTrial| one.trial.write_share() >= 1.0;
        let (pure, mixed): (Vec<_>, Vec<_>) = group.trials.into_iter().partition(is_pure);
        let seconds = |trials: &[PlannedTrial]| trials.iter().map(|one| one.expected_s).sum::<f64>();
        let share = seconds(&pure) / (seconds(&pure) + seconds(&mixed)).max(f64::MIN_POSITIVE);
        let (now_s, kind_end_s) = (bench.elapsed_s(), bounds.deadline_s);
        for (trials, until_s) in [(pure, now_s + (kind_end_s - now_s) * share), (mixed, kind_end_s)] {
            let write_bytes = shares.take(&trials, &bounds.write_bytes);
            let of_part = Bounds { deadline_s: until_s, write_bytes: write_bytes.clone(), ..bounds.clone() };
            let (more, remaining) = run_together(bench, site, trials, of_part)?;
            for (name, own) in write_bytes {
                let spent = own - remaining.get(&name).copied().unwrap_or(0);
                bounds.write_bytes.entry(name).and_modify(|bytes| *bytes = bytes.saturating_sub(spent));
            }
            outcome = outcome.and(more);
            if bench.concluding {
                return Ok(outcome);
            }
        }
    }
    bench.flush()?;
    Ok(outcome)
}

/// Groups the trials by kind.
fn grouped(planned: Vec<PlannedTrial>) -> Vec<Group> {
    let mut kinds: BTreeMap<Kind, Vec<PlannedTrial>> = BTreeMap::new();
    for one in planned {
        let Some(workload) = one.trial.workload() else { continue };
        let kind = (workload.request_bytes as u64, (workload.random_share * 1e3) as u64);
        kinds.entry(kind).or_default().push(one);
    }
    kinds.into_iter().map(|(kind, trials)| Group { kind, trials }).collect()
}

/// Expected time of a round of trials, with filling the cache.
pub(super) fn expected_s(planned: &[PlannedTrial], cache: Cache) -> f64 {
    grouped(planned.to_vec()).iter().map(|group| group.expected_s(cache)).sum()
}

/// The most important kinds that can fill the cache with `fill_bytes` altogether, from large to small
/// requests; and how many trials are left out.
fn affordable(planned: Vec<PlannedTrial>, fill_bytes: u64, cache: Cache) -> (Vec<Group>, usize) {
    let mut groups = grouped(planned);
    groups.sort_by_key(Group::rank);
    let after_first = fill_bytes.checked_sub(cache.burst_bytes);
    let count = after_first.map_or(0, |remaining| remaining / cache.capacity_bytes.max(1));
    let too_many = groups.split_off(groups.len().min(count as usize));
    groups.sort_by_key(|group| std::cmp::Reverse(group.kind));
    (groups, too_many.iter().map(|group| group.trials.len()).sum())
}

/// Makes the cache full of a group's writes; `false` if the time did not suffice for that.
fn fill(
    bench: &mut Bench<'_>,
    site: &Site,
    group: &Group,
    deadline_s: f64,
    cache: Cache,
    is_empty: bool,
) -> Result<bool, Error> {
    bench.step("filling the write cache")?;
    let until_s = bench.elapsed_s() + (deadline_s - bench.elapsed_s()) * FILL_SECONDS_FRACTION;
    let mut fills = vec![(group.fill(cache.capacity_bytes), cache.capacity_bytes)];
    if is_empty {
        fills.insert(0, (cache.workload, cache.burst_bytes));
    }
    for (workload, bytes) in fills {
        let remaining_s = until_s - bench.elapsed_s();
        if remaining_s <= 0.0 {
            return Ok(false);
        }
        let written = cache::fill(bench, site, workload, bytes, remaining_s)?;
        if (written as f64) < bytes as f64 * FILLED_FRACTION {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes that trials which have not run yet would write in a repeat, by experiment: repeats of the first
/// kinds leave the others their bytes.
struct ByteShares(BTreeMap<ExperimentName, u64>);

impl ByteShares {
    fn of(groups: &[Group]) -> Self {
        Self(planned_bytes(groups.iter().flat_map(|group| &group.trials)))
    }

    /// The part of `remaining` for `trials`, which are about to run.
    fn take(
        &mut self,
        trials: &[PlannedTrial],
        remaining: &BTreeMap<ExperimentName, u64>,
    ) -> BTreeMap<ExperimentName, u64> {
        let part = |(name, own): (ExperimentName, u64)| {
            let all = self.0.get_mut(&name)?;
            let share = own as f64 / (*all).max(1) as f64;
            *all -= own;
            Some((name, (*remaining.get(&name)? as f64 * share) as u64))
        };
        planned_bytes(trials).into_iter().filter_map(part).collect()
    }
}

fn planned_bytes<'a>(trials: impl IntoIterator<Item = &'a PlannedTrial>) -> BTreeMap<ExperimentName, u64> {
    let mut bytes = BTreeMap::new();
    for one in trials {
        *bytes.entry(one.trial.experiment).or_default() += one.write_bytes;
    }
    bytes
}

/// Takes from each experiment the part of its bytes that filling the cache may take, and returns the sum.
fn set_aside(write_bytes: &mut BTreeMap<ExperimentName, u64>) -> u64 {
    let part = |own: &mut u64| {
        let aside = (*own as f64 * FILL_FRACTION) as u64;
        *own -= aside;
        aside
    };
    write_bytes.values_mut().map(part).sum()
}

/// Books the time and bytes of a fill, in equal parts for the experiments that needed it.
fn book(outcome: &mut Outcome, names: &BTreeSet<ExperimentName>, (seconds, written): (f64, u64)) {
    for name in names {
        let used = outcome.used.entry(*name).or_default();
        used.seconds += seconds / names.len() as f64;
        used.write_bytes += written / names.len() as u64;
    }
}
