//! Finding a key in a node.
//!
//! The words of a node may change while it is searched, so the compiler never keeps one: the layout of the
//! slots is read once and passed on.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::node::{
    COUNT_AND_PREFIX, HEAD_BYTES, HINTS, INNER_SLOT_WORDS, LEAF_SLOT_WORDS, LEAF_WITHOUT_HINTS_BYTES,
    NODE_HEADER_END, Node, head_of, rest_of,
};
use crate::page::{Page, padded};
use crate::pool::prefetch;

/// Bytes that the search of a small leaf reads, if it has as many records as usual.
const SEARCHED_BYTES: u32 = 448;

/// How a node is searched.
#[derive(Clone, Copy)]
struct SearchShape {
    slots_start: u32,
    count: u32,
    has_hints: bool,
    /// Whether such nodes are too many for their slots to be in the processor's cache.
    is_cold: bool,
}

#[inline]
fn head_in<const WORDS: usize>(slot: &[AtomicU32; WORDS]) -> u32 {
    u32::from_le(slot[0].load(Relaxed))
}

/// The first of `slots` whose head is not below `head`.
#[inline]
fn first_not_below<const WORDS: usize>(slots: &[[AtomicU32; WORDS]], head: u32) -> usize {
    slots.partition_point(|slot| head_in(slot) < head)
}

impl Node<'_> {
    /// The slot of `key`, or the slot that it would get. The key lies within the fences.
    #[inline]
    pub fn find(self, key: &[u8]) -> Result<u32, u32> {
        let (count, prefix_length) = self.page().halves(COUNT_AND_PREFIX);
        let suffix = key.get(usize::from(prefix_length)..).unwrap_or_default();
        let level = self.level();
        let has_hints = level > 0 || self.page().len_bytes() > LEAF_WITHOUT_HINTS_BYTES;
        let slots_start = NODE_HEADER_END + if has_hints { 4 * HINTS } else { 0 };
        let plan = SearchShape { slots_start, count: count.into(), has_hints, is_cold: level < 2 };
        if level == 0 {
            self.search::<LEAF_SLOT_WORDS>(plan, suffix)
        } else {
            self.search::<INNER_SLOT_WORDS>(plan, suffix)
        }
    }

    #[inline]
    fn search<const WORDS: usize>(self, plan: SearchShape, suffix: &[u8]) -> Result<u32, u32> {
        // At most as many slots as the page has, whatever its count is.
        let slots = self.page().words(plan.slots_start, plan.count * WORDS as u32 * 4).as_chunks::<WORDS>().0;
        let head = head_of(suffix);
        let part = self.hinted(plan, slots, head);
        let first = part.start + slots.get(part).map_or(0, |part| first_not_below(part, head));
        let same_head = |index: usize| slots.get(index).is_some_and(|slot| head_in(slot) == head);
        if !same_head(first) {
            return Err(first as u32);
        }
        if same_head(first + 1) {
            return self.search_further(slots, first, suffix);
        }
        match slots.get(first).map(|slot| self.compare(slot, suffix)) {
            Some(Ordering::Equal) => Ok(first as u32),
            Some(Ordering::Less) => Err(first as u32 + 1),
            _ => Err(first as u32),
        }
    }

    /// Goes on with the slots from `first` on that have the same head as the suffix.
    fn search_further<const WORDS: usize>(
        self,
        slots: &[[AtomicU32; WORDS]],
        first: usize,
        suffix: &[u8],
    ) -> Result<u32, u32> {
        let rest = slots.get(first..).unwrap_or_default();
        let count = head_of(suffix).checked_add(1).map_or(rest.len(), |next| first_not_below(rest, next));
        // Ascending keys go after all others.
        let is_last = |slot| self.compare(slot, suffix) == Ordering::Less;
        if count.checked_sub(1).and_then(|last| rest.get(last)).is_some_and(is_last) {
            return Err((first + count) as u32);
        }
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.compare(&rest[middle], suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok((first + middle) as u32),
            }
        }
        Err((first + low) as u32)
    }

    /// The range of slots that has, or ends at, the first one with a head not below `head`.
    #[inline]
    fn hinted<const WORDS: usize>(
        self,
        plan: SearchShape,
        slots: &[[AtomicU32; WORDS]],
        head: u32,
    ) -> Range<usize> {
        let (count, hint_count) = (slots.len(), HINTS as usize);
        if !plan.has_hints || count < 2 * hint_count {
            return 0..count;
        }
        let hints = self.page().words(NODE_HEADER_END, 4 * HINTS);
        let (below, distance) =
            (hints.partition_point(|hint| u32::from_le(hint.load(Relaxed)) < head), count / (hint_count + 1));
        let start = if below == 0 { 0 } else { distance * below + 1 };
        let end = if below < hint_count { distance * (below + 1) } else { count };
        if plan.is_cold {
            prefetch(slots.get(start..end).unwrap_or_default().as_flattened());
        }
        start..end
    }

    /// How the key of a slot compares with one that has the same head.
    #[inline]
    fn compare<const WORDS: usize>(self, slot: &[AtomicU32; WORDS], suffix: &[u8]) -> Ordering {
        let word = u32::from_le(slot[1].load(Relaxed));
        let (offset, key_length) = ((word & 0xFFFF) * 4, word >> 16);
        let in_heads = key_length <= HEAD_BYTES && suffix.len() <= HEAD_BYTES as usize;
        let by_length = key_length.cmp(&(suffix.len() as u32));
        if in_heads {
            return by_length;
        }
        self.page().compare(offset, key_length.saturating_sub(HEAD_BYTES), rest_of(suffix)).then(by_length)
    }

    /// Offset and length in bytes of the value of a leaf's slot.
    #[inline]
    pub(super) fn value_place(self, index: u32) -> (u32, u32) {
        let slot = self.slot(index);
        (slot.offset + padded(slot.rest_length()), slot.value_length())
    }

    /// Begins to fetch the bytes that a search reads first into the processor's cache.
    #[inline]
    pub(super) fn prefetch(page: Page<'_>, is_leaf: bool) {
        let small_leaf = is_leaf && page.len_bytes() <= LEAF_WITHOUT_HINTS_BYTES;
        prefetch(page.words(0, if small_leaf { SEARCHED_BYTES } else { NODE_HEADER_END + 4 * HINTS }));
    }
}
