//! Chooses the workloads that the fits do not see.
//!
//! Workloads are split, not samples: all repeats of a workload, in whatever experiment, go together. Of reads
//! and of writes, workloads *between* others are held out: not at the smallest or largest concurrency, nor at
//! the extremes of random accesses per byte for their concurrency, so that models are asked to interpolate,
//! as users do; and each concurrency keeps enough for its regression.
//!
//! If few workloads were measured, a single split holds out few points, and five points rank models by
//! chance. So splits are drawn until the points that some split holds out suffice, or until every workload
//! that may be held out was.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::bootstrap::generator;
use crate::observation::Observation;
use crate::{Access, Workload};
use flashgrain_cost::WorkloadKey;

/// Workloads of one kind and concurrency that must stay with the fits.
const FEWEST_IN_ROW: usize = 3;

/// One workload in this number is held out of those that could be without a regression of their own.
const ONE_IN: usize = 3;

/// Held-out workloads of one kind, pooled over splits, beyond which no further split is made for that kind.
const POOLED_MIN: usize = 20;

/// Splits at most: each takes a fit of all models.
const SPLITS_MAX: usize = 16;

/// Draws at most: late ones rarely hold out a workload that none before has held out.
const DRAWS_MAX: usize = 128;

/// Keys of the held-out workloads of each split; the seed decides. Empty if there are too few workloads to
/// hold any out.
///
/// Every split but the first holds out only workloads of kinds that the splits before held out too few of.
pub(super) fn splits(observations: &[Observation], seed: u64) -> Vec<BTreeSet<WorkloadKey>> {
    let workloads: BTreeMap<WorkloadKey, Workload> =
        observations.iter().map(|observation| (observation.workload.key(), observation.workload)).collect();
    let mut rng = generator(seed);
    let mut splits: Vec<BTreeSet<WorkloadKey>> = Vec::new();
    let mut pooled: BTreeSet<WorkloadKey> = BTreeSet::new();
    for _ in 0..DRAWS_MAX {
        let mut split = held_out(&workloads, &mut rng);
        let access = |key: &WorkloadKey| workloads.get(key).map(Workload::access);
        split.retain(|key| pooled.iter().filter(|other| access(other) == access(key)).count() < POOLED_MIN);
        if split.is_subset(&pooled) {
            continue;
        }
        pooled.extend(&split);
        splits.push(split);
        if splits.len() == SPLITS_MAX {
            break;
        }
    }
    splits
}

/// Keys of the held-out workloads of one split.
fn held_out(workloads: &BTreeMap<WorkloadKey, Workload>, rng: &mut Pcg64) -> BTreeSet<WorkloadKey> {
    let of_kind = |access: Option<Access>| -> Vec<Workload> {
        workloads.values().filter(|workload| workload.access() == access).copied().collect()
    };
    let mut held_out = BTreeSet::new();
    for access in [Access::Read, Access::Write] {
        held_out.extend(of_one_kind(&of_kind(Some(access)), rng).iter().map(Workload::key));
    }
    held_out.extend(one_in(ONE_IN, of_kind(None), rng).iter().map(Workload::key));
    held_out
}

fn of_one_kind(workloads: &[Workload], rng: &mut Pcg64) -> Vec<Workload> {
    let mut rows: BTreeMap<u64, Vec<Workload>> = BTreeMap::new();
    for workload in workloads {
        rows.entry(workload.concurrency.to_bits()).or_default().push(*workload);
    }
    // One or two concurrencies have none between them.
    let ends: Vec<u64> = match rows.len() {
        0..=2 => Vec::new(),
        _ => rows.keys().next().into_iter().chain(rows.keys().next_back()).copied().collect(),
    };
    let mut held_out = Vec::new();
    let mut alone = Vec::new();
    // Half of the inner workloads of each row; of an odd number the larger half in every other row.
    let mut round_up = rng.random::<bool>();
    for (concurrency, mut row) in rows {
        if ends.contains(&concurrency) {
            continue;
        }
        if row.len() < FEWEST_IN_ROW {
            alone.extend(row);
            continue;
        }
        row.sort_by(|a, b| a.random_accesses_per_byte().total_cmp(&b.random_accesses_per_byte()));
        let spare = row.len() - FEWEST_IN_ROW;
        let mut inner: Vec<Workload> = row.get(1..row.len() - 1).unwrap_or_default().to_vec();
        let half = if round_up { inner.len().div_ceil(2) } else { inner.len() / 2 };
        round_up = !round_up;
        inner.shuffle(rng);
        inner.truncate(half.min(spare));
        held_out.extend(inner);
    }
    held_out.extend(one_in(ONE_IN, alone, rng));
    held_out
}

/// One workload in `parts`, drawn at random.
fn one_in(parts: usize, mut workloads: Vec<Workload>, rng: &mut Pcg64) -> Vec<Workload> {
    workloads.shuffle(rng);
    workloads.truncate(workloads.len() / parts);
    workloads
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first split.
    fn held_out(observations: &[Observation], seed: u64) -> BTreeSet<WorkloadKey> {
        splits(observations, seed).into_iter().next().unwrap_or_default()
    }

    fn observation(experiment: &str, workload: Workload) -> Observation {
        Observation { experiment: experiment.into(), workload, repeats: vec![1.0] }
    }

    fn grid() -> Vec<Observation> {
        let sizes = [4e3, 13e3, 41e3, 131e3, 410e3, 1.3e6, 4.1e6];
        let mut observations = Vec::new();
        for access in [Access::Read, Access::Write] {
            for power in 0..8 {
                for size in sizes {
                    let workload = Workload::random(access, size, f64::from(1 << power));
                    observations.push(observation("order", workload));
                }
            }
        }
        observations
    }

    #[test]
    fn a_quarter_of_the_grid_is_held_out_from_its_inside() {
        for seed in 0..20 {
            let observations = grid();
            let held_out = held_out(&observations, seed);
            assert_eq!(held_out.len(), 30, "of 112 workloads");
            for observation in &observations {
                let workload = &observation.workload;
                let at_edge = [1.0, 128.0].contains(&workload.concurrency)
                    || [4e3, 4.1e6].contains(&workload.request_bytes);
                assert!(!(at_edge && held_out.contains(&workload.key())), "{workload:?}");
            }
            for access in [Access::Read, Access::Write] {
                for power in 0..8 {
                    let left =
                        observations.iter().map(|observation| observation.workload).filter(|workload| {
                            workload.access() == Some(access)
                                && workload.concurrency == f64::from(1 << power)
                                && !held_out.contains(&workload.key())
                        });
                    assert!(left.count() >= FEWEST_IN_ROW);
                }
            }
        }
    }

    #[test]
    fn the_seed_decides_and_only_the_seed() {
        let observations = grid();
        assert_eq!(held_out(&observations, 5), held_out(&observations, 5));
        assert_ne!(held_out(&observations, 5), held_out(&observations, 6));
    }

    #[test]
    fn a_workload_is_held_out_in_every_experiment_or_in_none() {
        let mut observations = grid();
        let again: Vec<Observation> =
            observations.iter().map(|old| observation("depth", old.workload)).collect();
        let before = held_out(&observations, 1);
        observations.extend(again);
        assert_eq!(held_out(&observations, 1), before);
    }

    #[test]
    fn concurrencies_with_just_enough_workloads_keep_them_all() {
        let observations: Vec<Observation> = [1.0, 2.0, 4.0, 8.0, 16.0]
            .into_iter()
            .flat_map(|k| {
                [4e3, 64e3, 1e6].map(|size| observation("order", Workload::random(Access::Read, size, k)))
            })
            .collect();
        for seed in 0..10 {
            assert!(held_out(&observations, seed).is_empty());
        }
    }

    #[test]
    fn sizes_at_one_concurrency_and_concurrencies_at_one_size_are_split_too() {
        let sizes: Vec<Observation> = (0..13)
            .map(|i| observation("size", Workload::random(Access::Read, 4096.0 * f64::from(1 << i), 1.0)))
            .collect();
        assert!((5..=6).contains(&held_out(&sizes, 1).len()));
        let rounds: Vec<Observation> = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]
            .map(|p| observation("parallel", Workload::random(Access::Read, 65536.0, f64::from(p))))
            .into();
        let held_out = held_out(&rounds, 1);
        assert_eq!(held_out.len(), 3);
        assert!(!held_out.contains(&Workload::random(Access::Read, 65536.0, 64.0).key()));
    }

    #[test]
    fn splits_go_on_until_the_points_suffice_or_all_were_held_out() {
        let pooled = |observations: &[Observation], seed: u64| -> (usize, usize) {
            let splits = splits(observations, seed);
            (splits.len(), splits.into_iter().flatten().collect::<BTreeSet<_>>().len())
        };
        let sizes: Vec<Observation> = (0..13)
            .map(|i| observation("size", Workload::random(Access::Read, 4096.0 * f64::from(1 << i), 1.0)))
            .collect();
        let mixed: Vec<Observation> = (1..8)
            .map(|i| {
                let workload = Workload::random(Access::Read, 4096.0, f64::from(1 << i));
                observation("mix", Workload { read_share: 0.5, ..workload })
            })
            .collect();
        for seed in 0..20 {
            let (count, points) = pooled(&grid(), seed);
            assert!((2..=3).contains(&count) && (40..=60).contains(&points), "{count}: {points}");
            assert_eq!(pooled(&sizes, seed).1, 11, "all but the ends");
            assert_eq!(pooled(&mixed, seed).1, 7, "leave one out");
        }
        assert!(splits(&sizes[..3], 1).is_empty());
    }

    #[test]
    fn a_kind_with_enough_points_is_not_split_again() {
        let mut observations = grid();
        observations.retain(|own| own.workload.access() == Some(Access::Read));
        let more = grid().into_iter().filter(|own| own.workload.access() == Some(Access::Write));
        observations.extend(more.filter(|own| own.workload.concurrency == 4.0));
        let all = splits(&observations, 3);
        let reads = |split: &BTreeSet<WorkloadKey>| {
            observations
                .iter()
                .filter(|own| {
                    own.workload.access() == Some(Access::Read) && split.contains(&own.workload.key())
                })
                .count()
        };
        let counts: Vec<usize> = all.iter().map(reads).collect();
        let before_last: usize = counts.iter().take(2).sum();
        assert!(before_last >= POOLED_MIN, "{counts:?}");
        assert!(counts.iter().skip(2).all(|count| *count == 0), "{counts:?}");
    }
}
