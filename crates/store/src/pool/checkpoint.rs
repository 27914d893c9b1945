//! What checkpoints need of the pool, and what opening a store does to it.

use super::{Epoch, Moved, Pool};
use crate::Error;
use crate::header::PageId;
use crate::segment::Location;

impl Pool {
    /// Ends the epoch: runs `note` with no section under way, and gives the epoch that has ended.
    pub fn cut(&self, note: impl FnOnce()) -> Epoch {
        Epoch(self.gate.cut(note))
    }

    /// Gathers the images of all pages that are dirty since `epoch` or earlier, other tasks running in between. Does not wait for them to be written.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room, and then some are still dirty; [`Error::Poisoned`].
    pub fn flush_epoch(&self, _epoch: Epoch) -> Result<(), Error> {
        todo!()
    }

    /// What moved, came and went in `epoch`, which has been flushed: those of the same page in their order. Asked once.
    pub fn take_changes(&self, epoch: Epoch) -> Vec<Moved> {
        self.changes.take(epoch.0)
    }

    /// Calls `see` with every page that lasts, in the order of their numbers, and where it was when `epoch` ended, while changes of the next one go on. `epoch` has been flushed.
    pub fn snapshot(
        &self,
        _epoch: Epoch,
        _see: &mut dyn FnMut(PageId, Location) -> Result<(), Error>,
    ) -> Result<(), Error> {
        todo!()
    }

    /// A checkpoint of `epoch` is complete: numbers of pages that were freed in it or earlier may be used again.
    pub fn checkpoint_done(&self, epoch: Epoch) {
        self.table.reuse_until(epoch.0);
    }

    /// While a store is opened: this page is there. `None` takes it back. Makes no change for a checkpoint to see.
    pub fn restore(&self, _id: PageId, _location: Option<Location>) {
        todo!()
    }

    /// While a store is opened: all pages of the checkpoint of `epoch` are restored. New ones get numbers from `next` on, and those below that are free.
    pub fn restored(&self, _epoch: Epoch, _next: PageId) {
        todo!()
    }

    /// Pages that last never had this number or a higher one.
    pub fn next_page(&self) -> PageId {
        PageId(self.table.next_number())
    }

    /// Pages that last.
    pub fn pages(&self) -> u64 {
        todo!()
    }
}
