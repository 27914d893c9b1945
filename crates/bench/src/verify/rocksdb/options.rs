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

/// RocksDB's own default.
const CACHE_BYTES: u64 = 8 << 20;

const FAMILY: &str = "[CFOptions \"default\"]\n";

pub(super) fn without_compression(text: &str) -> String {
    text.replacen(FAMILY, &format!("{FAMILY}compression=kNoCompression\n"), 1)
}

/// Size of the block cache.
pub(super) fn cache_bytes(text: &str) -> u64 {
    let told = text.lines().find_map(|line| line.strip_prefix("block_cache="));
    told.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(CACHE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_off_and_the_cache_is_found() {
        let off = without_compression(DEFAULT);
        assert!(off.contains("[CFOptions \"default\"]\ncompression=kNoCompression\n"), "{off}");
        assert_eq!(cache_bytes(DEFAULT), 8 << 20);
        assert_eq!(cache_bytes(&(off + "# block_cache: why\nblock_cache=33554432\n")), 32 << 20);
    }
}
