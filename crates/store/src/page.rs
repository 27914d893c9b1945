//! The bytes of a page in memory, as words that may be read while another thread changes them.
//!
//! Readers are optimistic: they look without a latch and find out afterwards whether what they saw was whole. So every access is a relaxed
//! atomic load or store of a word, every offset is checked, and nonsense gives a nonsensical answer, never a panic or an access outside of the page.

use std::sync::atomic::{AtomicU32, Ordering};

/// A page: little-endian words of four bytes. Offsets are in bytes and multiples of four unless said otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    words: &'a [AtomicU32],
}

impl<'a> Page<'a> {
    /// The page that these words are.
    pub fn new(words: &'a [AtomicU32]) -> Self {
        Self { words }
    }

    /// Bytes of the page.
    #[inline]
    pub fn len_bytes(self) -> u32 {
        self.words.len() as u32 * 4
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
        u64::from(self.word(offset + 4)) << 32 | u64::from(self.word(offset))
    }

    /// Changes two words.
    #[inline]
    pub fn set_long(self, offset: u32, value: u64) {
        self.set_word(offset, value as u32);
        self.set_word(offset + 4, (value >> 32) as u32);
    }

    /// Appends `length` bytes from `offset` on.
    pub fn copy_to(self, offset: u32, length: u32, into: &mut Vec<u8>) {
        let whole = length / 4 * 4;
        into.reserve(length as usize);
        for at in (0..whole).step_by(4) {
            into.extend_from_slice(&self.word(offset + at).to_le_bytes());
        }
        let rest = (length - whole) as usize;
        into.extend_from_slice(&self.word(offset + whole).to_le_bytes()[..rest]);
    }

    /// Stores `bytes` from `offset` on; what fills up their last word becomes zero.
    pub fn copy_from(self, offset: u32, bytes: &[u8]) {
        let chunks = bytes.chunks_exact(4);
        let rest = chunks.remainder();
        let mut at = offset;
        for chunk in chunks {
            self.set_word(at, u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
            at += 4;
        }
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            self.set_word(at, u32::from_le_bytes(last));
        }
    }

    /// How the `length` bytes from `offset` on compare with `other`.
    pub fn compare(self, offset: u32, length: u32, other: &[u8]) -> std::cmp::Ordering {
        let common = length.min(other.len() as u32);
        for at in (0..common).step_by(4) {
            let own = self.word(offset + at).to_le_bytes();
            let count = (common - at).min(4) as usize;
            let theirs = &other[at as usize..at as usize + count];
            match own[..count].cmp(theirs) {
                std::cmp::Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        length.cmp(&(other.len() as u32))
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

    /// All of `other`, which is as long.
    pub fn copy_page(self, other: Self) {
        for (to, from) in self.words.iter().zip(other.words) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
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
    length.next_multiple_of(4)
}
