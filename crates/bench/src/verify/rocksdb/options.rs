//! Both sides' OPTIONS files.

/// Nothing but RocksDB's defaults.
pub(super) const DEFAULT: &str = "\
[Version]
rocksdb_version=7.8.3
options_file_version=1.1

[DBOptions]

[CFOptions \"default\"]

[TableOptions/BlockBasedTable \"default\"]
";

/// RocksDB's own defaults.
const CACHE_BYTES: u64 = 8 << 20;
const MEMTABLE_BYTES: u64 = 64 << 20;
const LEVEL_ZERO_FILES: u64 = 4;

/// Bytes of a record in a memtable in addition to its key and value: its number, its lengths, and a node of a
/// list.
const ENTRY_BYTES: u64 = 64;
/// Part of a memtable that is written before it is flushed: it must not be full, or another file would begin.
const FLUSHED_PER_CENT: u64 = 95;

const DATABASE: &str = "[DBOptions]\n";
const FAMILY: &str = "[CFOptions \"default\"]\n";

/// The options of a side as they run: without compression, and with a log that makes no file of level 0 when
/// the database is opened again. Each run opens it, and few such files would begin a compaction.
pub(super) fn as_run(text: &str) -> String {
    text.replacen(DATABASE, &format!("{DATABASE}avoid_flush_during_recovery=true\n"), 1).replacen(
        FAMILY,
        &format!("{FAMILY}compression=kNoCompression\n"),
        1,
    )
}

fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')?.trim().parse().ok())
}

/// Size of the block cache.
pub(super) fn cache_bytes(text: &str) -> u64 {
    number(text, "block_cache").unwrap_or(CACHE_BYTES)
}

/// Files of level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelZero {
    pub files: u64,
    /// In each of them, as many as a memtable takes.
    pub records: u64,
}

impl LevelZero {
    /// Halfway between two compactions: half of the files that begin one.
    pub fn halfway(text: &str, record_bytes: u64) -> Self {
        let begin = number(text, "level0_file_num_compaction_trigger").unwrap_or(LEVEL_ZERO_FILES);
        let memtable_bytes = number(text, "write_buffer_size").unwrap_or(MEMTABLE_BYTES);
        let records = memtable_bytes * FLUSHED_PER_CENT / 100 / (record_bytes + ENTRY_BYTES);
        Self { files: begin / 2, records: records.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_off_and_recovery_flushes_nothing() {
        let run = as_run(DEFAULT);
        assert!(run.contains("[CFOptions \"default\"]\ncompression=kNoCompression\n"), "{run}");
        assert!(run.contains("[DBOptions]\navoid_flush_during_recovery=true\n"), "{run}");
    }

    #[test]
    fn the_cache_and_the_files_of_level_zero_are_found() {
        assert_eq!(cache_bytes(DEFAULT), 8 << 20);
        assert_eq!(cache_bytes("# block_cache: why\nblock_cache=33554432\n"), 32 << 20);
        let default = LevelZero::halfway(DEFAULT, 1024);
        assert_eq!(default.files, 2);
        let bytes = default.records * 1024;
        assert!((56 << 20..62 << 20).contains(&bytes), "{default:?}");
        let small = "write_buffer_size=100000\nlevel0_file_num_compaction_trigger=8\n";
        assert_eq!(LevelZero::halfway(small, 936), LevelZero { files: 4, records: 95 });
    }
}
