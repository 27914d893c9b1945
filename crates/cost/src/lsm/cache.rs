//! The blocks of a tree's runs that an LRU cache holds. Blocks of small runs, which are used most, do not all
//! stay: those of the last run, each used once, push them out.

use crate::dictionary::{self, Skew, time_to_fill};

/// A run as the cache sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CachedRun {
    /// Bytes of all its blocks.
    pub bytes: f64,
    /// Bytes of its blocks that a query uses.
    pub used_bytes: f64,
    /// Bytes that its blocks have for each record.
    pub record_bytes: f64,
}

/// The size of blocks, and how the uses of records differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Uses {
    pub skew: Skew,
    pub block_bytes: f64,
}

/// Miss rate of each run's blocks in a cache of `cache_bytes`.
pub(super) fn miss_shares(runs: &[CachedRun], uses: &Uses, cache_bytes: f64) -> Vec<f64> {
    let total: f64 = runs.iter().map(|run| run.bytes).sum();
    if cache_bytes >= total {
        return vec![0.0; runs.len()];
    }
    // Of each run its blocks by how often they are used: bytes, uses of each byte per query, share of uses.
    let kinds: Vec<Vec<(f64, f64, f64)>> = runs.iter().map(|run| kinds_of(run, uses)).collect();
    let rates = kinds.iter().flatten().map(|(bytes, rate, _)| (*bytes, *rate));
    let time = time_to_fill(rates, cache_bytes);
    let missed = |kinds: &Vec<(f64, f64, f64)>| {
        kinds.iter().map(|(_, rate, share)| share * (-rate * time).exp()).sum::<f64>().min(1.0)
    };
    kinds.iter().map(missed).collect()
}

fn kinds_of(run: &CachedRun, uses: &Uses) -> Vec<(f64, f64, f64)> {
    let (records, per_block) = (run.bytes / run.record_bytes, uses.block_bytes / run.record_bytes);
    let blocks = dictionary::Uses::of(&uses.skew, records, per_block);
    let block_bytes = run.bytes / blocks.0.iter().map(|kind| kind.places).sum::<f64>();
    let kind = |kind: &dictionary::Kind| {
        let bytes = kind.places * block_bytes;
        (bytes, run.used_bytes * kind.share / bytes, kind.share)
    };
    blocks.0.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::RngExt;

    use super::*;

    const UNIFORM: Uses = Uses { skew: Skew::Uniform, block_bytes: 1.0 };

    #[test]
    fn a_single_run_is_there_as_far_as_it_fits() {
        let run = [CachedRun { bytes: 1000.0, used_bytes: 1.0, record_bytes: 1.0 }];
        for cache in [0.0, 1.0, 250.0, 999.0, 1000.0, 2000.0] {
            let miss = miss_shares(&run, &UNIFORM, cache)[0];
            assert!((miss - (1.0 - cache / 1000.0).max(0.0)).abs() < 1e-9, "{cache}: {miss}");
        }
    }

    /// An LRU cache that queries of one block of each run go through.
    #[test]
    fn a_drawn_run_is_met() {
        let runs = [20.0, 100.0, 1500.0].map(|bytes| CachedRun { bytes, used_bytes: 1.0, record_bytes: 1.0 });
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
        let run = [CachedRun { bytes: 1e6, used_bytes: 1.0, record_bytes: 1.0 }];
        let uses = Uses { skew: Skew::Zipf { exponent: 0.99 }, block_bytes: 1.0 };
        let miss = miss_shares(&run, &uses, 1e5)[0];
        // The most popular tenth, kept by a cache that knows it, would answer 83 %.
        let best = 1.0 - uses.skew.hit_share(1e6, 1.0, 0.1);
        assert!(miss > best && miss < 2.0 * best, "{miss}, {best}");
    }
}
