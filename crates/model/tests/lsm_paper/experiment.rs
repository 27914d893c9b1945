//! The experiment of §5.3.1: RocksDB 8.6.7 with its defaults, uncompressed, with direct I/O.

use flashgrain_model::lsm::simulation::TreeShape;

/// Hardware threads of the AMD Ryzen 5 7600X (§3.3): six cores with two threads each.
pub const HARDWARE_THREADS: f64 = 12.0;

/// T: bytes of a file.
pub const FILE_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Records, of 16 and 2048 bytes.
pub const RECORDS: f64 = 6.4e7;
pub const KEY_BYTES: f64 = 16.0;
pub const VALUE_BYTES: f64 = 2048.0;

/// C: files of level 1, and of level 0 when it is compacted: RocksDB's default of
/// `level0_file_num_compaction_trigger`.
pub const LEVEL_ONE_FILES: usize = 4;

/// Levels below level 0: RocksDB's default `num_levels` of 7 counts that, too.
pub const LEVELS_MAX: usize = 6;

/// Files of level 0 at which RocksDB slows the writer down: its default of `level0_slowdown_writes_trigger`.
pub const LEVEL_ZERO_SLOWDOWN_FILES: usize = 20;

/// Files that the bulk load flushes.
pub fn flushes() -> usize {
    (RECORDS * (KEY_BYTES + VALUE_BYTES) / FILE_BYTES).round() as usize
}

/// Shape of the simulated tree; an infinite fanout is the single level, which takes every file at once.
pub fn shape(fanout: f64, seed: u64) -> TreeShape {
    let level_one_files = if fanout.is_infinite() { 1 } else { LEVEL_ONE_FILES };
    TreeShape { fanout, level_one_files, levels_max: LEVELS_MAX, keys_per_file: 32, seed }
}
