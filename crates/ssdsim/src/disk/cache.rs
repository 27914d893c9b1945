//! The cache for writes: ranges that are not on the platters.

use std::collections::{BTreeMap, BTreeSet};

/// A range of the newest write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dirty {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// Version in the content.
    pub version: u64,
    /// Counts writes into the cache.
    pub order: u64,
}

impl Dirty {
    pub fn end(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// Ranges never overlap: a write replaces the ranges that it covers.
#[derive(Debug)]
pub(super) struct WriteCache {
    capacity_bytes: u64,
    used_bytes: u64,
    by_offset: BTreeMap<u64, Dirty>,
    /// Order and offset: oldest first.
    by_age: BTreeSet<(u64, u64)>,
    next_order: u64,
}

impl WriteCache {
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            used_bytes: 0,
            by_offset: BTreeMap::new(),
            by_age: BTreeSet::new(),
            next_order: 0,
        }
    }

    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.used_bytes + bytes <= self.capacity_bytes
    }

    /// The order that the next write gets; all until now have a smaller one.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Takes a write for which there is room.
    pub fn insert(&mut self, offset_bytes: u64, length_bytes: u64, version: u64) {
        // A flush that waits for a replaced range must wait for the range that replaces it.
        let replaced = self.supersede(offset_bytes, length_bytes, version);
        let order = replaced.unwrap_or(self.next_order);
        self.next_order += 1;
        self.used_bytes += length_bytes;
        self.put(Dirty { offset_bytes, length_bytes, version, order });
    }

    /// Forgets the parts of this range that writes before `version` wrote, and returns the order of the
    /// oldest of them.
    pub fn supersede(&mut self, offset_bytes: u64, length_bytes: u64, version: u64) -> Option<u64> {
        let end = offset_bytes + length_bytes;
        // Ranges do not overlap, so at most one that begins before this one reaches into it.
        let first =
            self.by_offset.range(..=offset_bytes).next_back().map_or(offset_bytes, |(first, _)| *first);
        let touched: Vec<Dirty> = self
            .by_offset
            .range(first..end)
            .map(|(_, dirty)| *dirty)
            .filter(|dirty| dirty.end() > offset_bytes && dirty.version < version)
            .collect();
        let oldest = touched.iter().map(|dirty| dirty.order).min();
        for dirty in touched {
            self.remove(&dirty);
            let kept_end = dirty.end().min(offset_bytes);
            let kept_begin = dirty.offset_bytes.max(end);
            for (begin, end) in [(dirty.offset_bytes, kept_end), (kept_begin, dirty.end())] {
                if begin < end {
                    self.put(Dirty { offset_bytes: begin, length_bytes: end - begin, ..dirty });
                    self.used_bytes += end - begin;
                }
            }
            self.used_bytes -= dirty.length_bytes;
        }
        oldest
    }

    /// Whether all of a range is here.
    pub fn covers(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let end = offset_bytes + length_bytes;
        let mut covered = offset_bytes;
        while covered < end {
            match self.by_offset.range(..=covered).next_back() {
                Some((_, dirty)) if dirty.end() > covered => covered = dirty.end(),
                _ => return false,
            }
        }
        true
    }

    /// Ranges, oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = &Dirty> {
        self.by_age.iter().filter_map(|(_, offset)| self.by_offset.get(offset))
    }

    /// Whether a write with a smaller order than this waits here.
    pub fn has_older_than(&self, order: u64) -> bool {
        self.by_age.first().is_some_and(|(oldest, _)| *oldest < order)
    }

    /// Takes a range out to write it; its room stays in use until [`WriteCache::release`].
    pub fn take(&mut self, dirty: &Dirty) {
        self.remove(dirty);
    }

    /// A range taken with [`WriteCache::take`] has reached the platters; frees its room.
    pub fn release(&mut self, dirty: &Dirty) {
        self.used_bytes -= dirty.length_bytes;
    }

    /// The power is gone.
    pub fn clear(&mut self) {
        self.by_offset.clear();
        self.by_age.clear();
        self.used_bytes = 0;
    }

    fn put(&mut self, dirty: Dirty) {
        self.by_age.insert((dirty.order, dirty.offset_bytes));
        self.by_offset.insert(dirty.offset_bytes, dirty);
    }

    fn remove(&mut self, dirty: &Dirty) {
        self.by_offset.remove(&dirty.offset_bytes);
        self.by_age.remove(&(dirty.order, dirty.offset_bytes));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: u64 = 64;

    /// The version of each byte.
    fn versions(cache: &WriteCache) -> Vec<u64> {
        let mut versions = vec![0; BYTES as usize];
        for dirty in cache.oldest_first() {
            for byte in dirty.offset_bytes..dirty.end() {
                assert_eq!(versions[byte as usize], 0, "ranges overlap at {byte}");
                versions[byte as usize] = dirty.version;
            }
        }
        versions
    }

    proptest! {
        /// Compared with a plain array: the newest writes, the covered ranges, and the used bytes.
        #[test]
        fn it_holds_the_newest_write_to_every_byte(
            writes in prop::collection::vec((0..BYTES, 1..BYTES / 2, 0_u8..4), 1..40),
        ) {
            let mut cache = WriteCache::new(1 << 20);
            let mut model = vec![0_u64; BYTES as usize];
            for ((offset, length, action), version) in writes.into_iter().zip(1_u64..) {
                let length = length.min(BYTES - offset);
                let range = offset as usize..(offset + length) as usize;
                match action {
                    // A write that goes past the cache.
                    0 => {
                        cache.supersede(offset, length, version);
                        model[range].fill(0);
                    }
                    // The oldest is written back.
                    1 => {
                        let oldest = cache.oldest_first().next().copied();
                        if let Some(dirty) = oldest {
                            cache.take(&dirty);
                            cache.release(&dirty);
                            model[dirty.offset_bytes as usize..dirty.end() as usize].fill(0);
                        }
                    }
                    _ => {
                        cache.insert(offset, length, version);
                        model[range].fill(version);
                    }
                }
                prop_assert_eq!(&versions(&cache), &model);
                prop_assert_eq!(cache.used_bytes, model.iter().filter(|version| **version > 0).count() as u64);
                let covered = model[offset as usize..(offset + length) as usize].iter().all(|version| *version > 0);
                prop_assert_eq!(cache.covers(offset, length), covered);
            }
        }
    }

    #[test]
    fn older_writes_do_not_replace_newer_ones() {
        let mut cache = WriteCache::new(1 << 20);
        cache.insert(0, 8, 5);
        cache.supersede(0, 8, 3);
        assert!(cache.covers(0, 8));
    }

    #[test]
    fn a_flush_waits_for_what_came_before_it_only() {
        let mut cache = WriteCache::new(1 << 20);
        assert!(!cache.has_older_than(cache.next_order()));
        cache.insert(0, 8, 1);
        let mark = cache.next_order();
        cache.insert(8, 8, 2);
        assert!(cache.has_older_than(mark));
        let first = *cache.oldest_first().next().unwrap();
        cache.take(&first);
        assert!(!cache.has_older_than(mark));
        assert!(!cache.has_room_for(cache.capacity_bytes() - 8));
        cache.release(&first);
        assert!(cache.has_room_for(cache.capacity_bytes() - 8));
    }

    #[test]
    fn a_flush_also_waits_for_what_replaced_an_older_write() {
        let mut cache = WriteCache::new(1 << 20);
        cache.insert(0, 8, 1);
        let mark = cache.next_order();
        cache.insert(4, 8, 2);
        let first = *cache.oldest_first().next().unwrap();
        cache.take(&first);
        // Of the first write, bytes 4 to 8 are only in the second one.
        assert!(cache.has_older_than(mark));
    }
}
