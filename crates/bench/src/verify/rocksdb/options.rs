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

const FAMILY: &str = "[CFOptions \"default\"]\n";

pub(super) fn without_compression(text: &str) -> String {
    text.replacen(FAMILY, &format!("{FAMILY}compression=kNoCompression\n"), 1)
}

fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')?.trim().parse().ok())
}

/// Size of the block cache.
pub(super) fn cache_bytes(text: &str) -> u64 {
    number(text, "block_cache").unwrap_or(CACHE_BYTES)
}

/// Half of the files of level 0 that begin a compaction, each as large as a memtable.
pub(super) fn level_zero_bytes(text: &str) -> u64 {
    let files = number(text, "level0_file_num_compaction_trigger").unwrap_or(LEVEL_ZERO_FILES);
    number(text, "write_buffer_size").unwrap_or(MEMTABLE_BYTES) * files / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_off_and_the_cache_is_found() {
        let off = without_compression(DEFAULT);
        assert!(off.contains("[CFOptions \"default\"]\ncompression=kNoCompression\n"), "{off}");
        assert_eq!(cache_bytes(DEFAULT), 8 << 20);
        assert_eq!(level_zero_bytes(DEFAULT), 128 << 20);
        assert_eq!(level_zero_bytes("write_buffer_size=1000\nlevel0_file_num_compaction_trigger=2\n"), 1000);
        assert_eq!(cache_bytes(&(off + "# block_cache: why\nblock_cache=33554432\n")), 32 << 20);
    }
}
