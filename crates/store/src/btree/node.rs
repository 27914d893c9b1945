//! A node of a B+-tree: sorted slots at the front, keys and values at the back.
//!
//! ```text
//! 0                32            56        56 + 12 n              heap              end
//! | page header    | node header | slots ->|      free            |<- keys, values  |
//! ```
//!
//! A node covers the keys from its lower fence up to but without its upper fence. The fences' common prefix is not stored with the keys. A slot has the
//! first four bytes of what is left of its key, so that a search mostly stays within the slots.
//!
//! In a leaf the values are the records'. In an inner node they are children: the child of slot `i` covers the keys from the key of slot `i` up to that of the
//! next; the key of the first slot is the lower fence.
//!
//! Whoever changes a node has it to himself; whoever only reads may see it change, and must find out afterwards (see [`crate::page`]).

use std::cmp::Ordering;

use crate::header::{BACK_START, FRONT_END, PAGE_HEADER_BYTES};
use crate::page::{OwnPage, Page, padded};

const COUNT_AND_PREFIX: u32 = PAGE_HEADER_BYTES;
/// Where keys and values begin: the start of the page's back part.
const HEAP_START: u32 = BACK_START;
const GARBAGE: u32 = PAGE_HEADER_BYTES + 4;
const LEVEL: u32 = PAGE_HEADER_BYTES + 8;
const LOWER_FENCE: u32 = PAGE_HEADER_BYTES + 12;
const UPPER_FENCE: u32 = PAGE_HEADER_BYTES + 16;
/// Lengths of both fences; [`NO_FENCE`] for an upper one: the node covers all keys from its lower fence on.
const FENCE_LENGTHS: u32 = PAGE_HEADER_BYTES + 20;
const SLOTS: u32 = PAGE_HEADER_BYTES + 24;

const SLOT_BYTES: u32 = 12;
const NO_FENCE: u16 = u16::MAX;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    page: Page<'a>,
}

/// There is no room in the node, not even after [`Node::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Where a key and its value are.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    offset: u32,
    key_length: u32,
    value_length: u32,
}

impl Slot {
    fn value_offset(self) -> u32 {
        self.offset + padded(self.key_length)
    }

    fn heap_bytes(self) -> u32 {
        padded(self.key_length) + padded(self.value_length)
    }
}

/// The first four bytes, as a number that sorts like them.
#[inline]
fn head_of(suffix: &[u8]) -> u32 {
    match suffix {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        short => {
            let mut bytes = [0; 4];
            bytes[..short.len()].copy_from_slice(short);
            u32::from_be_bytes(bytes)
        }
    }
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
        page.set_word(FRONT_END, SLOTS);
        page.set_word(HEAP_START, page.len_bytes());
        page.set_word(GARBAGE, 0);
        page.set_word(LEVEL, u32::from(level));
        let place = |offset_field: u32, fence: &[u8]| {
            let start = page.word(HEAP_START).saturating_sub(padded(fence.len() as u32));
            page.copy_from(start, fence);
            page.set_word(HEAP_START, start);
            page.set_word(offset_field, start);
        };
        place(LOWER_FENCE, lower);
        place(UPPER_FENCE, upper.unwrap_or_default());
        let upper_length = upper.map_or(NO_FENCE, |upper| upper.len() as u16);
        page.set_halves(FENCE_LENGTHS, lower.len() as u16, upper_length);
        node
    }

    /// The page that the node is on.
    pub(super) fn page(self) -> Page<'a> {
        self.page
    }

    /// Keys in the node.
    #[inline]
    pub fn count(self) -> u32 {
        // What is read while it changes must not lead outside.
        u32::from(self.page.halves(COUNT_AND_PREFIX).0).min((self.page.len_bytes() - SLOTS) / SLOT_BYTES)
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

    /// The smallest key that the node may hold, appended.
    pub fn lower_fence(self, into: &mut Vec<u8>) {
        let length = u32::from(self.page.halves(FENCE_LENGTHS).0).min(self.page.len_bytes());
        self.page.copy_to(self.page.word(LOWER_FENCE), length, into);
    }

    /// The smallest key behind the node, appended; `false` if there is none.
    pub fn upper_fence(self, into: &mut Vec<u8>) -> bool {
        let length = self.page.halves(FENCE_LENGTHS).1;
        if length == NO_FENCE {
            return false;
        }
        self.page.copy_to(self.page.word(UPPER_FENCE), u32::from(length).min(self.page.len_bytes()), into);
        true
    }

    #[inline]
    fn slot(self, index: u32) -> Slot {
        let at = SLOTS + index * SLOT_BYTES;
        let (offset_words, key_length) = self.page.halves(at + 4);
        let (value_length, _) = self.page.halves(at + 8);
        Slot {
            head: self.page.word(at),
            offset: u32::from(offset_words) * 4,
            key_length: u32::from(key_length),
            value_length: u32::from(value_length),
        }
    }

    fn set_slot(self, index: u32, slot: Slot) {
        let at = SLOTS + index * SLOT_BYTES;
        self.page.set_word(at, slot.head);
        self.page.set_halves(at + 4, (slot.offset / 4) as u16, slot.key_length as u16);
        self.page.set_halves(at + 8, slot.value_length as u16, 0);
    }

    /// Where `key` is, or where it would go. The key lies within the fences.
    #[inline]
    pub fn find(self, key: &[u8]) -> Result<u32, u32> {
        let suffix = key.get(self.prefix_length()..).unwrap_or_default();
        let head = head_of(suffix);
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            let order = match self.page.word(SLOTS + middle * SLOT_BYTES).cmp(&head) {
                Ordering::Equal => {
                    let slot = self.slot(middle);
                    self.page.compare(slot.offset, slot.key_length, suffix)
                }
                unequal => unequal,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// The slot of the child that covers `key`, in an inner node.
    #[inline]
    pub fn child_slot(self, key: &[u8]) -> u32 {
        match self.find(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// The key of a slot, appended.
    pub fn key(self, index: u32, into: &mut Vec<u8>) {
        let (prefix, slot) = (self.prefix_length() as u32, self.slot(index));
        self.page.copy_to(self.page.word(LOWER_FENCE), prefix.min(self.page.len_bytes()), into);
        self.page.copy_to(slot.offset, slot.key_length, into);
    }

    /// The value of a slot, appended.
    pub fn value(self, index: u32, into: &mut Vec<u8>) {
        let slot = self.slot(index);
        self.page.copy_to(slot.value_offset(), slot.value_length, into);
    }

    /// The value of a slot as a number: a child.
    #[inline]
    pub fn long_value(self, index: u32) -> u64 {
        self.page.long(self.slot(index).value_offset())
    }

    /// Changes a value that is a number.
    #[inline]
    pub fn set_long_value(self, index: u32, value: u64) {
        self.page.set_long(self.slot(index).value_offset(), value);
    }

    /// Bytes of a slot's value.
    pub(super) fn value_length(self, index: u32) -> usize {
        self.slot(index).value_length as usize
    }

    /// Bytes that a slot takes, with its key and value.
    pub(super) fn slot_bytes(self, index: u32) -> u32 {
        SLOT_BYTES + self.slot(index).heap_bytes()
    }

    /// Bytes between the slots and the heap.
    fn gap_bytes(self) -> u32 {
        self.page.word(HEAP_START).saturating_sub(SLOTS + self.count() * SLOT_BYTES)
    }

    /// Bytes that keys, values and slots could still take.
    pub fn free_bytes(self) -> u32 {
        self.gap_bytes().saturating_add(self.page.word(GARBAGE)).min(self.page.len_bytes() - SLOTS)
    }

    /// Bytes that keys, values and slots take.
    pub fn used_bytes(self) -> u32 {
        self.page.len_bytes() - SLOTS - self.free_bytes()
    }

    /// Bytes that a key and a value would take.
    pub(super) fn needed_bytes(self, key: &[u8], value_length: usize) -> u32 {
        let suffix = key.len().saturating_sub(self.prefix_length()) as u32;
        SLOT_BYTES + padded(suffix) + padded(value_length as u32)
    }

    /// Puts a key and its value at `index`, which [`Node::find`] gave for it.
    pub fn insert(self, index: u32, key: &[u8], value: &[u8], scratch: &OwnPage) -> Result<(), Full> {
        let needed = self.needed_bytes(key, value.len());
        if needed > self.free_bytes() {
            return Err(Full);
        }
        if needed > self.gap_bytes() {
            self.compact(scratch);
        }
        let suffix = &key[self.prefix_length()..];
        let slot = self.place(suffix, value);
        let (at, count) = (SLOTS + index * SLOT_BYTES, self.count());
        self.page.shift(at, at + SLOT_BYTES, (count - index) * SLOT_BYTES);
        self.set_slot(index, slot);
        self.set_count(count + 1);
        Ok(())
    }

    fn set_count(self, count: u32) {
        self.page.set_halves(COUNT_AND_PREFIX, count as u16, self.prefix_length() as u16);
        self.page.set_word(FRONT_END, SLOTS + count * SLOT_BYTES);
    }

    /// Puts what is left of a key, and a value, onto the heap.
    fn place(self, suffix: &[u8], value: &[u8]) -> Slot {
        let slot = Slot {
            head: head_of(suffix),
            offset: 0,
            key_length: suffix.len() as u32,
            value_length: value.len() as u32,
        };
        let start = self.page.word(HEAP_START) - slot.heap_bytes();
        let slot = Slot { offset: start, ..slot };
        self.page.copy_from(start, suffix);
        self.page.copy_from(slot.value_offset(), value);
        self.page.set_word(HEAP_START, start);
        slot
    }

    /// Gives the key at `index` another value.
    pub fn replace(self, index: u32, value: &[u8], scratch: &OwnPage) -> Result<(), Full> {
        let slot = self.slot(index);
        let (old, new) = (padded(slot.value_length), padded(value.len() as u32));
        if new <= old {
            self.page.copy_from(slot.value_offset(), value);
            self.add_garbage(old - new);
            self.set_slot(index, Slot { value_length: value.len() as u32, ..slot });
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
        self.page.set_word(GARBAGE, self.page.word(GARBAGE) + bytes);
    }

    /// Takes a key and its value out.
    pub fn remove(self, index: u32) {
        let (at, count) = (SLOTS + index * SLOT_BYTES, self.count());
        self.add_garbage(self.slot(index).heap_bytes());
        self.page.shift(at + SLOT_BYTES, at, (count - index - 1) * SLOT_BYTES);
        self.set_count(count - 1);
    }

    /// Becomes what `other` is, behind its own page header.
    pub(super) fn copy_node(self, other: Node<'_>) {
        for at in (FRONT_END..self.page.len_bytes()).step_by(4) {
            self.page.set_word(at, other.page.word(at));
        }
    }

    /// Makes one gap of all free bytes. `scratch` is as long as the page.
    pub fn compact(self, scratch: &OwnPage) {
        let old = Node::new(scratch.page());
        old.page.copy_page(self.page);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        old.lower_fence(&mut lower);
        let bounded = old.upper_fence(&mut upper);
        let new = Node::init(self.page, old.level(), &lower, bounded.then_some(upper.as_slice()));
        old.append_to(new, 0..old.count());
    }

    /// Appends slots to `to`, which has room and whose fences they lie in.
    pub(super) fn append_to(self, to: Node<'_>, slots: std::ops::Range<u32>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for index in slots {
            key.clear();
            value.clear();
            self.key(index, &mut key);
            self.value(index, &mut value);
            let slot = to.place(key.get(to.prefix_length()..).unwrap_or_default(), &value);
            to.set_slot(to.count(), slot);
            to.set_count(to.count() + 1);
        }
    }
}
