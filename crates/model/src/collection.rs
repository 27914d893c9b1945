//! Time that the collection of garbage takes of lasting random writes, as the volume of valid data grows: one
//! step past the MQSSD paper, which names it as future work (§7).
//!
//! A drive that keeps V valid bytes in room for R moves the valid data out of each block that it erases: with
//! random writes it writes 1/(1 - v) bytes for each of the host's, v being the solution of V/R = (1 - v)/-ln
//! v ([`cleaning_amplification`]). A write takes the time of all bytes that are written for it:
//!
//! time of a byte = time without collection · 1/(1 - v(V/R))
//!
//! R is fitted: it has the drive's spare blocks, which no host sees, and lacks the blocks that other data
//! occupy.

use flashgrain_cost::dictionary::{Skew, cleaning_amplification};
use serde::{Deserialize, Serialize};

use crate::left_out::{Gain, average, is_better};
use crate::statistics::mean;

/// The rate of random writes that a drive keeps up with a volume of valid data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyWrites {
    /// V.
    pub valid_bytes: f64,
    /// Of the host's writes.
    pub bytes_per_second: f64,
}

/// The fitted term, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Collection {
    /// It lowers the error of steady states that its fit did not see.
    Kept {
        /// R: bytes that valid data and garbage share.
        room_bytes: f64,
        /// Time of a byte without collection.
        seconds_per_byte: f64,
        /// Mean of |ln(predicted / measured)| of left-out steady states with the term.
        left_out_error: f64,
        /// The same with one rate for all volumes.
        left_out_error_without: f64,
    },
    /// The rate does not depend on the valid data.
    None {
        /// The reason, with its numbers.
        why: String,
    },
}

/// Fewer volumes of valid data than this cannot both fit and judge.
pub const FEWEST_VOLUMES: usize = 4;

/// Room over the most valid data, in steps of their logarithm. With more room nothing is collected.
const ROOM_STEPS: u32 = 200;
const ROOM_MIN: f64 = 1.005;
const ROOM_MAX: f64 = 20.0;

/// Amplification with `room_bytes` of room.
fn amplification(valid_bytes: f64, room_bytes: f64) -> f64 {
    cleaning_amplification(valid_bytes / room_bytes, &Skew::Uniform, 1.0, 1.0)
}

/// A fit of both numbers.
#[derive(Clone, Copy)]
struct Fitted {
    room_bytes: f64,
    seconds_per_byte: f64,
}

impl Fitted {
    /// The least squares of ln(predicted / measured): the time without collection follows from the room.
    fn of(states: &[SteadyWrites]) -> Option<Self> {
        let most = states.iter().map(|state| state.valid_bytes).fold(0.0, f64::max);
        let within = |step: u32| {
            let share = f64::from(step) / f64::from(ROOM_STEPS);
            let room_bytes = most * ROOM_MIN * (ROOM_MAX / ROOM_MIN).powf(share);
            let left = |state: &SteadyWrites| {
                -(state.bytes_per_second * amplification(state.valid_bytes, room_bytes)).ln()
            };
            let level = mean(states.iter().map(left))?;
            let squares: f64 = states.iter().map(|state| (left(state) - level).powi(2)).sum();
            Some((squares, Self { room_bytes, seconds_per_byte: level.exp() }))
        };
        let all = (0..=ROOM_STEPS).filter_map(within);
        all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, fitted)| fitted)
    }

    fn seconds_per_byte(self, valid_bytes: f64) -> f64 {
        self.seconds_per_byte * amplification(valid_bytes, self.room_bytes)
    }
}

/// |ln(predicted / measured)| of each state, by the `fit` of all others.
fn left_out_errors(
    states: &[SteadyWrites],
    fit: impl Fn(&[SteadyWrites], f64) -> Option<f64>,
) -> Option<Vec<f64>> {
    (0..states.len())
        .map(|index| {
            let (before, rest) = states.split_at_checked(index)?;
            let (own, after) = rest.split_first()?;
            let predicted = fit(&[before, after].concat(), own.valid_bytes)?;
            Some((predicted * own.bytes_per_second).ln().abs())
        })
        .collect()
}

impl Collection {
    /// Fits the term to steady states, and keeps it if it lowers the error of those that are left out by more
    /// than the standard error of that gain.
    pub fn fit(states: &[SteadyWrites]) -> Self {
        let known = |state: &&SteadyWrites| state.valid_bytes > 0.0 && state.bytes_per_second > 0.0;
        let states: Vec<SteadyWrites> = states.iter().filter(known).copied().collect();
        if states.len() < FEWEST_VOLUMES {
            let why = format!(
                "steady states of {} volumes of valid data were found, at least {FEWEST_VOLUMES} are needed: more time \
                 and written bytes find more",
                states.len()
            );
            return Self::None { why };
        }
        let alike = |states: &[SteadyWrites], _: f64| {
            Some(mean(states.iter().map(|state| -state.bytes_per_second.ln()))?.exp())
        };
        let collected =
            |states: &[SteadyWrites], valid: f64| Some(Fitted::of(states)?.seconds_per_byte(valid));
        let without = left_out_errors(&states, alike).unwrap_or_default();
        let with = left_out_errors(&states, collected).unwrap_or_default();
        match Fitted::of(&states) {
            Some(Fitted { room_bytes, seconds_per_byte }) if is_better(&with, &without) => Self::Kept {
                room_bytes,
                seconds_per_byte,
                left_out_error: average(&with),
                left_out_error_without: average(&without),
            },
            _ => Self::None {
                why: format!(
                    "the volume of valid data does not lower the error of left-out steady states: {:.1} % with it, {:.1} % \
                     without, standard error of the difference {:.1} %",
                    100.0 * average(&with),
                    100.0 * average(&without),
                    100.0 * Gain::of(&with, &without).standard_error
                ),
            },
        }
    }

    /// Bytes per second of lasting random writes with `valid_bytes` of valid data; `None` without the term,
    /// and where valid data leave no room.
    pub fn bytes_per_second(&self, valid_bytes: f64) -> Option<f64> {
        match *self {
            Self::Kept { room_bytes, seconds_per_byte, .. } if valid_bytes < room_bytes => {
                Some(Fitted { room_bytes, seconds_per_byte }.seconds_per_byte(valid_bytes).recip())
            }
            _ => None,
        }
    }

    /// Bytes that the drive writes for each byte of the host's with `valid_bytes` of valid data; `None` as in
    /// [`bytes_per_second`](Self::bytes_per_second).
    pub fn amplification(&self, valid_bytes: f64) -> Option<f64> {
        match *self {
            Self::Kept { room_bytes, .. } if valid_bytes < room_bytes => {
                Some(amplification(valid_bytes, room_bytes))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    /// Rates in a room of `room_bytes`, with a fixed pattern of noise.
    fn states(room_bytes: f64, noise: f64) -> Vec<SteadyWrites> {
        [0.25, 0.5, 0.7, 0.85, 0.95]
            .into_iter()
            .zip([1.0, -1.0, 0.5, -0.5, 1.0])
            .map(|(share, sign)| {
                let valid_bytes = share * GIB;
                let amplified = amplification(valid_bytes, room_bytes);
                SteadyWrites { valid_bytes, bytes_per_second: 1e9 / amplified * (1.0 + noise * sign) }
            })
            .collect()
    }

    #[test]
    fn the_room_is_found() {
        for room in [1.0, 1.1, 1.4, 2.0] {
            for noise in [0.0, 0.03] {
                let Collection::Kept { room_bytes, seconds_per_byte, left_out_error, left_out_error_without } =
                    Collection::fit(&states(room * GIB, noise))
                else {
                    panic!("{room} {noise}")
                };
                assert!(
                    left_out_error < left_out_error_without,
                    "{left_out_error}, {left_out_error_without}"
                );
                assert!((room_bytes / GIB / room - 1.0).abs() < 0.02 + 2.0 * noise, "{room}: {room_bytes}");
                assert!((seconds_per_byte * 1e9 - 1.0).abs() < 0.02 + 2.0 * noise, "{seconds_per_byte}");
            }
        }
    }

    #[test]
    fn rates_that_do_not_depend_on_the_valid_data_have_no_term() {
        let Collection::None { why } = Collection::fit(&states(1e6 * GIB, 0.03)) else { panic!() };
        assert!(why.contains("% with it") && why.contains("without"), "{why}");
        let Collection::None { why } = Collection::fit(&states(GIB, 0.0)[..3]) else { panic!() };
        assert!(why.contains("3 volumes"), "{why}");
        let nonsense = [SteadyWrites { valid_bytes: 0.0, bytes_per_second: f64::NAN }; 5];
        assert!(matches!(Collection::fit(&nonsense), Collection::None { .. }));
    }

    #[test]
    fn more_valid_data_take_longer_and_none_fit_into_no_room() {
        let found = Collection::fit(&states(1.2 * GIB, 0.0));
        let rates = [0.1, 0.6, 0.9, 1.1].map(|share| found.bytes_per_second(share * GIB).unwrap());
        assert!(rates.is_sorted_by(|few, many| few > many), "{rates:?}");
        assert_eq!(found.bytes_per_second(1.3 * GIB), None);
        assert!((found.amplification(0.001 * GIB).unwrap() - 1.0).abs() < 1e-3);
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.starts_with("{\"state\":\"kept\",\"room_bytes\":"), "{text}");
        assert_eq!(serde_json::from_str::<Collection>(&text).unwrap(), found);
    }
}
