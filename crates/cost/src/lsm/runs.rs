//! The sorted runs of a tree, and the reads of a query in each (MQSSD paper §5.2, Eq. 10 and 12).

use super::{Layout, LsmTree};
use crate::dictionary::Situation;

/// Sorted runs of the same size, one newer than the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// Bytes of keys and values of one run.
    pub bytes_each: f64,
    /// How many there are on average; a part of one is a run that is there only sometimes.
    pub count: f64,
}

impl Runs {
    /// Bytes of all of them.
    pub fn bytes(&self) -> f64 {
        self.bytes_each * self.count
    }

    /// Sum over the runs of the share of keys that neither a newer run here nor one of the `found` share
    /// holds.
    fn reached(&self, found: f64, total: f64) -> f64 {
        let (whole, part) = (self.count.floor(), self.count.fract());
        let each = self.bytes_each / total;
        let reached = whole * (1.0 - found) - each * whole * (whole - 1.0) / 2.0;
        reached + part * (1.0 - found - whole * each)
    }
}

impl LsmTree {
    /// Bytes of all keys and values below level 0, per level, newest first: T·C·F^(i−1) for level i, and the
    /// rest for the last level (MQSSD paper §5.2). Its length is the number of levels.
    ///
    /// Level i of a tiered tree has runs as large as a leveled tree's level i: between none and F − 1, as it
    /// has just been emptied or is about to be, and in the last level up to F.
    pub fn level_bytes(&self, situation: &Situation) -> Vec<f64> {
        let left = situation.records.total_bytes() - self.level_zero(situation).bytes();
        if self.layout == Layout::SingleLevel || self.fanout.is_infinite() {
            return vec![left];
        }
        let fanout = self.fanout.max(FANOUT_MIN);
        let (runs, runs_max) =
            if self.layout == Layout::Leveled { (1.0, 1.0) } else { (runs_mean(fanout), fanout) };
        let (mut levels, mut left, mut run_bytes) = (Vec::new(), left, self.level_one_bytes());
        while left > runs_max * run_bytes && levels.len() + 1 < self.levels_max.max(1) {
            levels.push(runs * run_bytes);
            left -= runs * run_bytes;
            run_bytes *= fanout;
        }
        levels.push(left);
        levels
    }

    /// The same tree with a full last level: each level above it is smaller by the fanout, down to one that
    /// is no larger than T·C, as with RocksDB's `level_compaction_dynamic_level_bytes`. Levels of less than
    /// `files_min` files are left out, so that level 0 is merged into the one below them.
    #[must_use]
    pub fn with_full_last_level(self, files_min: f64, situation: &Situation) -> Self {
        let below: f64 = self.level_bytes(situation).iter().sum();
        let (mut level_one, mut levels) = (below, 1.0);
        while level_one > self.level_one_bytes() {
            let sum: f64 = (0..=levels as i32).map(|level| self.fanout.powi(level)).sum();
            if below / sum < files_min * self.file_bytes {
                break;
            }
            (level_one, levels) = (below / sum, levels + 1.0);
        }
        Self { level_one_files: level_one * ROUNDING / self.file_bytes, ..self }
    }

    /// The files of level 0: none of a tree at rest.
    pub(super) fn level_zero(&self, situation: &Situation) -> Runs {
        let files_max = situation.records.total_bytes() / self.file_bytes;
        let count =
            if situation.replaced_share.is_some() { self.level_zero_files.min(files_max) } else { 0.0 };
        Runs { bytes_each: self.file_bytes, count }
    }

    /// Capacity of level 1: T·C.
    pub(super) fn level_one_bytes(&self) -> f64 {
        self.file_bytes * self.level_one_files.max(1.0)
    }

    /// The runs that a query may have to look into, newest first.
    pub fn runs(&self, situation: &Situation) -> Vec<Runs> {
        let mut runs = vec![self.level_zero(situation)];
        let levels = self.level_bytes(situation);
        for (level, bytes) in levels.iter().enumerate() {
            let is_last = level + 1 == levels.len();
            let is_one_run = match self.layout {
                Layout::Leveled | Layout::SingleLevel => true,
                Layout::LazyLeveled => is_last,
                Layout::Tiered => false,
            };
            if is_one_run {
                runs.push(Runs { bytes_each: *bytes, count: 1.0 });
                continue;
            }
            let bytes_each = self.level_one_bytes() * self.fanout.max(FANOUT_MIN).powf(level as f64);
            // Less than a run in the last level is a smaller one.
            let bytes_each = if is_last { bytes_each.min(*bytes) } else { bytes_each };
            runs.push(Runs { bytes_each, count: bytes / bytes_each });
        }
        runs.retain(|runs| runs.count > 0.0 && runs.bytes_each > 0.0);
        runs
    }
}

/// Runs of a level above the last one of a tiered tree, on average.
pub(super) fn runs_mean(fanout: f64) -> f64 {
    (fanout - 1.0) / 2.0
}

/// Sizes of levels that are products of fanouts: this much is their rounding.
const ROUNDING: f64 = 1.0 + 1e-9;

/// A smaller fanout makes no levels.
pub(super) const FANOUT_MIN: f64 = 1.1;

/// How many blocks a query reads of runs that are ordered newest first.
///
/// A key lies in one of the runs in proportion to their sizes, and a query ends where it finds it. A run
/// without the key is read with the filter's false-positive rate; so are all runs if the key is nowhere.
pub(super) fn visits(runs: &[Runs], false_positives: f64, is_hit: bool) -> Vec<f64> {
    let total: f64 = runs.iter().map(Runs::bytes).sum();
    let mut found = 0.0;
    let visit = |runs: &Runs| {
        if !is_hit {
            return runs.count * false_positives;
        }
        let here = runs.bytes() / total;
        let elsewhere = runs.reached(found, total) - here;
        found += here;
        here + false_positives * elsewhere.max(0.0)
    };
    runs.iter().map(visit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Records;

    fn situation() -> Situation {
        Situation::new(Records { count: 6.4e7, key_bytes: 16.0, value_bytes: 2048.0 }, 0.0, 1.0)
    }

    #[test]
    fn levels_grow_by_the_fanout_until_the_data_is_held() {
        let tree = LsmTree { fanout: 8.0, ..LsmTree::new(Layout::Leveled) };
        let levels = tree.level_bytes(&situation());
        let first = 4.0 * 64.0 * 1_048_576.0;
        assert_eq!(levels[..3], [first, 8.0 * first, 64.0 * first]);
        assert_eq!(levels.len(), 4);
        let below: f64 = levels.iter().sum::<f64>() + tree.level_zero(&situation()).bytes();
        assert!((below / situation().records.total_bytes() - 1.0).abs() < 1e-12);
        // Six levels at most: the last one takes the rest.
        let flat = LsmTree { fanout: 2.0, ..tree };
        assert_eq!(flat.level_bytes(&situation()).len(), 6);
        assert_eq!(LsmTree { levels_max: 20, ..flat }.level_bytes(&situation()).len(), 9);
    }

    #[test]
    fn a_full_last_level_is_larger_than_each_above_it_by_the_fanout() {
        let tree = LsmTree { fanout: 8.0, level_zero_files: 0.0, ..LsmTree::new(Layout::Leveled) };
        let levels = |files_min| tree.with_full_last_level(files_min, &situation()).level_bytes(&situation());
        let full = levels(0.0);
        assert!(full.windows(2).all(|pair| (pair[1] / pair[0] / 8.0 - 1.0).abs() < 1e-6), "{full:?}");
        assert!(full.len() == 4 && full[0] < tree.level_one_bytes());
        // Its first level has 3.4 files.
        let fewer = levels(3.5);
        assert!(fewer.len() == 3 && (fewer[2] / fewer[1] / 8.0 - 1.0).abs() < 1e-6, "{fewer:?}");
    }

    #[test]
    fn tiers_have_more_runs_than_levels_and_lazy_leveling_fewer_than_tiers() {
        let runs = |layout| -> f64 {
            let tree = LsmTree { level_zero_files: 0.0, ..LsmTree::new(layout) };
            tree.runs(&situation()).iter().map(|runs| runs.count).sum()
        };
        let [leveled, tiered, lazy, single] = Layout::ALL.map(runs);
        assert!(tiered > lazy && lazy > leveled && leveled > single, "{leveled} {tiered} {lazy} {single}");
        assert_eq!(single, 1.0);
    }

    #[test]
    fn a_hit_ends_where_it_finds_the_key_and_a_miss_asks_every_run() {
        let runs = [1.0, 1.0, 2.0].map(|bytes_each| Runs { bytes_each, count: 1.0 });
        assert_eq!(visits(&runs, 1.0, true), [1.0, 0.75, 0.5]);
        assert_eq!(visits(&runs, 0.1, false), [0.1, 0.1, 0.1]);
        // With filters that never err, a hit reads one block.
        assert_eq!(visits(&runs, 0.0, true).iter().sum::<f64>(), 1.0);
        // Runs of the same size are the same together.
        let together = [Runs { bytes_each: 1.0, count: 2.0 }, Runs { bytes_each: 2.0, count: 1.0 }];
        assert_eq!(visits(&together, 1.0, true), [1.75, 0.5]);
        // A run that is there half of the time, in front of one that is always.
        let sometimes = [Runs { bytes_each: 2.0, count: 0.5 }, Runs { bytes_each: 3.0, count: 1.0 }];
        assert_eq!(visits(&sometimes, 1.0, true), [0.5, 0.75]);
    }
}
