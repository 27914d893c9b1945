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
//! the value is in overflow pages. Flag 4 marks [operands](super::operands) of the tree's merge operator,
//! which make a value together with the versions before them. Flags 1 and 4 together are a removal that a
//! merge operator has brought about.

use crate::log::Timestamp;

/// Bytes of a version.
pub(crate) const VERSION_BYTES: usize = 8;

const FLAGS_BITS: u32 = 8;
const TOMBSTONE: u64 = 1;
const OVERFLOW: u64 = 2;
const OPERANDS: u64 = 4;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    /// The version of a value that a commit has put.
    pub fn put(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS)
    }

    /// The version of a value in overflow pages.
    pub fn overflow(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | OVERFLOW)
    }

    /// The version of a record that a commit has removed.
    pub fn tombstone(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | TOMBSTONE)
    }

    /// The version of operands that a commit has written.
    pub fn operands(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | OPERANDS)
    }

    /// The version of a record that operands up to those of a commit have removed.
    pub fn merged_away(timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | OPERANDS | TOMBSTONE)
    }

    /// The version that the first bytes of a value have.
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

    /// The same version for another commit.
    pub fn at(self, timestamp: Timestamp) -> Self {
        Self(timestamp.0 << FLAGS_BITS | self.0 & ((1 << FLAGS_BITS) - 1))
    }

    pub fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    /// Whether a merge of tables may change it, or leave it out, although the key has no other version.
    pub fn may_go_alone(self) -> bool {
        self.0 & (TOMBSTONE | OPERANDS) != 0
    }

    pub fn is_overflow(self) -> bool {
        self.0 & OVERFLOW != 0
    }

    /// Whether it makes a value only together with older versions.
    pub fn is_operands(self) -> bool {
        self.0 & (OPERANDS | TOMBSTONE) == OPERANDS
    }

    /// Whether it is a removal by a merge operator. The log has operands instead.
    pub fn is_merged_away(self) -> bool {
        self.0 & (OPERANDS | TOMBSTONE) == OPERANDS | TOMBSTONE
    }
}
