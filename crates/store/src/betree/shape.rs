//! The sizes of a Bε-tree's nodes, and the limits that follow from them.
//!
//! All limits follow from the bytes T of a part, and from the k bytes of the longest pivot in the tree. Keys
//! of at most T/16 make k at most about T/16. A removal of a range has two of them, a message at most two:
//!
//! ```text
//! 0            pivots_bytes_max = T/2 - 256               filled_bytes                   T
//! |  pivots  -->              |  messages and ranges  -->            |  slack: 4 k or T/8 |
//! ```
//!
//! 1. Messages and ranges enter a part only up to `filled_bytes`. Without messages a part in balance has room
//!    for the longest message and the longest range.
//! 2. A part with several pivots [must be split](Shape::must_split) by its parent as soon as it may have no
//!    room for the pivots that the next step of a flush brings. Each half is shorter than the whole.
//! 3. A part with one pivot always has room for another one: it is filled up to at most `filled_bytes`, and
//!    only the bounds of ranges at either end can have become longer since, by one key each.
//! 4. The root can always be raised: it then has one pivot, and nothing else.
//!
//! A longer key makes k greater before it enters the root's page. Parts that are filled further than they
//! could be with such keys have none of them, and messages leave them before one enters.
//!
//! So a flush never has to make room in a node for the sake of the same node: see [`flush`](super::flush).

use flashgrain_settings::PART_MEMORY_DIVISOR_MIN;

use super::content::Summary;
use super::levels::LEVEL_MIN;
use super::part_format::SLOTS;
use crate::Error;
use crate::buffered::Room;
use crate::class::class_bytes;

/// The share of a part that is kept free for pivots that come when children are split; at least room for this
/// number of the longest ones.
const SLACK_DIVISOR: u64 = 8;
const SLACK_PIVOTS: u64 = 4;
/// A key has at most this share of a part.
const PART_PER_KEY_MIN: u64 = 16;
/// Bytes of a pivot or message without its key, at most, with those that cuts between keys add.
const ENTRY_BYTES_MAX: u64 = 64;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Size class of basement nodes.
    pub basement_class: usize,
    /// Size class of parts, which have B/F bytes.
    pub part_class: usize,
    /// F: about the number of children of a node.
    pub fanout: u32,
    /// About the number of basement nodes of a leaf of B bytes.
    pub basements: u32,
    pub memtable_bytes: u64,
    /// The largest size class that is written.
    pub class_max: usize,
}

impl Shape {
    /// The shape of a tree whose parts have this size class since it was made, perhaps with another cache.
    ///
    /// # Errors
    /// [`Error::Options`]: the cache has no room for them.
    pub fn with_parts(self, part_class: usize, room: Room) -> Result<Self, Error> {
        let (part_bytes, cache_bytes) = (class_bytes(part_class), room.cache_bytes);
        if part_bytes > cache_bytes / PART_MEMORY_DIVISOR_MIN {
            return Err(Error::Options(format!(
                "a cache of {cache_bytes} bytes: a Bε-tree of this store has parts of {part_bytes} bytes, which need at least {}",
                part_bytes * PART_MEMORY_DIVISOR_MIN
            )));
        }
        Ok(Self { part_class, ..self })
    }

    pub fn basement_bytes(&self) -> u64 {
        class_bytes(self.basement_class)
    }

    /// B/F: bytes of a part.
    pub fn part_bytes(&self) -> u64 {
        class_bytes(self.part_class)
    }

    pub fn key_bytes_max(&self) -> usize {
        (self.basement_bytes() / 4).min(self.part_bytes() / PART_PER_KEY_MIN) as usize
    }

    /// The longest bound of a range that is kept as it is. Trees of earlier versions may have keys up to
    /// this length.
    pub fn bound_bytes_max(&self) -> usize {
        self.basement_bytes() as usize / 4
    }

    pub fn value_bytes_max(&self) -> usize {
        // A page with two of the longest records has room for its header.
        (self.basement_bytes() / 4).min(self.part_bytes() / PART_PER_KEY_MIN) as usize - 64
    }

    /// Bytes of the longest key and value together, also in the log of an earlier version.
    pub fn record_bytes_max(&self) -> u64 {
        record_bytes_max(self.basement_bytes())
    }

    /// Bytes up to which a part of a tree with keys up to this length is filled with messages.
    pub fn filled_bytes(&self, key_bytes: u64) -> u64 {
        let slack = (self.part_bytes() / SLACK_DIVISOR).max(SLACK_PIVOTS * (key_bytes + ENTRY_BYTES_MAX));
        self.part_bytes() - slack
    }

    /// Bytes up to which a part has pivots: next to them there is always room for the longest message.
    pub fn pivots_bytes_max(&self) -> u64 {
        self.part_bytes() / 2 - 256
    }

    /// Bytes of messages and ranges that enter the root's page at a time: it has room for them when it has no
    /// others, whatever pivots it has.
    pub fn portion_bytes(&self, key_bytes: u64) -> u64 {
        self.filled_bytes(key_bytes) - self.pivots_bytes_max() - u64::from(SLOTS)
    }

    /// Basement nodes below a node of a level, as it should be: `F^h` leaves of a node of height h (Theorem
    /// 9), each with `basements` nodes.
    pub fn weight(&self, level: u16) -> f64 {
        f64::from(self.basements) * f64::from(self.fanout).powi(i32::from(level) - 1)
    }

    /// How far the weight of a node may be from the intended one, as a part of that: `1/log F` (Theorem 9).
    pub fn tolerance(&self) -> f64 {
        1.0 / f64::from(self.fanout).log2().max(1.0)
    }

    /// Whether a node has too many basement nodes below it, and its parent's children must be rebuilt.
    pub fn is_too_heavy(&self, level: u16, weight: u32) -> bool {
        f64::from(weight) > self.weight(level) * (1.0 + self.tolerance())
    }

    /// Whether a node has to be split before anything is flushed out of it: it has too many pivots, too heavy
    /// children, or perhaps no room for the pivots that a step brings.
    pub fn must_split(&self, level: u16, summary: &Summary, key_bytes: u64) -> bool {
        let pivots_of_step = if level <= LEVEL_MIN { SLACK_PIVOTS } else { 1 };
        let full_bytes = self.part_bytes() - pivots_of_step * (key_bytes + ENTRY_BYTES_MAX);
        summary.pivots > 1
            && (summary.pivots_bytes > self.pivots_bytes_max()
                || self.is_too_heavy(level, summary.weight)
                || summary.page_bytes > full_bytes)
    }

    /// Whether it has too few.
    pub fn is_too_light(&self, level: u16, weight: u32) -> bool {
        f64::from(weight) < self.weight(level) * (1.0 - self.tolerance())
    }
}

pub(super) fn record_bytes_max(basement_bytes: u64) -> u64 {
    basement_bytes / 2
}
