//! The PDAM's P and plateau, and the affine half-bandwidth size, from the regressions of the dictionaries
//! paper §4.

use flashgrain_model::{Estimate, Segmented, line_fit, linear_segmented_fit, segmented_fit};

use super::{Basis, Evidence, determined, share_within_a_tenth, undetermined};
use crate::config::ExperimentName;
use crate::schema::LearnedValue;
use crate::stats::{median, mix_seed};
use crate::trial::bytes_text;

const RESAMPLES: u32 = 300;

/// Least R² of a line worth reading a number from.
const R_SQUARED_MIN: f64 = 0.8;

/// Largest miss of any rate by the fit for a valid knee, and of the rates well beyond the knee for a valid
/// plateau. On drives with a knee, such as those of the paper, it misses the rates near the knee by up to 8
/// %.
const KNEE_MISS: f64 = 0.10;
const PLATEAU_MISS: f64 = 0.04;

/// Fewest numbers of streams, or sizes, that make a line; and fewest numbers of streams beyond a knee that
/// make a plateau.
const POINTS_MIN: usize = 5;
const POINTS_BEHIND_MIN: usize = 2;

/// Widest ratio between the ends of a 95 % interval that still places a number.
const WIDEST_RATIO: f64 = 2.5;

pub(super) struct LearnedLines {
    pub parallelism: LearnedValue,
    pub saturation: LearnedValue,
    pub half_bandwidth: LearnedValue,
}

pub(super) fn learn(evidence: &Evidence<'_>) -> LearnedLines {
    let (parallelism, saturation) = parallel(evidence);
    LearnedLines { parallelism, saturation, half_bandwidth: half_bandwidth(evidence) }
}

/// One point per repeat of `name`.
fn points(
    evidence: &Evidence<'_>,
    name: ExperimentName,
    point: fn(f64, f64, f64) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let of_series = |series: &crate::series::Series| {
        let workload = series.trial.workload().copied();
        let point = move |rate: f64| {
            workload.map(|workload| point(workload.concurrency, workload.request_bytes, rate))
        };
        series.throughputs().into_iter().filter_map(point).collect::<Vec<_>>()
    };
    evidence.series.iter().filter(|series| series.trial.experiment == name).flat_map(of_series).collect()
}

fn parallel(evidence: &Evidence<'_>) -> (LearnedValue, LearnedValue) {
    let points = points(evidence, ExperimentName::Parallel, |streams, _, rate| (streams, rate));
    if points.is_empty() {
        let none = undetermined("parallel was not run", "");
        return (none.clone(), none);
    }
    parallel_from(&points, mix_seed(evidence.seed, 0xa))
}

/// P and the saturation from one point per round: streams, and bytes per second.
fn parallel_from(points: &[(f64, f64)], seed: u64) -> (LearnedValue, LearnedValue) {
    if let Some(why) = too_few(points) {
        let none = undetermined(why, "");
        return (none.clone(), none);
    }
    let fit = match segmented_fit(points, RESAMPLES, seed) {
        Ok(fit) => fit,
        Err(error) => {
            let none = undetermined(error.to_string(), "");
            return (none.clone(), none);
        }
    };
    // Whether the shape is right shows in the medians: single rounds are off by their noise, which the
    // intervals account for.
    let medians = medians(points);
    let shape = segmented_fit(&medians, 1, seed).ok().and_then(|fit| fit.r_squared);
    let text = format!(
        "segmented regression of {} rounds of 64 KiB random reads by 1 to 64 streams{}{}",
        points.len(),
        r_squared_text(shape),
        linear_text(&medians)
    );
    match shape {
        Some(r_squared) if r_squared < R_SQUARED_MIN => {
            let why = format!(
                "the rates do not follow a rise and a plateau (R² {r_squared:.2}): noise, or another shape"
            );
            let none = undetermined(why, text);
            (none.clone(), none)
        }
        _ => {
            let all = largest_miss(&fit, &medians, |_, _| true);
            let behind = largest_miss(&fit, &medians, |streams, knee| streams >= 2.0 * knee);
            let plateau = match fit.knee.value() {
                Some(knee)
                    if medians.iter().filter(|(streams, _)| *streams >= knee).count() < POINTS_BEHIND_MIN =>
                {
                    Estimate::undetermined("too few numbers of streams beyond the knee were measured")
                }
                Some(knee) => {
                    let rates = medians.iter().filter(|(streams, _)| *streams >= 2.0 * knee);
                    let rates = rates.map(|(_, rate)| *rate);
                    widened(of_the_shape(fit.plateau, behind, PLATEAU_MISS), rates)
                }
                None => of_the_shape(fit.plateau, behind, PLATEAU_MISS),
            };
            let knee = of_the_shape(fit.knee, all, KNEE_MISS);
            let repeats = repeats_of(points);
            let streams = || medians.iter().map(|(streams, _)| *streams);
            let tried = streams().reduce(f64::min).zip(streams().reduce(f64::max));
            (
                from_estimate(knee, &text, |streams| format!("{streams:.1}"), Basis { repeats, tried }),
                from_estimate(plateau, &text, |rate| format!("{:.0} MB/s", rate / 1e6), Basis::of(repeats)),
            )
        }
    }
}

/// The paper's own regression, of the rates rather than of their logarithms; nothing if there is none.
fn linear_text(medians: &[(f64, f64)]) -> String {
    linear_segmented_fit(medians).map_or_else(
        |_| String::new(),
        |fit| {
            let (knee, rate) = (fit.knee, fit.saturation / 1e6);
            let shape = r_squared_text(fit.r_squared);
            format!("; segmented linear regression (Bender et al., §4.1): P {knee:.1}, {rate:.0} MB/s{shape}")
        },
    )
}

/// Repeats of most of the measured points: more than one if any was, as [`too_few`] has it.
fn repeats_of(points: &[(f64, f64)]) -> usize {
    points.len().div_ceil(medians(points).len().max(1))
}

/// Why these points, one for each repeat, make no line; `None` if they do.
fn too_few(points: &[(f64, f64)]) -> Option<String> {
    let measured = medians(points).len();
    if measured < POINTS_MIN {
        return Some(format!("only {measured} of the trials were run; it takes {POINTS_MIN}"));
    }
    (points.len() == measured).then(|| "no trial was repeated, so that noise is unknown".to_owned())
}

/// By how much the fit is off, at most, among the medians that `counts` accepts; `None` if it has no knee.
fn largest_miss(fit: &Segmented, medians: &[(f64, f64)], counts: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let (knee, slope) = (fit.knee.value()?, fit.slope.value()?);
    let miss = |(streams, rate): &(f64, f64)| (slope * streams.min(knee) / rate - 1.0).abs();
    Some(medians.iter().filter(|(streams, _)| counts(*streams, knee)).map(miss).fold(0.0, f64::max))
}

/// The estimate, unless the shape that it belongs to misses the measurements by more than `within`: where the
/// rate bends gradually, the regression puts its knee somewhere, and however exact the points are, it means
/// little.
fn of_the_shape(estimate: Estimate, miss: Option<f64>, within: f64) -> Estimate {
    match miss {
        Some(miss) if miss > within => Estimate::undetermined(format!(
            "a rise and a plateau miss the rates by up to {:.0} %: they bend gradually rather than at a knee",
            miss * 100.0
        )),
        _ => estimate,
    }
}

/// The estimate with an interval that holds `values`, too, which it stands for: resamples tell how far noise
/// moves the fit, but not how far the fit lies from the measured values.
fn widened(estimate: Estimate, values: impl Iterator<Item = f64>) -> Estimate {
    match estimate {
        Estimate::Determined { value, low, high } => {
            let (low, high) =
                values.fold((low, high), |(low, high), value| (low.min(value), high.max(value)));
            Estimate::Determined { value, low, high }
        }
        undetermined @ Estimate::Undetermined { .. } => undetermined,
    }
}

/// One point for each x: the median of its repeats.
fn medians(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut repeats: Vec<(f64, Vec<f64>)> = Vec::new();
    for (x, y) in points {
        match repeats.iter_mut().find(|(other, _)| other == x) {
            Some((_, values)) => values.push(*y),
            None => repeats.push((*x, vec![*y])),
        }
    }
    repeats.into_iter().filter_map(|(x, values)| Some((x, median(&values)?))).collect()
}

fn half_bandwidth(evidence: &Evidence<'_>) -> LearnedValue {
    let points = points(evidence, ExperimentName::Size, |_, bytes, rate| (bytes, bytes / rate));
    if points.is_empty() {
        return undetermined("size was not run", "");
    }
    if let Some(why) = too_few(&points) {
        return undetermined(why, "");
    }
    match line_fit(&points, RESAMPLES, mix_seed(evidence.seed, 0xb)) {
        Err(error) => undetermined(error.to_string(), ""),
        Ok(fit) => {
            let text = format!(
                "line through the times of {} rounds of single random reads{}: setup {}, transfer {}",
                points.len(),
                r_squared_text(fit.r_squared),
                estimate_text(&fit.intercept, 1e6, "µs"),
                estimate_text(&fit.slope, 4096.0 * 1e6, "µs per 4 KiB")
            );
            match fit.r_squared {
                Some(r_squared) if r_squared < R_SQUARED_MIN => {
                    undetermined(format!("the times do not lie on a line (R² {r_squared:.2})"), text)
                }
                _ => {
                    let basis = Basis::of(repeats_of(&points));
                    from_estimate(fit.half_bandwidth, &text, |bytes| bytes_text(bytes as u64), basis)
                }
            }
        }
    }
}

fn r_squared_text(r_squared: Option<f64>) -> String {
    r_squared.map_or_else(String::new, |r_squared| format!(", R² {r_squared:.3}"))
}

fn estimate_text(estimate: &Estimate, scale: f64, unit: &str) -> String {
    estimate.value().map_or_else(|| "undetermined".to_owned(), |value| format!("{:.2} {unit}", value * scale))
}

/// `words` says a number to people.
fn from_estimate(estimate: Estimate, evidence: &str, words: fn(f64) -> String, basis: Basis) -> LearnedValue {
    match estimate {
        Estimate::Determined { value, low, high } if high > WIDEST_RATIO * low => {
            let why = format!(
                "noise places it anywhere between {} and {} (best guess {})",
                words(low),
                words(high),
                words(value)
            );
            undetermined(why, evidence)
        }
        Estimate::Determined { value, low, high } => {
            let confidence = share_within_a_tenth(value, low, high);
            determined(value, (low, high), confidence, evidence.to_owned(), basis)
        }
        Estimate::Undetermined { why } => undetermined(why, evidence),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CONFIDENCE_MIN;
    use super::*;

    const STREAMS: [f64; 11] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0];

    /// Whether P and the saturation are kept for exact rates of this shape.
    fn kept(rate: impl Fn(f64) -> f64) -> (bool, bool) {
        let points = STREAMS.map(|streams| (streams, rate(streams)));
        // Exact repeats: the bootstrap alone would be certain of anything.
        let repeated: Vec<(f64, f64)> = points.iter().flat_map(|point| [*point; 3]).collect();
        let fit = segmented_fit(&repeated, RESAMPLES, 1).unwrap();
        let all = largest_miss(&fit, &points, |_, _| true);
        let behind = largest_miss(&fit, &points, |streams, knee| streams >= 2.0 * knee);
        let knee = of_the_shape(fit.knee, all, KNEE_MISS);
        let plateau = of_the_shape(fit.plateau, behind, PLATEAU_MISS);
        (knee.value().is_some(), plateau.value().is_some())
    }

    #[test]
    fn a_knee_has_a_number_and_a_gradual_bend_has_none() {
        assert_eq!(kept(|streams| 100.0 * streams.min(5.5)), (true, true));
        // As on a drive whose requests meet at random on its dies, until the link is full.
        let rates = [447.0, 873.0, 1278.0, 1674.0, 2040.0, 2389.0, 2713.0, 3010.0, 4780.0, 5611.0, 5612.0];
        let bent = |streams| rates[STREAMS.iter().position(|one| *one == streams).unwrap()];
        assert_eq!(kept(bent), (false, false));
    }

    #[test]
    fn the_papers_own_regression_stands_next_to_ours() {
        let points: Vec<(f64, f64)> =
            STREAMS.iter().flat_map(|p| [(*p, 1e8 * p.min(5.5) + 2e6 * (p - 5.5).max(0.0)); 3]).collect();
        let evidence = parallel_from(&points, 1).0.evidence;
        assert!(evidence.starts_with("segmented regression of 33 rounds"), "{evidence}");
        assert!(evidence.ends_with("§4.1): P 5.5, 550 MB/s, R² 1.000"), "{evidence}");
    }

    /// The saturation from rounds of these rates in MB/s.
    fn saturation(rounds: &[(f64, &[f64])]) -> (f64, f64, f64, f64) {
        let points: Vec<(f64, f64)> =
            rounds.iter().flat_map(|(streams, rates)| rates.iter().map(|rate| (*streams, *rate))).collect();
        let learned = parallel_from(&points, 1).1;
        let Estimate::Determined { value, low, high } = learned.estimate else { panic!("{learned:?}") };
        (value, low, high, learned.confidence)
    }

    /// Two drives that bend gradually and are flat, or nearly so, from 32 or 16 streams on.
    #[test]
    fn an_interval_of_the_saturation_holds_the_rates_of_many_streams() {
        let nearly_flat: [(f64, &[f64]); 11] = [
            (1.0, &[158.0, 158.0, 158.0, 158.0]),
            (2.0, &[304.0, 311.0, 309.0, 314.0]),
            (3.0, &[456.0, 436.0, 460.0, 453.0]),
            (4.0, &[594.0, 574.0, 587.0, 586.0]),
            (5.0, &[709.0, 720.0, 728.0, 721.0]),
            (6.0, &[831.0, 828.0, 854.0, 837.0]),
            (7.0, &[948.0, 949.0, 956.0, 956.0]),
            (8.0, &[1064.0, 1088.0, 1044.0, 1078.0]),
            (16.0, &[1729.0, 1783.0, 1772.0, 1788.0]),
            (32.0, &[2341.0, 2410.0, 2400.0, 2392.0]),
            (64.0, &[2470.0, 2465.0, 2461.0, 2462.0]),
        ];
        let (value, low, high, confidence) = saturation(&nearly_flat);
        assert!((value / 2464.0 - 1.0).abs() < 0.04, "{value}");
        assert!(low < 2464.0 && 2463.0 < high, "{low} to {high}");
        assert!((CONFIDENCE_MIN..=1.0).contains(&confidence), "{confidence}");
        let flat: [(f64, &[f64]); 11] = [
            (1.0, &[198.0, 200.0, 201.0, 196.0]),
            (2.0, &[389.0, 374.0, 373.0, 386.0]),
            (3.0, &[535.0, 542.0, 541.0, 527.0]),
            (4.0, &[699.0, 663.0, 676.0, 699.0]),
            (5.0, &[796.0, 792.0, 812.0, 819.0]),
            (6.0, &[871.0, 946.0, 944.0, 920.0, 933.0]),
            (7.0, &[961.0, 1027.0, 965.0, 1025.0, 1041.0]),
            (8.0, &[1105.0, 1135.0, 1110.0, 1145.0]),
            (16.0, &[1395.0, 1375.0, 1399.0, 1388.0]),
            (32.0, &[1395.0, 1395.0, 1397.0, 1394.0]),
            (64.0, &[1397.0, 1402.0, 1397.0, 1398.0]),
        ];
        let (value, low, high, _) = saturation(&flat);
        assert!((value / 1396.0 - 1.0).abs() < 0.01, "{value}");
        assert!(low <= 1395.0 && 1397.0 <= high, "{low} to {high}");
    }
}
