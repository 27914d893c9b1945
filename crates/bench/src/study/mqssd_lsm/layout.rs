//! The layouts that are compared.

use flashgrain::{LsmLayout, LsmOptions};
use flashgrain_cost::dictionary::Situation;
use flashgrain_cost::lsm::LsmTree;
use serde::Serialize;

use crate::fill::Order;

/// C of RocksDB's defaults, used for comparing fanouts, and of the configuration for flash.
const LEVEL_ZERO_RUNS: u32 = 4;
const FLASH_LEVEL_ZERO_RUNS: u32 = 8;
const FLASH_FANOUT: u32 = 8;
const FLASH_JOBS: u32 = 4;

/// Runs of level 0 that slow writers down, and those that stop them: RocksDB's defaults.
const SLOWDOWN_RUNS: u32 = 20;
const STOP_RUNS: u32 = 36;

/// The store leaves out levels of less than this part of level 0.
const LEVEL_ONE_PART_MIN: f64 = 0.5;

/// The store takes no more jobs at a time than this.
const JOBS_MAX: u32 = 64;

/// A layout of the LSM-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A run for each level; each level is `fanout` times as large as the one above it.
    Leveled {
        /// F.
        fanout: u32,
    },
    /// One run that has everything.
    SingleLevel,
    /// As RocksDB's tuning guide advises for flash: F = 8, C = 8 and four threads that merge, each a job of
    /// its own.
    Flash,
}

impl Layout {
    /// Leveled with each fanout, the single level, and that for flash.
    pub fn all(fanouts: &[u32]) -> Vec<Self> {
        let leveled = fanouts.iter().map(|fanout| Self::Leveled { fanout: *fanout });
        leveled.chain([Self::SingleLevel, Self::Flash]).collect()
    }

    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Leveled { fanout } => format!("F = {fanout}"),
            Self::SingleLevel => "single level".into(),
            Self::Flash => "flash".into(),
        }
    }

    /// The order in which a store for reads alone is filled. On a single level stretches come to the same as
    /// random order, after far fewer merges.
    pub(super) fn order_for_reads(self) -> Order {
        if self == Self::SingleLevel { Order::Stretches } else { Order::Random }
    }

    /// Jobs that merge at a time where there may be `k`.
    pub(super) fn jobs(self, k: u32) -> u32 {
        if self == Self::Flash { FLASH_JOBS } else { k.min(JOBS_MAX) }
    }

    /// Parts of a job at a time where there may be `k`.
    fn parts(self, k: u32) -> u32 {
        if self == Self::Flash { 1 } else { k.min(JOBS_MAX) }
    }

    /// With tables and memtables of `table_bytes`, and at most `k` jobs at a time, or parts of one.
    pub(super) fn options(self, table_bytes: u64, k: u32) -> LsmOptions {
        let options = LsmOptions::new()
            .table_bytes(table_bytes)
            .memtable_bytes(table_bytes)
            .jobs(self.jobs(k))
            .parts(self.parts(k))
            .slowdown_runs(SLOWDOWN_RUNS)
            .stop_runs(STOP_RUNS);
        let (layout, fanout, level_zero_runs) = self.shape();
        let options = options.layout(layout).level_zero_runs(level_zero_runs);
        fanout.into_iter().fold(options, LsmOptions::fanout)
    }

    /// The arrangement of runs, F where there is one, and C.
    fn shape(self) -> (LsmLayout, Option<u32>, u32) {
        match self {
            Self::Leveled { fanout } => (LsmLayout::Leveled, Some(fanout), LEVEL_ZERO_RUNS),
            Self::SingleLevel => (LsmLayout::SingleLevel, None, 1),
            Self::Flash => (LsmLayout::Leveled, Some(FLASH_FANOUT), FLASH_LEVEL_ZERO_RUNS),
        }
    }

    /// The same tree as the model has it, while it is filled by a client that is faster than `k` jobs.
    pub(super) fn filled_tree(self, table_bytes: u64, k: u32) -> LsmTree {
        let (layout, fanout, level_zero_runs) = self.shape();
        let tree = LsmTree::new(layout);
        LsmTree {
            fanout: fanout.map_or(tree.fanout, f64::from),
            file_bytes: table_bytes as f64,
            level_one_files: level_zero_runs.into(),
            level_zero_batch_files: SLOWDOWN_RUNS.into(),
            compaction_threads: self.jobs(k).into(),
            subcompactions: self.parts(k).into(),
            ..tree
        }
    }

    /// The same once no merge is due, with its memtables empty: level 0 is, and the last level is full.
    pub(super) fn settled_tree(self, table_bytes: u64, situation: &Situation) -> LsmTree {
        let tree = LsmTree { level_zero_files: 0.0, memtables: 0.0, ..self.filled_tree(table_bytes, 1) };
        tree.with_full_last_level(LEVEL_ONE_PART_MIN * tree.level_one_files, situation)
    }
}
