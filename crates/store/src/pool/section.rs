//! Changes of pages that a checkpoint sees as a whole or not at all.

use crate::sync::atomic::Ordering;
use std::marker::PhantomData;

use super::changes::Moved;
use super::frames::{Frame, Frames, Meta};
use super::frees::Frees;
use super::gate::Gate;
use super::images::Images;
use super::pages::Pages;
use super::table::{Entry, Word};
use super::withheld::Registry;
use super::{HOT, OptimisticGuard};
use crate::Error;
use crate::epoch::Epoch;
use crate::header::{Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::Page;
use crate::segment::{Lifetime, Location, NotAppended, OwnedSegment};
use crate::task::Unwaiting;

/// Memory for a new page, all zeros.
pub(crate) struct Reserved<'a> {
    frames: &'a Frames,
    frame: Frame,
}

/// The parts that sections change.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub pages: &'a Pages,
    pub images: &'a Images,
    pub gate: &'a Gate,
    pub withheld: &'a Registry,
    pub frees: &'a Frees,
}

/// A change of one or several pages that a checkpoint sees as a whole or not at all. Not `Send`; at most one
/// per task.
pub(crate) struct Section<'a> {
    pub(super) parts: Parts<'a>,
    lifetime: Lifetime,
    epoch: u32,
    place: usize,
    _unwaiting: Unwaiting,
    _not_send: PhantomData<*const ()>,
}

/// A page to which the section has the latch, and which it may change.
pub(crate) struct Locked<'s> {
    frames: &'s Frames,
    meta: &'s Meta,
    frame: Frame,
    id: PageId,
}

/// Why a page could not be locked.
#[derive(Debug)]
pub(crate) enum Denied {
    /// It has changed since it was read: start over.
    Changed,
    /// Its old state must be written first and there is no buffer for that: drop the section, call
    /// [`Images::wait_for_room`], start over.
    NoRoom,
    /// The store is poisoned.
    Failed(Error),
}

impl Images {
    /// Waits for the cause of a denial to end, before the next attempt. The section has ended.
    ///
    /// # Errors
    /// The store is poisoned, or there will be no room.
    pub fn recover(&self, denied: Denied) -> Result<(), Error> {
        match denied {
            Denied::Changed => Ok(()),
            Denied::NoRoom => self.wait_for_room(),
            Denied::Failed(error) => Err(error),
        }
    }
}

impl<'a> Reserved<'a> {
    pub(super) fn new(frames: &'a Frames, frame: Frame) -> Self {
        let page = frames.page(frame);
        (0..page.len_bytes()).step_by(4).for_each(|at| page.set_word(at, 0));
        Self { frames, frame }
    }

    /// The memory, which the caller gives back.
    pub(super) fn keep(self) -> Frame {
        let frame = self.frame;
        std::mem::forget(self);
        frame
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.frames.give_back(&[self.frame]);
    }
}

impl<'a> Section<'a> {
    #[inline]
    pub(super) fn new(parts: Parts<'a>, lifetime: Lifetime) -> Self {
        let place = parts.gate.enter();
        Self {
            parts,
            lifetime,
            epoch: parts.gate.epoch(),
            place,
            _unwaiting: Unwaiting::begin(),
            _not_send: PhantomData,
        }
    }

    /// The epoch that the section's changes belong to.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    /// Takes the latch of a page if it has not changed since it was seen, and makes it ready to be changed:
    /// dirty in this epoch, its state of an older one kept.
    ///
    /// # Errors
    /// [`Denied`]; the page is as it was.
    #[inline]
    pub fn lock(&self, guard: &OptimisticGuard<'a>) -> Result<Locked<'_>, Denied> {
        self.check_trouble()?;
        if !guard.meta.latch.try_upgrade(guard.version) {
            return Err(Denied::Changed);
        }
        let dirty_epoch = guard.meta.dirty_epoch.load(Ordering::Relaxed);
        if dirty_epoch != self.epoch
            && let Err(denied) = self.make_ready(guard, dirty_epoch)
        {
            guard.meta.latch.unlock_unchanged();
            return Err(denied);
        }
        Ok(Locked { frames: self.parts.pages.frames(), meta: guard.meta, frame: guard.frame, id: guard.id })
    }

    /// Lets planned trouble happen.
    #[inline]
    fn check_trouble(&self) -> Result<(), Denied> {
        if trouble!(Write) {
            return Err(Denied::Failed(self.parts.images.fail_write()));
        }
        if trouble!(Room) {
            self.parts.images.fail_write();
            return Err(Denied::NoRoom);
        }
        Ok(())
    }

    /// Locks another page. If that is denied, `upper` has not changed, and its readers go on.
    ///
    /// # Errors
    /// As [`Section::lock`].
    pub fn lock_below<'s>(
        &'s self,
        upper: Locked<'s>,
        guard: &OptimisticGuard<'a>,
    ) -> Result<(Locked<'s>, Locked<'s>), Denied> {
        match self.lock(guard) {
            Ok(locked) => Ok((upper, locked)),
            Err(denied) => {
                upper.meta.latch.unlock_unchanged();
                std::mem::forget(upper);
                Err(denied)
            }
        }
    }

    /// The page is clean, or dirty since an older epoch.
    fn make_ready(&self, guard: &OptimisticGuard<'a>, dirty_epoch: u32) -> Result<(), Denied> {
        if dirty_epoch != 0 {
            if guard.id.is_volatile() {
                return Ok(());
            }
            if planted!(ChangedPageNotKept) {
                guard.meta.dirty_epoch.store(self.epoch, Ordering::Release);
                return Ok(());
            }
            // The checkpoint of that epoch needs the page as it is now.
            self.parts
                .images
                .gather(self.parts.pages.frames(), guard.id, guard.frame, dirty_epoch)
                .map_err(denied)?;
        }
        if let Some(location) = Location::from_bits(guard.meta.location.load(Ordering::Relaxed)) {
            self.parts.images.store().release(location);
        }
        self.parts.images.mark_dirty(
            self.parts.pages.frames(),
            (guard.id, guard.frame),
            self.epoch,
            self.lifetime,
        );
        Ok(())
    }

    /// Makes a new page, all zeros but its header. Volatile pages are not part of checkpoints.
    pub fn create(&self, memory: Reserved<'a>, kind: PageKind, volatile: bool) -> Locked<'_> {
        let Parts { pages, images, .. } = self.parts;
        let (frames, frame) = (pages.frames(), memory.frame);
        std::mem::forget(memory);
        let (meta, page) = (frames.meta(frame), frames.page(frame));
        let id = pages.table().take_number(volatile);
        let locked = meta.latch.try_lock();
        debug_assert!(locked, "the latch of a new page is held");
        let header = Header {
            checksum: 0,
            image_grains: 0,
            class: frame.class() as u8,
            kind: kind as u8,
            page: id,
            sequence: 0,
            front_end: PAGE_HEADER_BYTES,
            back_start: page.len_bytes(),
        };
        header.store(page);
        meta.location.store(0, Ordering::Relaxed);
        pages.count_volatile(id, frame.class(), 1);
        images.mark_dirty(frames, (id, frame), self.epoch, self.lifetime);
        frames.publish(id, frame, HOT);
        if let Some(entry) = pages.table().entry(id) {
            entry.store(Word::memory(frame));
        }
        Locked { frames, meta, frame, id }
    }

    /// Gathers the image of a page that this section has changed, so that it is known where it will be: for
    /// pages that are written once. It is there after
    /// `Gatherer::write_all`.
    ///
    /// # Errors
    /// [`Denied`], but for [`Denied::Changed`]; the page is as it was.
    pub fn gather(&self, page: &Locked<'_>) -> Result<Location, Denied> {
        self.check_trouble()?;
        self.parts
            .images
            .gather(self.parts.pages.frames(), page.id, page.frame, self.epoch)
            .map_err(denied)?;
        Location::from_bits(page.meta.location.load(Ordering::Relaxed)).ok_or(Denied::Changed)
    }

    /// Makes a page exist whose image is at `location`, on the device already: a replayed record refers to
    /// it. `false` if it exists, as the checkpoint knows it.
    pub fn adopt(&self, id: PageId, location: Location) -> bool {
        let adopted = self.parts.pages.table().adopt(id, Word::device(location));
        if adopted {
            self.parts.images.changes().note(self.epoch, Moved { id, from: None, to: Some(location) });
        }
        adopted
    }

    /// Gives a page number to a segment that is owned whole and was written. Checkpoints have it from now on,
    /// until [`Section::free_unread`] takes the number back.
    ///
    /// # Errors
    /// [`Denied::Failed`] with [`Error::Full`] if there are no numbers left.
    pub fn record_segment(&self, segment: &OwnedSegment) -> Result<PageId, Denied> {
        self.check_trouble()?;
        let (table, location) = (self.parts.pages.table(), segment.location());
        if !table.has_room() {
            let why = "there are no numbers left for new pages".into();
            return Err(Denied::Failed(Error::Full { why }));
        }
        let id = table.take_number(false);
        if let Some(entry) = table.entry(id) {
            entry.store(Word::device(location));
        }
        self.parts.images.changes().note(self.epoch, Moved { id, from: None, to: Some(location) });
        segment.set_recorded();
        Ok(id)
    }

    /// The page does not exist any longer.
    pub fn free(&self, page: Locked<'_>) {
        let Parts { pages, images, frees, .. } = self.parts;
        let (meta, frame, id) = (page.meta, page.frame, page.id);
        std::mem::forget(page);
        let _freeing = (!id.is_volatile()).then(|| frees.begin());
        if !id.is_volatile() {
            let from = Location::from_bits(meta.location.load(Ordering::Relaxed));
            images.changes().note(self.epoch, Moved { id, from, to: None });
        }
        pages.count_volatile(id, frame.class(), -1);
        images.mark_clean(pages.frames(), id, frame);
        meta.page.store(0, Ordering::Release);
        pages.table().entry(id).map(Entry::clear);
        meta.latch.unlock();
        pages.table().free_number(id, self.epoch);
        pages.frames().give_back(&[frame]);
    }
}

fn denied(why: NotAppended) -> Denied {
    match why {
        NotAppended::NoBuffer | NotAppended::NoSegment => Denied::NoRoom,
        NotAppended::Failed(error) => Denied::Failed(error),
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.parts.images.store().give_up("a panic while pages were changed");
        }
        self.parts.gate.leave(self.place);
    }
}

impl Locked<'_> {
    /// Its bytes.
    #[inline]
    pub fn page(&self) -> Page<'_> {
        self.frames.page(self.frame)
    }

    /// Its number.
    pub fn id(&self) -> PageId {
        self.id
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.meta.latch.unlock();
    }
}
