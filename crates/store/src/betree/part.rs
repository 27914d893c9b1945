//! A part of a node, as a page: the only page that a query reads on one level.
//!
//! Theorem 9 of the dictionaries paper (Bender et al., §6) keeps the messages that are on their way to one
//! child together, at most B/F bytes of them, and stores *with them the pivots of that child*, not those of
//! the node itself. So a page is named after the child that it leads to: the *part* for a child has the
//! child's pivots, which are the pages that lead to the child's own children, and the messages that the child
//! has not got yet. A node of B bytes is F such pages. The pages below parts of level 1 are the pieces in
//! which a leaf is read, *basement nodes* (level 0), which have no pivots, and records instead of messages.
//!
//! ```text
//! 0        32      34         36              40          44       48
//! | header | level | pivots   | messages      | ranges    | left   | offset of each pivot, range, message …
//! |        | u16   | how many | how many, u32 | u16, u16  | u32    | u32 each, from the page's beginning
//!
//! pivot:   | page, u64    | key bytes, u32 | basements below, u32 | key |
//! range:   | version, u64 | key bytes, u32 | end bytes, u32       | first key | key behind the last |
//!          | version, u64 | 0              | 0                    | another removal of the range before
//! message: | version, u64 | key bytes, u32 | value bytes, u32     | key | value |
//! ```
//!
//! Keys, values and ends of ranges are filled up to whole words. Offsets are in the order of keys at the
//! front; their entries lie at the back, from its end towards the front as they came. So messages
//! [come and go in place](super::in_place): only the offsets move. *Left* is the number of bytes that removed
//! messages have left unused, and in the highest bit whether some of the page's versions may be unneeded one
//! day. After the number of ranges the root's page has the [longest key](super::longest_key) of the tree.
//! Pages of format versions before 10 have everything at the front: they are read as they are, and become as
//! above when they are written next. Bytes from a broken drive never cause a panic: counts and offsets beyond
//! the page give nothing.

use std::cmp::Ordering;

use super::content::{Content, Fitting, Group, Pivot, Summary};
use super::messages::{Messages, Numbers, Place};
use super::part_format::{
    ENTRY_BYTES, KEY_LENGTH, LEFT, LEVEL, MAY_GO, MESSAGES, OTHER, RANGES, SLOT_BYTES, SLOTS,
};
use crate::buffered::RangeTombstones;
use crate::header::{BACK_START, FRONT_END, Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::index::Version;
use crate::log::Timestamp;
use crate::page::{Page, padded};

/// A page of a Bε-tree, which may change while it is read.
#[derive(Clone, Copy)]
pub(super) struct Part<'a>(Page<'a>);

/// The words after a page's counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Bytes that removed messages have left unused.
    pub bytes: u32,
    /// Whether some of the page's versions may be unneeded one day.
    pub may_go: bool,
}

impl<'a> Part<'a> {
    pub fn new(page: Page<'a>) -> Self {
        Self(page)
    }

    /// 0 for a basement node.
    pub fn level(self) -> u16 {
        self.0.halves(LEVEL).0
    }

    /// The most pages that a page of this length can refer to.
    fn bounded(self, count: u32) -> u32 {
        count.min(self.0.len_bytes() / SLOT_BYTES)
    }

    pub fn pivots(self) -> u32 {
        self.bounded(self.0.halves(LEVEL).1.into())
    }

    fn ranges(self) -> u32 {
        self.bounded(self.0.halves(RANGES).0.into())
    }

    /// For the root's page: words of the longest key that has entered it; 0 if that is unknown.
    pub fn longest_key_words(self) -> u16 {
        self.0.halves(RANGES).1
    }

    pub fn has_ranges(self) -> bool {
        self.ranges() > 0
    }

    pub(super) fn messages(self) -> Numbers {
        let first = self.pivots() + self.ranges();
        first..first + self.bounded(self.0.word(MESSAGES))
    }

    /// Bytes of the page.
    pub fn len_bytes(self) -> u64 {
        self.0.len_bytes().into()
    }

    /// Bytes that it would take without those that removed messages have left unused.
    pub fn page_bytes(self) -> u64 {
        let at_back = self.0.len_bytes().saturating_sub(self.0.word(BACK_START));
        let used = u64::from(self.0.word(FRONT_END)) + u64::from(at_back);
        used.saturating_sub(u64::from(self.left_bytes()))
    }

    /// Bytes that removed messages have left unused.
    pub fn left_bytes(self) -> u32 {
        self.0.word(LEFT) & !MAY_GO
    }

    /// Whether some of its versions may be unneeded one day: removals, operands, older ones.
    pub fn may_go(self) -> bool {
        self.0.word(LEFT) & MAY_GO != 0
    }

    /// Whether messages may come and go in place: there are no removals of ranges, and offsets alone are at
    /// the front.
    pub fn is_in_place(self) -> bool {
        let (front_end, back_start) = (self.0.word(FRONT_END), self.0.word(BACK_START));
        !self.has_ranges()
            && front_end == SLOTS + SLOT_BYTES * self.messages().end
            && front_end <= back_start
            && back_start <= self.0.len_bytes()
            && self.left_bytes() <= self.0.len_bytes() - back_start
    }

    /// Bytes of a message's or a pivot's key and value; without those of its offset. `None` if they are
    /// longer than the page.
    fn entry_bytes(self, number: u32, has_value: bool) -> Option<u32> {
        let entry = self.entry(number);
        let value_bytes = if has_value { padded(self.0.word(entry.saturating_add(OTHER))) } else { 0 };
        let key_bytes = padded(self.0.word(entry.saturating_add(KEY_LENGTH)));
        let bytes = ENTRY_BYTES.checked_add(key_bytes)?.checked_add(value_bytes)?;
        (entry.checked_add(bytes)? <= self.0.len_bytes()).then_some(bytes)
    }

    /// Bytes that some messages take, with those of their offsets; `None` if the page is damaged, or changes
    /// meanwhile.
    pub fn messages_bytes(self, numbers: Numbers) -> Option<u64> {
        let of = |number| Some(u64::from(self.entry_bytes(number, true)?) + u64::from(SLOT_BYTES));
        numbers.map(of).sum()
    }

    /// Whether its offsets lead to all bytes that are in use and to none twice.
    pub fn adds_up(self) -> bool {
        let of = |pivot| Some(u64::from(self.entry_bytes(pivot, false)?) + u64::from(SLOT_BYTES));
        let pivots: Option<u64> = (0..self.pivots()).map(of).sum();
        let all = pivots.zip(self.messages_bytes(self.messages()));
        all.is_some_and(|(pivots, messages)| u64::from(SLOTS) + pivots + messages == self.page_bytes())
    }

    /// Some of its messages; `None` as with [`Part::messages_bytes`].
    pub fn copied(self, numbers: Numbers) -> Option<Messages> {
        let mut messages = Messages::default();
        for number in numbers {
            self.entry_bytes(number, true)?;
            let (key, value) =
                (|bytes: &mut _| self.key(number, bytes), |bytes: &mut _| self.value(number, bytes));
            messages.push_by(self.version(number), key, value);
        }
        Some(messages)
    }

    /// Appends the key of a message or a pivot.
    pub fn key(self, number: u32, into: &mut Vec<u8>) {
        let entry = self.entry(number);
        self.0.copy_to(
            entry.saturating_add(ENTRY_BYTES),
            self.0.word(entry.saturating_add(KEY_LENGTH)),
            into,
        );
    }

    /// The first message, from `start` on, whose key is not before this one; near ones are found fastest.
    pub fn first_from(self, start: u32, key: &[u8]) -> u32 {
        let end = self.messages().end;
        let is_before = |number: u32| self.compare(number, key) == Ordering::Less;
        let (mut lower, mut step) = (start, 1);
        while lower + step <= end && is_before(lower + step - 1) {
            lower += step;
            step *= 2;
        }
        self.partition_point(lower..end.min(lower + step), is_before)
    }

    /// The messages of this key. None of them lies before `first`.
    pub fn all_of(self, first: u32, key: &[u8]) -> Numbers {
        let (mut next, end) = (first, self.messages().end);
        while next < end && self.compare(next, key) == Ordering::Equal {
            next += 1;
        }
        first..next
    }

    /// The group of each child that has messages on their way to it. Numbers of messages are the page's.
    /// `None` if there are removals of ranges, or the page is damaged or changes meanwhile.
    pub fn groups(self) -> Option<Vec<Group>> {
        if !self.is_in_place() {
            return None;
        }
        let (mut groups, mut key) = (Vec::new(), Vec::new());
        let Numbers { mut start, end } = self.messages();
        for pivot in 0..self.pivots() {
            let next = match pivot + 1 < self.pivots() {
                true => {
                    key.clear();
                    self.key(pivot + 1, &mut key);
                    self.first_from(start, &key)
                }
                false => end,
            };
            if next > start {
                let bytes = self.messages_bytes(start..next)?;
                let messages = start as usize..next as usize;
                groups.push(Group { pivot: pivot as usize, child: self.child(pivot), messages, bytes });
            }
            start = next;
        }
        Some(groups)
    }

    /// Start of the entries at the back of the page.
    pub fn back_start(self) -> u32 {
        self.0.word(BACK_START)
    }

    /// Bytes between its offsets and its entries.
    pub fn unused_bytes(self) -> u32 {
        self.0.word(BACK_START).saturating_sub(self.0.word(FRONT_END))
    }

    /// Appends the entry of an offset.
    pub fn copy_entry(self, number: u32, has_value: bool, into: &mut Vec<u8>) {
        self.0.copy_to(self.entry(number), self.entry_bytes(number, has_value).unwrap_or_default(), into);
    }

    /// The child's weight as its pivot has it.
    pub fn weight_of(self, pivot: u32) -> u32 {
        self.0.word(self.entry(pivot).saturating_add(OTHER))
    }

    /// The offset of an entry.
    pub(super) fn entry(self, number: u32) -> u32 {
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

    /// The pivot that a key belongs to: the last one not after it, or else the first one.
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

    /// The message after one of this key, if it has the key as well.
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
        let (front_end, back_start) = (self.0.word(FRONT_END), self.0.word(BACK_START));
        let at_back = self.0.len_bytes().checked_sub(back_start)?;
        if !front_end.is_multiple_of(4) || !back_start.is_multiple_of(4) {
            return None;
        }
        let mut bytes = Vec::with_capacity(self.0.len_bytes() as usize);
        self.0.copy_to(0, front_end.min(back_start), &mut bytes);
        self.0.copy_to(back_start, at_back, &mut bytes);
        let (content, page_bytes) = decode(bytes, front_end, back_start.checked_sub(front_end)?)?;
        // No two offsets lead to the same bytes.
        (page_bytes == self.page_bytes()).then_some(content)
    }

    /// The numbers that tell whether it has room, and whether its node is in balance.
    pub fn summary(self) -> Summary {
        let mut summary = Summary {
            page_bytes: self.page_bytes(),
            pivots: self.pivots() as usize,
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

    /// Whether it is a page of this level, and of the level's kind.
    pub fn is_of_level(self, level: u16) -> bool {
        self.level() == level && Header::of(self.0).kind == kind_of(level) as u8
    }
}

/// The kind of pages of a level.
pub(super) fn kind_of(level: u16) -> PageKind {
    if level == 0 { PageKind::Basement } else { PageKind::Part }
}

/// Writes a content into a page. In the page's header, only the size of the used parts changes.
pub(super) fn write(page: Page<'_>, fitting: &Fitting<'_>) {
    let page_bytes = fitting.page_bytes();
    assert!(page_bytes <= page.len_bytes().into(), "a content was fitted into a longer page");
    let Content { level, pivots, ranges, messages } = fitting.content();
    let count = (pivots.len() + ranges.count() + messages.len()) as u32;
    let front_end = SLOTS + SLOT_BYTES * count;
    let back_start = page.len_bytes() - (page_bytes as u32 - front_end);
    let may_go = if messages.may_go() { MAY_GO } else { 0 };
    // A new page has the old bytes of its memory.
    let is_new = page.word(FRONT_END) <= PAGE_HEADER_BYTES;
    let longest_key_words = if is_new { 0 } else { Part::new(page).longest_key_words() };
    page.set_halves(LEVEL, *level, pivots.len() as u16);
    page.set_word(MESSAGES, messages.len() as u32);
    page.set_halves(RANGES, ranges.count() as u16, longest_key_words);
    page.set_word(LEFT, may_go);
    let (mut slots, mut entries) =
        (Vec::with_capacity(count as usize * 4), Vec::with_capacity(page_bytes as usize));
    let mut entry = |number: u64, key: &[u8], other: u32, value: &[u8]| {
        slots.extend_from_slice(&(back_start + entries.len() as u32).to_le_bytes());
        put_entry(number, key, other, value, &mut entries);
    };
    for pivot in pivots {
        entry(pivot.child.0, &pivot.key, pivot.weight, &[]);
    }
    for fragment in ranges.fragments() {
        let (mut lower, mut upper) = (fragment.lower.as_slice(), fragment.upper.as_slice());
        for removed_at in &fragment.removed_at {
            entry(Version::tombstone(*removed_at).bits(), lower, upper.len() as u32, upper);
            (lower, upper) = (&[], &[]);
        }
    }
    for (key, version, value) in messages.iter(0..messages.len()) {
        entry(version.bits(), key, value.len() as u32, value);
    }
    page.copy_from(SLOTS, &slots);
    page.copy_from(back_start, &entries);
    page.set_word(FRONT_END, front_end);
    page.set_word(BACK_START, back_start);
}

/// Changes the offsets of a page without removals of ranges, from one on to the last: the offsets are those
/// of its pivots and then of its messages.
pub(super) fn set_entries(page: Page<'_>, slots: &[u8], first: u32, back_start: u32, left: Left) {
    let count = first + slots.len() as u32 / SLOT_BYTES;
    page.copy_from(SLOTS + SLOT_BYTES * first, slots);
    page.set_word(MESSAGES, count - Part::new(page).pivots());
    page.set_word(LEFT, left.bytes | if left.may_go { MAY_GO } else { 0 });
    page.set_word(FRONT_END, SLOTS + SLOT_BYTES * count);
    page.set_word(BACK_START, back_start);
}

/// See [`Part::longest_key_words`].
pub(super) fn set_longest_key(page: Page<'_>, words: u16) {
    page.set_halves(RANGES, page.halves(RANGES).0, words);
}

/// Sets the child's weight in its pivot.
pub(super) fn set_weight(page: Page<'_>, pivot: u32, weight: u32) {
    page.set_word(Part::new(page).entry(pivot).saturating_add(OTHER), weight);
}

/// Appends the entry of an offset.
pub(super) fn put_entry(number: u64, key: &[u8], other: u32, value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&number.to_le_bytes());
    into.extend_from_slice(&(key.len() as u32).to_le_bytes());
    into.extend_from_slice(&other.to_le_bytes());
    for part in [key, value] {
        into.extend_from_slice(part);
        into.resize(into.len().next_multiple_of(4), 0);
    }
}

/// Decodes the bytes of a page, without the `unused_bytes` after its front. Returns the content and the bytes
/// that its entries take; `None` for bytes that [`write`] never wrote.
fn decode(bytes: Vec<u8>, front_end: u32, unused_bytes: u32) -> Option<(Content, u64)> {
    let (words, _) = bytes.as_chunks();
    let word = |at: u32| words.get(at as usize / 4).map(|word| u32::from_le_bytes(*word));
    let level = word(LEVEL)? as u16;
    let counts = [word(LEVEL)? >> 16, word(RANGES)? & 0xffff, word(MESSAGES)?];
    let length = bytes.len() as u64;
    let slots = counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    if u64::from(SLOTS) + slots * u64::from(SLOT_BYTES) > length {
        return None;
    }
    let mut page_bytes = u64::from(SLOTS);
    // An entry's number, its key, and its value.
    let mut entry = |number: u32, has_value: bool| {
        let offset = word(SLOTS + SLOT_BYTES * number)?;
        if !offset.is_multiple_of(4) {
            return None;
        }
        let at = if offset < front_end { offset } else { offset.checked_sub(unused_bytes)? };
        let long = u64::from(word(at.checked_add(4)?)?) << 32 | u64::from(word(at)?);
        let (key_bytes, other) = (word(at.checked_add(KEY_LENGTH)?)?, word(at.checked_add(OTHER)?)?);
        let key = at.checked_add(ENTRY_BYTES)?;
        let key_end = key.checked_add(key_bytes)?;
        let value = key.checked_add(padded(key_bytes))?;
        let value_end = value.checked_add(if has_value { other } else { 0 })?;
        page_bytes += u64::from(SLOT_BYTES) + u64::from(value) - u64::from(at);
        page_bytes += u64::from(padded(value_end - value));
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
    let (mut lower, mut upper): (&[u8], &[u8]) = (&[], &[]);
    for number in pivot_count..pivot_count + range_count {
        let (version, _, from, to) = entry(number, true)?;
        if !from.is_empty() || !to.is_empty() {
            (lower, upper) = (part(from)?, part(to)?);
        }
        ranges.add(lower, upper, Version::from_bits(version).timestamp());
    }
    let mut places = Vec::with_capacity(message_count as usize);
    for number in pivot_count + range_count..pivot_count + range_count + message_count {
        let (version, _, key, value) = entry(number, true)?;
        places.push(Place::new(Version::from_bits(version), key, value));
    }
    Some((Content { level, pivots, ranges, messages: Messages::of(bytes, places) }, page_bytes))
}
