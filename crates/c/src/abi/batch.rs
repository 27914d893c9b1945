//! Batches.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::durability::durability_of;
use super::handles::{BatchHandle, StoreHandle, TreeHandle};
use crate::call::{ErrorHandle, call, quietly};
use crate::memory;
use crate::status::Status;

/// A new batch of writes to any trees of the store. Free it with fg_batch_free, committed or not.
///
/// Errors: FG_STATUS_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_new(
    store: Option<&StoreHandle>,
    batch: Option<&mut MaybeUninit<*mut BatchHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(batch);
        let (batch, store) = (given!(batch), used!(store));
        batch.write(Box::into_raw(Box::new(BatchHandle::new(store.db.batch(), store))));
        Ok(())
    })
}

/// Does all writes as one: all of them are there then, or after an error or a crash perhaps none. The batch
/// is finished, whatever is returned.
///
/// Errors: FG_STATUS_FINISHED, and those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_commit(
    batch: Option<&mut BatchHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || used!(batch).commit())
}

/// The number of keys that the batch writes.
///
/// Errors: FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_count(
    batch: Option<&BatchHandle>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(count);
        memory::put(count, "count", used!(batch).get()?.len())
    })
}

/// Frees a batch; nothing at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_free(batch: Option<Box<BatchHandle>>) {
    quietly(|| drop(batch));
}

/// Gives a key this value; of several writes to a key the last one counts.
///
/// Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key, and if all writes
/// together are longer than a commit may be; FG_STATUS_OTHER_STORE, FG_STATUS_OTHER_OPENING,
/// FG_STATUS_DROPPED for the tree; FG_STATUS_FINISHED. The batch stays as it was.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_put(
    batch: Option<&mut BatchHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let (key, value) = (bytes!(key, key_length), bytes!(value, value_length));
        Ok(used!(batch).get_mut()?.insert(&used!(tree).tree, key, value)?)
    })
}

/// Removes a key, whether it is there or not.
///
/// Errors: as fg_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_remove(
    batch: Option<&mut BatchHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let key = bytes!(key, key_length);
        Ok(used!(batch).get_mut()?.remove(&used!(tree).tree, key)?)
    })
}

/// Sets how durable it is to be when its commit returns, an fg_durability.
///
/// Errors: FG_STATUS_ARGUMENT for a number that is none, FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_batch_set_durability(
    batch: Option<&mut BatchHandle>,
    durability: i32,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let durability = durability_of(durability)?;
        used!(batch).set_durability(durability)
    })
}
