//! The experiment of §5.3.1: RocksDB 8.6.7 with its defaults, uncompressed, with direct I/O.

use crate::lsm_simulation::TreeShape;
use flashgrain_cost::dictionary::{Records, Situation};
use flashgrain_cost::lsm::{Layout, LsmTree};

/// Hardware threads of the AMD Ryzen 5 7600X (§3.3): six cores with two threads each.
pub const HARDWARE_THREADS: f64 = 12.0;

/// T: bytes of a file.
pub const FILE_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Keys of 16 bytes, values of 2048.
pub const RECORDS: Records = Records { count: 6.4e7, key_bytes: 16.0, value_bytes: 2048.0 };

/// C: files of level 1, and of level 0 when it is compacted: RocksDB's default of
/// `level0_file_num_compaction_trigger`.
pub const LEVEL_ONE_FILES: usize = 4;

/// Levels below level 0: RocksDB's default `num_levels` of 7 counts that, too.
pub const LEVELS_MAX: usize = 6;

/// Files of level 0 at which RocksDB slows the writer down: its default of `level0_slowdown_writes_trigger`.
pub const LEVEL_ZERO_SLOWDOWN_FILES: usize = 20;

/// Files that the bulk load flushes.
pub fn flushes() -> usize {
    (RECORDS.total_bytes() / FILE_BYTES).round() as usize
}

/// Shape of the simulated tree; an infinite fanout is the single level, which takes every file at once.
pub fn shape(fanout: f64, seed: u64) -> TreeShape {
    let level_one_files = if fanout.is_infinite() { 1 } else { LEVEL_ONE_FILES };
    TreeShape { fanout, level_one_files, levels_max: LEVELS_MAX, keys_per_file: 32, seed }
}

/// k clients without a cache of blocks: direct I/O, and 3.2 million queries of 64 million records.
pub fn situation(clients: usize) -> Situation {
    Situation::new(RECORDS, 0.0, clients as f64)
}

/// A leveled tree after all compactions have ended, which leave level 0 empty.
pub fn leveled(fanout: f64, level_one_files: f64) -> LsmTree {
    LsmTree { fanout, level_one_files, level_zero_files: 0.0, ..LsmTree::new(Layout::Leveled) }
}

/// The single level as Table 3 shows it: with a second run beside it.
///
/// This run is the one number that the paper does not give. C = 0 and F ≥ N leave one run (§5.2.2), but by
/// the printed times its queries read two blocks: at k = 1 a block read then takes 98 µs, as it does in the
/// leveled layouts (89 to 99 µs for F ≤ 16), and 196 µs otherwise. RocksDB's smallest trigger of a compaction
/// is one file in level 0, and a compaction of the single level rewrites 128 GB, so that a file may well wait
/// there all the time.
pub fn single_level() -> LsmTree {
    LsmTree { level_zero_files: SINGLE_LEVEL_WAITING_FILES, ..LsmTree::new(Layout::SingleLevel) }
}

/// See [`single_level`].
pub const SINGLE_LEVEL_WAITING_FILES: f64 = 1.0;
