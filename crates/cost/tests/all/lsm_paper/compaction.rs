//! Table 4: how compaction speeds up with threads.
//!
//! The speed-up of a layout is the speed-up of a simulated bulk load. What it is made of:
//!
//! - how many compactions can run at once, which the simulation tells from the files that they share;
//! - Table 2's costs at that many threads;
//! - the processor: 2 ns per byte and thread, 12 hardware threads. The former is the only constant that does
//!   not come from the paper or from RocksDB's defaults, and a round one: with 1.5 or 2.5 ns, the worst error
//!   at k = 32 is 22 %.

use flashgrain_cost::dictionary::Operation;
use flashgrain_cost::lsm::{Layout, LsmTree};
use flashgrain_cost::{Access, IoModel, Workload};

use super::experiment::{
    FILE_BYTES, HARDWARE_THREADS, LEVEL_ZERO_SLOWDOWN_FILES, RECORDS, flushes, shape, situation,
};
use super::tables::{COMPACTION_SECONDS, CONCURRENCIES, FANOUTS, Table2};
use crate::lsm_simulation::{ConcurrentOutcome, ConcurrentRun, FewestOverlap, run_concurrently};

/// Seconds in which one thread reads, compares, checksums and copies one byte.
const MERGE_SECONDS_PER_BYTE: f64 = 2e-9;

/// Seconds per byte that one of the threads moves: §5.2's X·(t + s + T(α + β)/B) for X files, of device time,
/// which all threads share, and its share of the processor, which does not overlap with its own I/O.
fn thread_seconds_per_byte(threads: f64) -> f64 {
    let turns = (threads / HARDWARE_THREADS).max(1.0);
    MERGE_SECONDS_PER_BYTE * turns + threads * move_seconds_per_byte(threads)
}

/// Device time per byte that is read and written in pieces of a file.
fn move_seconds_per_byte(threads: f64) -> f64 {
    let of = |access| Table2.seconds_per_byte(&Workload::random(access, FILE_BYTES, threads)).unwrap();
    of(Access::Read) + of(Access::Write)
}

fn load(fanout: f64, threads: usize, seed: u64) -> ConcurrentOutcome {
    let run = ConcurrentRun {
        shape: shape(fanout, seed),
        files: flushes(),
        threads,
        level_zero_files_max: LEVEL_ZERO_SLOWDOWN_FILES,
    };
    run_concurrently(&run, &mut FewestOverlap, |threads| thread_seconds_per_byte(threads as f64).recip())
}

/// Row of Table 4 that a column's speed-up is relative to; the single level's first cell is a misprint.
fn base_row(fanout: f64) -> usize {
    usize::from(fanout.is_infinite())
}

/// Prints the speed-ups of every layout and k beside the paper's and yields the relative errors at k = 32.
fn errors(seed: u64) -> Vec<f64> {
    let mut at_32 = Vec::new();
    println!("seed {seed}:");
    for (column, fanout) in FANOUTS.into_iter().chain([f64::INFINITY]).enumerate() {
        let base = base_row(fanout);
        let first = load(fanout, CONCURRENCIES[base], seed).time;
        for (row, threads) in CONCURRENCIES.into_iter().enumerate().skip(base + 1) {
            let outcome = load(fanout, threads, seed);
            let speed_up = first / outcome.time;
            let paper = COMPACTION_SECONDS[base][column] / COMPACTION_SECONDS[row][column];
            let error = speed_up / paper - 1.0;
            println!(
                "  F {fanout:>3} k {threads:>2}: {speed_up:>5.2}, paper {paper:>5.2} ({:>+5.1} %), {:.1} threads used",
                100.0 * error,
                outcome.threads_mean
            );
            if threads == 32 {
                at_32.push(error);
            }
        }
    }
    at_32
}

#[test]
fn speed_ups_of_compaction_by_32_threads_are_within_20_percent() {
    for error in errors(1) {
        assert!(error.abs() <= 0.20, "{error}");
    }
}

/// The paper assumes that all k threads always move data (§5.3.2), which gives every layout the speed-up of
/// the drive.
#[test]
fn a_speed_up_without_effective_concurrency_misses_two_fanouts() {
    let speed_up = move_seconds_per_byte(1.0) / move_seconds_per_byte(32.0);
    let error =
        |column: usize| speed_up / (COMPACTION_SECONDS[0][column] / COMPACTION_SECONDS[5][column]) - 1.0;
    let errors: Vec<f64> = (0..FANOUTS.len()).map(error).collect();
    println!("all k threads, drive alone: {speed_up:.2} for every F; errors {errors:.3?}");
    assert_eq!(errors.iter().filter(|error| error.abs() > 0.20).count(), 2);
}

/// The formulas, which cost nothing, beside the simulation that they stand for. They rank the fanouts as the
/// paper does, too.
#[test]
fn formulas_give_speed_ups_within_20_percent_in_the_papers_order() {
    let mut last = f64::INFINITY;
    for (column, fanout) in FANOUTS.into_iter().chain([f64::INFINITY]).enumerate() {
        let base = base_row(fanout);
        let speed_up = load_seconds(fanout, CONCURRENCIES[base]) / load_seconds(fanout, 32);
        let paper = COMPACTION_SECONDS[base][column] / COMPACTION_SECONDS[5][column];
        println!(
            "F {fanout:>3}: {speed_up:.2}, paper {paper:.2} ({:+.1} %)",
            100.0 * (speed_up / paper - 1.0)
        );
        assert!((speed_up / paper - 1.0).abs() <= 0.20);
        assert!(speed_up < last);
        last = speed_up;
    }
}

/// Seconds of the bulk load by the formulas: the sum over its parts, each with the tree that it finds.
fn load_seconds(fanout: f64, threads: usize) -> f64 {
    const PARTS: u32 = 100;
    let layout = if fanout.is_infinite() { Layout::SingleLevel } else { Layout::Leveled };
    let tree = LsmTree {
        fanout,
        level_zero_batch_files: LEVEL_ZERO_SLOWDOWN_FILES as f64,
        compaction_threads: threads as f64,
        subcompactions: threads as f64,
        ..LsmTree::new(layout)
    };
    let part = |part: u32| {
        let mut situation = situation(1);
        situation.records.count *= (f64::from(part) + 0.5) / f64::from(PARTS);
        let work = tree.compaction_work(Operation::Insert, &situation);
        let used = work.effective_threads(threads as f64);
        let moved = RECORDS.total_bytes() / f64::from(PARTS) * work.read();
        moved * thread_seconds_per_byte(used) / used
    };
    (0..PARTS).map(part).sum()
}
