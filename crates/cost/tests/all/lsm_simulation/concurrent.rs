//! Compactions that run at the same time: how much of the concurrency that is offered a layout can use.

use super::movement::Movement;
use super::tree::{Compaction, Tree, TreeShape};

/// A bulk load of a simulated tree by one writer that never waits for anything but level 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConcurrentRun {
    /// Shape of the tree.
    pub shape: TreeShape,
    /// Files that the writer flushes.
    pub files: usize,
    /// Compactions that may run at the same time, and threads into which one of level 0 may be split (the
    /// paper sets both to k).
    pub threads: usize,
    /// Files at which level 0 stops the writer; at least as many as cause a compaction.
    pub level_zero_files_max: usize,
}

/// Result of a [`ConcurrentRun`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConcurrentOutcome {
    /// Time until the last compaction ended, in the unit of the rates.
    pub time: f64,
    /// Mean number of threads at work until then: the effective concurrency.
    pub threads_mean: f64,
    /// Keys written by compactions and flushes per key inserted.
    pub write_amplification: f64,
}

struct Job {
    compaction: Compaction,
    threads: usize,
    remaining: f64,
}

/// Simulates a load and the compactions that follow it until no level is overfull.
///
/// `thread_rate` is how many keys per time unit one of so many busy threads moves. A compaction runs in one
/// thread; one of level 0 is split into as many threads as it overlaps files of level 1, since each part
/// needs a boundary (MQSSD paper §5.1.1). Two compactions that share a file follow one another, so that
/// level 0 and level 1, which share all files of level 1, take turns.
pub fn run_concurrently(
    run: &ConcurrentRun,
    movement: &mut dyn Movement,
    thread_rate: impl Fn(usize) -> f64,
) -> ConcurrentOutcome {
    let mut tree = Tree::new(run.shape);
    let mut jobs: Vec<Job> = Vec::new();
    let (mut time, mut thread_time, mut moved, mut flushed) = (0.0, 0.0, 0, 0);
    let level_zero_files_max = run.level_zero_files_max.max(run.shape.level_one_files).max(1);
    loop {
        while flushed < run.files && tree.level_zero_files() < level_zero_files_max {
            tree.flush();
            flushed += 1;
        }
        schedule(&mut tree, &mut jobs, run.threads.max(1), movement);
        let threads: usize = jobs.iter().map(|job| job.threads).sum();
        let rate = thread_rate(threads);
        let duration = |job: &Job| job.remaining / (rate * job.threads as f64);
        let Some(next) = jobs.iter().map(duration).min_by(f64::total_cmp) else { break };
        time += next;
        thread_time += next * threads as f64;
        for job in &mut jobs {
            job.remaining -= next * rate * job.threads as f64;
        }
        // The job that ends is left with a rounding error at most.
        let ended = |job: &mut Job| job.remaining <= 1e-9 * job.compaction.keys as f64;
        for job in jobs.extract_if(.., ended) {
            moved += job.compaction.keys;
            tree.finish(&job.compaction);
        }
    }
    let inserted = (flushed * run.shape.file_keys()) as f64;
    ConcurrentOutcome {
        time,
        threads_mean: if time > 0.0 { thread_time / time } else { 0.0 },
        write_amplification: if flushed > 0 { 1.0 + moved as f64 / inserted } else { 1.0 },
    }
}

/// Starts what can be started, the most overfull level first, as RocksDB's scores do.
fn schedule(tree: &mut Tree, jobs: &mut Vec<Job>, threads_max: usize, movement: &mut dyn Movement) {
    while jobs.len() < threads_max {
        let levels = tree.overfull_levels();
        let Some(compaction) = levels.into_iter().find_map(|level| tree.start(level, movement)) else {
            return;
        };
        let parts = if compaction.level == 0 { compaction.lower.len().max(1) } else { 1 };
        let remaining = compaction.keys as f64;
        jobs.push(Job { compaction, threads: parts.min(threads_max), remaining });
    }
}

#[cfg(test)]
mod tests {
    use super::super::movement::FewestOverlap;
    use super::*;

    fn run(fanout: f64, threads: usize) -> ConcurrentOutcome {
        let level_one_files = if fanout.is_infinite() { 1 } else { 4 };
        let shape = TreeShape { fanout, level_one_files, levels_max: 6, keys_per_file: 16, seed: 3 };
        let run = ConcurrentRun { shape, files: 400, threads, level_zero_files_max: 20 };
        run_concurrently(&run, &mut FewestOverlap, |_| 1.0)
    }

    #[test]
    fn one_thread_is_always_busy_and_moves_what_the_write_amplification_says() {
        let outcome = run(8.0, 1);
        assert!((outcome.threads_mean - 1.0).abs() < 1e-9, "{outcome:?}");
        let keys = (outcome.write_amplification - 1.0) * 400.0 * 16.0;
        assert!((outcome.time / keys - 1.0).abs() < 1e-9, "{outcome:?}");
    }

    #[test]
    fn more_levels_and_a_single_one_use_more_threads_than_few_levels() {
        let threads = |fanout: f64| run(fanout, 32).threads_mean;
        let (two, eight, thirty_two, single) =
            (threads(2.0), threads(8.0), threads(32.0), threads(f64::INFINITY));
        println!(
            "threads used of 32: F 2 {two:.1}, F 8 {eight:.1}, F 32 {thirty_two:.1}, single {single:.1}"
        );
        assert!(two > 1.2 * eight && eight > 1.2 * thirty_two && single > 2.0 * thirty_two);
    }

    #[test]
    fn threads_that_share_one_drive_gain_nothing() {
        let alone = run(4.0, 1);
        let shape = TreeShape { fanout: 4.0, level_one_files: 4, levels_max: 6, keys_per_file: 16, seed: 3 };
        let run = ConcurrentRun { shape, files: 400, threads: 8, level_zero_files_max: 20 };
        let shared = run_concurrently(&run, &mut FewestOverlap, |threads| 1.0 / threads as f64);
        let moved = |outcome: ConcurrentOutcome| outcome.write_amplification - 1.0;
        let expected = alone.time * moved(shared) / moved(alone);
        assert!((shared.time / expected - 1.0).abs() < 1e-9, "{shared:?} {expected}");
    }
}
