//! The store through its public face: one behaviour per module.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod backup;
mod bad_input;
mod basics;
mod be_tree_lives;
mod be_trees;
mod blocks;
mod bulk;
mod clearing;
mod compact;
mod contention;
mod costs;
mod crashed;
mod dropped;
mod earlier_versions;
mod format;
mod full;
mod handles;
mod limits;
mod load_failures;
mod log_compression;
mod lsm;
mod lsm_loads;
mod lsm_metadata;
mod many_keys;
mod merged_memtables;
mod merges;
mod model;
mod observed;
mod other_room;
mod overflow_values;
mod pace;
mod places;
mod read_only;
mod renamed;
mod scans;
mod small_stores;
mod streams;
mod swaps;
mod tree_trouble;
#[cfg(feature = "testing")]
mod trouble;
mod waiting;
mod without_log;
