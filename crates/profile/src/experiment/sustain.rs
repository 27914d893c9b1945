//! `sustain`: random writes until the drive is in a steady state, round by round. Drives answer from caches
//! and spare blocks first, and more slowly once garbage collection has to keep up (NVMe paper §2.1, MQSSD
//! paper §3.2.2).

use flashgrain_model::{Estimate, Workload};

use crate::Error;
use crate::load::{Load, Pattern, Stop, Sync};
use crate::run::Bench;
use crate::schema::{Sustain, SustainRound};
use crate::stats::{mean, mix_seed};
use crate::target::Site;

/// Rounds that the steady-state rule looks at.
const WINDOW: usize = 5;

/// Largest excursion of a steady window: largest less smallest round, relative to the average.
const EXCURSION: f64 = 0.20;

/// Largest change of the fitted line over a steady window, relative to the average.
const SLOPE: f64 = 0.10;

/// Writes until the drive is steady or the limits of `sustain` are reached.
pub(crate) fn run(bench: &mut Bench<'_>, site: &Site) -> Result<Sustain, Error> {
    let limits = bench.config.sustain;
    let (began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
    let request_bytes = limits.request_bytes.next_multiple_of(site.align_bytes);
    let mut rounds: Vec<SustainRound> = Vec::new();
    let mut steady_from = None;
    while steady_from.is_none() {
        let at_s = bench.elapsed_s() - began_s;
        let written = bench.written_bytes - written_before;
        let remaining_bytes = limits.write_bytes.saturating_sub(written).min(bench.remaining_write_bytes());
        let round_s = limits.round_s.min(limits.seconds - at_s);
        if round_s < limits.round_s / 2.0 || remaining_bytes < request_bytes * u64::from(limits.concurrency) {
            break;
        }
        bench.step(&format!("sustain, round {}", rounds.len() + 1))?;
        let load = Load {
            workload: Workload {
                read_share: 0.0,
                request_bytes: request_bytes as f64,
                random_share: 1.0,
                concurrency: f64::from(limits.concurrency),
            },
            pattern: Pattern::Mixed { align_bytes: None },
            region: site.main,
            workers: bench.workers(bench.target.device, f64::from(limits.concurrency)),
            sync: Sync::None,
            rate_per_s: None,
            polled: bench.config.polled,
            warmup_share: 0.0,
            stop: Stop {
                after_s: Some(round_s),
                after_bytes_written: Some(remaining_bytes),
                ..Stop::default()
            },
            seed: mix_seed(bench.config.seed, rounds.len() as u64),
        };
        let measured = bench.load(bench.target.device, load)?;
        rounds.push(SustainRound {
            at_s,
            bytes_per_second: measured.bytes_per_second(),
            written_bytes: bench.written_bytes - written_before,
        });
        let rates: Vec<f64> = rounds.iter().map(|round| round.bytes_per_second).collect();
        steady_from = steady_window(&rates);
    }
    Ok(summary(request_bytes, limits.concurrency, rounds, steady_from))
}

fn summary(
    request_bytes: u64,
    concurrency: u32,
    rounds: Vec<SustainRound>,
    steady_from: Option<usize>,
) -> Sustain {
    let rates: Vec<f64> = rounds.iter().map(|round| round.bytes_per_second).collect();
    let window = steady_from.and_then(|first| rates.get(first..first + WINDOW));
    let sustained_bytes_per_second = match window.and_then(|window| Some((window, mean(window)?))) {
        Some((window, value)) => Estimate::Determined {
            value,
            low: window.iter().copied().fold(f64::INFINITY, f64::min),
            high: window.iter().copied().fold(0.0, f64::max),
        },
        None => Estimate::Undetermined {
            why: format!(
                "no {WINDOW} rounds in a row stayed within {:.0} % of their average with a slope of at most {:.0} %; {} were run",
                EXCURSION * 100.0,
                SLOPE * 100.0,
                rounds.len()
            ),
        },
    };
    Sustain {
        request_bytes,
        concurrency,
        steady: steady_from.is_some(),
        steady_from_round: steady_from.map(|first| first as u32),
        burst_bytes_per_second: rates.first().copied().unwrap_or(0.0),
        sustained_bytes_per_second,
        rounds,
    }
}

/// The first round of the last five, if these are a steady state as SNIA's Performance Test Specification
/// defines it.
fn steady_window(rates: &[f64]) -> Option<usize> {
    let first = rates.len().checked_sub(WINDOW)?;
    let window = rates.get(first..)?;
    let average = mean(window)?;
    let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = (WINDOW - 1) as f64 / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (index, rate) in window.iter().enumerate() {
        let x = index as f64 - middle;
        covariance += x * (rate - average);
        variance += x * x;
    }
    let change = (covariance / variance * (WINDOW - 1) as f64).abs();
    (average > 0.0 && largest - smallest <= EXCURSION * average && change <= SLOPE * average).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_means_small_excursion_and_small_slope() {
        assert_eq!(steady_window(&[100.0; 4]), None);
        assert_eq!(steady_window(&[100.0, 101.0, 99.0, 100.0, 100.0]), Some(0));
        // Within 20 % at both ends, without a slope.
        assert_eq!(steady_window(&[500.0, 110.0, 100.0, 91.0, 100.0, 110.0]), Some(1));
        // Falls by 3 % per round: an excursion of 12 %, but a slope of 12 %, too.
        assert_eq!(steady_window(&[106.0, 103.0, 100.0, 97.0, 94.0]), None);
        // One round out of line.
        assert_eq!(steady_window(&[100.0, 100.0, 75.0, 100.0, 100.0]), None);
        assert_eq!(steady_window(&[0.0; 5]), None);
    }

    #[test]
    fn without_a_steady_state_there_is_no_sustained_rate() {
        let round = |index: u32| SustainRound {
            at_s: f64::from(index),
            bytes_per_second: 1e8 / f64::from(index + 1),
            written_bytes: 0,
        };
        let sustain = summary(4096, 32, (0..6).map(round).collect(), None);
        assert!(!sustain.steady);
        assert_eq!(sustain.sustained_bytes_per_second.value(), None);
        assert_eq!(sustain.burst_bytes_per_second, 1e8);
    }
}
