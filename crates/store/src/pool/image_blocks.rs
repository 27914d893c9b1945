//! Pages that are not in memory, while single blocks of them are read (see
//! [`blocks`](crate::segment::blocks)).
//!
//! An image never changes, so its blocks are kept like those of owned segments, by the place of the image and
//! its segment's opening sequence. A reader that has looked at a block asks [`Pool::is_image_current`]
//! afterwards whether the image was the page's newest state all the time.

use super::blocks::{BlockId, BlockShare, IN_IMAGE};
use super::table::PageLocation;
use super::{Access, Pool};
use crate::Error;
use crate::class::class_bytes;
use crate::header::PageId;
use crate::page::{OwnPage, Page};
use crate::segment::{BlockRead, BroughtBlocks, ImagePlace};

/// A verified block of an image.
pub(crate) enum ImageBlock {
    /// It is kept in memory.
    Shared(BlockShare),
    /// No memory was free to keep it.
    Own(OwnPage),
}

impl ImageBlock {
    /// Its bytes.
    pub fn page(&self) -> Page<'_> {
        match self {
            Self::Shared(share) => share.page(),
            Self::Own(page) => page.page(),
        }
    }

    fn own(bytes: &[u8]) -> Self {
        let page = OwnPage::new(bytes.len() as u32);
        page.page().copy_from(0, bytes);
        Self::Own(page)
    }
}

fn id_of(read: BlockRead) -> BlockId {
    let offset = u64::from(read.number) * u64::from(read.block_bytes);
    let opening = if planted!(BlockOutlivesImage) { 0 } else { read.image.opening };
    BlockId { opening, start: (read.image.location.offset_bytes() + offset) | IN_IMAGE }
}

impl Pool {
    /// The image of a page that is not in memory.
    #[inline]
    pub fn image_of(&self, id: PageId) -> Option<ImagePlace> {
        match self.pages.table().entry(id)?.load().location() {
            PageLocation::Device(location) if !location.is_segment() => {
                self.images.store().image(id, location)
            }
            _ => None,
        }
    }

    /// Has another task load all of a page, if it fits into memory that was not used so far.
    pub fn load_if_memory_is_unused(&self, id: PageId) {
        let class = self.image_of(id).map(|image| image.location.class());
        if class.is_some_and(|class| self.pages.frames().unbacked_bytes() > 2 * class_bytes(class)) {
            self.prefetch(id);
        }
    }

    /// Whether the page is as it is in this image. It may be in memory, too, by now.
    #[inline]
    pub fn is_image_current(&self, image: &ImagePlace) -> bool {
        let location = match self.pages.table().entry(image.page).map(|entry| entry.load().location()) {
            Some(PageLocation::Device(location) | PageLocation::Loading(location)) => location,
            _ => return false,
        };
        location == image.location && self.images.store().image(image.page, location) == Some(*image)
    }

    /// A block of an image: from memory, from the blocks that an earlier request has `brought`, or by a
    /// request that is as wide as its slots allow, whose blocks are `brought` then. `None` if the image is
    /// not in blocks, which is only found out for its first one. Parks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the block is not there.
    pub fn image_block(
        &self,
        read: BlockRead,
        access: Access,
        brought: &mut Option<BroughtBlocks>,
    ) -> Result<Option<ImageBlock>, Error> {
        if trouble!(Page) {
            let doing = format!("read a block of page {}", read.image.page.0);
            return Err(Error::io(doing, libc::EIO));
        }
        let id = id_of(read);
        if let Some((_, bytes)) = brought.as_mut().map(|all| all.block(read.number)).transpose()?.flatten() {
            return Ok(Some(self.keep_image_block(id, access, bytes)));
        }
        let found = self.block_or(id, access, &mut || {
            // The first block of an image that is not in blocks is kept as an empty one.
            let Some(mut all) = self.images.store().read_blocks(read)? else { return Ok(Vec::new()) };
            let bytes = all.block(read.number)?.map_or_else(Vec::new, |(_, bytes)| bytes.to_vec());
            *brought = Some(all);
            Ok(bytes)
        });
        let block = found?.map_or_else(|bytes| ImageBlock::own(&bytes), ImageBlock::Shared);
        Ok(Some(block).filter(|block| block.page().len_bytes() > 0))
    }

    /// The block, if it is in memory.
    pub fn kept_image_block(&self, read: BlockRead) -> Option<ImageBlock> {
        self.known_block(id_of(read)).map(ImageBlock::Shared)
    }

    fn keep_image_block(&self, id: BlockId, access: Access, bytes: &[u8]) -> ImageBlock {
        match self.known_block(id).or_else(|| self.keep_block(id, access, bytes)) {
            Some(share) => ImageBlock::Shared(share),
            None => ImageBlock::own(bytes),
        }
    }
}
