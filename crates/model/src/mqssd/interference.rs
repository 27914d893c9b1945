//! Cost of reads and writes that run together beyond their cost one after the other: one step past the MQSSD
//! paper, which names it as future work.
//!
//! Fits γ of [`flashgrain_cost::interference`].
//!
//! A single stream waits for its reads and its writes in turn; many keep everything busy that works for one
//! kind alone, such as one direction of the link. So γ may depend on the concurrency. Then it is fitted at
//! each, and lies between its neighbours elsewhere.

use flashgrain_cost::interference::{gamma_at, meetings, time_together};
use serde::{Deserialize, Serialize};

use crate::left_out::{Gain, average, is_better};

/// The fitted interference term, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Interference {
    /// The term lowers the error of mixed workloads that its fit did not see.
    Kept {
        /// Of all concurrencies together.
        gamma: f64,
        /// γ at rising concurrency, if that is better by as much.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_concurrency: Vec<(f64, f64)>,
    },
    /// Reads and writes just add up.
    None { why: String },
}

/// A mixed workload: time of its reads, time of its writes, time measured; each per byte moved in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixed {
    pub(super) concurrency: f64,
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

/// Fewer mixed workloads than this cannot both fit and judge, neither at all nor at one concurrency.
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
        let with = left_out_errors(mixed, &[]);
        let concurrencies = concurrencies(mixed);
        let apart = left_out_errors(mixed, &concurrencies);
        let is_apart = concurrencies.len() >= 2 && is_better(&apart, &without) && is_better(&apart, &with);
        match gamma(mixed) {
            Some(gamma) if is_apart => {
                Self::Kept { gamma, by_concurrency: by_concurrency(mixed, &concurrencies) }
            }
            Some(gamma) if is_better(&with, &without) => Self::Kept { gamma, by_concurrency: Vec::new() },
            _ => Self::None {
                why: format!(
                    "the term does not lower the error of left-out mixed workloads: {:.1} % with it, {:.1} % without, \
                     standard error of the difference {:.1} %",
                    100.0 * average(&with),
                    100.0 * average(&without),
                    100.0 * Gain::of(&with, &without).standard_error
                ),
            },
        }
    }

    /// Fits the term without judging it.
    pub(super) fn refit(&self, mixed: &[Mixed]) -> Self {
        match gamma(mixed) {
            Some(gamma) => {
                let apart: Vec<f64> = self.by_concurrency().iter().map(|(k, _)| *k).collect();
                Self::Kept { gamma, by_concurrency: by_concurrency(mixed, &apart) }
            }
            None => Self::None { why: "no mixed workloads".into() },
        }
    }

    /// γ of all concurrencies together.
    pub(super) fn gamma(&self) -> Option<f64> {
        match self {
            Self::Kept { gamma, .. } => Some(*gamma),
            Self::None { .. } => None,
        }
    }

    /// γ at each concurrency; none if it does not depend on that.
    pub(super) fn by_concurrency(&self) -> &[(f64, f64)] {
        match self {
            Self::Kept { by_concurrency, .. } => by_concurrency,
            Self::None { .. } => &[],
        }
    }

    pub(super) fn seconds_per_byte(&self, reads: f64, writes: f64, concurrency: f64) -> f64 {
        let gamma = match self.by_concurrency() {
            [] => self.gamma().unwrap_or(0.0),
            of_each => gamma_at(of_each, concurrency),
        };
        time_together(reads, writes, gamma)
    }

    /// The time of reads and of writes together at no concurrency in particular.
    pub(super) fn seconds_together(&self, reads: f64, writes: f64) -> f64 {
        time_together(reads, writes, self.gamma().unwrap_or(0.0))
    }
}

/// Rising concurrencies with enough workloads for a γ of their own.
fn concurrencies(mixed: &[Mixed]) -> Vec<f64> {
    let mut all: Vec<f64> = mixed.iter().map(|point| point.concurrency).collect();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|a, b| a == b)
        .filter(|same| same.len() >= FEWEST_WORKLOADS)
        .filter_map(|same| same.first().copied())
        .collect()
}

/// γ at each of these concurrencies.
fn by_concurrency(mixed: &[Mixed], concurrencies: &[f64]) -> Vec<(f64, f64)> {
    let of = |k: &f64| {
        let own: Vec<Mixed> = mixed.iter().copied().filter(|point| point.concurrency == *k).collect();
        Some((*k, gamma(&own)?))
    };
    concurrencies.iter().filter_map(of).collect()
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

/// Error at each workload, with γ fitted to all others: to those of its concurrency if that is one of
/// `apart`.
fn left_out_errors(mixed: &[Mixed], apart: &[f64]) -> Vec<f64> {
    (0..mixed.len())
        .filter_map(|index| {
            let (before, rest) = mixed.split_at_checked(index)?;
            let (left_out, after) = rest.split_first()?;
            let others = [before, after].concat();
            let own = match by_concurrency(&others, apart).as_slice() {
                [] => gamma(&others).unwrap_or(0.0),
                of_each => gamma_at(of_each, left_out.concurrency),
            };
            Some(left_out.error(own))
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
                let measured = (reads + writes) * factor * (1.0 + noise * sign);
                Mixed { concurrency: 8.0, reads, writes, measured }
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
        assert_eq!(found.seconds_per_byte(1.0, 1.0, 8.0), 1.0);
        assert_eq!(found.seconds_per_byte(1.0, 0.0, 8.0), 1.0);
    }

    /// One stream waits for both kinds in turn; 64 keep both directions of a link busy.
    #[test]
    fn overlap_that_comes_with_concurrency_has_a_term_at_each() {
        let at = |concurrency: f64, gamma: f64, noise: f64| {
            mixed(gamma, noise).into_iter().map(move |point| Mixed { concurrency, ..point })
        };
        let link = |noise: f64| -> Vec<Mixed> {
            at(1.0, 0.0, noise).chain(at(8.0, -0.2, noise)).chain(at(64.0, -0.45, noise)).collect()
        };
        for noise in [0.0, 0.05] {
            let found = Interference::fit(&link(noise));
            let [one, eight, many] =
                [1.0, 8.0, 64.0].map(|k| found.seconds_per_byte(1.0, 1.0, k) / 2.0 - 1.0);
            assert!(
                one.abs() < 0.02 && (eight + 0.2).abs() < 0.02 && (many + 0.45).abs() < 0.02,
                "{found:?}"
            );
            // Between 8 and 64, and beyond.
            let between = found.seconds_per_byte(1.0, 1.0, 512f64.sqrt()) / 2.0 - 1.0;
            assert!((between - (eight + many) / 2.0).abs() < 1e-9, "{between}");
            assert_eq!(found.seconds_per_byte(1.0, 1.0, 1e3), found.seconds_per_byte(1.0, 1.0, 64.0));
        }
        let same: Vec<Mixed> = at(1.0, 0.3, 0.05).chain(at(8.0, 0.3, 0.05)).collect();
        assert!(Interference::fit(&same).by_concurrency().is_empty(), "one constant says as much");
    }
}
