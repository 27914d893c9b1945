//! Cost of reads and writes that run together beyond their cost one after the other: one step past the MQSSD
//! paper, which names it as future work.
//!
//! Let R and W be the device time that the reads and the writes of a workload would take on their own at its
//! concurrency. The device serves reads for a share ρ = R / (R + W) of that time, so that a request in
//! service meets one of the other kind in proportion to ρ(1 - ρ). Each meeting lengthens the work (reads wait
//! behind programs and erases) or shortens it (both directions of the link, separate limits for reads and
//! writes are used at once):
//!
//! time = (R + W) · (1 + γ · 4ρ(1 - ρ))
//!
//! γ is the relative change where reads and writes take equal time; -½ would be a perfect overlap there.

use serde::{Deserialize, Serialize};

use crate::statistics::mean;

/// The fitted interference term, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Interference {
    /// The term lowers the error of mixed workloads that its fit did not see.
    Kept { gamma: f64 },
    /// Reads and writes just add up.
    None { why: String },
}

/// A mixed workload: time of its reads, time of its writes, time measured; each per byte moved in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixed {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) measured: f64,
}

impl Mixed {
    /// 4ρ(1 - ρ).
    fn meetings(self) -> f64 {
        meetings(self.reads, self.writes)
    }

    /// The measured time relative to the sum of both parts.
    fn relative(self) -> f64 {
        self.measured / (self.reads + self.writes)
    }

    fn error(self, gamma: f64) -> f64 {
        ((1.0 + gamma * self.meetings()) / self.relative()).ln().abs()
    }
}

/// Fewer mixed workloads than this cannot both fit and judge.
const FEWEST_WORKLOADS: usize = 4;

/// Perfect overlap.
const GAMMA_MIN: f64 = -0.5;

impl Interference {
    /// Fits the term, and keeps it if it lowers the error of left-out workloads by more than the standard
    /// error of that gain.
    pub(super) fn fit(mixed: &[Mixed]) -> Self {
        if mixed.len() < FEWEST_WORKLOADS {
            let why = format!(
                "{} mixed workloads were measured, at least {FEWEST_WORKLOADS} are needed",
                mixed.len()
            );
            return Self::None { why };
        }
        let without: Vec<f64> = mixed.iter().map(|point| point.error(0.0)).collect();
        let with: Vec<f64> = left_out_errors(mixed);
        let gains = || without.iter().zip(&with).map(|(without, with)| without - with);
        let average = |values: &[f64]| mean(values.iter().copied()).unwrap_or_default();
        let gain = average(&without) - average(&with);
        let variance = gains().map(|own| (own - gain).powi(2)).sum::<f64>() / (mixed.len() - 1) as f64;
        let standard_error = (variance / mixed.len() as f64).sqrt();
        match gamma(mixed) {
            Some(gamma) if gain > standard_error => Self::Kept { gamma },
            _ => Self::None {
                why: format!(
                    "the term does not lower the error of left-out mixed workloads: {:.1} % with it, {:.1} % without, \
                     standard error of the difference {:.1} %",
                    100.0 * average(&with),
                    100.0 * average(&without),
                    100.0 * standard_error
                ),
            },
        }
    }

    /// Fits the term without judging it.
    pub(super) fn refit(mixed: &[Mixed]) -> Self {
        match gamma(mixed) {
            Some(gamma) => Self::Kept { gamma },
            None => Self::None { why: "no mixed workloads".into() },
        }
    }

    pub(super) fn gamma(&self) -> Option<f64> {
        match self {
            Self::Kept { gamma } => Some(*gamma),
            Self::None { .. } => None,
        }
    }

    pub(super) fn seconds_per_byte(&self, reads: f64, writes: f64) -> f64 {
        (reads + writes) * (1.0 + self.gamma().unwrap_or(0.0) * meetings(reads, writes))
    }
}

fn meetings(reads: f64, writes: f64) -> f64 {
    if reads + writes <= 0.0 {
        return 0.0;
    }
    let share = reads / (reads + writes);
    4.0 * share * (1.0 - share)
}

/// Least squares of the relative error, which is linear in γ.
fn gamma(mixed: &[Mixed]) -> Option<f64> {
    let (mut above, mut below) = (0.0, 0.0);
    for point in mixed {
        // predicted / measured - 1 = (1 + γ m) / relative - 1
        let slope = point.meetings() / point.relative();
        above += slope * (1.0 - point.relative().recip());
        below += slope * slope;
    }
    let gamma = (above / below).max(GAMMA_MIN);
    gamma.is_finite().then_some(gamma)
}

/// Error at each workload, with γ fitted to all others.
fn left_out_errors(mixed: &[Mixed]) -> Vec<f64> {
    (0..mixed.len())
        .filter_map(|index| {
            let (before, rest) = mixed.split_at_checked(index)?;
            let (left_out, after) = rest.split_first()?;
            Some(left_out.error(gamma(&[before, after].concat()).unwrap_or(0.0)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read shares of 10 % to 90 %, with a fixed pattern of noise.
    fn mixed(gamma: f64, noise: f64) -> Vec<Mixed> {
        [0.1, 0.25, 0.5, 0.75, 0.9]
            .into_iter()
            .flat_map(|share| {
                [(1.0, 1.0), (1.0, 2.5)].map(|(read, write)| (share * read, (1.0 - share) * write))
            })
            .zip([1.0, -1.0, -0.5, 1.0, -1.0, 0.5, 0.0, 1.0, -1.0, 0.2])
            .map(|((reads, writes), sign)| {
                let share = reads / (reads + writes);
                let factor = 1.0 + gamma * 4.0 * share * (1.0 - share);
                Mixed { reads, writes, measured: (reads + writes) * factor * (1.0 + noise * sign) }
            })
            .collect()
    }

    #[test]
    fn interference_and_overlap_are_found() {
        for gamma in [-0.5, -0.2, 0.15, 0.6, 3.0] {
            let found = Interference::fit(&mixed(gamma, 0.0)).gamma().unwrap();
            assert!((found - gamma).abs() < 1e-9, "{found} {gamma}");
            let noisy = Interference::fit(&mixed(gamma, 0.03)).gamma().unwrap();
            assert!((noisy - gamma).abs() < 0.05, "{noisy} {gamma}");
        }
    }

    #[test]
    fn without_interference_the_term_is_dropped_with_its_numbers() {
        let Interference::None { why } = Interference::fit(&mixed(0.0, 0.05)) else { panic!() };
        assert!(why.contains("% with it") && why.contains("% without"), "{why}");
        let Interference::None { why } = Interference::fit(&mixed(0.5, 0.0)[..3]) else { panic!() };
        assert!(why.contains("3 mixed workloads"), "{why}");
    }

    #[test]
    fn time_is_never_shorter_than_half_of_the_sum() {
        let overlapping =
            mixed(-0.5, 0.0).into_iter().map(|point| Mixed { measured: point.measured / 9.0, ..point });
        let found = Interference::fit(&overlapping.collect::<Vec<_>>());
        assert_eq!(found.gamma(), Some(-0.5));
        assert_eq!(found.seconds_per_byte(1.0, 1.0), 1.0);
        assert_eq!(found.seconds_per_byte(1.0, 0.0), 1.0);
    }
}
