//! Options of a database.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use flashgrain::{Builder, Durability, IndexKind, LsmCompression, LsmOptions, TreeOptions};

use super::cache::CacheHandle;
use super::comparator::{Comparator, ComparatorHandle};
use super::environment::EnvironmentHandle;
use super::filter_policy::FilterPolicyHandle;
use crate::call::quietly;

/// LevelDB's defaults.
const CACHE_BYTES: u64 = 8 << 20;
const WRITE_BUFFER_BYTES: u64 = 4 << 20;

/// The least that the store gets, as memtables and merges work in it, too.
const CACHE_BYTES_MIN: u64 = 32 << 20;
/// The cache has that many write buffers: one is written to, and others wait to become tables.
const WRITE_BUFFERS: u64 = 8;

/// Sizes of a tree's nodes.
const NODE_BYTES_MIN: usize = 16 << 10;
const NODE_BYTES_MAX: usize = 64 << 10;

/// The most bits of a filter for each key.
const FILTER_BITS_MAX: c_int = 30;

/// LevelDB's number for it; others stand for codecs.
const NO_COMPRESSION: c_int = 0;

/// Options of a database.
pub struct OptionsHandle {
    pub comparator: Option<Arc<Comparator>>,
    pub is_made_if_missing: bool,
    pub is_refused_if_there: bool,
    filter_bits: Option<c_int>,
    write_buffer_bytes: u64,
    cache_bytes: u64,
    block_bytes: usize,
    compression: LsmCompression,
}

impl Default for OptionsHandle {
    fn default() -> Self {
        Self {
            comparator: None,
            is_made_if_missing: false,
            is_refused_if_there: false,
            filter_bits: None,
            write_buffer_bytes: WRITE_BUFFER_BYTES,
            cache_bytes: CACHE_BYTES,
            block_bytes: 0,
            // LevelDB compresses by Snappy unless it is told otherwise.
            compression: LsmCompression::Lz4,
        }
    }
}

impl OptionsHandle {
    /// Those of the store. Writes that are not to be synced are given to the system, as LevelDB's are.
    pub fn builder(&self) -> Builder {
        let buffers_bytes = self.write_buffer_bytes.saturating_mul(WRITE_BUFFERS);
        let bytes = self.cache_bytes.saturating_add(buffers_bytes).max(CACHE_BYTES_MIN);
        flashgrain::Db::builder().cache_bytes(bytes).durability(Durability::Buffered)
    }

    /// Those of the tree, if it is made.
    pub fn tree(&self) -> TreeOptions {
        let mut lsm = LsmOptions::new().compression(self.compression);
        if let Some(bits) = self.filter_bits {
            lsm = lsm.filter_bits_per_key(f64::from(bits.clamp(0, FILTER_BITS_MAX)));
        }
        let options = TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm);
        if self.block_bytes <= NODE_BYTES_MIN {
            return options;
        }
        let bytes = self.block_bytes.min(NODE_BYTES_MAX).next_power_of_two();
        options.node_bytes(bytes as u32)
    }
}

/// New options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> Box<OptionsHandle> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: Option<Box<OptionsHandle>>) {
    quietly(|| drop(options));
}

/// The order of the keys, which must be that of their bytes: see `order`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: Option<&mut OptionsHandle>,
    comparator: Option<&ComparatorHandle>,
) {
    if let Some(options) = options {
        options.comparator = comparator.map(|comparator| Arc::clone(&comparator.0));
    }
}

/// The filters of a new database.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: Option<&mut OptionsHandle>,
    policy: Option<&FilterPolicyHandle>,
) {
    if let Some(options) = options {
        options.filter_bits = policy.and_then(|policy| policy.bits_per_key);
    }
}

/// Whether a database is made if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(options: Option<&mut OptionsHandle>, is_made: u8) {
    if let Some(options) = options {
        options.is_made_if_missing = is_made != 0;
    }
}

/// Whether a database that there is is refused.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(options: Option<&mut OptionsHandle>, is_refused: u8) {
    if let Some(options) = options {
        options.is_refused_if_there = is_refused != 0;
    }
}

/// No effect: checksums are always verified.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(_options: Option<&mut OptionsHandle>, _checked: u8) {}

/// No effect: there is one environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(
    _options: Option<&mut OptionsHandle>,
    _environment: Option<&EnvironmentHandle>,
) {
}

/// No effect: the store logs nothing for people. There is no function that makes a logger.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(_options: Option<&mut OptionsHandle>, _logger: *mut c_void) {}

/// Memory for writes, on top of that of the cache.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(options: Option<&mut OptionsHandle>, bytes: usize) {
    if let Some(options) = options {
        options.write_buffer_bytes = bytes as u64;
    }
}

/// No effect: a store has two files.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(_options: Option<&mut OptionsHandle>, _files: c_int) {}

/// The memory for records that were read.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(
    options: Option<&mut OptionsHandle>,
    cache: Option<&CacheHandle>,
) {
    if let Some(options) = options {
        options.cache_bytes = cache.map_or(CACHE_BYTES, |cache| cache.capacity_bytes as u64);
    }
}

/// The size of blocks, where it is above the store's own of 16 KiB: up to 64 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(options: Option<&mut OptionsHandle>, bytes: usize) {
    if let Some(options) = options {
        options.block_bytes = bytes;
    }
}

/// No effect: blocks have another form.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(
    _options: Option<&mut OptionsHandle>,
    _keys: c_int,
) {
}

/// No effect: tables are no files.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(_options: Option<&mut OptionsHandle>, _bytes: usize) {}

/// Whether blocks of a new database are compressed, by LZ4.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(options: Option<&mut OptionsHandle>, compression: c_int) {
    if let Some(options) = options {
        let is_compressed = compression != NO_COMPRESSION;
        options.compression = if is_compressed { LsmCompression::Lz4 } else { LsmCompression::None };
    }
}
