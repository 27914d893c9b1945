//! Reads of one key.

use std::ffi::{c_char, c_void};

use flashgrain::{Readable, Value};

use super::database::Database;
use super::message::{ErrorText, Message, report};
use super::read_options::ReadOptionsHandle;
use crate::argument;
use crate::memory;

/// The value of a key in memory of `malloc`; null if there is no such key, and after an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_get(
    database: Option<&Database>,
    options: Option<&ReadOptionsHandle>,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut usize>,
    error: ErrorText<'_>,
) -> *mut c_char {
    let value = report(error, || {
        // SAFETY: LevelDB's contract: the bytes are there until the function returns.
        let key = unsafe { argument::bytes(key.cast(), key_length, "key") }?;
        let database = database.ok_or_else(|| Message::invalid("the database is null"))?;
        let snapshot = options.and_then(|options| options.snapshot.as_ref());
        let found = match snapshot {
            Some(snapshot) => get(database, snapshot, key),
            None => get(database, &database.db, key),
        }?;
        let copied = |value: Value| Ok((memory::copy(&value)?, value.len()));
        found.map(copied).transpose()
    });
    let (start, length) = value.flatten().unwrap_or((std::ptr::null_mut::<c_void>(), 0));
    if let Some(place) = value_length {
        *place = length;
    }
    start.cast()
}

fn get(database: &Database, from: &impl Readable, key: &[u8]) -> Result<Option<Value>, Message> {
    if key.is_empty() {
        // No database has one.
        return Ok(None);
    }
    database.order.check_key(from, &database.tree, key)?;
    Ok(from.get(&database.tree, key)?)
}
