//! Range tombstones of a memtable, which come one by one.
//!
//! They are kept as [fragments](super::ranges) in a map, so that one more costs no more than those that it
//! meets. A removal is dropped when a newer one of the same keys comes that no reader can tell it from, and
//! neighbours with the same removals are joined: a range that is removed again and again is one fragment.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::ranges::{Fragment, RangeTombstones, Removed};
use crate::log::Timestamp;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LiveRanges {
    /// By their first key: the key after the last one, and the removals, the newest first.
    fragments: BTreeMap<Vec<u8>, (Vec<u8>, Vec<Timestamp>)>,
    bytes: u64,
}

/// A fragment's first key, with its end and its removals.
type Entry<'a> = (&'a Vec<u8>, &'a (Vec<u8>, Vec<Timestamp>));

fn bytes_of(lower: &[u8], upper: &[u8], removed_at: &[Timestamp]) -> u64 {
    (lower.len() + upper.len() + size_of_val(removed_at)) as u64
}

impl LiveRanges {
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// About how many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn insert(&mut self, lower: Vec<u8>, upper: Vec<u8>, removed_at: Vec<Timestamp>) {
        self.bytes += bytes_of(&lower, &upper, &removed_at);
        self.fragments.insert(lower, (upper, removed_at));
    }

    fn remove(&mut self, lower: &[u8]) -> Option<Fragment> {
        let (lower, (upper, removed_at)) = self.fragments.remove_entry(lower)?;
        self.bytes -= bytes_of(&lower, &upper, &removed_at);
        Some(Fragment { lower, upper, removed_at })
    }

    /// The last fragment that begins before a key, or with it.
    fn before(&self, key: &[u8]) -> Option<Entry<'_>> {
        self.fragments.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// The fragment that has a key.
    fn of(&self, key: &[u8]) -> Option<Entry<'_>> {
        self.before(key).filter(|(_, (upper, _))| key < upper.as_slice())
    }

    /// Cuts the fragment that has this key, and does not begin with it, in front of it.
    fn cut(&mut self, key: &[u8]) {
        let first = self.of(key).map(|(lower, _)| lower).filter(|lower| lower.as_slice() < key);
        let Some(whole) = first.cloned().and_then(|lower| self.remove(&lower)) else { return };
        self.insert(whole.lower, key.to_vec(), whole.removed_at.clone());
        self.insert(key.to_vec(), whole.upper, whole.removed_at);
    }

    /// Adds a removal of the keys from `lower` on up to, and without, `upper`. `needed` chooses the removals
    /// that stay of each fragment with such keys.
    pub fn add(
        &mut self,
        lower: &[u8],
        upper: &[u8],
        removed_at: Timestamp,
        needed: impl Fn(&Fragment) -> Vec<Timestamp>,
    ) {
        if lower >= upper {
            return;
        }
        self.cut(lower);
        self.cut(upper);
        let within = (Bound::Included(lower), Bound::Excluded(upper));
        let met: Vec<Vec<u8>> =
            self.fragments.range::<[u8], _>(within).map(|(lower, _)| lower.clone()).collect();
        let mut from = lower.to_vec();
        for mut fragment in met.iter().filter_map(|lower| self.remove(lower)).collect::<Vec<_>>() {
            if from < fragment.lower {
                self.append(Fragment {
                    lower: std::mem::take(&mut from),
                    upper: fragment.lower.clone(),
                    removed_at: vec![removed_at],
                });
            }
            from.clone_from(&fragment.upper);
            let place = fragment.removed_at.partition_point(|other| *other > removed_at);
            if fragment.removed_at.get(place) != Some(&removed_at) {
                fragment.removed_at.insert(place, removed_at);
            }
            fragment.removed_at = needed(&fragment);
            self.append(fragment);
        }
        if from.as_slice() < upper {
            self.append(Fragment { lower: from, upper: upper.to_vec(), removed_at: vec![removed_at] });
        }
        // The next fragment may have the same removals.
        if let Some(behind) = self.remove(upper) {
            self.append(behind);
        }
    }

    /// Adds a fragment, joined with the one before it if they have the same removals.
    fn append(&mut self, fragment: Fragment) {
        let before = self.before(&fragment.lower).filter(|(_, (upper, removed_at))| {
            *upper == fragment.lower && *removed_at == fragment.removed_at
        });
        match before.map(|(lower, _)| lower.clone()).and_then(|lower| self.remove(&lower)) {
            Some(before) => self.insert(before.lower, fragment.upper, fragment.removed_at),
            None => self.insert(fragment.lower, fragment.upper, fragment.removed_at),
        }
    }

    /// All removals.
    pub fn all(&self) -> RangeTombstones {
        self.fragments
            .iter()
            .map(|(lower, (upper, removed_at))| Fragment {
                lower: lower.clone(),
                upper: upper.clone(),
                removed_at: removed_at.clone(),
            })
            .collect()
    }

    /// The newest removal of a key that is not newer than `at`.
    pub fn newest(&self, key: &[u8], at: Timestamp) -> Option<Timestamp> {
        let (_, (_, removed_at)) = self.of(key)?;
        removed_at.iter().copied().find(|removed| *removed <= at)
    }

    /// The keys around `key` that have the same newest removal for a reader as of `at`.
    pub fn around(&self, key: &[u8], at: Timestamp) -> Removed {
        if let Some((lower, (upper, _))) = self.of(key) {
            return Removed { lower: lower.clone(), upper: Some(upper.clone()), at: self.newest(key, at) };
        }
        let lower = self.before(key).map(|(_, (upper, _))| upper.clone()).unwrap_or_default();
        let behind = self.fragments.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next();
        Removed { lower, upper: behind.map(|(lower, _)| lower.clone()), at: None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ranges::testing::{Removal, key};
    use super::*;
    use crate::buffered::{Removals as _, Retention};
    use crate::index::FixedHorizon;

    fn all(removals: &[Removal]) -> LiveRanges {
        let mut all = LiveRanges::default();
        for (lower, upper, at) in removals {
            all.add(lower, upper, Timestamp(*at), |fragment| fragment.removed_at.clone());
        }
        all
    }

    #[test]
    fn removals_that_no_reader_tells_apart_become_one() {
        let mut ranges = LiveRanges::default();
        for at in 1..=5_000 {
            // The last commit is not visible yet.
            let horizon = FixedHorizon::new(at - 1, at - 1, &[]);
            let retention = Retention::new(&horizon);
            let inner = if at % 3 == 0 { ([3], [7]) } else { ([1], [9]) };
            ranges.add(&inner.0, &inner.1, Timestamp(at), |range| retention.needed(range, false));
            assert!(ranges.all().count() <= 6, "{ranges:?}");
        }
        assert_eq!(ranges.newest(&[4], Timestamp(5_000)), Some(Timestamp(5_000)));
        // A snapshot keeps the removals that it sees.
        let mut ranges = LiveRanges::default();
        for at in 1..=100 {
            let horizon = FixedHorizon::new(at - 1, at - 1, if at > 40 { &[40] } else { &[] });
            let retention = Retention::new(&horizon);
            ranges.add(&[1], &[9], Timestamp(at), |range| retention.needed(range, false));
        }
        assert_eq!(ranges.newest(&[4], Timestamp(40)), Some(Timestamp(40)));
        assert_eq!(ranges.all().count(), 3);
    }

    proptest! {
        #[test]
        fn they_are_those_of_a_list(
            removals in proptest::collection::vec((key(), key(), 1_u64..20), 0..12),
            own in key(),
            at in 0_u64..22,
        ) {
            let (live, at) = (all(&removals), Timestamp(at));
            let list = super::super::ranges::testing::of(&removals);
            prop_assert_eq!(live.newest(&own, at), list.newest(&own, at));
            let (one, other) = (live.around(&own, at), list.around(&own, at));
            for removed in [&one, &other] {
                prop_assert_eq!(removed.at, list.newest(&own, at));
                prop_assert!(removed.has(&own));
            }
            let whole = live.all();
            prop_assert_eq!(whole.newest(&own, at), list.newest(&own, at));
            let ordered = whole.fragments().is_sorted_by(|one, other| one.upper <= other.lower);
            prop_assert!(ordered && whole.fragments().iter().all(|fragment| fragment.lower < fragment.upper));
            let bytes = |fragment: &Fragment| bytes_of(&fragment.lower, &fragment.upper, &fragment.removed_at);
            prop_assert_eq!(live.bytes(), whole.fragments().iter().map(bytes).sum::<u64>());
        }

        /// All keys of the interval around a key have the same newest removal.
        #[test]
        fn around_a_key_all_know_the_same(
            removals in proptest::collection::vec((key(), key(), 1_u64..20), 0..12),
            (own, other) in (key(), key()),
            at in 0_u64..22,
        ) {
            let (live, at) = (all(&removals), Timestamp(at));
            let list = super::super::ranges::testing::of(&removals);
            for removed in [live.around(&own, at), list.around(&own, at)] {
                if removed.has(&other) {
                    prop_assert_eq!(removed.at, list.newest(&other, at));
                }
            }
        }
    }
}
