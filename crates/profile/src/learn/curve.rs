//! Working points from the depth x page-size map (NVMe paper §2.2-2.3).

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::{Basis, CONFIDENCE_MIN, Evidence, determined, undetermined};
use crate::config::ExperimentName;
use crate::schema::LearnedValue;
use crate::stats::{median, mix_seed, normal, quantile, relative_deviation};
use crate::trial::{bytes_text, missing_doubling};

const RESAMPLES: u32 = 300;

/// Standard error of a median, relative to that of a mean.
const MEDIAN_ERROR: f64 = 1.253;

/// Page sizes that differ by no more than this are equally good, and then the largest is taken: it moves more
/// with each request.
const EQUALLY_GOOD: f64 = 0.03;

/// Fewest depths that make a curve.
const DEPTHS_MIN: usize = 4;

/// Depths that differ by no more than this factor are the same answer.
const NEAR: f64 = 1.25;

/// Widest ratio between the ends of the 95 % interval of a depth that still places it.
const WIDEST_RATIO: f64 = 4.0;

pub(super) struct LearnedCurve {
    pub best_page_iops: LearnedValue,
    pub best_page_latency: LearnedValue,
    pub depth_90: LearnedValue,
    pub depth_99: LearnedValue,
}

const NO_REPEATS: &str = "no trial was repeated, so that noise is unknown";

/// Throughputs of every repeat, by page size and depth.
pub(super) type Map = BTreeMap<u64, BTreeMap<u64, Vec<f64>>>;

pub(super) fn learn(evidence: &Evidence<'_>) -> LearnedCurve {
    let mut map = Map::new();
    for series in evidence.series.iter().filter(|series| series.trial.experiment == ExperimentName::Depth) {
        if let Some(workload) = series.trial.workload() {
            let by_depth = map.entry(workload.request_bytes as u64).or_default();
            by_depth.insert(workload.concurrency as u64, series.throughputs());
        }
    }
    from_map(&map, evidence.page_bytes, mix_seed(evidence.seed, 0xde))
}

fn from_map(map: &Map, page_bytes: u64, seed: u64) -> LearnedCurve {
    if map.is_empty() {
        let none = undetermined("depth was not run", "");
        return LearnedCurve {
            best_page_iops: none.clone(),
            best_page_latency: none.clone(),
            depth_90: none.clone(),
            depth_99: none,
        };
    }
    let mut random = Pcg64::seed_from_u64(seed);
    let noise = pooled_noise(map);
    let resamples: Vec<Map> = noise
        .map_or(Vec::new(), |noise| (0..RESAMPLES).map(|_| resampled(map, noise, &mut random)).collect());
    let repeated = noise.is_some();
    let depth = |share: f64, growth: f64| {
        if repeated {
            depth_for(share, growth, map, &resamples, page_bytes)
        } else {
            undetermined(NO_REPEATS, "")
        }
    };
    LearnedCurve {
        best_page_iops: best_page(map, &resamples, requests_max, 2, "most random reads per second"),
        best_page_latency: best_page(map, &resamples, least_latency, 1, "lowest latency at depth 1"),
        depth_90: depth(0.90, 0.04),
        depth_99: depth(0.99, 0.02),
    }
}

/// Relative deviation between repeats that three quarters of the points do not exceed: each point alone has
/// too few repeats to tell. `None` without repeats.
fn pooled_noise(map: &Map) -> Option<f64> {
    let of_points: Vec<f64> = map
        .values()
        .flat_map(BTreeMap::values)
        .filter_map(|throughputs| relative_deviation(throughputs))
        .collect();
    quantile(&of_points, 0.75)
}

/// Repeats of most points.
fn repeats_of(map: &Map) -> usize {
    median_of(map.values().flat_map(BTreeMap::values).map(Vec::len).collect())
}

fn median_of(mut counts: Vec<usize>) -> usize {
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or(0)
}

/// The map as it might have come out: every median moved by its noise.
fn resampled(map: &Map, noise: f64, random: &mut Pcg64) -> Map {
    let moved = |throughputs: &[f64], random: &mut Pcg64| {
        let error = MEDIAN_ERROR * noise / (throughputs.len().max(1) as f64).sqrt();
        median(throughputs).map(|median| median * (error * normal(random)).exp()).into_iter().collect()
    };
    let mut depths = |by_depth: &BTreeMap<u64, Vec<f64>>| {
        by_depth.iter().map(|(depth, throughputs)| (*depth, moved(throughputs, random))).collect()
    };
    map.iter().map(|(bytes, by_depth)| (*bytes, depths(by_depth))).collect()
}

/// Requests per second of a page size at its best depth.
fn requests_max(bytes: u64, by_depth: &BTreeMap<u64, Vec<f64>>) -> Option<f64> {
    by_depth
        .values()
        .filter_map(|throughputs| median(throughputs))
        .reduce(f64::max)
        .map(|best| best / bytes as f64)
}

/// Requests per second of a page size at depth 1: the inverse of its latency.
fn least_latency(bytes: u64, by_depth: &BTreeMap<u64, Vec<f64>>) -> Option<f64> {
    by_depth.get(&1).and_then(|throughputs| median(throughputs)).map(|one| one / bytes as f64)
}

type Rate = fn(u64, &BTreeMap<u64, Vec<f64>>) -> Option<f64>;

/// The largest page size whose rate is as good as the best.
fn best_of(map: &Map, rate: Rate) -> Option<u64> {
    let rates: Vec<(u64, f64)> =
        map.iter().filter_map(|(bytes, depths)| Some((*bytes, rate(*bytes, depths)?))).collect();
    let best = rates.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    rates.iter().filter(|(_, rate)| *rate >= best * (1.0 - EQUALLY_GOOD)).map(|(bytes, _)| *bytes).max()
}

/// The best size by `rate`; each size must have been measured at `depths_min` depths.
fn best_page(map: &Map, resamples: &[Map], rate: Rate, depths_min: usize, goal: &str) -> LearnedValue {
    let Some(best) = best_of(map, rate) else { return undetermined("no such depth was measured", "") };
    let answers: Vec<f64> =
        resamples.iter().filter_map(|map| best_of(map, rate)).map(|bytes| bytes as f64).collect();
    let confidence =
        answers.iter().filter(|bytes| **bytes == best as f64).count() as f64 / resamples.len().max(1) as f64;
    let text: Vec<String> = map
        .iter()
        .filter_map(|(bytes, depths)| {
            Some(format!("{} {:.1} k/s", bytes_text(*bytes), rate(*bytes, depths)? / 1e3))
        })
        .collect();
    let evidence =
        format!("{goal}, sizes within {:.0} % being equal: {}", EQUALLY_GOOD * 100.0, text.join(", "));
    if map.len() < 2 {
        return undetermined("only one page size was measured", evidence);
    }
    if let Some(missing) = missing_doubling(&map.keys().copied().collect::<Vec<_>>()) {
        return undetermined(format!("reads of {} were not measured", bytes_text(missing)), evidence);
    }
    let rarely = map.iter().find(|(_, by_depth)| by_depth.len() < depths_min);
    if let Some((bytes, _)) = rarely {
        return undetermined(format!("reads of {} were measured at one depth", bytes_text(*bytes)), evidence);
    }
    if resamples.is_empty() {
        return undetermined(NO_REPEATS, evidence);
    }
    if confidence < CONFIDENCE_MIN {
        let why = format!("only {:.0} % of the resamples agree on {}", confidence * 100.0, bytes_text(best));
        return undetermined(why, evidence);
    }
    let interval = (quantile(&answers, 0.025).unwrap_or(0.0), quantile(&answers, 0.975).unwrap_or(0.0));
    // The smallest is the smallest that the drive takes; larger ones there are always.
    let tried = map.keys().next_back().map(|most| (0.0, *most as f64));
    determined(best as f64, interval, confidence, evidence, Basis { repeats: repeats_of(map), tried })
}

/// The depth where throughput reaches `share` of its plateau, between measured depths on a logarithmic scale.
fn crossing(by_depth: &BTreeMap<u64, Vec<f64>>, share: f64) -> Option<f64> {
    let curve = rising(
        by_depth
            .iter()
            .filter_map(|(depth, throughputs)| Some((*depth as f64, median(throughputs)?)))
            .collect(),
    );
    let wanted = plateau(&curve)? * share;
    let reached = curve.iter().position(|(_, throughput)| *throughput >= wanted)?;
    let (depth, throughput) = *curve.get(reached)?;
    match reached.checked_sub(1).and_then(|before| curve.get(before)) {
        None => Some(depth),
        Some((below, less)) => {
            let part = (wanted - less) / (throughput - less);
            Some((below.ln() + part * (depth / below).ln()).exp())
        }
    }
}

/// The nearest curve that never falls: deeper queues do not slow a drive down by much, but noise lets single
/// points fall. Points that do are averaged with those before them (pooling adjacent violators).
fn rising(curve: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut pools: Vec<(f64, Vec<f64>)> = Vec::new();
    for (depth, throughput) in curve {
        let mut pool = (throughput.ln(), vec![depth]);
        while let Some((before, depths)) = pools.pop_if(|(before, _)| *before > pool.0) {
            let (many, few) = (depths.len() as f64, pool.1.len() as f64);
            pool = ((before * many + pool.0 * few) / (many + few), [depths, pool.1].concat());
        }
        pools.push(pool);
    }
    pools
        .into_iter()
        .flat_map(|(rate, depths)| depths.into_iter().map(move |depth| (depth, rate.exp())))
        .collect()
}

/// The median of the values within 5 % of the largest: the largest alone would be the luckiest.
fn plateau(curve: &[(f64, f64)]) -> Option<f64> {
    let largest = curve.iter().map(|(_, throughput)| *throughput).reduce(f64::max)?;
    median(&curve.iter().map(|(_, one)| *one).filter(|one| *one >= 0.95 * largest).collect::<Vec<_>>())
}

/// The depth with the highest rate, and the first deeper one with less than half of it: one of the two is no
/// rate of the drive.
fn falls(medians: &[(u64, f64)]) -> Option<(u64, u64)> {
    let (highest, rate) = *medians.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let (lower, _) = medians.iter().find(|(depth, other)| *depth > highest && *other < rate / 2.0)?;
    Some((highest, *lower))
}

/// The depth for `share` of the plateau, which is one if throughput grows by no more than `growth` with each
/// doubling at the end.
fn depth_for(share: f64, growth: f64, map: &Map, resamples: &[Map], page_bytes: u64) -> LearnedValue {
    let Some(by_depth) = map.get(&page_bytes) else {
        return undetermined(format!("no reads of {} were measured", bytes_text(page_bytes)), "");
    };
    let medians: Vec<(u64, f64)> =
        by_depth.iter().filter_map(|(depth, throughputs)| Some((*depth, median(throughputs)?))).collect();
    let rates: Vec<String> = medians
        .iter()
        .map(|(depth, rate)| format!("{depth}: {:.1} k/s", rate / page_bytes as f64 / 1e3))
        .collect();
    let evidence = format!("{} random reads by depth: {}", bytes_text(page_bytes), rates.join(", "));
    let [.., (before_last, first), _, (deepest, last)] = medians.as_slice() else {
        return undetermined("too few depths were measured", evidence);
    };
    if medians.len() < DEPTHS_MIN {
        return undetermined("too few depths were measured", evidence);
    }
    if let Some((high, low)) = falls(&medians) {
        let why = format!(
            "throughput falls by more than half between depths {high} and {low}, which no drive's does"
        );
        return undetermined(why, evidence);
    }
    let doublings = (*deepest as f64 / *before_last as f64).log2();
    if (last / first).ln() / doublings > growth {
        return undetermined(
            format!("throughput still rises at the deepest queue measured ({deepest})"),
            evidence,
        );
    }
    let Some(value) = crossing(by_depth, share) else {
        return undetermined("throughput reaches no plateau", evidence);
    };
    let answers: Vec<f64> = resamples
        .iter()
        .filter_map(|map| map.get(&page_bytes))
        .filter_map(|depths| crossing(depths, share))
        .collect();
    let (low, high) =
        (quantile(&answers, 0.025).unwrap_or(value), quantile(&answers, 0.975).unwrap_or(value));
    if high > WIDEST_RATIO * low.max(f64::MIN_POSITIVE) {
        return undetermined(format!("noise places it anywhere between {low:.0} and {high:.0}"), evidence);
    }
    let near = answers.iter().filter(|one| (*one / value).ln().abs() <= NEAR.ln()).count();
    let confidence = near as f64 / answers.len().max(1) as f64;
    if confidence < CONFIDENCE_MIN {
        let why = format!(
            "noise: only {:.0} % of the resamples come within a quarter of {value:.0}",
            confidence * 100.0
        );
        return undetermined(why, evidence);
    }
    // Fewer than one are never in flight: where one suffices, that is the depth.
    let least =
        medians.first().map_or(0, |(depth, _)| *depth).saturating_sub(u64::from(by_depth.contains_key(&1)));
    let tried = Some((least as f64, *deepest as f64));
    let repeats = by_depth.values().map(Vec::len).collect::<Vec<_>>();
    let basis = Basis { repeats: median_of(repeats), tried };
    determined(value, (low, high), confidence, evidence, basis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::doublings;
    use rand::RngExt;

    /// A drive with `servers` and the given latency per request, three repeats with noise.
    fn map(servers: f64, noise: f64, seed: u64, latency_us: impl Fn(u64) -> f64) -> Map {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut map = Map::new();
        for bytes in doublings(512, 64 << 10) {
            for depth in doublings(1, 256) {
                let rate = (depth as f64).min(servers) / latency_us(bytes) * 1e6 * bytes as f64;
                let mut repeat = || rate * (1.0 + noise * (random.random::<f64>() * 2.0 - 1.0));
                map.entry(bytes).or_default().insert(depth, vec![repeat(), repeat(), repeat()]);
            }
        }
        map
    }

    /// Latency that grows above 4 KiB and is worse below, as data centre drives have it (NVMe paper, Figure
    /// 3).
    fn flash_us(bytes: u64) -> f64 {
        if bytes < 4096 { 110.0 } else { 80.0 + (bytes - 4096) as f64 / 500.0 }
    }

    fn value(learned: &LearnedValue) -> f64 {
        learned.estimate.value().unwrap_or_else(|| panic!("{learned:?}"))
    }

    #[test]
    fn a_rate_that_deeper_queues_do_not_bear_out_is_no_plateau() {
        let mut by_page = map(32.0, 0.01, 1, |_| 100.0);
        let settled = |map: &Map| from_map(map, 4096, 1).depth_90.estimate.value();
        assert!(settled(&by_page).is_some());
        let page = by_page.get_mut(&4096).unwrap();
        let deepest = page.last_entry().unwrap().remove();
        page.insert(256, deepest.iter().map(|rate| rate * 8.0).collect());
        page.insert(512, deepest);
        assert_eq!(settled(&by_page), None);
    }

    /// Behind a cap, say: one request at a time reaches the rate of many.
    #[test]
    fn one_at_a_time_is_the_depth_where_it_suffices_and_was_tried() {
        let mut flat = map(1.0, 0.001, 1, |_| 100.0);
        let found = from_map(&flat, 4096, 1);
        assert_eq!((value(&found.depth_90), value(&found.depth_99)), (1.0, 1.0));
        // Without it two may be one too many.
        flat.values_mut().for_each(|by_depth| drop(by_depth.remove(&1)));
        assert_eq!(from_map(&flat, 4096, 1).depth_90.estimate.value(), None);
    }

    #[test]
    fn a_saturating_drive_has_its_working_points() {
        let found = from_map(&map(40.0, 0.01, 1, flash_us), 4096, 1);
        assert_eq!(value(&found.best_page_iops), 4096.0);
        assert_eq!(value(&found.best_page_latency), 4096.0);
        // Linear up to 40 servers; the plateau lies between the measured depths 32 and 64, where the crossing
        // is interpolated.
        assert!((34.0..50.0).contains(&value(&found.depth_90)), "{:?}", found.depth_90);
        assert!(value(&found.depth_99) > value(&found.depth_90));
    }

    #[test]
    fn a_dip_is_pooled_with_what_came_before() {
        let pooled = rising(vec![(1.0, 10.0), (2.0, 40.0), (4.0, 10.0), (8.0, 50.0)]);
        let expected = [(1.0, 10.0), (2.0, 20.0), (4.0, 20.0), (8.0, 50.0)];
        for ((depth, rate), (expected_depth, expected_rate)) in pooled.into_iter().zip(expected) {
            assert_eq!(depth, expected_depth);
            assert!((rate - expected_rate).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn a_drive_that_still_rises_has_no_plateau() {
        let found = from_map(&map(1000.0, 0.01, 1, flash_us), 4096, 1);
        for depth in [&found.depth_90, &found.depth_99] {
            let flashgrain_model::Estimate::Undetermined { why } = &depth.estimate else {
                panic!("{depth:?}")
            };
            assert!(why.contains("still rises at the deepest queue measured (256)"), "{why}");
        }
    }

    #[test]
    fn equal_pages_are_decided_for_the_largest_and_noise_for_none() {
        let equal = from_map(&map(40.0, 0.005, 1, |bytes| if bytes <= 8192 { 80.0 } else { 160.0 }), 4096, 1);
        assert_eq!(value(&equal.best_page_iops), 8192.0);
        let mut confident = 0;
        for seed in 0..50 {
            let noisy = from_map(&map(40.0, 0.6, seed, |_| 80.0), 4096, seed);
            confident += u32::from(noisy.best_page_latency.estimate.value().is_some());
        }
        assert!(confident <= 5, "{confident} of 50");
    }

    #[test]
    fn without_repeats_noise_is_unknown_and_depths_undetermined() {
        let mut once = map(40.0, 0.01, 1, flash_us);
        once.values_mut().flat_map(BTreeMap::values_mut).for_each(|throughputs| throughputs.truncate(1));
        assert!(from_map(&once, 4096, 1).depth_90.estimate.value().is_none());
    }
}
