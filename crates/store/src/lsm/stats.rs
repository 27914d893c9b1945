//! Statistics of an LSM-tree.

use super::levels::{Levels, bytes_of};
use super::policy::Debt;
use crate::index::{LsmLevelStats, LsmStats, OperationCounts, TreeOperations};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Levels with counters of their own; the others count as the last of these.
const LEVELS: usize = 16;

/// The counters of a tree.
#[derive(Default)]
pub(super) struct Counters {
    pub flushes: AtomicU64,
    pub merges: AtomicU64,
    /// Since the tree was made, as are operations.
    pub operations: OperationCounts,
    loads: AtomicU64,
    loaded_bytes: AtomicU64,
    /// Since the store was opened, as are all others.
    loaded_now_bytes: AtomicU64,
    loaded_into_level_zero_bytes: AtomicU64,
    pub moved_tables: AtomicU64,
    pub dropped_tables: AtomicU64,
    pub operator_failures: AtomicU64,
    /// Look-ups and scans, and writes, when it was last asked which prevail.
    reads_before: AtomicU64,
    writes_before: AtomicU64,
    pub filter_looked: AtomicU64,
    pub filter_kept_out: AtomicU64,
    pub filter_passed_in_vain: AtomicU64,
    written_bytes: [AtomicU64; LEVELS],
    read_bytes: [AtomicU64; LEVELS],
}

/// Counts since a tree's creation, which its manifest keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub operations: TreeOperations,
    pub loads: u64,
    pub loaded_bytes: u64,
}

/// Numbers of [`Kept`].
pub(super) const KEPT: usize = 5;

impl Kept {
    pub fn numbers(&self) -> [u64; KEPT] {
        let [writes, look_ups, scans] = self.operations.numbers();
        [writes, look_ups, scans, self.loads, self.loaded_bytes]
    }

    pub fn of_numbers([writes, look_ups, scans, loads, loaded_bytes]: [u64; KEPT]) -> Self {
        let operations = TreeOperations::of_numbers([writes, look_ups, scans]);
        Self { operations, loads, loaded_bytes }
    }

    /// Whether these counts are worth being written, compared with those written last: they have more loads,
    /// or an eighth more operations.
    pub fn is_news(&self, written: &Self) -> bool {
        let (now, before) = (self.operations.sum(), written.operations.sum());
        self.loads != written.loads || now > before.saturating_add(before / 8)
    }
}

impl Counters {
    /// Goes on from those of earlier openings.
    pub fn from(kept: Kept) -> Self {
        let Kept { operations, loads, loaded_bytes } = kept;
        Self {
            operations: OperationCounts::from(operations),
            loads: AtomicU64::new(loads),
            loaded_bytes: AtomicU64::new(loaded_bytes),
            ..Self::default()
        }
    }

    /// The counts that the manifest keeps.
    pub fn kept(&self) -> Kept {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let operations = self.operations.all();
        Kept { operations, loads: get(&self.loads), loaded_bytes: get(&self.loaded_bytes) }
    }

    /// A load has ended.
    pub fn count_load(&self) {
        self.loads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes of tables that were read, and of tables that were written into a level.
    pub fn wrote(&self, level: usize, read_bytes: u64, written_bytes: u64) {
        let at = level.min(LEVELS - 1);
        self.read_bytes[at].fetch_add(read_bytes, Ordering::Relaxed);
        self.written_bytes[at].fetch_add(written_bytes, Ordering::Relaxed);
    }

    /// A load has come into a level.
    pub fn loaded(&self, level: usize, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.loaded_now_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wrote(level, 0, bytes);
        if level == 0 {
            self.loaded_into_level_zero_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether there were more reads than writes since this was asked last.
    pub fn reads_prevail(&self) -> bool {
        let TreeOperations { writes, look_ups, scans, .. } = self.operations.all();
        let reads = look_ups.saturating_add(scans);
        let new = |now: u64, before: &AtomicU64| now.saturating_sub(before.swap(now, Ordering::Relaxed));
        new(reads, &self.reads_before) > new(writes, &self.writes_before)
    }

    /// The counts, with the present memtables, levels and debt.
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
        let loaded_bytes = get(&self.loaded_now_bytes);
        let flushed_bytes = get(&self.written_bytes[0]) - get(&self.loaded_into_level_zero_bytes);
        LsmStats {
            memtables: memtables as u64,
            levels: (0..levels.depth()).map(of_level).collect(),
            debt_bytes: debt.bytes,
            debt: debt.fraction,
            flushes: get(&self.flushes),
            merges: get(&self.merges),
            loads: get(&self.loads),
            loaded_bytes: get(&self.loaded_bytes),
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
