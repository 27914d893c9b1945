//! Latencies of a sweep by group, made comparable.
//!
//! A group may have several regions, which are repeats of each other: reads of one region tell how exactly
//! its latency is known, and only other regions tell how far that is the group's.

use std::collections::BTreeMap;
use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::series::SweepRead;
use crate::stats::{extend_resampled, mean, median, quantile, resample};

/// Slowest share of reads that is cut to its lower bound: interruptions by other work hit any group and say
/// nothing about it.
const CLIPPED_FRACTION: f64 = 0.05;

/// The reads whose slowest share is cut.
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
    /// Sweeps that the reads were made in.
    pub sweeps: usize,
    /// The values of each region, by group.
    regions: Vec<Vec<Range<usize>>>,
    /// Square of the error of a group's mean, relative to it, for the regions that it has.
    error_of_regions: f64,
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
        let mut by_region: BTreeMap<(u64, u32), Vec<f64>> = BTreeMap::new();
        for read in reads {
            by_region.entry((read.label, read.region)).or_default().extend(relative(read));
        }
        let mut groups: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut regions: BTreeMap<u64, Vec<Range<usize>>> = BTreeMap::new();
        for ((label, _), values) in by_region {
            let group = groups.entry(label).or_default();
            regions.entry(label).or_default().push(group.len()..group.len() + values.len());
            group.extend(values);
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
        let typical: Vec<f64> = medians.values().copied().collect();
        let mut all = Self {
            groups: groups.into_iter().collect(),
            sweeps: medians.len(),
            regions: regions.into_values().collect(),
            error_of_regions: 0.0,
            typical_us: median(&typical).unwrap_or(0.0),
        };
        all.error_of_regions = all.excess_of_regions();
        all
    }

    /// Fewest regions of any group.
    pub(super) fn regions_min(&self) -> usize {
        self.regions.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// The same with errors for these groups, which are alike: regions scatter as they do in these.
    pub(super) fn with_errors_of(&self, alike: &[usize]) -> Self {
        let of = |index: &usize| Some((self.groups.get(*index)?.clone(), self.regions.get(*index)?.clone()));
        let (groups, regions) = alike.iter().filter_map(of).unzip();
        let error_of_regions = Self { groups, regions, ..*self }.excess_of_regions();
        Self { error_of_regions, ..self.clone() }
    }

    /// Scatter of the means of regions beyond the scatter of their reads, typically: the median over the
    /// groups, as some have more than others because of their sizes.
    fn excess_of_regions(&self) -> f64 {
        let relative = self.means_of_regions();
        let common = common_of_regions(&relative);
        let of_group = |((_, values), means): (&(u64, Vec<f64>), &Vec<f64>)| {
            let square = mean(values)?.powi(2);
            let own: Vec<f64> = means.iter().zip(&common).map(|(mean, common)| mean / common).collect();
            let between = squared_error_of_mean(&own);
            (between.is_finite() && square > 0.0).then(|| (between, squared_error_of_mean(values) / square))
        };
        let (between, within): (Vec<f64>, Vec<f64>) =
            self.groups.iter().zip(&relative).filter_map(of_group).unzip();
        let (Some(between), Some(within)) = (median(&between), median(&within)) else { return 0.0 };
        let degrees = self.regions_min().saturating_sub(1).max(1) as f64;
        // One of the groups' degrees of freedom went into the common part.
        let count = relative.len() as f64;
        let left = if count > 1.0 { 1.0 - 1.0 / count } else { 1.0 };
        (between / left / median_of_variances(degrees) - within).max(0.0)
    }

    /// Means of the regions of each group, relative to that of the group.
    fn means_of_regions(&self) -> Vec<Vec<f64>> {
        let of_group = |((_, values), regions): (&(u64, Vec<f64>), &Vec<Range<usize>>)| {
            let own = mean(values).unwrap_or(0.0);
            regions.iter().filter_map(|range| Some(mean(values.get(range.clone())?)? / own)).collect()
        };
        self.groups.iter().zip(&self.regions).map(of_group).collect()
    }

    /// Square of the standard error of the mean of a group: of its reads, and of its regions.
    pub(super) fn squared_error(&self, index: usize) -> f64 {
        let Some((_, values)) = self.groups.get(index) else { return f64::INFINITY };
        let of_regions = self.error_of_regions * mean(values).unwrap_or(0.0).powi(2);
        squared_error_of_mean(values) + of_regions
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
        let (groups, regions) = self
            .groups
            .iter()
            .zip(&self.regions)
            .map(|((label, values), regions)| {
                let (values, regions) = resampled_regions(values, regions, random);
                ((*label, values), regions)
            })
            .unzip();
        Self { groups, regions, ..*self }
    }

    /// Every other read of every group, from the first or the second on.
    pub(super) fn half(&self, second: bool) -> Self {
        let pick = |values: &[f64]| values.iter().skip(usize::from(second)).step_by(2).copied().collect();
        let groups = self.groups.iter().map(|(label, values)| (*label, pick(values))).collect();
        Self { groups, regions: Vec::new(), ..*self }
    }
}

/// The common factor of the regions of one number, relative to others, as they were made and read at one
/// time: it tells nothing of a single group. It is 1 unless all groups have equally many.
fn common_of_regions(relative: &[Vec<f64>]) -> Vec<f64> {
    let count = relative.iter().map(Vec::len).max().unwrap_or(0);
    if relative.len() < 2 || relative.iter().any(|means| means.len() != count) {
        return vec![1.0; count];
    }
    let of = |number: usize| {
        mean(&relative.iter().filter_map(|means| means.get(number).copied()).collect::<Vec<_>>())
    };
    (0..count).map(|number| of(number).unwrap_or(1.0)).collect()
}

/// Median of estimates of a variance over that variance, for `degrees` degrees of freedom (Wilson and
/// Hilferty).
fn median_of_variances(degrees: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * degrees)).powi(3)
}

/// A resample of the regions, and of the values within each. That of few regions scatters less than their
/// means do, and is moved as much further from the mean.
fn resampled_regions(
    values: &[f64],
    regions: &[Range<usize>],
    random: &mut Pcg64,
) -> (Vec<f64>, Vec<Range<usize>>) {
    let count = regions.len();
    if count < 2 {
        return (resample(values, random), regions.to_vec());
    }
    let (mut drawn, mut ranges) = (Vec::with_capacity(values.len()), Vec::with_capacity(count));
    for _ in 0..count {
        let range = regions.get(random.random_range(0..count)).cloned().unwrap_or(0..0);
        let start = drawn.len();
        extend_resampled(&mut drawn, values.get(range).unwrap_or_default(), random);
        ranges.push(start..drawn.len());
    }
    if let (Some(own), Some(moved)) = (mean(values), mean(&drawn)) {
        let further = (count as f64 / (count as f64 - 1.0)).sqrt();
        let factor = (1.0 + (moved / own - 1.0) * further).max(0.1) * own / moved;
        drawn.iter_mut().for_each(|value| *value *= factor);
    }
    (drawn, ranges)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of four regions each, with reads that scatter by 1 %; `factor` of a group and a region.
    fn error(factor: impl Fn(u64, u32) -> f64) -> f64 {
        let mut reads = Vec::new();
        for (label, region, read) in (0..6)
            .flat_map(|label| (0..4).flat_map(move |region| (0..40).map(move |read| (label, region, read))))
        {
            let latency_us = 100.0 * factor(label, region) * (1.0 + 0.01 * f64::from(read % 3 - 1));
            reads.push(SweepRead { sweep: 0, label, region, offset_bytes: 0, latency_us });
        }
        Groups::new(&reads, Clip::ByGroup).error_of_regions.sqrt()
    }

    #[test]
    fn regions_err_by_what_they_do_not_share_with_those_of_other_groups() {
        assert!(error(|_, _| 1.0) < 0.002);
        // Made and read at different times.
        assert!(error(|_, region| 1.0 + 0.1 * f64::from(region)) < 0.002);
        let own = error(|label, region| 1.0 + 0.1 * f64::from((label as u32 * 7 + region * 5) % 4));
        assert!((0.03..0.1).contains(&own), "{own}");
    }

    #[test]
    fn alike_groups_have_errors_of_their_own() {
        let scattered = |label: u64, region: u32| 1.0 + 0.1 * f64::from((label as u32 * 7 + region * 5) % 4);
        let mut reads = Vec::new();
        for label in 0..8_u64 {
            for (region, read) in (0..4).flat_map(|region| (0..40).map(move |read| (region, read))) {
                let factor = if label < 5 { scattered(label, region) } else { 1.0 };
                let latency_us = 100.0 * factor * (1.0 + 0.01 * f64::from(read % 3 - 1));
                reads.push(SweepRead { sweep: 0, label, region, offset_bytes: 0, latency_us });
            }
        }
        let all = Groups::new(&reads, Clip::ByGroup);
        let alike = all.with_errors_of(&[5, 6, 7]);
        assert!(all.squared_error(6).sqrt() > 10.0 * alike.squared_error(6).sqrt());
    }
}
