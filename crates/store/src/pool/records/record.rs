//! How records and their places lie in frames.
//!
//! ```text
//! record    0       8      16           18             20     24
//!           | tree  | hash | key length | value length | used | key, value, zeros up to a multiple of eight
//!           | u64   | u64  | u16        | u16          | u32  |
//!
//! place     63..48      47..39       38..0
//!           | of hash  | offset / 8 | the frame's number in its ring, from 1 on
//! ```
//!
//! A key length of zero ends a frame.

use super::RecordKey;
use crate::class::PAGE_BYTES_MIN;
use crate::page::{Page, padded};

/// Of a frame.
pub(super) const FRAME_BYTES: u32 = PAGE_BYTES_MIN as u32;
pub(super) const HEADER_BYTES: u32 = 24;

const NUMBER_BITS: u32 = 39;
const TAG_SHIFT: u32 = 48;

/// Pointer to a record: its frame's number, its offset, and some bits of its hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordPointer(u64);

impl RecordPointer {
    pub const NONE: Self = Self(0);

    pub fn new(hash: u64, number: u64, offset: u32) -> Self {
        Self(Self::tag(hash) << TAG_SHIFT | u64::from(offset / 8) << NUMBER_BITS | number)
    }

    fn tag(hash: u64) -> u64 {
        hash >> 24 & 0xffff
    }

    /// Whether a record with this hash may be there.
    pub fn may_have(self, hash: u64) -> bool {
        self != Self::NONE && self.0 >> TAG_SHIFT == Self::tag(hash)
    }

    /// The frame's number in its ring; zero of none.
    pub fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// Bytes from the frame's beginning on.
    pub fn offset(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32 % (FRAME_BYTES / 8) * 8
    }
}

/// Position of a pointer in a page of pointers.
#[derive(Clone, Copy)]
pub(super) struct PointerSlot<'a> {
    pub page: Page<'a>,
    pub offset: u32,
}

impl PointerSlot<'_> {
    pub fn get(self) -> RecordPointer {
        RecordPointer(self.page.long(self.offset))
    }

    pub fn set(self, place: RecordPointer) {
        self.page.set_long(self.offset, place.0);
    }
}

/// Bytes of a record in a frame.
pub(super) fn record_bytes(key_bytes: u32, value_bytes: u32) -> u32 {
    (HEADER_BYTES + padded(key_bytes) + padded(value_bytes)).next_multiple_of(8)
}

/// A record in a frame.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub page: Page<'a>,
    pub offset: u32,
}

impl<'a> Record<'a> {
    /// The one at an offset, if there is one.
    pub fn at(page: Page<'a>, offset: u32) -> Option<Self> {
        let record = Self { page, offset };
        (offset + HEADER_BYTES <= FRAME_BYTES && record.lengths().0 > 0).then_some(record)
    }

    pub fn lengths(self) -> (u32, u32) {
        let (key, value) = self.page.halves(self.offset + 16);
        (key.into(), value.into())
    }

    pub fn bytes(self) -> u32 {
        let (key, value) = self.lengths();
        record_bytes(key, value)
    }

    pub fn hash(self) -> u64 {
        self.page.long(self.offset + 8)
    }

    pub fn is(self, of: &RecordKey<'_>) -> bool {
        let (key, _) = self.lengths();
        self.hash() == of.hash
            && self.page.long(self.offset) == of.tree
            && self.page.compare(self.offset + HEADER_BYTES, key, of.key).is_eq()
    }

    pub fn value_offset(self) -> u32 {
        self.offset + HEADER_BYTES + padded(self.lengths().0)
    }

    /// Puts one there.
    pub fn put(page: Page<'a>, offset: u32, of: &RecordKey<'_>, value: &[u8]) -> Self {
        page.set_long(offset, of.tree);
        page.set_long(offset + 8, of.hash);
        page.set_halves(offset + 16, of.key.len() as u16, value.len() as u16);
        page.set_word(offset + 20, 0);
        page.copy_from(offset + HEADER_BYTES, of.key);
        let record = Self { page, offset };
        page.copy_from(record.value_offset(), value);
        record
    }

    /// Appends its value.
    pub fn copy_value(self, into: &mut Vec<u8>) {
        self.page.copy_to(self.value_offset(), self.lengths().1, into);
    }

    pub fn is_used(self) -> bool {
        self.page.word(self.offset + 20) != 0
    }

    pub fn set_used(self, used: bool) {
        self.page.set_word(self.offset + 20, used.into());
    }

    pub fn set_value(self, value: &[u8]) {
        let (key, _) = self.lengths();
        self.page.set_halves(self.offset + 16, key as u16, value.len() as u16);
        self.page.copy_from(self.value_offset(), value);
    }
}

/// The records of a frame, from its beginning to its end.
pub(super) fn records(page: Page<'_>) -> impl Iterator<Item = Record<'_>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let record = Record::at(page, offset)?;
        offset += record.bytes();
        Some(record)
    })
}

/// No record follows.
pub(super) fn end_at(page: Page<'_>, offset: u32) {
    if offset + HEADER_BYTES <= FRAME_BYTES {
        page.set_halves(offset + 16, 0, 0);
    }
}
