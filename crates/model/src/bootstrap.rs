//! Confidence intervals by resampling (Efron's percentile bootstrap).

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::Estimate;
use crate::observation::{Observation, Point, Points};
use crate::statistics::{median, percentile};

/// The generator of all random numbers in this crate: pinned, so that a seed means the same everywhere.
pub(crate) fn generator(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}

/// Fewer resamples than this say nothing about the 2.5 % tails.
const FEWEST_RESAMPLES: usize = 20;

/// Draws `data.len()` values with replacement.
pub(crate) fn draw<T: Copy>(data: &[T], rng: &mut Pcg64, into: &mut Vec<T>) {
    into.clear();
    into.extend((0..data.len()).filter_map(|_| data.get(rng.random_range(0..data.len())).copied()));
}

/// A statistic of independent values with its bootstrap confidence interval.
///
/// `statistic` sees a resample of `data`; `None` means that the resample does not support the statistic. The
/// result is undetermined by the rules of [`Estimate::from_resamples`].
pub fn bootstrap<T: Copy>(
    data: &[T],
    resamples: u32,
    seed: u64,
    statistic: impl Fn(&[T]) -> Option<f64>,
) -> Estimate {
    let Some(value) = statistic(data) else {
        return Estimate::undetermined("the measurements do not support it");
    };
    let mut rng = generator(seed);
    let mut resample = Vec::with_capacity(data.len());
    let mut values: Vec<f64> = (0..resamples)
        .filter_map(|_| {
            draw(data, &mut rng, &mut resample);
            statistic(&resample)
        })
        .collect();
    Estimate::from_resamples(value, &mut values, resamples)
}

impl Estimate {
    /// No value, with the reason.
    pub fn undetermined(why: impl Into<String>) -> Self {
        Self::Undetermined { why: why.into() }
    }

    /// A fitted value with the percentile interval of the results of `requested` resamples (those in
    /// `values`; sorts them).
    ///
    /// Undetermined if the interval includes zero, if its width exceeds ±100 % of the value, or if too few
    /// resamples supported the value.
    pub fn from_resamples(value: f64, values: &mut [f64], requested: u32) -> Self {
        values.sort_by(f64::total_cmp);
        if values.len() < FEWEST_RESAMPLES || values.len() * 2 < requested as usize {
            return Self::undetermined(format!(
                "only {} of {requested} bootstrap resamples supported a value; more workloads or repeats are needed",
                values.len()
            ));
        }
        let (Some(low), Some(high)) = (percentile(values, 0.025), percentile(values, 0.975)) else {
            return Self::undetermined("no bootstrap resample supported a value");
        };
        if !(value.is_finite() && low.is_finite() && high.is_finite()) {
            return Self::undetermined("the fit did not yield a finite number");
        }
        // Costs cannot be negative, so an interval that "includes zero" ends at a negligible fraction of the
        // value.
        let nearest_to_zero = if value < 0.0 { -high } else { low };
        if nearest_to_zero < 0.01 * value.abs() {
            return Self::undetermined(format!(
                "its 95 % interval, {} to {}, includes zero",
                short(low),
                short(high)
            ));
        }
        if high - low > 2.0 * value.abs() {
            return Self::undetermined(format!(
                "its 95 % interval, {} to {}, is wider than ±100 % of the value {}",
                short(low),
                short(high),
                short(value)
            ));
        }
        // The median of skewed resamples may leave the fitted value just outside; an interval contains its
        // value.
        Self::Determined { value, low: low.min(value), high: high.max(value) }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    match magnitude {
        -3..=-1 => format!("{value:.*}", (2 - magnitude) as usize),
        0..=5 => format!("{value:.*}", (2 - magnitude).max(0) as usize),
        _ => format!("{value:.2e}"),
    }
}

/// Values to resample, grouped so that every resample keeps the shape of the experiment.
pub(crate) struct Groups<T> {
    groups: Vec<Vec<T>>,
}

/// Smaller groups are pooled: drawing from two values repeats one of them half of the time, from one always.
const GROUP_VALUES_MIN: usize = 3;

impl<T: Copy> Groups<T> {
    /// Groups values by `group`; groups that are too small to draw from are merged with the others of their
    /// `pool`.
    pub(crate) fn new<P: Ord + Copy, G: Ord>(
        values: &[T],
        pool: impl Fn(&T) -> P,
        group: impl Fn(&T) -> G,
    ) -> Self {
        let mut by_group: BTreeMap<(P, G), Vec<T>> = BTreeMap::new();
        for value in values {
            by_group.entry((pool(value), group(value))).or_default().push(*value);
        }
        let mut groups = Vec::new();
        let mut pools: BTreeMap<P, Vec<T>> = BTreeMap::new();
        for ((pool, _), members) in by_group {
            if members.len() >= GROUP_VALUES_MIN {
                groups.push(members);
            } else {
                pools.entry(pool).or_default().extend(members);
            }
        }
        groups.extend(pools.into_values());
        Self { groups }
    }

    /// One resample: from each group as many values as it has, with replacement.
    pub(crate) fn draw(&self, rng: &mut Pcg64) -> Vec<T> {
        let (mut all, mut drawn) = (Vec::new(), Vec::new());
        for group in &self.groups {
            draw(group, rng, &mut drawn);
            all.append(&mut drawn);
        }
        all
    }
}

/// Resamples workloads within their kind and concurrency, then the repeats within each workload.
pub(crate) struct Resampler<'a> {
    workloads: Groups<&'a Observation>,
}

impl<'a> Resampler<'a> {
    pub(crate) fn new(observations: &[&'a Observation]) -> Self {
        let workloads = Groups::new(
            observations,
            |observation| observation.workload.access(),
            |observation| observation.workload.concurrency.to_bits(),
        );
        Self { workloads }
    }

    /// One resample.
    pub(crate) fn draw(&self, rng: &mut Pcg64) -> Points {
        let mut repeats = Vec::new();
        let points = self.workloads.draw(rng).into_iter().filter_map(|observation| {
            draw(&observation.repeats, rng, &mut repeats);
            let bytes_per_second = median(&mut repeats)?;
            Some(Point { workload: observation.workload, seconds_per_byte: bytes_per_second.recip() })
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::mean;

    fn mean_of(values: &[f64]) -> Option<f64> {
        mean(values.iter().copied())
    }

    #[test]
    fn the_interval_of_a_mean_is_two_standard_errors_each_way() {
        // 100 values from 0.5 to 1.5, standard deviation 0.29: the mean's 95 % interval is ±0.057.
        let values: Vec<f64> = (0..100).map(|i| 0.505 + f64::from(i) / 100.0).collect();
        let Estimate::Determined { value, low, high } = bootstrap(&values, 2000, 7, mean_of) else {
            panic!()
        };
        assert!((value - 1.0).abs() < 1e-9);
        assert!((value - low - 0.057).abs() < 0.01 && (high - value - 0.057).abs() < 0.01, "{low} {high}");
        assert_eq!(
            bootstrap(&values, 2000, 7, mean_of),
            bootstrap(&values, 2000, 7, mean_of),
            "same seed, same interval"
        );
    }

    #[test]
    fn intervals_that_include_zero_or_are_too_wide_are_undetermined() {
        let why = |values: &[f64]| match bootstrap(values, 500, 1, mean_of) {
            Estimate::Undetermined { why } => why,
            Estimate::Determined { .. } => panic!("{values:?} must not determine a mean"),
        };
        assert!(why(&[-1.0, -0.5, 0.2, 0.4, 1.2]).contains("includes zero"));
        assert!(why(&[-1.2, -0.4, -0.2, 0.5, 1.0]).contains("includes zero"));
        assert!(why(&[1.0, 1.1, 1.2, 20.0]).contains("wider than"));
        assert!(why(&[]).contains("do not support"));
        let few = bootstrap(&[1.0, 2.0], 5, 1, mean_of);
        assert!(matches!(few, Estimate::Undetermined { why } if why.contains("only 5 of 5")));
    }

    #[test]
    fn negative_values_can_be_determined() {
        assert_eq!(bootstrap(&[-1.0, -1.1, -0.9, -1.0], 100, 1, mean_of).value(), Some(-1.0));
    }

    #[test]
    fn every_group_stays_represented_and_small_ones_are_pooled() {
        let values: Vec<(u32, u32)> = (0..5).flat_map(|group| (0..=group).map(move |i| (group, i))).collect();
        let groups = Groups::new(&values, |_| (), |(group, _)| *group);
        let mut rng = generator(3);
        for _ in 0..50 {
            let drawn = groups.draw(&mut rng);
            assert_eq!(drawn.len(), values.len());
            for group in 2..5 {
                assert_eq!(drawn.iter().filter(|(own, _)| *own == group).count(), group as usize + 1);
            }
        }
    }
}
