//! Desirable write sizes and the stripe size from the request-size profile (hidden-parameters paper §3.1.1).
//!
//! 1. A write of whole stripes leaves no part of one: the *doublings* of the true size share one latency, and
//!    a size is judged by its doublings rather than by all larger sizes, as some of them cut stripes.
//! 2. Writes just below the true size consist of parts only, and read as slowly as much smaller ones. If they
//!    are nearly as fast as the supposed size, the true size was not among those tried, and nothing is
//!    concluded. Writes somewhat larger leave parts, too: where all of them are as good, the true size lies
//!    between those tried.
//! 3. Nothing is concluded from the largest size tried: larger sizes may be faster still. Nor from the
//!    smallest, unless there are no smaller ones: where all are alike, those that were too slow to write may
//!    be as good.
//! 4. A size has several regions, and a region is a repeat: its place, and the conditions of its writes, are
//!    its own. Without a second region nothing is concluded.

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::groups::{Clip, Groups};
use super::{Basis, CONFIDENCE_MIN, Evidence, determined, undetermined};
use crate::config::ExperimentName;
use crate::experiment::request_size::{READ_BYTES, WRITE_BYTES_MIN};
use crate::schema::LearnedValue;
use crate::stats::{mean, median, mix_seed};
use crate::trial::{Work, bytes_text};

/// Latencies within this of the smallest count as equally good. A write size that costs its readers less is
/// not worth avoiding.
const GOOD_WITHIN: f64 = 0.10;

/// The paper calls all sizes above the one with the smallest latency desirable, too. They may be this much
/// worse than it.
const LARGER_GOOD_WITHIN: f64 = 0.20;

/// Sizes just below a desirable one read more slowly by at least this share of the extra latency that smaller
/// ones usually have.
const JUST_BELOW: f64 = 0.5;

/// Writes somewhat larger than a desirable one leave parts, and one of their sizes reads more slowly by more
/// than this share of the usual extra latency of smaller ones.
const CUT_ABOVE: f64 = 0.1;

/// Latencies that differ by no more than this are constant.
const CONSTANT_WITHIN: f64 = 0.045;

/// The same for reads smaller than the paper's: a region has few kinds of pages, and single pages differ by
/// more than whole stripes.
const SMALLER_CONSTANT_WITHIN: f64 = 0.09;

/// If two standard errors reach beyond this share, a size does not share the latency of those above it.
const SURELY_CONSTANT_WITHIN: f64 = 0.06;
const SMALLER_SURELY_CONSTANT_WITHIN: f64 = 0.12;

/// Differences of this multiple of the constant's bound may come from how evenly writes lie on the channels,
/// which depends on their number of stripes, rather than from stripes that they cut.
const LAID_DIFFERENTLY_FACTOR: f64 = 2.0;

/// Standard errors that a size must differ by from those above it to end a constant stretch in a resample.
const STEP_Z_MIN: f64 = 3.5;

/// Standard errors that a difference between sizes must have: nine boundaries are looked at, and none may be
/// found by chance.
const Z_MIN: f64 = 4.0;

/// Sizes that must share one latency before it is called constant.
const CONSTANT_SIZES_MIN: usize = 3;

/// Sizes below a stripe that must differ from the sizes above it. Each size has a region of its own, and a
/// region may be faster or slower for where it lies; a stripe shows in all sizes below it.
const OTHER_SIZES_MIN: usize = 2;

const READS_MIN: usize = 12;
const RESAMPLES: u32 = 400;

#[derive(Debug)]
pub(super) struct LearnedSizes {
    pub desirable: LearnedValue,
    pub stripe: LearnedValue,
}

/// The reads of one size, by the size of the writes before.
struct Profile {
    read_bytes: u64,
    groups: Groups,
    resamples: Vec<Groups>,
}

impl Profile {
    fn constant_within(&self) -> f64 {
        if self.read_bytes == READ_BYTES { CONSTANT_WITHIN } else { SMALLER_CONSTANT_WITHIN }
    }

    fn surely_constant_within(&self) -> f64 {
        if self.read_bytes == READ_BYTES { SURELY_CONSTANT_WITHIN } else { SMALLER_SURELY_CONSTANT_WITHIN }
    }
}

pub(super) fn learn(evidence: &Evidence<'_>) -> LearnedSizes {
    let neither =
        |why: &str| LearnedSizes { desirable: undetermined(why, ""), stripe: undetermined(why, "") };
    let mut sweeps: Vec<(u64, Groups)> = evidence
        .series
        .iter()
        .filter(|series| series.trial.experiment == ExperimentName::RequestSize)
        .filter_map(|series| match &series.trial.work {
            Work::Sweep(sweep) => {
                Some((u64::from(sweep.length_bytes), Groups::new(&series.reads, Clip::ByGroup)))
            }
            Work::Load(_) => None,
        })
        .collect();
    sweeps.sort_by_key(|(read_bytes, _)| std::cmp::Reverse(*read_bytes));
    if sweeps.is_empty() {
        return neither("request-size was not run");
    }
    if !evidence.direct {
        return neither("requests went through the page cache, which hides the drive's latency");
    }
    let smallest_bytes = WRITE_BYTES_MIN.max(evidence.align_bytes);
    from_sweeps(sweeps, smallest_bytes, evidence.creation, mix_seed(evidence.seed, 0x51))
}

/// The paper's reads, which are the largest, tell the desirable sizes; all together tell the stripe.
fn from_sweeps(sweeps: Vec<(u64, Groups)>, smallest_bytes: u64, creation: &str, seed: u64) -> LearnedSizes {
    let mut random = Pcg64::seed_from_u64(seed);
    let profiles: Vec<Profile> = sweeps
        .into_iter()
        .filter(|(_, groups)| groups.groups.len() >= 3 && groups.reads_min() >= READS_MIN)
        .map(|(read_bytes, groups)| {
            let resamples = (0..RESAMPLES).map(|_| groups.resampled(&mut random)).collect();
            Profile { read_bytes, groups, resamples }
        })
        .collect();
    let Some(papers) = profiles.first().filter(|first| first.read_bytes == READ_BYTES) else {
        let why = format!("fewer than {READS_MIN} reads of each region were made");
        return LearnedSizes { desirable: undetermined(&*why, ""), stripe: undetermined(why, "") };
    };
    let text = profile_text(papers, creation);
    LearnedSizes { desirable: desirable(papers, smallest_bytes, &text), stripe: stripe(&profiles, &text) }
}

/// The tried sizes that are doublings of that at `index`, itself included: writes of these cut no stripe of
/// it, and lie as evenly.
fn multiples(groups: &Groups, index: usize) -> Vec<usize> {
    let size_at = |index: usize| groups.groups.get(index).map(|(size, _)| *size);
    let Some(size) = size_at(index) else { return Vec::new() };
    let is_doubling = |one: u64| one.is_multiple_of(size) && (one / size).is_power_of_two();
    (index..groups.groups.len()).filter(|one| size_at(*one).is_some_and(is_doubling)).collect()
}

/// The tried sizes between half and twice that at `index`, which are neither its multiples nor its half: the
/// writes that distinguish it from a size that was not tried. With the place of each: below or above.
fn neighbours(groups: &Groups, index: usize) -> (Vec<usize>, Vec<usize>) {
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let Some(size) = sizes.get(index).copied() else { return (Vec::new(), Vec::new()) };
    let between = |low: u64, high: u64| -> Vec<usize> {
        (0..sizes.len()).filter(|one| sizes.get(*one).is_some_and(|one| *one > low && *one < high)).collect()
    };
    (between(size / 2, size), between(size, 2 * size))
}

/// The smallest size whose latency is as good as the best, all its multiples being about as good.
fn first_desirable(groups: &Groups) -> Option<usize> {
    let means: Vec<f64> = groups.means().into_iter().map(|(_, mean)| mean).collect();
    let best = means.iter().copied().fold(f64::INFINITY, f64::min);
    let within =
        |index: usize, share: f64| means.get(index).is_some_and(|mean| *mean <= best * (1.0 + share));
    (0..means.len()).find(|index| {
        within(*index, GOOD_WITHIN)
            && multiples(groups, *index).into_iter().all(|one| within(one, LARGER_GOOD_WITHIN))
    })
}

/// Whether the multiples of the size at `index` share one latency: none of them differs from the others by
/// more than a little and by more than noise.
fn is_constant(groups: &Groups, index: usize, within: f64) -> bool {
    let all = multiples(groups, index);
    all.iter().all(|one| {
        let others: Vec<usize> = all.iter().copied().filter(|other| other != one).collect();
        let step = step_between(groups, *one, &others);
        others.is_empty() || step.relative.abs() <= within || step.z().abs() <= STEP_Z_MIN
    })
}

/// The smallest size that is constant in reads of all sizes: where a layout differs, it need not show in all
/// of them.
fn first_constant_of_all<'a>(
    profiles: &'a [Profile],
    groups: impl Fn(&'a Profile) -> Option<&'a Groups>,
) -> usize {
    let all: Vec<(&Groups, f64)> =
        profiles.iter().filter_map(|profile| Some((groups(profile)?, profile.constant_within()))).collect();
    let sizes = all.iter().map(|(groups, _)| groups.groups.len()).min().unwrap_or(0);
    let constant = |index: &usize| all.iter().all(|(groups, within)| is_constant(groups, *index, *within));
    (0..sizes).find(constant).unwrap_or(0)
}

fn desirable(papers: &Profile, smallest_bytes: u64, text: &str) -> LearnedValue {
    let groups = &papers.groups;
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let repeats = groups.regions_min();
    let Some(first) = first_desirable(groups) else {
        return undetermined("the largest writes read more slowly than smaller ones", text);
    };
    let answers: Vec<Option<usize>> = papers.resamples.iter().map(first_desirable).collect();
    let (confidence, interval) = agreement(&answers, &sizes, first);
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", text) };
    if confidence < CONFIDENCE_MIN {
        let why = format!(
            "only {:.0} % of the resamples lead to {}: noise hides the difference between write sizes",
            confidence * 100.0,
            bytes_text(size)
        );
        return undetermined(why, text);
    }
    if first == 0 && size > smallest_bytes {
        let why = format!("all sizes are alike from {} on, the smallest that was tried", bytes_text(size));
        return undetermined(why, text);
    }
    if first == 0 {
        if let Some(why) = hidden_differences(groups) {
            return undetermined(why, text);
        }
        let evidence = format!("all sizes alike, none is undesirable: {text}");
        return determined(size as f64, interval, confidence, evidence, Basis::of(repeats));
    }
    let larger = multiples(groups, first);
    if larger.len() < 2 {
        let why = format!(
            "latency still falls at {}, the largest size of its kind that was tried",
            bytes_text(size)
        );
        return undetermined(why, text);
    }
    let (below, above) = neighbours(groups, first);
    if below.is_empty() || above.is_empty() {
        let why = format!("no sizes just below and above {} were tried", bytes_text(size));
        return undetermined(why, text);
    }
    // Parts that a size leaves of another layout's stripes become fewer little by little as sizes grow; only
    // the true size ends them at once.
    let steps: Vec<Step> = below.iter().map(|one| step_between(groups, *one, &larger)).collect();
    let least = steps.iter().copied().min_by(|a, b| a.relative.total_cmp(&b.relative));
    let Some(step) = least else { return undetermined("no sizes", text) };
    let smaller: Vec<f64> = (0..first).map(|one| step_between(groups, one, &larger).relative).collect();
    let usual = median(&smaller).unwrap_or(0.0);
    if step.relative < GOOD_WITHIN.max(JUST_BELOW * usual) || step.z() < Z_MIN {
        return undetermined(
            format!(
                "writes a little smaller than {} read {:.0} % more slowly, at {:.1} standard errors: too little to end at this size",
                bytes_text(size),
                step.relative * 100.0,
                step.z()
            ),
            text,
        );
    }
    let cut = |one: &usize| {
        let step = step_between(groups, *one, &larger);
        step.relative > CUT_ABOVE * usual && step.z() >= Z_MIN
    };
    if !above.iter().any(cut) {
        let why = format!(
            "sizes just above {} are as good, although they are no multiples of it: the true size lies somewhere between it and the next smaller one",
            bytes_text(size)
        );
        return undetermined(why, text);
    }
    let evidence = format!("reads of smaller writes take {:.0} % longer: {text}", step.relative * 100.0);
    determined(size as f64, interval, confidence, evidence, Basis::of(repeats))
}

/// Why the sizes may differ by more than matters although they seem alike; `None` if they are alike.
fn hidden_differences(groups: &Groups) -> Option<String> {
    let errors = multiples(groups, 0).into_iter().map(|one| {
        let others: Vec<usize> = multiples(groups, 0).into_iter().filter(|other| *other != one).collect();
        2.0 * step_between(groups, one, &others).error
    });
    let widest = errors.fold(0.0, f64::max);
    (widest > LARGER_GOOD_WITHIN).then(|| {
        format!(
            "all sizes seem alike, but noise of ± {:.0} % would hide that some are undesirable",
            widest * 100.0
        )
    })
}

fn stripe(profiles: &[Profile], text: &str) -> LearnedValue {
    let Some(papers) = profiles.first() else { return undetermined("no sizes", text) };
    let sizes: Vec<u64> = papers.groups.groups.iter().map(|(size, _)| *size).collect();
    let first = first_constant_of_all(profiles, |profile| Some(&profile.groups));
    if first == 0 {
        return undetermined("latency is the same for all write sizes, which tells nothing of stripes", text);
    }
    let constant = multiples(&papers.groups, first);
    if constant.len() < CONSTANT_SIZES_MIN {
        return undetermined("latency does not become constant within the sizes measured", text);
    }
    let differs =
        |index: usize| profiles.iter().any(|profile| differs_from_constant(profile, index, &constant));
    if first < OTHER_SIZES_MIN || !(0..first).all(differs) {
        return undetermined(
            "single write sizes stand out, and smaller ones do not: places of the drive that differ, rather than stripes",
            text,
        );
    }
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", text) };
    if let Some(why) = rival(profiles, first, &constant) {
        return undetermined(why, text);
    }
    // The reads that show the step most clearly speak for it.
    let step_of = |profile: &Profile| step_between(&profile.groups, first - 1, &constant);
    let clearest = profiles.iter().max_by(|a, b| step_of(a).z().abs().total_cmp(&step_of(b).z().abs()));
    let Some(clearest) = clearest else { return undetermined("no sizes", text) };
    let step = step_of(clearest);
    let answers: Vec<Option<usize>> = (0..papers.resamples.len())
        .map(|index| Some(first_constant_of_all(profiles, |profile| profile.resamples.get(index))))
        .collect();
    let (confidence, interval) = agreement(&answers, &sizes, first);
    if confidence < CONFIDENCE_MIN || step.z().abs() < Z_MIN {
        let why = format!(
            "latency seems constant from {} on, but only {:.0} % of the resamples agree and the step of {:.0} % is {:.1} standard errors",
            bytes_text(size),
            confidence * 100.0,
            step.relative * 100.0,
            step.z().abs()
        );
        return undetermined(why, text);
    }
    // Multiples may differ by a little that noise hides; then the stripe may be larger.
    let unclear = |one: &usize| {
        let others: Vec<usize> = constant.iter().copied().filter(|other| other != one).collect();
        profiles.iter().any(|profile| {
            // Regions of sizes that cut stripes scatter more: where the stripes lie differs.
            let step = step_between(&profile.groups.with_errors_of(&constant), *one, &others);
            step.relative.abs() + 2.0 * step.error > profile.surely_constant_within()
        })
    };
    if let Some(doubtful) = constant.iter().copied().find(unclear).and_then(|one| sizes.get(one)) {
        let why = format!(
            "latency seems constant from {} on, but whether that of {} differs is hidden by noise",
            bytes_text(size),
            bytes_text(*doubtful)
        );
        return undetermined(why, text);
    }
    let evidence = format!(
        "latency is constant within {:.0} % for {} and its multiples and that of {} reads {:.0} % {} just below: {text}",
        clearest.constant_within() * 100.0,
        bytes_text(size),
        bytes_text(clearest.read_bytes),
        step.relative.abs() * 100.0,
        if step.relative > 0.0 { "higher" } else { "lower" }
    );
    let repeats = profiles.iter().map(|profile| profile.groups.regions_min()).min().unwrap_or(0);
    determined(size as f64, interval, confidence, evidence, Basis::of(repeats))
}

/// Why a size that was not tried, or a part of the size at `first`, may be the stripe as well.
fn rival(profiles: &[Profile], first: usize, constant: &[usize]) -> Option<String> {
    let groups = &profiles.first()?.groups;
    let size = |index: usize| bytes_text(groups.groups.get(index).map_or(0, |(size, _)| *size));
    // Writes that cut stripes differ from writes of whole ones, whichever is larger.
    let (below, above) = neighbours(groups, first);
    let surely = |index: &usize| profiles.iter().any(|profile| surely_differs(profile, *index, constant));
    if below.is_empty() || above.is_empty() || !below.iter().chain(&above).all(surely) {
        return Some(format!(
            "latency seems constant from {} on, but not all sizes just below and above that are no multiples of it differ from its multiples",
            size(first)
        ));
    }
    let smaller = smaller_stripe(profiles, first, constant)?;
    Some(format!(
        "latency seems constant from {} on, but that of {} and all of its multiples differs little from it, and sizes between those differ far more: either may be the stripe",
        size(first),
        size(smaller)
    ))
}

/// A part of the size at `first` that may be the stripe as well: it and all of its multiples, odd ones too,
/// are nearly as constant as the sizes at `constant`, and its neighbours, which would cut it, are not. Then
/// the constant sizes may be those of an even number of stripes.
fn smaller_stripe(profiles: &[Profile], first: usize, constant: &[usize]) -> Option<usize> {
    let groups = &profiles.first()?.groups;
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let is_multiple = |one: &usize, part: u64| sizes.get(*one).is_some_and(|size| size.is_multiple_of(part));
    let alike = |index: usize| {
        profiles.iter().all(|profile| {
            let step = step_between(&profile.groups, index, constant);
            step.relative.abs() <= LAID_DIFFERENTLY_FACTOR * profile.constant_within()
        })
    };
    let cuts = |index: usize| {
        profiles.iter().any(|profile| {
            let step = step_between(&profile.groups, index, constant);
            step.relative.abs() > LAID_DIFFERENTLY_FACTOR * profile.constant_within()
                && step.z().abs() >= Z_MIN
        })
    };
    (0..first).find(|index| {
        let Some(part) = sizes.get(*index).copied() else { return false };
        let (below, above) = neighbours(groups, *index);
        is_multiple(&first, part)
            && (*index..sizes.len()).filter(|one| is_multiple(one, part)).all(alike)
            && !below.is_empty()
            && !above.is_empty()
            && below.into_iter().chain(above).all(cuts)
    })
}

/// Whether the size at `index` has a latency of its own, rather than that of the sizes at `constant`.
fn differs_from_constant(profile: &Profile, index: usize, constant: &[usize]) -> bool {
    step_between(&profile.groups, index, constant).relative.abs() > profile.constant_within()
}

/// The same, but beyond chance.
fn surely_differs(profile: &Profile, index: usize, constant: &[usize]) -> bool {
    let step = step_between(&profile.groups, index, constant);
    step.relative.abs() > profile.constant_within() && step.z().abs() >= Z_MIN
}

/// How much slower one size is than others.
#[derive(Clone, Copy, Debug)]
struct Step {
    relative: f64,
    /// Standard error of it.
    error: f64,
}

impl Step {
    fn z(self) -> f64 {
        if self.error > 0.0 { self.relative / self.error } else { f64::INFINITY * self.relative }
    }
}

/// The step from the sizes at `others`, with equal weights, to that at `index`; none without others.
fn step_between(groups: &Groups, index: usize, others: &[usize]) -> Step {
    let of = |index: usize| {
        let (_, values) = groups.groups.get(index)?;
        Some((mean(values)?, groups.squared_error(index)))
    };
    let all: Vec<(f64, f64)> = others.iter().filter_map(|one| of(*one)).collect();
    let count = all.len() as f64;
    let (Some((own, own_error)), true) = (of(index), !all.is_empty()) else {
        return Step { relative: 0.0, error: f64::INFINITY };
    };
    let common = all.iter().map(|(mean, _)| mean).sum::<f64>() / count;
    let common_error = all.iter().map(|(_, error)| error).sum::<f64>() / count / count;
    Step { relative: own / common - 1.0, error: (own_error + common_error).sqrt() / common }
}

/// Share of the resamples that give the same index, and the sizes between which they give 95 % of their
/// answers.
fn agreement(answers: &[Option<usize>], sizes: &[u64], found: usize) -> (f64, (f64, f64)) {
    let same = answers.iter().filter(|answer| **answer == Some(found)).count();
    let values: Vec<f64> =
        answers.iter().flatten().filter_map(|index| sizes.get(*index)).map(|size| *size as f64).collect();
    let at = |share: f64| crate::stats::quantile(&values, share).unwrap_or(0.0);
    (same as f64 / answers.len().max(1) as f64, (at(0.025), at(0.975)))
}

/// Such as `1 MiB reads by write size, in 2 regions of each: 1 KiB 812 µs, ...`, and how the regions were
/// created.
fn profile_text(papers: &Profile, creation: &str) -> String {
    let groups = &papers.groups;
    let latencies: Vec<String> = groups
        .means()
        .iter()
        .map(|(size, mean)| format!("{} {:.0} µs", bytes_text(*size), mean * groups.typical_us))
        .collect();
    let remark = if creation.is_empty() { String::new() } else { format!("; {creation}") };
    let regions = groups.regions_min();
    format!("1 MiB reads by write size, in {regions} regions of each: {}{remark}", latencies.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::reads;
    use super::*;
    use crate::trial::{doublings, doublings_and_between};
    use flashgrain_model::Estimate;

    const KIB: u64 = 1 << 10;

    fn sizes() -> Vec<u64> {
        doublings_and_between(KIB, 1024 * KIB, 4 * KIB)
    }

    fn learned(seed: u64, latency_us: impl Fn(u64) -> f64) -> LearnedSizes {
        let reads = reads(&sizes(), 8, 75, seed, latency_us);
        papers_only(&reads, seed)
    }

    /// Latency after writes of `size` on a drive that cuts them at multiples of `stripe`: parts below
    /// `desirable` read as slowly as `small`, parts of less than a stripe like `part`, whole stripes like
    /// `whole`.
    fn cut(size: u64, stripe: u64, desirable: u64, [small, part, whole]: [f64; 3]) -> f64 {
        let borders =
            |step: u64| (0..=stripe * size).step_by(step as usize).filter(move |at| *at <= stripe * size);
        let (mut ends, mut sum) = (std::collections::BTreeSet::new(), 0.0);
        ends.extend(borders(size));
        ends.extend(borders(stripe));
        let ends: Vec<u64> = ends.into_iter().collect();
        for pair in ends.windows(2) {
            let bytes = pair[1] - pair[0];
            let cost = if bytes < desirable {
                small
            } else if bytes < stripe {
                part
            } else {
                whole
            };
            sum += bytes as f64 * cost;
        }
        sum / (stripe * size) as f64
    }

    /// [`cut`] in units of 1 KiB.
    fn cut_kib(size: u64, stripe: u64, desirable: u64, latencies: [f64; 3]) -> f64 {
        cut(size / KIB, stripe, desirable, latencies)
    }

    /// From 1 MiB reads alone.
    fn papers_only(reads: &[crate::series::SweepRead], seed: u64) -> LearnedSizes {
        from_sweeps(vec![(READ_BYTES, Groups::new(reads, Clip::ByGroup))], WRITE_BYTES_MIN, "", seed)
    }

    fn kib(value: &LearnedValue) -> Option<f64> {
        value.estimate.value().map(|bytes| bytes / 1024.0)
    }

    /// The drives of the hidden-parameters paper's Table 1, with latencies of the shapes that its Figure 3
    /// describes.
    #[test]
    fn the_papers_drives_are_recognised() {
        let mut large_steps = 0;
        for seed in 0..20 {
            // SSD-S: smallest latency from 32 KiB on, constant from 64 KiB on. The step between them is so
            // small that 1 MiB reads alone cannot tell the effect of 96 KiB writes: there is no stripe rather
            // than a wrong one.
            let s = learned(seed, |size| cut_kib(size, 64, 32, [1500.0, 560.0, 600.0]));
            assert_eq!(kib(&s.desirable), Some(32.0), "{seed}: {:?}", s.desirable);
            assert!(kib(&s.stripe).is_none_or(|stripe| stripe == 64.0), "{seed}: {:?}", s.stripe);
            // SSD-T and SSD-M: both from 64 KiB on.
            let t = learned(seed, |size| cut_kib(size, 64, 64, [2000.0, 0.0, 1000.0]));
            assert_eq!(kib(&t.desirable), Some(64.0), "{seed}: {:?}", t.desirable);
            assert!(kib(&t.stripe).is_none_or(|stripe| stripe == 64.0), "{seed}: {:?}", t.stripe);
            large_steps += u32::from(kib(&t.stripe).is_some());
            // SSD-I: all sizes alike.
            let i = learned(seed, |_| 500.0);
            assert_eq!((kib(&i.desirable), kib(&i.stripe)), (Some(1.0), None), "{seed}: {:?}", i.desirable);
            assert!(i.desirable.evidence.contains("none is undesirable"), "{}", i.desirable.evidence);
        }
        assert!(large_steps >= 17, "{large_steps} of 20");
    }

    #[test]
    fn sizes_that_are_all_alike_say_nothing_where_smaller_ones_were_not_tried() {
        let sizes: Vec<u64> = doublings(32, 1024).into_iter().map(|kib| kib << 10).collect();
        let reads = reads(&sizes, 40, 1, 1, |_| 500.0);
        let found = papers_only(&reads, 1);
        let Estimate::Undetermined { why } = &found.desirable.estimate else { panic!("{found:?}") };
        assert!(why.contains("from 32 KiB on, the smallest that was tried"), "{why}");
    }

    /// Whatever the noise, it must not make a write size look undesirable, nor a stripe.
    #[test]
    fn noise_alone_finds_nothing() {
        let mut false_finds = 0;
        for seed in 0..400 {
            let few = reads(&sizes(), 3, 5, seed, |_| 800.0);
            let noise = papers_only(&few, seed);
            let wrong = kib(&noise.desirable).is_some_and(|size| size > 1.0) || kib(&noise.stripe).is_some();
            false_finds += u32::from(wrong);
        }
        assert!(false_finds <= 4, "{false_finds} of 400");
    }

    /// Reads of which each takes between a seventh and twice its time: sizes may differ, and none is learned.
    #[test]
    fn noise_that_would_hide_a_difference_makes_no_size_desirable() {
        for seed in 0..10 {
            let mut noisy = reads(&sizes(), 4, 5, seed, |_| 800.0);
            let mut random = Pcg64::seed_from_u64(seed + 1000);
            noisy.iter_mut().for_each(|read| {
                read.latency_us *= 1.0 + 0.85 * (2.0 * rand::RngExt::random::<f64>(&mut random) - 1.0)
            });
            let found = papers_only(&noisy, seed);
            assert_eq!(kib(&found.desirable), None, "{seed}: {:?}", found.desirable);
        }
    }

    #[test]
    fn a_difference_at_the_edge_of_what_matters_is_left_open() {
        let mut open = 0;
        for seed in 0..20 {
            let edge = |size: u64| cut_kib(size, 32, 32, [1100.0, 0.0, 1000.0]);
            open += u32::from(kib(&learned(seed, edge).desirable).is_none());
        }
        assert!(open >= 8, "{open} of 20");
    }

    /// Seen on a virtual disk: the regions of 8 and 16 KiB lay on a faster place.
    #[test]
    fn a_region_on_a_faster_place_makes_no_stripe() {
        for seed in 0..20 {
            let place = learned(seed, |size| match size / KIB {
                8 => 424.0,
                16 => 435.0,
                _ => 453.0,
            });
            assert_eq!(kib(&place.stripe), None, "{seed}: {:?}", place.stripe);
            let smallest = learned(seed, |size| if size == KIB { 500.0 } else { 453.0 });
            assert_eq!(kib(&smallest.stripe), None, "{seed}: {:?}", smallest.stripe);
        }
    }

    /// A drive of many channels reads 1 MiB equally fast from parts of 32 and of 64 KiB, but not 64 KiB.
    #[test]
    fn smaller_reads_show_a_stripe_that_large_ones_hide() {
        for seed in 0..20 {
            // Parts of 32 KiB read 1 MiB as fast as those of 64 KiB, and 64 KiB faster.
            let large = |size| cut_kib(size, 64, 32, [2000.0, 1000.0, 1000.0]);
            let few = |size| cut_kib(size, 64, 32, [400.0, 120.0, 200.0]);
            let large = reads(&sizes(), 8, 75, seed, large);
            let few = reads(&sizes(), 8, 75, seed + 100, few);
            let sweeps = [(READ_BYTES, large), (64 * KIB, few)];
            let groups = sweeps.map(|(bytes, reads)| (bytes, Groups::new(&reads, Clip::ByGroup)));
            let found = from_sweeps(groups.into(), WRITE_BYTES_MIN, "", seed);
            assert_eq!(kib(&found.desirable), Some(32.0), "{seed}: {:?}", found.desirable);
            assert_eq!(kib(&found.stripe), Some(64.0), "{seed}: {:?}", found.stripe);
        }
    }

    #[test]
    fn a_step_at_the_very_end_makes_no_stripe() {
        let end = learned(1, |size| cut_kib(size, 384, 384, [1000.0, 0.0, 500.0]));
        assert_eq!((kib(&end.desirable), kib(&end.stripe)), (Some(384.0), None));
        // The largest size tried: larger ones may be better still.
        for stripe in [640, 768, 1024] {
            let end = learned(1, |size| cut_kib(size, stripe, stripe, [1000.0, 0.0, 500.0]));
            assert_eq!(
                (kib(&end.desirable), kib(&end.stripe)),
                (None, None),
                "{stripe}: {:?}",
                end.desirable
            );
        }
    }

    /// Stripes of 40, 48 and 96 KiB are found, and those of sizes that are not tried make no other size
    /// credible.
    #[test]
    fn stripes_that_are_no_power_of_two_are_found_or_left_open() {
        for seed in 0..5 {
            for stripe in [40, 48, 80, 96] {
                let found = learned(seed, |size| cut_kib(size, stripe, stripe, [2500.0, 0.0, 1000.0]));
                let expected = Some(stripe as f64);
                assert_eq!(
                    (kib(&found.desirable), kib(&found.stripe)),
                    (expected, expected),
                    "{stripe}: {found:?}"
                );
            }
            for stripe in [28, 36, 44, 56, 72, 88, 112, 144, 224] {
                let found = learned(seed, |size| cut_kib(size, stripe, stripe, [2500.0, 0.0, 1000.0]));
                assert_eq!((kib(&found.desirable), kib(&found.stripe)), (None, None), "{stripe}: {found:?}");
            }
        }
    }

    /// Mean latencies of 1 MiB, 256, 64 and 16 KiB reads after writes of [`sizes`], µs, on a drive of stripes
    /// of 128 KiB on 16 dies. Odd numbers of stripes lie more evenly on its channels than even ones.
    const ODD_AND_EVEN_STRIPES: [(u64, [f64; 24]); 4] = [
        (
            READ_BYTES,
            [
                2276.0, 1839.0, 1740.0, 5022.0, 1969.0, 1777.0, 1936.0, 1814.0, 1768.0, 2306.0, 1933.0,
                1774.0, 3151.0, 6226.0, 479.0, 1499.0, 1296.0, 521.0, 1121.0, 485.0, 521.0, 485.0, 478.0,
                521.0,
            ],
        ),
        (
            256 * KIB,
            [
                650.0, 564.0, 507.0, 1330.0, 583.0, 516.0, 593.0, 558.0, 514.0, 650.0, 686.0, 521.0, 920.0,
                1639.0, 151.0, 606.0, 435.0, 161.0, 335.0, 153.0, 161.0, 153.0, 151.0, 161.0,
            ],
        ),
        (
            64 * KIB,
            [
                215.0, 201.0, 199.0, 399.0, 227.0, 200.0, 214.0, 244.0, 303.0, 322.0, 355.0, 484.0, 421.0,
                501.0, 114.0, 301.0, 227.0, 114.0, 196.0, 115.0, 114.0, 113.0, 114.0, 114.0,
            ],
        ),
        (
            16 * KIB,
            [
                107.0, 112.0, 101.0, 172.0, 146.0, 198.0, 160.0, 180.0, 200.0, 166.0, 170.0, 172.0, 191.0,
                197.0, 111.0, 148.0, 131.0, 113.0, 126.0, 112.0, 112.0, 111.0, 112.0, 113.0,
            ],
        ),
    ];

    #[test]
    fn multiples_that_lie_differently_make_no_larger_stripe() {
        for seed in 0..5 {
            let sweep = |(bytes, means): &(u64, [f64; 24])| {
                let mean_of = |size| means[sizes().iter().position(|one| *one == size).unwrap()];
                let reads = reads(&sizes(), 8, 75, seed + bytes, mean_of);
                (*bytes, Groups::new(&reads, Clip::ByGroup))
            };
            let sweeps: Vec<(u64, Groups)> = ODD_AND_EVEN_STRIPES.iter().map(sweep).collect();
            let found = from_sweeps(sweeps, WRITE_BYTES_MIN, "", seed);
            assert_eq!(kib(&found.desirable), Some(128.0), "{seed}: {:?}", found.desirable);
            assert!(kib(&found.stripe).is_none_or(|stripe| stripe == 128.0), "{seed}: {:?}", found.stripe);
        }
    }

    #[test]
    fn too_few_reads_are_not_enough() {
        let few = reads(&sizes(), 1, 3, 1, |_| 800.0);
        let none = papers_only(&few, 1);
        assert!(none.desirable.estimate.value().is_none() && none.desirable.confidence == 0.0);
    }
}
