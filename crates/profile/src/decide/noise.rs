//! Finds the decisions that the noise of the measurements leaves open.
//!
//! 1. A point's rate lies somewhere in its [`Band`]: between its repeats, and never closer than is typical of
//!    the repeats of its experiment, since few repeats lie close together by chance and a single one shows no
//!    noise at all.
//! 2. Every decision from rates is also made from both ends of these bands, which gives a [`Span`] of
//!    alternatives.
//! 3. [`choose`] takes the value as learned if the span is one alternative, and the default, as near as the
//!    span allows, if not.

use std::collections::BTreeSet;

use flashgrain_settings::drive::{Decision, Setting};

use super::{hidden, learned};
use crate::schema::Point;
use crate::stats::median;

/// Range of values that a rate may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub low: f64,
    pub value: f64,
    pub high: f64,
}

/// Half the range of a point's repeats as a factor of at least 1; `None` without repeats.
fn spread(point: &Point) -> Option<f64> {
    let factor = (point.bytes_per_second_max / point.bytes_per_second_min).sqrt();
    (point.repeats > 1 && factor.is_finite()).then_some(factor)
}

/// The spread that is typical of these points; `None` if none was repeated: then a rate may be anything.
pub(super) fn typical_spread(points: &[Point]) -> Option<f64> {
    median(&points.iter().filter_map(spread).collect::<Vec<_>>())
}

/// Factor by which the noise may have moved a point.
pub(super) fn factor(point: &Point, typical: Option<f64>) -> f64 {
    typical.map_or(f64::INFINITY, |typical| spread(point).unwrap_or(1.0).max(typical))
}

impl Band {
    pub(super) fn of(point: &Point, typical: Option<f64>) -> Self {
        let value = point.bytes_per_second;
        let factor = factor(point, typical);
        Self {
            low: (value / factor).min(point.bytes_per_second_min),
            value,
            high: (value * factor).max(point.bytes_per_second_max),
        }
    }
}

/// A decision, and the least and the most that the noise allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span<T> {
    pub min: T,
    pub value: T,
    pub max: T,
}

impl<T: PartialOrd + Copy> Span<T> {
    /// The value and the ends, in whatever order.
    pub(super) fn new(value: T, ends: [T; 2]) -> Self {
        let least = |one: T, other: T| if other < one { other } else { one };
        let most = |one: T, other: T| if other > one { other } else { one };
        let [one, other] = ends;
        Self { min: least(least(value, one), other), value, max: most(most(value, one), other) }
    }

    /// The same decision in other terms.
    pub(super) fn map<U: PartialOrd + Copy>(self, into: impl Fn(T) -> U) -> Span<U> {
        Span::new(into(self.value), [into(self.min), into(self.max)])
    }

    pub(super) fn is_open(&self) -> bool {
        self.min != self.max
    }

    /// The value if there is one alternative, otherwise the alternative nearest to the default among those
    /// that the noise allows.
    pub(super) fn settled(&self, default: T) -> T {
        if !self.is_open() {
            self.value
        } else if default < self.min {
            self.min
        } else if default > self.max {
            self.max
        } else {
            default
        }
    }
}

/// Alternatives that a decision takes at least: with one or two, the best one only reflects the choice of the
/// tried values.
const ALTERNATIVES_MIN: usize = 3;

/// The smallest workload, by `size`, that reaches `share` of the best rate; and that rate. `None` of too few
/// sizes.
pub(super) fn smallest_good(
    points: &[&Point],
    typical: Option<f64>,
    share: f64,
    size: fn(&Point) -> f64,
) -> Option<(Span<u64>, f64)> {
    let bands: Vec<(u64, Band)> =
        points.iter().map(|point| (size(point) as u64, Band::of(point, typical))).collect();
    let sizes: BTreeSet<u64> = bands.iter().map(|(size, _)| *size).collect();
    if sizes.len() < ALTERNATIVES_MIN {
        return None;
    }
    let best = |rate: fn(&Band) -> f64| bands.iter().map(|(_, band)| rate(band)).reduce(f64::max);
    let smallest = |rate: fn(&Band) -> f64, best: f64| {
        bands.iter().filter(|(_, band)| rate(band) >= share * best).map(|(size, _)| *size).min()
    };
    let best_value = best(|band| band.value)?;
    let value = smallest(|band| band.value, best_value)?;
    let min = smallest(|band| band.high, best(|band| band.low)?)?;
    // If no rate is sure to be good, it may take the largest that was tried.
    let largest = bands.iter().map(|(size, _)| *size).max()?;
    let best_high = best(|band| band.high)?;
    let max = smallest(|band| band.low, best_high).unwrap_or(largest);
    Some((Span::new(value, [min, max]), best_value))
}

/// The decision for a span: learned if the noise allows one alternative only, else the default as near as it
/// allows.
pub(super) fn choose<T: PartialOrd + Copy>(
    setting: impl Fn(T) -> Setting,
    span: Span<T>,
    default: T,
    because: &str,
) -> Decision {
    let settled = setting(span.settled(default));
    if !span.is_open() {
        return learned(settled, because);
    }
    let (min, max) = (setting(span.min).value(), setting(span.max).value());
    hidden(settled, format!("{min} to {max}: {because}"))
}

#[cfg(test)]
pub(super) mod tests {
    use flashgrain_model::{Access, Workload};
    use flashgrain_settings::Count;

    use super::*;

    /// A point whose repeats scatter by this share.
    pub(crate) fn point(workload: Workload, rate: f64, noise: f64, repeats: u32) -> Point {
        Point {
            workload,
            bytes_per_second: rate,
            bytes_per_second_min: rate * (1.0 - noise),
            bytes_per_second_max: rate * (1.0 + noise),
            repeats,
            read_latency: None,
            write_latency: None,
            cpu_us_per_request: 2.0,
            regime: None,
            seconds_min: 1.0,
        }
    }

    fn sizes(rates: &[(f64, f64)], noise: f64, repeats: u32) -> Option<(Span<u64>, f64)> {
        let points: Vec<Point> = rates
            .iter()
            .map(|(bytes, rate)| point(Workload::random(Access::Write, *bytes, 1.0), *rate, noise, repeats))
            .collect();
        let typical = typical_spread(&points);
        smallest_good(&points.iter().collect::<Vec<_>>(), typical, 0.9, |point| point.workload.request_bytes)
    }

    #[test]
    fn quiet_repeats_leave_one_alternative_and_noisy_or_single_ones_several() {
        let span = |min, value, max| Span { min, value, max };
        let exact = [(1.0, 100.0), (2.0, 190.0), (4.0, 195.0), (8.0, 200.0)];
        assert_eq!(sizes(&exact, 0.01, 3), Some((span(2, 2, 2), 200.0)));
        assert_eq!(sizes(&exact, 0.3, 3), Some((span(1, 2, 8), 200.0)));
        // A point of one repeat is not free of noise.
        assert_eq!(sizes(&exact, 0.0, 1), Some((span(1, 2, 8), 200.0)));
        assert_eq!(sizes(&[], 0.0, 1), None);
        assert_eq!(sizes(&exact[..2], 0.01, 3), None, "of two sizes one is always the best");
    }

    #[test]
    fn a_single_repeat_among_others_has_their_noise() {
        let workload = Workload::random(Access::Write, 4096.0, 1.0);
        let points = [point(workload, 100.0, 0.1, 3), point(workload, 100.0, 0.1, 2)];
        let typical = typical_spread(&points);
        let single = Band::of(&point(workload, 100.0, 0.0, 1), typical);
        assert!((single.high - 110.55).abs() < 0.1 && (single.low - 90.45).abs() < 0.1, "{single:?}");
    }

    #[test]
    fn an_open_span_takes_the_default_as_near_as_it_can() {
        let decided = |min, value, max| {
            choose(|count| Setting::RequestsInFlight(Count(count)), Span { min, value, max }, 4, "rates")
        };
        let seen = |decision: &Decision| {
            let count = decision.setting.requests_in_flight().map(|count| count.0);
            (count, decision.from_default, decision.hidden_by_noise)
        };
        assert_eq!(seen(&decided(8, 8, 8)), (Some(8), false, false));
        for ((min, max), value) in [((1, 2), 2), ((1, 8), 4), ((8, 16), 8)] {
            let open = decided(min, min, max);
            assert_eq!(seen(&open), (Some(value), true, true));
            assert_eq!(open.because, format!("noise hides which is better: {min} to {max}: rates"));
        }
    }
}
