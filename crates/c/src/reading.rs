//! Reads from a store, a snapshot or a transaction, with results for C.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use flashgrain::{Readable, Tree};

use crate::argument::given;
use crate::memory::{self, Place};
use crate::status::Failure;

/// A value in memory of `malloc`, or a null pointer if there is no such key.
///
/// # Errors
/// Those of [`Readable::get`].
pub fn get(
    from: &impl Readable,
    tree: &Tree,
    key: &[u8],
    value: Place<'_, *mut c_void>,
    length: Place<'_, usize>,
) -> Result<(), Failure> {
    let (value, length) = (given(value, "value")?, given(length, "value_length")?);
    if let Some(found) = from.get(tree, key)? {
        value.write(memory::copy(&found)?);
        length.write(found.len());
    }
    Ok(())
}

/// A value in the program's memory: as much of it as there is room for, its full length, and whether there is
/// such a key.
///
/// # Errors
/// Those of [`Readable::get`].
pub fn get_into(
    from: &impl Readable,
    tree: &Tree,
    key: &[u8],
    room: &mut [MaybeUninit<u8>],
    length: Place<'_, usize>,
    is_found: Place<'_, bool>,
) -> Result<(), Failure> {
    let found = from.get(tree, key)?;
    let value = found.as_deref().unwrap_or_default();
    for (place, byte) in room.iter_mut().zip(value) {
        place.write(*byte);
    }
    memory::put(length, "value_length", value.len())?;
    memory::put(is_found, "found", found.is_some())
}

/// Whether there is such a key.
///
/// # Errors
/// Those of [`Readable::contains_key`].
pub fn contains(
    from: &impl Readable,
    tree: &Tree,
    key: &[u8],
    is_found: Place<'_, bool>,
) -> Result<(), Failure> {
    memory::put(is_found, "found", from.contains_key(tree, key)?)
}
