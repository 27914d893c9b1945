//! Pages that are newer in memory than on the device: which are dirty, how they get new images, and where
//! images were before.
//!
//! 1. The first change of a page since its last image makes it *dirty*: [`Images::mark_dirty`].
//! 2. [`Images::gather`] gives it a new image, and notes the change of its location for the checkpoint of the
//!    epoch that it became dirty in. It is *clean* again.
//!
//! Both are called with the page's latch. A page is dirty if and only if its frame has a dirty epoch, so that
//! its bytes are counted once.

use super::changes::{Changes, Moved};
use super::frames::{Frame, Frames};
use super::gate::{PLACES, own_place};
use super::page_store::PageStore;
use crate::Error;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::segment::{Lifetime, Location, NotAppended, UnitSequence};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicI64, Ordering};

/// See the module.
pub(crate) struct Images {
    store: Arc<dyn PageStore>,
    changes: Changes,
    counts: Box<[Counts]>,
}

/// Counters of the threads that share a slot.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    /// Bytes of pages that they made dirty, less those that they made clean.
    dirty_bytes: AtomicI64,
    /// Of these, those of volatile pages.
    volatile_dirty_bytes: AtomicI64,
}

impl Images {
    pub(super) fn new(store: Arc<dyn PageStore>) -> Self {
        let counts = (0..PLACES).map(|_| Counts::default()).collect();
        Self { store, changes: Changes::default(), counts }
    }

    #[inline]
    pub(super) fn store(&self) -> &dyn PageStore {
        &*self.store
    }

    #[inline]
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// # Errors
    /// [`Error::Poisoned`] if nothing is written any more.
    pub fn check(&self) -> Result<(), Error> {
        self.store.check()
    }

    /// After [`Denied::NoRoom`](super::Denied::NoRoom).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`].
    pub fn wait_for_room(&self) -> Result<(), Error> {
        self.store.wait_for_room(Lifetime::Changing)
    }

    /// After [`Section::gather`](super::Section::gather) was denied for want of room.
    ///
    /// # Errors
    /// As [`Images::wait_for_room`].
    pub fn wait_for_overflow_room(&self) -> Result<(), Error> {
        self.store.wait_for_room(Lifetime::Fixed)
    }

    /// As after a write that has failed.
    #[cold]
    pub(super) fn fail_write(&self) -> Error {
        let first = "a write that was to fail".to_owned();
        self.store.give_up(&first);
        Error::Poisoned { first }
    }

    /// Bytes of pages in memory that have changed since they were written.
    pub fn dirty_bytes(&self) -> u64 {
        self.sum(|part| &part.dirty_bytes)
    }

    /// Of these, those that a checkpoint writes.
    pub fn durable_dirty_bytes(&self) -> u64 {
        self.dirty_bytes().saturating_sub(self.sum(|part| &part.volatile_dirty_bytes))
    }

    fn sum(&self, of: fn(&Counts) -> &AtomicI64) -> u64 {
        self.counts.iter().map(|part| of(part).load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// The page, which is clean, changes in this epoch; its next image lives as long as `lifetime` says.
    pub(super) fn mark_dirty(
        &self,
        frames: &Frames,
        (id, frame): (PageId, Frame),
        epoch: u32,
        lifetime: Lifetime,
    ) {
        let meta = frames.meta(frame);
        debug_assert_eq!(meta.dirty_epoch.load(Ordering::Relaxed), 0, "a dirty page is counted again");
        meta.lifetime.store(lifetime.code(), Ordering::Relaxed);
        meta.dirty_epoch.store(epoch, Ordering::Release);
        self.count(id, class_bytes(frame.class()) as i64);
    }

    /// The page, which is dirty, has a new image, or does not exist any longer.
    pub(super) fn mark_clean(&self, frames: &Frames, id: PageId, frame: Frame) {
        let meta = frames.meta(frame);
        debug_assert_ne!(meta.dirty_epoch.load(Ordering::Relaxed), 0, "a clean page is not counted");
        meta.dirty_epoch.store(0, Ordering::Release);
        self.count(id, -(class_bytes(frame.class()) as i64));
    }

    fn count(&self, id: PageId, more_bytes: i64) {
        let counts = &self.counts[own_place()];
        counts.dirty_bytes.fetch_add(more_bytes, Ordering::Relaxed);
        if id.is_volatile() {
            counts.volatile_dirty_bytes.fetch_add(more_bytes, Ordering::Relaxed);
        }
    }

    /// Gathers the image of a page that is dirty since `dirty_epoch`; then it is clean. The caller has the
    /// latch.
    pub(super) fn gather(
        &self,
        frames: &Frames,
        id: PageId,
        frame: Frame,
        dirty_epoch: u32,
    ) -> Result<UnitSequence, NotAppended> {
        let (meta, page) = (frames.meta(frame), frames.page(frame));
        let lifetime = match Lifetime::from_code(meta.lifetime.load(Ordering::Relaxed)) {
            Lifetime::Changing if self.store.is_awaited(Epoch(dirty_epoch)) => Lifetime::Awaited,
            lifetime => lifetime,
        };
        let from = Location::from_bits(meta.location.load(Ordering::Relaxed));
        let appended = self.store.append(lifetime, id, frame.class(), page, from)?;
        if !id.is_volatile() {
            self.changes.note(dirty_epoch, Moved { id, from, to: Some(appended.location) });
        }
        meta.location.store(appended.location.bits(), Ordering::Relaxed);
        meta.unit.store(appended.unit.0, Ordering::Relaxed);
        self.mark_clean(frames, id, frame);
        Ok(appended.unit)
    }
}
