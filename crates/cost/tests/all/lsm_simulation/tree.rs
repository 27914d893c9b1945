//! The simulated tree: its files, what may be compacted, and merging.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::generator;
use super::movement::{Candidate, Movement};

/// Shape of a simulated tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeShape {
    /// Capacity of a level over that of the one above it: the paper's F, more than 1. Infinity makes level 1
    /// the only level below level 0 (MQSSD paper §5.2.2).
    pub fanout: f64,
    /// Files of level 1, and of level 0 when it is compacted: the paper's C, at least 1.
    pub level_one_files: usize,
    /// Levels below level 0 at most; the last one has no capacity. RocksDB's default `num_levels` is 7, which
    /// is 6 here.
    pub levels_max: usize,
    /// Keys of a file: the resolution of the simulation, at least 1.
    pub keys_per_file: usize,
    /// Seed of the keys.
    pub seed: u64,
}

impl TreeShape {
    /// Capacity of a level (from 1) in keys.
    fn capacity_keys(&self, level: usize) -> f64 {
        if level >= self.levels_max.max(1) {
            return f64::INFINITY;
        }
        let files = self.level_one_files.max(1) as f64 * self.fanout.max(1.0).powf(level as f64 - 1.0);
        // Infinity to the power of zero is one, but a single level has no capacity.
        if self.fanout.is_infinite() { f64::INFINITY } else { files * self.file_keys() as f64 }
    }

    pub(super) fn file_keys(&self) -> usize {
        self.keys_per_file.max(1)
    }
}

/// Bits of a key that say which flush brought it, modulo their range; the others are random.
const FLUSH_BITS: u32 = 16;

/// Sorted keys.
#[derive(Clone, Debug)]
pub(super) struct SortedFile {
    keys: Vec<u64>,
    /// Order of creation.
    created: u64,
    /// Flush that brought the oldest key.
    oldest_flush: u16,
    is_busy: bool,
}

impl SortedFile {
    fn first(&self) -> u64 {
        self.keys.first().copied().unwrap_or(0)
    }

    fn last(&self) -> u64 {
        self.keys.last().copied().unwrap_or(0)
    }
}

/// A merge of some files of one level with the files of the next level that they overlap.
#[derive(Clone, Debug)]
pub(super) struct Compaction {
    /// Level of the upper files; they go to the level below.
    pub level: usize,
    /// Upper files: their creation numbers, sorted.
    upper: Vec<u64>,
    /// Overlapped files: their creation numbers, sorted.
    pub lower: Vec<u64>,
    /// Keys of both, each of which is read and written once.
    pub keys: usize,
    /// Whether the next level holds at least nine tenths of its capacity.
    pub into_full_level: bool,
}

/// Levels of files; those of level 0 may overlap, those of others are disjoint and ordered.
pub(super) struct Tree {
    shape: TreeShape,
    levels: Vec<Vec<SortedFile>>,
    rng: Pcg64,
    created: u64,
    flushes: u64,
}

impl Tree {
    pub(super) fn new(shape: TreeShape) -> Self {
        let levels = vec![Vec::new(); shape.levels_max.max(1) + 1];
        Self { shape, levels, rng: generator(shape.seed), created: 0, flushes: 0 }
    }

    /// Adds a file of uniform keys to level 0.
    pub(super) fn flush(&mut self) {
        let flush = self.flushes & ((1 << FLUSH_BITS) - 1);
        self.flushes += 1;
        let mut key = || (self.rng.random::<u64>() << FLUSH_BITS) | flush;
        let mut keys: Vec<u64> = (0..self.shape.file_keys()).map(|_| key()).collect();
        keys.sort_unstable();
        let file = self.new_file(keys);
        if let Some(level_zero) = self.levels.first_mut() {
            level_zero.push(file);
        }
    }

    fn new_file(&mut self, keys: Vec<u64>) -> SortedFile {
        self.created += 1;
        let oldest_flush = keys.iter().map(|key| *key as u16).min().unwrap_or(0);
        SortedFile { keys, created: self.created, oldest_flush, is_busy: false }
    }

    fn files(&self, level: usize) -> &[SortedFile] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Files of level 0, without those that are being compacted.
    pub(super) fn level_zero_files(&self) -> usize {
        self.files(0).iter().filter(|file| !file.is_busy).count()
    }

    /// Keys of each level.
    #[cfg(test)]
    pub(super) fn level_keys(&self) -> Vec<usize> {
        self.levels.iter().map(|files| files.iter().map(|file| file.keys.len()).sum()).collect()
    }

    /// Size over capacity, without what is moving away already. A level of at least 1 needs a compaction.
    fn score(&self, level: usize) -> f64 {
        if level == 0 {
            return self.level_zero_files() as f64 / self.shape.level_one_files.max(1) as f64;
        }
        let keys: usize =
            self.files(level).iter().filter(|file| !file.is_busy).map(|file| file.keys.len()).sum();
        // Level 0 compacts at its limit, others above theirs.
        (keys as f64 / self.shape.capacity_keys(level)).min(f64::MAX)
    }

    /// Levels that need a compaction, the most overfull first.
    pub(super) fn overfull_levels(&self) -> Vec<usize> {
        let scored = (0..self.levels.len()).map(|level| (level, self.score(level)));
        let mut overfull: Vec<(usize, f64)> =
            scored.filter(|(level, score)| if *level == 0 { *score >= 1.0 } else { *score > 1.0 }).collect();
        overfull.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        overfull.into_iter().map(|(level, _)| level).collect()
    }

    /// The next compaction of a level, whose files become busy. `None` if others are in its way.
    pub(super) fn start(&mut self, level: usize, movement: &mut dyn Movement) -> Option<Compaction> {
        let compaction =
            if level == 0 { self.of_level_zero()? } else { self.of_deeper_level(level, movement)? };
        self.mark(&compaction);
        Some(compaction)
    }

    /// All files of level 0 with all that they overlap in level 1; one such compaction runs at a time.
    fn of_level_zero(&self) -> Option<Compaction> {
        let upper = self.files(0);
        if upper.is_empty() || upper.iter().any(|file| file.is_busy) {
            return None;
        }
        let first = upper.iter().map(SortedFile::first).min()?;
        let last = upper.iter().map(SortedFile::last).max()?;
        let (from, until) = self.overlapped(1, first, last);
        let lower = self.files(1).get(from..until)?;
        if lower.iter().any(|file| file.is_busy) {
            return None;
        }
        Some(self.compaction(0, upper, lower))
    }

    fn of_deeper_level(&self, level: usize, movement: &mut dyn Movement) -> Option<Compaction> {
        let next = self.files(level + 1);
        let mut candidates = Vec::new();
        let mut found = Vec::new();
        for file in self.files(level).iter().filter(|file| !file.is_busy) {
            let (from, until) = self.overlapped(level + 1, file.first(), file.last());
            let Some(lower) = next.get(from..until) else { continue };
            if lower.iter().any(|file| file.is_busy) {
                continue;
            }
            candidates.push(Candidate {
                first_key: file.first(),
                last_key: file.last(),
                keys: file.keys.len(),
                oldest_flush: file.oldest_flush,
                overlapped_files: lower.len(),
                overlapped_keys: lower.iter().map(|file| file.keys.len()).sum(),
            });
            found.push((file, lower));
        }
        let last = candidates.len().checked_sub(1)?;
        let position = movement.pick(level, &candidates).min(last);
        let (file, lower) = found.get(position)?;
        Some(self.compaction(level, std::slice::from_ref(*file), lower))
    }

    /// Range of the positions of a level's files that overlap the keys from `first` to `last`.
    fn overlapped(&self, level: usize, first: u64, last: u64) -> (usize, usize) {
        let files = self.files(level);
        let from = files.partition_point(|file| file.last() < first);
        let until = files.partition_point(|file| file.first() <= last);
        (from, until.max(from))
    }

    fn compaction(&self, level: usize, upper: &[SortedFile], lower: &[SortedFile]) -> Compaction {
        let numbers = |files: &[SortedFile]| {
            let mut numbers: Vec<u64> = files.iter().map(|file| file.created).collect();
            numbers.sort_unstable();
            numbers
        };
        let capacity = self.shape.capacity_keys(level + 1);
        let next_keys: usize = self.files(level + 1).iter().map(|file| file.keys.len()).sum();
        Compaction {
            level,
            upper: numbers(upper),
            lower: numbers(lower),
            keys: upper.iter().chain(lower).map(|file| file.keys.len()).sum(),
            into_full_level: next_keys as f64 >= 0.9 * capacity,
        }
    }

    fn mark(&mut self, compaction: &Compaction) {
        let taken = [(compaction.level, &compaction.upper), (compaction.level + 1, &compaction.lower)];
        for (level, numbers) in taken {
            for file in self.levels.get_mut(level).into_iter().flatten() {
                file.is_busy |= numbers.binary_search(&file.created).is_ok();
            }
        }
    }

    /// Replaces a compaction's files by those that it wrote: as few as hold the keys, all of about the same
    /// size. RocksDB's last file is smaller instead, unless it is cut where the next level's files are.
    pub(super) fn finish(&mut self, compaction: &Compaction) {
        let mut keys = Vec::with_capacity(compaction.keys);
        let taken = [(compaction.level, &compaction.upper), (compaction.level + 1, &compaction.lower)];
        for (level, numbers) in taken {
            for file in self.levels.get_mut(level).into_iter().flatten() {
                if numbers.binary_search(&file.created).is_ok() {
                    keys.append(&mut file.keys);
                }
            }
        }
        for files in &mut self.levels {
            files.retain(|file| !file.keys.is_empty());
        }
        debug_assert_eq!(keys.len(), compaction.keys, "a merge keeps every key");
        keys.sort_unstable();
        let files = keys.len().div_ceil(self.shape.file_keys()).max(1);
        let size = keys.len().div_ceil(files).max(1);
        let written: Vec<SortedFile> = keys.chunks(size).map(|keys| self.new_file(keys.to_vec())).collect();
        if let Some(next) = self.levels.get_mut(compaction.level + 1) {
            let at = next.partition_point(|file| file.last() < keys.first().copied().unwrap_or(0));
            next.splice(at..at, written);
            debug_assert!(
                next.windows(2).all(|pair| matches!(pair, [one, other] if one.last() <= other.first())),
                "files of a level are disjoint and ordered"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::movement::{FewestOverlap, Oldest, RoundRobin};
    use super::*;

    fn shape(fanout: f64) -> TreeShape {
        TreeShape { fanout, level_one_files: 4, levels_max: 6, keys_per_file: 16, seed: 7 }
    }

    fn settle(tree: &mut Tree, movement: &mut dyn Movement) {
        while let Some(level) = tree.overfull_levels().first().copied() {
            let compaction = tree.start(level, movement).unwrap();
            tree.finish(&compaction);
        }
    }

    #[test]
    fn no_key_is_lost_and_every_level_keeps_its_capacity_under_any_policy() {
        let policies: [&mut dyn Movement; 3] = [&mut FewestOverlap, &mut Oldest, &mut RoundRobin::default()];
        for movement in policies {
            let mut tree = Tree::new(shape(4.0));
            for flushed in 1..=300 {
                tree.flush();
                settle(&mut tree, movement);
                assert_eq!(tree.level_keys().iter().sum::<usize>(), 16 * flushed);
            }
            let keys = tree.level_keys();
            assert!(keys[1] <= 4 * 16 && keys[2] <= 16 * 16 && keys[3] <= 64 * 16, "{keys:?}");
            assert!(keys[4] > 0, "300 files need a fourth level: {keys:?}");
        }
    }

    #[test]
    fn a_single_level_takes_everything() {
        let mut tree = Tree::new(TreeShape { level_one_files: 1, ..shape(f64::INFINITY) });
        for _ in 0..50 {
            tree.flush();
            settle(&mut tree, &mut FewestOverlap);
        }
        assert_eq!(tree.level_keys()[..3], [0, 50 * 16, 0]);
    }

    #[test]
    fn a_busy_file_takes_no_part_in_another_compaction() {
        let mut tree = Tree::new(shape(4.0));
        for _ in 0..16 {
            tree.flush();
        }
        let first = tree.start(0, &mut FewestOverlap).unwrap();
        tree.flush();
        assert!(tree.start(0, &mut FewestOverlap).is_none(), "level 0 is compacted once at a time");
        tree.finish(&first);
        // Sixteen disjoint files in level 1 and none in level 2: each may be moved at the same time.
        let moved: Vec<Compaction> = (0..16).map(|_| tree.start(1, &mut FewestOverlap).unwrap()).collect();
        assert!(tree.start(1, &mut FewestOverlap).is_none());
        for _ in 0..4 {
            tree.flush();
        }
        assert!(tree.start(0, &mut FewestOverlap).is_none(), "level 1 is busy");
        moved.iter().for_each(|compaction| tree.finish(compaction));
        assert!(tree.start(0, &mut FewestOverlap).is_some());
    }
}
