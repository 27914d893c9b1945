//! Latency of each group of a sweep.

use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::schema::Latency;
use crate::series::Series;
use crate::stats::{bootstrap_mean, mean, mix_seed, nearest_rank};
use crate::trial::{Group, Work};

/// Bootstrap resamples for a group's mean.
const RESAMPLES: usize = 200;

/// Latency of the reads of one group.
pub(super) struct GroupLatency {
    pub label: u64,
    pub read_bytes: u64,
    pub latency: Latency,
    /// 95 % interval of the mean.
    pub mean_low_us: f64,
    pub mean_high_us: f64,
}

/// All groups of all sweeps that were read.
pub(super) fn of(series: &[&Series], seed: u64) -> Vec<GroupLatency> {
    let mut found = Vec::new();
    for series in series {
        let Work::Sweep(sweep) = &series.trial.work else { continue };
        // A label may have several regions.
        let is_first = |(index, group): &(usize, &Group)| {
            !sweep.groups.iter().take(*index).any(|other| other.label == group.label)
        };
        found.extend(sweep.groups.iter().enumerate().filter(is_first).filter_map(|(_, group)| {
            let reads = series.group_latencies_us(group.label);
            let mut random = Pcg64::seed_from_u64(mix_seed(seed, group.label));
            let (_, mean_low_us, mean_high_us) = bootstrap_mean(&reads, RESAMPLES, &mut random)?;
            let (label, read_bytes) = (group.label, u64::from(sweep.length_bytes));
            Some(GroupLatency { label, read_bytes, latency: latency_of(&reads)?, mean_low_us, mean_high_us })
        }));
    }
    found
}

/// Percentiles of single latencies; `None` of nothing.
fn latency_of(latencies_us: &[f64]) -> Option<Latency> {
    let mut sorted = latencies_us.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get(nearest_rank(sorted.len(), share)).copied().unwrap_or_default();
    Some(Latency {
        count: sorted.len() as u64,
        mean_us: mean(&sorted)?,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p99_9_us: at(0.999),
        p99_99_us: at(0.9999),
        max_us: at(1.0),
    })
}
