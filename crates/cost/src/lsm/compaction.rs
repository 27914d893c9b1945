//! What compactions of a tree move and how many of them can run at once (MQSSD paper §5.2.1, Eq. 9 and 11).

use super::{Layout, LsmTree};
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
