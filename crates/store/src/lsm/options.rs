//! The numbers of an LSM-tree.

use super::policy::{Layout, Policy, PolicyOptions};
use super::table::TableOptions;

/// Memtables take this part of the memory, tables are as large.
const MEMTABLE_DIVISOR: u64 = 8;
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;

/// As the model's defaults, but for the fanout, which small trees would never need.
const FANOUT: u32 = 8;

const LEVEL_ZERO_RUNS: u32 = 4;
const FILTER_BITS_PER_KEY: f64 = 10.0;
const BLOCK_BYTES: usize = 4096;

/// The numbers of a tree.
pub(super) struct Options {
    pub memtable_bytes: u64,
    /// T: a table takes so many bytes at most, as much as whole segments have, unless one key has more.
    pub table_bytes: u64,
    pub table: TableOptions,
    pub policy: Box<dyn Policy>,
}

impl Options {
    /// With a cache and segments of so many bytes.
    pub fn of(cache_bytes: u64, segment_bytes: u64) -> Self {
        let wanted = (cache_bytes / MEMTABLE_DIVISOR).min(MEMTABLE_BYTES_MAX);
        // As much as whole segments hold: what is left of the last one is lost.
        let table_bytes = wanted.max(1).next_multiple_of(segment_bytes);
        let policy = PolicyOptions {
            layout: Layout::Leveled,
            fanout: FANOUT,
            level_zero_runs: LEVEL_ZERO_RUNS,
            table_bytes,
        };
        debug_assert!(policy.validate().is_ok());
        let table = TableOptions { block_bytes: BLOCK_BYTES, filter_bits_per_key: FILTER_BITS_PER_KEY };
        Self { memtable_bytes: table_bytes, table_bytes, table, policy: policy.policy() }
    }
}
