//! Statistics of an LSM-tree.

use serde::Serialize;

use super::levels::{Levels, bytes_of};
use super::policy::Debt;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A level of an LSM-tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LsmLevelStats {
    /// Runs of tables, which do not overlap within a run.
    pub runs: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Versions in them.
    pub records: u64,
    /// Of these, removals.
    pub tombstones: u64,
    /// Bytes of the tables that flushes, or merges into this level, have written since the store was opened.
    pub written_bytes: u64,
    /// Bytes of the tables that merges into this level have read.
    pub read_bytes: u64,
}

/// State of an LSM-tree, and what it did since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LsmStats {
    /// Memtables, frozen ones included.
    pub memtables: u64,
    /// The levels, from 0 on.
    pub levels: Vec<LsmLevelStats>,
    /// Bytes that merges have to write until none is due: an estimate.
    pub debt_bytes: u64,
    /// Deferred work as a part of its upper bound: above 0 writers are slowed down.
    pub debt: f64,
    /// Memtables that were written as tables.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Tables that changed their level without being merged.
    pub moved_tables: u64,
    /// Look-ups of a key in a table that has a filter.
    pub filter_looked: u64,
    /// Of these, those that the filter kept from reading a data block.
    pub filter_kept_out: u64,
    /// Those that it let pass although the table does not have the key.
    pub filter_passed_in_vain: u64,
    /// Bytes that were written for each byte that was flushed.
    pub write_amplification: f64,
}

/// Levels with counters of their own; the others count as the last of these.
const LEVELS: usize = 16;

/// What a tree counts.
#[derive(Default)]
pub(super) struct Counters {
    pub flushes: AtomicU64,
    pub merges: AtomicU64,
    pub moved_tables: AtomicU64,
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
                written_bytes: get(&self.written_bytes[at]),
                read_bytes: get(&self.read_bytes[at]),
            }
        };
        let written_bytes: u64 = self.written_bytes.iter().map(get).sum();
        let flushed_bytes = get(&self.written_bytes[0]);
        LsmStats {
            memtables: memtables as u64,
            levels: (0..levels.depth()).map(of_level).collect(),
            debt_bytes: debt.bytes,
            debt: debt.fraction,
            flushes: get(&self.flushes),
            merges: get(&self.merges),
            moved_tables: get(&self.moved_tables),
            filter_looked: get(&self.filter_looked),
            filter_kept_out: get(&self.filter_kept_out),
            filter_passed_in_vain: get(&self.filter_passed_in_vain),
            write_amplification: written_bytes as f64 / flushed_bytes.max(1) as f64,
        }
    }
}
