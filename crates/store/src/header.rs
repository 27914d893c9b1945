//! The header that every page has, in memory and on the device.
//!
//! ```text
//! 0          4            6      7      8         16           24           28           32
//! | checksum | image      | class| kind | page id | write      | front end  | back start |
//! | crc32c   | grains u16 | u8   | u8   | u64     | sequence   | u32        | u32        |
//! ```
//!
//! A page in memory uses the bytes up to *front end* and from *back start* on. Its image on the device is
//! these two parts, one after the other, filled up with zeros to a whole number of grains of 64 bytes: the
//! unused bytes between them are not written. The checksum covers the image from byte 4 on. The write
//! sequence grows with every page write of the store, so that a stale image of the place's earlier owner is
//! told from the one that should have been written (a lost write).

use crate::page::Page;

/// Bytes of the header.
pub(crate) const PAGE_HEADER_BYTES: u32 = 32;

const CHECKSUM: u32 = 0;
const IMAGE: u32 = 4;
const PAGE_ID: u32 = 8;
const SEQUENCE: u32 = 16;
/// End of the bytes that a page uses at its front.
pub(crate) const FRONT_END: u32 = 24;
/// Start of the bytes that a page uses at its back.
pub(crate) const BACK_START: u32 = 28;

/// A page's number. Pages are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PageId(pub u64);

impl PageId {
    /// Pages from here on are not part of checkpoints: after a restart they are gone.
    pub const FIRST_VOLATILE: u64 = 1 << 40;

    /// Whether the page is gone after a restart.
    pub fn is_volatile(self) -> bool {
        self.0 >= Self::FIRST_VOLATILE
    }
}

/// Kinds of pages. The kind is part of the header, so a page of the wrong kind is detected when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageKind {
    /// A node of a B+-tree.
    Node = 1,
    /// A part of an overflow value.
    Overflow = 2,
    /// A part of the page table.
    Map = 3,
    /// A part of the list of an LSM-tree's tables.
    Manifest = 4,
    /// A part of a node of a Bε-tree.
    Part = 5,
    /// A piece of a leaf of a Bε-tree.
    Basement = 6,
    /// A node of a B+-tree whose image is in [blocks](crate::segment::blocks) of 4 KiB.
    BlockNode4 = 16,
    /// Of 8 KiB.
    BlockNode8 = 17,
    /// Of 16 KiB.
    BlockNode16 = 18,
    /// Of 32 KiB.
    BlockNode32 = 19,
}

impl PageKind {
    /// Nodes in blocks, by the blocks' size class.
    pub const BLOCK_NODES: [Self; 4] =
        [Self::BlockNode4, Self::BlockNode8, Self::BlockNode16, Self::BlockNode32];

    /// Size class of the blocks of a page of the kind `kind`; `None` if it has none.
    pub fn class_of_blocks(kind: u8) -> Option<usize> {
        Self::BLOCK_NODES.iter().position(|node| *node as u8 == kind)
    }
}

/// The header's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub checksum: u32,
    /// Length of the image in units of 64 bytes; no image has zero.
    pub image_grains: u16,
    pub class: u8,
    pub kind: u8,
    pub page: PageId,
    pub sequence: u64,
    pub front_end: u32,
    pub back_start: u32,
}

impl Header {
    /// As the page has it.
    pub fn of(page: Page<'_>) -> Self {
        let (image_grains, class_and_kind) = page.halves(IMAGE);
        Self {
            checksum: page.word(CHECKSUM),
            image_grains,
            class: class_and_kind as u8,
            kind: (class_and_kind >> 8) as u8,
            page: PageId(page.long(PAGE_ID)),
            sequence: page.long(SEQUENCE),
            front_end: page.word(FRONT_END),
            back_start: page.word(BACK_START),
        }
    }

    /// Into the page.
    pub fn store(self, page: Page<'_>) {
        page.set_word(CHECKSUM, self.checksum);
        page.set_halves(IMAGE, self.image_grains, u16::from(self.kind) << 8 | u16::from(self.class));
        page.set_long(PAGE_ID, self.page.0);
        page.set_long(SEQUENCE, self.sequence);
        page.set_word(FRONT_END, self.front_end);
        page.set_word(BACK_START, self.back_start);
    }

    /// The header at the front of an image's bytes; `None` if they are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: u32| bytes.get(at as usize..)?.first_chunk().copied().map(u32::from_le_bytes);
        let long = |at: u32| bytes.get(at as usize..)?.first_chunk().copied().map(u64::from_le_bytes);
        let image = word(IMAGE)?;
        Some(Self {
            checksum: word(CHECKSUM)?,
            image_grains: image as u16,
            class: (image >> 16) as u8,
            kind: (image >> 24) as u8,
            page: PageId(long(PAGE_ID)?),
            sequence: long(SEQUENCE)?,
            front_end: word(FRONT_END)?,
            back_start: word(BACK_START)?,
        })
    }

    /// The bytes of the header at the front of an image.
    pub fn encode(self) -> [u8; PAGE_HEADER_BYTES as usize] {
        let mut bytes = [0; PAGE_HEADER_BYTES as usize];
        let mut put = |at: u32, value: &[u8]| bytes[at as usize..][..value.len()].copy_from_slice(value);
        put(CHECKSUM, &self.checksum.to_le_bytes());
        put(IMAGE, &self.image_grains.to_le_bytes());
        put(IMAGE + 2, &[self.class, self.kind]);
        put(PAGE_ID, &self.page.0.to_le_bytes());
        put(SEQUENCE, &self.sequence.to_le_bytes());
        put(FRONT_END, &self.front_end.to_le_bytes());
        put(BACK_START, &self.back_start.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::OwnPage;

    #[test]
    fn page_and_bytes_have_the_same_header() {
        let header = Header {
            checksum: 0x0102_0304,
            image_grains: 0x0506,
            class: 7,
            kind: 8,
            page: PageId(0x090a_0b0c_0d0e_0f10),
            sequence: 0x1112_1314_1516_1718,
            front_end: 0x191a_1b1c,
            back_start: 0x1d1e_1f20,
        };
        let page = OwnPage::new(4096);
        header.store(page.page());
        let mut bytes = Vec::new();
        page.page().copy_to(0, PAGE_HEADER_BYTES, &mut bytes);
        assert_eq!(bytes, header.encode());
        assert_eq!(Header::of(page.page()), header);
        assert_eq!(Header::decode(&bytes), Some(header));
        assert_eq!(Header::decode(&bytes[1..]), None);
    }
}
