//! Statistics of an LSM-tree.

use serde::Serialize;

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
    /// Removals among these.
    pub tombstones: u64,
    /// Removals of ranges of keys. A removal counts in each of its tables.
    pub range_tombstones: u64,
    /// Bytes of the tables that flushes, loads or merges into this level have written since the store was
    /// opened.
    pub written_bytes: u64,
    /// Bytes of the tables that merges into this level have read.
    pub read_bytes: u64,
}

/// State of an LSM-tree, and its work since the store was opened.
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
    /// Loads that were written as tables at once since the tree was made.
    pub loads: u64,
    /// Bytes of the tables that they were written as.
    pub loaded_bytes: u64,
    /// Tables that changed their level without being merged.
    pub moved_tables: u64,
    /// Tables that were dropped without being read, as a removal of a range has all their keys.
    pub dropped_tables: u64,
    /// Keys whose operands flushes and merges have left as they are, as the merge operator failed.
    pub operator_failures: u64,
    /// Look-ups of a key in a table that has a filter.
    pub filter_looked: u64,
    /// Those of these look-ups that did not read a data block, thanks to the filter.
    pub filter_kept_out: u64,
    /// Those that the filter let pass although the table does not have the key.
    pub filter_passed_in_vain: u64,
    /// Bytes that were written for each byte that was flushed or loaded.
    pub write_amplification: f64,
}
