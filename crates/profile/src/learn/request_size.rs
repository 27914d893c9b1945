//! Desirable write sizes and the stripe size from the request-size profile (hidden-parameters paper §3.1.1).

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::groups::{Groups, z_score};
use super::{Evidence, LEAST_CONFIDENCE, determined, undetermined};
use crate::config::ExperimentName;
use crate::schema::LearnedValue;
use crate::stats::{mean, mix_seed};
use crate::trial::bytes_text;

/// Latencies within this of the smallest count as equally good. A write size that costs its readers less is not worth avoiding.
const GOOD_WITHIN: f64 = 0.10;

/// Latencies that differ by no more than this are constant.
const CONSTANT_WITHIN: f64 = 0.05;

/// Standard errors that a difference between sizes must have: nine boundaries are looked at, and none may be found by chance.
const LEAST_Z: f64 = 4.0;

/// Sizes that must share one latency before it is called constant.
const LEAST_CONSTANT_SIZES: usize = 3;

const LEAST_READS: usize = 12;
const RESAMPLES: u32 = 400;

pub(super) struct LearnedSizes {
    pub desirable: LearnedValue,
    pub stripe: LearnedValue,
}

pub(super) fn learn(evidence: &Evidence<'_>) -> LearnedSizes {
    let neither =
        |why: &str| LearnedSizes { desirable: undetermined(why, ""), stripe: undetermined(why, "") };
    let found = evidence.series.iter().find(|series| series.trial.experiment == ExperimentName::RequestSize);
    let Some(series) = found else { return neither("request-size was not run") };
    if !evidence.direct {
        return neither("requests went through the page cache, which hides the drive's latency");
    }
    from_groups(&Groups::new(&series.reads), evidence.creation, mix_seed(evidence.seed, 0x51))
}

fn from_groups(groups: &Groups, creation: &str, seed: u64) -> LearnedSizes {
    if groups.groups.len() < 3 || groups.least_reads() < LEAST_READS {
        let why = format!("fewer than {LEAST_READS} reads of each region were made");
        return LearnedSizes { desirable: undetermined(&*why, ""), stripe: undetermined(why, "") };
    }
    let profile = profile_text(groups, creation);
    let mut random = Pcg64::seed_from_u64(seed);
    let resamples: Vec<Groups> = (0..RESAMPLES).map(|_| groups.resampled(&mut random)).collect();
    LearnedSizes {
        desirable: desirable(groups, &resamples, &profile),
        stripe: stripe(groups, &resamples, &profile),
    }
}

/// The smallest size from which all latencies are as good as the best.
fn first_desirable(groups: &Groups) -> Option<usize> {
    let means = groups.means();
    let best = means.iter().map(|(_, mean)| *mean).fold(f64::INFINITY, f64::min);
    let worse = means.iter().rposition(|(_, mean)| *mean > best * (1.0 + GOOD_WITHIN));
    let first = worse.map_or(0, |index| index + 1);
    (first < means.len()).then_some(first)
}

/// The smallest size from which all latencies are the same.
fn first_constant(groups: &Groups) -> Option<usize> {
    let means: Vec<f64> = groups.means().into_iter().map(|(_, mean)| mean).collect();
    let is_constant = |from: usize| {
        let tail = means.get(from..).unwrap_or_default();
        let largest = tail.iter().copied().fold(0.0, f64::max);
        let smallest = tail.iter().copied().fold(f64::INFINITY, f64::min);
        largest <= smallest * (1.0 + CONSTANT_WITHIN)
    };
    (0..means.len()).find(|from| is_constant(*from))
}

fn desirable(groups: &Groups, resamples: &[Groups], profile: &str) -> LearnedValue {
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let Some(first) = first_desirable(groups) else {
        return undetermined("the largest writes read more slowly than smaller ones", profile);
    };
    let (confidence, interval) = agreement(resamples, &sizes, first, first_desirable);
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", profile) };
    if confidence < LEAST_CONFIDENCE {
        let why = format!(
            "only {:.0} % of the resamples lead to {}: noise hides the difference between write sizes",
            confidence * 100.0,
            bytes_text(size)
        );
        return undetermined(why, profile);
    }
    if first == 0 {
        let evidence = format!("all sizes alike, none is undesirable: {profile}");
        return determined(size as f64, interval, confidence, evidence);
    }
    let (step, z) = step_at(groups, first);
    if z < LEAST_Z {
        return undetermined(
            format!(
                "smaller writes read {:.0} % more slowly, but at {z:.1} standard errors that may be chance",
                step * 100.0
            ),
            profile,
        );
    }
    let evidence = format!("reads of smaller writes take {:.0} % longer: {profile}", step * 100.0);
    determined(size as f64, interval, confidence, evidence)
}

fn stripe(groups: &Groups, resamples: &[Groups], profile: &str) -> LearnedValue {
    let sizes: Vec<u64> = groups.groups.iter().map(|(size, _)| *size).collect();
    let first = match first_constant(groups) {
        None => return undetermined("latency differs even between the largest writes", profile),
        Some(0) => {
            return undetermined(
                "latency is the same for all write sizes, which tells nothing of stripes",
                profile,
            );
        }
        Some(first) if sizes.len() - first < LEAST_CONSTANT_SIZES => {
            return undetermined("latency does not become constant within the sizes measured", profile);
        }
        Some(first) => first,
    };
    let (confidence, interval) = agreement(resamples, &sizes, first, first_constant);
    let (step, z) = step_at(groups, first);
    let Some(size) = sizes.get(first).copied() else { return undetermined("no sizes", profile) };
    if confidence < LEAST_CONFIDENCE || z.abs() < LEAST_Z {
        let why = format!(
            "latency seems constant from {} on, but only {:.0} % of the resamples agree and the step of {:.0} % is {:.1} standard errors",
            bytes_text(size),
            confidence * 100.0,
            step * 100.0,
            z.abs()
        );
        return undetermined(why, profile);
    }
    let evidence = format!(
        "latency is constant within {:.0} % from {} on and {:.0} % {} just below: {profile}",
        CONSTANT_WITHIN * 100.0,
        bytes_text(size),
        step.abs() * 100.0,
        if step > 0.0 { "higher" } else { "lower" }
    );
    determined(size as f64, interval, confidence, evidence)
}

/// How much slower the size just below `first` is than all from `first` on, and in standard errors.
fn step_at(groups: &Groups, first: usize) -> (f64, f64) {
    let values = |index: usize| groups.groups.get(index).map(|(_, values)| values.as_slice());
    let Some(below) = first.checked_sub(1).and_then(values) else { return (0.0, 0.0) };
    let above: Vec<&[f64]> = (first..groups.groups.len()).filter_map(values).collect();
    let (Some(mean_below), Some(mean_above)) = (mean(below), mean(&above.concat())) else {
        return (0.0, 0.0);
    };
    (mean_below / mean_above - 1.0, z_score(below, &above))
}

/// Share of the resamples in which `find` gives the same index, and the sizes between which it gives 95 % of its answers.
fn agreement(
    resamples: &[Groups],
    sizes: &[u64],
    found: usize,
    find: fn(&Groups) -> Option<usize>,
) -> (f64, (f64, f64)) {
    let answers: Vec<Option<usize>> = resamples.iter().map(find).collect();
    let same = answers.iter().filter(|answer| **answer == Some(found)).count();
    let values: Vec<f64> =
        answers.iter().flatten().filter_map(|index| sizes.get(*index)).map(|size| *size as f64).collect();
    let at = |share: f64| crate::stats::quantile(&values, share).unwrap_or(0.0);
    (same as f64 / resamples.len().max(1) as f64, (at(0.025), at(0.975)))
}

/// Such as `1 MiB reads take 812 µs behind 1 KiB writes, ...; regions of 25 MiB with one flush behind each region`.
fn profile_text(groups: &Groups, creation: &str) -> String {
    let latencies: Vec<String> = groups
        .means()
        .iter()
        .map(|(size, mean)| format!("{} {:.0} µs", bytes_text(*size), mean * groups.typical_us))
        .collect();
    let behind = if creation.is_empty() { String::new() } else { format!("; {creation}") };
    format!("1 MiB reads by write size: {}{behind}", latencies.join(", "))
}
