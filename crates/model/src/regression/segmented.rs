//! Throughput over concurrency in two segments: the PDAM's regression (dictionaries paper §4.1).

use serde::{Deserialize, Serialize};

use super::check_positive;
use crate::bootstrap::{Groups, generator};
use crate::statistics::{mean, r_squared};
use crate::{Error, Estimate};

/// Throughput over concurrency: through the origin up to the knee, flat beyond it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segmented {
    /// The knee, in units of x: the PDAM's P. Undetermined if y still rises at the largest x or never rises.
    pub knee: Estimate,
    /// y per x before the knee.
    pub slope: Estimate,
    /// y beyond the knee.
    pub plateau: Estimate,
    /// R² of y, `None` if y does not vary.
    pub r_squared: Option<f64>,
}

/// Segmented fit of (concurrency, throughput) points; repeats are points with the same concurrency.
///
/// # Errors
/// [`Error::Samples`] if there are no points or some are not positive.
pub fn segmented_fit(points: &[(f64, f64)], resamples: u32, seed: u64) -> Result<Segmented, Error> {
    check_positive(points)?;
    let rates: Vec<RatePoint> =
        points.iter().map(|&(concurrency, rate)| RatePoint { concurrency, rate, alike: [0; 2] }).collect();
    let fitted =
        Segments::fit(&rates).ok_or_else(|| Error::Samples("a segmented fit needs points".into()))?;
    let groups = Groups::new(&rates, |_| (), |point| point.concurrency.to_bits());
    let mut rng = generator(seed);
    let refitted: Vec<Segments> =
        (0..resamples).filter_map(|_| Segments::fit(&groups.draw(&mut rng))).collect();
    let estimate = |doubt: Option<String>, number: fn(&Segments) -> f64| match doubt {
        Some(why) => Estimate::undetermined(why),
        None => {
            let mut values: Vec<f64> = refitted.iter().map(number).collect();
            Estimate::from_resamples(number(&fitted), &mut values, resamples)
        }
    };
    let pairs: Vec<(f64, f64)> =
        points.iter().map(|(concurrency, rate)| (*rate, fitted.rate(*concurrency))).collect();
    Ok(Segmented {
        knee: estimate(fitted.knee_doubt(), |segments| segments.knee),
        slope: estimate(fitted.slope_doubt(), |segments| segments.slope),
        plateau: estimate(fitted.plateau_doubt(), Segments::plateau),
        r_squared: r_squared(&pairs),
    })
}

/// A throughput; points that are `alike` differ in nothing but concurrency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RatePoint {
    pub(crate) concurrency: f64,
    pub(crate) rate: f64,
    pub(crate) alike: [u64; 2],
}

/// rate = slope · min(concurrency, knee).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Segments {
    #[serde(rename = "bytes_per_second_per_stream")]
    pub(crate) slope: f64,
    #[serde(rename = "knee_concurrency")]
    pub(crate) knee: f64,
    /// Smallest and largest concurrency among the points.
    #[serde(rename = "measured_concurrency")]
    measured: (f64, f64),
    shape: Shape,
}

/// Whether the points support the knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// A rise, then a plateau.
    Knee,
    /// No plateau within the concurrencies measured.
    StillRises,
    /// The plateau starts at or before the smallest concurrency measured.
    NoRise,
    /// Fewer than three concurrencies.
    TooFew,
}

/// Growth of a plateau with each doubling of the concurrency, at most.
const CREEP_PER_DOUBLING: f64 = 1.1;

impl Segments {
    /// Least squares of ln(predicted / measured), exactly: between two neighbouring concurrencies the best
    /// knee is in closed form, and there are few of them. `None` without points.
    pub(crate) fn fit(points: &[RatePoint]) -> Option<Self> {
        let mut concurrencies: Vec<f64> = points.iter().map(|point| point.concurrency).collect();
        concurrencies.sort_by(f64::total_cmp);
        concurrencies.dedup();
        let measured = (*concurrencies.first()?, *concurrencies.last()?);

        let error_of = |slope: f64, knee: f64| -> f64 {
            points.iter().map(|point| (slope * point.concurrency.min(knee) / point.rate).ln().powi(2)).sum()
        };
        let mut best = (f64::INFINITY, 0.0, 0.0);
        let mut offer = |slope: f64, knee: f64| {
            let error = error_of(slope, knee);
            if error < best.0 {
                best = (error, slope, knee);
            }
        };
        for (index, &concurrency) in concurrencies.iter().enumerate() {
            let slope =
                mean(points.iter().map(|point| (point.rate / point.concurrency.min(concurrency)).ln()))?
                    .exp();
            offer(slope, concurrency);
            let Some(&next) = concurrencies.get(index + 1) else { break };
            let rising = points.iter().filter(|point| point.concurrency <= concurrency);
            let flat = points.iter().filter(|point| point.concurrency > concurrency);
            let slope = mean(rising.map(|point| (point.rate / point.concurrency).ln()))?.exp();
            let knee = mean(flat.map(|point| point.rate.ln()))?.exp() / slope;
            if (concurrency..=next).contains(&knee) {
                offer(slope, knee);
            }
        }
        let (_, slope, knee) = best;
        let shape = shape(points, &concurrencies, knee);
        Some(Self { slope, knee, measured, shape })
    }

    /// A rise of `slope` up to a known knee.
    pub(crate) fn of_knee(slope: f64, knee: f64) -> Self {
        Self { slope, knee, measured: (1.0, knee), shape: Shape::Knee }
    }

    pub(crate) fn rate(&self, concurrency: f64) -> f64 {
        self.slope * concurrency.min(self.knee)
    }

    fn plateau(&self) -> f64 {
        self.slope * self.knee
    }

    /// Why the points do not support the knee, if they do not.
    pub(crate) fn knee_doubt(&self) -> Option<String> {
        let (smallest, largest) = self.measured;
        match self.shape {
            Shape::Knee => None,
            Shape::StillRises => {
                Some(format!("throughput still rises at the largest concurrency measured ({largest})"))
            }
            Shape::NoRise => Some(format!(
                "throughput does not rise from the smallest concurrency measured ({smallest}) on"
            )),
            Shape::TooFew => Some("fewer than three different concurrencies were measured".into()),
        }
    }

    /// Why the points do not support the slope.
    pub(crate) fn slope_doubt(&self) -> Option<String> {
        // Throughput per request in flight shows only where it still rises.
        if self.shape == Shape::NoRise { self.knee_doubt() } else { None }
    }

    fn plateau_doubt(&self) -> Option<String> {
        if self.shape == Shape::StillRises { self.knee_doubt() } else { None }
    }
}

fn shape(points: &[RatePoint], concurrencies: &[f64], knee: f64) -> Shape {
    let [smallest, .., before_last, last] = concurrencies else { return Shape::TooFew };
    if knee <= *smallest {
        Shape::NoRise
    } else if knee >= *last * (1.0 - 1e-9) || last_step_rises(points, *before_last, *last) {
        Shape::StillRises
    } else {
        Shape::Knee
    }
}

/// Whether throughput rises by more than creep from the last but one concurrency to the last, among alike
/// points.
fn last_step_rises(points: &[RatePoint], before_last: f64, last: f64) -> bool {
    let rate_at = |concurrency: f64, alike: [u64; 2]| {
        mean(
            points
                .iter()
                .filter(|point| point.concurrency == concurrency && point.alike == alike)
                .map(|point| point.rate.ln()),
        )
    };
    let mut kinds: Vec<[u64; 2]> = points.iter().map(|point| point.alike).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rises =
        kinds.into_iter().filter_map(|alike| Some(rate_at(last, alike)? - rate_at(before_last, alike)?));
    mean(rises).is_some_and(|rise| rise > CREEP_PER_DOUBLING.ln() * (last / before_last).log2())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The concurrencies of the dictionaries paper's rounds.
    const ROUNDS: [f64; 11] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0];

    fn rounds(slope: f64, knee: f64) -> Vec<(f64, f64)> {
        ROUNDS.iter().map(|p| (*p, slope * p.min(knee))).collect()
    }

    #[test]
    fn exact_knees_are_found_wherever_they_lie() {
        for knee in [1.3, 2.9, 4.0, 5.5, 9.1, 21.0, 31.9] {
            let fitted = segmented_fit(&rounds(96.4, knee), 100, 1).unwrap();
            assert!((fitted.knee.value().unwrap() - knee).abs() < 1e-9 * knee, "{fitted:?}");
            assert!((fitted.slope.value().unwrap() - 96.4).abs() < 1e-6, "{fitted:?}");
            assert!((fitted.plateau.value().unwrap() - 96.4 * knee).abs() < 1e-6, "{fitted:?}");
            assert!(fitted.r_squared.unwrap() > 0.999_999);
        }
    }

    #[test]
    fn repeats_give_an_interval_around_the_knee() {
        // ±4 % around a knee of 5.5, in a fixed pattern.
        let points: Vec<(f64, f64)> = rounds(100.0, 5.5)
            .into_iter()
            .enumerate()
            .flat_map(|(i, (p, y))| {
                [0.96, 1.0, 1.04].map(|noise| (p, y * if i % 2 == 0 { noise } else { 2.0 - noise }))
            })
            .collect();
        let fitted = segmented_fit(&points, 300, 1).unwrap();
        let Estimate::Determined { value, low, high } = fitted.knee else { panic!("{fitted:?}") };
        assert!(
            (value - 5.5).abs() < 0.1 && low < 5.5 && 5.5 < high && high - low < 0.6,
            "{value} {low} {high}"
        );
    }

    #[test]
    fn without_a_plateau_the_knee_is_undetermined() {
        let why = |points: &[(f64, f64)]| match segmented_fit(points, 100, 1).unwrap().knee {
            Estimate::Undetermined { why } => why,
            Estimate::Determined { value, .. } => panic!("knee {value} without a plateau"),
        };
        assert!(why(&rounds(100.0, 1e9)).contains("still rises at the largest concurrency measured (64)"));
        // A plateau that only one concurrency has seen is none.
        assert!(why(&rounds(100.0, 50.0)).contains("still rises"));
        let rising_slowly: Vec<(f64, f64)> = ROUNDS.iter().map(|p| (*p, p.powf(0.5))).collect();
        assert!(why(&rising_slowly).contains("still rises"));
        assert!(why(&rounds(100.0, 0.5)).contains("does not rise"));
        assert!(why(&[(1.0, 5.0), (2.0, 10.0)]).contains("fewer than three"));
    }

    #[test]
    fn a_rise_to_the_end_shows_without_alike_points_too() {
        let point =
            |(i, (concurrency, rate)): (u64, (f64, f64))| RatePoint { concurrency, rate, alike: [i, 0] };
        let points: Vec<RatePoint> = (0..).zip(rounds(100.0, 1e9)).map(point).collect();
        assert!(Segments::fit(&points).unwrap().knee_doubt().unwrap().contains("still rises"));
        let points: Vec<RatePoint> = (0..).zip(rounds(100.0, 5.5)).map(point).collect();
        assert_eq!(Segments::fit(&points).unwrap().knee_doubt(), None);
    }

    #[test]
    fn points_that_are_not_positive_are_refused() {
        assert!(segmented_fit(&[], 100, 1).is_err());
        assert!(segmented_fit(&[(1.0, 0.0), (2.0, 1.0)], 100, 1).is_err());
        assert!(segmented_fit(&[(1.0, f64::NAN)], 100, 1).is_err());
    }
}
