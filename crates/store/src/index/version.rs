//! The version at the beginning of every record's value: the commit that wrote it, and the kind of its
//! content.
//!
//! ```text
//! 0          8
//! | version  | the user's value, a reference to overflow pages, or nothing
//! | u64      |
//! ```
//!
//! The version is the commit's timestamp, shifted left by eight, and flags. Flag 1 marks a tombstone: the
//! record was removed, and the key stays only for snapshots that still see an older version. Flag 2 says that
//! the value is in overflow pages.

use crate::log::Timestamp;

/// Bytes of a version.
pub(crate) const VERSION_BYTES: usize = 8;

const FLAGS_BITS: u32 = 8;
const TOMBSTONE: u64 = 1;
const OVERFLOW: u64 = 2;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    /// Of a value that a commit has put.
    pub fn put(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS)
    }

    /// Of a value in overflow pages.
    pub fn overflow(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | OVERFLOW)
    }

    /// Of a record that a commit has removed.
    pub fn tombstone(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | TOMBSTONE)
    }

    /// From the first bytes of a value.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    /// A value's version and the rest of it; `None` if it is too short to have one.
    pub fn split(value: &[u8]) -> Option<(Self, &[u8])> {
        let (bits, rest) = value.split_first_chunk::<VERSION_BYTES>()?;
        Some((Self(u64::from_le_bytes(*bits)), rest))
    }

    /// The commit that made it.
    pub fn timestamp(self) -> Timestamp {
        Timestamp(self.0 >> FLAGS_BITS)
    }

    /// The same of another commit.
    pub fn at(self, timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | self.0 & ((1 << FLAGS_BITS) - 1))
    }

    pub fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    pub fn is_overflow(self) -> bool {
        self.0 & OVERFLOW != 0
    }
}
