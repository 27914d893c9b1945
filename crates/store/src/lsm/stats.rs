//! Statistics of an LSM-tree.

use super::levels::{Levels, bytes_of};
use super::policy::Debt;
use crate::index::{LsmLevelStats, LsmStats};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Levels with counters of their own; the others count as the last of these.
const LEVELS: usize = 16;

/// What a tree counts.
#[derive(Default)]
pub(super) struct Counters {
    pub flushes: AtomicU64,
    pub merges: AtomicU64,
    pub loads: AtomicU64,
    loaded_bytes: AtomicU64,
    loaded_into_level_zero_bytes: AtomicU64,
    pub moved_tables: AtomicU64,
    pub dropped_tables: AtomicU64,
    pub operator_failures: AtomicU64,
    /// Look-ups and scans, and versions that were put, since it was last asked which prevail.
    pub reads: AtomicU64,
    pub puts: AtomicU64,
    pub filter_looked: AtomicU64,
    pub filter_kept_out: AtomicU64,
    pub filter_passed_in_vain: AtomicU64,
    written_bytes: [AtomicU64; LEVELS],
    read_bytes: [AtomicU64; LEVELS],
}

impl Counters {
    /// Tables of so many bytes were read, and others written into a level.
    pub fn wrote(&self, level: usize, read_bytes: u64, written_bytes: u64) {
        let at = level.min(LEVELS - 1);
        self.read_bytes[at].fetch_add(read_bytes, Ordering::Relaxed);
        self.written_bytes[at].fetch_add(written_bytes, Ordering::Relaxed);
    }

    /// A load has come into a level.
    pub fn loaded(&self, level: usize, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wrote(level, 0, bytes);
        if level == 0 {
            self.loaded_into_level_zero_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether there were more reads than writes since this was asked last.
    pub fn reads_prevail(&self) -> bool {
        self.reads.swap(0, Ordering::Relaxed) > self.puts.swap(0, Ordering::Relaxed)
    }

    /// With what there is at present.
    pub fn stats(&self, memtables: usize, levels: &Levels, debt: Debt) -> LsmStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let of_level = |level: usize| {
            let runs = levels.level(level);
            let tables = || runs.iter().flatten();
            let at = level.min(LEVELS - 1);
            LsmLevelStats {
                runs: runs.len() as u64,
                tables: tables().count() as u64,
                bytes: bytes_of(tables()),
                records: tables().map(|table| table.summary.records).sum(),
                tombstones: tables().map(|table| table.summary.tombstones).sum(),
                range_tombstones: tables().map(|table| table.summary.range_tombstones).sum(),
                written_bytes: get(&self.written_bytes[at]),
                read_bytes: get(&self.read_bytes[at]),
            }
        };
        let written_bytes: u64 = self.written_bytes.iter().map(get).sum();
        let loaded_bytes = get(&self.loaded_bytes);
        let flushed_bytes = get(&self.written_bytes[0]) - get(&self.loaded_into_level_zero_bytes);
        LsmStats {
            memtables: memtables as u64,
            levels: (0..levels.depth()).map(of_level).collect(),
            debt_bytes: debt.bytes,
            debt: debt.fraction,
            flushes: get(&self.flushes),
            merges: get(&self.merges),
            loads: get(&self.loads),
            loaded_bytes,
            moved_tables: get(&self.moved_tables),
            dropped_tables: get(&self.dropped_tables),
            operator_failures: get(&self.operator_failures),
            filter_looked: get(&self.filter_looked),
            filter_kept_out: get(&self.filter_kept_out),
            filter_passed_in_vain: get(&self.filter_passed_in_vain),
            write_amplification: written_bytes as f64 / (flushed_bytes + loaded_bytes).max(1) as f64,
        }
    }
}
