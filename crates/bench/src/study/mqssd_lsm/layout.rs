//! The layouts that are compared.

use flashgrain::{LsmLayout, LsmOptions};
use serde::Serialize;

use crate::fill::Order;

/// C of RocksDB's defaults, with which fanouts are compared, and of the configuration for flash.
const LEVEL_ZERO_RUNS: u32 = 4;
const FLASH_LEVEL_ZERO_RUNS: u32 = 8;
const FLASH_FANOUT: u32 = 8;
const FLASH_JOBS: u32 = 4;

/// Runs of level 0 from which on writers are slowed down, and at which they are stopped: RocksDB's defaults.
const SLOWDOWN_RUNS: u32 = 20;
const STOP_RUNS: u32 = 36;

/// The store takes no more jobs at a time than this.
const JOBS_MAX: u32 = 64;

/// A layout of the LSM-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A run for each level, of which each is so many times as large as the one above it.
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

    /// How a store is filled of which only reads are measured. On a single level stretches come to the same
    /// as random order, after far fewer merges.
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

    /// With tables and memtables of so many bytes, and at most `k` jobs at a time, or parts of one.
    pub(super) fn options(self, table_bytes: u64, k: u32) -> LsmOptions {
        let options = LsmOptions::new()
            .table_bytes(table_bytes)
            .memtable_bytes(table_bytes)
            .jobs(self.jobs(k))
            .parts(self.parts(k))
            .slowdown_runs(SLOWDOWN_RUNS)
            .stop_runs(STOP_RUNS);
        match self {
            Self::Leveled { fanout } => {
                options.layout(LsmLayout::Leveled).fanout(fanout).level_zero_runs(LEVEL_ZERO_RUNS)
            }
            Self::SingleLevel => options.layout(LsmLayout::SingleLevel).level_zero_runs(1),
            Self::Flash => {
                options.layout(LsmLayout::Leveled).fanout(FLASH_FANOUT).level_zero_runs(FLASH_LEVEL_ZERO_RUNS)
            }
        }
    }
}
