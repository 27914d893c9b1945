//! The content of a page of a Bε-tree, in memory of its own.

use std::ops::Range;

use super::messages::{Messages, Numbers};
use super::part_format::{ENTRY_BYTES, SLOT_BYTES, SLOTS};
use crate::buffered::{Fragment, RangeTombstones};
use crate::header::PageId;
use crate::page::padded;

/// How full a part is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub page_bytes: u64,
    pub pivots: usize,
    pub pivots_bytes: u64,
    /// Basement nodes below it.
    pub weight: u32,
    pub has_messages: bool,
}

/// A pivot: the page that leads to a child, and the first key that belongs to it. It lies in the part for the
/// child's parent, with the messages for that parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pivot {
    pub key: Vec<u8>,
    pub child: PageId,
    /// Basement nodes below it, as of the last change of this page.
    pub weight: u32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// 0 for a basement node.
    pub level: u16,
    pub pivots: Vec<Pivot>,
    /// Removals of ranges of keys on their way to leaves; none in a basement node.
    pub ranges: RangeTombstones,
    pub messages: Messages,
}

/// The messages and removals of ranges of a page that are on their way to one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Number of the child's pivot.
    pub pivot: usize,
    /// The child.
    pub child: PageId,
    /// Their numbers.
    pub messages: Range<usize>,
    pub bytes: u64,
}

impl Group {
    /// The numbers of its messages in a page.
    pub fn numbers(&self) -> Numbers {
        self.messages.start as u32..self.messages.end as u32
    }
}

/// A content that was checked to fit into a page: only such a content is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitting<'a> {
    content: &'a Content,
    page_bytes: u64,
}

impl<'a> Fitting<'a> {
    pub fn content(&self) -> &'a Content {
        self.content
    }

    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }
}

impl Pivot {
    /// Bytes that it takes in a page.
    pub fn page_bytes(&self) -> u64 {
        u64::from(SLOT_BYTES + ENTRY_BYTES + padded(self.key.len() as u32))
    }
}

fn range_bytes(fragment: &Fragment) -> u64 {
    // Only the first of its removals names the keys.
    u64::from(SLOT_BYTES + ENTRY_BYTES) * fragment.removed_at.len() as u64
        + u64::from(padded(fragment.lower.len() as u32))
        + u64::from(padded(fragment.upper.len() as u32))
}

/// Bytes that removals of ranges take in a page.
pub(super) fn ranges_bytes(ranges: &RangeTombstones) -> u64 {
    ranges.fragments().iter().map(range_bytes).sum()
}

impl Content {
    /// A basement node with these records.
    pub fn basement(messages: Messages) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Bytes of the page that it takes.
    pub fn page_bytes(&self) -> u64 {
        u64::from(SLOTS) + self.pivots_bytes() + self.buffered_bytes()
    }

    /// The content, if it takes at most this number of bytes of a page.
    pub fn fit(&self, bytes_max: u64) -> Option<Fitting<'_>> {
        let page_bytes = self.page_bytes();
        (page_bytes <= bytes_max).then_some(Fitting { content: self, page_bytes })
    }

    /// The numbers that tell whether it has room, and whether its node is in balance.
    pub fn summary(&self) -> Summary {
        Summary {
            page_bytes: self.page_bytes(),
            pivots: self.pivots.len(),
            pivots_bytes: self.pivots_bytes(),
            weight: self.weight(),
            has_messages: !self.messages.is_empty() || !self.ranges.is_empty(),
        }
    }

    pub fn pivots_bytes(&self) -> u64 {
        self.pivots.iter().map(Pivot::page_bytes).sum()
    }

    /// Bytes of its messages and removals of ranges.
    pub fn buffered_bytes(&self) -> u64 {
        ranges_bytes(&self.ranges) + self.messages.page_bytes(0..self.messages.len())
    }

    /// Basement nodes below it.
    pub fn weight(&self) -> u32 {
        self.pivots.iter().map(|pivot| pivot.weight).fold(0, u32::saturating_add)
    }

    /// The keys that belong to a pivot: from the first up to, and without, the second.
    pub fn interval(&self, pivot: usize) -> (&[u8], Option<&[u8]>) {
        let key = |number: usize| self.pivots.get(number).map(|pivot| pivot.key.as_slice());
        // Keys before the first pivot belong to it as well.
        let lower = if pivot == 0 { Some(&[][..]) } else { key(pivot) };
        (lower.unwrap_or_default(), key(pivot + 1))
    }

    /// The removals of ranges of keys that belong to a pivot, as far as they do.
    pub fn ranges_of(&self, pivot: usize) -> RangeTombstones {
        if self.ranges.is_empty() {
            return RangeTombstones::default();
        }
        let (lower, upper) = self.interval(pivot);
        let lower = if planted!(RangeOfNeighbourTaken) { &[] } else { lower };
        self.ranges.between(lower, upper)
    }

    /// The group of each child that has messages or removals of ranges on their way to it.
    pub fn groups(&self) -> Vec<Group> {
        let (mut groups, mut end) = (Vec::new(), 0);
        for pivot in 0..self.pivots.len() {
            let (_, upper) = self.interval(pivot);
            let start = end;
            while end < self.messages.len() && upper.is_none_or(|upper| self.messages.key(end) < upper) {
                end += 1;
            }
            let bytes = self.messages.page_bytes(start..end) + ranges_bytes(&self.ranges_of(pivot));
            if bytes > 0 {
                groups.push(Group { pivot, child: self.pivots[pivot].child, messages: start..end, bytes });
            }
        }
        groups
    }
}
