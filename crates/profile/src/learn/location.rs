//! Chunk size, hot locations and flash page size from the location profile (hidden-parameters paper §3.1.2).
//!
//! Two things show. Reads that are faster across the border of a chunk than aligned to it use two channels
//! (Figure 4c): chunks are recognised by such reads. Reads that are fastest aligned do not touch more pages
//! than they must (Figure 4d); where nothing is faster across a border, chunks and pages are the same, and
//! otherwise pages are no larger than chunks.
//!
//! Chunks of a size that was not tried, or not read from often enough, leave traces in smaller sizes, and
//! pages show in them whatever the chunk is. So nothing is concluded from smaller sizes alone:
//!
//! 1. every size up to the largest must have been read from often enough;
//! 2. a chunk is accepted only where the sizes around it, which are no doublings of it, were tried and gain
//!    less;
//! 3. no period of any multiple of 4 KiB may explain the latencies of all reads much better than the chunk
//!    does ([`super::period`]);
//! 4. where nothing is faster across a border, evidence against the page is evidence against the chunk;
//! 5. a size at which reads gain away from offset 0, but not as those of a chunk do, is neither a chunk nor
//!    none.
//!
//! Latency that depends on the offset into a supposed chunk is a trace of channels and pages. Many offsets
//! are looked at, so chance alone would often show a fast one. Three hurdles keep it out: a permutation test
//! over the most deviating group, corrected for the number of chunk sizes; a gain that must show on reads
//! other than those that chose the offset; and agreement of bootstrap resamples.

use flashgrain_model::Estimate;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::groups::{Clip, Groups, squared_error_of_mean, z_score};
use super::period::{self, PlacedRead};
use super::{Basis, CONFIDENCE_MIN, Evidence, determined, undetermined};
use crate::config::ExperimentName;
use crate::schema::LearnedValue;
use crate::stats::{mean, mix_seed, quantile};
use crate::trial::{Work, bytes_text, missing_doubling};

/// Chance of a false find over all chunk sizes together.
const SIGNIFICANCE: f64 = 0.01;

/// Smallest gain worth a name; the smallest in the paper is 9 %.
const DROP_MIN: f64 = 0.04;

/// A chunk size whose gain is at least this share of the largest explains as much.
const NEARLY_AS_GOOD: f64 = 0.85;

/// A read is as good as aligned if its latency differs from that of an aligned one by less than this share of
/// the difference of the others.
const NEARLY_ALIGNED: f64 = 0.4;

/// Smallest gain of reads that are aligned to pages within a chunk: one more page takes its die a good part
/// of the time of the first. Smaller gains come of chunks' borders among the places that are read.
const PAGE_DROP_MIN: f64 = 0.2;

/// Least gain across the border of a chunk, relative to that of aligned reads, that identifies a chunk.
const ACROSS_TO_ALIGNED: f64 = 0.7;

/// Gain of reads at another offset than 0 from which on a chunk may explain it, though aligned reads gain
/// more.
const ACROSS_DROP_MIN: f64 = 0.10;

/// A size next to that of the chunk, and no doubling of it, gains no more than this share of the chunk's
/// gain.
const REJECTED_GAIN: f64 = 0.75;

/// No flash page is larger (the paper's §2.1: 2 to 16 KiB). Reads that are fastest aligned to more than this
/// are so because rows of many dies begin there.
const PAGE_BYTES_MAX: u64 = 16 << 10;

/// A die senses no more than this at a time: the pages of all its planes.
const SENSED_BYTES_MAX: u64 = 64 << 10;

const PERMUTATIONS: u32 = 2000;

/// So many permutations that deviate as much, and the rest cannot make it significant (Besag and Clifford's
/// sequential test).
const ENOUGH_AS_EXTREME: u32 = 20;

const RESAMPLES: u32 = 200;
const READS_MIN: usize = 12;

#[derive(Debug)]
pub(super) struct LearnedLocations {
    pub chunk: LearnedValue,
    pub hot_offset: LearnedValue,
    pub drop: LearnedValue,
    pub flash_page: LearnedValue,
}

impl LearnedLocations {
    fn none(why: impl Into<String>, evidence: impl Into<String>) -> Self {
        let value = undetermined(why, evidence);
        Self { chunk: value.clone(), hot_offset: value.clone(), drop: value.clone(), flash_page: value }
    }
}

/// The groups of one supposed chunk size.
#[derive(Clone, Debug)]
pub(super) struct Supposed {
    pub chunk_bytes: u64,
    pub groups: Groups,
    /// Every read by its place, for periods that no group stands for.
    pub placed: Vec<PlacedRead>,
}

/// Result for one supposed chunk size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Finding {
    chunk_bytes: u64,
    hot_offset: u64,
    /// Relative to offset 0; to the mean of the others where offset 0 is itself the hot one.
    drop: f64,
}

pub(super) fn learn(evidence: &Evidence<'_>) -> LearnedLocations {
    let mut supposed: Vec<Supposed> = evidence
        .series
        .iter()
        .filter(|series| series.trial.experiment == ExperimentName::Location)
        .filter_map(|series| match &series.trial.work {
            Work::Sweep(sweep) => Some(Supposed {
                chunk_bytes: u64::from(sweep.length_bytes),
                groups: Groups::new(&series.reads, Clip::Overall),
                placed: period::placed(&series.reads),
            }),
            Work::Load(_) => None,
        })
        .collect();
    supposed.sort_by_key(|one| one.chunk_bytes);
    if supposed.is_empty() {
        return LearnedLocations::none("location was not run", "");
    }
    if !evidence.direct {
        return LearnedLocations::none(
            "requests went through the page cache, which hides the drive's latency",
            "",
        );
    }
    from_supposed(&supposed, mix_seed(evidence.seed, 0x10c))
}

fn from_supposed(supposed: &[Supposed], seed: u64) -> LearnedLocations {
    let enough: Vec<&Supposed> = supposed
        .iter()
        .filter(|one| one.groups.groups.len() >= 2 && one.groups.reads_min() >= READS_MIN)
        .collect();
    if enough.is_empty() {
        return LearnedLocations::none(format!("fewer than {READS_MIN} reads at each offset were made"), "");
    }
    if enough.len() < supposed.len() {
        let few: Vec<String> = supposed
            .iter()
            .filter(|one| one.groups.reads_min() < READS_MIN)
            .map(|one| bytes_text(one.chunk_bytes))
            .collect();
        let why = format!(
            "fewer than {READS_MIN} reads at each offset were made of {}, which may be chunks",
            few.join(", ")
        );
        return LearnedLocations::none(why, "");
    }
    let tried: Vec<u64> = supposed.iter().map(|one| one.chunk_bytes).collect();
    if let Some(missing) = missing_doubling(&tried) {
        let why = format!("no reads of {} were made, which may be chunks", bytes_text(missing));
        return LearnedLocations::none(why, "");
    }
    let mut random = Pcg64::seed_from_u64(seed);
    let tested: Vec<(&Supposed, f64)> = enough
        .iter()
        .map(|one| (*one, (permutation_p(&one.groups, &mut random) * enough.len() as f64).min(1.0)))
        .collect();
    let significant: Vec<&Supposed> = tested
        .iter()
        .filter(|(one, p)| *p < SIGNIFICANCE && confirmed_drop(&one.groups) >= DROP_MIN)
        .map(|(one, _)| *one)
        .collect();
    let least_p = tested.iter().map(|(_, p)| *p).fold(1.0, f64::min);
    let summary = summary_text(&enough, least_p);
    let Some(best) = findings(&significant) else {
        return LearnedLocations::none(
            "latency does not depend on the offset into any supposed chunk by more than noise",
            summary,
        );
    };
    if let Some(why) = doubt(&best, &enough) {
        return LearnedLocations::none(why, summary);
    }
    let answers: Vec<Findings> = (0..RESAMPLES)
        .filter_map(|_| {
            let resampled: Vec<Supposed> = significant
                .iter()
                .map(|one| Supposed {
                    chunk_bytes: one.chunk_bytes,
                    groups: one.groups.resampled(&mut random),
                    placed: Vec::new(),
                })
                .collect();
            findings(&resampled.iter().collect::<Vec<_>>())
        })
        .collect();
    conclude(best, &answers, &significant, &summary)
}

/// Probability that groups without any difference deviate as much as the most deviating one here.
fn permutation_p(groups: &Groups, random: &mut Pcg64) -> f64 {
    let mut values: Vec<f64> = groups.groups.iter().flat_map(|(_, values)| values.iter().copied()).collect();
    let counts: Vec<usize> = groups.groups.iter().map(|(_, values)| values.len()).collect();
    let Some(centre) = mean(&values) else { return 1.0 };
    let most_deviating = |values: &[f64]| {
        let mut rest = values;
        let mut most: f64 = 0.0;
        for count in &counts {
            let (group, others) = rest.split_at(*count);
            rest = others;
            let sum: f64 = group.iter().map(|value| value - centre).sum();
            most = most.max(sum.abs() / (*count as f64).sqrt());
        }
        most
    };
    let seen = most_deviating(&values);
    let least = 1.0 / f64::from(PERMUTATIONS + 1);
    if deviation_bound(&values, counts.len(), seen) < least {
        return least;
    }
    let (mut tried, mut as_extreme) = (0, 0);
    while tried < PERMUTATIONS && as_extreme < ENOUGH_AS_EXTREME {
        values.shuffle(random);
        tried += 1;
        as_extreme += u32::from(most_deviating(&values) >= seen);
    }
    f64::from(as_extreme + 1) / f64::from(tried + 1)
}

/// Bound on the probability that any of `groups` samples of the values, drawn without replacement, deviates
/// by `seen` or more, in sums of deviations over the root of their number (Hoeffding, "Probability
/// Inequalities for Sums of Bounded Random Variables", 1963, §6). Below the permutations' resolution it
/// spares them.
fn deviation_bound(values: &[f64], groups: usize, seen: f64) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    2.0 * groups as f64 * (-2.0 * (seen / (most - least)).powi(2)).exp()
}

/// The gain at the offset that one half of the reads calls hot, measured on the other half; the smaller of
/// both ways.
fn confirmed_drop(groups: &Groups) -> f64 {
    let halves = [groups.half(false), groups.half(true)];
    let way = |choose: &Groups, judge: &Groups| {
        let hot = hot_offset(choose)?;
        drop_at(judge, hot)
    };
    let [first, second] = &halves;
    match (way(first, second), way(second, first)) {
        (Some(one), Some(other)) => one.min(other),
        _ => 0.0,
    }
}

/// The offset with the smallest latency; among those that cannot be told from it, the roundest (0 before half
/// before quarters...).
fn hot_offset(groups: &Groups) -> Option<u64> {
    let means = groups.means();
    let (lowest, lowest_mean) = means.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let error_of = |label: u64| {
        let values = groups.groups.iter().find(|(one, _)| *one == label).map(|(_, values)| values.as_slice());
        squared_error_of_mean(values.unwrap_or_default())
    };
    let alike = |(label, mean): &&(u64, f64)| {
        let error = (error_of(*label) + error_of(lowest)).sqrt();
        mean - lowest_mean <= 1.5 * error
    };
    let roundness = |offset: u64| if offset == 0 { 64 } else { offset.trailing_zeros() };
    means.iter().filter(alike).map(|(label, _)| *label).max_by_key(|offset| roundness(*offset))
}

/// Gain at `hot` relative to offset 0, or to the mean of the others if it is offset 0 itself.
fn drop_at(groups: &Groups, hot: u64) -> Option<f64> {
    let means = groups.means();
    let mean_of = |offset: u64| means.iter().find(|(label, _)| *label == offset).map(|(_, mean)| *mean);
    let reference = if hot == 0 {
        mean(&means.iter().filter(|(label, _)| *label != 0).map(|(_, mean)| *mean).collect::<Vec<_>>())?
    } else {
        mean_of(0)?
    };
    (reference > 0.0).then_some(1.0 - mean_of(hot)? / reference)
}

/// Joint result for all supposed chunk sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Findings {
    chunk: Finding,
    /// Result for reads that are as large as a page and fastest when aligned: the page is the chunk itself,
    /// or smaller.
    page: Option<Finding>,
}

fn findings(supposed: &[&Supposed]) -> Option<Findings> {
    let all: Vec<Finding> = supposed
        .iter()
        .filter(|one| !has_half_period(&one.groups, one.chunk_bytes))
        .filter_map(|one| {
            let hot_offset = hot_offset(&one.groups)?;
            let drop = drop_at(&one.groups, hot_offset)?;
            Some(Finding { chunk_bytes: one.chunk_bytes, hot_offset, drop })
        })
        .collect();
    // Two channels gain most where each has half of the chunk to read; and they gain no less than the same
    // reads do from pages, or the gain has another cause, such as the pace at which parts arrive.
    let aligned = all.iter().filter(|one| one.hot_offset == 0).map(|one| one.drop).fold(0.0, f64::max);
    let least = DROP_MIN.max(ACROSS_TO_ALIGNED * aligned);
    let across =
        best_finding(all.iter().filter(|one| one.hot_offset == one.chunk_bytes / 2 && one.drop >= least));
    let Some(chunk) = across else {
        // Reads that gain away from where pages begin are traces of an untried chunk.
        if all.iter().any(|one| one.hot_offset != 0 && one.drop >= ACROSS_DROP_MIN) {
            return None;
        }
        let aligned = first_aligned(all.iter().filter(|one| one.hot_offset == 0), PAGE_BYTES_MAX)?;
        return Some(Findings { chunk: aligned, page: Some(aligned) });
    };
    let smaller = |one: &&Finding| {
        one.hot_offset == 0 && one.chunk_bytes < chunk.chunk_bytes && one.drop >= PAGE_DROP_MIN
    };
    Some(Findings { chunk, page: first_aligned(all.iter().filter(smaller), SENSED_BYTES_MAX) })
}

/// Why a chunk that was found may be one of a size that was not tried; `None` if nothing speaks for that.
fn doubt(found: &Findings, tried: &[&Supposed]) -> Option<String> {
    let chunk = found.chunk;
    let bytes = chunk.chunk_bytes;
    let gain_across = |one: &Supposed| drop_at(&one.groups, one.chunk_bytes / 2).unwrap_or(0.0);
    if chunk.hot_offset != 0 {
        let around: Vec<&&Supposed> = tried
            .iter()
            .filter(|one| {
                one.chunk_bytes != bytes && one.chunk_bytes > bytes / 2 && one.chunk_bytes < 2 * bytes
            })
            .collect();
        if !around.iter().any(|one| one.chunk_bytes < bytes)
            || !around.iter().any(|one| one.chunk_bytes > bytes)
        {
            return Some(format!("no sizes just below and above {} were tried", bytes_text(bytes)));
        }
        if let Some(rival) = around.iter().find(|one| gain_across(one) > REJECTED_GAIN * chunk.drop) {
            return Some(format!(
                "reads across the middle of {} gain nearly as much as those of {}",
                bytes_text(rival.chunk_bytes),
                bytes_text(bytes)
            ));
        }
    }
    let sweeps: Vec<(u64, &[PlacedRead])> =
        tried.iter().map(|one| (one.chunk_bytes, one.placed.as_slice())).collect();
    let rival = period::rival(&sweeps, bytes, chunk.hot_offset == 0)?;
    Some(format!(
        "reads of {} repeat themselves every {}, which chunks of {} do not explain",
        bytes_text(rival.read_bytes),
        bytes_text(rival.period_bytes),
        bytes_text(bytes)
    ))
}

/// The smallest size at which aligned reads gain nearly as much as at twice that size. Below the true size
/// the gain grows with the length of the reads, as ever more reads touch one page too many; far above it rows
/// of several planes make aligned reads faster once more, and often by more.
fn first_aligned<'a>(
    findings: impl Iterator<Item = &'a Finding> + Clone,
    largest_bytes: u64,
) -> Option<Finding> {
    let gain_at = |bytes: u64| findings.clone().find(|one| one.chunk_bytes == bytes).map(|one| one.drop);
    let grown =
        |one: &Finding| gain_at(2 * one.chunk_bytes).is_none_or(|next| one.drop >= NEARLY_AS_GOOD * next);
    let found = findings.clone().copied().find(|one| one.drop >= DROP_MIN && grown(one));
    found.filter(|one| one.chunk_bytes <= largest_bytes)
}

/// Whether reads from the middle of the supposed chunk are nearly as fast as aligned ones while others are
/// slower: then the true chunk is smaller, and each read covers several of them.
fn has_half_period(groups: &Groups, chunk_bytes: u64) -> bool {
    let means = groups.means();
    let mean_of = |offset: u64| means.iter().find(|(label, _)| *label == offset).map(|(_, mean)| *mean);
    let (Some(aligned), Some(middle)) = (mean_of(0), mean_of(chunk_bytes / 2)) else { return false };
    let others: Vec<f64> = means
        .iter()
        .filter(|(label, _)| *label != 0 && *label != chunk_bytes / 2)
        .map(|(_, mean)| *mean)
        .collect();
    let Some(others) = mean(&others) else { return false };
    let (gain, loss) = (others - aligned, middle - aligned);
    gain >= DROP_MIN * others && loss.abs() < NEARLY_ALIGNED * gain
}

/// The smallest chunk size that gains nearly as much as any.
fn best_finding<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> Option<Finding> {
    let largest = findings.clone().map(|finding| finding.drop).fold(0.0, f64::max);
    findings.copied().find(|finding| largest > 0.0 && finding.drop >= NEARLY_AS_GOOD * largest)
}

fn conclude(
    Findings { chunk: best, page }: Findings,
    answers: &[Findings],
    supposed: &[&Supposed],
    summary: &str,
) -> LearnedLocations {
    let share_of_all = |same: &dyn Fn(&Findings) -> bool| {
        answers.iter().filter(|answer| same(answer)).count() as f64 / f64::from(RESAMPLES)
    };
    let share = |same: &dyn Fn(&Finding) -> bool| share_of_all(&|all| same(&all.chunk));
    let interval = |of: &dyn Fn(&Finding) -> f64| {
        let values: Vec<f64> = answers.iter().map(|answer| of(&answer.chunk)).collect();
        (quantile(&values, 0.025).unwrap_or(0.0), quantile(&values, 0.975).unwrap_or(0.0))
    };
    let chunk_confidence = share(&|one| one.chunk_bytes == best.chunk_bytes);
    let hot_confidence =
        share(&|one| one.chunk_bytes == best.chunk_bytes && one.hot_offset == best.hot_offset);
    let evidence = format!(
        "reads of {} are {:.0} % faster at offset {} {}; {summary}",
        bytes_text(best.chunk_bytes),
        best.drop * 100.0,
        bytes_text(best.hot_offset),
        if best.hot_offset == 0 { "than at the others" } else { "than at offset 0" }
    );
    if chunk_confidence < CONFIDENCE_MIN {
        let why = format!(
            "latency depends on the offset, but only {:.0} % of the resamples agree on chunks of {}",
            chunk_confidence * 100.0,
            bytes_text(best.chunk_bytes)
        );
        return LearnedLocations::none(why, evidence);
    }
    let basis = basis_of(supposed);
    let chunk = determined(
        best.chunk_bytes as f64,
        interval(&|one| one.chunk_bytes as f64),
        chunk_confidence,
        evidence.clone(),
        basis,
    );
    if hot_confidence < CONFIDENCE_MIN {
        let why = format!(
            "only {:.0} % of the resamples agree on offset {}",
            hot_confidence * 100.0,
            bytes_text(best.hot_offset)
        );
        let unknown = undetermined(why, &*evidence);
        return LearnedLocations {
            chunk,
            hot_offset: unknown.clone(),
            drop: unknown.clone(),
            flash_page: unknown,
        };
    }
    let page_bytes = |found: &Findings| found.page.map(|page| page.chunk_bytes);
    let page_confidence =
        share_of_all(&|all| page_bytes(all) == page.map(|page| page.chunk_bytes)).min(hot_confidence);
    let flash_page = flash_page(best, page, supposed, page_confidence, &evidence);
    if let (0, Estimate::Undetermined { why }) = (best.hot_offset, &flash_page.estimate) {
        // The chunk is only known as the page, so that evidence against the page is evidence against the
        // chunk.
        return LearnedLocations::none(why.clone(), evidence);
    }
    LearnedLocations {
        chunk,
        hot_offset: determined(
            best.hot_offset as f64,
            interval(&|one| one.hot_offset as f64),
            hot_confidence,
            evidence.clone(),
            basis,
        ),
        drop: determined(best.drop, interval(&|one| one.drop), hot_confidence, evidence, basis),
        flash_page,
    }
}

/// Figure 4's two cases. If reads across a border are slower than aligned ones, two pages have to be read
/// whole. If such reads are only ever faster, two channels each read a part: pages are no larger than chunks,
/// and nothing tells their size.
fn flash_page(
    chunk: Finding,
    page: Option<Finding>,
    supposed: &[&Supposed],
    confidence: f64,
    evidence: &str,
) -> LearnedValue {
    let Some(page) = page else {
        let why = format!(
            "reads across the border of a chunk are faster, so that a page is at most the chunk of {}; how large it is cannot be seen",
            bytes_text(chunk.chunk_bytes)
        );
        return undetermined(why, evidence);
    };
    let bytes = page.chunk_bytes;
    if confidence < CONFIDENCE_MIN {
        let why = format!(
            "only {:.0} % of the resamples agree on pages of {}",
            confidence * 100.0,
            bytes_text(bytes)
        );
        return undetermined(why, evidence);
    }
    let Some(groups) = supposed.iter().find(|one| one.chunk_bytes == bytes).map(|one| &one.groups) else {
        return undetermined("no groups", evidence);
    };
    let aligned = groups.groups.iter().find(|(label, _)| *label == 0).map(|(_, values)| values.as_slice());
    let slower = |(label, values): &(u64, Vec<f64>)| {
        *label == 0 || aligned.is_some_and(|aligned| z_score(values, &[aligned]) > 2.0)
    };
    if page.hot_offset != 0 || !groups.groups.iter().all(slower) {
        return undetermined(
            "not all reads across the border of a page are slower than aligned ones",
            evidence,
        );
    }
    let text = format!("all reads across the border of {} are slower; {evidence}", bytes_text(bytes));
    determined(bytes as f64, (bytes as f64, bytes as f64), confidence, text, basis_of(supposed))
}

/// Sweeps are repeats: each reads other places.
fn basis_of(supposed: &[&Supposed]) -> Basis {
    Basis::of(supposed.iter().map(|one| one.groups.sweeps).min().unwrap_or(0))
}

/// Summarises the groups and reads that were examined, and the smallest p value.
fn summary_text(supposed: &[&Supposed], least_p: f64) -> String {
    let groups: usize = supposed.iter().map(|one| one.groups.groups.len()).sum();
    let reads: usize = supposed
        .iter()
        .map(|one| one.groups.groups.iter().map(|(_, values)| values.len()).sum::<usize>())
        .sum();
    format!(
        "{groups} offset groups of {} chunk sizes, {reads} reads, smallest corrected p {least_p:.3}",
        supposed.len()
    )
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::synthetic::reads;
    use super::*;
    use crate::series::SweepRead;
    use crate::trial::doublings_and_between;

    const KIB: u64 = 1 << 10;

    /// The offsets that the experiment examines: all of small chunks, the eighths of large ones and some
    /// others.
    fn offsets(chunk: u64) -> Vec<u64> {
        let eighth = (chunk / 8).max(KIB);
        (0..chunk / KIB)
            .map(|kib| kib * KIB)
            .filter(|offset| {
                chunk <= 16 * KIB || offset.is_multiple_of(eighth) || offset % 37 == 5 * KIB % 37
            })
            .collect()
    }

    /// Learns from sweeps over all chunk sizes; `latency` is that of a read of a length at an offset.
    fn learned(seed: u64, rounds: u32, latency: impl Fn(u64, u64) -> f64) -> LearnedLocations {
        let sweep = |chunk: u64| {
            let seed = seed * 100 + chunk / KIB;
            let reads = reads(&offsets(chunk), rounds, 12, seed, |offset| latency(chunk, offset));
            Supposed { chunk_bytes: chunk, groups: Groups::new(&reads, Clip::Overall), placed: Vec::new() }
        };
        let supposed: Vec<Supposed> =
            doublings_and_between(4 * KIB, 512 * KIB, 4 * KIB).into_iter().map(sweep).collect();
        from_supposed(&supposed, seed)
    }

    /// The same from single reads of which each has a place: `latency` is that of a read of a length that
    /// begins there.
    fn learned_by_place(seed: u64, latency: impl Fn(u64, u64) -> f64) -> LearnedLocations {
        let sweep = |chunk: u64| {
            let mut random = Pcg64::seed_from_u64(seed * 1000 + chunk / KIB);
            let mut reads = Vec::new();
            for turn in 0..60 {
                for offset in offsets(chunk) {
                    let offset_bytes = offset + chunk * random.random_range(0..(64 << 20) / chunk);
                    let noise = 0.9 + 0.2 * random.random::<f64>();
                    let latency_us = latency(chunk, offset_bytes) * noise;
                    reads.push(SweepRead {
                        sweep: turn / 10,
                        label: offset,
                        region: 0,
                        offset_bytes,
                        latency_us,
                    });
                }
            }
            Supposed {
                chunk_bytes: chunk,
                groups: Groups::new(&reads, Clip::Overall),
                placed: period::placed(&reads),
            }
        };
        let supposed: Vec<Supposed> =
            doublings_and_between(4 * KIB, 512 * KIB, 4 * KIB).into_iter().map(sweep).collect();
        from_supposed(&supposed, seed)
    }

    /// Chunks on channels by turns, each read page by page.
    fn page_by_page(chunk: u64, read: u64, place: u64) -> f64 {
        const PAGE: u64 = 4 * KIB;
        let (mut at, mut most) = (place, 0);
        while at < place + read {
            let end = ((at / chunk + 1) * chunk).min(place + read);
            most = most.max(end.div_ceil(PAGE) - at / PAGE);
            at = end;
        }
        30.0 + 40.0 * most as f64
    }

    #[test]
    fn chunks_of_other_sizes_are_found_or_left_open() {
        for seed in 0..1 {
            for chunk in [40, 48, 64, 96, 192] {
                let found = learned_by_place(seed, |read, place| page_by_page(chunk * KIB, read, place));
                let expected = (Some(chunk as f64), Some(chunk as f64 / 2.0));
                assert_eq!((kib(&found.chunk), kib(&found.hot_offset)), expected, "{chunk}: {found:?}");
            }
            for chunk in [28, 56, 72, 112] {
                let found = learned_by_place(seed, |read, place| page_by_page(chunk * KIB, read, place));
                assert_eq!((kib(&found.chunk), kib(&found.hot_offset)), (None, None), "{chunk}: {found:?}");
            }
        }
    }

    #[test]
    fn rows_of_planes_are_no_chunks_where_reads_inside_of_them_are_as_fast() {
        // Reads of a row that begin with its second page are as fast as those of the whole row, which no page
        // explains.
        let row = |read: u64, offset: u64| match (read, offset) {
            (16_384, 0 | 4096) => 100.0,
            (16_384, _) => 133.0,
            _ => 60.0 + read as f64 / 1024.0,
        };
        let found = learned(1, 12, row);
        for value in [&found.chunk, &found.hot_offset, &found.drop, &found.flash_page] {
            assert!(value.estimate.value().is_none(), "{value:?}");
        }
        let pages =
            learned(1, 12, |read, offset| if read == 16_384 && offset > 0 { 133.0 } else { row(read, 0) });
        assert_eq!((kib(&pages.chunk), kib(&pages.flash_page)), (Some(16.0), Some(16.0)), "{pages:?}");
    }

    #[test]
    fn nothing_is_said_of_chunks_where_large_ones_were_read_too_rarely() {
        let sweep = |chunk: u64| {
            let rounds = if chunk >= 64 * KIB { 1 } else { 10 };
            let latency = |offset| page_by_page(64 * KIB, chunk, offset);
            let reads = reads(&offsets(chunk), rounds, 8, chunk, latency);
            Supposed { chunk_bytes: chunk, groups: Groups::new(&reads, Clip::Overall), placed: Vec::new() }
        };
        let supposed: Vec<Supposed> =
            doublings_and_between(4 * KIB, 512 * KIB, 4 * KIB).into_iter().map(sweep).collect();
        let found = from_supposed(&supposed, 1);
        let flashgrain_model::Estimate::Undetermined { why } = &found.chunk.estimate else {
            panic!("{found:?}")
        };
        assert!(why.contains("64 KiB") && found.hot_offset.estimate.value().is_none(), "{why}");
    }

    /// Mean over the places of a group: `place` is where in a real chunk the reads of the group start.
    fn over_places(chunk: u64, read: u64, offset: u64, latency: impl Fn(u64) -> f64) -> f64 {
        let places = (chunk / read).max(1);
        (0..places).map(|index| latency((index * read + offset) % chunk)).sum::<f64>() / places as f64
    }

    fn kib(value: &LearnedValue) -> Option<f64> {
        value.estimate.value().map(|bytes| bytes / 1024.0)
    }

    /// Figure 4c: the longest part that one channel has to read decides; SSD-S has chunks of 64 KiB.
    fn split_over_channels(read: u64, offset: u64) -> f64 {
        const CHUNK: u64 = 64 * KIB;
        over_places(CHUNK, read, offset, |place| {
            let first = (CHUNK - place).min(read);
            let longest = first.max((read - first).min(CHUNK));
            // A part in the latency does not depend on the bytes, so that half of a chunk takes 61 % of a
            // whole one's time.
            22.0 + 78.0 * longest as f64 / CHUNK as f64
        })
    }

    /// Figure 4d: every page that is touched is read whole; pages of 4 KiB, and one page more costs `more` of
    /// the first.
    fn whole_pages(read: u64, offset: u64, more: f64) -> f64 {
        let pages = (offset + read).div_ceil(4 * KIB) - offset / (4 * KIB);
        // Pages beyond the first few are read side by side.
        60.0 * (1.0
            + more * (pages as f64 - 1.0).min(1.0)
            + 0.01 * pages as f64
            + 0.2 * more * f64::from(u8::from(!offset.is_multiple_of(4 * KIB))))
    }

    #[test]
    fn chunks_that_split_over_channels_are_found() {
        for seed in 0..5 {
            let s = learned(seed, 10, split_over_channels);
            assert_eq!(
                (kib(&s.chunk), kib(&s.hot_offset)),
                (Some(64.0), Some(32.0)),
                "{seed}: {:?} {:?}",
                s.chunk,
                s.hot_offset
            );
            let drop = s.drop.estimate.value().unwrap();
            assert!((drop - 0.39).abs() < 0.04, "{drop}");
            let flashgrain_model::Estimate::Undetermined { why } = &s.flash_page.estimate else {
                panic!("{s:?}")
            };
            assert!(why.contains("at most the chunk of 64 KiB"), "{why}");
        }
    }

    /// A drive that shows both: chunks of 64 KiB on one channel, read page by page.
    #[test]
    fn pages_smaller_than_chunks_are_found_beside_them() {
        const CHUNK: u64 = 64 * KIB;
        let pages_in = |from: u64, to: u64| to.div_ceil(4 * KIB) - from / (4 * KIB);
        let one_by_one = |read: u64, offset: u64| {
            over_places(CHUNK, read, offset, |place| {
                let border = place.next_multiple_of(CHUNK).max(CHUNK).min(place + read);
                let (first, second) =
                    (pages_in(place, border), pages_in(border, (place + read).min(border + CHUNK)));
                25.0 + 90.0 * first.max(second) as f64
            })
        };
        for seed in 0..5 {
            let found = learned(seed, 10, one_by_one);
            assert_eq!((kib(&found.chunk), kib(&found.hot_offset)), (Some(64.0), Some(32.0)), "{found:?}");
            assert_eq!(kib(&found.flash_page), Some(4.0), "{found:?}");
        }
    }

    /// A drive of eight dies: a read of 64 KiB that does not begin with a page needs two of one die, which
    /// costs it more than a small read loses; but it may begin with any page.
    #[test]
    fn a_round_over_few_dies_is_no_chunk() {
        const PAGE: u64 = 8 * KIB;
        let latency = |read: u64, offset: u64| {
            let pages = (offset + read).div_ceil(PAGE) - offset / PAGE;
            let joined = u64::from(!(offset | read).is_multiple_of(PAGE));
            (60 * pages.div_ceil(8) + 27 + 30 * joined) as f64 * if offset == 0 { 1.0 } else { 1.03 }
        };
        for seed in 0..5 {
            let found = learned(seed, 10, latency);
            assert_eq!((kib(&found.chunk), kib(&found.hot_offset)), (Some(8.0), Some(0.0)), "{found:?}");
            assert_eq!(kib(&found.flash_page), Some(8.0), "{found:?}");
        }
    }

    #[test]
    fn pages_that_are_read_whole_are_found() {
        // SSD-T with 38 %, SSD-M with 20 % and SSD-I with 9 % less at aligned places.
        for (more, drop) in [(0.51, 0.38), (0.21, 0.20), (0.083, 0.09)] {
            for seed in 0..5 {
                let found = learned(seed, 10, |read, offset| whole_pages(read, offset, more));
                assert_eq!(
                    (kib(&found.chunk), kib(&found.hot_offset)),
                    (Some(4.0), Some(0.0)),
                    "{more} {seed}: {:?}",
                    found.chunk
                );
                assert_eq!(kib(&found.flash_page), Some(4.0), "{more} {seed}: {:?}", found.flash_page);
                let learned_drop = found.drop.estimate.value().unwrap();
                assert!((learned_drop - drop).abs() < 0.04, "{learned_drop} instead of {drop}");
            }
        }
    }

    /// Pages of 8 KiB, four of them in a row of eight dies: reads of 128 KiB gain more where rows begin than
    /// any gains where pages do.
    #[test]
    fn rows_of_many_dies_are_no_pages() {
        let with_rows = |read: u64, offset: u64| {
            let pages = whole_pages_of(8 * KIB, read, offset);
            let rows = if read == 128 * KIB && offset != 0 { 60.0 } else { 0.0 };
            80.0 + 25.0 * pages + rows
        };
        for seed in 0..5 {
            let found = learned(seed, 10, with_rows);
            assert_eq!(
                (kib(&found.chunk), kib(&found.flash_page)),
                (Some(8.0), Some(8.0)),
                "{seed}: {found:?}"
            );
            // On a drive that only shows the rows, there is nothing that could be a page.
            let only_rows =
                |read: u64, offset: u64| 80.0 + if read == 128 * KIB && offset != 0 { 60.0 } else { 0.0 };
            let found = learned(seed, 10, only_rows);
            assert_eq!((kib(&found.chunk), kib(&found.flash_page)), (None, None), "{seed}: {found:?}");
        }
    }

    /// Share of the reads at this offset that begin or end inside of a page.
    fn whole_pages_of(page: u64, read: u64, offset: u64) -> f64 {
        over_places(page, read, offset, |place| {
            let inside = !place.is_multiple_of(page) && place % page + read > page
                || (read > page && !place.is_multiple_of(page));
            f64::from(u8::from(inside))
        })
    }

    #[test]
    fn groups_deviate_no_more_often_than_the_bound_says() {
        const GROUP: usize = 8;
        let mut random = Pcg64::seed_from_u64(5);
        let mut values: Vec<f64> = (0..4 * GROUP).map(|index| (index % 2) as f64).collect();
        for seen in [0.75, 1.0, 1.3] {
            let deviates = |values: &[f64]| {
                let sums =
                    values.chunks(GROUP).map(|group| group.iter().map(|value| value - 0.5).sum::<f64>());
                sums.fold(0.0, |most: f64, sum| most.max(sum.abs())) / (GROUP as f64).sqrt() >= seen
            };
            let times = (0..20_000).filter(|_| {
                values.shuffle(&mut random);
                deviates(&values)
            });
            let (share, bound) = (times.count() as f64 / 20_000.0, deviation_bound(&values, 4, seen));
            assert!(share > 0.0 && share <= bound, "{seen}: {share}, at most {bound}");
        }
    }

    #[test]
    fn noise_alone_finds_nothing() {
        let mut false_finds = 0;
        for seed in 0..300 {
            // Larger reads take longer, wherever they are.
            let noise = learned(seed, 2, |read, _| 50.0 + read as f64 / 1000.0);
            false_finds += u32::from(noise.chunk.estimate.value().is_some());
        }
        assert!(false_finds <= 3, "{false_finds} of 300");
    }

    #[test]
    fn one_odd_group_is_no_period() {
        // A hiccup of the system in one group of one chunk size only: not significant once chunk sizes and
        // halves are accounted for, or nothing that resamples agree on as a hot location.
        let odd =
            learned(3, 4, |read, offset| if read == 32 * KIB && offset == 5 * KIB { 104.0 } else { 100.0 });
        assert!(odd.chunk.estimate.value().is_none() && odd.flash_page.estimate.value().is_none());
    }
}
