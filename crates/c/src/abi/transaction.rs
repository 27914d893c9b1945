//! Transactions.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::durability::durability_of;
use super::handles::{IteratorHandle, StoreHandle, TransactionHandle, TreeHandle};
use super::iterator::iterate;
use super::range::range;
use crate::call::{ErrorHandle, call, quietly};
use crate::reading;
use crate::status::Status;

/// Begins a transaction: it reads all trees as they are now, and its own writes. Free it with
/// fg_transaction_free, committed or not.
///
/// Errors: FG_STATUS_CLOSED, FG_STATUS_POISONED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_begin(
    store: Option<&StoreHandle>,
    transaction: Option<&mut MaybeUninit<*mut TransactionHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(transaction);
        let (transaction, store) = (given!(transaction), used!(store));
        let begun = store.db.begin()?;
        transaction.write(Box::into_raw(Box::new(TransactionHandle::new(begun, store))));
        Ok(())
    })
}

/// Does all writes as one, if no other commit has changed one of their keys since the transaction began. The
/// transaction is finished then, whatever is returned.
///
/// Errors: FG_STATUS_CONFLICT: nothing was done, begin again. FG_STATUS_FINISHED, and those of fg_tree_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_commit(
    transaction: Option<&mut TransactionHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || used!(transaction).commit())
}

/// Forgets all writes so far; the transaction goes on with the state that it reads.
///
/// Errors: FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_rollback(
    transaction: Option<&mut TransactionHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        used!(transaction).get_mut()?.rollback();
        Ok(())
    })
}

/// Frees a transaction; nothing at a null pointer. One that was not committed never was.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_free(transaction: Option<Box<TransactionHandle>>) {
    quietly(|| drop(transaction));
}

/// Gives a key this value.
///
/// Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key, and if all writes
/// together are longer than a commit may be; FG_STATUS_OTHER_STORE, FG_STATUS_OTHER_OPENING,
/// FG_STATUS_DROPPED for the tree; FG_STATUS_FINISHED. The transaction stays as it was.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_put(
    transaction: Option<&mut TransactionHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let (key, value) = (bytes!(key, key_length), bytes!(value, value_length));
        Ok(used!(transaction).get_mut()?.insert(&used!(tree).tree, key, value)?)
    })
}

/// Removes a key, whether it is there or not.
///
/// Errors: as fg_transaction_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_remove(
    transaction: Option<&mut TransactionHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let key = bytes!(key, key_length);
        Ok(used!(transaction).get_mut()?.remove(&used!(tree).tree, key)?)
    })
}

/// Sets how durable it is to be when its commit returns, an fg_durability.
///
/// Errors: FG_STATUS_ARGUMENT for a number that is none, FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_set_durability(
    transaction: Option<&mut TransactionHandle>,
    durability: i32,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        let durability = durability_of(durability)?;
        used!(transaction).get_mut()?.set_durability(durability);
        Ok(())
    })
}

/// Removes the records that the transaction sees from `lower`, with it, to `upper`, without it; a null
/// pointer is no bound. `*removed` is how many they were.
///
/// Errors: as fg_transaction_put.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_remove_range(
    transaction: Option<&mut TransactionHandle>,
    tree: Option<&TreeHandle>,
    lower: *const c_void,
    lower_length: usize,
    upper: *const c_void,
    upper_length: usize,
    removed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(removed);
        let range = range(bound!(lower, lower_length), bound!(upper, upper_length));
        let removed = given!(removed);
        removed.write(used!(transaction).get_mut()?.remove_range::<&[u8]>(&used!(tree).tree, range)?);
        Ok(())
    })
}

/// Reads the value of a key as the transaction sees it, with its own writes. `*value` is in memory of its
/// own: free it with fg_free. It is null if there is no such key, which is no error; the value of no bytes is
/// not null.
///
/// Errors: those of reads; FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_get(
    transaction: Option<&TransactionHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    value: Option<&mut MaybeUninit<*mut c_void>>,
    value_length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(value, value_length);
        reading::get(
            used!(transaction).get()?,
            &used!(tree).tree,
            bytes!(key, key_length),
            value,
            value_length,
        )
    })
}

/// Reads the value of a key as the transaction sees it, with its own writes into memory of the program, as
/// much of it as `capacity` bytes take. `*value_length` is the length of the whole value, and `*found`
/// whether there is such a key.
///
/// Errors: those of reads; FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_get_into(
    transaction: Option<&TransactionHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(value_length, found);
        let room = room!(buffer, capacity);
        reading::get_into(
            used!(transaction).get()?,
            &used!(tree).tree,
            bytes!(key, key_length),
            room,
            value_length,
            found,
        )
    })
}

/// Whether there is such a key as the transaction sees it, with its own writes; the value is not read.
///
/// Errors: those of reads; FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_contains(
    transaction: Option<&TransactionHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(found);
        reading::contains(used!(transaction).get()?, &used!(tree).tree, bytes!(key, key_length), found)
    })
}

/// An iterator over the records as the transaction sees it, with its own writes from `lower`, with it, to
/// `upper`, without it; a null pointer is no bound. It is on no record until it is moved, has a snapshot of
/// its own, and does not need the other handles. Free it with fg_iterator_free.
///
/// Errors: those of reads; FG_STATUS_FINISHED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_transaction_iterate(
    transaction: Option<&TransactionHandle>,
    tree: Option<&TreeHandle>,
    lower: *const c_void,
    lower_length: usize,
    upper: *const c_void,
    upper_length: usize,
    iterator: Option<&mut MaybeUninit<*mut IteratorHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(iterator);
        iterate(
            used!(transaction).get()?,
            used!(tree),
            bound!(lower, lower_length),
            bound!(upper, upper_length),
            iterator,
        )
    })
}
