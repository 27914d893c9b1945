//! Periods in the latencies of a sweep's reads, whatever size they were made for.
//!
//! A sweep of one read size covers places of every phase of any other size. Folded at a period, its latencies
//! fall into bins of 4 KiB; the share of their variance that the bins explain tells whether the drive repeats
//! itself with that period. A chunk of a size that was not tried shows so in the reads of sizes that were.
//!
//! 1. Reads that begin inside of 4 KiB and those that do not are compared among themselves: pages are no
//!    matter of periods.
//! 2. The variance that a period explains is corrected for the number of its bins.
//! 3. Multiples of the supposed chunk repeat with it, and so do rows of dies and of the types of cells:
//!    powers of two of it, and three times that from twelve chunks on, are no rivals.

use std::collections::BTreeMap;

use crate::series::SweepRead;
use crate::stats::{mean, median, quantile};

/// Periods are multiples of this.
const BIN_BYTES: u64 = 4 << 10;

/// Longest period that is looked for.
const PERIOD_BYTES_MAX: u64 = 768 << 10;

/// Explained share of the variance that a rival must have more than the supposed chunk.
const GAIN_MIN: f64 = 0.2;

/// Share of latency (root mean square) that a rival must move latencies by in excess of the supposed chunk:
/// on a drive of hardly any noise, trifles explain most of the variance. A chunk that gains 10 % moves them
/// by 3 %.
const MOVED_MIN: f64 = 0.03;

/// The same next to a chunk of one page, for periods of many pages: rows of dies, and the types of their
/// cells, repeat with periods of their own, but move large reads by less than chunks of that number of pages
/// do.
const MOVED_FAR_MIN: f64 = 0.09;

/// Reads for each bin.
const READS_PER_BIN_MIN: usize = 4;

/// Slowest share of reads that is cut to its lower bound.
const CLIPPED_FRACTION: f64 = 0.05;

/// Multiples of a chunk from which on rows of dies may repeat.
const ROWS_FROM: u64 = 12;

/// One read of a sweep: where it began, and its latency relative to the usual of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedRead {
    pub offset_bytes: u64,
    pub relative: f64,
}

/// A period that the supposed chunk does not explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rival {
    pub period_bytes: u64,
    pub read_bytes: u64,
}

/// Latencies relative to the mean of their sweep and of the reads that are aligned as they are.
pub(super) fn placed(reads: &[SweepRead]) -> Vec<PlacedRead> {
    let mut kinds: BTreeMap<(u32, bool), Vec<f64>> = BTreeMap::new();
    let kind = |read: &SweepRead| (read.sweep, read.offset_bytes.is_multiple_of(BIN_BYTES));
    for read in reads {
        kinds.entry(kind(read)).or_default().push(read.latency_us);
    }
    let usual: BTreeMap<(u32, bool), f64> =
        kinds.into_iter().filter_map(|(kind, latencies)| Some((kind, median(&latencies)?))).collect();
    let mut all: Vec<PlacedRead> = reads
        .iter()
        .filter_map(|read| {
            let usual = usual.get(&kind(read)).copied().filter(|usual| *usual > 0.0)?;
            Some(PlacedRead { offset_bytes: read.offset_bytes, relative: read.latency_us / usual })
        })
        .collect();
    let values: Vec<f64> = all.iter().map(|read| read.relative).collect();
    let bound = quantile(&values, 1.0 - CLIPPED_FRACTION).unwrap_or(f64::INFINITY);
    all.iter_mut().for_each(|read| read.relative = read.relative.min(bound));
    all
}

/// Share of the variance that folding at a period explains, corrected for the number of bins; `None` with too
/// few reads to tell.
fn explained(reads: &[PlacedRead], period_bytes: u64) -> Option<f64> {
    let bins = (period_bytes / BIN_BYTES) as usize;
    if reads.len() < READS_PER_BIN_MIN * bins {
        return None;
    }
    let centre = mean(&reads.iter().map(|read| read.relative).collect::<Vec<_>>())?;
    let mut sums = vec![(0.0, 0.0); bins];
    let mut total = 0.0;
    for read in reads {
        let deviation = read.relative - centre;
        total += deviation * deviation;
        let bin = (read.offset_bytes % period_bytes / BIN_BYTES) as usize;
        if let Some((sum, count)) = sums.get_mut(bin) {
            *sum += deviation;
            *count += 1.0;
        }
    }
    let filled = sums.iter().filter(|(_, count)| *count > 0.0).count() as f64;
    let between: f64 =
        sums.iter().filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum * sum / count).sum();
    let count = reads.len() as f64;
    let unexplained = (1.0 - between / total) * (count - 1.0) / (count - filled).max(1.0);
    (total > 0.0).then(|| (1.0 - unexplained).max(0.0))
}

/// Mean square of the deviations from the mean.
fn variance(reads: &[PlacedRead]) -> f64 {
    let values: Vec<f64> = reads.iter().map(|read| read.relative).collect();
    let centre = mean(&values).unwrap_or(0.0);
    mean(&values.iter().map(|value| (value - centre).powi(2)).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// The period that most exceeds the share that a supposed chunk explains, over reads of all sizes; `None` if
/// none does by much. `is_page` for a chunk that is one page: then effects of single pages, such as types of
/// cells, count as explained.
pub(super) fn rival(sweeps: &[(u64, &[PlacedRead])], chunk_bytes: u64, is_page: bool) -> Option<Rival> {
    // Those that begin inside of a page cross the borders of chunks, too.
    let single: Option<Vec<PlacedRead>> =
        sweeps.iter().find(|(read_bytes, _)| *read_bytes == chunk_bytes).map(|(_, reads)| {
            reads.iter().copied().filter(|read| read.offset_bytes.is_multiple_of(chunk_bytes)).collect()
        });
    let mut best: Option<(f64, Rival)> = None;
    for (read_bytes, reads) in sweeps {
        let variance = variance(reads);
        let own = explained(reads, chunk_bytes.next_multiple_of(BIN_BYTES)).unwrap_or(0.0);
        for period_bytes in (BIN_BYTES..=PERIOD_BYTES_MAX).step_by(BIN_BYTES as usize) {
            if repeats_with(chunk_bytes, period_bytes, is_page) {
                continue;
            }
            let Some(share) = explained(reads, period_bytes) else { break };
            // A chunk shows in reads of about its size.
            if !(period_bytes / 2..=period_bytes).contains(read_bytes) {
                continue;
            }
            let by_itself = match (is_page, &single) {
                (true, Some(single)) => explained(single, period_bytes).unwrap_or(0.0),
                _ => 0.0,
            };
            let more = share - own.max(by_itself);
            let far = is_page && period_bytes >= ROWS_FROM * chunk_bytes;
            let least = if far { MOVED_FAR_MIN } else { MOVED_MIN };
            if more > GAIN_MIN && more * variance > least * least && best.is_none_or(|(most, _)| more > most)
            {
                best = Some((more, Rival { period_bytes, read_bytes: *read_bytes }));
            }
        }
    }
    best.map(|(_, rival)| rival)
}

/// Whether a period adds nothing to a chunk: the chunk or a part of it, a power of two of it, or a long
/// multiple.
fn repeats_with(chunk_bytes: u64, period_bytes: u64, is_page: bool) -> bool {
    if chunk_bytes.is_multiple_of(period_bytes) {
        return true;
    }
    let times = period_bytes / chunk_bytes;
    period_bytes.is_multiple_of(chunk_bytes) && (times.is_power_of_two() || !is_page && times >= ROWS_FROM)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    const READ_BYTES: u64 = 32 << 10;

    /// Reads of 32 KiB at random places that are slower by a share of `moved` where they cross a border of
    /// `chunk_bytes`.
    fn sweep(chunk_bytes: u64, moved: f64) -> Vec<PlacedRead> {
        let mut random = Pcg64::seed_from_u64(5);
        let reads: Vec<SweepRead> = (0..6000)
            .map(|index| {
                let offset_bytes = random.random_range(0..1u64 << 18) * BIN_BYTES;
                let crosses = offset_bytes % chunk_bytes + READ_BYTES > chunk_bytes;
                let noise = 1.0 + 0.02 * random.random_range(-1.0..1.0);
                let latency_us = 100.0 * noise * if crosses { 1.0 + moved } else { 1.0 };
                SweepRead { sweep: index / 1000, label: 0, region: 0, offset_bytes, latency_us }
            })
            .collect();
        placed(&reads)
    }

    fn found(chunk_bytes: u64, moved: f64, supposed_bytes: u64) -> Option<u64> {
        let reads = sweep(chunk_bytes, moved);
        rival(&[(READ_BYTES, &reads)], supposed_bytes, false).map(|rival| rival.period_bytes)
    }

    #[test]
    fn a_chunk_of_a_size_that_was_not_tried_is_a_rival_of_the_supposed_one() {
        assert_eq!(found(40 << 10, 0.3, 32 << 10), Some(40 << 10));
        assert_eq!(found(48 << 10, 0.3, 32 << 10), Some(48 << 10));
    }

    #[test]
    fn the_chunk_itself_noise_and_trifles_have_no_rival() {
        assert_eq!(found(40 << 10, 0.3, 40 << 10), None);
        assert_eq!(found(40 << 10, 0.0, 32 << 10), None);
        // Half of the reads are slower by 2 %: less than a chunk moves latencies by.
        assert_eq!(found(40 << 10, 0.02, 32 << 10), None);
    }

    #[test]
    fn too_few_reads_for_the_bins_tell_nothing() {
        let reads = sweep(40 << 10, 0.3);
        let few = &reads[..READS_PER_BIN_MIN * 10 - 1];
        assert_eq!(explained(few, 40 << 10), None);
        assert!(explained(&reads, 40 << 10).unwrap() > 0.8);
    }
}
