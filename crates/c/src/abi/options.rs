//! Options of opening a store.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use flashgrain::{Builder, Db, Durability};

use super::durability::durability_of;
use crate::call::{ErrorHandle, call, quietly};
use crate::status::Status;

/// The place of a store and its options. One thread at a time uses it; a store that was opened with it does
/// not need it any more, and it may open others.
#[derive(Default)]
pub struct OptionsHandle {
    paths: Vec<PathBuf>,
    log_paths: Vec<PathBuf>,
    cache_bytes: Option<u64>,
    workers: Option<usize>,
    durability: Option<Durability>,
    writes_log: Option<bool>,
    recovery_log_bytes: Option<u64>,
    size_bytes_max: Option<u64>,
}

impl OptionsHandle {
    /// The store's own options, anew for each opening.
    pub fn builder(&self) -> Builder {
        let mut builder = self.paths.iter().fold(Db::builder(), Builder::path);
        builder = self.log_paths.iter().fold(builder, Builder::log_path);
        if let Some(bytes) = self.cache_bytes {
            builder = builder.cache_bytes(bytes);
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(durability) = self.durability {
            builder = builder.durability(durability);
        }
        if let Some(writes_log) = self.writes_log {
            builder = builder.write_log(writes_log);
        }
        if let Some(bytes) = self.recovery_log_bytes {
            builder = builder.recovery_log_bytes(bytes);
        }
        if let Some(bytes) = self.size_bytes_max {
            builder = builder.size_bytes_max(bytes);
        }
        builder
    }
}

/// New options, all with their defaults and without a place. Free them with fg_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_new() -> Box<OptionsHandle> {
    Box::default()
}

/// Frees options; nothing at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_free(options: Option<Box<OptionsHandle>>) {
    quietly(|| drop(options));
}

/// Adds the directory, or the raw block device, that the store is in. With several the store is striped over
/// them, in their order.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_add_path(
    options: Option<&mut OptionsHandle>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let path = path!(path).to_owned();
        given!(options).paths.push(path);
        Ok(())
    })
}

/// Adds a directory or block device for the log, if it is to have one of its own.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_add_log_path(
    options: Option<&mut OptionsHandle>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let path = path!(path).to_owned();
        given!(options).log_paths.push(path);
        Ok(())
    })
}

/// Sets the memory for pages and write buffers of all trees, a hard budget: 256 MiB unless set.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_cache_bytes(
    options: Option<&mut OptionsHandle>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).cache_bytes = Some(bytes);
        Ok(())
    })
}

/// Sets the number of the store's own threads: one for each core unless set.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_workers(
    options: Option<&mut OptionsHandle>,
    workers: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).workers = Some(workers);
        Ok(())
    })
}

/// Sets how durable commits are that do not say, an fg_durability: FG_DURABILITY_SYNC unless set.
///
/// Errors: FG_STATUS_ARGUMENT for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_durability(
    options: Option<&mut OptionsHandle>,
    durability: i32,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).durability = Some(durability_of(durability)?);
        Ok(())
    })
}

/// Sets whether commits are written to the log, as they are unless set. Without it they become durable with
/// the next checkpoint, for which commits of FG_DURABILITY_SYNC and FG_DURABILITY_BUFFERED wait.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_write_log(
    options: Option<&mut OptionsHandle>,
    written: bool,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).writes_log = Some(written);
        Ok(())
    })
}

/// Sets the most log that is replayed after a crash: 128 MiB unless set. Less means more checkpoints.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_recovery_log_bytes(
    options: Option<&mut OptionsHandle>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).recovery_log_bytes = Some(bytes);
        Ok(())
    })
}

/// Sets the most that the store grows to in its directory: unless set, as long as the disk has room. A new
/// store is made as large at once.
#[unsafe(no_mangle)]
pub extern "C" fn fg_options_set_size_bytes_max(
    options: Option<&mut OptionsHandle>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        given!(options).size_bytes_max = Some(bytes);
        Ok(())
    })
}
