//! Messages meet older ones, or the records of a leaf: versions that no reader will see are left out, and
//! operands become values if their base is known.
//!
//! A message that replaces an older one, and is replaced itself before it reaches its leaf, never gets there.
//! So most messages of keys that are written often end in a buffer.

use std::cmp::Ordering;
use std::ops::Range;

use super::content::{Content, ranges_bytes};
use super::in_place::Changes;
use super::messages::Messages;
use super::part::Part;
use super::progress::Progress;
use super::tree::BeTree;
use crate::buffered::{Folding, Fragment, KeyVersions, RangeTombstones, Retention};
use crate::index::{Horizon, Version};
use crate::pool::OptimisticGuard;
use crate::sync::Arc;
use crate::sync::atomic::Ordering::Relaxed;

/// See the module.
pub(super) struct Merging<'a> {
    tree: &'a BeTree,
    horizon: Option<Arc<dyn Horizon>>,
    /// `None` when the store is gone: everything stays.
    retention: Option<Retention>,
    /// Overflow values that were left out.
    gone: Vec<Gone>,
}

/// An overflow value that was left out.
struct Gone {
    key: Vec<u8>,
    version: Version,
    reference: Vec<u8>,
}

/// Messages on their way down.
#[derive(Clone, Debug)]
pub(super) struct Flushed {
    pub messages: Arc<Messages>,
    pub range: Range<usize>,
    pub ranges: RangeTombstones,
}

impl Flushed {
    /// Flushes all of these messages and removals.
    pub fn all(messages: Messages, ranges: RangeTombstones) -> Self {
        let range = 0..messages.len();
        Self { messages: Arc::new(messages), range, ranges }
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty() && self.ranges.is_empty()
    }

    /// The first key of all of it.
    pub fn first_key(&self) -> &[u8] {
        let message = (!self.range.is_empty()).then(|| self.messages.key(self.range.start));
        let range = self.ranges.fragments().first().map(|range| range.lower.as_slice());
        message.into_iter().chain(range).min().unwrap_or_default()
    }

    /// Bytes that it takes in a page.
    pub fn bytes(&self) -> u64 {
        self.messages.page_bytes(self.range.clone()) + ranges_bytes(&self.ranges)
    }
}

impl<'a> Merging<'a> {
    pub fn new(tree: &'a BeTree) -> Self {
        let horizon = tree.shared.flush_horizon();
        let retention = horizon.as_deref().map(Retention::new);
        Self { tree, horizon, retention, gone: Vec::new() }
    }

    /// The removals of ranges that are still needed.
    pub fn needed(&self, mut ranges: RangeTombstones) -> RangeTombstones {
        if let Some(retention) = &self.retention {
            ranges.retain(|range| retention.needed(range, false));
        }
        ranges.join();
        ranges
    }

    /// A part with the flushed messages added to its buffer.
    pub fn buffer_with(&mut self, flushed: &Flushed, before: Content) -> Content {
        let mut ranges = before.ranges;
        ranges.extend(&flushed.ranges);
        let messages = self.merge(flushed, &before.messages, &ranges, false);
        Content { ranges: self.needed(ranges), messages, ..before }
    }

    /// The records of a leaf with the flushed messages applied. Removals of ranges end here.
    pub fn records_with(&mut self, flushed: &Flushed, before: &Messages) -> Messages {
        self.merge(flushed, before, &flushed.ranges, true)
    }

    /// The changes of a page by the flushed messages. No other task changes the page meanwhile. `None` if the
    /// page has to be [read](Part::content) for that: it has to be tidied up, has removals of ranges, or has
    /// changed places.
    pub fn changes(
        &mut self,
        flushed: &Flushed,
        guard: &OptimisticGuard<'_>,
        is_leaf: bool,
    ) -> Option<Changes> {
        let below = Part::new(guard.page());
        let is_untidy = is_leaf && below.may_go();
        if !flushed.ranges.is_empty() || !below.is_in_place() || is_untidy {
            return None;
        }
        let newer = &flushed.messages;
        let (mut changes, mut versions) = (Changes::default(), KeyVersions::default());
        let (mut new, mut old) = (flushed.range.start, below.messages().start);
        while new < flushed.range.end {
            let key = newer.key(new);
            let news = new..newer.end_of_key(new, flushed.range.end);
            let olds = below.all_of(below.first_from(old, key), key);
            let only = newer.get(new).filter(|_| news.len() == 1 && olds.is_empty());
            (new, old) = (news.end, olds.end);
            if let Some(only) = only.filter(|(_, version, _)| !version.may_go_alone()) {
                changes.replace(below, olds, &[only])?;
                continue;
            }
            let before = below.copied(olds.clone()).filter(|_| guard.is_valid())?;
            together(&mut versions, newer.iter(news), before.iter(0..before.len()));
            self.leave_out(&mut versions, None, is_leaf);
            let stay: Vec<_> = versions
                .all
                .iter()
                .map(|held| (versions.key(), held.version, versions.value(held)))
                .collect();
            changes.replace(below, olds, &stay)?;
        }
        (changes.is_possible(below) && guard.is_valid()).then_some(changes)
    }

    fn merge(
        &mut self,
        flushed: &Flushed,
        before: &Messages,
        ranges: &RangeTombstones,
        is_leaf: bool,
    ) -> Messages {
        let newer = &flushed.messages;
        let mut messages =
            Messages::with_room_for(&[(newer, flushed.range.clone()), (before, 0..before.len())]);
        let (mut new, mut old, mut versions) = (flushed.range.start, 0, KeyVersions::default());
        loop {
            let new_end = newer.end_of_key(new, flushed.range.end);
            let old_end = before.end_of_key(old, before.len());
            let order = match (new < new_end, old < old_end) {
                (false, false) => return messages,
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (true, true) => newer.key(new).cmp(before.key(old)),
            };
            // The versions of the next key, of either or both.
            let news = new..if order == Ordering::Greater { new } else { new_end };
            let olds = old..if order == Ordering::Less { old } else { old_end };
            (new, old) = (news.end, olds.end);
            let only = match (news.len(), olds.len()) {
                (1, 0) => newer.get(news.start),
                (0, 1) => before.get(olds.start),
                _ => None,
            };
            if let Some((key, version, value)) = only.filter(|_| ranges.is_empty())
                && !version.may_go_alone()
            {
                messages.push(key, version, value);
                continue;
            }
            together(&mut versions, newer.iter(news), before.iter(olds));
            let removed = ranges.of(versions.key());
            preempt!();
            self.leave_out(&mut versions, removed, is_leaf);
            for held in &versions.all {
                messages.push(versions.key(), held.version, versions.value(held));
            }
        }
    }

    /// Removes those of a key's versions that no reader will see, and folds operands.
    pub fn leave_out(&mut self, versions: &mut KeyVersions, removed: Option<&Fragment>, is_leaf: bool) {
        let is_alone = versions.all.len() == 1 && removed.is_none();
        if is_alone && !versions.all.iter().any(|held| held.version.may_go_alone()) {
            return;
        }
        // A leaf has no removals of ranges: it has one of each of its keys instead.
        let removed = match removed {
            Some(removed) if is_leaf => {
                if !planted!(RangeEndsAboveLeaf) {
                    remove_each(versions, removed);
                }
                None
            }
            removed => removed,
        };
        let Self { tree, retention: Some(retention), gone, .. } = self else { return };
        let is_oldest = is_leaf || planted!(TombstoneStopsAbove);
        take_unneeded(retention, versions, (removed, is_oldest), gone);
        if versions.all.iter().any(|held| held.version.is_operands()) {
            let operator = tree.operator.as_deref();
            let bytes_max = tree.pages.shape.value_bytes_max();
            let folding = Folding {
                operator,
                retention,
                removed,
                // A removal that is replayed comes to a buffer again, over newer versions.
                is_removed_for_good: false,
                is_oldest: is_leaf,
                bytes_max,
            };
            let failures = folding.fold(versions);
            tree.pages.counters.operator_failures.fetch_add(failures, Relaxed);
            take_unneeded(retention, versions, (removed, is_leaf), gone);
        }
    }

    /// Frees the overflow values that were left out: the merged messages are in their pages.
    pub fn give_up(&mut self) {
        self.give_up_if(|_| true);
    }

    /// The same for the values of versions that this progress has passed.
    pub fn give_up_entered(&mut self, progress: &Progress) {
        self.give_up_if(|gone| progress.is_past(&gone.key, gone.version));
    }

    fn give_up_if(&mut self, is_merged: impl Fn(&Gone) -> bool) {
        for gone in self.gone.extract_if(.., |gone| is_merged(gone)) {
            if let Some(horizon) = self.horizon.as_ref().filter(|_| !planted!(LeftOutValueLeaks)) {
                horizon.overflow_is_gone(&gone.reference);
            }
        }
    }
}

/// Removes those of a key's versions that no reader will see, and notes the overflow values among them.
fn take_unneeded(
    retention: &Retention,
    versions: &mut KeyVersions,
    (removed, is_oldest): (Option<&Fragment>, bool),
    gone: &mut Vec<Gone>,
) {
    for held in retention.take_unneeded(&mut versions.all, removed, is_oldest) {
        if held.version.is_overflow() {
            let (key, reference) = (versions.key().to_vec(), versions.value(&held).to_vec());
            gone.push(Gone { key, version: held.version, reference });
        }
    }
}

/// Makes one list of the versions of a key in a buffer and of those that it has below. Of versions of one
/// commit the lower one counts.
fn together<'m>(
    versions: &mut KeyVersions,
    news: impl Iterator<Item = (&'m [u8], Version, &'m [u8])>,
    olds: impl Iterator<Item = (&'m [u8], Version, &'m [u8])>,
) {
    let (mut news, mut olds) = (news.peekable(), olds.peekable());
    versions.begin(news.peek().or(olds.peek()).map_or(&[], |(key, ..)| key));
    loop {
        let of = |next: Option<&(&[u8], Version, &[u8])>| next.map(|(_, version, _)| version.timestamp());
        let (new, old) = (of(news.peek()), of(olds.peek()));
        let next = if new > old { news.next() } else { olds.next() };
        let Some((_, version, value)) = next else { return };
        news.next_if(|_| new == old);
        versions.push(version, value);
    }
}

/// Adds a tombstone for each removal of a range that has the key, unless it has that tombstone already: a
/// removal that is replayed comes to a leaf again.
fn remove_each(versions: &mut KeyVersions, removed: &Fragment) {
    let oldest = versions.all.last().map(|held| held.version.timestamp());
    let mut with = KeyVersions::default();
    with.begin(versions.key());
    let mut removals =
        removed.removed_at.iter().filter(|at| oldest.is_some_and(|oldest| **at > oldest)).peekable();
    for held in &versions.all {
        while let Some(at) = removals.next_if(|at| **at > held.version.timestamp()) {
            with.push(Version::tombstone(*at), &[]);
        }
        removals.next_if(|at| **at == held.version.timestamp());
        with.push(held.version, versions.value(held));
    }
    *versions = with;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::log::Timestamp;

    proptest! {
        #[test]
        fn a_leaf_gets_one_version_of_each_removal_that_is_newer_than_its_oldest_version(
            present in proptest::collection::btree_set(1_u64..30, 1..8),
            removed in proptest::collection::btree_set(1_u64..30, 1..8),
        ) {
            let mut versions = KeyVersions::default();
            versions.begin(b"key");
            present.iter().rev().for_each(|at| versions.push(Version::tombstone(Timestamp(*at)), &[]));
            let removed_at = removed.iter().rev().map(|at| Timestamp(*at)).collect();
            let fragment = Fragment { lower: b"a".to_vec(), upper: b"z".to_vec(), removed_at };
            remove_each(&mut versions, &fragment);
            let found: Vec<u64> = versions.all.iter().map(|held| held.version.timestamp().0).collect();
            let oldest = present.first().copied().unwrap_or_default();
            let expected: BTreeSet<u64> =
                present.iter().chain(removed.iter().filter(|at| **at > oldest)).copied().collect();
            prop_assert_eq!(found, expected.into_iter().rev().collect::<Vec<_>>());
        }
    }
}
