//! Caches: a number of bytes that the store's own cache gets.

use crate::call::quietly;

/// The memory that a program gives to a database.
pub struct CacheHandle {
    pub capacity_bytes: usize,
}

/// A cache of this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> Box<CacheHandle> {
    Box::new(CacheHandle { capacity_bytes: capacity })
}

/// Frees the handle; databases keep the memory that they have.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: Option<Box<CacheHandle>>) {
    quietly(|| drop(cache));
}
