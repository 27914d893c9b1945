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

    /// The start of the keys that have not come yet.
    pub fn start(&self) -> Bound<&[u8]> {
        Bound::Included(&self.from)
    }

    /// Whether a version from there on has come.
    pub fn has(&self, key: &[u8], version: Version) -> bool {
        version.timestamp() <= self.up_to && key == self.from
    }

    /// Whether a version has come, wherever it is.
    pub fn is_past(&self, key: &[u8], version: Version) -> bool {
        key < self.from.as_slice() || self.has(key, version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(progress: &Progress, key: &[u8], timestamp: u64) -> bool {
        progress.has(key, Version::put(Timestamp(timestamp)))
    }

    #[test]
    fn of_a_key_within_which_a_flush_has_ended_the_older_versions_have_come() {
        let within = Progress::within(b"b", Version::tombstone(Timestamp(7)));
        assert!(has(&within, b"b", 6) && has(&within, b"b", 7) && !has(&within, b"b", 8));
        // Other versions from there on have not come, whatever their age is.
        assert!(!has(&within, b"ba", 1));
        assert_eq!(within.start(), Bound::Included(&b"b"[..]));
        let is_past = |key: &[u8], timestamp| within.is_past(key, Version::put(Timestamp(timestamp)));
        assert!(is_past(b"a", 9) && is_past(b"b", 7) && !is_past(b"b", 8) && !is_past(b"ba", 1));
    }

    #[test]
    fn nothing_has_come_from_a_border_between_keys_on() {
        for progress in [Progress::default(), Progress::at(b"b")] {
            let from = progress.from.clone();
            assert!(!has(&progress, &from, 1) && progress.start() == Bound::Included(&from[..]));
        }
    }
}
