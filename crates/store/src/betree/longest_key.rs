//! The longest key of a tree's pages. It determines how far parts are filled.
//!
//! The root's page has it, and it is noted there before a longer key enters the page: so no page below has a
//! longer one. The longest key of a tree of an earlier format version is unknown, which counts as the longest
//! possible.

use super::content::Content;
use super::shape::Shape;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Words of the longest key; 0 if that is unknown, and until the root's page is read.
#[derive(Default)]
pub(super) struct LongestKey(AtomicU32);

impl LongestKey {
    /// Words; `None` if that is unknown.
    pub fn words(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|words| *words > 0)
    }

    /// As the root's page has it.
    pub fn set(&self, words: u16) {
        self.0.store(words.into(), Ordering::Relaxed);
    }

    /// Bytes, at most those of the longest key of a tree of this shape.
    pub fn bytes(&self, shape: &Shape) -> u64 {
        let most_bytes = shape.key_bytes_max() as u64;
        self.words().map_or(most_bytes, |words| (u64::from(words) * 4).min(most_bytes))
    }
}

/// As the root's page has it; a key without bytes counts as one word.
pub(super) fn words_of(key: &[u8]) -> u16 {
    u16::try_from(key.len().div_ceil(4).max(1)).unwrap_or(u16::MAX)
}

impl Content {
    /// Whether it has a key longer than this; cuts between keys are a byte longer.
    pub fn has_longer_key_than(&self, words: u16) -> bool {
        let pivots = self.pivots.iter().map(|pivot| pivot.key.as_slice());
        let messages = (0..self.messages.len()).map(|number| self.messages.key(number));
        let bounds = self.ranges.fragments().iter();
        let bounds = bounds.flat_map(|range| [range.lower.as_slice(), range.upper.as_slice()]);
        words > 0 && pivots.chain(messages).chain(bounds).any(|key| key.len() > usize::from(words) * 4 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_and_never_none() {
        assert_eq!([&[][..], &[1], &[1; 4], &[1; 5]].map(words_of), [1, 1, 1, 2]);
        assert_eq!(words_of(&vec![0; 1 << 20]), u16::MAX, "as long as none is");
    }
}
