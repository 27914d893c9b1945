//! Drives that obey one of the models exactly, measured with 3 % noise: the model's parameters are recovered,
//! and the model is ranked first.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use flashgrain_model::{
    Access, Estimate, FitOptions, FittedModel, ModelName, Models, Sample, Workload, compare, fit,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const PAGE: f64 = 4096.0;
const NOISE: f64 = 0.03;
const REPEATS: u32 = 3;
/// Random accesses as a share of pages.
const FRACTIONS: [f64; 7] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
const CONCURRENCIES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const SEEDS: std::ops::Range<u64> = 0..8;

/// Seconds per page of an access kind at a share of random pages and a concurrency.
type Cost = fn(Access, f64, f64) -> f64;

/// Standard normal (Box and Muller).
fn normal(rng: &mut Pcg64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn push(
    samples: &mut Vec<Sample>,
    experiment: &str,
    workload: Workload,
    seconds_per_page: f64,
    rng: &mut Pcg64,
) {
    for repeat in 0..REPEATS {
        let bytes_per_second = PAGE / seconds_per_page * (NOISE * normal(rng)).exp();
        samples.push(Sample { experiment: experiment.into(), repeat, workload, bytes_per_second });
    }
}

/// The grid of the MQSSD paper's benchmark.
fn grid(cost: Cost, seed: u64) -> Vec<Sample> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut samples = Vec::new();
    for access in [Access::Read, Access::Write] {
        for k in CONCURRENCIES {
            for share in FRACTIONS {
                let workload = Workload::random(access, PAGE / share, k);
                push(&mut samples, "order", workload, cost(access, share, k), &mut rng);
            }
        }
    }
    samples
}

fn by_kind<T>(access: Access, read: T, write: T) -> T {
    if access == Access::Read { read } else { write }
}

fn dam(access: Access, _share: f64, _k: f64) -> f64 {
    by_kind(access, 5e-6, 12e-6)
}

const CYCLE_COST: (f64, f64) = (30e-6, 80e-6);
const P: (f64, f64) = (5.5, 3.2);

fn pdam(access: Access, _share: f64, k: f64) -> f64 {
    by_kind(access, CYCLE_COST.0 / k.min(P.0), CYCLE_COST.1 / k.min(P.1))
}

const SETUP: (f64, f64) = (60e-6, 150e-6);
const TRANSFER: (f64, f64) = (1e-6, 3e-6);

fn affine(access: Access, share: f64, _k: f64) -> f64 {
    by_kind(access, SETUP.0 * share + TRANSFER.0, SETUP.1 * share + TRANSFER.1)
}

/// t(k) or s(k), seconds per access.
fn mqssd_setup(access: Access, k: f64) -> f64 {
    1e-6 * by_kind(
        access,
        (100.0 + 4.0 * k + 0.6 * k * k) / (1.0 + 0.6 * k + 0.4 * k * k),
        (150.0 + 20.0 * k + 0.5 * k * k) / (1.0 + 0.5 * k + 0.15 * k * k),
    )
}

/// α(k) or β(k), seconds per page.
fn mqssd_transfer(access: Access, k: f64) -> f64 {
    1e-6 * by_kind(
        access,
        (2.0 + 0.3 * k + 0.06 * k * k) / (1.0 + 0.5 * k + 0.1 * k * k),
        (3.0 + 1.5 * k + 0.2 * k * k + 0.01 * k * k * k) / (1.0 + 0.4 * k + 0.1 * k * k + 0.014 * k * k * k),
    )
}

fn mqssd(access: Access, share: f64, k: f64) -> f64 {
    mqssd_setup(access, k) * share + mqssd_transfer(access, k)
}

/// Reads and writes mixed, with time of reads and writes added up and lengthened by γ · 4ρ(1 - ρ).
fn mixes(gamma: f64, seed: u64) -> Vec<Sample> {
    let mut rng = Pcg64::seed_from_u64(seed ^ 0x6d69_7865);
    let mut samples = Vec::new();
    for k in [1.0, 8.0, 64.0] {
        for share in [1.0, 1.0 / 16.0] {
            for read_share in [0.1, 0.25, 0.5, 0.75, 0.9] {
                let workload = Workload { read_share, ..Workload::random(Access::Read, PAGE / share, k) };
                let reads = read_share * mqssd(Access::Read, share, k);
                let writes = (1.0 - read_share) * mqssd(Access::Write, share, k);
                let of_time = reads / (reads + writes);
                let cost = (reads + writes) * (1.0 + gamma * 4.0 * of_time * (1.0 - of_time));
                push(&mut samples, "mix", workload, cost, &mut rng);
            }
        }
    }
    samples
}

fn fitted(samples: &[Sample], resamples: u32) -> Models {
    fit(samples, &FitOptions { resamples, ..FitOptions::default() }).unwrap()
}

fn off(fitted: Option<f64>, truth: f64) -> f64 {
    (fitted.unwrap() / truth - 1.0).abs()
}

const KINDS: [Access; 2] = [Access::Read, Access::Write];

#[test]
fn dam_costs_are_recovered_within_5_percent() {
    for seed in SEEDS {
        let model = fitted(&grid(dam, seed), 0).dam.unwrap();
        for access in KINDS {
            assert!(off(model.page_cost_seconds(access), dam(access, 1.0, 1.0)) < 0.05, "seed {seed}");
        }
    }
}

#[test]
fn pdam_cycle_cost_and_parallelism_are_recovered_within_5_percent() {
    for seed in SEEDS {
        let model = fitted(&grid(pdam, seed), 0).pdam.unwrap();
        for access in KINDS {
            let (cycle_cost, parallelism) =
                (by_kind(access, CYCLE_COST.0, CYCLE_COST.1), by_kind(access, P.0, P.1));
            assert!(off(model.cycle_cost_seconds(access), cycle_cost) < 0.05, "seed {seed}");
            assert!(off(model.parallelism(access), parallelism) < 0.05, "seed {seed}");
        }
    }
}

#[test]
fn affine_setup_and_transfer_are_recovered_within_5_percent() {
    for seed in SEEDS {
        let model = fitted(&grid(affine, seed), 0).affine.unwrap();
        for access in KINDS {
            let (setup, transfer) =
                (by_kind(access, SETUP.0, SETUP.1), by_kind(access, TRANSFER.0, TRANSFER.1));
            assert!(off(model.setup_seconds(access), setup) < 0.05, "seed {seed}");
            assert!(off(model.transfer_seconds_per_byte(access), transfer / PAGE) < 0.05, "seed {seed}");
        }
    }
}

#[test]
fn mqssd_costs_at_every_k_are_recovered_within_5_percent() {
    let mut errors = Vec::new();
    for seed in SEEDS {
        let model = fitted(&grid(mqssd, seed), 0).mqssd.unwrap();
        for access in KINDS {
            for k in CONCURRENCIES {
                let setup = off(model.setup_seconds(access, k), mqssd_setup(access, k));
                let transfer =
                    off(model.transfer_seconds_per_byte(access, k), mqssd_transfer(access, k) / PAGE);
                errors.extend([setup, transfer]);
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error <= 0.05).count();
    println!(
        "{within} of {} costs within 5 %, median {:.4}, worst {:.4}",
        errors.len(),
        errors[errors.len() / 2],
        errors[errors.len() - 1]
    );
    // A median of three repeats is off by 2 % (one standard deviation), and the setup is only a part of what
    // is measured: in hundreds of draws one beyond 5 % is chance, many would be a bias.
    assert!(within as f64 >= 0.995 * errors.len() as f64);
    assert!(errors[errors.len() / 2] < 0.015);
}

#[test]
fn interference_is_recovered_and_dropped_where_there_is_none() {
    for seed in 0..6 {
        for gamma in [-0.3, 0.4] {
            let samples = [grid(mqssd, seed), mixes(gamma, seed)].concat();
            let found = fitted(&samples, 100).mqssd.unwrap().interference().unwrap();
            assert!((found - gamma).abs() < 0.05, "seed {seed}: {found} for {gamma}");
        }
    }
    let kept = (0..6).filter(|seed| {
        let samples = [grid(mqssd, *seed), mixes(0.0, *seed)].concat();
        fitted(&samples, 100).mqssd.unwrap().interference().is_some()
    });
    assert!(kept.count() <= 1, "a term was fitted to noise");
}

#[test]
fn interference_lowers_the_held_out_error_of_mixed_workloads() {
    let samples = [grid(mqssd, 1), mixes(0.5, 1)].concat();
    let comparison = compare(&samples, &FitOptions::default()).unwrap();
    let mixed =
        comparison.rows.iter().find(|row| row.model == ModelName::Mqssd && row.access.is_none()).unwrap();
    // Without the term, the sum of both is up to a third too short.
    assert!(mixed.median_relative_error < 0.04 && mixed.worst_relative_error < 0.1, "{mixed:?}");
}

/// 95 % intervals hold the truth in most cases.
#[test]
fn intervals_cover_the_true_values() {
    let (mut covered, mut determined, mut all) = (0, 0, 0);
    for seed in 0..4 {
        let models = fitted(&grid(affine, seed), 200);
        for parameter in models.affine.unwrap().parameters() {
            let access = parameter.access.unwrap();
            let truth = 1e6
                * match parameter.symbol.as_str() {
                    "s" => by_kind(access, SETUP.0, SETUP.1),
                    _ => by_kind(access, TRANSFER.0, TRANSFER.1),
                };
            count(&parameter.estimate, truth, &mut covered, &mut determined, &mut all);
        }
        let models = fitted(&grid(mqssd, seed), 200);
        for parameter in models.mqssd.unwrap().parameters() {
            let (Some(access), Some(k)) = (parameter.access, parameter.at_concurrency) else { continue };
            let truth = 1e6
                * match parameter.symbol.chars().next() {
                    Some('t' | 's') => mqssd_setup(access, k),
                    _ => mqssd_transfer(access, k),
                };
            count(&parameter.estimate, truth, &mut covered, &mut determined, &mut all);
        }
    }
    println!("{covered} of {determined} determined of {all}");
    assert!(determined as f64 > 0.98 * all as f64);
    assert!(covered as f64 > 0.85 * determined as f64, "{covered} of {determined}");
}

fn count(estimate: &Estimate, truth: f64, covered: &mut u32, determined: &mut u32, all: &mut u32) {
    *all += 1;
    if let Estimate::Determined { low, high, .. } = estimate {
        *determined += 1;
        *covered += u32::from((*low..=*high).contains(&truth));
    }
}

fn ranked_first(truth: ModelName, cost: Cost, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let comparison = compare(&grid(cost, seed), &FitOptions { seed, ..FitOptions::default() }).unwrap();
        assert_eq!(comparison.ranking[0], truth, "seed {seed}: {}", comparison.ranking_reason);
        assert!(comparison.ranking_reason.starts_with(&truth.to_string()));
    }
}

#[test]
fn the_true_model_is_ranked_first() {
    ranked_first(ModelName::Dam, dam, SEEDS);
    ranked_first(ModelName::Pdam, pdam, SEEDS);
    ranked_first(ModelName::Affine, affine, SEEDS);
    ranked_first(ModelName::Mqssd, mqssd, SEEDS);
}

#[test]
#[ignore = "takes a minute; run in release"]
fn the_true_model_is_ranked_first_in_200_draws() {
    for (truth, cost) in [
        (ModelName::Dam, dam as Cost),
        (ModelName::Pdam, pdam),
        (ModelName::Affine, affine),
        (ModelName::Mqssd, mqssd),
    ] {
        ranked_first(truth, cost, 0..200);
    }
}
