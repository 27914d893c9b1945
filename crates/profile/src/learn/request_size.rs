//! Desirable write sizes and the stripe size from the request-size profile (hidden-parameters paper §3.1.1).

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::groups::{Clip, Groups, squared_error_of_mean};
use super::{Evidence, LEAST_CONFIDENCE, determined, undetermined};
use crate::config::ExperimentName;
use crate::experiment::request_size::READ_BYTES;
use crate::schema::LearnedValue;
use crate::stats::{mean, mix_seed};
use crate::trial::{Work, bytes_text};

/// Latencies within this of the smallest count as equally good. A write size that costs its readers less is not worth avoiding.
const GOOD_WITHIN: f64 = 0.10;

/// The paper calls all sizes above the one with the smallest latency desirable, too. They may be this much worse than it.
const LARGER_GOOD_WITHIN: f64 = 0.20;

/// Latencies that differ by no more than this are constant.
const CONSTANT_WITHIN: f64 = 0.045;

/// The same for reads smaller than the paper's: a region has few kinds of pages, and single pages differ by more than whole stripes.
const SMALLER_CONSTANT_WITHIN: f64 = 0.09;

/// What two standard errors must not reach beyond for a size to share the latency of those above it.
const SURELY_CONSTANT_WITHIN: f64 = 0.06;
const SMALLER_SURELY_CONSTANT_WITHIN: f64 = 0.12;

/// Standard errors by which a size must differ from those above it to end a constant stretch in a resample.
const LEAST_STEP_Z: f64 = 3.5;

/// Standard errors that a difference between sizes must have: nine boundaries are looked at, and none may be found by chance.
const LEAST_Z: f64 = 4.0;

/// Sizes that must share one latency before it is called constant.
const LEAST_CONSTANT_SIZES: usize = 3;

/// Sizes below a stripe that must differ from the sizes above it. Each size has a region of its own, and a region may be faster or slower for
/// where it lies; a stripe shows in all sizes below it.
const LEAST_OTHER_SIZES: usize = 2;

const LEAST_READS: usize = 12;
const RESAMPLES: u32 = 400;

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
    from_sweeps(sweeps, evidence.creation, mix_seed(evidence.seed, 0x51))
}

/// The paper's reads, which are the largest, tell the desirable sizes; all together tell the stripe.
fn from_sweeps(sweeps: Vec<(u64, Groups)>, creation: &str, seed: u64) -> LearnedSizes {
    let mut random = Pcg64::seed_from_u64(seed);
    let profiles: Vec<Profile> = sweeps
        .into_iter()
        .filter(|(_, groups)| groups.groups.len() >= 3 && groups.least_reads() >= LEAST_READS)
        .map(|(read_bytes, groups)| {
            let resamples = (0..RESAMPLES).map(|_| groups.resampled(&mut random)).collect();
            Profile { read_bytes, groups, resamples }
        })
        .collect();
    let Some(papers) = profiles.first().filter(|first| first.read_bytes == READ_BYTES) else {
        let why = format!("fewer than {LEAST_READS} reads of each region were made");
        return LearnedSizes { desirable: undetermined(&*why, ""), stripe: undetermined(why, "") };
    };
    let text = profile_text(papers, creation);
    LearnedSizes { desirable: desirable(papers, &text), stripe: stripe(&profiles, &text) }
}

/// The smallest size whose latency is as good as the best, all larger ones being about as good.
fn first_desirable(groups: &Groups) -> Option<usize> {
    let means: Vec<f64> = groups.means().into_iter().map(|(_, mean)| mean).collect();
    let best = means.iter().copied().fold(f64::INFINITY, f64::min);
    let worse = means.iter().rposition(|mean| *mean > best * (1.0 + LARGER_GOOD_WITHIN));
    let candidates = worse.map_or(0, |index| index + 1)..means.len();
    candidates
        .into_iter()
        .find(|index| means.get(*index).is_some_and(|mean| *mean <= best * (1.0 + GOOD_WITHIN)))
}

/// The smallest size from which latency is constant: from the largest size downwards, the first that differs from all above it, by more than
/// a little and by more than noise, ends it.
fn first_constant(groups: &Groups, within: f64) -> usize {
    let differs = |from: &usize| {
        let step = step_at(groups, *from);
        step.relative.abs() > within && step.z().abs() > LEAST_STEP_Z
    };
    (1..groups.groups.len()).rev().find(differs).unwrap_or(0)
}

/// The same for reads of all sizes together: where a layout differs, it need not show in all of them.
fn first_constant_of_all<'a>(
    profiles: &'a [Profile],
    groups: impl Fn(&'a Profile) -> Option<&'a Groups>,
) -> usize {
    let of_one = |profile| Some(first_constant(groups(profile)?, Profile::constant_within(profile)));
    profiles.iter().filter_map(of_one).max().unwrap_or(0)
}

fn desirable(papers: &Profile, text: &str) -> LearnedValue {
    let groups = &papers.groups;
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let Some(first) = first_desirable(groups) else {
        return undetermined("the largest writes read more slowly than smaller ones", text);
    };
    let answers: Vec<Option<usize>> = papers.resamples.iter().map(first_desirable).collect();
    let (confidence, interval) = agreement(&answers, &sizes, first);
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", text) };
    if confidence < LEAST_CONFIDENCE {
        let why = format!(
            "only {:.0} % of the resamples lead to {}: noise hides the difference between write sizes",
            confidence * 100.0,
            bytes_text(size)
        );
        return undetermined(why, text);
    }
    if first == 0 {
        let evidence = format!("all sizes alike, none is undesirable: {text}");
        return determined(size as f64, interval, confidence, evidence);
    }
    let step = step_at(groups, first);
    if step.z() < LEAST_Z {
        return undetermined(
            format!(
                "smaller writes read {:.0} % more slowly, but at {:.1} standard errors that may be chance",
                step.relative * 100.0,
                step.z()
            ),
            text,
        );
    }
    let evidence = format!("reads of smaller writes take {:.0} % longer: {text}", step.relative * 100.0);
    determined(size as f64, interval, confidence, evidence)
}

fn stripe(profiles: &[Profile], text: &str) -> LearnedValue {
    let Some(papers) = profiles.first() else { return undetermined("no sizes", text) };
    let sizes: Vec<u64> = papers.groups.groups.iter().map(|(size, _)| *size).collect();
    let first = first_constant_of_all(profiles, |profile| Some(&profile.groups));
    if first == 0 {
        return undetermined("latency is the same for all write sizes, which tells nothing of stripes", text);
    }
    if sizes.len() - first < LEAST_CONSTANT_SIZES {
        return undetermined("latency does not become constant within the sizes measured", text);
    }
    let differs = |index: usize| profiles.iter().any(|profile| differs_from_constant(profile, index, first));
    if first < LEAST_OTHER_SIZES || !(0..first).all(differs) {
        return undetermined(
            "single write sizes stand out, and smaller ones do not: places of the drive that differ, rather than stripes",
            text,
        );
    }
    // The reads in which the step shows most clearly speak for it.
    let clearest = profiles
        .iter()
        .filter(|profile| first_constant(&profile.groups, profile.constant_within()) == first)
        .max_by(|a, b| step_at(&a.groups, first).z().abs().total_cmp(&step_at(&b.groups, first).z().abs()));
    let Some(clearest) = clearest else { return undetermined("no sizes", text) };
    let step = step_at(&clearest.groups, first);
    let answers: Vec<Option<usize>> = (0..papers.resamples.len())
        .map(|index| Some(first_constant_of_all(profiles, |profile| profile.resamples.get(index))))
        .collect();
    let (confidence, interval) = agreement(&answers, &sizes, first);
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", text) };
    if confidence < LEAST_CONFIDENCE || step.z().abs() < LEAST_Z {
        let why = format!(
            "latency seems constant from {} on, but only {:.0} % of the resamples agree and the step of {:.0} % is {:.1} standard errors",
            bytes_text(size),
            confidence * 100.0,
            step.relative * 100.0,
            step.z().abs()
        );
        return undetermined(why, text);
    }
    // Sizes above may differ by a little that noise hides; then the stripe may be larger.
    let unclear = |from: &usize| {
        profiles.iter().any(|profile| {
            let step = step_at(&profile.groups, *from);
            step.relative.abs() + 2.0 * step.error > profile.surely_constant_within()
        })
    };
    if let Some(doubtful) = (first + 1..sizes.len()).rev().find(unclear).and_then(|from| sizes.get(from)) {
        let why = format!(
            "latency seems constant from {} on, but whether it still changes below {} is hidden by noise",
            bytes_text(size),
            bytes_text(*doubtful)
        );
        return undetermined(why, text);
    }
    let evidence = format!(
        "latency is constant within {:.0} % from {} on and that of {} reads {:.0} % {} just below: {text}",
        clearest.constant_within() * 100.0,
        bytes_text(size),
        bytes_text(clearest.read_bytes),
        step.relative.abs() * 100.0,
        if step.relative > 0.0 { "higher" } else { "lower" }
    );
    determined(size as f64, interval, confidence, evidence)
}

/// Whether the size at `index` has a latency of its own, rather than that of the sizes from `first` on.
fn differs_from_constant(profile: &Profile, index: usize, first: usize) -> bool {
    let means: Vec<f64> = profile.groups.means().into_iter().map(|(_, mean)| mean).collect();
    let constant = means.get(first..).and_then(mean);
    let own = means.get(index).copied();
    own.zip(constant).is_some_and(|(own, constant)| (own / constant - 1.0).abs() > profile.constant_within())
}

/// How much slower one size is than those above it.
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

/// The step from the sizes from `first` on down to the one below them; none below the smallest.
fn step_at(groups: &Groups, first: usize) -> Step {
    let values = |index: usize| groups.groups.get(index).map(|(_, values)| values.as_slice());
    let above: Vec<&[f64]> = (first..groups.groups.len()).filter_map(values).collect();
    let above = above.concat();
    let below = first.checked_sub(1).and_then(values).unwrap_or_default();
    let (Some(mean_below), Some(mean_above)) = (mean(below), mean(&above)) else {
        return Step { relative: 0.0, error: f64::INFINITY };
    };
    let error = (squared_error_of_mean(below) + squared_error_of_mean(&above)).sqrt();
    Step { relative: mean_below / mean_above - 1.0, error: error / mean_above }
}

/// Share of the resamples that give the same index, and the sizes between which they give 95 % of their answers.
fn agreement(answers: &[Option<usize>], sizes: &[u64], found: usize) -> (f64, (f64, f64)) {
    let same = answers.iter().filter(|answer| **answer == Some(found)).count();
    let values: Vec<f64> =
        answers.iter().flatten().filter_map(|index| sizes.get(*index)).map(|size| *size as f64).collect();
    let at = |share: f64| crate::stats::quantile(&values, share).unwrap_or(0.0);
    (same as f64 / answers.len().max(1) as f64, (at(0.025), at(0.975)))
}

/// Such as `1 MiB reads take 812 µs behind 1 KiB writes, ...; regions of 25 MiB with one flush behind each region`.
fn profile_text(papers: &Profile, creation: &str) -> String {
    let groups = &papers.groups;
    let latencies: Vec<String> = groups
        .means()
        .iter()
        .map(|(size, mean)| format!("{} {:.0} µs", bytes_text(*size), mean * groups.typical_us))
        .collect();
    let behind = if creation.is_empty() { String::new() } else { format!("; {creation}") };
    format!("1 MiB reads by write size: {}{behind}", latencies.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::reads;
    use super::*;
    use crate::trial::doublings;

    const KIB: u64 = 1 << 10;

    fn learned(seed: u64, latency_us: impl Fn(u64) -> f64) -> LearnedSizes {
        let reads = reads(&doublings(KIB, 512 * KIB), 8, 75, seed, latency_us);
        papers_only(&reads, seed)
    }

    /// From 1 MiB reads alone.
    fn papers_only(reads: &[crate::series::SweepRead], seed: u64) -> LearnedSizes {
        from_sweeps(vec![(READ_BYTES, Groups::new(reads, Clip::ByGroup))], "", seed)
    }

    fn kib(value: &LearnedValue) -> Option<f64> {
        value.estimate.value().map(|bytes| bytes / 1024.0)
    }

    /// The drives of the hidden-parameters paper's Table 1, with latencies of the shapes that its Figure 3 describes.
    #[test]
    fn the_papers_drives_are_recognised() {
        let (mut small_steps, mut large_steps) = (0, 0);
        for seed in 0..40 {
            // SSD-S: smallest latency from 32 KiB on, constant from 64 KiB on. The step between them is small; where noise hides it, there is no
            // stripe rather than a wrong one.
            let s = learned(seed, |size| match size / KIB {
                ..=4 => 1500.0,
                8 => 1200.0,
                16 => 900.0,
                32 => 560.0,
                _ => 600.0,
            });
            assert_eq!(kib(&s.desirable), Some(32.0), "{seed}: {:?}", s.desirable);
            assert!(kib(&s.stripe).is_none_or(|stripe| stripe == 64.0), "{seed}: {:?}", s.stripe);
            small_steps += u32::from(kib(&s.stripe).is_some());
            // SSD-T and SSD-M: both from 64 KiB on.
            let t = learned(seed, |size| if size < 64 * KIB { 2000.0 - size as f64 / 100.0 } else { 1000.0 });
            assert_eq!(kib(&t.desirable), Some(64.0), "{seed}: {:?}", t.desirable);
            assert!(kib(&t.stripe).is_none_or(|stripe| stripe == 64.0), "{seed}: {:?}", t.stripe);
            large_steps += u32::from(kib(&t.stripe).is_some());
            // SSD-I: all sizes alike.
            let i = learned(seed, |_| 500.0);
            assert_eq!((kib(&i.desirable), kib(&i.stripe)), (Some(1.0), None), "{seed}: {:?}", i.desirable);
            assert!(i.desirable.evidence.contains("none is undesirable"), "{}", i.desirable.evidence);
        }
        assert!(small_steps >= 20 && large_steps >= 34, "{small_steps} and {large_steps} of 40");
    }

    /// Whatever the noise, it must not make a write size look undesirable, nor a stripe.
    #[test]
    fn noise_alone_finds_nothing() {
        let mut false_finds = 0;
        for seed in 0..400 {
            let few = reads(&doublings(KIB, 512 * KIB), 3, 5, seed, |_| 800.0);
            let noise = papers_only(&few, seed);
            let wrong = kib(&noise.desirable).is_some_and(|size| size > 1.0) || kib(&noise.stripe).is_some();
            false_finds += u32::from(wrong);
        }
        assert!(false_finds <= 4, "{false_finds} of 400");
    }

    #[test]
    fn a_difference_at_the_edge_of_what_matters_is_left_open() {
        let mut open = 0;
        for seed in 0..20 {
            let edge = |size: u64| if size < 32 * KIB { 1100.0 } else { 1000.0 };
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
            let sizes = doublings(KIB, 512 * KIB);
            let small = |size: u64| if size < 32 * KIB { 2.0 } else { 1.0 };
            let large = reads(&sizes, 8, 75, seed, |size| 1000.0 * small(size));
            let few =
                reads(
                    &sizes,
                    8,
                    75,
                    seed + 100,
                    |size| {
                        if size == 32 * KIB { 120.0 } else { 200.0 * small(size) }
                    },
                );
            let sweeps = [(READ_BYTES, large), (64 * KIB, few)];
            let groups = sweeps.map(|(bytes, reads)| (bytes, Groups::new(&reads, Clip::ByGroup)));
            let found = from_sweeps(groups.into(), "", seed);
            assert_eq!(kib(&found.desirable), Some(32.0), "{seed}: {:?}", found.desirable);
            assert_eq!(kib(&found.stripe), Some(64.0), "{seed}: {:?}", found.stripe);
        }
    }

    #[test]
    fn a_step_at_the_very_end_makes_no_stripe() {
        let end = learned(1, |size| if size < 256 * KIB { 1000.0 } else { 500.0 });
        assert_eq!((kib(&end.desirable), kib(&end.stripe)), (Some(256.0), None));
    }

    #[test]
    fn too_few_reads_are_not_enough() {
        let few = reads(&doublings(KIB, 512 * KIB), 1, 3, 1, |_| 800.0);
        let none = papers_only(&few, 1);
        assert!(none.desirable.estimate.value().is_none() && none.desirable.confidence == 0.0);
    }
}
