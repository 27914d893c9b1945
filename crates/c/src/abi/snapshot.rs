//! Snapshots.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::handles::{IteratorHandle, SnapshotHandle, StoreHandle, TreeHandle};
use super::iterator::iterate;
use crate::call::{ErrorHandle, call, quietly};
use crate::reading;
use crate::status::Status;

/// Takes a snapshot of all trees as they are now, which delays no writer. Free it with fg_snapshot_free:
/// until then the store keeps the records that it sees.
///
/// Errors: FG_STATUS_CLOSED, FG_STATUS_POISONED.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_new(
    store: Option<&StoreHandle>,
    snapshot: Option<&mut MaybeUninit<*mut SnapshotHandle>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(snapshot);
        let (snapshot, store) = (given!(snapshot), used!(store));
        let (taken, opening) = (store.db.snapshot()?, Arc::clone(&store.opening));
        snapshot.write(Box::into_raw(Box::new(SnapshotHandle { snapshot: taken, opening })));
        Ok(())
    })
}

/// Frees a snapshot; nothing at a null pointer. Iterators that it made go on.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_free(snapshot: Option<Box<SnapshotHandle>>) {
    quietly(|| drop(snapshot));
}

/// Reads the value of a key as of the snapshot. `*value` is in memory of its own: free it with fg_free. It is
/// null if there is no such key, which is no error; the value of no bytes is not null.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_get(
    snapshot: Option<&SnapshotHandle>,
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
            &used!(snapshot).snapshot,
            &used!(tree).tree,
            bytes!(key, key_length),
            value,
            value_length,
        )
    })
}

/// Reads the value of a key as of the snapshot into memory of the program, as much of it as `capacity` bytes
/// take. `*value_length` is the length of the whole value, and `*found` whether there is such a key.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_get_into(
    snapshot: Option<&SnapshotHandle>,
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
            &used!(snapshot).snapshot,
            &used!(tree).tree,
            bytes!(key, key_length),
            room,
            value_length,
            found,
        )
    })
}

/// Whether there is such a key as of the snapshot; the value is not read.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_contains(
    snapshot: Option<&SnapshotHandle>,
    tree: Option<&TreeHandle>,
    key: *const c_void,
    key_length: usize,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(found);
        reading::contains(&used!(snapshot).snapshot, &used!(tree).tree, bytes!(key, key_length), found)
    })
}

/// An iterator over the records as of the snapshot from `lower`, with it, to `upper`, without it; a null
/// pointer is no bound. It is on no record until it is moved, has a snapshot of its own, and does not need
/// the other handles. Free it with fg_iterator_free.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_snapshot_iterate(
    snapshot: Option<&SnapshotHandle>,
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
            &used!(snapshot).snapshot,
            used!(tree),
            bound!(lower, lower_length),
            bound!(upper, upper_length),
            iterator,
        )
    })
}
