//! How far the oldest frozen memtable has come into pages. A flush that ends with an error goes on from
//! there: a version that came twice would have its overflow value given up twice.

use std::ops::Bound;

use crate::index::Version;
use crate::log::Timestamp;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Everything before this key is in pages.
    pub from: Vec<u8>,
    /// Versions of the key itself up to this commit are there, too.
    up_to: Timestamp,
}

impl Progress {
    /// Everything before this key has come.
    pub fn at(key: &[u8]) -> Self {
        Self { from: key.to_vec(), up_to: Timestamp(0) }
    }

    /// Versions of the key up to this one have come, too.
    pub fn within(key: &[u8], version: Version) -> Self {
        Self { from: key.to_vec(), up_to: version.timestamp() }
    }

    /// Where what has not come begins.
    pub fn start(&self) -> Bound<&[u8]> {
        Bound::Included(&self.from)
    }

    /// Whether a version from there on has come.
    pub fn has(&self, key: &[u8], version: Version) -> bool {
        version.timestamp() <= self.up_to && key == self.from
    }
}
