//! Latencies of a sweep by group, made comparable.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;

use crate::series::SweepRead;
use crate::stats::{mean, median, quantile, resample};

/// Slowest share of reads that is cut to its lower bound: interruptions by other work hit any group and say
/// nothing about it.
const CLIPPED_FRACTION: f64 = 0.05;

/// The reads of which the slowest share is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clip {
    /// Of all together: groups stay exchangeable, as a permutation test needs them.
    Overall,
    /// Of each group: groups whose latencies differ widely lose the same share.
    ByGroup,
}

/// Latencies of all groups, relative to the median of the sweep that each belongs to, so that a drive which
/// changes its pace between sweeps adds no noise.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Label and values, by label.
    pub groups: Vec<(u64, Vec<f64>)>,
    /// Median over all sweeps, microseconds.
    pub typical_us: f64,
}

impl Groups {
    /// The profile of the reads of one sweep trial.
    pub(super) fn new(reads: &[SweepRead], clip: Clip) -> Self {
        let mut by_sweep: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for read in reads {
            by_sweep.entry(read.sweep).or_default().push(read.latency_us);
        }
        let medians: BTreeMap<u32, f64> =
            by_sweep.iter().filter_map(|(sweep, latencies)| Some((*sweep, median(latencies)?))).collect();
        let relative = |read: &SweepRead| {
            let median = medians.get(&read.sweep).copied().filter(|median| *median > 0.0)?;
            Some(read.latency_us / median)
        };
        let mut groups: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for read in reads {
            groups.entry(read.label).or_default().extend(relative(read));
        }
        let bound = |values: &[f64]| quantile(values, 1.0 - CLIPPED_FRACTION).unwrap_or(f64::INFINITY);
        let overall = bound(&groups.values().flatten().copied().collect::<Vec<_>>());
        for values in groups.values_mut() {
            let bound = match clip {
                Clip::Overall => overall,
                Clip::ByGroup => bound(values),
            };
            values.iter_mut().for_each(|value| *value = value.min(bound));
        }
        let typical: Vec<f64> = medians.into_values().collect();
        Self { groups: groups.into_iter().collect(), typical_us: median(&typical).unwrap_or(0.0) }
    }

    /// Mean of each group, by label.
    pub(super) fn means(&self) -> Vec<(u64, f64)> {
        self.groups.iter().filter_map(|(label, values)| Some((*label, mean(values)?))).collect()
    }

    /// Fewest reads of any group.
    pub(super) fn reads_min(&self) -> usize {
        self.groups.iter().map(|(_, values)| values.len()).min().unwrap_or(0)
    }

    /// A bootstrap resample of every group.
    pub(super) fn resampled(&self, random: &mut Pcg64) -> Self {
        let groups = self.groups.iter().map(|(label, values)| (*label, resample(values, random))).collect();
        Self { groups, typical_us: self.typical_us }
    }

    /// Every other read of every group, from the first or the second on.
    pub(super) fn half(&self, second: bool) -> Self {
        let pick = |values: &[f64]| values.iter().skip(usize::from(second)).step_by(2).copied().collect();
        let groups = self.groups.iter().map(|(label, values)| (*label, pick(values))).collect();
        Self { groups, typical_us: self.typical_us }
    }
}

/// Square of the standard error of the mean; infinite with fewer than two values.
pub(super) fn squared_error_of_mean(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    match mean(values) {
        Some(mean) if count >= 2.0 => {
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count
        }
        _ => f64::INFINITY,
    }
}

/// By how many standard errors the mean of `a` exceeds the mean of all of `b`.
pub(super) fn z_score(a: &[f64], b: &[&[f64]]) -> f64 {
    let pooled = b.concat();
    let (Some(mean_a), Some(mean_b)) = (mean(a), mean(&pooled)) else { return 0.0 };
    let error = (squared_error_of_mean(a) + squared_error_of_mean(&pooled)).sqrt();
    if error > 0.0 { (mean_a - mean_b) / error } else { f64::INFINITY * (mean_a - mean_b).signum() }
}
