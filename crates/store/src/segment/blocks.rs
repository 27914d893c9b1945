//! Images in blocks. Each block is verified on its own, so that one is read without the others.
//!
//! ```text
//! block 0   0        32                 first part            end of the block
//!           | header | directory        | part                |
//! block n   0                                                 end of the block
//!           | header, and the part that it begins             |
//! ```
//!
//! A block is as long as the page's kind says; the last one ends where the image ends. Each begins with a
//! [header](crate::header) of its own, whose checksum covers the block. The header of the first block is that
//! of the image: *image* has the image's grains, *front end* the bytes of a block, and *back start* where the
//! first part begins, 32 if there is no directory. In the others *image* has the number of the block; the
//! bytes of *front end* and *back start* are the part's. So a block that was lost, misplaced or moved within
//! its image is detected without the others.
//!
//! The [`Division`] determines the content of the directory and of the parts. A page that it does not divide
//! has an image like any other page's.

use std::cell::RefCell;

use super::GRAIN_BYTES;
use super::image::{Expected, UNCOVERED_BYTES, image_bytes, seal_whole};
use crate::Error;
use crate::checksum::crc32c;
use crate::class::class_bytes;
use crate::header::{Header, PAGE_HEADER_BYTES, PageKind};
use crate::page::{OwnPage, Page};

/// In the kind of each block of an image in blocks.
const IN_BLOCKS: u8 = 0x80;
/// And of every block but the first.
const NOT_FIRST: u8 = 0x40;

/// Blocks of a page begin at multiples of this, or of their own size if that is less.
const ALIGN_BYTES: u32 = 4 << 10;

/// How a page is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divided {
    /// Bytes of the image: whole grains, and not more than the page has.
    pub image_bytes: u32,
    /// Where the first part begins.
    pub first_part: u32,
}

/// How pages are divided into blocks: their makers know.
pub(crate) trait Division: Send + Sync {
    /// Divides a page into blocks of `block_bytes`, which `image`, as long as the page, has afterwards but
    /// for the headers; `None` if that is not possible.
    fn divide(&self, page: Page<'_>, block_bytes: u32, image: Page<'_>) -> Option<Divided>;

    /// Makes the page again of a verified image, but for its header; `false` if it was never a page.
    fn unite(&self, image: Page<'_>, block_bytes: u32, divided: Divided, page: Page<'_>) -> bool;
}

/// Divides nothing.
#[cfg(test)]
pub(crate) struct Undivided;

#[cfg(test)]
impl Division for Undivided {
    fn divide(&self, _: Page<'_>, _: u32, _: Page<'_>) -> Option<Divided> {
        None
    }

    fn unite(&self, _: Page<'_>, _: u32, _: Divided, _: Page<'_>) -> bool {
        false
    }
}

/// The kind of the first block of an image in blocks, of a page of this kind.
pub(crate) fn kind_in_blocks(kind: u8) -> u8 {
    kind | IN_BLOCKS
}

/// Bytes of a block of the image that begins with this header, if it is in blocks.
pub(crate) fn block_bytes(header: Header) -> Option<u32> {
    if header.kind & IN_BLOCKS == 0 { None } else { block_bytes_of(header.kind) }
}

fn block_bytes_of(kind: u8) -> Option<u32> {
    PageKind::class_of_blocks(kind & !(IN_BLOCKS | NOT_FIRST)).map(|class| class_bytes(class) as u32)
}

/// An image with a header of this kind begins at a multiple of this number of bytes of the device.
pub(super) fn align_bytes(kind: u8) -> u32 {
    if kind & IN_BLOCKS == 0 { 1 } else { align_of_blocks(kind) }
}

/// The same of the image in blocks of a page of this kind.
pub(super) fn align_of_blocks(kind: u8) -> u32 {
    block_bytes_of(kind).map_or(1, |bytes| bytes.min(ALIGN_BYTES))
}

thread_local! {
    static MADE: RefCell<Option<OwnPage>> = const { RefCell::new(None) };
}

/// Divides a page if it is of a kind with blocks, and lends `then` the image, which still lacks its headers.
/// `then` does not wait.
pub(super) fn with_divided<T>(
    division: &dyn Division,
    page: Page<'_>,
    then: impl FnOnce(&OwnPage, Divided) -> T,
) -> Option<T> {
    let block_bytes = block_bytes_of(Header::of(page).kind)?;
    MADE.with_borrow_mut(|kept| {
        let fitting = kept.take().filter(|made| made.page().len_bytes() == page.len_bytes());
        let made = kept.insert(fitting.unwrap_or_else(|| OwnPage::new(page.len_bytes())));
        let divided = division.divide(page, block_bytes, made.page())?;
        Some(then(made, divided))
    })
}

/// Copies the blocks that a [`Division`] has made of a page into an image of that length, and completes it.
/// The header is the page's, with the image's sequence.
pub(super) fn pack(made: &OwnPage, divided: Divided, header: Header, image: &mut [u8]) {
    made.page().copy_out(0, image);
    let kind = kind_in_blocks(header.kind);
    let front_end = block_bytes_of(kind).unwrap_or_default();
    let image_grains = (divided.image_bytes / GRAIN_BYTES) as u16;
    seal(Header { kind, image_grains, front_end, back_start: divided.first_part, ..header }, image);
}

/// Gives all blocks of an image the identity and the sequence of this header, and the checksums that belong
/// to them.
pub(super) fn seal(header: Header, image: &mut [u8]) {
    let Some(block_bytes) = block_bytes(header) else { return };
    for (number, block) in image.chunks_mut(block_bytes as usize).enumerate() {
        let own = match number {
            0 => header,
            _ => {
                let Some(Header { front_end, back_start, .. }) = Header::decode(block) else { return };
                let kind = header.kind | NOT_FIRST;
                Header { kind, image_grains: number as u16, front_end, back_start, ..header }
            }
        };
        if number > 0 && planted!(OnlyFirstBlockSealed) {
            return;
        }
        seal_whole(own, block);
    }
}

/// Where the parts of an image are, as its first block says.
pub(crate) fn divided(header: Header) -> Divided {
    Divided { image_bytes: image_bytes(header), first_part: header.back_start }
}

/// Bytes of a block of an image; `None` if there is no such block.
pub(crate) fn length_of(number: u32, block_bytes: u32, image_bytes: u32) -> Option<u32> {
    let start = number.checked_mul(block_bytes)?;
    image_bytes.checked_sub(start).filter(|rest| *rest > 0).map(|rest| rest.min(block_bytes))
}

/// Verifies that `image` is the expected one, in blocks, and that all blocks are undamaged.
///
/// # Errors
/// [`Error::Corrupt`].
pub(super) fn verify(image: &[u8], expected: Expected, block_bytes: u32) -> Result<Header, Error> {
    let image = image.get(..expected.location.length_bytes() as usize).unwrap_or_default();
    let mut blocks = image.chunks(block_bytes as usize).enumerate();
    let first = blocks.next().map_or(&[][..], |(_, block)| block);
    let header = verify_block(first, 0, expected)?;
    for (number, block) in blocks {
        verify_block(block, number as u32, expected)?;
    }
    Ok(header)
}

/// Verifies that `block` is this block of the expected image, and undamaged. It has the length that the block
/// has.
///
/// # Errors
/// [`Error::Corrupt`], which names the difference.
pub(crate) fn verify_block(block: &[u8], number: u32, expected: Expected) -> Result<Header, Error> {
    let Expected { location, page, oldest_sequence } = expected;
    let corrupt = |should_be: String, is: String| Error::Corrupt {
        what: format!("block {number} of page {}", page.0),
        offset_bytes: location.offset_bytes(),
        expected: should_be,
        got: is,
    };
    let Some(header) = Header::decode(block) else {
        return Err(corrupt("a block".into(), format!("{} bytes", block.len())));
    };
    let checksum = crc32c(&block[UNCOVERED_BYTES..]);
    if header.checksum != checksum && !planted!(BlockChecksumIgnored) {
        return Err(corrupt(format!("checksum {:08x}", header.checksum), format!("{checksum:08x}")));
    }
    let mark = if number == 0 { IN_BLOCKS } else { IN_BLOCKS | NOT_FIRST };
    let is_marked = header.kind & (IN_BLOCKS | NOT_FIRST) == mark;
    let (found, own_number) = match number {
        0 => (image_bytes(header) == location.length_bytes(), 0),
        _ => (true, u32::from(header.image_grains)),
    };
    let is_own = header.page == page && usize::from(header.class) == location.class() && found;
    if !is_own || !is_marked || own_number != number {
        let (class, kind) = (header.class, header.kind);
        return Err(corrupt(
            format!("block {number} of page {} of size class {}", page.0, location.class()),
            format!(
                "block {own_number} of page {} of size class {class} and kind {kind:#x}: a misplaced write or read",
                header.page.0
            ),
        ));
    }
    if header.sequence < oldest_sequence {
        return Err(corrupt(
            format!("a block written with unit {oldest_sequence} or later"),
            format!("one of unit {}: a lost write", header.sequence),
        ));
    }
    let own_bytes = block_bytes_of(header.kind).unwrap_or_default();
    let is_as_long = length_of(number, own_bytes, location.length_bytes()) == Some(block.len() as u32);
    let first_part = header.back_start;
    let is_first = number > 0
        || header.front_end == own_bytes
            && first_part.is_multiple_of(4)
            && (PAGE_HEADER_BYTES..block.len() as u32).contains(&first_part);
    if !is_as_long || !is_first {
        return Err(corrupt("parts within the block".into(), format!("a first one at byte {first_part}")));
    }
    Ok(header)
}

/// Makes the page again of a verified image with this header, into `memory`, which is as long as the page.
///
/// # Errors
/// [`Error::Corrupt`] if no page was ever divided so.
pub(super) fn unpack(
    division: &dyn Division,
    header: Header,
    image: &[u8],
    memory: &mut [u8],
) -> Result<(), Error> {
    let page_bytes = memory.len() as u32;
    let (from, to) = (OwnPage::new(page_bytes), OwnPage::new(page_bytes));
    from.page().copy_from(0, image);
    let block_bytes = block_bytes(header).unwrap_or_default();
    let kind = header.kind & !(IN_BLOCKS | NOT_FIRST);
    let own = Header { kind, front_end: PAGE_HEADER_BYTES, back_start: page_bytes, ..header };
    own.store(to.page());
    if !division.unite(from.page(), block_bytes, divided(header), to.page()) {
        return Err(Error::Corrupt {
            what: format!("page {}", header.page.0),
            offset_bytes: 0,
            expected: "blocks that a page was divided into".into(),
            got: "others".into(),
        });
    }
    to.page().copy_out(0, memory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::PageId;
    use crate::segment::Location;

    const BLOCK_BYTES: u32 = 4096;
    const CLASS: usize = 2;

    /// An image of three blocks, the last one short, and its expectation.
    fn image() -> (Vec<u8>, Expected) {
        let mut image: Vec<u8> = (0..2 * BLOCK_BYTES + 640).map(|at| (at / 7) as u8).collect();
        let header = Header {
            checksum: 0,
            image_grains: (image.len() / 64) as u16,
            class: CLASS as u8,
            kind: kind_in_blocks(PageKind::BlockNode4 as u8),
            page: PageId(5),
            sequence: 77,
            front_end: BLOCK_BYTES,
            back_start: 100,
        };
        seal(header, &mut image);
        let location = Location::new(1 << 20, image.len() as u32, CLASS);
        (image, Expected { location, page: PageId(5), oldest_sequence: 77 })
    }

    fn block(image: &[u8], number: u32) -> &[u8] {
        image.chunks(BLOCK_BYTES as usize).nth(number as usize).unwrap()
    }

    #[test]
    fn each_block_is_verified_alone_and_all_of_them_together() {
        let (image, expected) = image();
        for number in 0..3 {
            let header = verify_block(block(&image, number), number, expected).unwrap();
            assert_eq!((header.page, header.sequence), (PageId(5), 77));
        }
        let header = super::super::pack::verify(&image, expected).unwrap();
        assert_eq!(divided(header), Divided { image_bytes: image.len() as u32, first_part: 100 });
        assert_eq!((block_bytes(header), align_bytes(header.kind)), (Some(BLOCK_BYTES), ALIGN_BYTES));
    }

    #[test]
    fn a_block_of_another_place_page_or_time_is_refused() {
        let (image, expected) = image();
        for (number, other) in [(1, 0), (0, 1), (2, 1)] {
            assert!(verify_block(block(&image, other), number, expected).is_err(), "{other} as {number}");
        }
        // As long as it, but of another number.
        let longer = Location::new(1 << 20, 4 * BLOCK_BYTES, CLASS);
        let said = verify_block(block(&image, 1), 2, Expected { location: longer, ..expected }).unwrap_err();
        assert!(said.to_string().contains("got block 1"), "{said}");
        let other = Expected { page: PageId(6), ..expected };
        assert!(verify_block(block(&image, 1), 1, other).is_err());
        let later = Expected { oldest_sequence: 78, ..expected };
        let said = verify_block(block(&image, 1), 1, later).unwrap_err();
        assert!(said.to_string().contains("lost write"), "{said}");
    }

    #[test]
    fn any_changed_bit_is_noticed_in_its_block() {
        let (image, expected) = image();
        for at in (0..image.len()).step_by(97) {
            let mut damaged = image.clone();
            damaged[at] ^= 1 << (at % 8);
            for number in 0..3 {
                let is_its = at / BLOCK_BYTES as usize == number as usize;
                let verdict = verify_block(block(&damaged, number), number, expected);
                assert_eq!(verdict.is_err(), is_its, "byte {at}, block {number}");
            }
            assert!(super::super::pack::verify(&damaged, expected).is_err());
        }
    }
}
