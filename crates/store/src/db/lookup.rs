//! Looking keys up: a reader's view of one tree, and the way of a `get` through it.
//!
//! 1. [`Source::lookup`](super::source::Source::lookup) refuses handles of other stores, and says as of when,
//!    and over which writes of its own, the reader looks.
//! 2. [`Lookup::get`] takes a reader's own write, or the record of the tree, with [`Lookup::read`].
//! 3. The transactions find the version in the tree's index, and wait until it is visible.
//! 4. A version may be a reference to an overflow value, which is read then.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Poll;

use super::content::Content;
use super::core::Core;
use super::overlay::Overlay;
use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::{May, Version, waiting};
use crate::txn::Snapshot;

/// A reader's view of a tree. It borrows all of it from the reader.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    pub(super) core: &'a Core,
    pub(super) tree: &'a Arc<NamedTree>,
    /// `None`: all commits so far when a key is looked up.
    pub(super) at: Option<&'a Snapshot>,
    /// The reader's own writes.
    pub(super) overlay: Option<&'a Overlay>,
}

impl<'a> Lookup<'a> {
    /// The reader's own write of a key: a value, or a removal.
    #[inline]
    fn written(&self, key: &[u8]) -> Option<&'a Option<Content>> {
        self.overlay?.get(key)
    }

    /// The value that the reader's own operands make of the tree's.
    fn merged(&self, key: &[u8], may: May, list: &[u8]) -> Result<Poll<Option<Value>>, Error> {
        with_spare(|bytes| match self.read(key, may, bytes)? {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(is_there) => {
                let existing = is_there.then_some(bytes.as_slice());
                Ok(Poll::Ready(self.tree.merge(key, existing, list)?))
            }
        })
    }

    /// The value of a key. If it may not wait, only if the value is in memory, or is an overflow value, which
    /// is waited for.
    #[inline]
    pub(super) fn get(&self, key: &[u8], may: May) -> Result<Poll<Option<Value>>, Error> {
        if let Some(written) = self.written(key) {
            if let Some(Content::Operands(list)) = written {
                return self.merged(key, may, list);
            }
            let value = written
                .as_ref()
                .map(|content| content.value(self.core.engine().overflow_values()))
                .transpose()?;
            return Ok(Poll::Ready(value));
        }
        with_spare(|bytes| {
            let found = self.read(key, may, bytes)?;
            Ok(found.map(|is_there| is_there.then(|| Value::from(bytes.as_slice()))))
        })
    }

    /// As [`Lookup::get`]; appends the value, and returns whether it exists.
    #[inline]
    pub(super) fn get_into(&self, key: &[u8], may: May, into: &mut Vec<u8>) -> Result<Poll<bool>, Error> {
        if let Some(written) = self.written(key) {
            if let Some(Content::Operands(list)) = written {
                let value = self.merged(key, may, list)?;
                return Ok(value.map(|value| value.map(|value| into.extend_from_slice(&value)).is_some()));
            }
            written
                .iter()
                .try_for_each(|content| content.append_to(self.core.engine().overflow_values(), into))?;
            return Ok(Poll::Ready(written.is_some()));
        }
        self.read(key, may, into)
    }

    /// Whether the key exists. An overflow value is not read.
    pub(super) fn contains(&self, key: &[u8], may: May) -> Result<Poll<bool>, Error> {
        if let Some(written) = self.written(key) {
            if let Some(Content::Operands(list)) = written {
                return Ok(self.merged(key, may, list)?.map(|value| value.is_some()));
            }
            return Ok(Poll::Ready(written.is_some()));
        }
        self.core.check_open()?;
        let found = with_spare(|record| Ok(self.find(key, may, record)?.map(|version| version.is_some())));
        self.check_still_open()?;
        found
    }

    /// Appends the value that the tree has under `key`, and returns whether it exists.
    #[inline]
    fn read(&self, key: &[u8], may: May, into: &mut Vec<u8>) -> Result<Poll<bool>, Error> {
        self.core.check_open()?;
        let found = self.read_stored(key, may, into);
        self.check_still_open()?;
        found
    }

    /// Closing gives up versions that only snapshots see.
    #[inline]
    fn check_still_open(&self) -> Result<(), Error> {
        if self.at.is_some() { self.core.check_open() } else { Ok(()) }
    }

    #[inline]
    fn read_stored(&self, key: &[u8], may: May, into: &mut Vec<u8>) -> Result<Poll<bool>, Error> {
        let start = into.len();
        loop {
            let version = match self.find(key, may, into)? {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(None) => return Ok(Poll::Ready(false)),
                Poll::Ready(Some(version)) => version,
            };
            if !version.is_overflow() {
                return Ok(Poll::Ready(true));
            }
            let reference = into.split_off(start);
            match self.core.engine().overflow_values().read(&reference, into) {
                // Without a snapshot an overflow value may be replaced, and its pages freed, just before it
                // is read.
                Err(_) if self.at.is_none() && self.is_replaced(key, version)? => into.truncate(start),
                read => return read.map(|()| Poll::Ready(true)),
            }
        }
    }

    /// Appends the value that the tree's index has under `key`, and returns its version.
    #[inline]
    fn find(&self, key: &[u8], may: May, into: &mut Vec<u8>) -> Result<Poll<Option<Version>>, Error> {
        let at = self.at.map(Snapshot::timestamp);
        self.core.engine().transactions().look_up(&self.tree.tree, key, at, may, into)
    }

    /// Whether the key has another newest version than this one.
    fn is_replaced(&self, key: &[u8], version: Version) -> Result<bool, Error> {
        let newest = waiting(|may| self.tree.tree.index.read(key, None, may, &mut Vec::new()))?;
        Ok(newest.version != Some(version))
    }
}
/// More look-ups than these of a thread find no memory that was used before.
const SPARES_MAX: usize = 64;

/// Memory that took a larger value is not kept.
const SPARE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Memory that look-ups of this thread use in turns; one that waits for a page keeps its own meanwhile.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with empty memory, which is used again afterwards.
fn with_spare<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut buffer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    buffer.clear();
    let result = work(&mut buffer);
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SPARES_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            spare.push(buffer);
        }
    });
    result
}
