//! The data that compactions of a tree move, and how many of them can run at once (MQSSD paper §5.2.1, Eq. 9
//! and 11).

use super::runs::FANOUT_MIN;
use super::{Layout, LsmTree, TouchedLine};
use crate::dictionary::{Operation, Situation, Uses};

/// Work of compactions from one level to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Bytes read per byte that changes.
    pub read: f64,
    /// Bytes written: fewer, where older versions of records are dropped.
    pub written: f64,
    /// Threads that can do this at the same time.
    pub threads_max: f64,
    /// Whether it never runs together with the step above it, since both use all files of the level between.
    pub excludes_above: bool,
}

/// The data that all compactions together move and use.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionWork {
    /// Bytes that flushes write per byte that changes: of a record that changed again, one version.
    pub flushed: f64,
    /// The steps, from level 0 down.
    pub steps: Vec<Step>,
}

impl CompactionWork {
    /// Bytes that compactions read per byte that changes.
    pub fn read(&self) -> f64 {
        self.steps.iter().map(|step| step.read).sum()
    }

    /// Bytes that compactions write per byte that changes.
    pub fn written(&self) -> f64 {
        self.steps.iter().map(|step| step.written).sum()
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
            let time = step.read / step.threads_max.clamp(1.0, threads);
            sequence = if step.excludes_above { sequence + time } else { time };
            longest = longest.max(sequence);
        }
        if longest > 0.0 { (self.read() / longest).clamp(1.0, threads) } else { 1.0 }
    }
}

impl LsmTree {
    /// Files of level 0 that are merged at once: at least C, more where the writer is faster than compaction.
    fn level_zero_batch(&self) -> f64 {
        self.level_zero_batch_files.max(self.level_one_files).max(1.0)
    }

    /// Changes that a memtable takes.
    pub(super) fn memtable(&self, situation: &Situation) -> f64 {
        (self.file_bytes / situation.records.record_bytes()).max(1.0)
    }

    /// Changes that are merged into level 1 at once.
    fn batch(&self, situation: &Situation) -> f64 {
        self.level_zero_batch() * self.memtable(situation)
    }

    /// The changes that a run of a tiered level has gathered, from level 1 on.
    pub(super) fn windows(&self, situation: &Situation) -> impl Iterator<Item = f64> + use<> {
        let fanout = self.fanout.max(FANOUT_MIN);
        std::iter::successors(Some(self.batch(situation)), move |changes| Some(changes * fanout))
    }

    /// The data that compactions move for each byte that such operations change.
    ///
    /// A memtable takes changes until they have the bytes of a file, and keeps the last one of each record.
    /// The data that enter a level were gathered over a window of changes, and have as many records as these
    /// reach.
    pub fn compaction_work(&self, operation: Operation, situation: &Situation) -> CompactionWork {
        let keys = situation.changed_keys(operation);
        let flow = Flow {
            record_bytes: situation.records.record_bytes(),
            batch: self.batch(situation),
            flushed: keys.first_share(self.memtable(situation)),
            total_bytes: situation.records.total_bytes(),
            keys,
        };
        let mut levels = self.level_bytes(situation);
        if let Some(last) = levels.last_mut().filter(|_| flow.keys.repeat()) {
            // Records that are replaced stay there until their newest version arrives.
            *last = flow.total_bytes;
        }
        CompactionWork {
            flushed: flow.flushed,
            steps: match self.layout {
                Layout::SingleLevel => vec![self.merge_into_everything(&flow)],
                Layout::Leveled => self.leveled_steps(&levels, &flow),
                Layout::Tiered | Layout::LazyLeveled => self.tiered_steps(&levels, &flow),
            },
        }
    }

    /// Eq. 11: new files span all keys, so that all files are rewritten, in as many parts as there are files.
    fn merge_into_everything(&self, flow: &Flow) -> Step {
        let files = flow.total_bytes / self.file_bytes;
        let rewritten = files / self.level_zero_batch();
        Step {
            read: flow.flushed + rewritten,
            written: rewritten + flow.added(flow.batch),
            threads_max: files.min(self.subcompactions),
            excludes_above: false,
        }
    }

    /// Eq. 9: C files of level 1 for those of level 0, then a number of files that is linear in the fanout.
    fn leveled_steps(&self, levels: &[f64], flow: &Flow) -> Vec<Step> {
        let level_one = levels.first().copied().unwrap_or(0.0);
        let level_one_files = level_one / self.file_bytes;
        let rewritten = level_one_files / self.level_zero_batch();
        // The window of changes that a full level has gathered; the last level has all records.
        let window = |bytes: f64, is_last: bool| {
            if is_last { f64::INFINITY } else { flow.keys.reaching(bytes / flow.record_bytes) }
        };
        let held = window(level_one, levels.len() < 2);
        let mut steps = vec![Step {
            read: flow.flushed + rewritten,
            written: rewritten + flow.joined(flow.batch, held),
            threads_max: level_one_files.min(self.subcompactions),
            excludes_above: false,
        }];
        let batch_bytes = flow.keys.distinct(flow.batch) * flow.record_bytes;
        for (position, pair) in levels.windows(2).enumerate() {
            let [upper, lower] = pair else { continue };
            // A batch makes level 1 larger than its capacity until as many files have left it. They leave one
            // by one at the end, so that half of them move at the same time on average.
            let batch_bytes = if position == 0 { batch_bytes } else { 0.0 };
            let upper_bytes = upper + batch_bytes / 2.0;
            // A range of keys gathers until all of it moves on: it has half of that on average.
            let gathered = 2.0 * window(upper_bytes, false);
            let moved = flow.keys.first_share(gathered);
            let moved_bytes = moved * gathered * flow.record_bytes;
            let is_last = position + 2 == levels.len();
            let fanout = 2.0 * lower / moved_bytes;
            let touched = if is_last && flow.keys.repeat() { REPLACED_LINE } else { self.touched }.at(fanout);
            let read = moved * touched;
            let dropped = moved - flow.joined(gathered, window(*lower, is_last));
            let batch_files = batch_bytes / self.file_bytes;
            steps.push(Step {
                read,
                written: read - dropped,
                threads_max: if position == 0 { batch_files / 2.0 } else { upper / self.file_bytes },
                excludes_above: position == 0,
            });
        }
        steps
    }

    /// Each byte is rewritten once per level; a single run at the end is rewritten for each batch that
    /// arrives. Runs span all keys, so that merges can be split like those of level 0.
    fn tiered_steps(&self, levels: &[f64], flow: &Flow) -> Vec<Step> {
        let fanout = self.fanout.max(FANOUT_MIN);
        let is_lazy = self.layout == Layout::LazyLeveled;
        let (mut steps, mut window, mut read) = (Vec::new(), flow.batch, flow.flushed);
        for (position, bytes) in levels.iter().enumerate() {
            let is_single = is_lazy && position + 1 == levels.len();
            let rewritten = if is_single { bytes / flow.record_bytes / window } else { 0.0 };
            let written = if is_single { flow.added(window) } else { flow.keys.first_share(window) };
            let files = window * flow.record_bytes * (1.0 + rewritten) / self.file_bytes;
            let threads_max = files.min(self.subcompactions);
            steps.push(Step {
                read: read + rewritten,
                written: written + rewritten,
                threads_max,
                excludes_above: false,
            });
            (window, read) = (window * fanout, written);
        }
        if !is_lazy && flow.keys.repeat() {
            // The runs of the last level have many versions of all records, and become one.
            for _ in 0..2 {
                let written = flow.keys.first_share(window);
                let threads_max = self.subcompactions;
                steps.push(Step { read, written, threads_max, excludes_above: false });
                (window, read) = (window * fanout, written);
            }
        }
        steps
    }
}

/// Files touched in a last level whose records are replaced. No part of it is sparser than others, for a file
/// above it to be chosen that overlaps less: the file itself, half as many as are below it on average, as
/// it has gathered twice the mean, and one more for its two ends.
const REPLACED_LINE: TouchedLine = TouchedLine { intercept: 2.0, slope: 0.5 };

/// Changes on their way down a tree.
struct Flow {
    keys: Uses,
    record_bytes: f64,
    /// Changes that are merged into level 1 at once.
    batch: f64,
    /// Bytes of a flush for each byte that changes.
    flushed: f64,
    total_bytes: f64,
}

impl Flow {
    /// Records that a window of changes adds to a level with those of another window, for each change.
    fn joined(&self, window: f64, held: f64) -> f64 {
        match self.keys.repeat() {
            false => 1.0,
            true if held.is_infinite() => 0.0,
            true => (self.keys.distinct(window + held) - self.keys.distinct(held)) / window,
        }
    }

    /// The same for a level with all records.
    fn added(&self, window: f64) -> f64 {
        self.joined(window, f64::INFINITY)
    }
}
