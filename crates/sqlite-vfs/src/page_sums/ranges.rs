//! Sets of bytes of a file, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges by their begin; no two of them touch.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range, and joins it with its neighbours.
    pub fn insert(&mut self, range: Range<u64>) {
        let (mut begin, mut end) = (range.start, range.end);
        while let Some((other, its_end)) = self.last_from(end + 1).filter(|(_, its_end)| *its_end >= begin) {
            self.0.remove(&other);
            (begin, end) = (begin.min(other), end.max(its_end));
        }
        self.0.insert(begin, end);
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((begin, end)) = self.last_from(range.end).filter(|(_, end)| *end > range.start) {
            self.0.remove(&begin);
            if begin < range.start {
                self.0.insert(begin, range.start);
            }
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
    }

    /// Whether a byte is in the set.
    pub fn contains(&self, byte: u64) -> bool {
        self.last_from(byte + 1).is_some_and(|(_, end)| end > byte)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(begin, end)| *begin..*end)
    }

    /// The last range that begins before `limit`.
    fn last_from(&self, limit: u64) -> Option<(u64, u64)> {
        self.0.range(..limit).next_back().map(|(begin, end)| (*begin, *end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set_of_bytes(steps in proptest::collection::vec((any::<bool>(), 0_u64..60, 1_u64..20), 1..40)) {
            let (mut ranges, mut model) = (Ranges::default(), [false; 80]);
            for (adds, begin, length) in steps {
                if adds { ranges.insert(begin..begin + length) } else { ranges.remove(begin..begin + length) }
                model[begin as usize..(begin + length) as usize].fill(adds);
                for (byte, is_in) in model.iter().enumerate() {
                    prop_assert_eq!(ranges.contains(byte as u64), *is_in, "byte {}", byte);
                }
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", all);
                prop_assert_eq!(ranges.is_empty(), all.is_empty());
            }
        }
    }
}
