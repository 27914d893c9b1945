//! The pool's interface to checkpoints, recovery and the cleaner.

use crate::sync::atomic::Ordering;

use super::Pool;
use super::changes::{BLOCK_BITS, Moved};
use super::frames::Frame;
use super::table::{Entry, PageLocation, Word};
use crate::Error;
use crate::class::CLASSES;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::segment::{Location, NotAppended, Stream};
use crate::task::yield_now;

/// Frames that are looked at before others may run.
const FRAMES_PER_TURN: u32 = 1024;

/// Page numbers that are looked at before others may run: some 100 µs.
const NUMBERS_PER_TURN: usize = 1 << 14;

/// Pages that are gathered before others may run.
const PAGES_PER_TURN: u32 = 16;

impl Pool {
    /// Ends the epoch, between two sections: runs `note` while no section is under way, and gives the epoch
    /// that has ended. Sections wait meanwhile, so `note` must be quick. From then on a page that changed in
    /// the old epoch is gathered before it is changed again.
    pub fn cut(&self, note: impl FnOnce()) -> Epoch {
        Epoch(self.gate.cut(note))
    }

    /// Gathers the images of all pages that were changed until the end of `epoch` and not since. With those
    /// that were gathered meanwhile, for other reasons, they are the state at the cut. Lets others run in
    /// between.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`]; can be called again.
    pub fn flush_epoch(&self, epoch: Epoch) -> Result<(), Error> {
        let mut gathered = 0;
        for class in 0..CLASSES {
            for index in 0..self.frames.used(class) {
                let frame = Frame::new(class, index);
                if self.is_older(frame, epoch) {
                    self.flush(frame, epoch)?;
                    gathered += 1;
                }
                if gathered == PAGES_PER_TURN || index % FRAMES_PER_TURN == FRAMES_PER_TURN - 1 {
                    gathered = 0;
                    self.page_store.pace()?;
                    yield_now();
                }
            }
        }
        Ok(())
    }

    /// Whether the frame has a durable page that changed until the end of `epoch` and was not gathered.
    fn is_older(&self, frame: Frame, epoch: Epoch) -> bool {
        let meta = self.frames.meta(frame);
        // It becomes clean only after its change was noted; so what is not seen here is among the changes.
        let dirty_epoch = meta.dirty_epoch.load(Ordering::Acquire);
        dirty_epoch != 0 && dirty_epoch <= epoch.0 && !PageId(meta.page.load(Ordering::Relaxed)).is_volatile()
    }

    fn flush(&self, frame: Frame, epoch: Epoch) -> Result<(), Error> {
        let meta = self.frames.meta(frame);
        while self.is_older(frame, epoch) {
            let Some(version) = meta.latch.try_read() else {
                yield_now();
                continue;
            };
            if !self.is_older(frame, epoch) || !meta.latch.try_upgrade(version) {
                continue;
            }
            // Read with the latch held: gathering a page does not change its version, and another task may
            // have done so.
            let id = PageId(meta.page.load(Ordering::Relaxed));
            let dirty_epoch = meta.dirty_epoch.load(Ordering::Relaxed);
            let gathered = match self.is_older(frame, epoch) {
                true => self.append(id, frame, dirty_epoch).map(drop),
                false => Ok(()),
            };
            meta.latch.unlock_unchanged();
            match gathered {
                Ok(()) => {}
                Err(NotAppended::NoBuffer | NotAppended::NoSegment) => {
                    self.page_store.wait_for_room(Stream::Fresh)?
                }
                Err(NotAppended::Failed(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// The changes until the end of `epoch` that were not taken yet; those of the same page in their order.
    /// Complete after [`Pool::flush_epoch`].
    pub fn take_changes(&self, epoch: Epoch) -> Vec<Moved> {
        let mut all = Vec::new();
        for mut part in self.changes.take(epoch.0) {
            all.append(&mut part);
            yield_now();
        }
        all
    }

    /// Calls `see` with every durable page that there was at the end of `epoch` and where it was then; after
    /// [`Pool::flush_epoch`], and with no later cut meanwhile. Lets others run in between, who may change
    /// what they like.
    ///
    /// # Errors
    /// Those of `see`.
    pub fn snapshot(
        &self,
        epoch: Epoch,
        see: &mut dyn FnMut(PageId, Location) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut block = vec![None; 1 << BLOCK_BITS];
        for first in (0..self.table.next_number()).step_by(1 << BLOCK_BITS) {
            for (id, location) in (first..).zip(&mut block) {
                *location = self.location(PageId(id), true);
            }
            // Whatever of the present epoch was seen above has been noted by now. The oldest change, which
            // comes last, says where the page was.
            self.changes.since(epoch.0, PageId(first), |moved| {
                if let Some(location) =
                    moved.id.0.checked_sub(first).and_then(|index| block.get_mut(index as usize))
                    && !planted!(MapHasLaterPlaces)
                {
                    *location = moved.from;
                }
            });
            for (id, location) in (first..).zip(&block) {
                if let Some(location) = location {
                    see(PageId(id), *location)?;
                }
            }
            yield_now();
        }
        Ok(())
    }

    /// Location of a page's newest image. The image of a page that has changed since is garbage, except for
    /// checkpoints before the change; it counts with `garbage_too`.
    pub fn location(&self, id: PageId, garbage_too: bool) -> Option<Location> {
        let entry = self.table.entry(id)?;
        loop {
            match entry.load().location() {
                PageLocation::Nowhere => return None,
                PageLocation::Loading(_) if garbage_too && planted!(LoadingPageLeftOutOfMap) => return None,
                PageLocation::Device(location) | PageLocation::Loading(location) => return Some(location),
                PageLocation::Memory(frame) => {
                    let meta = self.frames.meta(frame);
                    if let Some(version) = meta.latch.try_read()
                        && meta.page.load(Ordering::Acquire) == id.0
                    {
                        let location = Location::from_bits(meta.location.load(Ordering::Relaxed));
                        let garbage = meta.dirty_epoch.load(Ordering::Relaxed) != 0;
                        if meta.latch.is_valid(version) {
                            return location.filter(|_| garbage_too || !garbage);
                        }
                    }
                    yield_now();
                }
            }
        }
    }

    /// The checkpoint of `epoch` is durable: page numbers that became free until then are given out again.
    pub fn checkpoint_done(&self, epoch: Epoch) {
        self.table.reuse_until(epoch.0);
    }

    /// The first page number that was never given out.
    pub fn next_page(&self) -> PageId {
        PageId(self.table.next_number())
    }

    /// Whether there is such a page.
    pub fn exists(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| entry.load().location() != PageLocation::Nowhere)
    }

    /// The numbers of all durable pages.
    pub fn all_pages(&self) -> Vec<PageId> {
        self.table.all_numbers().filter(|id| !id.is_volatile() && self.exists(*id)).collect()
    }

    /// Durable pages that there are.
    pub fn pages(&self) -> u64 {
        self.table.pages()
    }

    /// While a store is opened: this page is there. `None` takes it back. Makes no change for a checkpoint to
    /// see.
    pub fn restore(&self, id: PageId, location: Option<Location>) {
        self.table.restore(id, location.map(Word::device));
    }

    /// While a store is opened: pages are going to be restored, or named by the log, that have numbers below
    /// `next`.
    ///
    /// # Errors
    /// [`Error::Options`] if the system gives no addresses for them.
    pub fn expect(&self, next: PageId) -> Result<(), Error> {
        let why =
            |error| Error::Options(format!("the system gives no addresses for {} pages: {error}", next.0));
        self.table.map_until(next).map_err(why)
    }

    /// While a store is opened: all pages of the checkpoint of `epoch` are restored, and the next epoch
    /// begins. New pages get numbers from `next` on; the gaps stay until [`Pool::reuse_gaps`], as a record
    /// that is replayed may name one.
    pub fn restored(&self, epoch: Epoch, next: PageId) {
        self.table.begin_at(next.0);
        self.gate.begin_at(epoch.0 + 1);
    }

    /// Once, after everything was replayed: page numbers without a page may be given out.
    pub fn reuse_gaps(&self) {
        self.table.find_reusable();
    }

    /// For the cleaner: whether the page's newest state is the image at `location`.
    pub fn is_at(&self, id: PageId, location: Location) -> bool {
        let Some(entry) = self.table.entry(id) else { return false };
        match entry.load().location() {
            PageLocation::Nowhere => false,
            PageLocation::Device(at) | PageLocation::Loading(at) => at == location,
            PageLocation::Memory(frame) => {
                let meta = self.frames.meta(frame);
                meta.page.load(Ordering::Acquire) == id.0
                    && meta.dirty_epoch.load(Ordering::Relaxed) == 0
                    && meta.location.load(Ordering::Relaxed) == location.bits()
            }
        }
    }

    /// For the cleaner: makes `new`, where the image is already on the device, the page's location if it is
    /// still `old` and the page has not changed since. Releases neither.
    pub fn relocate(&self, id: PageId, old: Location, new: Location) -> bool {
        let Some(entry) = self.table.entry(id) else { return false };
        loop {
            // The change belongs to the epoch in which it is made.
            let section = self.section();
            if let Some(done) = self.try_relocate(id, entry, old, new, section.epoch()) {
                return done;
            }
            drop(section);
            yield_now();
        }
    }

    /// `None` if somebody is changing the page or its entry.
    fn try_relocate(
        &self,
        id: PageId,
        entry: &Entry,
        old: Location,
        new: Location,
        epoch: Epoch,
    ) -> Option<bool> {
        let moved = Moved { id, from: Some(old), to: Some(new) };
        let note = |make: &dyn Fn() -> bool| match id.is_volatile() {
            true => make(),
            false => self.changes.note_if(epoch.0, moved, make),
        };
        match entry.load().location() {
            PageLocation::Device(at) if at == old => {
                note(&|| entry.exchange(Word::device(old), Word::device(new))).then_some(true)
            }
            PageLocation::Loading(at) if at == old => {
                note(&|| entry.exchange(Word::loading(old), Word::loading(new))).then_some(true)
            }
            PageLocation::Device(at) if planted!(CleanerMovesStale) => {
                note(&|| entry.exchange(Word::device(at), Word::device(new))).then_some(true)
            }
            PageLocation::Nowhere | PageLocation::Device(_) | PageLocation::Loading(_) => Some(false),
            PageLocation::Memory(frame) => {
                let meta = self.frames.meta(frame);
                let version = meta.latch.try_read()?;
                if meta.page.load(Ordering::Acquire) != id.0 || !meta.latch.try_upgrade(version) {
                    return None;
                }
                let current = meta.dirty_epoch.load(Ordering::Relaxed) == 0
                    && meta.location.load(Ordering::Relaxed) == old.bits();
                if current {
                    note(&|| true);
                    meta.location.store(new.bits(), Ordering::Relaxed);
                    meta.unit.store(0, Ordering::Relaxed);
                }
                meta.latch.unlock_unchanged();
                Some(current)
            }
        }
    }

    /// For the cleaner: all pages whose newest image is at a place that is `wanted`. Looks at every page that
    /// there is; lets others run in between.
    pub fn pages_where(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)> {
        let mut found = Vec::new();
        for (number, id) in self.table.all_numbers().enumerate() {
            if let Some(location) = self.location(id, false).filter(|location| wanted(*location)) {
                found.push((id, location));
            }
            if number % NUMBERS_PER_TURN == 0 {
                yield_now();
            }
        }
        found
    }
}
