//! Range tombstones: removals of all keys from one on up to another one.
//!
//! They are kept in *fragments*, which do not overlap and lie in key order, each with the timestamps of all
//! removals that have its keys (RocksDB's and Pebble's fragmented range tombstones). So a look-up is a binary
//! search, and a fragment can be cut in two at any key. The end of a fragment does not belong to it. The
//! first key after `key` is `key` with a zero byte, so a cut after a key is exact.

use super::interval::KeyInterval;
use crate::index::{Version, behind};
use crate::log::Timestamp;

/// Keys from `lower` on up to, and without, `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub lower: Vec<u8>,
    pub upper: Vec<u8>,
    /// The commits that have removed these keys, the newest first; at least one.
    pub removed_at: Vec<Timestamp>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones(Vec<Fragment>);

/// The keys from `lower` on up to, and without, `upper`: for a reader, all of them have the same newest
/// removal, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    pub lower: Vec<u8>,
    pub upper: Option<Vec<u8>>,
    /// The newest removal that the reader sees.
    pub at: Option<Timestamp>,
}

impl Removed {
    pub fn has(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    /// The answers of two sources, joined for the keys that both cover.
    pub fn with(self, other: Self) -> Self {
        let upper = match (self.upper, other.upper) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { lower: self.lower.max(other.lower), upper, at: self.at.max(other.at) }
    }
}

/// Some removals of ranges.
pub(crate) trait Removals: Send + Sync {
    /// The keys around `key` that have the same newest removal for a reader as of `at`.
    fn around(&self, key: &[u8], at: Timestamp) -> Removed;
}

impl Removals for RangeTombstones {
    fn around(&self, key: &[u8], at: Timestamp) -> Removed {
        let place = self.0.partition_point(|fragment| fragment.upper.as_slice() <= key);
        match self.0.get(place) {
            Some(own) if own.lower.as_slice() <= key => {
                Removed { lower: own.lower.clone(), upper: Some(own.upper.clone()), at: own.newest(at) }
            }
            behind => {
                let before = place.checked_sub(1).and_then(|before| self.0.get(before));
                let lower = before.map(|before| before.upper.clone()).unwrap_or_default();
                Removed { lower, upper: behind.map(|behind| behind.lower.clone()), at: None }
            }
        }
    }
}

impl FromIterator<Fragment> for RangeTombstones {
    /// Of fragments that do not overlap, in key order.
    fn from_iter<T: IntoIterator<Item = Fragment>>(fragments: T) -> Self {
        Self(fragments.into_iter().collect())
    }
}

/// The newer one of a version and a removal of a range that has its key.
pub(crate) fn hidden_by(removed_at: Option<Timestamp>, found: Option<Version>) -> Option<Version> {
    match removed_at {
        Some(removed_at) if found.is_none_or(|found| found.timestamp() < removed_at) => {
            Some(Version::tombstone(removed_at))
        }
        _ => found,
    }
}

impl Fragment {
    /// The newest removal that is not newer than `at`.
    pub fn newest(&self, at: Timestamp) -> Option<Timestamp> {
        self.removed_at.iter().copied().find(|removed| *removed <= at)
    }

    /// The oldest removal that is newer than a version.
    pub fn first_after(&self, version: Timestamp) -> Option<Timestamp> {
        self.removed_at.iter().rev().copied().find(|removed| *removed > version)
    }

    /// The last key that it may have. It is the end if no key lies directly before that.
    pub fn last_key(&self) -> &[u8] {
        match self.upper.split_last() {
            Some((0, before)) => before,
            _ => &self.upper,
        }
    }

    /// Its keys, and perhaps one more.
    pub fn interval(&self) -> KeyInterval<'_> {
        KeyInterval { first: &self.lower, last: self.last_key() }
    }

    /// Whether it has all keys of an interval.
    pub fn contains(&self, interval: KeyInterval<'_>) -> bool {
        self.lower.as_slice() <= interval.first && interval.last < self.upper.as_slice()
    }
}

impl RangeTombstones {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fragments, in key order.
    pub fn fragments(&self) -> &[Fragment] {
        &self.0
    }

    /// The number of removals. A removal is counted in each of its fragments.
    pub fn count(&self) -> usize {
        self.0.iter().map(|fragment| fragment.removed_at.len()).sum()
    }

    /// Adds a removal of the keys from `lower` on up to, and without, `upper`.
    pub fn add(&mut self, lower: &[u8], upper: &[u8], removed_at: Timestamp) {
        if lower >= upper {
            return;
        }
        if self.0.last().is_none_or(|last| last.upper.as_slice() <= lower) {
            // They mostly come in order.
            self.0.push(Fragment { lower: lower.into(), upper: upper.into(), removed_at: vec![removed_at] });
            return;
        }
        self.cut(lower);
        self.cut(upper);
        let start = self.0.partition_point(|fragment| fragment.lower.as_slice() < lower);
        let end = self.0.partition_point(|fragment| fragment.lower.as_slice() < upper);
        let mut from = lower.to_vec();
        let mut within = Vec::new();
        for mut fragment in self.0.drain(start..end) {
            let lower = std::mem::replace(&mut from, fragment.upper.clone());
            if lower < fragment.lower {
                let upper = fragment.lower.clone();
                within.push(Fragment { lower, upper, removed_at: vec![removed_at] });
            }
            let place = fragment.removed_at.partition_point(|other| *other > removed_at);
            if fragment.removed_at.get(place) != Some(&removed_at) {
                fragment.removed_at.insert(place, removed_at);
            }
            within.push(fragment);
        }
        if from.as_slice() < upper {
            within.push(Fragment { lower: from, upper: upper.to_vec(), removed_at: vec![removed_at] });
        }
        self.0.splice(start..start, within);
    }

    /// Cuts the fragment that has this key, and does not begin with it, in front of it.
    fn cut(&mut self, key: &[u8]) {
        let place = self.0.partition_point(|fragment| fragment.upper.as_slice() <= key);
        let Some(fragment) = self.0.get_mut(place).filter(|fragment| fragment.lower.as_slice() < key) else {
            return;
        };
        let behind = Fragment { lower: key.to_vec(), ..fragment.clone() };
        fragment.upper = key.to_vec();
        self.0.insert(place + 1, behind);
    }

    /// Adds all removals of others.
    pub fn extend(&mut self, others: &Self) {
        for fragment in &others.0 {
            for removed_at in &fragment.removed_at {
                self.add(&fragment.lower, &fragment.upper, *removed_at);
            }
        }
    }

    /// Takes out the removals of keys up to this one, and leaves those after it. Without a key, takes out
    /// all.
    pub fn take_up_to(&mut self, last: Option<&[u8]>) -> Self {
        let Some(last) = last else { return std::mem::take(self) };
        let end = behind(last);
        self.cut(&end);
        let count = self.0.partition_point(|fragment| fragment.lower < end);
        Self(self.0.drain(..count).collect())
    }

    /// The removals of keys after the first, and up to the second.
    pub fn within(&self, after: Option<&[u8]>, last: Option<&[u8]>) -> Self {
        let mut rest = self.clone();
        if let Some(after) = after {
            rest.take_up_to(Some(after));
        }
        rest.take_up_to(last)
    }

    /// The removals of keys from the first up to, and without, the second.
    pub fn between(&self, lower: &[u8], upper: Option<&[u8]>) -> Self {
        let mut own = self.clone();
        let mut within = own.split_off(lower);
        if let Some(upper) = upper {
            within.split_off(upper);
        }
        within
    }

    /// Takes out the removals of this key and larger ones.
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        self.cut(key);
        let count = self.0.partition_point(|fragment| fragment.lower.as_slice() < key);
        Self(self.0.split_off(count))
    }

    /// Takes out the removals of keys from the first up to, and without, the second.
    pub fn remove_between(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let mut behind = self.split_off(lower);
        if let Some(upper) = upper {
            self.0.extend(behind.split_off(upper).0);
        }
    }

    /// Keeps the removals of each fragment that `needed` returns for it. Neighbours with the same removals
    /// are joined.
    pub fn retain(&mut self, needed: impl Fn(&Fragment) -> Vec<Timestamp>) {
        self.0.retain_mut(|fragment| {
            fragment.removed_at = needed(fragment);
            !fragment.removed_at.is_empty()
        });
        self.join();
    }

    /// Joins adjacent fragments that have the same removals.
    pub fn join(&mut self) {
        self.0.dedup_by(|next, before| {
            let is_same = before.upper == next.lower && before.removed_at == next.removed_at;
            if is_same {
                before.upper = std::mem::take(&mut next.upper);
            }
            is_same
        });
    }

    /// Takes out the older half of a single fragment's removals, and leaves the newer ones.
    pub fn take_older(&mut self) -> Self {
        let Some(fragment) = self.0.first_mut() else { return Self::default() };
        let removed_at = fragment.removed_at.split_off(fragment.removed_at.len() / 2);
        let older = Fragment { removed_at, ..fragment.clone() };
        self.0.retain(|fragment| !fragment.removed_at.is_empty());
        Self(vec![older])
    }

    /// Takes out the removals that are newer than a commit.
    pub fn take_newer_than(&mut self, at: Option<Timestamp>) -> Self {
        let mut newer = Self::default();
        let Some(at) = at else { return newer };
        for fragment in &mut self.0 {
            let count = fragment.removed_at.partition_point(|removed| *removed > at);
            let removed_at: Vec<_> = fragment.removed_at.drain(..count).collect();
            if !removed_at.is_empty() {
                newer.0.push(Fragment { removed_at, ..fragment.clone() });
            }
        }
        self.0.retain(|fragment| !fragment.removed_at.is_empty());
        newer
    }

    /// The fragment that has a key.
    pub fn of(&self, key: &[u8]) -> Option<&Fragment> {
        let fragment = self.0.get(self.0.partition_point(|fragment| fragment.upper.as_slice() <= key))?;
        (fragment.lower.as_slice() <= key).then_some(fragment)
    }

    /// The newest removal of a key that is not newer than `at`.
    pub fn newest(&self, key: &[u8], at: Timestamp) -> Option<Timestamp> {
        self.of(key)?.newest(at)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use proptest::prelude::*;

    use super::*;

    /// The first key, the end, and the commit.
    pub(crate) type Removal = (Vec<u8>, Vec<u8>, u64);

    /// Few keys, so that ranges meet.
    pub(crate) fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0_u8..3, 1..4)
    }

    /// All of these.
    pub(crate) fn of(removals: &[Removal]) -> RangeTombstones {
        let mut all = RangeTombstones::default();
        removals.iter().for_each(|(lower, upper, at)| all.add(lower, upper, Timestamp(*at)));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::testing::{Removal, key, of};
    use super::*;

    /// The removals of a key, by looking at all of them.
    fn expected(removals: &[Removal], key: &[u8]) -> Vec<u64> {
        let has = |(lower, upper, _): &&Removal| lower.as_slice() <= key && key < upper.as_slice();
        let all: BTreeSet<u64> = removals.iter().filter(has).map(|(.., at)| *at).collect();
        all.into_iter().rev().collect()
    }

    fn removals(all: &RangeTombstones, key: &[u8]) -> Vec<u64> {
        all.of(key).map_or_else(Vec::new, |fragment| fragment.removed_at.iter().map(|at| at.0).collect())
    }

    #[test]
    fn neighbours_with_the_same_removals_become_one() {
        let mut all = of(&[(vec![1], vec![9], 5), (vec![3], vec![4], 2), (vec![6], vec![7], 4)]);
        all.retain(|fragment| fragment.removed_at[..1].to_vec());
        assert_eq!(all, of(&[(vec![1], vec![9], 5)]));
    }

    #[test]
    fn the_end_is_not_removed_and_the_beginning_is() {
        let all = of(&[(b"b".to_vec(), b"d".to_vec(), 5)]);
        let at = |key: &[u8], at| all.newest(key, Timestamp(at)).map(|at| at.0);
        assert_eq!((at(b"b", 9), at(b"c", 5), at(b"c", 4)), (Some(5), Some(5), None));
        assert_eq!((at(b"a", 9), at(b"d", 9), at(b"cz", 9)), (None, None, Some(5)));
        assert!(of(&[(b"d".to_vec(), b"b".to_vec(), 5)]).is_empty());
        assert_eq!(all.fragments()[0].last_key(), b"d");
        assert_eq!(all.within(None, Some(b"b")).fragments()[0].last_key(), b"b");
    }

    proptest! {
        #[test]
        fn they_remove_what_all_of_them_remove(
            removals_ in proptest::collection::vec((key(), key(), 1_u64..20), 0..12),
            own in key(),
        ) {
            let all = of(&removals_);
            prop_assert_eq!(removals(&all, &own), expected(&removals_, &own));
            let ordered = all.fragments().is_sorted_by(|one, other| one.upper <= other.lower);
            prop_assert!(ordered && all.fragments().iter().all(|fragment| fragment.lower < fragment.upper));
        }

        /// However they are cut, the parts together are the whole, and none has a key of another.
        #[test]
        fn parts_are_the_whole(
            removals_ in proptest::collection::vec((key(), key(), 1_u64..20), 0..12),
            (one, other) in (key(), key()),
            own in key(),
        ) {
            let all = of(&removals_);
            let (one, other) = if one <= other { (one, other) } else { (other, one) };
            let parts =
                [all.within(None, Some(&one)), all.within(Some(&one), Some(&other)), all.within(Some(&other), None)];
            let place = usize::from(own > one) + usize::from(own > other);
            for (number, part) in parts.iter().enumerate() {
                let here = if number == place { expected(&removals_, &own) } else { Vec::new() };
                prop_assert_eq!(removals(part, &own), here);
            }
            let mut again = parts[2].clone();
            again.extend(&parts[0]);
            again.extend(&parts[1]);
            prop_assert_eq!(removals(&again, &own), expected(&removals_, &own));
        }
    }
}
