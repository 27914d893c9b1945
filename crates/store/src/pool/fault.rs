//! Pages that are not in memory: who loads them and who waits.

use crate::sync::atomic::Ordering;

use super::evict::FRAME;
use super::frames::Frame;
use super::table::{Entry, PageLocation, Word};
use super::waiters::{Waiters, changed};
use super::{Access, HOT, OptimisticGuard, Pool, SCANNED, count, own_place};
use crate::Error;
use crate::header::PageId;
use crate::segment::Location;
use crate::task::{park, yield_now};

impl Pool {
    /// [`Pool::read`] of a page that is not in memory, or that somebody is changing.
    #[cold]
    #[inline(never)]
    pub(super) fn read_slowly(&self, id: PageId, access: Access) -> Result<OptimisticGuard<'_>, Error> {
        let entry = self.table.entry(id).ok_or_else(|| no_such_page(id))?;
        loop {
            if let Some(guard) = self.look(id, access) {
                return Ok(guard);
            }
            let word = entry.load();
            match word.location() {
                PageLocation::Nowhere => return Err(no_such_page(id)),
                PageLocation::Memory(_) => yield_now(),
                PageLocation::Device(location) => {
                    self.load(id, entry, location, access)?;
                }
                PageLocation::Loading(_) => self.wait_for_load(id, entry, word),
            }
        }
    }

    fn queue(&self, id: PageId) -> &Waiters {
        &self.loading[id.0 as usize % self.loading.len()]
    }

    fn wait_for_load(&self, id: PageId, entry: &Entry, word: Word) {
        let _place = self.queue(id).enter(id.0);
        if entry.load() == word {
            park();
        }
    }

    /// Loads the page, unless somebody else does by now.
    fn load(&self, id: PageId, entry: &Entry, location: Location, access: Access) -> Result<(), Error> {
        let frame = self.take_frame(location.class())?;
        self.load_into(frame, id, entry, location, access)
    }

    /// The same, into a frame that the caller has taken.
    pub(super) fn load_into(
        &self,
        frame: Frame,
        id: PageId,
        entry: &Entry,
        location: Location,
        access: Access,
    ) -> Result<(), Error> {
        let Some(claim) = self.claim(id, entry, location, frame) else { return Ok(()) };
        let mut from = location;
        loop {
            // SAFETY: the frame is nobody's page and was taken by the caller; it has the bytes of its class,
            // and all frames begin at multiples of 4096.
            let result = unsafe { self.page_store.read(from, id, self.frames.memory(frame)) };
            let now = match entry.load().location() {
                PageLocation::Loading(now) => now,
                _ => from,
            };
            match result {
                Ok(()) => {
                    claim.finish(from, access);
                    return Ok(());
                }
                // The cleaner has moved the image meanwhile, and what was there may have been overwritten.
                Err(_) if now != from => from = now,
                Err(error) => return Err(error),
            }
        }
    }

    /// For who loads the page from `location` into a frame that is nobody's, unless somebody else does by
    /// now.
    pub(super) fn claim<'a>(
        &'a self,
        id: PageId,
        entry: &'a Entry,
        location: Location,
        frame: Frame,
    ) -> Option<Claim<'a>> {
        if !entry.exchange(Word::device(location), Word::loading(location)) {
            self.give_back(&[frame]);
            return None;
        }
        count(&self.counts[own_place()].misses);
        Some(Claim { pool: self, id, entry, frame: Some(frame) })
    }

    fn finish_load(&self, id: PageId, entry: &Entry, frame: Frame, from: Location, access: Access) {
        let meta = self.frames.meta(frame);
        debug_assert_eq!(meta.dirty_epoch.load(Ordering::Relaxed), 0);
        meta.unit.store(0, Ordering::Relaxed);
        let mut at = from;
        loop {
            meta.location.store(at.bits(), Ordering::Relaxed);
            if entry.exchange(Word::loading(at), Word::memory(frame)) {
                break;
            }
            if let PageLocation::Loading(now) = entry.load().location() {
                at = now;
            }
        }
        // From now on others may take the latch.
        let scanned = access == Access::Scan;
        self.publish(id, frame, if scanned { SCANNED } else { HOT });
        if scanned {
            self.clock.note_scanned(frame, id);
        }
        changed();
        self.queue(id).wake_all(id.0);
        // It may leave memory again.
        self.room.wake_one(FRAME);
    }
}

/// A page that is being loaded. It is on the device again, unless it was loaded: also after a panic, as
/// others wait for it.
pub(super) struct Claim<'a> {
    pool: &'a Pool,
    id: PageId,
    entry: &'a Entry,
    /// Nobody's page until it is loaded.
    frame: Option<Frame>,
}

impl Claim<'_> {
    /// The frame has the page, as it was read at `from`.
    pub fn finish(mut self, from: Location, access: Access) {
        if let Some(frame) = self.frame.take() {
            self.pool.finish_load(self.id, self.entry, frame, from, access);
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let Some(frame) = self.frame else { return };
        while let PageLocation::Loading(now) = self.entry.load().location()
            && !self.entry.exchange(Word::loading(now), Word::device(now))
        {}
        changed();
        self.pool.queue(self.id).wake_all(self.id.0);
        self.pool.give_back(&[frame]);
    }
}

#[cold]
fn no_such_page(id: PageId) -> Error {
    Error::Corrupt {
        what: format!("page {}", id.0),
        offset_bytes: 0,
        expected: "a page".into(),
        got: "none".into(),
    }
}
