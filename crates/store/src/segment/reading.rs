//! Reading of images.

use super::space::Space;
use super::{Location, pack};
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::PageId;
use crate::io_context::{self, Block, Devices, Role};
use crate::sync::Arc;

/// Reads images, and verifies them. It changes nothing.
pub(crate) struct ImageReader {
    devices: Devices,
    sector_bytes: u32,
    space: Arc<Space>,
}

impl ImageReader {
    pub(super) fn new(devices: Devices, sector_bytes: u32, space: &Arc<Space>) -> Self {
        Self { devices, sector_bytes, space: Arc::clone(space) }
    }

    /// Reads and verifies the image at `location`, which may be anywhere, for those who have no frame for it.
    /// Parks.
    ///
    /// # Errors
    /// As [`ImageReader::read`]; [`Error::Corrupt`] if there is no such place.
    pub fn read_block(&self, location: Location, id: PageId) -> Result<Block, Error> {
        if !self.space.has(location) {
            return Err(self.space.nowhere(location));
        }
        let mut block = Block::new(class_bytes(location.class().min(CLASSES - 1)) as usize)?;
        // SAFETY: the block has the bytes of the class and belongs to this call alone.
        unsafe { self.read(location, id, block.bytes().as_mut_ptr())? };
        Ok(block)
    }

    /// Reads and verifies the image at `location` into `memory` (a frame of that class) and unpacks it.
    /// Parks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if what is there is not the image, also when read again.
    ///
    /// # Safety
    /// `memory` has the bytes of the location's class, is aligned to 4096, and is used by nobody else until
    /// this returns.
    pub unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error> {
        let expected = self.expected(location, id);
        // SAFETY: passed on from the caller.
        let first = unsafe { self.read_once(expected, memory) };
        match first {
            // Damage in transit is gone when the image is read again.
            // SAFETY: passed on from the caller; the first read is over.
            Err(Error::Corrupt { .. }) => unsafe { self.read_once(expected, memory) },
            first => first,
        }
    }

    /// Reads images that lie close together by one request, each into its memory, and verifies and unpacks
    /// them: returns for each whether it was the expected one. Parks.
    ///
    /// # Safety
    /// Each memory as for [`ImageReader::read`], all of them different.
    pub unsafe fn read_together(&self, images: &[(Location, PageId, *mut u8)]) -> Vec<bool> {
        // The opening sequence must be that of before the read: the segment may be reused meanwhile.
        let expected: Vec<_> = images.iter().map(|(location, id, _)| self.expected(*location, *id)).collect();
        let spans = || images.iter().map(|(location, ..)| location.span(self.sector_bytes));
        let start = spans().map(|(offset, ..)| offset).min().unwrap_or(0);
        let end = spans().map(|(offset, length, _)| offset + u64::from(length)).max().unwrap_or(0);
        let block = Block::new((end - start) as usize).and_then(|mut block| {
            block.read(&self.devices, Role::Data, start)?;
            Ok(block)
        });
        let Ok(mut block) = block else { return vec![false; images.len()] };
        let bytes = block.bytes();
        let take_out = |((location, _, memory), expected): (&(Location, PageId, *mut u8), _)| {
            let length = location.length_bytes() as usize;
            let page_bytes = class_bytes(location.class().min(CLASSES - 1)) as usize;
            let image = &bytes[(location.offset_bytes() - start) as usize..][..length];
            let Some(header) = pack::verify(image, expected).ok().filter(|_| length <= page_bytes) else {
                return false;
            };
            // SAFETY: the caller gives memory of that many bytes, which the kernel or an earlier use has
            // initialised, and nobody else uses it.
            let page = unsafe { std::slice::from_raw_parts_mut(*memory, page_bytes) };
            page[..length].copy_from_slice(image);
            pack::unpack(header, 0, page);
            true
        };
        images.iter().zip(expected).map(take_out).collect()
    }

    fn expected(&self, location: Location, page: PageId) -> pack::Expected {
        pack::Expected { location, page, oldest_sequence: self.space.opening(location) }
    }

    /// # Safety
    /// As for [`ImageReader::read`].
    unsafe fn read_once(&self, expected: pack::Expected, memory: *mut u8) -> Result<(), Error> {
        let (offset, length, skipped) = expected.location.span(self.sector_bytes);
        let page_bytes = class_bytes(expected.location.class().min(CLASSES - 1));
        let image_bytes = expected.location.length_bytes();
        if expected.location.class() < CLASSES
            && u64::from(image_bytes) <= page_bytes
            && u64::from(length) > page_bytes
        {
            // SAFETY: passed on from the caller.
            return unsafe { self.read_wide(expected, memory) };
        }
        if expected.location.class() >= CLASSES || u64::from(length) > page_bytes {
            return Err(Error::Corrupt {
                what: format!("the location of page {}", expected.page.0),
                offset_bytes: offset,
                expected: format!("at most {page_bytes} bytes"),
                got: format!("{length} bytes to be read, size class {}", expected.location.class()),
            });
        }
        // SAFETY: what is read is not longer than the page; the rest is passed on from the caller.
        let read = unsafe { io_context::read(&self.devices, Role::Data, offset, memory, length) };
        read.map_err(|failure| failure.error(format!("read page {} at byte {offset}", expected.page.0)))?;
        // SAFETY: `memory` has that many bytes, which the read or an earlier use of the frame has
        // initialised, and nobody else uses them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, page_bytes as usize) };
        let header = pack::verify(&bytes[skipped as usize..], expected)?;
        pack::unpack(header, skipped as usize, bytes);
        Ok(())
    }

    /// An image whose sectors are more bytes than its page: it was written where sectors were smaller than
    /// this device's.
    ///
    /// # Safety
    /// As for [`ImageReader::read`].
    unsafe fn read_wide(&self, expected: pack::Expected, memory: *mut u8) -> Result<(), Error> {
        let (offset, length, skipped) = expected.location.span(self.sector_bytes);
        let page_bytes = class_bytes(expected.location.class().min(CLASSES - 1)) as usize;
        let mut block = Block::new(length as usize)?;
        block.read(&self.devices, Role::Data, offset)?;
        let image = &block.bytes()[skipped as usize..][..expected.location.length_bytes() as usize];
        let header = pack::verify(image, expected)?;
        // SAFETY: the caller gives memory of that many bytes, which the kernel or an earlier use has
        // initialised, and nobody else uses it.
        let page = unsafe { std::slice::from_raw_parts_mut(memory, page_bytes) };
        page[..image.len()].copy_from_slice(image);
        pack::unpack(header, 0, page);
        Ok(())
    }
}
