//! The design of a Bε-tree for a drive: that which a store makes where none is given.
//!
//! Each candidate is priced in setups of the drive's reads: a read takes one, and as much again for each
//! half-bandwidth size of bytes (1/α of "Small Refinements to the DAM Can Have Big Consequences for
//! Data-Structure Design"). The tree is that which the store builds. A part of B/F bytes is one page, with
//! the pivots of a child and all messages on the way to it; where it is full, the child with most of them
//! gets its own. Leaves are pages that are read one by one. Pages are written in large units, so that a
//! written byte costs no setup, but what a cleaner makes of it. Parts that are in memory cost nothing: they
//! are written at checkpoints. `flashgrain advise` prices the same tree with all that a profile knows.

use crate::LsmWorkload;

/// B and F of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeTreeDesign {
    /// B: bytes of a node with all its parts, and of a leaf.
    pub node_bytes: u64,
    /// F: children of a node.
    pub fanout: u32,
}

/// What a tree meets in its store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeTreeSurroundings {
    /// Bytes that a busy drive transfers in the time of a setup of its reads.
    pub half_bandwidth_bytes: f64,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// What is written at a time: no part is larger.
    pub unit_bytes: u64,
    /// Bytes of the pages in which leaves are read.
    pub basement_bytes: u64,
}

const NODE_BYTES: [u64; 7] = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
const FANOUTS: [u32; 6] = [4, 8, 16, 32, 64, 128];

/// Bytes of a pivot with a key of usual length.
const PIVOT_BYTES: f64 = 40.0;
/// Bytes of a message beside its record.
const ENTRY_BYTES: f64 = 24.0;
/// Pivots take at most this part of a part: three quarters of the half that they may have.
const PIVOTS_FRACTION_MAX: f64 = 0.375;
/// Messages of a flush for each basement node that it rewrites.
const MESSAGES_MIN: f64 = 3.0;
/// So much of a part is filled with pivots and messages.
const FILLED: f64 = 0.875;
/// So much of a basement node is in use after random inserts.
const BASEMENT_FILL: f64 = core::f64::consts::LN_2;
/// Bytes written for each byte of a new image: the cleaner's, in a store that is 0.55 full.
const CLEANING: f64 = 1.4;
/// A part takes at most this part of the memory.
const CACHE_DIVISOR: u64 = 16;
/// In the smallest memories it may take this part.
const CACHE_DIVISOR_MIN: u64 = 8;
/// A part has at least so many times the bytes of a basement node.
const PART_PER_BASEMENT_MIN: u64 = 4;
/// The part of a setup that asking a part takes where nothing is read.
const ASKING: f64 = 0.02;

/// A level of parts.
struct Level {
    miss_share: f64,
    /// Bytes of a part in use.
    used_bytes: f64,
    /// Messages that come into a part at a time, and that go on to a child.
    coming: f64,
    going: f64,
}

impl BeTreeDesign {
    /// Where nothing is known of the drive.
    pub const USUAL: Self = Self { node_bytes: 1 << 20, fanout: 8 };

    /// What is assumed of the operations on a tree: half of them writes, half look-ups.
    pub fn usual_workload() -> LsmWorkload {
        LsmWorkload::new(1.0, 1.0, 0.0)
    }

    /// All that are tried.
    pub fn candidates() -> impl Iterator<Item = Self> {
        NODE_BYTES.into_iter().flat_map(|node_bytes| FANOUTS.map(|fanout| Self { node_bytes, fanout }))
    }

    /// Bytes of a part, as the store has it: a power of two.
    pub fn part_bytes(self, room: &BeTreeSurroundings) -> u64 {
        let least = room.basement_bytes * PART_PER_BASEMENT_MIN;
        let wanted = (self.node_bytes / u64::from(self.fanout))
            .max(least)
            .min(room.cache_bytes / CACHE_DIVISOR)
            .min(room.unit_bytes)
            .max((least / 2).min(room.cache_bytes / CACHE_DIVISOR_MIN).min(room.unit_bytes));
        1 << wanted.max(1).ilog2()
    }

    /// Whether the pivots of a leaf, of so many bytes each, have room in a part, and enough messages beside
    /// them: with few for each basement node that a flush rewrites, the tree saves nothing.
    pub fn is_sound(self, pivot_bytes: f64, record_bytes: f64, room: &BeTreeSurroundings) -> bool {
        let (part, basements) =
            (self.part_bytes(room) as f64, self.node_bytes as f64 / room.basement_bytes as f64);
        let pivots = basements * pivot_bytes;
        let messages = (FILLED * part - pivots) / (record_bytes + ENTRY_BYTES);
        pivots <= PIVOTS_FRACTION_MAX * part && 2.0 * messages / (basements + 1.0) + 1.0 >= MESSAGES_MIN
    }

    /// The levels of parts, from the root down.
    fn levels(self, workload: &LsmWorkload, room: &BeTreeSurroundings) -> Vec<Level> {
        let (fanout, part) = (f64::from(self.fanout), self.part_bytes(room) as f64);
        let basements = self.node_bytes as f64 / room.basement_bytes as f64;
        let leaves = (workload.data_size() as f64 / (self.node_bytes as f64 * BASEMENT_FILL)).max(1.0);
        let message = f64::from(workload.record_size()) + ENTRY_BYTES;
        let mut counts = vec![leaves];
        while let Some(above) = counts.last().filter(|count| **count > 1.0).map(|count| count / fanout) {
            counts.push(above.max(1.0));
        }
        let mut left = room.cache_bytes as f64;
        let mut coming = PIVOTS_FRACTION_MAX * part / message;
        let mut levels = Vec::with_capacity(counts.len());
        for (height, count) in counts.iter().enumerate().rev() {
            let children = match height {
                0 => basements,
                _ => (counts[height - 1] / count).max(1.0),
            };
            let pivots = children * PIVOT_BYTES;
            let capacity = ((FILLED * part - pivots) / message).max(1.0);
            coming = coming.min(capacity);
            let held = capacity - coming / 2.0;
            let going = (2.0 * held / (children + 1.0) + 1.0).min(capacity);
            let cached = (left / (count * part)).min(1.0);
            left = (left - count * part).max(0.0);
            levels.push(Level {
                miss_share: 1.0 - cached,
                used_bytes: pivots + held * message,
                coming,
                going,
            });
            coming = going;
        }
        levels
    }

    /// Setups of an operation.
    pub fn setups(self, workload: &LsmWorkload, room: &BeTreeSurroundings) -> f64 {
        let levels = self.levels(workload, room);
        let read = |bytes: f64| 1.0 + bytes / room.half_bandwidth_bytes;
        let written = |bytes: f64| CLEANING * bytes / room.half_bandwidth_bytes;
        let basement = room.basement_bytes as f64 * BASEMENT_FILL;
        let into_leaf = levels.last().map_or(1.0, |lowest| lowest.going);
        let flushes = levels.iter().map(|level| {
            level.miss_share * (read(level.used_bytes) + written(level.used_bytes)) / level.coming
        });
        let put = flushes.sum::<f64>() + (read(basement) + written(basement)) / into_leaf;
        let parts = levels.iter().map(|level| ASKING + level.miss_share * read(level.used_bytes));
        let look_up = parts.sum::<f64>() + read(basement);
        let [puts, look_ups, scans] = workload.percentages();
        (puts * put + (look_ups + scans) * look_up) / 100.0
    }

    /// The candidate with the fewest setups.
    pub fn best(workload: &LsmWorkload, room: &BeTreeSurroundings) -> Self {
        Self::best_of(workload, room, |_| true)
    }

    /// The same of those that are wanted; the usual one if none of these is possible.
    pub fn best_of(
        workload: &LsmWorkload,
        room: &BeTreeSurroundings,
        is_wanted: impl Fn(&Self) -> bool,
    ) -> Self {
        let record_bytes = f64::from(workload.record_size());
        let possible = Self::candidates()
            .filter(|design| is_wanted(design) && design.is_sound(PIVOT_BYTES, record_bytes, room));
        let priced = possible.map(|design| (design, design.setups(workload, room)));
        let better = |best: (Self, f64), next: (Self, f64)| if next.1 < best.1 { next } else { best };
        priced.reduce(better).map_or(Self::USUAL, |(design, _)| design)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(half_bandwidth_bytes: f64) -> BeTreeSurroundings {
        BeTreeSurroundings {
            half_bandwidth_bytes,
            cache_bytes: 256 << 20,
            unit_bytes: 1 << 20,
            basement_bytes: 4 << 10,
        }
    }

    /// The more bytes a setup is worth, the larger what a look-up reads may be (Corollary 12).
    #[test]
    fn drives_with_expensive_setups_have_no_smaller_parts_and_need_fewer_setups() {
        let workload = BeTreeDesign::usual_workload();
        let of = |half: f64| {
            let best = BeTreeDesign::best(&workload, &room(half));
            (best.part_bytes(&room(half)), best.setups(&workload, &room(half)))
        };
        let all = [1e3, 4e3, 64e3, 1e6, 16e6].map(of);
        assert!(all.is_sorted_by(|small, large| small.0 <= large.0 && small.1 > large.1), "{all:?}");
    }

    #[test]
    fn writes_have_small_fanouts_or_large_buffers_and_look_ups_small_parts() {
        let part = |puts: f64, look_ups: f64| {
            BeTreeDesign::best(&LsmWorkload::new(puts, look_ups, 0.0), &room(64e3)).part_bytes(&room(64e3))
        };
        assert!(part(0.95, 0.05) > part(0.05, 0.95), "{} {}", part(0.95, 0.05), part(0.05, 0.95));
    }

    #[test]
    fn what_is_chosen_has_room_for_pivots_and_is_no_worse_than_the_usual() {
        for half in [4e3, 16e3, 64e3, 256e3, 1e6, 4e6] {
            let workload = BeTreeDesign::usual_workload();
            let best = BeTreeDesign::best(&workload, &room(half));
            assert!(best.is_sound(PIVOT_BYTES, 128.0, &room(half)), "{best:?}");
            let setups = |design: BeTreeDesign| design.setups(&workload, &room(half));
            assert!(setups(best) <= setups(BeTreeDesign::USUAL), "{half}");
        }
    }
}
