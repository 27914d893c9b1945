//! Commits that exclude readers, beside simulated clients that take turns at a lock.

use std::collections::VecDeque;

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::BTree;
use flashgrain_cost::ranking::{
    CostsOfKind, DriveCosts, Durability, Ends, Engine, Operations, ProcessorTimes, Records, Workload, asked,
    price,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const CLIENTS: u32 = 8;
const READ_S: f64 = 40e-6;
const COMMIT_S: f64 = 700e-6;
const FLUSHES: f64 = 4.0;

/// A drive whose accesses cost nothing beside its flushes.
fn drive() -> DriveCosts {
    let nothing = || CostsOfKind {
        setup: vec![(1.0, Interval::exact(1e-15))],
        transfer: vec![(1.0, Interval::exact(1e-21))],
    };
    let flush_seconds = Interval::exact(COMMIT_S / FLUSHES);
    DriveCosts {
        reads: nothing(),
        writes: nothing(),
        flush_seconds,
        parallelism: None,
        interference: Vec::new(),
    }
}

fn predicted(writes: f64, commits_exclude_readers: bool) -> f64 {
    let workload = Workload {
        name: "mix".into(),
        operations: Operations { point_hits: 1.0 - writes, updates: writes, ..Operations::default() },
        records: Records { count: 1_000_000, key_bytes: 8, value_bytes: 100 },
        memory_bytes: 1 << 30,
        skew: 0.0,
        clients: CLIENTS,
        rate_per_second: None,
        cores: None,
        durability: Durability::Sync,
        lifetime: None,
        assumptions: Vec::new(),
    };
    let processor = ProcessorTimes {
        operation: Interval::exact(READ_S),
        scanned_record: Interval::exact(0.0),
        request: Interval::exact(0.0),
    };
    let engine = Engine {
        flushes_per_commit: FLUSHES,
        group_commit: false,
        commits_exclude_readers,
        processor,
        ..Engine::ideal(&workload)
    };
    price(&asked(&BTree::new(4096.0), &workload, &engine), &workload, &engine, &drive(), Ends::VALUE).rate
}

/// Operations per second of clients that read beside each other, and commit one at a time: with readers, or
/// after those before it have ended and before those behind it begin.
fn simulated(writes: f64, commits_exclude_readers: bool) -> f64 {
    let mut rng = Pcg64::seed_from_u64(5);
    let mut waiting: VecDeque<bool> = (0..CLIENTS).map(|_| rng.random_bool(writes)).collect();
    // Ends of the operations under way, each with whether it is a commit.
    let mut running: Vec<(f64, bool)> = Vec::new();
    let (mut now, mut done) = (0.0, 0);
    while done < 200_000 {
        // The lock is taken in order. Without exclusion a commit waits for other commits alone.
        let mut still = VecDeque::new();
        for is_commit in waiting.drain(..) {
            let commits = running.iter().any(|(_, is_commit)| *is_commit);
            let is_free = match (commits_exclude_readers, is_commit) {
                (true, true) => running.is_empty() && still.is_empty(),
                (true, false) => !commits && still.is_empty(),
                (false, true) => !commits,
                (false, false) => true,
            };
            if is_free {
                running.push((now + READ_S + if is_commit { COMMIT_S } else { 0.0 }, is_commit));
            } else {
                still.push_back(is_commit);
            }
        }
        waiting = still;
        let next = (0..running.len()).min_by(|a, b| running[*a].0.total_cmp(&running[*b].0)).unwrap();
        now = running.swap_remove(next).0;
        done += 1;
        waiting.push_back(rng.random_bool(writes));
    }
    f64::from(done) / now
}

#[test]
fn readers_wait_for_commits_that_exclude_them() {
    for writes in [0.01, 0.05, 0.2, 0.5] {
        for excludes in [false, true] {
            let (predicted, simulated) = (predicted(writes, excludes), simulated(writes, excludes));
            let ratio = predicted / simulated;
            println!("{writes} {excludes}: {predicted:.0}/s, simulated {simulated:.0}/s");
            assert!((0.9..1.15).contains(&ratio), "{writes} {excludes}: {ratio}");
        }
        assert!(predicted(writes, true) < predicted(writes, false));
    }
}
