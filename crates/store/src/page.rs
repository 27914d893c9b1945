//! The bytes of a page in memory, as words that may be read while another thread changes them.
//!
//! Readers are optimistic: they look without a latch and check afterwards whether the page was unchanged. So
//! every access is a relaxed atomic load or store of a word, every offset is checked, and an inconsistent
//! page gives a wrong answer, never a panic or an access outside of the page.

use std::cmp::Ordering as Compared;
use std::sync::atomic::{AtomicU32, Ordering};

/// A page: little-endian words of four bytes. Offsets are in bytes and multiples of four unless said
/// otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    words: &'a [AtomicU32],
}

/// The four bytes of a word as a number that sorts like them.
#[inline]
fn sortable(word: &AtomicU32) -> u32 {
    u32::from_be(word.load(Ordering::Relaxed))
}

impl<'a> Page<'a> {
    /// The page that consists of these words.
    #[inline]
    pub fn new(words: &'a [AtomicU32]) -> Self {
        Self { words }
    }

    /// Bytes of the page.
    #[inline]
    pub fn len_bytes(self) -> u32 {
        self.words.len() as u32 * 4
    }

    /// The page's address in memory, for callers that hold the latch and copy many bytes at once.
    #[inline]
    pub fn as_ptr(self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    /// The word at `offset`; zero outside of the page.
    #[inline]
    pub fn word(self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).map_or(0, |word| u32::from_le(word.load(Ordering::Relaxed)))
    }

    /// Changes the word at `offset`.
    #[inline]
    pub fn set_word(self, offset: u32, value: u32) {
        if let Some(word) = self.words.get(offset as usize / 4) {
            word.store(value.to_le(), Ordering::Relaxed);
        }
    }

    /// The words of `length` bytes from `offset` on; fewer at the page's end.
    #[inline]
    pub fn words(self, offset: u32, length: u32) -> &'a [AtomicU32] {
        let start = (offset as usize / 4).min(self.words.len());
        let count = (length as usize).div_ceil(4).min(self.words.len() - start);
        &self.words[start..start + count]
    }

    /// The lower and the upper half of the word at `offset`.
    #[inline]
    pub fn halves(self, offset: u32) -> (u16, u16) {
        let word = self.word(offset);
        (word as u16, (word >> 16) as u16)
    }

    /// Changes both halves.
    #[inline]
    pub fn set_halves(self, offset: u32, low: u16, high: u16) {
        self.set_word(offset, u32::from(high) << 16 | u32::from(low));
    }

    /// Two words as one number.
    #[inline]
    pub fn long(self, offset: u32) -> u64 {
        u64::from(self.word(offset.saturating_add(4))) << 32 | u64::from(self.word(offset))
    }

    /// Changes two words.
    #[inline]
    pub fn set_long(self, offset: u32, value: u64) {
        self.set_word(offset, value as u32);
        self.set_word(offset + 4, (value >> 32) as u32);
    }

    /// Appends `length` bytes from `offset` on; zeros for bytes outside of the page. Never appends more than
    /// a page's bytes.
    #[inline]
    pub fn copy_to(self, offset: u32, length: u32, into: &mut Vec<u8>) {
        let length = length.min(self.len_bytes());
        let start = into.len();
        into.resize(start + padded(length) as usize, 0);
        let (chunks, _) = into[start..].as_chunks_mut();
        for (chunk, word) in chunks.iter_mut().zip(self.words(offset, length)) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        into.truncate(start + length as usize);
    }

    /// The same into `into`, as many bytes as it has; bytes that the page lacks stay as they are.
    pub fn copy_out(self, offset: u32, into: &mut [u8]) {
        let words = self.words(offset, into.len() as u32);
        for (chunk, word) in into.chunks_mut(4).zip(words) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..chunk.len()]);
        }
    }

    /// The part of the page from `offset` on, of `length` bytes; shorter at the page's end.
    #[inline]
    pub fn part(self, offset: u32, length: u32) -> Self {
        Self { words: self.words(offset, length) }
    }

    /// Stores `bytes` from `offset` on; the rest of their last word becomes zero.
    #[inline]
    pub fn copy_from(self, offset: u32, bytes: &[u8]) {
        let words = self.words(offset, bytes.len() as u32);
        let (chunks, rest) = bytes.as_chunks();
        for (word, chunk) in words.iter().zip(chunks) {
            word.store(u32::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        if let (Some(word), false) = (words.get(chunks.len()), rest.is_empty()) {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            word.store(u32::from_ne_bytes(last), Ordering::Relaxed);
        }
    }

    /// The order of the `length` bytes from `offset` on relative to `other`.
    #[inline]
    pub fn compare(self, offset: u32, length: u32, other: &[u8]) -> Compared {
        let common = other.len().min(length as usize);
        let words = self.words(offset, common as u32);
        let (chunks, rest) = other[..common].as_chunks();
        for (word, chunk) in words.iter().zip(chunks) {
            match sortable(word).cmp(&u32::from_be_bytes(*chunk)) {
                Compared::Equal => {}
                unequal => return unequal,
            }
        }
        if let (Some(word), false) = (words.get(chunks.len()), rest.is_empty()) {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            let unused_bits = 32 - 8 * rest.len();
            match (sortable(word) >> unused_bits).cmp(&(u32::from_be_bytes(last) >> unused_bits)) {
                Compared::Equal => {}
                unequal => return unequal,
            }
        }
        (length as usize).cmp(&other.len())
    }

    /// Moves `length` bytes within the page; the ranges may overlap.
    pub fn shift(self, from: u32, to: u32, length: u32) {
        if from < to {
            for at in (0..length).step_by(4).rev() {
                self.set_word(to + at, self.word(from + at));
            }
        } else {
            for at in (0..length).step_by(4) {
                self.set_word(to + at, self.word(from + at));
            }
        }
    }

    /// Copies `length` bytes of `other` from `from` on to `to`.
    #[inline]
    pub fn copy_part(self, to: u32, other: Page<'_>, from: u32, length: u32) {
        for (to, from) in self.words(to, length).iter().zip(other.words(from, length)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Copies all of `other`, which has the same length.
    pub fn copy_page(self, other: Page<'_>) {
        self.copy_part(0, other, 0, self.len_bytes());
    }
}

/// A page of its own, for scratch work and tests.
pub(crate) struct OwnPage(Box<[AtomicU32]>);

impl OwnPage {
    /// All zeros.
    pub fn new(length_bytes: u32) -> Self {
        Self((0..length_bytes / 4).map(|_| AtomicU32::new(0)).collect())
    }

    /// As a page.
    pub fn page(&self) -> Page<'_> {
        Page::new(&self.0)
    }
}

/// `length` rounded up to whole words.
#[inline]
pub(crate) fn padded(length: u32) -> u32 {
    length.saturating_add(3) & !3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back_and_compare_like_bytes(
            stored in proptest::collection::vec(0_u8..3, 0..20),
            other in proptest::collection::vec(0_u8..3, 0..20),
        ) {
            let own = OwnPage::new(64);
            (0..64).step_by(4).for_each(|at| own.page().set_word(at, u32::MAX));
            own.page().copy_from(8, &stored);
            let mut back = vec![9];
            own.page().copy_to(8, stored.len() as u32, &mut back);
            prop_assert_eq!(&back[1..], &stored[..]);
            prop_assert_eq!(own.page().compare(8, stored.len() as u32, &other), stored.cmp(&other));
            prop_assert_eq!(own.page().word(4), u32::MAX);
            prop_assert_eq!(own.page().word(8 + padded(stored.len() as u32)), u32::MAX);
        }
    }

    #[test]
    fn outside_of_a_page_there_is_nothing() {
        let own = OwnPage::new(16);
        let mut bytes = Vec::new();
        own.page().copy_from(12, &[1; 8]);
        own.page().copy_to(12, u32::MAX, &mut bytes);
        assert_eq!(bytes, [[1; 4], [0; 4], [0; 4], [0; 4]].concat());
        assert_eq!((own.page().word(16), own.page().words(u32::MAX, 8).len()), (0, 0));
        own.page().copy_part(4, own.page(), u32::MAX - 3, u32::MAX);
    }
}
