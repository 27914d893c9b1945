//! Trials of the sustained regime: writes with a full cache.
//!
//! A cache passes on its oldest data first: a write to a full cache goes as fast as the writes before it are
//! put away, whatever their size. Trials that write the same *kind* (size and order) therefore follow one
//! another, after as many bytes of their kind as the cache holds.
//!
//! 1. [`affordable`] keeps the most important kinds, as far as the bytes suffice.
//! 2. The cache is filled from empty by the writes that it was found with: many small ones might never fill
//!    it.
//! 3. Kinds follow from large to small requests, since the content of the cache decides how long it takes to
//!    replace it. Each has its share of the time. It fills the cache until the rate shows that it is full,
//!    and a longer write gives the rate of passing such writes on.
//! 4. Trials follow from many writers to few, all repeats of one before the next: a trial that writes more
//!    slowly than the drive passes on lets the cache drain, and no later trial needs it full. Mixed trials
//!    that do so begin with an empty cache, as they would after a while.
//! 5. A trial that writes faster than the drive passes on has found room in the cache, and one whose repeats
//!    are far apart is no steady state: [`Steady`] leaves them out.

use std::collections::{BTreeMap, BTreeSet};

use flashgrain_model::Workload;

use super::bench::Bench;
use super::byte_shares::ByteShares;
use super::cache::{self, Cache};
use super::rounds::{Bounds, Outcome};
use super::steady::Steady;
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
        let fill_s = self.fill_bytes(cache) as f64 / cache.sustained_bytes_per_second;
        self.trials.iter().map(|one| one.expected_s).sum::<f64>() + fill_s
    }

    /// Bytes that fill the cache for its trials. Mixed ones let it drain: it is filled before them, too, and
    /// the next kind finds it empty.
    fn fill_bytes(&self, cache: Cache) -> u64 {
        let piece = cache.piece_bytes();
        let is_mixed = self.trials.iter().any(|one| one.trial.write_share() < 1.0);
        let refills = if is_mixed { cache.burst_bytes - cache.capacity_bytes + 2 * piece } else { 0 };
        cache.capacity_bytes + piece + refills
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

/// Runs all trials of the kinds, as far as bytes and time suffice.
pub(super) fn run(
    bench: &mut Bench<'_>,
    site: &Site,
    planned: Vec<PlannedTrial>,
    mut bounds: Bounds,
    cache: Cache,
) -> Result<Outcome, Error> {
    let mut fill_bytes = set_aside(&mut bounds.write_bytes).min(bench.remaining_write_bytes());
    let (groups, too_many) = affordable(planned, fill_bytes, cache);
    let mut outcome = Outcome::default();
    if too_many > 0 {
        outcome.left_out.push(format!(
            "sustained writes: the bytes that may be written do not fill the cache for {too_many} trials"
        ));
    }
    let end_s = bounds.deadline_s;
    let mut remaining_s: f64 = groups.iter().map(|group| group.expected_s(cache)).sum();
    let mut shares = ByteShares::of(groups.iter().flat_map(|group| &group.trials));
    let mut is_empty = true;
    for group in groups {
        let (now_s, own_s) = (bench.elapsed_s(), group.expected_s(cache));
        bounds.deadline_s = now_s + (end_s - now_s) * (own_s / remaining_s.max(f64::MIN_POSITIVE)).min(1.0);
        remaining_s -= own_s;
        let written_before = bench.written_bytes;
        let filled = fill(bench, site, &group, bounds.deadline_s, cache, (fill_bytes, is_empty));
        let written = bench.written_bytes - written_before;
        fill_bytes = fill_bytes.saturating_sub(written);
        let names: BTreeSet<ExperimentName> = group.trials.iter().map(|one| one.trial.experiment).collect();
        outcome.book(&names, (bench.elapsed_s() - now_s, written));
        is_empty = false;
        let passed_on = match filled {
            Err(error) => {
                outcome.left_out.push(bench.conclude(error)?);
                return Ok(outcome);
            }
            Ok(None) => {
                outcome.add_never_run(&group.trials);
                shares.take(&group.trials, &bounds.write_bytes);
                continue;
            }
            Ok(Some(rate)) => rate,
        };
        let workload = group.fill(cache.capacity_bytes);
        let kind = Steady { site, cache, passed_on, workload, names };
        fill_bytes = kind.run(bench, group.trials, (&mut bounds, &mut shares, fill_bytes), &mut outcome)?;
        if bench.concluding {
            return Ok(outcome);
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

/// Makes the cache full of a group's writes; returns the rate of passing these on, or `None` if the time did
/// not suffice.
fn fill(
    bench: &mut Bench<'_>,
    site: &Site,
    group: &Group,
    deadline_s: f64,
    cache: Cache,
    (bytes_max, is_empty): (u64, bool),
) -> Result<Option<f64>, Error> {
    bench.step("filling the write cache")?;
    let until_s = bench.elapsed_s() + (deadline_s - bench.elapsed_s()) * FILL_SECONDS_FRACTION;
    if is_empty {
        let remaining_s = until_s - bench.elapsed_s();
        let written = cache::fill(bench, site, cache.workload, cache.burst_bytes, remaining_s)?;
        if (written as f64) < cache.burst_bytes as f64 * FILLED_FRACTION {
            return Ok(None);
        }
    }
    let bytes_max = bytes_max.saturating_sub(if is_empty { cache.burst_bytes } else { 0 });
    cache::fill_with(bench, site, group.fill(cache.capacity_bytes), cache, (until_s, bytes_max))
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
