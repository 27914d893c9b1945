//! Compactions by formulas beside simulated ones.

use flashgrain_cost::AffineCosts;
use flashgrain_cost::dictionary::{Operation, Records, Situation};
use flashgrain_cost::lsm::{Layout, LsmTree, TouchedLine, load_seconds};

use crate::lsm_simulation::{ConcurrentRun, FewestOverlap, TreeShape, files_touched, run_concurrently};

fn situation(count: f64) -> Situation {
    Situation::new(Records { count, key_bytes: 16.0, value_bytes: 2048.0 }, 0.0, 1.0)
}

/// Work and effective concurrency of the formulas beside those of the simulated load.
#[test]
fn formulas_follow_the_simulation() {
    let situation = situation(1.6e7);
    let files = (situation.records.total_bytes() / LsmTree::new(Layout::Leveled).file_bytes) as usize;
    for (layout, fanout) in [
        (Layout::Leveled, 2.0),
        (Layout::Leveled, 4.0),
        (Layout::Leveled, 8.0),
        (Layout::Leveled, 16.0),
        (Layout::Leveled, 32.0),
        (Layout::SingleLevel, f64::INFINITY),
    ] {
        for (batch, threads) in [(4.0, 4), (4.0, 32), (20.0, 4), (20.0, 32)] {
            let tree = LsmTree {
                fanout,
                level_zero_batch_files: batch,
                subcompactions: threads as f64,
                compaction_threads: threads as f64,
                ..LsmTree::new(layout)
            };
            let level_one_files = if layout == Layout::SingleLevel { 1 } else { 4 };
            let shape = TreeShape { fanout, level_one_files, levels_max: 6, keys_per_file: 16, seed: 1 };
            let run = ConcurrentRun { shape, files, threads, level_zero_files_max: batch as usize };
            let simulated = run_concurrently(&run, &mut FewestOverlap, |_| 1.0);
            let (bytes, used) = over_a_load(&tree, &situation, threads as f64);
            let moved = simulated.write_amplification - 1.0;
            println!(
                "{layout} F {fanout:>3} batch {batch:>2} k {threads:>2}: bytes {bytes:.1} simulated \
                 {moved:.1} ({:+.0} %), threads {used:.1} simulated {:.1} ({:+.0} %)",
                100.0 * (bytes / moved - 1.0),
                simulated.threads_mean,
                100.0 * (used / simulated.threads_mean - 1.0),
            );
            assert!((bytes / moved - 1.0).abs() < 0.25);
            assert!((used / simulated.threads_mean - 1.0).abs() < 0.25);
        }
    }
}

/// Bytes moved and threads used while the records arrive: means over trees of a part of the records, the
/// threads weighted by time.
fn over_a_load(tree: &LsmTree, whole: &Situation, threads: f64) -> (f64, f64) {
    let (mut bytes, mut time) = (0.0, 0.0);
    const PARTS: u32 = 50;
    for part in 0..PARTS {
        let mut situation = *whole;
        situation.records.count *= (f64::from(part) + 0.5) / f64::from(PARTS);
        let work = tree.compaction_work(Operation::Insert, &situation);
        bytes += work.read();
        time += work.read() / work.effective_threads(threads);
    }
    (bytes / f64::from(PARTS), bytes / time)
}

/// A drive that takes a second for each byte that is moved, read or written.
const SECOND_PER_BYTE: AffineCosts = AffineCosts { setup_seconds: 0.0, transfer_seconds_per_byte: 1.0 };

/// The time of a load beside that of a simulated one, whose drive is shared by all threads.
#[test]
fn a_load_takes_as_long_as_a_simulated_one() {
    let situation = situation(8e6);
    let file_bytes = LsmTree::new(Layout::Leveled).file_bytes;
    let files = (situation.records.total_bytes() / file_bytes) as usize;
    for (layout, fanout) in
        [(Layout::Leveled, 2.0), (Layout::Leveled, 8.0), (Layout::SingleLevel, f64::INFINITY)]
    {
        let tree = LsmTree { fanout, ..LsmTree::new(layout) };
        let level_one_files = if layout == Layout::SingleLevel { 1 } else { 4 };
        let shape = TreeShape { fanout, level_one_files, levels_max: 6, keys_per_file: 16, seed: 1 };
        let run = ConcurrentRun { shape, files, threads: 1, level_zero_files_max: 4 };
        let simulated = run_concurrently(&run, &mut FewestOverlap, |_| 1.0);
        // Compactions read and write each of the bytes that the simulation moves; flushes write each once.
        let simulated = (2.0 * (simulated.write_amplification - 1.0) + 1.0) * situation.records.total_bytes();
        let seconds = load_seconds(&tree, &SECOND_PER_BYTE, &situation).unwrap();
        println!("{layout} F {fanout}: {:+.0} %", 100.0 * (seconds / simulated - 1.0));
        assert!((seconds / simulated - 1.0).abs() < 0.2, "{layout} F {fanout}: {seconds} {simulated}");
    }
}

#[test]
fn the_line_of_files_touched_is_the_simulations() {
    for fanout in [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0] {
        let shape = TreeShape { fanout, level_one_files: 4, levels_max: 20, keys_per_file: 64, seed: 9 };
        let simulated = files_touched(&shape, 1000, &mut FewestOverlap).unwrap().mean;
        let line = TouchedLine::FEWEST_OVERLAP.at(fanout);
        println!("F {fanout}: {line:.2}, simulated {simulated:.2}");
        assert!((line / simulated - 1.0).abs() < 0.15, "{fanout}: {line} {simulated}");
    }
}
