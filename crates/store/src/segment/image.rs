//! Images as headers say, and as they are expected.

use super::location::{GRAIN_BYTES, Location};
use crate::checksum::crc32c;
use crate::header::{Header, PageId};

/// Bytes of an image that the checksum does not cover: itself.
pub(super) const UNCOVERED_BYTES: usize = 4;

/// The expected identity of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub location: Location,
    pub page: PageId,
    /// No image in its segment was written earlier.
    pub oldest_sequence: u64,
}

/// Bytes of the image that begins with this header.
pub(crate) fn image_bytes(header: Header) -> u32 {
    u32::from(header.image_grains) * GRAIN_BYTES
}

/// Gives an image that is not in blocks, or a block, this header, with the checksum that belongs to it.
pub(super) fn seal_whole(header: Header, image: &mut [u8]) {
    let Some(start) = image.first_chunk_mut() else { return };
    *start = header.encode();
    let checksum = crc32c(&image[UNCOVERED_BYTES..]);
    if let Some(start) = image.first_chunk_mut() {
        *start = Header { checksum, ..header }.encode();
    }
}
