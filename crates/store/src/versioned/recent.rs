//! The first records of a generation, in plain memory: most generations are given up before they have more,
//! so no pages are ever allocated for them.

use std::ops::Range;

use crate::Error;
use crate::hash::hash;
use crate::index::TreeId;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts with locks of their own.
const PARTS: usize = 8;

/// Chains of a part, by the key's hash.
const CHAINS: usize = 256;

/// Header of a record: one more than the offset of the previous record in its chain, or zero; the length of
/// its name; the length of its content.
const HEADER_WORDS: usize = 3;
const HEADER_BYTES: usize = 4 * HEADER_WORDS;

/// A part takes less, so that offsets in it fit into 32 bits.
const PART_BYTES_MAX: usize = 1 << 30;

/// Records by name. A record never changes.
pub(super) struct Recent {
    parts: [Mutex<Part>; PARTS],
    /// Bytes that this generation may still take, and bytes that all of them together may still take.
    own_left_bytes: AtomicU64,
    remaining_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Part {
    /// The records, one after another.
    bytes: Vec<u8>,
    /// Of each chain one more than the offset of its last record, or zero. Empty as long as there is no
    /// record.
    last: Vec<u32>,
}

impl Part {
    fn header(&self, start: usize) -> Option<[usize; HEADER_WORDS]> {
        let (words, _) = self.bytes.get(start..start + HEADER_BYTES)?.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word) as usize);
        Some(std::array::from_fn(word))
    }

    /// The record that begins at `start`: the one before it in its chain, its name, its kept bytes.
    fn record(&self, start: usize) -> Option<(usize, &[u8], &[u8])> {
        let [before, name, kept] = self.header(start)?;
        let (name, rest) = self.bytes.get(start + HEADER_BYTES..)?.split_at_checked(name)?;
        Some((before, name, rest.get(..kept)?))
    }
}

/// The part and the chain of a key.
fn place(tree: TreeId, key: &[u8]) -> (usize, usize) {
    let hash = (hash(tree.0.into(), key) >> 32) as usize;
    (hash % PARTS, hash / PARTS % CHAINS)
}

impl Recent {
    /// Takes up to `bytes_max`, as long as all together have them left.
    pub fn new(bytes_max: u64, remaining_bytes: &Arc<AtomicU64>) -> Self {
        Self {
            parts: Default::default(),
            own_left_bytes: AtomicU64::new(bytes_max),
            remaining_bytes: Arc::clone(remaining_bytes),
        }
    }

    /// Takes `bytes` of the remaining room. Returns whether there were that many.
    fn take(&self, bytes: u64) -> bool {
        let take = |remaining: &AtomicU64| {
            let less = |remaining: u64| remaining.checked_sub(bytes);
            remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        };
        if !take(&self.own_left_bytes) {
            return false;
        }
        let taken = take(&self.remaining_bytes);
        if !taken {
            self.own_left_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn part(&self, number: usize) -> MutexGuard<'_, Part> {
        self.parts[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a record of a key; `kept` are its two halves. `false` if it has no room.
    pub fn put(&self, (tree, key): (TreeId, &[u8]), name: &[u8], kept: [&[u8]; 2]) -> bool {
        let (number, chain) = place(tree, key);
        let kept_bytes = kept[0].len() + kept[1].len();
        let bytes = HEADER_BYTES + name.len() + kept_bytes;
        let mut part = self.part(number);
        if part.bytes.len() + bytes > PART_BYTES_MAX || !self.take(bytes as u64) {
            return false;
        }
        if part.last.is_empty() {
            part.last.resize(CHAINS, 0);
        }
        let start = part.bytes.len() as u32;
        let before = std::mem::replace(&mut part.last[chain], start + 1);
        for word in [before, name.len() as u32, kept_bytes as u32] {
            part.bytes.extend_from_slice(&word.to_le_bytes());
        }
        [name, kept[0], kept[1]].iter().for_each(|piece| part.bytes.extend_from_slice(piece));
        true
    }

    /// Applies `see` to the last record of a key whose name is within `names`, and returns the result.
    pub fn last_within<T>(
        &self,
        (tree, key): (TreeId, &[u8]),
        names: Range<&[u8]>,
        see: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let (number, chain) = place(tree, key);
        let part = self.part(number);
        let mut next = part.last.get(chain).map_or(0, |last| *last as usize);
        loop {
            let (before, name, kept) = part.record(next.checked_sub(1)?)?;
            if names.contains(&name) {
                return Some(see(kept));
            }
            next = before;
        }
    }

    /// Shows all records. `see` may wait.
    pub fn each(&self, see: &mut impl FnMut(&[u8], &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        for number in 0..PARTS {
            let copy = Part { bytes: self.part(number).bytes.clone(), last: Vec::new() };
            let mut start = 0;
            while let Some((_, name, kept)) = copy.record(start) {
                see(name, kept)?;
                start += HEADER_BYTES + name.len() + kept.len();
            }
        }
        Ok(())
    }
}

impl Drop for Recent {
    fn drop(&mut self) {
        let bytes: usize = (0..PARTS).map(|number| self.part(number).bytes.len()).sum();
        self.remaining_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREE: TreeId = TreeId(7);

    proptest! {
        #[test]
        fn what_was_put_last_is_found_first(
            records in proptest::collection::vec((0_u8..20, proptest::collection::vec(any::<u8>(), 0..40)), 0..200),
            all in 0_u64..8000,
            own in 0_u64..8000,
        ) {
            let remaining = Arc::new(AtomicU64::new(all));
            let recent = Recent::new(own, &remaining);
            let budget = all.min(own);
            // By key: names, the last one first, and kept bytes.
            let mut model: Vec<Vec<(Vec<u8>, Vec<u8>)>> = vec![Vec::new(); 20];
            let (mut taken, mut count) = (0, 0);
            for (number, (key, kept)) in (0_u8..=u8::MAX).zip(&records) {
                let name = vec![*key, u8::MAX - number];
                let bytes = (HEADER_BYTES + name.len() + kept.len()) as u64;
                let (one, other) = kept.split_at(kept.len() / 2);
                let fits = taken + bytes <= budget;
                prop_assert_eq!(recent.put((TREE, &[*key]), &name, [one, other]), fits);
                if fits {
                    taken += bytes;
                    count += 1;
                    model[usize::from(*key)].insert(0, (name, kept.clone()));
                }
                prop_assert_eq!(remaining.load(Ordering::Relaxed), all - taken);
            }
            for key in 0_u8..20 {
                for from in [0, 100, 200, 255] {
                    let names = &[key, from][..]..&[key + 1][..];
                    let found = recent.last_within((TREE, &[key]), names.clone(), <[u8]>::to_vec);
                    let expected = model[usize::from(key)].iter().find(|(name, _)| names.contains(&name.as_slice()));
                    prop_assert_eq!(found.as_ref(), expected.map(|(_, kept)| kept));
                }
            }
            let mut seen = 0;
            recent.each(&mut |name, kept| {
                seen += 1;
                let of_key = &model[usize::from(name[0])];
                assert!(of_key.iter().any(|(known, value)| known == name && value == kept));
                Ok(())
            }).unwrap();
            prop_assert_eq!(seen, count);
            drop(recent);
            prop_assert_eq!(remaining.load(Ordering::Relaxed), all);
        }
    }
}
