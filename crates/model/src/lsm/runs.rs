//! The sorted runs of a tree, and what a query reads of each (MQSSD paper §5.2, Eq. 10 and 12).

use super::{Layout, LsmTree};
use crate::dictionary::Situation;

/// A sorted run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Bytes of its keys and values.
    pub bytes: f64,
    /// How much of it there is on average, at most 1: a run that is there half of the time counts one half.
    pub presence: f64,
}

/// The runs of a level of a tiered tree: full ones first, then the part of one.
fn tier(bytes_each: f64, mut count: f64) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        let presence = count.min(1.0);
        count -= presence;
        (presence > 0.0).then_some(Run { bytes: bytes_each, presence })
    })
}

impl LsmTree {
    /// Bytes of all keys and values below level 0, per level, newest first: T·C·F^(i−1) for level i, and for
    /// the last level what is left (MQSSD paper §5.2). Its length is the number of levels.
    pub fn level_bytes(&self, situation: &Situation) -> Vec<f64> {
        let total = situation.records.total_bytes();
        if self.layout == Layout::SingleLevel || self.fanout.is_infinite() {
            return vec![total];
        }
        let fanout = self.fanout.max(FANOUT_MIN);
        // Level i of a tiered tree has F runs as large as one run of a leveled tree's level i.
        let runs = if self.layout == Layout::Leveled { 1.0 } else { fanout };
        let mut capacity = self.level_one_bytes() * runs;
        let (mut levels, mut left) = (Vec::new(), total);
        while left > capacity && levels.len() + 1 < self.levels_max.max(1) {
            levels.push(capacity);
            left -= capacity;
            capacity *= fanout;
        }
        levels.push(left);
        levels
    }

    /// Capacity of level 1: T·C.
    pub(super) fn level_one_bytes(&self) -> f64 {
        self.file_bytes * self.level_one_files.max(1.0)
    }

    /// The runs that a query may have to look into, newest first.
    pub fn runs(&self, situation: &Situation) -> Vec<Run> {
        let mut runs: Vec<Run> = tier(self.file_bytes, self.level_zero_files).collect();
        let levels = self.level_bytes(situation);
        for (level, bytes) in levels.iter().enumerate() {
            let is_last = level + 1 == levels.len();
            let whole = Run { bytes: *bytes, presence: 1.0 };
            match self.layout {
                Layout::Leveled | Layout::SingleLevel => runs.push(whole),
                Layout::LazyLeveled if is_last => runs.push(whole),
                Layout::Tiered | Layout::LazyLeveled => {
                    let run_bytes = self.level_one_bytes() * self.fanout.max(FANOUT_MIN).powf(level as f64);
                    // Above the last level, a level has between no run and F − 1: it has just been emptied,
                    // or is about to be.
                    let count = if is_last { bytes / run_bytes } else { (self.fanout - 1.0) / 2.0 };
                    runs.extend(tier(run_bytes, count));
                }
            }
        }
        runs
    }
}

/// A smaller fanout makes no levels.
pub(super) const FANOUT_MIN: f64 = 1.1;

/// How likely a query reads a block of each run, of runs that are ordered newest first.
///
/// A key lies in one of the runs in proportion to their sizes, and a query ends where it finds it. A run
/// without the key is read with the filter's false-positive rate; so are all runs if the key is nowhere.
pub(super) fn visits(runs: &[Run], false_positives: f64, is_hit: bool) -> Vec<f64> {
    let total: f64 = runs.iter().map(|run| run.bytes * run.presence).sum();
    let mut found = 0.0;
    let visit = |run: &Run| {
        if !is_hit {
            return run.presence * false_positives;
        }
        let here = run.bytes * run.presence / total;
        let elsewhere = run.presence * (1.0 - found) - here;
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
        assert!((levels.iter().sum::<f64>() / situation().records.total_bytes() - 1.0).abs() < 1e-12);
        // Six levels at most: the last one takes what the others do not hold.
        let flat = LsmTree { fanout: 2.0, ..tree };
        assert_eq!(flat.level_bytes(&situation()).len(), 6);
        assert_eq!(LsmTree { levels_max: 20, ..flat }.level_bytes(&situation()).len(), 9);
    }

    #[test]
    fn tiers_have_more_runs_than_levels_and_lazy_leveling_fewer_than_tiers() {
        let runs = |layout| -> f64 {
            let tree = LsmTree { level_zero_files: 0.0, ..LsmTree::new(layout) };
            tree.runs(&situation()).iter().map(|run| run.presence).sum()
        };
        let [leveled, tiered, lazy, single] = Layout::ALL.map(runs);
        assert!(tiered > lazy && lazy > leveled && leveled > single, "{leveled} {tiered} {lazy} {single}");
        assert_eq!(single, 1.0);
    }

    #[test]
    fn a_hit_ends_where_it_finds_the_key_and_a_miss_asks_every_run() {
        let runs = [1.0, 1.0, 2.0].map(|bytes| Run { bytes, presence: 1.0 });
        assert_eq!(visits(&runs, 1.0, true), [1.0, 0.75, 0.5]);
        assert_eq!(visits(&runs, 0.1, false), [0.1, 0.1, 0.1]);
        // With filters that never err, a hit reads one block.
        assert_eq!(visits(&runs, 0.0, true).iter().sum::<f64>(), 1.0);
    }
}
