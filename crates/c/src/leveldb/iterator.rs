//! Iterators.

use std::ffi::c_char;

use flashgrain::{Cursor, Readable};

use super::database::Database;
use super::message::{ErrorText, Message, report};
use super::order::Order;
use super::read_options::ReadOptionsHandle;
use crate::argument;
use crate::call::{catching, quietly};
use crate::walk::Walk;

/// A position in a database.
pub struct IteratorHandle {
    /// None if the iterator could not be made: `trouble` says why.
    walk: Option<Walk>,
    /// The order that passed keys are checked for.
    order: Order,
    trouble: Option<Message>,
}

/// Which way keys go between two positions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// A seek.
    Nothing,
    Upwards,
    Downwards,
}

impl IteratorHandle {
    /// Moves it. After an error it is on no record, until a move that succeeds.
    fn go(&mut self, passed: Passed, go: impl FnOnce(&mut Walk) -> Result<(), flashgrain::Error>) {
        let outcome = catching(|| self.try_go(passed, go));
        self.trouble = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(message)) => Some(message),
            Err(panic) => Some(panic.into()),
        };
    }

    fn try_go(
        &mut self,
        passed: Passed,
        go: impl FnOnce(&mut Walk) -> Result<(), flashgrain::Error>,
    ) -> Result<(), Message> {
        let Some(walk) = &mut self.walk else {
            return Err(self.trouble.clone().unwrap_or_else(|| Message::invalid("no database")));
        };
        let last = walk.record().map(|(key, _)| key.clone()).filter(|_| passed != Passed::Nothing);
        go(walk)?;
        match (passed, last, walk.record()) {
            (Passed::Upwards, Some(last), Some((key, _))) => self.order.check_pair(&last, key),
            (Passed::Downwards, Some(last), Some((key, _))) => self.order.check_pair(key, &last),
            _ => Ok(()),
        }
    }

    /// To the first record whose key is not smaller than `key`, whose neighbours are checked.
    fn seek(&mut self, key: &[u8]) {
        let mut before = None;
        if self.order.is_checked() {
            self.go(Passed::Nothing, |walk| walk.seek_back(key));
            if self.trouble.is_some() {
                return;
            }
            before = self.record().map(|(found, _)| found.to_vec()).filter(|found| found[..] < *key);
        }
        self.go(Passed::Nothing, |walk| walk.seek(key));
        let found = self.record().map(|(found, _)| found).filter(|found| *found > key);
        let checked = before.map_or(Ok(()), |before| self.order.check_pair(&before, key));
        let checked = checked.and_then(|()| found.map_or(Ok(()), |found| self.order.check_pair(key, found)));
        if let Err(message) = checked {
            self.trouble = Some(message);
        }
    }

    fn record(&self) -> Option<(&[u8], &[u8])> {
        let walk = self.walk.as_ref().filter(|_| self.trouble.is_none())?;
        walk.record().map(|(key, value)| (&key[..], &value[..]))
    }
}

/// An iterator over the records of now, or of the snapshot in the options; on no record yet.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(
    database: Option<&Database>,
    options: Option<&ReadOptionsHandle>,
) -> Box<IteratorHandle> {
    let made = catching(|| -> Result<Cursor, Message> {
        let Database { db, tree, .. } = database.ok_or_else(|| Message::invalid("the database is null"))?;
        let snapshot = options.and_then(|options| options.snapshot.as_ref());
        Ok(snapshot.map_or_else(|| db.cursor(tree), |snapshot| snapshot.cursor(tree))?)
    });
    let order = database.map_or(Order::Bytes, |database| database.order.share());
    let (walk, trouble) = match made.map_err(Message::from).and_then(|made| made) {
        Ok(cursor) => (Some(Walk::new(cursor, None, None)), None),
        Err(message) => (None, Some(message)),
    };
    Box::new(IteratorHandle { walk, order, trouble })
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iterator: Option<Box<IteratorHandle>>) {
    quietly(|| drop(iterator));
}

/// Whether it is on a record.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iterator: Option<&IteratorHandle>) -> u8 {
    u8::from(iterator.is_some_and(|iterator| iterator.record().is_some()))
}

/// To the first record.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iterator: Option<&mut IteratorHandle>) {
    if let Some(iterator) = iterator {
        iterator.go(Passed::Nothing, Walk::seek_first);
    }
}

/// To the last record.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iterator: Option<&mut IteratorHandle>) {
    if let Some(iterator) = iterator {
        iterator.go(Passed::Nothing, Walk::seek_last);
    }
}

/// To the first record whose key is not smaller.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek(
    iterator: Option<&mut IteratorHandle>,
    key: *const c_char,
    key_length: usize,
) {
    let Some(iterator) = iterator else { return };
    // SAFETY: LevelDB's contract: the bytes are there until the function returns.
    match unsafe { argument::bytes(key.cast(), key_length, "key") } {
        Ok(key) => iterator.seek(key),
        Err(failure) => iterator.trouble = Some(failure.into()),
    }
}

/// To the next record.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iterator: Option<&mut IteratorHandle>) {
    if let Some(iterator) = iterator {
        iterator.go(Passed::Upwards, Walk::next);
    }
}

/// To the record before.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iterator: Option<&mut IteratorHandle>) {
    if let Some(iterator) = iterator {
        iterator.go(Passed::Downwards, Walk::prev);
    }
}

/// The key of the record that it is on, the iterator's until it is moved; null on none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_key(
    iterator: Option<&IteratorHandle>,
    length: Option<&mut usize>,
) -> *const c_char {
    bytes(iterator.and_then(IteratorHandle::record).map(|(key, _)| key), length)
}

/// The value of the record that it is on, the iterator's until it is moved; null on none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_value(
    iterator: Option<&IteratorHandle>,
    length: Option<&mut usize>,
) -> *const c_char {
    bytes(iterator.and_then(IteratorHandle::record).map(|(_, value)| value), length)
}

fn bytes(bytes: Option<&[u8]>, length: Option<&mut usize>) -> *const c_char {
    if let Some(place) = length {
        *place = bytes.map_or(0, <[u8]>::len);
    }
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// The error of its last move, if it had one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_get_error(iterator: Option<&IteratorHandle>, error: ErrorText<'_>) {
    report(error, || iterator.and_then(|iterator| iterator.trouble.clone()).map_or(Ok(()), Err));
}
