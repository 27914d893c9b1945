//! Intervals of keys.

/// The keys from one on to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyInterval<'a> {
    pub first: &'a [u8],
    pub last: &'a [u8],
}

impl KeyInterval<'_> {
    pub fn overlaps(self, other: KeyInterval<'_>) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}
