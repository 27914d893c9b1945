//! An LSM-tree of keys: memtables, runs of sorted keys, merges that drop older versions.

use flashgrain_cost::lsm::Layout;

/// How a tree is laid out, in keys.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub layout: Layout,
    pub fanout: usize,
    /// Changes that a memtable takes, and keys of a file.
    pub file_keys: usize,
    /// Runs of level 0 that are merged at once, and files of level 1.
    pub level_one_files: usize,
}

type Run = Vec<usize>;

/// A tree, and the keys that it has moved.
pub struct Tree {
    shape: Shape,
    memtable: Vec<usize>,
    /// Level 0 first; of each level its runs, newest first, or, where a level is one run, its files by keys.
    levels: Vec<Vec<Run>>,
    pub changes: usize,
    pub flushed: usize,
    pub read: usize,
    pub written: usize,
}

fn merged(runs: &[Run]) -> Run {
    let mut keys: Run = runs.iter().flatten().copied().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl Tree {
    pub fn new(shape: Shape) -> Self {
        let levels = vec![Vec::new(), Vec::new()];
        Self { shape, memtable: Vec::new(), levels, changes: 0, flushed: 0, read: 0, written: 0 }
    }

    /// Forgets what was moved.
    pub fn reset(&mut self) {
        (self.changes, self.flushed, self.read, self.written) = (0, 0, 0, 0);
    }

    pub fn change(&mut self, key: usize) {
        self.changes += 1;
        self.memtable.push(key);
        if self.memtable.len() < self.shape.file_keys {
            return;
        }
        let run = merged(&[std::mem::take(&mut self.memtable)]);
        self.flushed += run.len();
        self.levels[0].insert(0, run);
        if self.levels[0].len() >= self.shape.level_one_files {
            let batch = std::mem::take(&mut self.levels[0]);
            match self.shape.layout {
                Layout::Leveled => self.level(batch),
                Layout::Tiered | Layout::LazyLeveled => self.tier(batch),
                Layout::SingleLevel => self.one_run(1, batch),
            }
        }
    }

    /// Keys of each level.
    pub fn level_keys(&self) -> Vec<usize> {
        self.levels.iter().map(|runs| runs.iter().map(Vec::len).sum()).collect()
    }

    /// Keys of all runs, of all versions that are kept.
    pub fn keys(&self) -> usize {
        self.level_keys().iter().sum()
    }

    /// Runs that a look-up of a missing key asks.
    pub fn runs(&self) -> usize {
        let last = self.levels.len() - 1;
        let of_level = |(level, runs): (usize, &Vec<Run>)| match self.shape.layout {
            Layout::Leveled | Layout::SingleLevel if level > 0 => runs.len().min(1),
            Layout::LazyLeveled if level == last => runs.len().min(1),
            _ => runs.len(),
        };
        self.levels.iter().enumerate().map(of_level).sum()
    }

    fn count(&mut self, from: &[Run], to: usize) {
        self.read += from.iter().map(Vec::len).sum::<usize>();
        self.written += to;
    }

    /// Merges runs and all of a level into one run.
    fn one_run(&mut self, level: usize, mut runs: Vec<Run>) {
        runs.append(&mut self.levels[level]);
        let run = merged(&runs);
        self.count(&runs, run.len());
        self.levels[level].push(run);
    }

    /// Keys of a run of this level of a tiered tree, or of a whole level of a leveled one.
    fn nominal(&self, level: usize) -> usize {
        self.shape.level_one_files * self.shape.file_keys * self.shape.fanout.pow(level as u32 - 1)
    }

    fn tier(&mut self, batch: Vec<Run>) {
        let (mut level, mut runs) = (1, batch);
        loop {
            let is_last = level + 1 == self.levels.len();
            if is_last && self.shape.layout == Layout::LazyLeveled {
                self.one_run(level, runs);
                let is_full = self.levels[level][0].len() > self.shape.fanout * self.nominal(level);
                if is_full {
                    // The run is one of a level more, and this one is as the others.
                    let run = std::mem::take(&mut self.levels[level]);
                    self.levels.push(run);
                }
                return;
            }
            let run = merged(&runs);
            self.count(&runs, run.len());
            self.levels[level].insert(0, run);
            if self.levels[level].len() < self.shape.fanout {
                return;
            }
            // Runs that are no larger together than one of them stay where they are.
            let together = merged(&self.levels[level]);
            if is_last && together.len() <= self.nominal(level) {
                let runs = std::mem::take(&mut self.levels[level]);
                self.one_run(level, runs);
                return;
            }
            runs = std::mem::take(&mut self.levels[level]);
            level += 1;
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
        }
    }

    fn level(&mut self, batch: Vec<Run>) {
        self.merge_files(batch, 1);
        let mut level = 1;
        while level < self.levels.len() {
            while self.levels[level].iter().map(Vec::len).sum::<usize>() > self.nominal(level) {
                if level + 1 == self.levels.len() {
                    self.levels.push(Vec::new());
                }
                let file = self.fewest_overlap(level);
                let file = self.levels[level].remove(file);
                self.merge_files(vec![file], level + 1);
            }
            level += 1;
        }
    }

    /// The file of a level that overlaps the fewest keys of the next for each of its own.
    fn fewest_overlap(&self, level: usize) -> usize {
        let ratio = |file: &Run| {
            let next = &self.levels[level + 1];
            let overlapped = overlap(next, file[0], file[file.len() - 1]);
            next[overlapped].iter().map(Vec::len).sum::<usize>() as f64 / file.len() as f64
        };
        let files = &self.levels[level];
        (0..files.len()).min_by(|a, b| ratio(&files[*a]).total_cmp(&ratio(&files[*b]))).unwrap()
    }

    fn merge_files(&mut self, mut runs: Vec<Run>, level: usize) {
        let first = runs.iter().map(|run| run[0]).min().unwrap();
        let last = runs.iter().map(|run| run[run.len() - 1]).max().unwrap();
        let at = overlap(&self.levels[level], first, last);
        runs.extend(self.levels[level].splice(at.clone(), []));
        let keys = merged(&runs);
        self.count(&runs, keys.len());
        let files = keys.len().div_ceil(self.shape.file_keys);
        let size = keys.len().div_ceil(files);
        self.levels[level].splice(at.start..at.start, keys.chunks(size).map(<[usize]>::to_vec));
    }
}

/// The files that have keys between two.
fn overlap(files: &[Run], first: usize, last: usize) -> std::ops::Range<usize> {
    let from = files.partition_point(|file| file[file.len() - 1] < first);
    from..files.partition_point(|file| file[0] <= last).max(from)
}
