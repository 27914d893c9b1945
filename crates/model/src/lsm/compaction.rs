//! What compactions of a tree move and how many of them can run at once (MQSSD paper §5.2.1, Eq. 9 and 11).

use super::{Layout, LsmTree, MergeProcessor};
use crate::IoModel;
use crate::dictionary::Situation;

/// Work of compactions from one level to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Bytes read, and written, per byte inserted.
    pub bytes: f64,
    /// Threads that can do this at the same time.
    pub threads_max: f64,
    /// Whether it never runs together with the step above it, since both use all files of the level between.
    pub excludes_above: bool,
}

/// What all compactions together move and use.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionWork {
    /// The steps, from level 0 down.
    pub steps: Vec<Step>,
}

impl CompactionWork {
    /// Bytes that compactions read per byte inserted; they write as many.
    pub fn bytes(&self) -> f64 {
        self.steps.iter().map(|step| step.bytes).sum()
    }

    /// Threads that are at work on average when up to `threads` may be: the *effective* concurrency.
    ///
    /// Each step takes at least its bytes over its threads, and steps that exclude each other follow one
    /// another. The longest such sequence bounds the rate of all, so that fewer levels or larger fanouts,
    /// which put more of the work into the steps around level 1, use fewer threads (MQSSD paper §5.3.2 sees
    /// it and assumes all k).
    pub fn effective_threads(&self, threads: f64) -> f64 {
        let threads = threads.max(1.0);
        let (mut sequence, mut longest) = (0.0, 0.0f64);
        for step in &self.steps {
            let time = step.bytes / step.threads_max.clamp(1.0, threads);
            sequence = if step.excludes_above { sequence + time } else { time };
            longest = longest.max(sequence);
        }
        if longest > 0.0 { (self.bytes() / longest).clamp(1.0, threads) } else { 1.0 }
    }
}

impl LsmTree {
    /// Files of level 0 that are merged at once: at least C, more where the writer is faster than compaction.
    fn level_zero_batch(&self) -> f64 {
        self.level_zero_batch_files.max(self.level_one_files).max(1.0)
    }

    /// Bytes per second of inserts that compactions can take for good: what threads that find something to do
    /// move together, over what an inserted byte makes them move. Faster writers fill level 0 until they are
    /// [throttled](super::throttle). `None` if the model does not know reads or writes.
    pub fn sustained_bytes_per_second(
        &self,
        situation: &Situation,
        io: &dyn IoModel,
        processor: &MergeProcessor,
    ) -> Option<f64> {
        let work = self.compaction_work(situation);
        let threads = work.effective_threads(self.compaction_threads);
        let thread_seconds = processor.thread_seconds_per_byte(io, self.file_bytes, threads)?;
        Some(threads / (thread_seconds * work.bytes()))
    }

    /// What an inserted byte makes compactions move, level by level, beside the flush that writes it once.
    pub fn compaction_work(&self, situation: &Situation) -> CompactionWork {
        let levels = self.level_bytes(situation);
        CompactionWork {
            steps: match self.layout {
                Layout::SingleLevel => vec![self.merge_into_everything(&levels)],
                Layout::Leveled => self.leveled_steps(&levels),
                Layout::Tiered | Layout::LazyLeveled => self.tiered_steps(&levels),
            },
        }
    }

    /// Eq. 11: new files span all keys, so that all files are rewritten, in as many parts as there are files.
    fn merge_into_everything(&self, levels: &[f64]) -> Step {
        let files = levels.last().copied().unwrap_or(0.0) / self.file_bytes;
        Step {
            bytes: 1.0 + files / self.level_zero_batch(),
            threads_max: files.min(self.subcompactions),
            excludes_above: false,
        }
    }

    /// Eq. 9: C files of level 1 for those of level 0, then a number of files that is linear in the fanout.
    fn leveled_steps(&self, levels: &[f64]) -> Vec<Step> {
        let level_one_files = levels.first().copied().unwrap_or(0.0) / self.file_bytes;
        let batch = self.level_zero_batch();
        let mut steps = vec![Step {
            bytes: 1.0 + level_one_files / batch,
            threads_max: level_one_files.min(self.subcompactions),
            excludes_above: false,
        }];
        for (position, pair) in levels.windows(2).enumerate() {
            let [upper, lower] = pair else { continue };
            // A batch makes level 1 larger than its capacity until as many files have left it. They leave one
            // by one at the end, so that half of them is what moves at the same time on average.
            let batch = if position == 0 { batch } else { 0.0 };
            let upper_bytes = upper + batch / 2.0 * self.file_bytes;
            let threads_max = if position == 0 { batch / 2.0 } else { upper / self.file_bytes };
            steps.push(Step {
                bytes: self.touched.at(lower / upper_bytes),
                threads_max,
                excludes_above: position == 0,
            });
        }
        steps
    }

    /// Each byte is rewritten once per level; a single run at the end is rewritten for each batch that
    /// arrives. Runs span all keys, so that merges can be split like those of level 0.
    fn tiered_steps(&self, levels: &[f64]) -> Vec<Step> {
        let step = |position: usize, bytes: &f64| {
            let is_last = position + 1 == levels.len();
            // A batch is all runs of the level above.
            let batch = match position.checked_sub(1) {
                Some(above) => levels.get(above).copied().unwrap_or(0.0),
                None => self.level_zero_batch() * self.file_bytes,
            };
            let rewritten = if is_last && self.layout == Layout::LazyLeveled { bytes / batch } else { 0.0 };
            let files = batch * (1.0 + rewritten) / self.file_bytes;
            Step {
                bytes: 1.0 + rewritten,
                threads_max: files.min(self.subcompactions),
                excludes_above: false,
            }
        };
        levels.iter().enumerate().map(|(position, bytes)| step(position, bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{ConcurrentRun, FewestOverlap, TreeShape, run_concurrently};
    use super::*;
    use crate::dictionary::Records;
    use crate::{Affine, AffineCosts};

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

    #[test]
    fn sustained_inserts_are_bound_by_the_drive_the_processor_and_the_threads() {
        let costs = AffineCosts { setup_seconds: 0.0, transfer_seconds_per_byte: 1e-9 };
        let drive = Affine::from_costs(4096.0, costs, costs);
        let situation = situation(1.6e7);
        let tree = |threads: f64| LsmTree {
            compaction_threads: threads,
            subcompactions: threads,
            ..LsmTree::new(Layout::Leveled)
        };
        let moved = tree(1.0).compaction_work(&situation).bytes();
        let rate = |threads, processor: &MergeProcessor| {
            moved * tree(threads).sustained_bytes_per_second(&situation, &drive, processor).unwrap()
        };
        // One thread merges at 500 MB/s and waits 2 ns per byte for the drive: 250 MB/s.
        let processor = MergeProcessor::of_threads(2.0);
        assert!((rate(1.0, &processor) / 250e6 - 1.0).abs() < 1e-9);
        // A drive that does one thing at a time moves 500 MB/s, however many threads ask.
        let free = MergeProcessor { seconds_per_byte: 0.0, ..processor };
        assert!((rate(32.0, &free) / 500e6 - 1.0).abs() < 1e-9);
        let many = rate(32.0, &processor);
        assert!(many > rate(1.0, &processor) && many < rate(32.0, &free));
        // More threads than the processor has do not merge faster.
        assert!(many < rate(32.0, &MergeProcessor::of_threads(32.0)));
    }

    /// Bytes moved and threads used while the records arrive: means over trees of a part of the records, the
    /// threads weighted by time.
    fn over_a_load(tree: &LsmTree, whole: &Situation, threads: f64) -> (f64, f64) {
        let (mut bytes, mut time) = (0.0, 0.0);
        const PARTS: u32 = 50;
        for part in 0..PARTS {
            let mut situation = *whole;
            situation.records.count *= (f64::from(part) + 0.5) / f64::from(PARTS);
            let work = tree.compaction_work(&situation);
            bytes += work.bytes();
            time += work.bytes() / work.effective_threads(threads);
        }
        (bytes / f64::from(PARTS), bytes / time)
    }
}
