//! Messages meet older ones, or the records of a leaf: what nobody will see is left out, and operands become
//! values where what they are over is known.
//!
//! A message that replaces an older one, and is replaced itself before it reaches its leaf, never gets there.
//! So most messages of keys that are written often end in a buffer.

use std::ops::Range;

use super::content::Content;
use super::messages::{Messages, MessagesCursor};
use super::tree::BeTree;
use crate::Error;
use crate::buffered::{Cursor, Folding, Fragment, KeyVersions, Merged, RangeTombstones, Retention};
use crate::index::{Direction, Horizon, Version};
use crate::log::Timestamp;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

/// See the module.
pub(super) struct Merging<'a> {
    tree: &'a BeTree,
    /// `None` while the log is replayed: everything stays.
    horizon: Option<Arc<dyn Horizon>>,
    /// The first commit that a checkpoint that is made now would have to have replayed. Of a key with a later
    /// version something stays, so that the replay sees that it has been here.
    replay_from: Timestamp,
    /// References of overflow values that were left out.
    pub gone: Vec<Vec<u8>>,
}

/// Messages on their way down.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    pub messages: Arc<Messages>,
    pub range: Range<usize>,
    pub ranges: RangeTombstones,
}

impl Coming {
    /// All of these.
    pub fn all(messages: Messages, ranges: RangeTombstones) -> Self {
        let range = 0..messages.len();
        Self { messages: Arc::new(messages), range, ranges }
    }
}

impl<'a> Merging<'a> {
    pub fn new(tree: &'a BeTree) -> Self {
        Self { tree, horizon: tree.shared.horizon(), replay_from: tree.first_in_memory(), gone: Vec::new() }
    }

    /// A part whose buffer has what comes besides what it had.
    pub fn into_buffer(&mut self, coming: &Coming, before: Content) -> Result<Content, Error> {
        let mut ranges = before.ranges;
        ranges.extend(&coming.ranges);
        let messages = self.merge(coming, before.messages, &ranges, false)?;
        if let Some(horizon) = self.horizon.as_ref().filter(|_| !ranges.is_empty()) {
            let visible = horizon.visible();
            let retention = Retention { snapshots: horizon.snapshots(), visible };
            ranges.retain(|range| retention.needed(range, false));
        }
        Ok(Content { ranges, messages, ..before })
    }

    /// The records of a leaf that has got what comes. Removals of ranges end here.
    pub fn into_records(&mut self, coming: &Coming, before: Messages) -> Result<Messages, Error> {
        self.merge(coming, before, &coming.ranges, true)
    }

    fn merge(
        &mut self,
        coming: &Coming,
        before: Messages,
        ranges: &RangeTombstones,
        is_leaf: bool,
    ) -> Result<Messages, Error> {
        let before = Arc::new(before);
        let newer = MessagesCursor::new(&coming.messages, coming.range.clone());
        let older = MessagesCursor::new(&before, 0..before.len());
        let sources: Vec<Box<dyn Cursor>> = vec![Box::new(newer), Box::new(older)];
        let mut merged = Merged::new(sources, Direction::Forward);
        let (mut messages, mut versions) = (Messages::default(), KeyVersions::default());
        while merged.next_key(&mut versions)? {
            let removed = ranges.of(versions.key());
            self.leave_out(&mut versions, removed, is_leaf);
            for held in &versions.all {
                messages.push(versions.key(), held.version, versions.value(held));
            }
        }
        Ok(messages)
    }

    /// Takes out of a key's versions those that nobody will see, and folds operands.
    pub fn leave_out(&mut self, versions: &mut KeyVersions, removed: Option<&Fragment>, is_leaf: bool) {
        let is_alone = versions.all.len() == 1 && removed.is_none();
        if is_alone && !versions.all.iter().any(|held| held.version.may_go_alone()) {
            return;
        }
        // A leaf has no removals of ranges: it has one of each of its keys instead.
        let removed = match removed {
            Some(removed) if is_leaf => {
                remove_each(versions, removed);
                None
            }
            removed => removed,
        };
        let Some(horizon) = self.horizon.clone() else { return };
        let newest = versions.all.first().map(|held| held.version.timestamp());
        // The timestamp first: see `Retention`.
        let visible = horizon.visible();
        let retention = Retention { snapshots: horizon.snapshots(), visible };
        self.take_unneeded(&retention, versions, removed, is_leaf);
        if versions.all.iter().any(|held| held.version.is_operands()) {
            let operator = self.tree.operator.as_deref();
            let bytes_max = self.tree.shape.value_bytes_max();
            let folding = Folding { operator, retention: &retention, removed, is_oldest: is_leaf, bytes_max };
            let failures = folding.fold(versions);
            self.tree.counters.operator_failures.fetch_add(failures, Ordering::Relaxed);
            self.take_unneeded(&retention, versions, removed, is_leaf);
        }
        if is_leaf {
            // The log has operands instead, which are not replayed any more.
            versions.all.pop_if(|last| {
                let timestamp = last.version.timestamp();
                let is_known =
                    timestamp <= visible && !retention.snapshots.any_within(Timestamp(0), timestamp);
                last.version.is_merged_away() && timestamp < self.replay_from && is_known
            });
        }
        if let Some(newest) = newest.filter(|_| versions.all.is_empty()) {
            let removed_at = removed.and_then(|removed| removed.newest(Timestamp(u64::MAX)));
            let last = newest.max(removed_at.unwrap_or_default());
            if last >= self.replay_from {
                versions.push(Version::tombstone(last), &[]);
            }
        }
    }

    /// Gives up the overflow values that were left out: what was merged is in its pages.
    pub fn give_up(&mut self) {
        self.give_up_first(self.gone.len());
    }

    /// The same of the first ones.
    pub fn give_up_first(&mut self, count: usize) {
        let gone = self.gone.drain(..count);
        if let Some(horizon) = &self.horizon {
            gone.for_each(|reference| horizon.overflow_is_gone(&reference));
        }
    }

    fn take_unneeded(
        &mut self,
        retention: &Retention<'_>,
        versions: &mut KeyVersions,
        removed: Option<&Fragment>,
        is_leaf: bool,
    ) {
        for held in retention.take_unneeded(&mut versions.all, removed, is_leaf) {
            if held.version.is_overflow() {
                self.gone.push(versions.value(&held).to_vec());
            }
        }
    }
}

/// Adds a tombstone for each removal of a range that has the key.
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
        with.push(held.version, versions.value(held));
    }
    *versions = with;
}
