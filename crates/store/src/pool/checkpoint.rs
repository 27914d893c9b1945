//! The pool's interface to checkpoints.

use super::changes::{BLOCK_BITS, Moved};
use super::frames::Frame;
use super::gate::Gate;
use super::images::Images;
use super::pages::Pages;
use crate::Error;
use crate::class::CLASSES;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::segment::{Lifetime, Location, NotAppended};
use crate::sync::atomic::Ordering;
use crate::task::yield_now;

/// Frames that are looked at before others may run.
const FRAMES_PER_TURN: u32 = 1024;

/// Pages that are gathered before others may run.
const PAGES_PER_TURN: u32 = 16;

/// The operations of checkpoints on the pool.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoints<'a> {
    pages: &'a Pages,
    images: &'a Images,
    gate: &'a Gate,
}

impl<'a> Checkpoints<'a> {
    pub(super) fn new(pages: &'a Pages, images: &'a Images, gate: &'a Gate) -> Self {
        Self { pages, images, gate }
    }

    /// Ends the epoch, between two sections: runs `note` while no section is under way, and gives the epoch
    /// that has ended. Sections wait meanwhile, so `note` must be quick. From then on a page that changed in
    /// the old epoch is gathered before it is changed again.
    pub fn cut(&self, note: impl FnOnce()) -> Epoch {
        Epoch(self.gate.cut(note))
    }

    /// Gathers the images of all pages that were changed until the end of `epoch` and not since. With those
    /// that were gathered meanwhile, for other reasons, they are the state at the cut. It lets others run in
    /// between.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`]; can be called again.
    pub fn flush_epoch(&self, epoch: Epoch) -> Result<(), Error> {
        let mut gathered = 0;
        for class in 0..CLASSES {
            for index in 0..self.pages.frames().used(class) {
                let frame = Frame::new(class, index);
                if self.is_older(frame, epoch) {
                    self.flush(frame, epoch)?;
                    gathered += 1;
                }
                if gathered == PAGES_PER_TURN || index % FRAMES_PER_TURN == FRAMES_PER_TURN - 1 {
                    gathered = 0;
                    self.images.store().pace()?;
                    yield_now();
                }
            }
        }
        Ok(())
    }

    /// Whether the frame has a durable page that changed until the end of `epoch` and was not gathered.
    fn is_older(&self, frame: Frame, epoch: Epoch) -> bool {
        let meta = self.pages.frames().meta(frame);
        // It becomes clean only after its change was noted; so a page that is not seen here is among the
        // changes.
        let dirty_epoch = meta.dirty_epoch.load(Ordering::Acquire);
        dirty_epoch != 0 && dirty_epoch <= epoch.0 && !PageId(meta.page.load(Ordering::Relaxed)).is_volatile()
    }

    fn flush(&self, frame: Frame, epoch: Epoch) -> Result<(), Error> {
        let meta = self.pages.frames().meta(frame);
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
                true => self.images.gather(self.pages.frames(), id, frame, dirty_epoch).map(drop),
                false => Ok(()),
            };
            meta.latch.unlock_unchanged();
            match gathered {
                Ok(()) => {}
                Err(NotAppended::NoBuffer | NotAppended::NoSegment) => {
                    self.images.store().wait_for_room(Lifetime::Awaited)?
                }
                Err(NotAppended::Failed(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// The changes until the end of `epoch` that were not taken yet; those of the same page in their order.
    /// Complete after [`Checkpoints::flush_epoch`].
    pub fn take_changes(&self, epoch: Epoch) -> Vec<Moved> {
        let mut all = Vec::new();
        for mut part in self.images.changes().take(epoch.0) {
            all.append(&mut part);
            yield_now();
        }
        all
    }

    /// Calls `see` with every durable page that existed at the end of `epoch` and its location then; after
    /// [`Checkpoints::flush_epoch`], and with no later cut meanwhile. It lets other tasks run in between, and
    /// these may change any page.
    ///
    /// # Errors
    /// Those of `see`.
    pub fn snapshot(
        &self,
        epoch: Epoch,
        see: &mut dyn FnMut(PageId, Location) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut block = vec![None; 1 << BLOCK_BITS];
        for first in (0..self.pages.table().next_number()).step_by(1 << BLOCK_BITS) {
            for (id, location) in (first..).zip(&mut block) {
                *location = self.pages.location(PageId(id), true);
            }
            // Whatever of the present epoch was seen above has been noted by now. The oldest change, which
            // comes last, says where the page was.
            self.images.changes().since(epoch.0, PageId(first), |moved| {
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

    /// The checkpoint of `epoch` is durable: page numbers that became free until then are given out again.
    pub fn done(&self, epoch: Epoch) {
        self.pages.table().reuse_until(epoch.0);
    }
}
