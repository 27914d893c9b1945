//! A node of a B+-tree: sorted slots at the front, keys and values at the back.
//!
//! ```text
//! 0                32            56                          heap              end
//! | page header    | node header | slots ->|      free            |<- keys, values  |
//!
//! node header    0       2       4         8       9    10     12            16            20        22        24
//!                | count | prefix| garbage | level | run | last | lower fence | upper fence | lengths of both   |
//!                | u16   | u16   | u32     | u8    | u8  | u16  | offset u32  | offset u32  | u16     | u16     |
//!
//! hints          0                64    of inner nodes, and of leaves above 8 KiB; the slots begin behind them
//!                | 16 heads u32    |
//!
//! slot           0      4              6            8              12             16
//!   of a leaf    | head | offset/4 u16 | length u16 | length of the value u16, 0 |
//!   inner        | head | offset/4 u16 | length u16 | the child's page id u64     |
//! ```
//!
//! A node covers the keys from its lower fence up to but without its upper fence. The fences' common prefix
//! is not stored with the keys. A slot has the first four bytes of the rest of its key (the suffix) and the
//! suffix's length, so that a search mostly stays within the slots; the suffix's other bytes are on the heap,
//! followed, in a leaf, by the value. Entries of the heap begin at multiples of four; zeros fill the gaps.
//!
//! The hints are the heads of sixteen slots at equal distances, as soon as there are twice as many slots: a
//! search looks at them and then at the slots between two of them only, so that it touches two or three cache
//! lines instead of one for each halving.
//!
//! *Last* is the slot of the last insert, *run* the number of inserts before it that each came right after
//! the previous key: a node where keys come in ascending order is split where they come.
//!
//! In an inner node the child of slot `i` covers the keys from the key of slot `i` up to that of the next.
//! The first slot's key is the lower fence; its suffix is empty.
//!
//! A writer holds the node's latch; a reader may see the node change, and must validate afterwards (see
//! [`crate::page`]).

use crate::header::{BACK_START, FRONT_END, PAGE_HEADER_BYTES, PageId};
use crate::page::{OwnPage, Page, padded};

pub(super) const COUNT_AND_PREFIX: u32 = PAGE_HEADER_BYTES;
/// Offset of the heap of keys and values: the start of the page's back part.
const HEAP_START: u32 = BACK_START;
const GARBAGE: u32 = PAGE_HEADER_BYTES + 4;
/// Level, run and last insert.
const LEVEL: u32 = PAGE_HEADER_BYTES + 8;
const LOWER_FENCE: u32 = PAGE_HEADER_BYTES + 12;
const UPPER_FENCE: u32 = PAGE_HEADER_BYTES + 16;
/// Lengths of both fences; [`NO_FENCE`] for an upper one: the node covers all keys from its lower fence on.
const FENCE_LENGTHS: u32 = PAGE_HEADER_BYTES + 20;
/// Offset of the hints, or of the slots in nodes without hints.
pub(super) const NODE_HEADER_END: u32 = PAGE_HEADER_BYTES + 24;

pub(super) const HINTS: u32 = 16;
/// Leaves up to here are searched in a few cache lines anyway.
pub(super) const LEAF_WITHOUT_HINTS_BYTES: u32 = 8 << 10;
pub(super) const LEAF_SLOT_WORDS: usize = 3;
pub(super) const INNER_SLOT_WORDS: usize = 4;
pub(super) const HEAD_BYTES: u32 = 4;
const NO_FENCE: u16 = u16::MAX;

/// A node with more garbage than this part of it is compacted.
const GARBAGE_DIVISOR: u32 = 8;

/// This number of inserts in a row, each right after the previous key, counts as an ascending order.
const RUN_INSERTS_MIN: u8 = 4;

/// The longest key of a node of `page_bytes`.
///
/// Any leaf takes at least one record of the longest key and the longest value, whatever its fences are, and
/// any inner node two children; so there is always a split that makes room.
pub(crate) fn key_bytes_max(page_bytes: u64) -> usize {
    (page_bytes / 4).min(u64::from(NO_FENCE - 3)) as usize
}

/// The longest value of a node of `page_bytes`.
pub(crate) fn value_bytes_max(page_bytes: u64) -> usize {
    let headers =
        NODE_HEADER_END + if page_bytes > u64::from(LEAF_WITHOUT_HINTS_BYTES) { 4 * HINTS } else { 0 };
    (page_bytes / 4 - u64::from(headers) - LEAF_SLOT_WORDS as u64 * 4).min(u64::from(u16::MAX - 3)) as usize
}

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    page: Page<'a>,
}

/// There is no room in the node, not even after compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Content of a slot.
#[derive(Clone, Copy)]
enum Content<'v> {
    Value(&'v [u8]),
    Child(PageId),
}

/// A slot: position and length of a key, and of its value or child.
#[derive(Clone, Copy)]
pub(super) struct NodeSlot {
    head: u32,
    pub(super) offset: u32,
    key_length: u32,
    /// The value's length, or the lower half of a child's id.
    low: u32,
    /// The upper half of a child's id.
    high: u32,
}

impl NodeSlot {
    /// Bytes of the key on the heap.
    #[inline]
    pub(super) fn rest_length(self) -> u32 {
        self.key_length.saturating_sub(HEAD_BYTES)
    }

    #[inline]
    fn value_offset(self) -> u32 {
        self.offset + padded(self.rest_length())
    }

    pub(super) fn value_length(self) -> u32 {
        self.low & u32::from(u16::MAX)
    }
}

/// The first four bytes, as a number that sorts like them.
#[inline]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        short => {
            let mut bytes = [0; 4];
            bytes[..short.len()].copy_from_slice(short);
            u32::from_be_bytes(bytes)
        }
    }
}

#[inline]
pub(super) fn rest_of(suffix: &[u8]) -> &[u8] {
    suffix.get(HEAD_BYTES as usize..).unwrap_or_default()
}

/// Bytes of a fence on the heap.
fn fence_bytes(length: u16) -> u32 {
    if length == NO_FENCE { 0 } else { padded(u32::from(length)) }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl<'a> Node<'a> {
    /// The node on this page.
    #[inline]
    pub fn new(page: Page<'a>) -> Self {
        Self { page }
    }

    /// Makes an empty node of the page, whose header stays. Level 0 are leaves.
    pub fn init(page: Page<'a>, level: u8, lower: &[u8], upper: Option<&[u8]>) -> Self {
        let node = Self { page };
        let prefix = upper.map_or(0, |upper| common_prefix(lower, upper));
        page.set_halves(COUNT_AND_PREFIX, 0, prefix as u16);
        page.set_word(LEVEL, u32::from(level));
        page.set_word(FRONT_END, node.slots_start());
        page.set_word(HEAP_START, page.len_bytes());
        page.set_word(GARBAGE, 0);
        page.set_word(LOWER_FENCE, node.place(lower));
        page.set_word(UPPER_FENCE, node.place(upper.unwrap_or_default()));
        let upper_length = upper.map_or(NO_FENCE, |upper| upper.len() as u16);
        page.set_halves(FENCE_LENGTHS, lower.len() as u16, upper_length);
        node
    }

    /// Puts bytes onto the heap.
    fn place(self, bytes: &[u8]) -> u32 {
        let start = self.page.word(HEAP_START).saturating_sub(padded(bytes.len() as u32));
        self.page.copy_from(start, bytes);
        self.page.set_word(HEAP_START, start);
        start
    }

    /// The page that the node is on.
    pub(super) fn page(self) -> Page<'a> {
        self.page
    }

    /// Keys in the node.
    #[inline]
    pub fn count(self) -> u32 {
        // A count that is read while it changes must not lead outside of the page.
        let room = self.page.len_bytes().saturating_sub(self.slots_start());
        // Division by a constant, each.
        let most = if self.is_leaf() {
            room / (4 * LEAF_SLOT_WORDS as u32)
        } else {
            room / (4 * INNER_SLOT_WORDS as u32)
        };
        u32::from(self.page.halves(COUNT_AND_PREFIX).0).min(most)
    }

    #[inline]
    fn prefix_length(self) -> usize {
        usize::from(self.page.halves(COUNT_AND_PREFIX).1)
    }

    /// Distance from the leaves.
    #[inline]
    pub fn level(self) -> u8 {
        self.page.word(LEVEL) as u8
    }

    #[inline]
    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }

    /// Bytes of a slot without its key and value.
    #[inline]
    fn slot_size(self) -> u32 {
        4 * if self.is_leaf() { LEAF_SLOT_WORDS as u32 } else { INNER_SLOT_WORDS as u32 }
    }

    /// The smallest key that the node may hold, appended.
    pub fn lower_fence(self, into: &mut Vec<u8>) {
        let length = u32::from(self.page.halves(FENCE_LENGTHS).0);
        self.page.copy_to(self.page.word(LOWER_FENCE), length, into);
    }

    /// Appends the smallest key after the node; `false` if it has no upper fence.
    pub fn upper_fence(self, into: &mut Vec<u8>) -> bool {
        let length = self.page.halves(FENCE_LENGTHS).1;
        if length == NO_FENCE {
            return false;
        }
        self.page.copy_to(self.page.word(UPPER_FENCE), u32::from(length), into);
        true
    }

    /// Whether the lower fence is not above `key`.
    pub(super) fn begins_before(self, key: &[u8]) -> bool {
        let length = u32::from(self.page.halves(FENCE_LENGTHS).0);
        self.page.compare(self.page.word(LOWER_FENCE), length, key).is_le()
    }

    /// Whether the upper fence is not below `key`; without a key, whether the node has no upper fence.
    pub(super) fn reaches(self, key: Option<&[u8]>) -> bool {
        let length = self.page.halves(FENCE_LENGTHS).1;
        let reaches = |key| self.page.compare(self.page.word(UPPER_FENCE), u32::from(length), key).is_ge();
        length == NO_FENCE || key.is_some_and(reaches)
    }

    /// Whether `key` is one of those that the node covers.
    #[inline]
    pub(super) fn covers(self, key: &[u8]) -> bool {
        let length = self.page.halves(FENCE_LENGTHS).1;
        let ends_behind = || self.page.compare(self.page.word(UPPER_FENCE), u32::from(length), key).is_gt();
        self.begins_before(key) && (length == NO_FENCE || ends_behind())
    }

    /// Whether `key` lies between the fences and is neither of them.
    pub(super) fn has_within(self, key: &[u8]) -> bool {
        let (lower, upper) = self.page.halves(FENCE_LENGTHS);
        let compare = |fence, length: u16| self.page.compare(self.page.word(fence), length.into(), key);
        compare(LOWER_FENCE, lower).is_lt() && (upper == NO_FENCE || compare(UPPER_FENCE, upper).is_gt())
    }

    #[inline]
    fn slot_start(self, index: u32) -> u32 {
        self.slots_start() + index * self.slot_size()
    }

    #[inline]
    pub(super) fn slot(self, index: u32) -> NodeSlot {
        let at = self.slot_start(index);
        let (offset_words, key_length) = self.page.halves(at + 4);
        NodeSlot {
            head: self.page.word(at),
            offset: u32::from(offset_words) * 4,
            key_length: u32::from(key_length),
            low: self.page.word(at + 8),
            high: if self.is_leaf() { 0 } else { self.page.word(at + 12) },
        }
    }

    fn set_slot(self, index: u32, slot: NodeSlot) {
        let at = self.slot_start(index);
        self.page.set_word(at, slot.head);
        self.page.set_halves(at + 4, (slot.offset / 4) as u16, slot.key_length as u16);
        self.page.set_word(at + 8, slot.low);
        if !self.is_leaf() {
            self.page.set_word(at + 12, slot.high);
        }
    }

    /// Bytes before the slots.
    #[inline]
    fn slots_start(self) -> u32 {
        let none = self.is_leaf() && self.page.len_bytes() <= LEAF_WITHOUT_HINTS_BYTES;
        NODE_HEADER_END + if none { 0 } else { 4 * HINTS }
    }

    #[inline]
    fn has_hints(self, count: u32) -> bool {
        count >= 2 * HINTS && self.slots_start() > NODE_HEADER_END
    }

    /// Updates the hints after a change of the slots from `changed` on; the node had `before` slots.
    fn renew_hints(self, before: u32, changed: u32) {
        let count = self.count();
        if !self.has_hints(count) {
            return;
        }
        let distance = count / (HINTS + 1);
        let all = before / (HINTS + 1) != distance || !self.has_hints(before);
        for hint in 0..HINTS {
            let slot = distance * (hint + 1);
            if all || slot >= changed {
                self.page.set_word(NODE_HEADER_END + 4 * hint, self.slot(slot).head);
            }
        }
    }

    /// The slot of the child that covers `key`, in an inner node.
    #[inline]
    pub fn child_slot(self, key: &[u8]) -> u32 {
        match self.find(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// The slot of the child with the largest keys below `bound`, in an inner node; the last one without a
    /// bound. The bound is above the lower fence and not above the upper one.
    pub fn child_slot_below(self, bound: Option<&[u8]>) -> u32 {
        let behind = match bound {
            Some(bound) => self.find(bound).unwrap_or_else(|index| index),
            None => self.count(),
        };
        behind.saturating_sub(1)
    }

    /// The first slot whose key is not below `bound`, which is not below the lower fence and not above the
    /// upper one.
    pub fn position(self, bound: &[u8]) -> u32 {
        self.find(bound).unwrap_or_else(|index| index)
    }

    /// The key of a slot, appended.
    pub fn key(self, index: u32, into: &mut Vec<u8>) {
        if index == 0 && !self.is_leaf() {
            return self.lower_fence(into);
        }
        let slot = self.slot(index);
        self.page.copy_to(self.page.word(LOWER_FENCE), self.prefix_length() as u32, into);
        let in_head = slot.key_length.min(HEAD_BYTES) as usize;
        into.extend_from_slice(&slot.head.to_be_bytes()[..in_head]);
        self.page.copy_to(slot.offset, slot.rest_length(), into);
    }

    /// The value of a slot of a leaf, appended.
    #[inline]
    pub fn value(self, index: u32, into: &mut Vec<u8>) {
        let slot = self.slot(index);
        self.page.copy_to(slot.value_offset(), slot.value_length(), into);
    }

    /// The first eight bytes of the value of a slot of a leaf; zeros after its end.
    #[inline]
    pub fn value_head(self, index: u32) -> u64 {
        let slot = self.slot(index);
        let missing_bytes = 8_u32.saturating_sub(slot.value_length());
        self.page
            .long(slot.value_offset())
            .checked_shl(8 * missing_bytes)
            .map_or(0, |head| head >> (8 * missing_bytes))
    }

    /// The child of a slot of an inner node.
    #[inline]
    pub fn child(self, index: u32) -> PageId {
        // A tree that is being cleared may have inner nodes without children: the old bytes of a slot lead to
        // pages of other trees.
        if index >= self.count() {
            return PageId(0);
        }
        let at = NODE_HEADER_END + 4 * HINTS + index * 4 * INNER_SLOT_WORDS as u32;
        PageId(self.page.long(at + 8))
    }

    /// Bytes that a slot takes, with its key and value.
    pub(super) fn slot_bytes(self, index: u32) -> u32 {
        self.slot_size() + self.heap_bytes(self.slot(index))
    }

    fn heap_bytes(self, slot: NodeSlot) -> u32 {
        let value = if self.is_leaf() { padded(slot.value_length()) } else { 0 };
        padded(slot.rest_length()) + value
    }

    /// Bytes between the slots and the heap.
    fn gap_bytes(self) -> u32 {
        self.page.word(HEAP_START).saturating_sub(self.slot_start(self.count()))
    }

    /// Bytes that keys, values and slots could still take.
    pub fn free_bytes(self) -> u32 {
        self.gap_bytes()
            .saturating_add(self.page.word(GARBAGE))
            .min(self.page.len_bytes().saturating_sub(self.slots_start()))
    }

    /// Bytes that keys, values and slots take.
    pub fn used_bytes(self) -> u32 {
        self.capacity_bytes().saturating_sub(self.free_bytes())
    }

    /// Bytes that the lower and the upper fence take.
    pub(super) fn fences_bytes(self) -> (u32, u32) {
        let (lower, upper) = self.page.halves(FENCE_LENGTHS);
        (fence_bytes(lower), fence_bytes(upper))
    }

    /// Bytes that keys, values and slots can take: the page without its headers and fences.
    pub fn capacity_bytes(self) -> u32 {
        let (lower, upper) = self.fences_bytes();
        self.page.len_bytes().saturating_sub(self.slots_start()).saturating_sub(lower + upper)
    }

    /// Bytes that a key and a value (of an inner node: none) would take.
    pub(super) fn needed_bytes(self, key_length: usize, value_length: usize) -> u32 {
        let rest = key_length.saturating_sub(self.prefix_length()).saturating_sub(HEAD_BYTES as usize);
        self.slot_size() + padded(rest as u32) + padded(value_length as u32)
    }

    /// Bytes that a child of an inner node with these fences takes, for a key of `key_length`.
    pub(super) fn child_bytes(self, key_length: usize) -> u32 {
        let rest = key_length.saturating_sub(self.prefix_length()).saturating_sub(HEAD_BYTES as usize);
        4 * INNER_SLOT_WORDS as u32 + padded(rest as u32)
    }

    /// Bytes that all keys between the fences begin with.
    pub(super) fn common_length(self) -> usize {
        self.prefix_length()
    }

    /// Bytes of the key of a slot.
    pub(super) fn key_bytes(self, index: u32) -> u32 {
        self.prefix_length() as u32 + self.slot(index).key_length
    }

    /// Whether another child would fit into an inner node and leave `spare_bytes` free.
    pub(super) fn has_room_for_child(self, key: &[u8], spare_bytes: u32) -> bool {
        self.needed_bytes(key.len(), 0) + spare_bytes <= self.free_bytes()
    }

    /// Whether a leaf takes a value of `value_length` bytes for a key, which [`Node::find`] has `found` or
    /// not, and leaves `spare_bytes` free.
    pub(super) fn has_room(
        self,
        found: Result<u32, u32>,
        (key_length, value_length): (usize, usize),
        spare_bytes: u32,
    ) -> bool {
        let more_bytes = match found {
            Ok(index) => padded(value_length as u32).saturating_sub(padded(self.slot(index).value_length())),
            Err(_) => self.needed_bytes(key_length, value_length),
        };
        more_bytes == 0 || more_bytes + spare_bytes <= self.free_bytes()
    }

    /// Puts a key and its value into a leaf, at `index`, which [`Node::find`] gave for it.
    pub fn insert(self, index: u32, key: &[u8], value: &[u8], scratch: &OwnPage) -> Result<(), Full> {
        self.insert_content(index, key, Content::Value(value), scratch)
    }

    /// Puts the lower fence of a child, and the child, into an inner node.
    pub fn insert_child(self, index: u32, key: &[u8], child: PageId, scratch: &OwnPage) -> Result<(), Full> {
        self.insert_content(index, key, Content::Child(child), scratch)
    }

    fn insert_content(
        self,
        index: u32,
        key: &[u8],
        content: Content<'_>,
        scratch: &OwnPage,
    ) -> Result<(), Full> {
        let value_length = if let Content::Value(value) = content { value.len() } else { 0 };
        let needed = self.needed_bytes(key.len(), value_length);
        if needed > self.free_bytes() {
            return Err(Full);
        }
        if needed > self.gap_bytes() {
            self.compact(scratch);
        }
        let (at, count, size) = (self.slot_start(index), self.count(), self.slot_size());
        let slot = self.place_content(key, content);
        self.page.shift(at, at + size, (count - index.min(count)) * size);
        self.set_slot(index, slot);
        self.set_count(count + 1);
        self.renew_hints(count, index);
        self.note_insert(index);
        Ok(())
    }

    fn note_insert(self, index: u32) {
        let (level_and_run, last) = self.page.halves(LEVEL);
        let [level, run] = level_and_run.to_le_bytes();
        let run = if index == u32::from(last) + 1 { run.saturating_add(1) } else { 0 };
        self.page.set_halves(LEVEL, u16::from_le_bytes([level, run]), index as u16);
    }

    /// Whether a key that goes to `index` continues a run of keys in ascending order.
    pub(super) fn is_ascending(self, index: u32) -> bool {
        let (level_and_run, last) = self.page.halves(LEVEL);
        index == u32::from(last) + 1 && level_and_run.to_le_bytes()[1] >= RUN_INSERTS_MIN
    }

    /// Puts the bytes that are not in the slot onto the heap.
    fn place_content(self, key: &[u8], content: Content<'_>) -> NodeSlot {
        let suffix = key.get(self.prefix_length()..).unwrap_or_default();
        let (low, high) = match content {
            Content::Value(value) => {
                self.place(value);
                (value.len() as u32, 0)
            }
            Content::Child(PageId(id)) => (id as u32, (id >> 32) as u32),
        };
        let offset = self.place(rest_of(suffix));
        NodeSlot { head: head_of(suffix), offset, key_length: suffix.len() as u32, low, high }
    }

    fn set_count(self, count: u32) {
        self.page.set_halves(COUNT_AND_PREFIX, count as u16, self.prefix_length() as u16);
        self.page.set_word(FRONT_END, self.slot_start(count));
    }

    /// Gives the key at `index` of a leaf another value. The usual case, a value of the same length, is a
    /// mere copy.
    pub fn replace(self, index: u32, value: &[u8], scratch: &OwnPage) -> Result<(), Full> {
        let slot = self.slot(index);
        let (old, new) = (padded(slot.value_length()), padded(value.len() as u32));
        if new <= old {
            self.page.copy_from(slot.value_offset(), value);
            self.add_garbage(old - new);
            self.set_slot(index, NodeSlot { low: value.len() as u32, ..slot });
            return Ok(());
        }
        if new - old > self.free_bytes() {
            return Err(Full);
        }
        let mut key = Vec::new();
        self.key(index, &mut key);
        self.remove(index);
        self.insert(index, &key, value, scratch)
    }

    fn add_garbage(self, bytes: u32) {
        if bytes > 0 {
            self.page.set_word(GARBAGE, self.page.word(GARBAGE).saturating_add(bytes));
        }
    }

    /// Removes a key with its value or child.
    pub fn remove(self, index: u32) {
        let (at, count, size) = (self.slot_start(index), self.count(), self.slot_size());
        self.add_garbage(self.heap_bytes(self.slot(index)));
        self.page.shift(at + size, at, count.saturating_sub(index + 1) * size);
        self.set_count(count.saturating_sub(1));
        self.renew_hints(count, index);
    }

    /// Makes one gap of all free bytes if many of them are scattered: an image leaves out the gap only, so
    /// removed entries would still take room on the device.
    pub fn tidy(self, scratch: &OwnPage) {
        if self.page.word(GARBAGE) > self.page.len_bytes() / GARBAGE_DIVISOR {
            self.compact(scratch);
        }
    }

    /// Copies `other`, except for the page header.
    pub(super) fn copy_node(self, other: Node<'_>) {
        self.page.copy_part(FRONT_END, other.page, FRONT_END, self.page.len_bytes() - FRONT_END);
    }

    /// Makes one gap of all free bytes. `scratch` is as long as the page.
    fn compact(self, scratch: &OwnPage) {
        let old = Node::new(scratch.page());
        old.page.copy_page(self.page);
        let mut start = self.page.len_bytes();
        let mut move_to_end = |from: u32, length: u32| {
            start = start.saturating_sub(padded(length));
            self.page.copy_part(start, old.page, from, length);
            start
        };
        let (lower, upper) = old.page.halves(FENCE_LENGTHS);
        self.page.set_word(LOWER_FENCE, move_to_end(old.page.word(LOWER_FENCE), u32::from(lower)));
        let upper = if upper == NO_FENCE { 0 } else { u32::from(upper) };
        self.page.set_word(UPPER_FENCE, move_to_end(old.page.word(UPPER_FENCE), upper));
        for index in 0..old.count() {
            let slot = old.slot(index);
            self.set_slot(index, NodeSlot { offset: move_to_end(slot.offset, old.heap_bytes(slot)), ..slot });
        }
        self.page.set_word(HEAP_START, start);
        self.page.set_word(GARBAGE, 0);
    }

    /// Appends slots to `to`, a node of the same level that has room and whose fences they lie in.
    pub(super) fn append_to(self, to: Node<'_>, slots: std::ops::Range<u32>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for index in slots {
            key.clear();
            if !to.takes_lower_fence() {
                self.key(index, &mut key);
            }
            let slot = if self.is_leaf() {
                value.clear();
                self.value(index, &mut value);
                to.place_content(&key, Content::Value(&value))
            } else {
                to.place_content(&key, Content::Child(self.child(index)))
            };
            let count = to.count();
            to.set_slot(count, slot);
            to.set_count(count + 1);
        }
        to.renew_hints(0, 0);
    }

    /// Whether the bytes of fences, keys and values are those that are neither in the gap nor garbage.
    pub fn adds_up(self) -> bool {
        let (lower, upper) = self.page.halves(FENCE_LENGTHS);
        let heap: u64 = (0..self.count()).map(|index| u64::from(self.heap_bytes(self.slot(index)))).sum();
        let heap_bytes = u64::from(self.page.len_bytes()).saturating_sub(self.page.word(HEAP_START).into());
        let slots_end = self.slot_start(self.count());
        let fences = u64::from(fence_bytes(lower) + fence_bytes(upper));
        heap + fences + u64::from(self.page.word(GARBAGE)) == heap_bytes
            && self.page.word(FRONT_END) == slots_end
            && slots_end <= self.page.word(HEAP_START)
            && self.hints_fit()
    }

    fn hints_fit(self) -> bool {
        let (count, distance) = (self.count(), self.count() / (HINTS + 1));
        let fits = |hint| self.page.word(NODE_HEADER_END + 4 * hint) == self.slot(distance * (hint + 1)).head;
        !self.has_hints(count) || (0..HINTS).all(fits)
    }

    /// Whether the next slot to be appended is the first of an inner node, whose key is the lower fence.
    pub(super) fn takes_lower_fence(self) -> bool {
        !self.is_leaf() && self.count() == 0
    }

    /// Appends a child to an inner node that has room for it and whose keys are below its.
    pub(super) fn push_child(self, key: &[u8], child: PageId) {
        let (count, key) = (self.count(), if self.takes_lower_fence() { &[] } else { key });
        self.set_slot(count, self.place_content(key, Content::Child(child)));
        self.set_count(count + 1);
        self.renew_hints(0, 0);
    }

    /// Gives an empty inner node its first child.
    pub(super) fn set_first_child(self, child: PageId) {
        self.set_slot(0, self.place_content(&[], Content::Child(child)));
        self.set_count(1);
    }

    /// Bytes of a value of a leaf.
    pub(super) fn value_length(self, index: u32) -> usize {
        if self.is_leaf() { self.slot(index).value_length() as usize } else { 0 }
    }
}
