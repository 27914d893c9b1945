//! Pages that are not in memory: one thread or task loads a page, and the others wait.

use super::evict::{Clock, Evictor};
use super::frames::Frame;
use super::images::Images;
use super::pages::Pages;
use super::table::{Entry, PageLocation, Word};
use super::waiters::{Waiters, changed};
use super::{Access, HOT, OptimisticGuard, SCANNED};
use crate::Error;
use crate::header::PageId;
use crate::segment::Location;
use crate::sync::atomic::Ordering;
use crate::task::{park, yield_now};

/// Queues for pages that are being loaded.
const QUEUES: usize = 64;

/// The threads and tasks that wait for a page that another one loads.
pub(super) struct Loads(Box<[Waiters]>);

impl Loads {
    pub fn new() -> Self {
        Self((0..QUEUES).map(|_| Waiters::default()).collect())
    }

    fn queue(&self, id: PageId) -> &Waiters {
        &self.0[id.0 as usize % self.0.len()]
    }
}

/// Brings pages into memory.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub(super) pages: &'a Pages,
    pub(super) images: &'a Images,
    loads: &'a Loads,
    clock: &'a Clock,
    evictor: Evictor<'a>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        (pages, images): (&'a Pages, &'a Images),
        (loads, clock): (&'a Loads, &'a Clock),
        evictor: Evictor<'a>,
    ) -> Self {
        Self { pages, images, loads, clock, evictor }
    }

    /// [`Pool::read`](super::Pool::read) of a page that is not in memory, or that is being changed.
    pub(super) fn read(self, id: PageId, access: Access) -> Result<OptimisticGuard<'a>, Error> {
        let entry = self.pages.table().entry(id).ok_or_else(|| no_such_page(id))?;
        loop {
            if let Some(guard) = self.pages.look(id, access) {
                return Ok(guard);
            }
            let word = entry.load();
            match word.location() {
                PageLocation::Nowhere => return Err(no_such_page(id)),
                PageLocation::Memory(_) => yield_now(),
                // The reference to it is damaged: no reference to a page leads to a segment.
                PageLocation::Device(location) if location.is_segment() => return Err(no_such_page(id)),
                PageLocation::Device(location) => {
                    self.load(id, entry, location, access)?;
                }
                PageLocation::Loading(_) => self.wait_for_load(id, entry, word),
            }
        }
    }

    fn wait_for_load(self, id: PageId, entry: &Entry, word: Word) {
        let _place = self.loads.queue(id).enter(id.0);
        if entry.load() == word {
            park();
        }
    }

    /// Loads the page, unless another thread does by now.
    fn load(self, id: PageId, entry: &Entry, location: Location, access: Access) -> Result<(), Error> {
        let frame = self.evictor.take_frame(location.class())?;
        self.load_into(frame, id, entry, location, access)
    }

    /// The same, into a frame that the caller has taken.
    pub(super) fn load_into(
        self,
        frame: Frame,
        id: PageId,
        entry: &Entry,
        location: Location,
        access: Access,
    ) -> Result<(), Error> {
        let Some(loading) = self.begin(id, entry, location, frame) else { return Ok(()) };
        let mut from = location;
        loop {
            // SAFETY: the frame has no page and was taken by the caller; it has the bytes of its class, and
            // all frames begin at multiples of 4096.
            let result = unsafe { self.images.store().read(from, id, self.pages.frames().memory(frame)) };
            let now = match entry.load().location() {
                PageLocation::Loading(now) => now,
                _ => from,
            };
            match result {
                Ok(()) => {
                    loading.finish(from, access);
                    return Ok(());
                }
                // The cleaner has moved the image meanwhile, and its old place may have been overwritten.
                Err(_) if now != from => from = now,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reserves the loading of the page from `location` into a frame without a page, unless another thread
    /// loads it by now.
    pub(super) fn begin(
        self,
        id: PageId,
        entry: &'a Entry,
        location: Location,
        frame: Frame,
    ) -> Option<Loading<'a>> {
        if !entry.exchange(Word::device(location), Word::loading(location)) {
            self.pages.frames().give_back(&[frame]);
            return None;
        }
        self.pages.count_miss();
        Some(Loading { loader: self, id, entry, frame: Some(frame) })
    }

    fn finish_load(self, id: PageId, entry: &Entry, frame: Frame, from: Location, access: Access) {
        let meta = self.pages.frames().meta(frame);
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
        self.pages.frames().publish(id, frame, if scanned { SCANNED } else { HOT });
        if scanned {
            self.clock.note_scanned(frame, id);
        }
        changed();
        self.loads.queue(id).wake_all(id.0);
        // It may leave memory again.
        self.pages.frames().wake_one();
    }
}

/// A page that is being loaded. It is on the device again, unless it was loaded: also after a panic, as
/// others wait for it.
pub(super) struct Loading<'a> {
    loader: Loader<'a>,
    id: PageId,
    entry: &'a Entry,
    /// Without a page until it is loaded.
    frame: Option<Frame>,
}

impl Loading<'_> {
    /// The frame has the page, as it was read at `from`.
    pub fn finish(mut self, from: Location, access: Access) {
        if let Some(frame) = self.frame.take() {
            self.loader.finish_load(self.id, self.entry, frame, from, access);
        }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let Some(frame) = self.frame else { return };
        while let PageLocation::Loading(now) = self.entry.load().location()
            && !self.entry.exchange(Word::loading(now), Word::device(now))
        {}
        changed();
        self.loader.loads.queue(self.id).wake_all(self.id.0);
        self.loader.pages.frames().give_back(&[frame]);
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
