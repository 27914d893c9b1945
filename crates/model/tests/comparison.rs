//! The comparison: which points are held out, what is said about them, what is refused, and what the models
//! make of samples that support only some of them.

use flashgrain_model::{
    Access, Error, Estimate, FitOptions, FittedModel, IoModel, ModelName, Sample, Workload, compare, fit,
};

const K: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const SIZES: [f64; 6] = [4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

/// Seconds per byte of a drive that is none of the models: it overlaps setup and transfer.
fn cost(workload: &Workload) -> f64 {
    let setup = 80e-6 / workload.concurrency.min(24.0) * workload.random_accesses_per_byte();
    let transfer = 0.4e-9 + 0.5e-9 / workload.concurrency;
    setup.max(transfer) * if workload.read_share < 1.0 { 1.5 } else { 1.0 }
}

fn samples(workloads: impl IntoIterator<Item = Workload>, repeats: u32) -> Vec<Sample> {
    let repeat = |workload: Workload| {
        (0..repeats).map(move |repeat| Sample {
            experiment: "order".into(),
            repeat,
            workload,
            // Repeats lie 5 % apart.
            bytes_per_second: (1.0 + 0.05 * (f64::from(repeat) - 1.0)) / cost(&workload),
        })
    };
    workloads.into_iter().flat_map(repeat).collect()
}

fn grid(access: Access) -> impl Iterator<Item = Workload> {
    K.into_iter().flat_map(move |k| SIZES.into_iter().map(move |size| Workload::random(access, size, k)))
}

#[test]
fn all_models_are_judged_on_the_same_points_that_none_has_seen() {
    let comparison =
        compare(&samples(grid(Access::Read).chain(grid(Access::Write)), 3), &FitOptions::default()).unwrap();
    let held_out = comparison.points.iter().filter(|point| point.held_out).count();
    assert!(comparison.splits > 1 && (40..=48).contains(&held_out), "{held_out} of 96");
    let missing: Vec<_> = comparison.without_row.iter().map(|row| (row.access, row.model)).collect();
    assert_eq!(missing, [(None, None)], "no mixed workloads: {:?}", comparison.without_row);
    for access in [Access::Read, Access::Write] {
        let rows: Vec<_> = comparison.rows.iter().filter(|row| row.access == Some(access)).collect();
        assert_eq!(rows.iter().map(|row| row.model).collect::<Vec<_>>(), ModelName::ALL);
        assert_eq!(rows.iter().map(|row| row.constants).collect::<Vec<_>>()[..3], [1, 2, 2]);
        let held_out =
            comparison.points.iter().filter(|p| p.held_out && p.workload.access() == Some(access)).count();
        assert!(rows.iter().all(|row| row.points == held_out));
    }
    for point in &comparison.points {
        let names: Vec<ModelName> = point.predicted_bytes_per_second.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ModelName::ALL);
        assert!(
            point.bytes_per_second_min < point.bytes_per_second
                && point.bytes_per_second < point.bytes_per_second_max
        );
    }
    assert_eq!(comparison.ranking.first(), Some(&ModelName::Mqssd), "{}", comparison.ranking_reason);
}

#[test]
fn errors_are_those_of_the_points() {
    let comparison = compare(&samples(grid(Access::Read), 3), &FitOptions::default()).unwrap();
    let row = comparison.rows.iter().find(|row| row.model == ModelName::Affine).unwrap();
    let mut errors: Vec<f64> = comparison
        .points
        .iter()
        .filter(|point| point.held_out)
        .map(|point| {
            let predicted = point
                .predicted_bytes_per_second
                .iter()
                .find(|(name, _)| *name == ModelName::Affine)
                .unwrap()
                .1;
            (predicted - point.bytes_per_second).abs() / point.bytes_per_second
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    assert!((row.worst_relative_error - errors.last().unwrap()).abs() < 1e-12);
    let middle = (errors[(errors.len() - 1) / 2] + errors[errors.len() / 2]) / 2.0;
    assert!((row.median_relative_error - middle).abs() < 1e-12);
}

/// As a drive's hiccup at one workload would be.
fn spoiled(samples: &[Sample], workload: Workload) -> Vec<Sample> {
    let factor = |sample: &Sample| if sample.workload == workload { 7.0 } else { 1.0 };
    samples
        .iter()
        .map(|sample| Sample { bytes_per_second: factor(sample) * sample.bytes_per_second, ..sample.clone() })
        .collect()
}

#[test]
fn what_is_held_out_has_no_influence_on_its_own_predictions() {
    let all = samples(grid(Access::Read), 3);
    let before = compare(&all, &FitOptions::default()).unwrap();
    let held_out: Vec<Workload> =
        before.points.iter().filter(|point| point.held_out).map(|point| point.workload).collect();
    for workload in held_out.into_iter().step_by(5) {
        let after = compare(&spoiled(&all, workload), &FitOptions::default()).unwrap();
        let own = |comparison: &flashgrain_model::Comparison| {
            let point = comparison.points.iter().find(|point| point.workload == workload).unwrap();
            point.predicted_bytes_per_second.clone()
        };
        assert_eq!(own(&before), own(&after));
    }
}

/// With five held-out points, whose errors scatter, a split once put affine's 39.5 % before MQSSD's 15.3 %.
#[test]
fn few_workloads_are_pooled_over_splits() {
    let few: Vec<Workload> = [1.0, 2.0, 4.0, 8.0, 16.0]
        .into_iter()
        .flat_map(|k| SIZES[..5].iter().map(move |size| Workload::random(Access::Read, *size, k)))
        .collect();
    for seed in 0..10 {
        let comparison =
            compare(&samples(few.clone(), 2), &FitOptions { seed, ..FitOptions::default() }).unwrap();
        let row = comparison.rows.iter().find(|row| row.model == ModelName::Mqssd).unwrap();
        assert_eq!(row.points, 9, "three sizes of each of the three inner concurrencies");
        assert!(comparison.splits > 1);
    }
}

#[test]
fn the_regression_of_each_concurrency_has_its_r_squared_as_in_table_2() {
    let exact = |k: f64, size: f64| {
        let workload = Workload::random(Access::Read, size, k);
        let bumps = if k == 8.0 && size == SIZES[1] { 1.5 } else { 1.0 };
        let seconds_per_byte = 80e-6 / k * workload.random_accesses_per_byte() + 1e-9;
        Sample {
            experiment: "order".into(),
            repeat: 0,
            workload,
            bytes_per_second: 1.0 / (bumps * seconds_per_byte),
        }
    };
    let all: Vec<Sample> = K.into_iter().flat_map(|k| SIZES.map(|size| exact(k, size))).collect();
    let regressions = fit(&all, &FitOptions::default()).unwrap().mqssd.unwrap().regressions(Access::Read);
    assert_eq!(regressions.iter().map(|own| own.concurrency).collect::<Vec<_>>(), K);
    for regression in regressions {
        let r_squared = regression.r_squared.unwrap();
        assert_eq!(regression.concurrency != 8.0, r_squared > 0.999_999, "{regression:?}");
        assert!(r_squared > 0.8, "{regression:?}");
    }
}

#[test]
fn a_kind_or_model_without_a_row_says_why() {
    let one_size = |access: Access| K.into_iter().map(move |k| Workload::random(access, 4096.0, k));
    let mixed = Workload { read_share: 0.5, ..Workload::random(Access::Read, 4096.0, 2.0) };
    let all = samples(one_size(Access::Read).chain([mixed]), 2);
    let comparison = compare(&all, &FitOptions::default()).unwrap();
    let why = |access: Option<Access>, model: Option<ModelName>| {
        let found = comparison.without_row.iter().find(|row| (row.access, row.model) == (access, model));
        found.map_or_else(|| panic!("{:?}", comparison.without_row), |row| row.why.as_str())
    };
    assert!(why(Some(Access::Read), Some(ModelName::Affine)).contains("differ in random accesses"));
    assert!(why(Some(Access::Read), Some(ModelName::Mqssd)).contains("0 of the measured concurrencies"));
    assert!(why(Some(Access::Write), None).contains("no samples"));
    assert!(why(None, None).contains("1 workloads"));
    assert_eq!(comparison.without_row.len(), 4);

    let three = [0.2, 0.5, 0.8].map(|read_share| Workload { read_share, ..mixed });
    let all = samples(one_size(Access::Read).chain(three), 2);
    let comparison = compare(&all, &FitOptions::default()).unwrap();
    let mixed: Vec<_> = comparison.without_row.iter().filter(|row| row.access.is_none()).collect();
    assert!(mixed.len() == 1 && mixed[0].why.contains("there are no writes"), "{mixed:?}");
}

#[test]
fn the_noise_floor_comes_from_the_repeats() {
    let comparison = compare(&samples(grid(Access::Read), 3), &FitOptions::default()).unwrap();
    let [floor] = comparison.noise_floor.as_slice() else { panic!("{:?}", comparison.noise_floor) };
    // 0.95, 1 and 1.05: off by 7.3 %, 0 % and 7.7 % of the median of the other two.
    assert_eq!((floor.access, floor.points), (Some(Access::Read), 48));
    assert!((floor.median_relative_error - (1.0 - 0.95 / 1.025)).abs() < 1e-9, "{floor:?}");
    assert!(compare(&samples(grid(Access::Read), 1), &FitOptions::default()).unwrap().noise_floor.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_comparison_whatever_the_order_of_samples() {
    let mut all = samples(grid(Access::Read), 2);
    let options = FitOptions::default();
    let before = compare(&all, &options).unwrap();
    all.reverse();
    assert_eq!(compare(&all, &options).unwrap(), before);
    assert_ne!(compare(&all, &FitOptions { seed: 2, ..options }).unwrap(), before);
}

#[test]
fn too_few_workloads_are_refused_with_what_is_needed() {
    let few = samples([Workload::random(Access::Read, 4096.0, 1.0)], 3);
    let error = compare(&few, &FitOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Samples(text) if text.contains("at least 4 request sizes")), "{error}");
    assert!(matches!(compare(&[], &FitOptions::default()), Err(Error::Samples(_))));
    // They can still be fitted, as far as they reach.
    let models = fit(&few, &FitOptions::default()).unwrap();
    assert!(models.dam.is_some() && models.affine.is_none() && models.mqssd.is_none());
}

#[test]
fn samples_of_one_concurrency_support_the_affine_model_and_no_parallelism() {
    let sizes = SIZES.into_iter().map(|size| Workload::random(Access::Read, size, 1.0));
    let models = fit(&samples(sizes, 3), &FitOptions::default()).unwrap();
    assert!(models.affine.is_some() && models.mqssd.is_none());
    let parallelism = models.pdam.unwrap().parameters().into_iter().find(|p| p.symbol == "P").unwrap();
    assert!(
        matches!(parallelism.estimate, Estimate::Undetermined { why } if why.contains("fewer than three"))
    );
}

#[test]
fn samples_of_one_size_support_pdam_only() {
    let rounds = K.into_iter().map(|k| Workload::random(Access::Read, 4096.0, k));
    let all = samples(rounds, 3);
    let models = fit(&all, &FitOptions::default()).unwrap();
    assert!(models.affine.is_none() && models.mqssd.is_none());
    let parallelism = models.pdam.unwrap().parameters().into_iter().find(|p| p.symbol == "P").unwrap();
    assert!((20.0..28.0).contains(&parallelism.estimate.value().unwrap()), "{parallelism:?}");
    assert_eq!(compare(&all, &FitOptions::default()).unwrap().ranking.first(), Some(&ModelName::Pdam));
}

#[test]
fn a_kind_that_was_not_measured_is_not_predicted() {
    let models = fit(&samples(grid(Access::Read), 1), &FitOptions::default()).unwrap();
    for model in models.iter() {
        assert!(model.seconds_per_byte(&Workload::random(Access::Read, 4096.0, 1.0)).is_some());
        assert_eq!(model.seconds_per_byte(&Workload::random(Access::Write, 4096.0, 1.0)), None);
        let mixed = Workload { read_share: 0.5, ..Workload::random(Access::Read, 4096.0, 1.0) };
        assert_eq!(model.seconds_per_byte(&mixed), None);
    }
}

#[test]
fn beyond_the_measured_concurrencies_nothing_changes() {
    let models = fit(&samples(grid(Access::Read), 1), &FitOptions::default()).unwrap();
    let at = |model: &dyn IoModel, k: f64| {
        model.seconds_per_byte(&Workload::random(Access::Read, 4096.0, k)).unwrap()
    };
    for model in models.iter() {
        assert_eq!(at(model, 128.0), at(model, 4096.0), "{}", model.name());
    }
    let mqssd = models.mqssd.as_ref().unwrap();
    assert!(at(mqssd, 3.0) < at(mqssd, 2.0) && at(mqssd, 3.0) > at(mqssd, 4.0));
}
