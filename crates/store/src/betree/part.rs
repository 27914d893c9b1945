//! A part of a node, as a page: what a query reads on one level, and all that it reads there.
//!
//! Theorem 9 of the dictionaries paper (Bender et al., §6) keeps the messages that are on their way to one
//! child together, at most B/F bytes of them, and has *beside them the pivots of that child*, not those of
//! the node itself. So a page is named after the child that it leads to: the *part* for a child has the
//! child's pivots, which are the pages that lead to the child's own children, and the messages that the child
//! has not got yet. A node of B bytes is F such pages. The pages below parts of level 1 are the pieces in
//! which a leaf is read, *basement nodes* (level 0), which have no pivots, and records instead of messages.
//!
//! ```text
//! 0        32      34         36              40          44       48
//! | header | level | pivots   | messages      | ranges    | 0      | offset of each pivot, range, message …
//! |        | u16   | how many | how many, u32 | how many  |        | u32 each, from the page's beginning
//!
//! pivot:   | page, u64    | key bytes, u32 | basements below, u32 | key |
//! range:   | version, u64 | key bytes, u32 | end bytes, u32       | first key | key behind the last |
//! message: | version, u64 | key bytes, u32 | value bytes, u32     | key | value |
//! ```
//!
//! Keys, values and ends of ranges are filled up to whole words. What a page on a broken drive may have is no
//! panic: counts and offsets beyond the page give nothing.

use std::cmp::Ordering;

use super::content::{Content, Pivot};
use super::messages::{Messages, Place};
use crate::buffered::RangeTombstones;
use crate::header::{BACK_START, FRONT_END, Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::index::Version;
use crate::log::Timestamp;
use crate::page::{Page, padded};

const LEVEL: u32 = PAGE_HEADER_BYTES;
const MESSAGES: u32 = LEVEL + 4;
const RANGES: u32 = LEVEL + 8;
/// Where offsets begin.
pub(super) const SLOTS: u32 = LEVEL + 16;

/// Bytes of an offset.
pub(super) const SLOT_BYTES: u32 = 4;
/// Bytes of a pivot, range or message without its keys and value.
pub(super) const ENTRY_BYTES: u32 = 16;
const KEY_LENGTH: u32 = 8;
const OTHER: u32 = 12;

/// A page of a Bε-tree, which may change while it is read.
#[derive(Clone, Copy)]
pub(super) struct Part<'a>(Page<'a>);

/// See [`Part::summary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub page_bytes: u64,
    pub pivots_bytes: u64,
    /// Basement nodes below it.
    pub weight: u32,
    pub has_messages: bool,
}

/// Numbers of messages: from the first up to, and without, the second.
type Numbers = std::ops::Range<u32>;

impl<'a> Part<'a> {
    pub fn new(page: Page<'a>) -> Self {
        Self(page)
    }

    /// 0 for a basement node.
    pub fn level(self) -> u16 {
        self.0.halves(LEVEL).0
    }

    /// How many pages a page of this length can refer to at most.
    fn bounded(self, count: u32) -> u32 {
        count.min(self.0.len_bytes() / SLOT_BYTES)
    }

    pub fn pivots(self) -> u32 {
        self.bounded(self.0.halves(LEVEL).1.into())
    }

    fn ranges(self) -> u32 {
        self.bounded(self.0.word(RANGES))
    }

    pub fn has_ranges(self) -> bool {
        self.ranges() > 0
    }

    fn messages(self) -> Numbers {
        let first = self.pivots() + self.ranges();
        first..first + self.bounded(self.0.word(MESSAGES))
    }

    /// Where an entry begins.
    fn entry(self, number: u32) -> u32 {
        self.0.word(SLOTS + SLOT_BYTES * number) & !3
    }

    fn compare(self, number: u32, key: &[u8]) -> Ordering {
        let entry = self.entry(number);
        self.0.compare(entry.saturating_add(ENTRY_BYTES), self.0.word(entry.saturating_add(KEY_LENGTH)), key)
    }

    /// The first of these entries that does not lie before a place.
    fn partition_point(
        self,
        Numbers { mut start, mut end }: Numbers,
        is_before: impl Fn(u32) -> bool,
    ) -> u32 {
        while start < end {
            let middle = start + (end - start) / 2;
            match is_before(middle) {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }

    /// The pivot to which a key belongs; the last one before it, or the first one.
    pub fn pivot_of(self, key: &[u8]) -> u32 {
        self.partition_point(0..self.pivots(), |number| self.compare(number, key) != Ordering::Greater)
            .saturating_sub(1)
    }

    /// The pivot with keys before this one, or of all without one.
    pub fn pivot_before(self, key: Option<&[u8]>) -> u32 {
        let Some(key) = key else { return self.pivots().saturating_sub(1) };
        self.partition_point(0..self.pivots(), |number| self.compare(number, key) == Ordering::Less)
            .saturating_sub(1)
    }

    /// The page that a pivot leads to.
    pub fn child(self, pivot: u32) -> PageId {
        PageId(self.0.long(self.entry(pivot)))
    }

    /// The first message of a key that is not newer than `at`.
    pub fn find(self, key: &[u8], at: Timestamp) -> Option<u32> {
        let numbers = self.messages();
        let end = numbers.end;
        let found = self.partition_point(numbers, |number| match self.compare(number, key) {
            Ordering::Equal => self.version(number).timestamp() > at,
            unequal => unequal == Ordering::Less,
        });
        (found < end && self.compare(found, key) == Ordering::Equal).then_some(found)
    }

    /// The message behind one of this key, if it is of the key as well.
    pub fn next_of(self, number: u32, key: &[u8]) -> Option<u32> {
        let next = number + 1;
        (next < self.messages().end && self.compare(next, key) == Ordering::Equal).then_some(next)
    }

    pub fn version(self, number: u32) -> Version {
        Version::from_bits(self.0.long(self.entry(number)))
    }

    /// Appends the value of a message.
    pub fn value(self, number: u32, into: &mut Vec<u8>) {
        let entry = self.entry(number);
        let key_bytes = padded(self.0.word(entry.saturating_add(KEY_LENGTH)));
        let offset = entry.saturating_add(ENTRY_BYTES).saturating_add(key_bytes);
        self.0.copy_to(offset, self.0.word(entry.saturating_add(OTHER)), into);
    }

    /// All that is in it; `None` if that is damaged, or changes meanwhile.
    pub fn content(self) -> Option<Content> {
        let mut bytes = Vec::new();
        self.0.copy_to(0, self.0.word(FRONT_END), &mut bytes);
        decode(bytes)
    }

    /// What tells whether it has room, and whether its node is in balance.
    pub fn summary(self) -> Summary {
        let mut summary = Summary {
            page_bytes: self.0.word(FRONT_END).into(),
            has_messages: !self.messages().is_empty() || self.has_ranges(),
            ..Summary::default()
        };
        for number in 0..self.pivots() {
            let entry = self.entry(number);
            let key_bytes = padded(self.0.word(entry.saturating_add(KEY_LENGTH)));
            summary.pivots_bytes += u64::from(SLOT_BYTES + ENTRY_BYTES) + u64::from(key_bytes);
            summary.weight = summary.weight.saturating_add(self.0.word(entry.saturating_add(OTHER)));
        }
        summary
    }

    /// The removals of ranges of keys; `None` as with [`Part::content`].
    pub fn range_tombstones(self) -> Option<RangeTombstones> {
        if !self.has_ranges() {
            return Some(RangeTombstones::default());
        }
        self.content().map(|content| content.ranges)
    }

    /// Of the kind that leads to a page of this level.
    pub fn is_of_level(self, level: u16) -> bool {
        self.level() == level && Header::of(self.0).kind == kind_of(level) as u8
    }
}

/// The kind of pages of a level.
pub(super) fn kind_of(level: u16) -> PageKind {
    if level == 0 { PageKind::Basement } else { PageKind::Part }
}

/// Puts a content into a page, whose header stays as it is but for how much of the page is in use.
pub(super) fn write(page: Page<'_>, content: &Content) {
    let bytes = encode(content);
    assert!(LEVEL as usize + bytes.len() <= page.len_bytes() as usize, "a page has no room for what it gets");
    page.copy_from(LEVEL, &bytes);
    page.set_word(FRONT_END, LEVEL + bytes.len() as u32);
    page.set_word(BACK_START, page.len_bytes());
}

/// The bytes of a page behind its header.
fn encode(content: &Content) -> Vec<u8> {
    let Content { level, pivots, ranges, messages } = content;
    let count = pivots.len() + ranges.count() + messages.len();
    let mut bytes = Vec::with_capacity(content.page_bytes() as usize);
    bytes.extend_from_slice(&level.to_le_bytes());
    bytes.extend_from_slice(&(pivots.len() as u16).to_le_bytes());
    for number in [messages.len() as u32, ranges.count() as u32, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let mut slot = bytes.len();
    bytes.resize(slot + count * SLOT_BYTES as usize, 0);
    let mut entry = |number: u64, key: &[u8], other: u32, value: &[u8]| {
        let offset = LEVEL + bytes.len() as u32;
        bytes[slot..slot + SLOT_BYTES as usize].copy_from_slice(&offset.to_le_bytes());
        slot += SLOT_BYTES as usize;
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&other.to_le_bytes());
        for part in [key, value] {
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
    };
    for pivot in pivots {
        entry(pivot.child.0, &pivot.key, pivot.weight, &[]);
    }
    for fragment in ranges.fragments() {
        for removed_at in &fragment.removed_at {
            let version = Version::tombstone(*removed_at).bits();
            entry(version, &fragment.lower, fragment.upper.len() as u32, &fragment.upper);
        }
    }
    for (key, version, value) in messages.iter(0..messages.len()) {
        entry(version.bits(), key, value.len() as u32, value);
    }
    bytes
}

/// What the bytes of a page, from its beginning, have; `None` for what [`write`] never wrote.
fn decode(bytes: Vec<u8>) -> Option<Content> {
    let (words, _) = bytes.as_chunks();
    let word = |at: u32| words.get(at as usize / 4).map(|word| u32::from_le_bytes(*word));
    let level = word(LEVEL)? as u16;
    let counts = [word(LEVEL)? >> 16, word(RANGES)?, word(MESSAGES)?];
    let length = bytes.len() as u64;
    let slots = counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    if u64::from(SLOTS) + slots * u64::from(SLOT_BYTES) > length {
        return None;
    }
    // Of an entry: its number, key, and what is behind that.
    let entry = |number: u32, has_value: bool| {
        let at = word(SLOTS + SLOT_BYTES * number)?;
        if !at.is_multiple_of(4) {
            return None;
        }
        let long = u64::from(word(at.checked_add(4)?)?) << 32 | u64::from(word(at)?);
        let (key_bytes, other) = (word(at.checked_add(KEY_LENGTH)?)?, word(at.checked_add(OTHER)?)?);
        let key = at.checked_add(ENTRY_BYTES)?;
        let key_end = key.checked_add(key_bytes)?;
        let value = key.checked_add(padded(key_bytes))?;
        let value_end = value.checked_add(if has_value { other } else { 0 })?;
        (u64::from(value_end.max(key_end)) <= length).then_some((long, other, key..key_end, value..value_end))
    };
    let part = |range: std::ops::Range<u32>| bytes.get(range.start as usize..range.end as usize);
    let [pivot_count, range_count, message_count] = counts;
    let mut pivots = Vec::with_capacity(pivot_count as usize);
    for number in 0..pivot_count {
        let (child, weight, key, _) = entry(number, false)?;
        pivots.push(Pivot { key: part(key)?.to_vec(), child: PageId(child), weight });
    }
    let mut ranges = RangeTombstones::default();
    for number in pivot_count..pivot_count + range_count {
        let (version, _, lower, upper) = entry(number, true)?;
        ranges.add(part(lower)?, part(upper)?, Version::from_bits(version).timestamp());
    }
    let mut places = Vec::with_capacity(message_count as usize);
    for number in pivot_count + range_count..pivot_count + range_count + message_count {
        let (version, _, key, value) = entry(number, true)?;
        places.push(Place::new(Version::from_bits(version), key, value));
    }
    Some(Content { level, pivots, ranges, messages: Messages::of(bytes, places) })
}
