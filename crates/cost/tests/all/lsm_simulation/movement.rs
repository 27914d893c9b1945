//! Which file of a level is moved to the next: the data movement policy (MQSSD paper §5.1).

use std::cmp::Ordering;

/// A file that may be compacted now: neither it nor a file that it overlaps takes part in a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Smallest key.
    pub first_key: u64,
    /// Largest key.
    pub last_key: u64,
    /// Number of keys.
    pub keys: usize,
    /// Number of the flush that brought its oldest key: a smaller number means an older key.
    pub oldest_flush: u16,
    /// Files of the next level whose range overlaps this file's.
    pub overlapped_files: usize,
    /// Keys of those files.
    pub overlapped_keys: usize,
}

/// A data movement policy.
pub trait Movement {
    /// Position of the file to compact among the candidates of a level, which are ordered by their keys and
    /// never empty. `level` counts from 1.
    ///
    /// A position behind the last candidate means the last.
    fn pick(&mut self, level: usize, candidates: &[Candidate]) -> usize;
}

/// The position of the smallest candidate; of equal ones, the first.
fn position_min(candidates: &[Candidate], order: impl Fn(&Candidate, &Candidate) -> Ordering) -> usize {
    let numbered = candidates.iter().enumerate();
    numbered.min_by(|(_, one), (_, other)| order(one, other)).map_or(0, |(position, _)| position)
}

/// RocksDB's default (MQSSD paper §5.1.1): the file that overlaps the fewest files of the next level; of
/// equal ones, that with the fewest overlapped keys per key of its own (`kMinOverlappingRatio`).
#[derive(Clone, Copy, Debug, Default)]
pub struct FewestOverlap;

impl Movement for FewestOverlap {
    fn pick(&mut self, _: usize, candidates: &[Candidate]) -> usize {
        let ratio = |file: &Candidate| file.overlapped_keys as f64 / file.keys.max(1) as f64;
        position_min(candidates, |one, other| {
            one.overlapped_files.cmp(&other.overlapped_files).then(ratio(one).total_cmp(&ratio(other)))
        })
    }
}

/// The file with the oldest key, whose range has waited longest for a compaction (RocksDB's
/// `kOldestSmallestSeqFirst`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Oldest;

impl Movement for Oldest {
    fn pick(&mut self, _: usize, candidates: &[Candidate]) -> usize {
        position_min(candidates, |one, other| one.oldest_flush.cmp(&other.oldest_flush))
    }
}

/// LevelDB's policy: the first file behind the range that was compacted last in that level, from the start
/// again after the last file.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// Largest key compacted last, per level.
    last_keys: Vec<u64>,
}

impl Movement for RoundRobin {
    fn pick(&mut self, level: usize, candidates: &[Candidate]) -> usize {
        if self.last_keys.len() <= level {
            self.last_keys.resize(level + 1, 0);
        }
        let Some(last_key) = self.last_keys.get_mut(level) else { return 0 };
        let position = candidates.iter().position(|file| file.first_key > *last_key).unwrap_or(0);
        *last_key = candidates.get(position).map_or(0, |file| file.last_key);
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(first_key: u64, oldest_flush: u16, overlapped_files: usize) -> Candidate {
        let overlapped_keys = 10 * overlapped_files;
        Candidate {
            first_key,
            last_key: first_key + 9,
            keys: 10,
            oldest_flush,
            overlapped_files,
            overlapped_keys,
        }
    }

    #[test]
    fn each_policy_picks_its_own_file() {
        let files = [candidate(10, 3, 4), candidate(20, 1, 5), candidate(30, 2, 3)];
        assert_eq!(FewestOverlap.pick(1, &files), 2);
        assert_eq!(Oldest.pick(1, &files), 1);
        let mut round_robin = RoundRobin::default();
        let picks: Vec<usize> = (0..4).map(|_| round_robin.pick(1, &files)).collect();
        assert_eq!(picks, [0, 1, 2, 0]);
        // Another level has its own place.
        assert_eq!(round_robin.pick(2, &files), 0);
    }

    #[test]
    fn fewer_overlapped_keys_decide_among_equally_many_files() {
        let mut files = [candidate(10, 0, 3), candidate(20, 0, 3)];
        files[0].overlapped_keys += 1;
        assert_eq!(FewestOverlap.pick(1, &files), 1);
    }
}
