//! Stores.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use flashgrain::{Builder, Db, Error};

use super::handles::StoreHandle;
use super::options::OptionsHandle;
use crate::call::{ErrorHandle, call, quietly};
use crate::memory::{self, Place};
use crate::status::{Failure, Status};

/// Opens or makes a store in the way of `open`.
fn opened(
    options: Option<&OptionsHandle>,
    store: Place<'_, *mut StoreHandle>,
    open: impl FnOnce(Builder) -> Result<Db, Error>,
) -> Result<(), Failure> {
    let (options, store) = (given!(options), given!(store));
    let db = open(options.builder())?;
    store.write(Box::into_raw(Box::new(StoreHandle::new(db))));
    Ok(())
}

/// Opens the store that is there.
///
/// Errors: FG_STATUS_NOT_FOUND, FG_STATUS_LOCKED, FG_STATUS_VERSION, FG_STATUS_CORRUPT, FG_STATUS_ARGUMENT
/// for options that cannot be, FG_STATUS_IO.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_open(
    options: Option<&OptionsHandle>,
    store: Option<&mut MaybeUninit<*mut StoreHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(store);
        opened(options, store, Builder::open)
    })
}

/// Makes a new store; its directory is made too, or is empty.
///
/// Errors: FG_STATUS_EXISTS if something is there that would be lost, FG_STATUS_ARGUMENT, FG_STATUS_IO.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_create(
    options: Option<&OptionsHandle>,
    store: Option<&mut MaybeUninit<*mut StoreHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(store);
        opened(options, store, Builder::create)
    })
}

/// Opens the store, or makes one if there is none.
///
/// Errors: those of fg_store_open and fg_store_create.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_open_or_create(
    options: Option<&OptionsHandle>,
    store: Option<&mut MaybeUninit<*mut StoreHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(store);
        opened(options, store, Builder::open_or_create)
    })
}

/// Opens the store that is there and changes nothing of it; several processes may do so at a time. Writes
/// then return FG_STATUS_READ_ONLY.
///
/// Errors: those of fg_store_open.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_open_read_only(
    options: Option<&OptionsHandle>,
    store: Option<&mut MaybeUninit<*mut StoreHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(store);
        opened(options, store, Builder::open_read_only)
    })
}

/// Makes a store in memory, with a cache of `cache_bytes`; it is gone when it is closed. It reserves 64 GiB
/// of addresses, of which only those in use take memory. A limit of addresses (`ulimit -v`) and valgrind may
/// refuse them: use a store in a directory there.
///
/// Errors: FG_STATUS_ARGUMENT if the cache is too small, FG_STATUS_IO if the addresses are refused.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_in_memory(
    cache_bytes: u64,
    store: Option<&mut MaybeUninit<*mut StoreHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(store);
        let store = given!(store);
        store.write(Box::into_raw(Box::new(StoreHandle::new(Db::in_memory(cache_bytes)?))));
        Ok(())
    })
}

/// Closes a store: waits for calls that are under way, takes a last checkpoint, and marks the store as
/// closed. Calls with any handle of it then return FG_STATUS_CLOSED; all handles are still to be freed, and
/// the store's files stay locked until they are.
///
/// Errors: FG_STATUS_CLOSED if it was closed before. FG_STATUS_POISONED, FG_STATUS_IO: it is closed, and
/// opens as after a crash.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_close(
    store: Option<&StoreHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || used!(store).close())
}

/// Frees the handle of a store; nothing at a null pointer. A store that was not closed is closed with the
/// last of its handles, trees, snapshots, transactions, batches and iterators among them.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_free(store: Option<Box<StoreHandle>>) {
    quietly(|| drop(store));
}

/// Makes everything that is committed durable, however it was committed.
///
/// Errors: FG_STATUS_POISONED, FG_STATUS_IO.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_sync(
    store: Option<&StoreHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.sync()?))
}

/// Brings a checkpoint about and waits for it: the next opening then has no log to replay. Checkpoints also
/// come by themselves.
///
/// Errors: FG_STATUS_POISONED, FG_STATUS_IO, FG_STATUS_FULL, FG_STATUS_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_checkpoint(
    store: Option<&StoreHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.checkpoint()?))
}

/// Reads and verifies all of the store: each page of each tree, the page table and the accounts of space.
///
/// Errors: the first damage, as FG_STATUS_CORRUPT or FG_STATUS_IO.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_check(
    store: Option<&StoreHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.check().map(drop)?))
}

/// Makes the store's files as short as its records allow, while others go on reading and writing.
///
/// Errors: FG_STATUS_FULL if there is no room for a checkpoint, FG_STATUS_POISONED, FG_STATUS_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_compact(
    store: Option<&StoreHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.compact().map(drop)?))
}

/// Copies all trees, as they are at one moment, to a new store at the place of `target`, while others go on
/// reading and writing. The copy is complete, durable and closed when this returns.
///
/// Errors: those of fg_store_create and of reads; after an error there is no copy.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_backup(
    store: Option<&StoreHandle>,
    target: Option<&OptionsHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let target = given!(target).builder();
        Ok(used!(store).db.backup(target).map(drop)?)
    })
}

/// Statistics of all parts of the store, as text in JSON. Free it with fg_free.
///
/// Errors: FG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_stats_json(
    store: Option<&StoreHandle>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(json);
        let json = given!(json);
        let text = serde_json::to_string(&used!(store).db.stats());
        let text = text.map_err(|error| Failure::new(Status::Internal, error.to_string()))?;
        json.write(memory::copy_text(text.as_bytes())?);
        Ok(())
    })
}

/// The names of all trees, in order: `*count` texts. The list and its texts are one piece of memory: free the
/// list with fg_free, and nothing else of it.
///
/// Errors: FG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_tree_names(
    store: Option<&StoreHandle>,
    names: Option<&mut MaybeUninit<*mut *mut c_char>>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(names, count);
        let (names, count) = (given!(names), given!(count));
        let found = used!(store).db.tree_names();
        names.write(memory::copy_list(&found)?);
        count.write(found.len());
        Ok(())
    })
}

/// Removes a tree with all its records. Calls with handles of it then return FG_STATUS_DROPPED; iterators
/// that there are go on.
///
/// Errors: FG_STATUS_NOT_FOUND, and those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_drop_tree(
    store: Option<&StoreHandle>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.drop_tree(utf8!(name))?))
}

/// Gives a tree another name. Handles that were taken by the old name are refused as those of a dropped tree.
///
/// Errors: FG_STATUS_NOT_FOUND, FG_STATUS_EXISTS, and those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_store_rename_tree(
    store: Option<&StoreHandle>,
    name: *const c_char,
    new_name: *const c_char,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || Ok(used!(store).db.rename_tree(utf8!(name), utf8!(new_name))?))
}
