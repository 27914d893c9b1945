//! Integer keys of a table: each record has a stretch of numbers, and its own key is the first of them.

/// Of an integer key.
pub(super) const BYTES: u64 = 8;

/// Keys of a stretch. Those of 2^32 records fit into a signed number of 64 bits.
pub(super) const SPACING: u64 = 1 << 31;

/// Keys of a stretch from here on are never inserted; those before, at random.
pub(super) const MISSING: u64 = SPACING / 2;
