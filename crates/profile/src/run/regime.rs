//! Trials of writes in two regimes: into the cache, and at the medium's rate with a full cache.

use flashgrain_model::{Access, Workload};

use super::cache::Cache;
use super::sustained::FILL_FRACTION;
use crate::config::ExperimentName;
use crate::experiment::Trials;
use crate::load::Sync;
use crate::plan::{Allotted, Limits, PlannedTrial, allot};
use crate::schema::Regime;
use crate::trial::{Place, Trial, Work};

/// Sustained writes need longer slices than reads: garbage collection comes and goes.
const SUSTAINED_WEIGHT: f64 = 4.0;

/// Repeats of sustained writes that must fit: few long ones, as a cache that frees much at a time lets short
/// ones find room in it or none.
const SUSTAINED_ROUNDS: u32 = 2;

/// Share of the cache that a repeat of a burst writes, and how often a stream writes in it at least.
const BURST_FRACTION: f64 = 0.5;
const BURST_REQUESTS_MIN: u64 = 4;

/// Share of the bytes that bursts may write.
const BURST_BYTES_FRACTION: f64 = 0.15;

/// Marks the trials whose writes go through the cache, and divides `limits` between them, bursts of the same
/// kind, and filling the cache.
pub(super) fn allot_regimes(mut named: Trials, limits: Limits, cache: Cache) -> Allotted {
    let mut bursts = Trials::default();
    for trial in &mut named.trials {
        if !writes_through_cache(trial) {
            continue;
        }
        if is_small_enough(trial, cache) {
            bursts.trials.push(Trial { regime: Some(Regime::Burst), ..trial.clone() });
        }
        trial.regime = Some(Regime::Sustained);
        trial.weight *= SUSTAINED_WEIGHT;
    }
    let bytes = |share: f64| (limits.write_bytes as f64 * share) as u64;
    // Bursts end long before their slices do: they need little of the time.
    let burst_limits = Limits {
        write_bytes: bytes(BURST_BYTES_FRACTION),
        seconds: limits.seconds * BURST_BYTES_FRACTION,
        full_bytes_per_stream: None,
        ..limits
    };
    let sustained = Limits {
        write_bytes: bytes(1.0 - FILL_FRACTION),
        write_rounds: SUSTAINED_ROUNDS,
        sustained_bytes_min: cache.piece_bytes(),
        ..limits
    };
    if bursts.trials.is_empty() {
        return allot(named, sustained);
    }
    let rest = Limits {
        write_bytes: bytes(1.0 - FILL_FRACTION - BURST_BYTES_FRACTION),
        seconds: limits.seconds * (1.0 - BURST_BYTES_FRACTION),
        ..sustained
    };
    let mut allotted = allot(named, rest);
    let burst = allot(bursts, burst_limits);
    allotted.left_out.extend(burst.left_out.iter().map(|text| format!("{text}, as bursts")));
    let (short, trials) = bounded_bursts(burst.trials, &burst_limits, cache);
    if short > 0 {
        allotted.left_out.push(format!("bursts: the cache empties too slowly for {short} trials"));
    }
    allotted.trials.extend(trials);
    allotted
}

/// Gives each burst no more bytes than the cache takes, and than it passes on within the burst's share of the
/// time. It returns how many would be too short, and the others.
fn bounded_bursts(bursts: Vec<PlannedTrial>, limits: &Limits, cache: Cache) -> (usize, Vec<PlannedTrial>) {
    let count = bursts.len();
    let share_s = limits.seconds / (f64::from(limits.rounds) * count.max(1) as f64);
    let taken = cache.capacity_bytes as f64 * BURST_FRACTION;
    let bytes_max = taken.min(cache.sustained_bytes_per_second * share_s) as u64;
    let bounded = |mut planned: PlannedTrial| {
        planned.write_bytes = planned.write_bytes.min(bytes_max);
        planned.expected_s += cache.drain_s(planned.write_bytes);
        (planned.write_bytes >= planned.trial.in_flight_bytes() * BURST_REQUESTS_MIN).then_some(planned)
    };
    let kept: Vec<PlannedTrial> = bursts.into_iter().filter_map(bounded).collect();
    (count - kept.len(), kept)
}

/// Workloads of `order` that are measured as bursts, too.
fn is_small_enough(trial: &Trial, cache: Cache) -> bool {
    let most = (cache.capacity_bytes as f64 * BURST_FRACTION) as u64 / BURST_REQUESTS_MIN;
    let is_pure = trial.workload().and_then(Workload::access) == Some(Access::Write);
    trial.experiment == ExperimentName::Order && is_pure && trial.in_flight_bytes() <= most
}

/// Whether its rate depends on the state of the cache.
fn writes_through_cache(trial: &Trial) -> bool {
    let plain = |work: &Work| matches!(work, Work::Load(load) if load.sync == Sync::None && load.place == Place::Device);
    let is_rate =
        matches!(trial.experiment, ExperimentName::Order | ExperimentName::Mix | ExperimentName::Sequential);
    is_rate && trial.write_share() > 0.0 && plain(&trial.work)
}
