//! The page store: the interface of the pool to the place where page images are kept.

use crate::Error;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::page::Page;
use crate::segment::{
    Appended, BlockRead, BroughtBlocks, ImagePlace, Lifetime, Location, NotAppended, Segments, UnitSequence,
};

/// Implemented by [`Segments`], and by stand-ins of tests.
pub(crate) trait PageStore: Send + Sync {
    /// Gathers a page's image, which lives as long as `lifetime` says, and whose last one is or was at `old`.
    /// Never waits.
    fn append(
        &self,
        lifetime: Lifetime,
        id: PageId,
        class: usize,
        page: Page<'_>,
        old: Option<Location>,
    ) -> Result<Appended, NotAppended>;

    /// Whether a checkpoint that is under way is to have a page that has changed in this epoch.
    fn is_awaited(&self, _: Epoch) -> bool {
        false
    }

    /// Waits until [`PageStore::append`] may succeed.
    fn wait_for_room(&self, lifetime: Lifetime) -> Result<(), Error>;

    /// Waits while much is on its way to the device. To be called repeatedly by a task that gathers many
    /// pages and is in no hurry.
    fn pace(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Bytes that are written at a time.
    fn unit_bytes(&self) -> u64;

    /// Bytes of the largest page that has an image.
    fn page_bytes_max(&self) -> u64 {
        u64::MAX
    }

    /// Whether this unit is on the device.
    fn is_written(&self, unit: UnitSequence) -> bool;

    /// An image became garbage in the present epoch. Called within sections.
    fn release(&self, location: Location);

    /// Waits until this unit is on the device; sends it on its way if it is open.
    fn wait_written(&self, unit: UnitSequence) -> Result<(), Error>;

    /// A page was left half changed: nothing may be written any more.
    fn give_up(&self, why: &str);

    /// # Errors
    /// [`Error::Poisoned`] if nothing is written any more.
    fn check(&self) -> Result<(), Error>;

    /// Loads a page.
    ///
    /// # Safety
    /// As `ImageReader::read`.
    unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error>;

    /// Identifies the image there among all present and earlier ones; `None` if blocks of images are never
    /// read.
    fn image(&self, _: PageId, _: Location) -> Option<ImagePlace> {
        None
    }

    /// Reads a block of an image, and perhaps others; `None` if the image is not in blocks.
    fn read_blocks(&self, _: BlockRead) -> Result<Option<BroughtBlocks>, Error> {
        Ok(None)
    }

    /// Loads pages whose images lie close together; tells of each whether that was possible.
    ///
    /// # Safety
    /// As `ImageReader::read_together`.
    unsafe fn read_together(&self, images: &[(Location, PageId, *mut u8)]) -> Vec<bool> {
        // SAFETY: passed on from the caller.
        let read = |(location, id, memory): &(_, _, _)| unsafe { self.read(*location, *id, *memory) }.is_ok();
        images.iter().map(read).collect()
    }
}

impl PageStore for Segments {
    fn append(
        &self,
        lifetime: Lifetime,
        id: PageId,
        class: usize,
        page: Page<'_>,
        old: Option<Location>,
    ) -> Result<Appended, NotAppended> {
        self.gatherer.append(lifetime, id, class, page, old)
    }

    fn is_awaited(&self, epoch: Epoch) -> bool {
        self.upkeep.is_awaited(epoch)
    }

    fn wait_for_room(&self, lifetime: Lifetime) -> Result<(), Error> {
        self.upkeep.wait_for_room(lifetime)
    }

    fn pace(&self) -> Result<(), Error> {
        self.upkeep.pace()
    }

    fn unit_bytes(&self) -> u64 {
        self.gatherer.unit_bytes()
    }

    fn page_bytes_max(&self) -> u64 {
        class_bytes(self.gatherer.class_max())
    }

    fn is_written(&self, unit: UnitSequence) -> bool {
        self.gatherer.is_written(unit)
    }

    fn release(&self, location: Location) {
        self.gatherer.release(location);
    }

    fn wait_written(&self, unit: UnitSequence) -> Result<(), Error> {
        self.gatherer.wait_written(unit)
    }

    fn give_up(&self, why: &str) {
        self.poison.note(why.to_owned());
    }

    fn check(&self) -> Result<(), Error> {
        self.poison.check()
    }

    unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error> {
        // SAFETY: passed on from the caller.
        unsafe { self.reader.read(location, id, memory) }
    }

    fn image(&self, page: PageId, location: Location) -> Option<ImagePlace> {
        Some(self.reader.image(page, location))
    }

    fn read_blocks(&self, read: BlockRead) -> Result<Option<BroughtBlocks>, Error> {
        self.reader.read_blocks(read)
    }

    unsafe fn read_together(&self, images: &[(Location, PageId, *mut u8)]) -> Vec<bool> {
        // SAFETY: passed on from the caller.
        unsafe { self.reader.read_together(images) }
    }
}
