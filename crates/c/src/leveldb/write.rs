//! Writes.

use std::ffi::c_char;

use super::database::Database;
use super::message::{ErrorText, Message, report};
use super::write_batch::WriteBatchHandle;
use super::write_options::WriteOptionsHandle;
use crate::argument;

/// A write, or several as one.
fn write<'a>(
    database: Option<&Database>,
    options: Option<&WriteOptionsHandle>,
    writes: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone,
) -> Result<(), Message> {
    let database = database.ok_or_else(|| Message::invalid("the database is null"))?;
    let Database { db, tree, order } = database;
    let durability = options.map(WriteOptionsHandle::durability);
    let mut batch = db.batch().durability(durability.unwrap_or(flashgrain::Durability::Buffered));
    for (key, value) in writes.clone() {
        match value {
            Some(value) => batch.insert(tree, key, value)?,
            // An empty key is in no database.
            None if key.is_empty() => {}
            None => batch.remove(tree, key)?,
        }
    }
    let _others_wait = order.lock();
    order.check_keys(db, tree, writes.map(|(key, _)| key).filter(|key| !key.is_empty()).collect())?;
    Ok(batch.commit()?)
}

/// Gives a key a value.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_put(
    database: Option<&Database>,
    options: Option<&WriteOptionsHandle>,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
    error: ErrorText<'_>,
) {
    report(error, || {
        // SAFETY: LevelDB's contract: the bytes are there until the function returns.
        let key = unsafe { argument::bytes(key.cast(), key_length, "key") }?;
        // SAFETY: the same.
        let value = unsafe { argument::bytes(value.cast(), value_length, "value") }?;
        write(database, options, std::iter::once((key, Some(value))))
    });
}

/// Removes a key, whether it is there or not.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_delete(
    database: Option<&Database>,
    options: Option<&WriteOptionsHandle>,
    key: *const c_char,
    key_length: usize,
    error: ErrorText<'_>,
) {
    report(error, || {
        // SAFETY: LevelDB's contract: the bytes are there until the function returns.
        let key = unsafe { argument::bytes(key.cast(), key_length, "key") }?;
        write(database, options, std::iter::once((key, None)))
    });
}

/// Does the writes of a batch as one; the batch stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_write(
    database: Option<&Database>,
    options: Option<&WriteOptionsHandle>,
    batch: Option<&WriteBatchHandle>,
    error: ErrorText<'_>,
) {
    report(error, || {
        let batch = batch.ok_or_else(|| Message::invalid("the batch is null"))?;
        if let Some(trouble) = &batch.trouble {
            return Err(Message::invalid(trouble));
        }
        write(database, options, batch.writes.iter().map(|(key, value)| (&key[..], value.as_deref())))
    });
}
