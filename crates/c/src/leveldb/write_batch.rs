//! Batches of writes, in the order in which they were added.

use std::ffi::{c_char, c_void};

use crate::argument;
use crate::call::quietly;

type Put = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
type Deleted = extern "C" fn(*mut c_void, *const c_char, usize);

/// A write: a value, or none for a removal.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// Writes that are done as one.
#[derive(Default)]
pub struct WriteBatchHandle {
    pub writes: Vec<Write>,
    /// A null pointer or a length that was refused: the batch has no place for an error, so its write has it.
    pub trouble: Option<String>,
}

impl WriteBatchHandle {
    /// Adds a write, if its bytes are there.
    fn add(&mut self, bytes: Result<(&[u8], Option<&[u8]>), crate::status::Failure>) {
        match bytes {
            Ok((key, value)) => self.writes.push((key.to_vec(), value.map(<[u8]>::to_vec))),
            Err(failure) => self.trouble = Some(failure.message.to_string_lossy().into_owned()),
        }
    }
}

/// A new batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> Box<WriteBatchHandle> {
    Box::default()
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: Option<Box<WriteBatchHandle>>) {
    quietly(|| drop(batch));
}

/// Forgets its writes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: Option<&mut WriteBatchHandle>) {
    quietly(|| {
        if let Some(batch) = batch {
            *batch = WriteBatchHandle::default();
        }
    });
}

/// Adds a value for a key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_put(
    batch: Option<&mut WriteBatchHandle>,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    quietly(|| {
        // SAFETY: LevelDB's contract: the bytes are there until the function returns.
        let key = unsafe { argument::bytes(key.cast(), key_length, "key") };
        // SAFETY: the same.
        let value = unsafe { argument::bytes(value.cast(), value_length, "value") };
        if let Some(batch) = batch {
            batch.add(key.and_then(|key| Ok((key, Some(value?)))));
        }
    });
}

/// Adds the removal of a key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_delete(
    batch: Option<&mut WriteBatchHandle>,
    key: *const c_char,
    key_length: usize,
) {
    quietly(|| {
        // SAFETY: LevelDB's contract: the bytes are there until the function returns.
        let key = unsafe { argument::bytes(key.cast(), key_length, "key") };
        if let Some(batch) = batch {
            batch.add(key.map(|key| (key, None)));
        }
    });
}

/// Calls a function for each write, in their order.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_iterate(
    batch: Option<&WriteBatchHandle>,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    for (key, value) in batch.into_iter().flat_map(|batch| &batch.writes) {
        let start = key.as_ptr().cast();
        match (value, put, deleted) {
            (Some(value), Some(put), _) => put(state, start, key.len(), value.as_ptr().cast(), value.len()),
            (None, _, Some(deleted)) => deleted(state, start, key.len()),
            _ => {}
        }
    }
}

/// Adds the writes of another batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    destination: *mut WriteBatchHandle,
    source: *const WriteBatchHandle,
) {
    quietly(|| {
        // SAFETY: LevelDB's contract: both are null or batches, which may be the same one; this reference
        // ends before the other one begins.
        let Some((writes, trouble)) =
            (unsafe { source.as_ref() }).map(|source| (source.writes.clone(), source.trouble.clone()))
        else {
            return;
        };
        // SAFETY: the same.
        if let Some(destination) = unsafe { destination.as_mut() } {
            destination.writes.extend(writes);
            destination.trouble = destination.trouble.take().or(trouble);
        }
    });
}
