//! What an LRU cache of blocks holds of the runs of a tree.
//!
//! A block stays in such a cache for about the same time after each use, T (Che, Tung, Wang: "Hierarchical
//! Web Caching Systems", 2002): one that is used r times per query is there with 1 - e^(-rT), and T is such
//! that all of this together fills the cache. So blocks of small runs, which are used most, do not all stay:
//! those of the last run, each used once, push them out.

use crate::dictionary::Skew;

/// Blocks that are used alike.
#[derive(Clone, Copy, Debug)]
struct Kind {
    run: usize,
    bytes: f64,
    /// Uses of each byte per query.
    rate: f64,
    /// Share of the run's uses.
    use_share: f64,
}

/// A run as the cache sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CachedRun {
    /// Bytes of all its blocks.
    pub bytes: f64,
    /// Bytes of its blocks that a query uses.
    pub used_bytes: f64,
}

/// Records in a block, and how their uses differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Uses {
    pub skew: Skew,
    pub record_bytes: f64,
    pub block_bytes: f64,
}

/// With skew, a run's blocks are kinds of which each has so many times the blocks of the one before, which
/// are used more.
const KIND_FACTOR: f64 = 4.0;
const KINDS: i32 = 10;

/// Each doubles the digits of T that are right.
const STEPS_MAX: usize = 40;
const PRECISION: f64 = 1e-13;

/// Share of the uses of each run's blocks for which the block is not in a cache of `cache_bytes`.
pub(super) fn miss_shares(runs: &[CachedRun], uses: &Uses, cache_bytes: f64) -> Vec<f64> {
    let mut misses = vec![0.0; runs.len()];
    let total: f64 = runs.iter().map(|run| run.bytes).sum();
    if cache_bytes >= total {
        return misses;
    }
    let kinds = kinds_of(runs, uses);
    let time = characteristic_time(&kinds, cache_bytes);
    for kind in kinds {
        misses[kind.run] += kind.use_share * (-kind.rate * time).exp();
    }
    misses
}

fn kinds_of(runs: &[CachedRun], uses: &Uses) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (run, CachedRun { bytes, used_bytes }) in runs.iter().copied().enumerate() {
        if uses.skew == Skew::Uniform {
            kinds.push(Kind { run, bytes, rate: used_bytes / bytes, use_share: 1.0 });
            continue;
        }
        let (records, per_block) = (bytes / uses.record_bytes, uses.block_bytes / uses.record_bytes);
        let (mut below, mut used_below) = (0.0, 0.0);
        for power in (0..KINDS).rev() {
            let share = KIND_FACTOR.powi(-power);
            let used = if power == 0 { 1.0 } else { uses.skew.hit_share(records, per_block, share) };
            let (own, use_share) = (share - below, used - used_below);
            let rate = used_bytes * use_share / (bytes * own);
            kinds.push(Kind { run, bytes: bytes * own, rate, use_share });
            (below, used_below) = (share, used);
        }
    }
    kinds
}

/// T in queries: what is used within it fills the cache. Newton's method from below, where it never goes too
/// far, as the bytes in use are concave in T.
fn characteristic_time(kinds: &[Kind], cache_bytes: f64) -> f64 {
    let mut time = 0.0;
    for _ in 0..STEPS_MAX {
        let (mut held, mut slope) = (0.0, 0.0);
        for kind in kinds {
            let absent = (-kind.rate * time).exp();
            held += kind.bytes * (1.0 - absent);
            slope += kind.bytes * kind.rate * absent;
        }
        let step = (cache_bytes - held) / slope;
        // Only what is never used is left out.
        if !step.is_finite() || step <= PRECISION * time {
            break;
        }
        time += step;
    }
    time
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::RngExt;

    use super::*;

    const UNIFORM: Uses = Uses { skew: Skew::Uniform, record_bytes: 1.0, block_bytes: 1.0 };

    #[test]
    fn a_single_run_is_there_as_far_as_it_fits() {
        let run = [CachedRun { bytes: 1000.0, used_bytes: 1.0 }];
        for cache in [0.0, 1.0, 250.0, 999.0, 1000.0, 2000.0] {
            let miss = miss_shares(&run, &UNIFORM, cache)[0];
            assert!((miss - (1.0 - cache / 1000.0).max(0.0)).abs() < 1e-9, "{cache}: {miss}");
        }
    }

    /// An LRU cache that queries of one block of each run go through.
    #[test]
    fn a_drawn_run_is_met() {
        let runs = [20.0, 100.0, 1500.0].map(|bytes| CachedRun { bytes, used_bytes: 1.0 });
        let mut rng = crate::test_support::generator(11);
        for cache in [40, 150, 400] {
            let expected = miss_shares(&runs, &UNIFORM, cache as f64);
            let mut held: VecDeque<(usize, usize)> = VecDeque::new();
            let (mut misses, queries) = ([0.0; 3], 20_000);
            for query in 0..2 * queries {
                for (run, CachedRun { bytes, .. }) in runs.iter().enumerate() {
                    let block = (run, rng.random_range(0..*bytes as usize));
                    match held.iter().position(|own| *own == block) {
                        Some(at) => drop(held.remove(at)),
                        None if query >= queries => misses[run] += 1.0 / queries as f64,
                        None => {}
                    }
                    held.push_front(block);
                    held.truncate(cache);
                }
            }
            for (drawn, expected) in misses.iter().zip(&expected) {
                assert!((drawn - expected).abs() < 0.02, "{cache}: {misses:?}, {expected:?}");
            }
        }
    }

    #[test]
    fn popular_blocks_stay() {
        let run = [CachedRun { bytes: 1e6, used_bytes: 1.0 }];
        let uses = Uses { skew: Skew::Zipf { exponent: 0.99 }, record_bytes: 1.0, block_bytes: 1.0 };
        let miss = miss_shares(&run, &uses, 1e5)[0];
        // The most popular tenth, kept by one who knows them, would answer 83 %.
        let best = 1.0 - uses.skew.hit_share(1e6, 1.0, 0.1);
        assert!(miss > best && miss < 2.0 * best, "{miss}, {best}");
    }
}
