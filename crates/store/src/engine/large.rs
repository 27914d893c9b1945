//! Large values: written before their commit is logged, and freed when nobody sees them any more.
//!
//! A crash between a commit that replaces a large value and the freeing of its pages leaves them allocated if a checkpoint falls in between, and so does one while a snapshot holds on to them.
//! [`Engine::reclaim`](super::Engine::reclaim) finds them.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;
use crate::btree::overflow::{Overflow, kept};
use crate::header::PageId;
use crate::index::Change;
use crate::lane::{Devices, Role, flush};
use crate::log::Timestamp;
use crate::poison::Poison;
use crate::pool::{Epoch, Pool};
use crate::segment::Segments;
use crate::task::Crew;
use crate::txn::{Transactions, Tree, Version};

/// See the module.
pub(crate) struct Large {
    overflow: Overflow,
    segments: Arc<Segments>,
    devices: Devices,
    poison: Poison,
    /// Values that are being freed in the background.
    going: Arc<AtomicUsize>,
}

/// A value is being freed. However that ends, who closes the store must not wait for it any longer.
struct Going(Arc<AtomicUsize>);

impl Going {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Large {
    pub fn new(devices: &Devices, segments: &Arc<Segments>, pool: &Arc<Pool>, poison: &Poison) -> Self {
        Self {
            overflow: Overflow::new(pool, segments.largest_class()),
            segments: Arc::clone(segments),
            devices: devices.clone(),
            poison: poison.clone(),
            going: Arc::default(),
        }
    }

    /// Writes values durably: what the log is to have of each; the record keeps the [`kept`] part of it. What is not committed after all must be [freed](Large::free).
    ///
    /// # Errors
    /// [`Error::ValueLength`], [`Error::Full`], [`Error::Poisoned`], and then nothing is left.
    pub fn write(&self, values: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
        let mut written = Vec::new();
        let result = self.write_all(values, &mut written);
        if result.is_err() {
            self.free_all(&written);
        }
        result.map(|()| written)
    }

    fn write_all(&self, values: &[&[u8]], written: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        for value in values {
            written.push(self.overflow.write(value)?);
        }
        // Whenever the log becomes durable, what it refers to is.
        self.segments.write_all()?;
        if planted!(LargeNotFlushed) {
            return self.poison.check();
        }
        let flushed = flush(&self.devices, Role::Data);
        flushed.map_err(|failed| self.poison.by(failed.error("flush a large value")))?;
        self.poison.check()
    }

    /// Appends a value to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn read(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        self.overflow.read(reference, into)
    }

    /// Frees what was written and is not committed.
    pub fn free_all(&self, written: &[Vec<u8>]) {
        for logged in written {
            // What cannot be freed stays allocated, which harms nobody.
            let _tried = self.free(kept(logged));
        }
    }

    /// Frees a value's pages.
    ///
    /// # Errors
    /// The pool's; some pages are left then.
    pub fn free(&self, reference: &[u8]) -> Result<(), Error> {
        self.overflow.free(reference)
    }

    /// Whether values are being freed in the background.
    pub fn is_freeing(&self) -> bool {
        self.going.load(Ordering::SeqCst) > 0
    }

    /// The pages of a value.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn pages_of(&self, reference: &[u8]) -> Result<Vec<PageId>, Error> {
        self.overflow.pages_of(reference)
    }

    /// Frees a page to which nobody refers, if it is one of a large value.
    ///
    /// # Errors
    /// The pool's.
    pub fn free_page(&self, id: PageId) -> Result<bool, Error> {
        self.overflow.free_page(id)
    }

    /// Has values freed in the background when nobody sees them.
    pub fn attend(self: &Arc<Self>, transactions: &Transactions, crew: &Crew) {
        let (own, crew) = (Arc::clone(self), crew.clone());
        transactions.when_large_is_gone(Box::new(move |reference| {
            let (own, reference) = (Arc::clone(&own), reference.to_vec());
            let going = Going::new(&own.going);
            crew.spawn(move || {
                let _going = going;
                // What cannot be freed stays allocated, which harms nobody.
                let _tried = own.free(&reference);
            });
        }));
    }

    /// Gives a key a large value again, as the log says, over a checkpoint of which `cut` was the epoch; frees the one that it replaces, or this one if a later one is there.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn put_again(
        &self,
        tree: &Tree,
        key: &[u8],
        timestamp: Timestamp,
        logged: &[u8],
        cut: Epoch,
    ) -> Result<(), Error> {
        let mut live = |page, location| match planted!(ReplayedLargeNotCounted) {
            true => Ok(()),
            false => self.segments.adopt(page, location),
        };
        if !self.overflow.adopt(logged, cut, &mut live)? {
            return Ok(());
        }
        let value = [&Version::overflow(timestamp).bits().to_le_bytes(), kept(logged)].concat();
        let (mut is_outdated, mut replaced) = (false, Vec::new());
        tree.index.update(key, &mut |old| {
            replaced.clear();
            let old = old.and_then(Version::split);
            is_outdated = old.is_some_and(|(version, _)| version.timestamp() > timestamp);
            if old.is_some_and(|(version, _)| version.timestamp() >= timestamp) {
                return Change::Keep;
            }
            if let Some((_, reference)) = old.filter(|(version, _)| version.is_overflow()) {
                replaced.extend_from_slice(reference);
            }
            Change::Put(&value)
        })?;
        if is_outdated {
            return self.free(kept(logged));
        }
        if replaced.is_empty() { Ok(()) } else { self.free(&replaced) }
    }
}
