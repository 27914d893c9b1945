//! Iterators.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use flashgrain::Readable;

use super::handles::{IteratorHandle, TreeHandle};
use crate::call::{ErrorHandle, call, quietly};
use crate::memory::Place;
use crate::status::{Failure, Status};
use crate::walk::Walk;

/// Makes an iterator over the records within bounds.
pub fn iterate(
    from: &impl Readable,
    tree: &TreeHandle,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
    iterator: Place<'_, *mut IteratorHandle>,
) -> Result<(), Failure> {
    let iterator = given!(iterator);
    let walk = Walk::new(from.cursor(&tree.tree)?, lower, upper);
    let opening = Arc::clone(&tree.opening);
    iterator.write(Box::into_raw(Box::new(IteratorHandle { walk, opening })));
    Ok(())
}

/// Moves an iterator. After any error, that of an argument among them, it is on no record.
fn moved(
    iterator: Option<&mut IteratorHandle>,
    to: impl FnOnce(&mut Walk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let iterator = given!(iterator);
    let moved = iterator.opening.check().and_then(|()| to(&mut iterator.walk));
    if moved.is_err() {
        iterator.walk.leave();
    }
    moved
}

/// Frees an iterator; nothing at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_free(iterator: Option<Box<IteratorHandle>>) {
    quietly(|| drop(iterator));
}

/// Whether the iterator is on a record; not at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_valid(iterator: Option<&IteratorHandle>) -> bool {
    iterator.is_some_and(|iterator| iterator.walk.record().is_some())
}

/// Key and value of the record that the iterator is on. They are the iterator's, until it is moved or freed.
///
/// Errors: FG_STATUS_NOT_FOUND if it is on none.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_record(
    iterator: Option<&IteratorHandle>,
    key: Option<&mut MaybeUninit<*const c_void>>,
    key_length: Option<&mut MaybeUninit<usize>>,
    value: Option<&mut MaybeUninit<*const c_void>>,
    value_length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || {
        places!(key, key_length, value, value_length);
        let (key, key_length) = (given!(key), given!(key_length));
        let (value, value_length) = (given!(value), given!(value_length));
        let on_none =
            || Failure::new(Status::NotFound, "the iterator is on no record: look at fg_iterator_valid");
        let record = used!(iterator).walk.record().ok_or_else(on_none)?;
        key.write(record.0.as_ptr().cast());
        key_length.write(record.0.len());
        value.write(record.1.as_ptr().cast());
        value_length.write(record.1.len());
        Ok(())
    })
}

/// To the first record. It is on none afterwards if there is none within its bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_seek_first(
    iterator: Option<&mut IteratorHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.seek_first()?)))
}

/// To the last record. It is on none afterwards if there is none within its bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_seek_last(
    iterator: Option<&mut IteratorHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.seek_last()?)))
}

/// To the first record whose key is not smaller than this one. It is on none afterwards if there is none
/// within its bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_seek(
    iterator: Option<&mut IteratorHandle>,
    key: *const c_void,
    key_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.seek(bytes!(key, key_length))?)))
}

/// To the last record whose key is not larger than this one. It is on none afterwards if there is none within
/// its bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_seek_back(
    iterator: Option<&mut IteratorHandle>,
    key: *const c_void,
    key_length: usize,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.seek_back(bytes!(key, key_length))?)))
}

/// To the next record. On no record it stays there. It is on none afterwards if there is none within its
/// bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_next(
    iterator: Option<&mut IteratorHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.next()?)))
}

/// To the record before. On no record it stays there. It is on none afterwards if there is none within its
/// bounds, and after an error.
///
/// Errors: those of reads.
#[unsafe(no_mangle)]
pub extern "C" fn fg_iterator_prev(
    iterator: Option<&mut IteratorHandle>,
    error: Option<&mut MaybeUninit<*mut ErrorHandle>>,
) -> Status {
    call(error, || moved(iterator, |walk| Ok(walk.prev()?)))
}
