//! `sustain`: random writes until the drive is in a steady state, round by round. Drives answer from caches
//! and spare blocks first, and more slowly once garbage collection has to keep up (NVMe paper §2.1, MQSSD
//! paper §3.2.2).

use flashgrain_device::{Op, bytes_text};
use flashgrain_model::{Access, Collection, Estimate, SteadyWrites, Workload};

use crate::Error;
use crate::load::{Load, Pattern, Region, Stop, Sync, time_each};
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

/// Valid data grow by whole pieces, and are discarded by these.
const PIECE_BYTES: u64 = 1 << 20;

/// Bytes of the sequential writes that they grow by.
const GROWN_BYTES: f64 = 131_072.0;

/// Limits of the search for one steady state.
#[derive(Clone, Copy)]
struct Allowance {
    seconds: f64,
    write_bytes: u64,
    /// Bytes that are written before a state counts as steady.
    least_bytes: u64,
}

/// Rounds of one region, and the first of those that are steady.
struct Rounds {
    rounds: Vec<SustainRound>,
    steady_from: Option<usize>,
}

/// Writes until the drive is steady or the limits of `sustain` are reached.
///
/// With [`Config::sustain_valid_shares`](crate::config::Config) the same is done first with only these shares
/// of the region as valid data; the rest is discarded. Each share has the same part of the limits as the
/// whole region, and is steady at the earliest after the bytes of the whole region were written: all of the
/// drive's free blocks have been used by then.
pub(crate) fn run(bench: &mut Bench<'_>, site: &Site) -> Result<Sustain, Error> {
    let limits = bench.config.sustain;
    let mut shares = bench.config.sustain_valid_shares.clone();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let (parts, is_asked) = (shares.len() as u64 + 1, !shares.is_empty());
    let allowance = Allowance {
        seconds: limits.seconds / parts as f64,
        write_bytes: limits.write_bytes / parts,
        least_bytes: if is_asked { site.main.length_bytes } else { 0 },
    };
    let mut by_valid_data = Vec::new();
    let mut valid_bytes = match shares.first() {
        Some(share) => part_of(site, *share),
        None => site.main.length_bytes,
    };
    discard(bench, site, valid_bytes)?;
    for share in shares {
        grow(bench, site, &mut valid_bytes, part_of(site, share))?;
        let region = Region { length_bytes: valid_bytes, ..site.main };
        let found = rounds(bench, site, region, allowance)?;
        by_valid_data.extend(found.steady_state(valid_bytes));
    }
    grow(bench, site, &mut valid_bytes, site.main.length_bytes)?;
    let found = rounds(bench, site, site.main, allowance)?;
    if is_asked {
        by_valid_data.extend(found.steady_state(valid_bytes));
    }
    let request_bytes = limits.request_bytes.next_multiple_of(site.align_bytes);
    let collection = is_asked.then(|| Collection::fit(&by_valid_data));
    let sustain = summary(request_bytes, limits.concurrency, found.rounds, found.steady_from);
    Ok(Sustain { by_valid_data, collection, ..sustain })
}

/// Bytes of a share of the region.
fn part_of(site: &Site, share: f64) -> u64 {
    let bytes = (site.main.length_bytes as f64 * share) as u64;
    (bytes / PIECE_BYTES * PIECE_BYTES).max(PIECE_BYTES).min(site.main.length_bytes)
}

/// Discards the region from `from_bytes` on.
fn discard(bench: &mut Bench<'_>, site: &Site, from_bytes: u64) -> Result<(), Error> {
    let end = site.main.offset_bytes + site.main.length_bytes;
    let whole = (site.main.length_bytes - from_bytes) / PIECE_BYTES;
    if whole == 0 {
        return Ok(());
    }
    let offsets: Vec<u64> = (0..whole).map(|piece| end - (piece + 1) * PIECE_BYTES).collect();
    time_each(bench.target.device, Op::Discard, PIECE_BYTES as u32, &offsets, bench.interrupt)?;
    Ok(())
}

/// Writes the region up to `to_bytes`, which makes these valid.
fn grow(bench: &mut Bench<'_>, site: &Site, valid_bytes: &mut u64, to_bytes: u64) -> Result<(), Error> {
    let added = to_bytes.saturating_sub(*valid_bytes);
    if added > 0 {
        let region = Region { offset_bytes: site.main.offset_bytes + *valid_bytes, length_bytes: added };
        let workload = Workload { random_share: 0.0, ..Workload::random(Access::Write, GROWN_BYTES, 1.0) };
        let stop = Stop { after_bytes_written: Some(added), ..Stop::default() };
        let load = load(bench, workload, region, stop, 0);
        bench.load(bench.target.device, load)?;
    }
    *valid_bytes = to_bytes;
    Ok(())
}

fn load(bench: &Bench<'_>, workload: Workload, region: Region, stop: Stop, stream: u64) -> Load {
    Load {
        workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region,
        workers: bench.workers(bench.target.device, workload.concurrency),
        sync: Sync::None,
        rate_per_s: None,
        polled: bench.config.polled,
        warmup_share: 0.0,
        stop,
        seed: mix_seed(bench.config.seed, stream),
    }
}

/// Writes to a region until it is steady or its part of the limits is used up.
fn rounds(bench: &mut Bench<'_>, site: &Site, region: Region, allowance: Allowance) -> Result<Rounds, Error> {
    let limits = bench.config.sustain;
    let (began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
    let request_bytes = limits.request_bytes.next_multiple_of(site.align_bytes);
    let mut rounds: Vec<SustainRound> = Vec::new();
    let mut steady_from = None;
    while steady_from.is_none() {
        let at_s = bench.elapsed_s() - began_s;
        let written = bench.written_bytes - written_before;
        let remaining_bytes =
            allowance.write_bytes.saturating_sub(written).min(bench.remaining_write_bytes());
        let round_s = limits.round_s.min(allowance.seconds - at_s);
        if round_s < limits.round_s / 2.0 || remaining_bytes < request_bytes * u64::from(limits.concurrency) {
            break;
        }
        let valid = match region.length_bytes {
            bytes if bytes == site.main.length_bytes => String::new(),
            bytes => format!(" with {} valid", bytes_text(bytes)),
        };
        bench.step(&format!("sustain{valid}, round {}", rounds.len() + 1))?;
        let workload = Workload::random(Access::Write, request_bytes as f64, f64::from(limits.concurrency));
        let stop =
            Stop { after_s: Some(round_s), after_bytes_written: Some(remaining_bytes), ..Stop::default() };
        let load = load(bench, workload, region, stop, rounds.len() as u64);
        let measured = bench.load(bench.target.device, load)?;
        rounds.push(SustainRound {
            at_s,
            bytes_per_second: measured.bytes_per_second(),
            written_bytes: bench.written_bytes - written_before,
        });
        let counted = rounds.iter().skip_while(|round| round.written_bytes < allowance.least_bytes);
        let rates: Vec<f64> = counted.map(|round| round.bytes_per_second).collect();
        steady_from = steady_window(&rates).map(|first| first + rounds.len() - rates.len());
    }
    Ok(Rounds { rounds, steady_from })
}

impl Rounds {
    /// The steady state that was found with `valid_bytes` of valid data.
    fn steady_state(&self, valid_bytes: u64) -> Option<SteadyWrites> {
        let window = self.rounds.get(self.steady_from?..)?;
        let rates: Vec<f64> = window.iter().take(WINDOW).map(|round| round.bytes_per_second).collect();
        Some(SteadyWrites { valid_bytes: valid_bytes as f64, bytes_per_second: mean(&rates)? })
    }
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
        by_valid_data: Vec::new(),
        collection: None,
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
