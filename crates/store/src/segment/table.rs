//! A list that grows without moving its entries, so that it can be read without a lock.

use std::sync::OnceLock;

/// Entries of the first part; every further part is twice as long.
const FIRST: usize = 1024;
const FIRST_BITS: u32 = FIRST.ilog2();
const PARTS: usize = 32;

/// Starts with defaults everywhere.
pub(super) struct Table<T> {
    parts: [OnceLock<Box<[T]>>; PARTS],
}

impl<T: Default> Table<T> {
    pub fn new() -> Self {
        Self { parts: [const { OnceLock::new() }; PARTS] }
    }

    /// The entry of this number, if it or a neighbour was ever asked for with [`Table::get`]. Whatever the
    /// number is, this takes no memory.
    #[inline]
    pub fn peek(&self, index: usize) -> Option<&T> {
        let shifted = index.checked_add(FIRST)?;
        let part = shifted.ilog2() - FIRST_BITS;
        self.parts.get(part as usize)?.get()?.get(shifted - (FIRST << part))
    }

    /// The entry of this number, below 2^32.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        let shifted = index + FIRST;
        let part = shifted.ilog2() - FIRST_BITS;
        let length = FIRST << part;
        let entries = self.parts[part as usize].get_or_init(|| (0..length).map(|_| T::default()).collect());
        &entries[shifted - length]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_entry_is_its_own() {
        let table = Table::<AtomicUsize>::new();
        for index in 0..100_000 {
            assert_eq!(table.get(index).fetch_add(index, Ordering::Relaxed), 0);
        }
        assert!((0..100_000).all(|index| table.get(index).load(Ordering::Relaxed) == index));
    }
}
