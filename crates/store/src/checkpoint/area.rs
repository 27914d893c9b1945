//! The area of superblocks.

/// Bytes that a copy of a superblock takes.
pub(super) const COPY_BYTES: u64 = 4 << 10;

/// End of the area of superblocks.
pub(crate) const END_BYTES: u64 = 128 << 10;
