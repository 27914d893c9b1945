//! Size classes of pages: each is twice as large as the one before.

/// Smallest page.
pub(crate) const PAGE_BYTES_MIN: u64 = 4 << 10;

/// Sizes of pages: 4 KiB to 1 MiB.
pub(crate) const CLASSES: usize = 9;

/// Bytes of a page of this class.
#[inline]
pub(crate) fn class_bytes(class: usize) -> u64 {
    PAGE_BYTES_MIN << class
}
