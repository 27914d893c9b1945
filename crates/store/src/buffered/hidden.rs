//! Keys that are hidden from a scan by removals of ranges.

use std::cell::RefCell;

use super::interval::KeyInterval;
use super::ranges::{Removals, Removed};
use crate::index::Version;
use crate::log::Timestamp;
use crate::sync::Arc;

/// The removals of all sources of a scan that are not newer than its snapshot. They are looked up as the scan
/// proceeds, not gathered before: the number of removals elsewhere does not matter.
#[derive(Clone)]
pub(crate) struct Hidden {
    sources: Vec<Arc<dyn Removals>>,
    at: Timestamp,
    /// The joint answer of all sources for the scan's last keys. A memtable may get newer removals meanwhile,
    /// but none that the snapshot sees.
    last: RefCell<Option<Removed>>,
}

impl Hidden {
    /// `None` if there are no removals.
    pub fn new(sources: Vec<Arc<dyn Removals>>, at: Timestamp) -> Option<Self> {
        (!sources.is_empty()).then(|| Self { sources, at, last: RefCell::default() })
    }

    /// The newest removal of a key.
    pub fn newest(&self, key: &[u8]) -> Option<Timestamp> {
        let mut last = self.last.borrow_mut();
        if let Some(last) = last.as_ref().filter(|last| last.has(key)) {
            return last.at;
        }
        let all = self.sources.iter().map(|source| source.around(key, self.at)).reduce(Removed::with);
        last.insert(all.unwrap_or_default()).at
    }

    /// Whether a version of a key is removed.
    pub fn has(&self, key: &[u8], version: Version) -> bool {
        self.newest(key).is_some_and(|removed_at| version.timestamp() < removed_at)
    }

    /// Whether one source removes all versions of an interval that are not newer than this one.
    pub fn has_all(&self, interval: KeyInterval<'_>, newest: Timestamp) -> bool {
        self.sources.iter().any(|source| {
            let removed = source.around(interval.first, self.at);
            removed.has(interval.last) && removed.at.is_some_and(|removed_at| newest < removed_at)
        })
    }
}
