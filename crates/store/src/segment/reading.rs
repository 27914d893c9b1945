//! Reading of images.

use super::blocks::{self, Division};
use super::image::{Expected, image_bytes};
use super::space::Space;
use super::{Location, pack};
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::{Header, PageId};
use crate::io_context::{self, Block, Devices, Role};
use crate::sync::Arc;

/// Reads images, and verifies them. It changes nothing.
pub(crate) struct ImageReader {
    devices: Devices,
    sector_bytes: u32,
    space: Arc<Space>,
    division: &'static dyn Division,
}

/// The image of a page, told from all others that are and were there: equal ones have equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImagePlace {
    pub page: PageId,
    pub location: Location,
    /// The opening sequence of its segment.
    pub opening: u64,
}

impl ImagePlace {
    fn expected(&self) -> Expected {
        Expected { location: self.location, page: self.page, oldest_sequence: self.opening }
    }
}

/// Blocks of an image, side by side, that one request has brought.
pub(crate) struct BroughtBlocks {
    memory: Block,
    /// Bytes of the memory before the first of them.
    skipped: u32,
    first: u32,
    count: u32,
    block_bytes: u32,
    image: ImagePlace,
}

impl BroughtBlocks {
    /// This block, verified; `None` if it is not among them.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn block(&mut self, number: u32) -> Result<Option<(Header, &[u8])>, Error> {
        let Some(before) = number.checked_sub(self.first).filter(|before| *before < self.count) else {
            return Ok(None);
        };
        let length = blocks::length_of(number, self.block_bytes, self.image.location.length_bytes());
        let start = (self.skipped + before * self.block_bytes) as usize;
        let bytes = self.memory.bytes().get(start..).and_then(|bytes| bytes.get(..length? as usize));
        let bytes = bytes.unwrap_or_default();
        Ok(Some((blocks::verify_block(bytes, number, self.image.expected())?, bytes)))
    }

    /// Whether the image is in blocks, as its first block says, which is among these.
    fn are_blocks(&mut self) -> bool {
        let start = self.skipped as usize;
        let header = self.memory.bytes().get(start..).and_then(Header::decode);
        header.is_some_and(|header| blocks::block_bytes(header).is_some())
    }
}

/// A request for blocks of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRead {
    pub image: ImagePlace,
    pub block_bytes: u32,
    /// The block that is needed.
    pub number: u32,
    /// Blocks that a step of the drive serves, P of the PDAM: the request is widened by those that other
    /// requests leave free.
    pub blocks_max: u32,
}

impl ImageReader {
    pub(super) fn new(
        devices: Devices,
        sector_bytes: u32,
        space: &Arc<Space>,
        division: &'static dyn Division,
    ) -> Self {
        Self { devices, sector_bytes, space: Arc::clone(space), division }
    }

    /// The image there is now.
    pub fn image(&self, page: PageId, location: Location) -> ImagePlace {
        ImagePlace { page, location, opening: self.space.opening(location) }
    }

    /// Reads a block of an image, and by the same request as many after it as slots of the drive are free.
    /// `None` if the image is not in blocks. Parks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the block is not there, also when read again.
    pub fn read_blocks(&self, read: BlockRead) -> Result<Option<BroughtBlocks>, Error> {
        let count = io_context::share_of_slots(&self.devices, read.blocks_max, read.block_bytes);
        let mut brought = self.read_some_blocks(read, count)?;
        if read.number == 0 && !brought.are_blocks() {
            return Ok(None);
        }
        match brought.block(read.number) {
            Ok(_) => Ok(Some(brought)),
            // Damage in transit is gone when the block is read again.
            Err(_) => {
                let mut again = self.read_some_blocks(read, 1)?;
                again.block(read.number)?;
                Ok(Some(again))
            }
        }
    }

    fn read_some_blocks(&self, read: BlockRead, count: u32) -> Result<BroughtBlocks, Error> {
        let BlockRead { image, block_bytes, number, .. } = read;
        let image_bytes = image.location.length_bytes();
        let first = number.saturating_mul(block_bytes);
        let Some(rest) = image_bytes.checked_sub(first).filter(|rest| *rest > 0) else {
            return Err(Error::Corrupt {
                what: format!("page {}", image.page.0),
                offset_bytes: image.location.offset_bytes(),
                expected: format!("blocks in {image_bytes} bytes"),
                got: format!("a reference to block {number}"),
            });
        };
        let length = rest.min(count.saturating_mul(block_bytes));
        let start = image.location.offset_bytes() + u64::from(first);
        let skipped = (start % u64::from(self.sector_bytes)) as u32;
        let mut memory = Block::new((skipped + length).next_multiple_of(self.sector_bytes) as usize)?;
        memory.read(&self.devices, Role::Data, start - u64::from(skipped))?;
        let count = length.div_ceil(block_bytes);
        Ok(BroughtBlocks { memory, skipped, first: number, count, block_bytes, image })
    }

    /// Unpacks a verified image, which lies in `memory` from `at` on, into the page that `memory` is.
    fn unpack(&self, header: Header, at: usize, memory: &mut [u8]) -> Result<(), Error> {
        if blocks::block_bytes(header).is_none() {
            pack::unpack(header, at, memory);
            return Ok(());
        }
        let image = memory.get(at..).and_then(|bytes| bytes.get(..image_bytes(header) as usize));
        let image = image.unwrap_or_default().to_vec();
        blocks::unpack(self.division, header, &image, memory)
    }

    /// Reads and verifies the image at `location`, which may be anywhere, for callers that have no frame for
    /// it. Parks.
    ///
    /// # Errors
    /// As [`ImageReader::read`]; [`Error::Corrupt`] if there is no such place.
    pub fn read_block(&self, location: Location, id: PageId) -> Result<Block, Error> {
        if self.space.index_of_image(location).is_none() {
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
    /// [`Error::Io`]; [`Error::Corrupt`] if the bytes there are not the image, also when read again.
    ///
    /// # Safety
    /// `memory` has the bytes of the location's class, is aligned to 4096, and is not used otherwise until
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
            // initialised, and which is not used otherwise.
            let page = unsafe { std::slice::from_raw_parts_mut(*memory, page_bytes) };
            page[..length].copy_from_slice(image);
            self.unpack(header, 0, page).is_ok()
        };
        images.iter().zip(expected).map(take_out).collect()
    }

    fn expected(&self, location: Location, page: PageId) -> Expected {
        Expected { location, page, oldest_sequence: self.space.opening(location) }
    }

    /// # Safety
    /// As for [`ImageReader::read`].
    unsafe fn read_once(&self, expected: Expected, memory: *mut u8) -> Result<(), Error> {
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
        // SAFETY: the read is not longer than the page; the rest is passed on from the caller.
        let read = unsafe { io_context::read(&self.devices, Role::Data, offset, memory, length) };
        read.map_err(|failure| failure.error(format!("read page {} at byte {offset}", expected.page.0)))?;
        // SAFETY: `memory` has that many bytes, which the read or an earlier use of the frame has
        // initialised, and which are not used otherwise.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, page_bytes as usize) };
        let header = pack::verify(&bytes[skipped as usize..], expected)?;
        self.unpack(header, skipped as usize, bytes)
    }

    /// An image whose sectors are more bytes than its page: it was written where sectors were smaller than
    /// this device's.
    ///
    /// # Safety
    /// As for [`ImageReader::read`].
    unsafe fn read_wide(&self, expected: Expected, memory: *mut u8) -> Result<(), Error> {
        let (offset, length, skipped) = expected.location.span(self.sector_bytes);
        let page_bytes = class_bytes(expected.location.class().min(CLASSES - 1)) as usize;
        let mut block = Block::new(length as usize)?;
        block.read(&self.devices, Role::Data, offset)?;
        let image = &block.bytes()[skipped as usize..][..expected.location.length_bytes() as usize];
        let header = pack::verify(image, expected)?;
        // SAFETY: the caller gives memory of that many bytes, which the kernel or an earlier use has
        // initialised, and which is not used otherwise.
        let page = unsafe { std::slice::from_raw_parts_mut(memory, page_bytes) };
        page[..image.len()].copy_from_slice(image);
        self.unpack(header, 0, page)
    }
}
