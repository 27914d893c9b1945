//! The design of a Bε-tree for a drive: that which a store makes where none is given.
//!
//! Each candidate is priced as `flashgrain advise` prices it, by the requests and bytes that an operation
//! takes of it, but with less that is known of the drive: in setups of its reads. A read takes one, and a
//! byte that is read or written as much as it is of the half-bandwidth size (1/α of "Small Refinements to
//! the DAM Can Have Big Consequences for Data-Structure Design"). Writes are large, so that they take no
//! setups.

use flashgrain_cost::Access;
use flashgrain_cost::dictionary::{
    Design, Operation, OutOfPlaceBEpsilonTree, Records, Situation, is_outside,
};

use crate::LsmWorkload;

/// B and F of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeTreeDesign {
    /// B: bytes of a node with all its parts, and of a leaf.
    pub node_bytes: u64,
    /// F: children of a node.
    pub fanout: u32,
}

/// The limits of a tree in its store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeTreeSurroundings {
    /// Bytes that a busy drive transfers in the time of a setup of its reads.
    pub half_bandwidth_bytes: f64,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// Bytes that are written at a time: no part is larger.
    pub unit_bytes: u64,
    /// Bytes of the pages that leaves are read in.
    pub basement_bytes: u64,
}

const NODE_BYTES: [u64; 7] = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
const FANOUTS: [u32; 6] = [4, 8, 16, 32, 64, 128];

/// Bytes of a key of usual length.
const KEY_BYTES: f64 = 16.0;
/// Bytes of a pivot with such a key.
const PIVOT_BYTES: f64 = 40.0;
/// Bytes of a message in addition to its record.
const ENTRY_BYTES: f64 = 24.0;
/// Pivots take at most this part of a part: three quarters of the half that they may have.
const PIVOTS_FRACTION_MAX: f64 = 0.375;
/// Messages of a flush for each basement node that it rewrites.
const MESSAGES_MIN: f64 = 3.0;
/// So much of a part is filled with pivots and messages.
const FILLED: f64 = 0.875;

impl BeTreeDesign {
    /// Where nothing is known of the drive.
    pub const USUAL: Self = Self { node_bytes: 1 << 20, fanout: 8 };

    /// The assumed operations on a tree: half of them writes, half look-ups.
    pub fn usual_workload() -> LsmWorkload {
        LsmWorkload::new(1.0, 1.0, 0.0)
    }

    /// All that are tried.
    pub fn candidates() -> impl Iterator<Item = Self> {
        NODE_BYTES.into_iter().flat_map(|node_bytes| FANOUTS.map(|fanout| Self { node_bytes, fanout }))
    }

    /// The tree as its price has it.
    fn tree(self, room: &BeTreeSurroundings) -> OutOfPlaceBEpsilonTree {
        let [node, basement, unit] =
            [self.node_bytes, room.basement_bytes, room.unit_bytes].map(|bytes| bytes as f64);
        OutOfPlaceBEpsilonTree::new(node, f64::from(self.fanout), basement, unit)
    }

    /// Bytes of a part, as the store has it: a power of two.
    pub fn part_bytes(self, room: &BeTreeSurroundings) -> u64 {
        self.tree(room).part_bytes_in(room.cache_bytes)
    }

    /// Whether the pivots of a leaf, of `pivot_bytes` each, have room in a part, together with enough
    /// messages: with few for each basement node that a flush rewrites, the tree saves nothing. The message
    /// of a record whose value is kept outside has a reference, and is as long as a pivot.
    pub fn is_sound(self, pivot_bytes: f64, record_bytes: f64, room: &BeTreeSurroundings) -> bool {
        let (part, basements) =
            (self.part_bytes(room) as f64, self.node_bytes as f64 / room.basement_bytes as f64);
        let pivots = basements * pivot_bytes;
        let is_outside = is_outside(record_bytes, room.basement_bytes as f64);
        let message_bytes = if is_outside { pivot_bytes } else { record_bytes + ENTRY_BYTES };
        let messages = (FILLED * part - pivots) / message_bytes;
        pivots <= PIVOTS_FRACTION_MAX * part && 2.0 * messages / (basements + 1.0) + 1.0 >= MESSAGES_MIN
    }

    /// Setups of an operation.
    pub fn setups(self, workload: &LsmWorkload, room: &BeTreeSurroundings) -> f64 {
        let record_bytes = f64::from(workload.record_size());
        let key_bytes = KEY_BYTES.min(record_bytes);
        let count = (workload.data_size() as f64 / record_bytes).max(1.0);
        let records = Records { count, key_bytes, value_bytes: record_bytes - key_bytes };
        let situation = Situation::new(records, room.cache_bytes as f64, 1.0);
        let tree = self.tree(room);
        let setups = |operation| {
            let demand = tree.demand(operation, &situation);
            let transferred = demand.bytes(Access::Read) + demand.bytes(Access::Write);
            demand.requests(Access::Read) + transferred / room.half_bandwidth_bytes
        };
        let [puts, look_ups, scans] = workload.percentages();
        (puts * setups(Operation::Update) + (look_ups + scans) * setups(Operation::PointHit)) / 100.0
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

    /// The more bytes a setup is worth, the larger the reads of a look-up may be (Corollary 12).
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
