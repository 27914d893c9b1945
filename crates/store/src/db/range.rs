//! Ranges of keys.

use std::ops::{Bound, RangeBounds};

use super::overlay::Overlay;
use crate::index::{Direction, behind};

/// The keys from `lower` on, up to but without `upper`.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    pub lower: Vec<u8>,
    pub upper: Option<Vec<u8>>,
}

impl Range {
    pub fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Self {
        Self::new(range.start_bound().map(K::as_ref), range.end_bound().map(K::as_ref))
    }

    fn new(start: Bound<&[u8]>, end: Bound<&[u8]>) -> Self {
        let lower = match start {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) if planted!(ExcludedStartIncluded) => key.to_vec(),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match end {
            Bound::Included(key) if planted!(IncludedEndExcluded) => Some(key.to_vec()),
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        Self { lower, upper }
    }

    /// The keys in it that were given a value.
    pub fn written(&self, writes: &Overlay) -> Vec<Vec<u8>> {
        if self.is_empty() {
            return Vec::new();
        }
        let within = writes.range::<[u8], _>((Bound::Included(self.lower.as_slice()), self.end()));
        within.filter(|(_, value)| value.is_some()).map(|(key, _)| key.to_vec()).collect()
    }

    /// The upper bound.
    pub fn end(&self) -> Bound<&[u8]> {
        self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }

    pub fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| *upper <= self.lower)
    }

    /// Shrinks the range to the part beyond `key`, which was taken from one end.
    pub fn take(&mut self, direction: Direction, key: &[u8]) {
        match direction {
            Direction::Forward => {
                self.lower.clear();
                self.lower.extend_from_slice(key);
                self.lower.push(0);
            }
            Direction::Backward => {
                let upper = self.upper.get_or_insert_default();
                upper.clear();
                upper.extend_from_slice(key);
            }
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.lower.as_slice() && self.upper.as_ref().is_none_or(|upper| key < upper.as_slice())
    }
}
