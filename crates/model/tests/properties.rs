//! Whatever is measured, fits do not panic, predictions are positive numbers, and what is stored is JSON.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use flashgrain_model::{
    Comparison, CostCurve, Estimate, FitOptions, Models, Sample, Workload, compare, fit, line_fit,
    segmented_fit,
};
use proptest::prelude::*;

/// Workloads from a few values each, so that grids, rows and repeats come about; throughputs without any
/// sense.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let workload = (
        prop_oneof![3 => Just(1.0), 3 => Just(0.0), 1 => 0.0..1.0],
        prop_oneof![Just(512.0), Just(4096.0), Just(65536.0), Just(1e7), 1.0..1e15],
        prop_oneof![3 => Just(1.0), 1 => Just(0.0), 1 => 1e-9..1.0],
        prop_oneof![Just(1.0), Just(2.0), Just(8.0), Just(128.0), 1.0..1e9],
    );
    let rate = prop_oneof![1e5..1e10, 1e-3..1e18, Just(1e8)];
    let sample = (workload, rate, 0u32..3).prop_map(|(workload, bytes_per_second, repeat)| {
        let (read_share, request_bytes, random_share, concurrency) = workload;
        let workload = Workload { read_share, request_bytes, random_share, concurrency };
        Sample { experiment: "any".into(), repeat, workload, bytes_per_second }
    });
    proptest::collection::vec(sample, 1..60)
}

fn check_models(models: &Models, samples: &[Sample]) {
    for model in models.iter() {
        for sample in samples {
            if let Some(cost) = model.seconds_per_byte(&sample.workload) {
                assert!(
                    cost.is_finite() && cost > 0.0,
                    "{} predicts {cost} for {:?}",
                    model.name(),
                    sample.workload
                );
            }
        }
        for parameter in model.parameters() {
            if let Estimate::Determined { value, low, high } = parameter.estimate {
                assert!(
                    low.is_finite() && high.is_finite() && low <= value && value <= high,
                    "{parameter:?}"
                );
            }
        }
    }
    // JSON knows neither infinity nor NaN: either would become null and not be read again.
    let json = serde_json::to_string(models).unwrap();
    let again: Models = serde_json::from_str(&json).unwrap();
    for (model, again) in models.iter().zip(again.iter()) {
        for sample in samples {
            let (before, after) =
                (model.seconds_per_byte(&sample.workload), again.seconds_per_byte(&sample.workload));
            assert_eq!(before.is_some(), after.is_some());
            let relative = before.zip(after).map_or(1.0, |(before, after)| before / after);
            assert!((relative - 1.0).abs() < 1e-9, "{before:?} became {after:?}");
        }
    }
}

fn check_comparison(comparison: &Comparison) {
    let json = serde_json::to_string(comparison).unwrap();
    let again: Comparison = serde_json::from_str(&json).unwrap();
    assert_eq!(again.rows.len(), comparison.rows.len());
    assert_eq!(again.ranking, comparison.ranking);
    for row in &comparison.rows {
        assert!(row.points > 0 && row.median_relative_error <= row.worst_relative_error, "{row:?}");
    }
    assert!(comparison.points.iter().any(|point| point.held_out));
    assert!(comparison.splits >= 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fits_and_comparisons_survive_any_positive_samples(samples in samples(), seed in any::<u64>()) {
        let options = FitOptions { resamples: 20, seed, ..FitOptions::default() };
        check_models(&fit(&samples, &options).unwrap(), &samples);
        if let Ok(comparison) = compare(&samples, &options) {
            check_comparison(&comparison);
        }
    }

    #[test]
    fn curves_are_positive_free_of_poles_and_of_spikes(
        costs in proptest::collection::vec((1.1..40.0f64, -20.0..-4.0f64), 1..10),
        degree in 0usize..4,
        seed in any::<u64>(),
    ) {
        // Steps of k small and large, costs over seven orders of magnitude.
        let costs: Vec<(f64, f64)> = costs
            .into_iter()
            .scan(1.0, |k, (step, ln_cost)| {
                let at = *k;
                *k *= step;
                Some((at, ln_cost.exp()))
            })
            .collect();
        let curve = CostCurve::fit(&costs, degree, seed).unwrap();
        for pair in costs.windows(2) {
            let ends = [pair[0].1, pair[1].1, curve.at(pair[0].0), curve.at(pair[1].0)];
            let low = ends.into_iter().fold(f64::INFINITY, f64::min);
            let high = ends.into_iter().fold(0.0, f64::max);
            for step in 0..=100 {
                let k = pair[0].0 * (pair[1].0 / pair[0].0).powf(f64::from(step) / 100.0);
                let cost = curve.at(k);
                prop_assert!(cost.is_finite() && cost > 0.0);
                prop_assert!(cost <= 1.03 * high && cost >= 0.97 * low, "{cost} at {k} of {costs:?}");
            }
        }
        prop_assert_eq!(curve.at(1e18), curve.at(costs.last().unwrap().0));
        prop_assert_eq!(curve.at(0.5), curve.at(1.0));
    }

    #[test]
    fn line_and_segmented_fits_survive_any_positive_points(
        points in proptest::collection::vec((1.0..1e9f64, 1e-9..1e12f64), 1..20),
    ) {
        let segmented = segmented_fit(&points, 20, 1).unwrap();
        prop_assert!(segmented.r_squared.is_none_or(f64::is_finite));
        if let Ok(line) = line_fit(&points, 20, 1) {
            prop_assert!(line.r_squared.is_none_or(f64::is_finite));
        }
    }
}
