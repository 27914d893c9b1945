//! The longest key of a tree's pages, on which it depends how far parts are filled.
//!
//! The root's page has it, and it is noted there before a longer key enters the page: so no page below has a
//! longer one. That of a tree of an earlier format version is unknown, which counts as the longest possible.

use super::content::{Content, Summary};
use super::part;
use super::shape::Shape;
use super::tree::BeTree;
use crate::Error;
use crate::buffered::RangeTombstones;
use crate::pool::{Access, Denied};
use crate::sync::atomic::{AtomicU32, Ordering};

/// Words of the longest key; 0 if that is unknown, and until the root's page is read.
#[derive(Default)]
pub(super) struct LongestKey(AtomicU32);

impl LongestKey {
    /// Bytes, as long as a tree of this shape has them at most.
    fn bytes(&self, shape: &Shape) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => shape.key_bytes_max() as u64,
            words => (u64::from(words) * 4).min(shape.key_bytes_max() as u64),
        }
    }
}

/// As the root's page has it; a key without bytes counts as one word.
pub(super) fn words_of(key: &[u8]) -> u16 {
    u16::try_from(key.len().div_ceil(4).max(1)).unwrap_or(u16::MAX)
}

impl BeTree {
    fn longest_key_bytes(&self) -> u64 {
        self.longest_key.bytes(&self.shape)
    }

    /// As [`Shape::filled_bytes`], with the keys that there are.
    pub(super) fn filled_bytes(&self) -> u64 {
        self.shape.filled_bytes(self.longest_key_bytes())
    }

    /// As [`Shape::portion_bytes`].
    pub(super) fn portion_bytes(&self) -> u64 {
        self.shape.portion_bytes(self.longest_key_bytes())
    }

    /// As [`Shape::must_split`].
    pub(super) fn must_split(&self, level: u16, summary: &Summary) -> bool {
        self.shape.must_split(level, summary, self.longest_key_bytes())
    }

    /// Reads how long keys are in the tree. The caller has the turn.
    ///
    /// # Errors
    /// The pool's.
    pub(super) fn learn_longest_key(&self) -> Result<(), Error> {
        let level = self.root_level()?;
        let (_, words) = self.look((self.root, level), Access::Normal, |part| part.longest_key_words())?;
        self.longest_key.0.store(words.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Bounds of removals of ranges are about to enter the root's page, as with [`BeTree::note_key`].
    pub(super) fn note_bounds(&self, ranges: &RangeTombstones) -> Result<(), Error> {
        let mut bounds = ranges.fragments().iter().flat_map(|range| [&range.lower, &range.upper]);
        bounds.try_for_each(|bound| self.note_key(bound))
    }

    /// A key is about to enter the root's page. The caller has the turn.
    ///
    /// # Errors
    /// The pool's.
    pub(super) fn note_key(&self, key: &[u8]) -> Result<(), Error> {
        let (words, known) = (words_of(key), self.longest_key.0.load(Ordering::Relaxed));
        if known == 0 || u32::from(words) <= known || planted!(LongerKeyNotNoted) {
            return Ok(());
        }
        loop {
            match self.set_longest_key(words)? {
                Ok(()) => break,
                Err(denied) => self.shared.pool.images.recover(denied)?,
            }
        }
        self.longest_key.0.store(words.into(), Ordering::Relaxed);
        Ok(())
    }

    fn set_longest_key(&self, words: u16) -> Result<Result<(), Denied>, Error> {
        let root = self.fresh(&[self.root])?;
        let section = self.shared.pool.section();
        let locked = match section.lock(&root[0]) {
            Ok(locked) => locked,
            Err(denied) => return Ok(Err(denied)),
        };
        part::set_longest_key(locked.page(), words);
        Ok(Ok(()))
    }
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
