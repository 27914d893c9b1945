//! Offsets of the fields of a page: see [`super::part`].

use crate::header::PAGE_HEADER_BYTES;

pub(super) const LEVEL: u32 = PAGE_HEADER_BYTES;
pub(super) const MESSAGES: u32 = LEVEL + 4;
pub(super) const RANGES: u32 = LEVEL + 8;
pub(super) const LEFT: u32 = LEVEL + 12;
/// A bit of the word of [`LEFT`] bytes.
pub(super) const MAY_GO: u32 = 1 << 31;
/// The start of the offsets.
pub(super) const SLOTS: u32 = LEVEL + 16;

/// Bytes of an offset.
pub(super) const SLOT_BYTES: u32 = 4;
/// Bytes of a pivot, range or message without its keys and value.
pub(super) const ENTRY_BYTES: u32 = 16;
pub(super) const KEY_LENGTH: u32 = 8;
pub(super) const OTHER: u32 = 12;
