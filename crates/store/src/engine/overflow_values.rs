//! Overflow values are written before their commit is logged, and freed when no reader sees them any more.
//!
//! 1. *Parked*: [`OverflowValues::begin`], [`OverflowValues::append`] and [`OverflowValues::seal`] write a
//!    value. Checkpoints leave its pages out, and dropping it frees them.
//! 2. *Completed*: [`OverflowValues::complete`] lets checkpoints include it and makes it durable. The commit
//!    is logged.
//! 3. *Replaced or removed*: its pages are freed as soon as no snapshot sees it.
//!
//! A crash in step 1 leaves nothing allocated. A crash between a commit that replaces an overflow value and
//! the freeing of its pages leaves them allocated if a checkpoint falls in between, and so does a crash while
//! a snapshot still sees the value. [`Engine::reclaim`](super::Engine::reclaim) finds them.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::Origin;

use super::freeing::Freeing;
use crate::Error;
use crate::btree::overflow::{Draft, Overflow, Stored, kept};
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::index::{Tree, Write};
use crate::io_context::{Devices, Role, flush};
use crate::log::LogRecord;
use crate::poison::Poison;
use crate::pool::Pool;
use crate::segment::Segments;
use crate::task::Executor;
use crate::txn::Transactions;

/// See the module.
pub(crate) struct OverflowValues {
    overflow: Overflow,
    segments: Arc<Segments>,
    devices: Devices,
    poison: Poison,
    freeing: Freeing,
    /// Whether the store is being closed, so that uncommitted values stay as they are, and no reader has a
    /// right to committed ones.
    closing: AtomicBool,
    /// Committed values that iterators and readers of their transaction still read, as they read its own
    /// writes: no snapshot of theirs sees these.
    lent: Mutex<Vec<Lent>>,
}

struct Lent {
    reference: Vec<u8>,
    /// Whether the value is to be freed when it is given back.
    is_gone: bool,
}

/// An overflow value that is written and not committed, or is being written.
pub(crate) struct Parked {
    owner: Arc<OverflowValues>,
    origin: Origin,
    draft: Draft,
    /// The reference for the record, once the value is sealed.
    reference: Vec<u8>,
}

/// An overflow value for a commit.
#[derive(Clone, Copy)]
pub(crate) enum OverflowValue<'a> {
    Bytes(&'a [u8]),
    Parked(&'a Arc<Parked>),
}

impl Parked {
    /// Bytes of the value written so far.
    pub fn length(&self) -> u64 {
        self.draft.length()
    }

    /// The reference for the record; empty before the value is sealed.
    pub fn reference(&self) -> &[u8] {
        &self.reference
    }
}

impl Drop for Parked {
    /// Frees the pages of a value that was not completed, or whose removal was committed meanwhile.
    fn drop(&mut self) {
        // Another thread of the parent may have held a lock when this process was forked.
        if !self.origin.is_here() {
            return;
        }
        let (owner, set) = (Arc::clone(&self.owner), self.draft.set());
        // First: closing either waits for this, or frees the value itself.
        let pending = owner.freeing.begin();
        let is_gone = owner.take_back(&self.reference);
        // The last checkpoint leaves out withheld pages.
        let is_left = !owner.overflow.is_withheld(set) || owner.closing.load(Ordering::SeqCst);
        if !is_gone && is_left {
            return;
        }
        let (freeing, reference) = (owner.freeing.clone(), std::mem::take(&mut self.reference));
        let owner = Arc::downgrade(&owner);
        freeing.free(pending, move || {
            let Some(owner) = owner.upgrade() else { return };
            // After an error the pages stay allocated until the store is opened again, or reclaimed.
            let _tried = if is_gone { owner.free(&reference) } else { owner.overflow.discard(set) };
        });
    }
}

impl OverflowValues {
    pub fn new(
        devices: &Devices,
        segments: &Arc<Segments>,
        pool: &Arc<Pool>,
        poison: &Poison,
        executor: &Executor,
    ) -> Self {
        Self {
            overflow: Overflow::new(pool, segments.gatherer.class_max()),
            segments: Arc::clone(segments),
            devices: devices.clone(),
            poison: poison.clone(),
            freeing: Freeing::new(executor),
            closing: AtomicBool::new(false),
            lent: Mutex::default(),
        }
    }

    /// A value without any bytes yet.
    pub fn begin(self: &Arc<Self>) -> Parked {
        let draft = self.overflow.begin();
        Parked { owner: Arc::clone(self), origin: Origin::here(), draft, reference: Vec::new() }
    }

    /// Bytes of a value that are written at a time: the length of all its parts but the last.
    pub fn part_bytes(&self) -> usize {
        self.overflow.part_bytes()
    }

    /// Writes the next [part](OverflowValues::part_bytes) of a value.
    ///
    /// # Errors
    /// [`Error::ValueLength`], [`Error::Full`], [`Error::Poisoned`]; the value is as it was.
    pub fn append(&self, parked: &mut Parked, part: &[u8]) -> Result<(), Error> {
        self.overflow.append(&mut parked.draft, part)
    }

    /// All parts of a value are written.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`]; the value is as it was.
    pub fn seal(&self, parked: &mut Parked) -> Result<(), Error> {
        parked.reference = self.overflow.seal(&mut parked.draft)?;
        Ok(())
    }

    /// Writes those of the values that are given as bytes, makes all of them durable, and returns each one's
    /// reference for the log; the record keeps the [`kept`] part of it. If they are not committed after all,
    /// they must be [freed](OverflowValues::free).
    ///
    /// # Errors
    /// [`Error::ValueLength`], [`Error::Full`], [`Error::Poisoned`]; the values that were given as bytes are
    /// freed then.
    pub fn write(self: &Arc<Self>, values: &[OverflowValue<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        let park = |value: &OverflowValue<'_>| match value {
            OverflowValue::Bytes(bytes) => self.park(bytes).map(Some),
            OverflowValue::Parked(_) => Ok(None),
        };
        let parked = values.iter().map(park).collect::<Result<Vec<_>, _>>()?;
        let mut completed = Vec::new();
        let result = self.complete(values, &parked, &mut completed);
        if result.is_err() {
            self.free_all(&completed);
        }
        result.map(|()| completed)
    }

    fn park(self: &Arc<Self>, value: &[u8]) -> Result<Parked, Error> {
        let mut parked = self.begin();
        value.chunks(self.part_bytes()).try_for_each(|part| self.append(&mut parked, part))?;
        self.seal(&mut parked)?;
        Ok(parked)
    }

    fn complete(
        &self,
        values: &[OverflowValue<'_>],
        parked: &[Option<Parked>],
        completed: &mut Vec<Vec<u8>>,
    ) -> Result<(), Error> {
        for (value, parked) in values.iter().zip(parked) {
            let parked: Option<&Parked> = match value {
                OverflowValue::Bytes(_) => parked.as_ref(),
                OverflowValue::Parked(parked) => {
                    // A reader holds the value, in addition to the transaction, which cannot be read any
                    // more.
                    if Arc::strong_count(parked) > 1 {
                        self.lent().push(Lent { reference: parked.reference.clone(), is_gone: false });
                    }
                    Some(parked.as_ref())
                }
            };
            if let Some(Parked { draft, reference, .. }) = parked {
                completed.push(self.overflow.complete(draft, reference)?);
            }
        }
        // The pages must be durable before the log that refers to them is.
        self.segments.gatherer.write_all()?;
        if planted!(OverflowNotFlushed) {
            return self.poison.check();
        }
        let flushed = flush(&self.devices, Role::Data);
        flushed.map_err(|failed| self.poison.by(failed.error("flush an overflow value")))?;
        self.poison.check()
    }

    /// Length of the log's reference to a value of `value_bytes`.
    pub fn logged_bytes(&self, value_bytes: u64) -> u64 {
        self.overflow.logged_bytes(value_bytes)
    }

    /// Opens a value to be read piece by piece.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn open(&self, reference: &[u8]) -> Result<Stored, Error> {
        self.overflow.open(reference)
    }

    /// The bytes of a value from `position` on that one page holds; none at its end.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn read_at<'s>(&self, stored: &'s mut Stored, position: u64) -> Result<&'s [u8], Error> {
        self.overflow.read_at(stored, position)
    }

    /// Appends a value to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn read(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        self.overflow.read(reference, into)
    }

    /// Frees values that were written and are not committed.
    pub fn free_all(&self, written: &[Vec<u8>]) {
        for logged in written {
            // An error here only leaks pages until they are reclaimed.
            let _tried = self.free_unless_lent(kept(logged));
        }
    }

    fn lent(&self) -> MutexGuard<'_, Vec<Lent>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last reader of the value within its own transaction has ended. It returns whether the value is to
    /// be freed.
    fn take_back(&self, reference: &[u8]) -> bool {
        let mut lent = self.lent();
        let place = lent.iter().position(|lent| lent.reference == reference);
        place.is_some_and(|place| lent.swap_remove(place).is_gone)
    }

    fn free_unless_lent(&self, reference: &[u8]) -> Result<(), Error> {
        if let Some(lent) = self.lent().iter_mut().find(|lent| lent.reference == reference) {
            lent.is_gone = true;
            return Ok(());
        }
        self.free(reference)
    }

    /// Frees a value's pages.
    ///
    /// # Errors
    /// The pool's; some pages are left then.
    pub fn free(&self, reference: &[u8]) -> Result<(), Error> {
        self.overflow.free(reference)
    }

    /// From now on values that are not committed are left as they are, and values that are given up are freed
    /// even if they are being read.
    pub fn stop(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let lent = std::mem::take(&mut *self.lent());
        for lent in lent.iter().filter(|lent| lent.is_gone) {
            // A value that cannot be freed stays allocated, which does no harm.
            let _tried = self.free(&lent.reference);
        }
    }

    /// Whether values are being freed in the background.
    pub fn is_freeing(&self) -> bool {
        self.freeing.is_any_pending()
    }

    /// The pages of a value.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn pages_of(&self, reference: &[u8]) -> Result<Vec<PageId>, Error> {
        self.overflow.pages_of(reference)
    }

    /// Frees a page without references to it, if it is one of an overflow value or of a manifest.
    ///
    /// # Errors
    /// The pool's.
    pub fn free_page(&self, id: PageId) -> Result<bool, Error> {
        self.overflow.free_page(id)
    }

    /// Has values freed in the background when no reader sees them any more.
    pub fn attend(self: &Arc<Self>, transactions: &Transactions) {
        let own = Arc::downgrade(self);
        transactions.read_overflow_by(Box::new(move |reference, into| {
            own.upgrade().ok_or(Error::Closed)?.read(reference, into)
        }));
        let own = Arc::clone(self);
        transactions.when_overflow_is_gone(Box::new(move |reference| {
            let (freeing, reference) = (own.freeing.clone(), reference.to_vec());
            let own = Arc::downgrade(&own);
            freeing.free(freeing.begin(), move || {
                // A value that cannot be freed stays allocated, which does no harm.
                let _tried = own.upgrade().map(|own| own.free_unless_lent(&reference));
            });
        }));
    }

    /// Replays the commit of an overflow value over a checkpoint whose cut was at epoch `cut`; frees the
    /// value that it replaces, or this one if the key has a later version.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn put_again(
        &self,
        tree: &Tree,
        key: &[u8],
        record: LogRecord,
        logged: &[u8],
        cut: Epoch,
    ) -> Result<(), Error> {
        let mut live = |page, location| match planted!(ReplayedOverflowNotCounted) {
            true => Ok(()),
            false => self.segments.opening.adopt(page, location),
        };
        if !self.overflow.adopt(logged, cut, &mut live)? {
            return Ok(());
        }
        let write = Write::PutOverflow { reference: kept(logged), logged };
        let done = tree.index.reapply(key, write, record)?;
        if done.is_outdated {
            return self.free(kept(logged));
        }
        done.replaced.map_or(Ok(()), |reference| self.free(&reference))
    }
}
