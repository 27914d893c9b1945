//! The Bε-tree of this project's store: parts and basement nodes are pages, written out of place.
//!
//! A *part* of B/F bytes has the pivots of one child and the messages on the way to it, of all of that
//! child's children together. So each part is a buffer of its own, which is flushed to the child with the
//! most messages (Lemma 8, with B/F for B). Leaves of B bytes are *basement nodes*, pages that are read one
//! by one; a flush rewrites those with the most messages. Parts that are in memory are written at checkpoints
//! only.

use super::images::{GRAIN_BYTES, PAGE_TABLE_BYTES, Writes, further_reads, image_bytes, image_read_bytes};
use super::overflow::Stored;
use super::{Demand, Design, Level, Levels, Operation, Records, Shape, Situation, Transfer, log_write};
use crate::Access;
use crate::dictionary::b_tree::RANDOM_FILL;

/// A Bε-tree whose pages are written out of place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutOfPlaceBEpsilonTree {
    /// B: bytes of a leaf, and of all parts of an inner node.
    pub node_bytes: f64,
    /// F: children of an inner node.
    pub fanout: f64,
    /// Bytes of a basement node.
    pub basement_bytes: f64,
    /// Share of a basement node that is in use; ln 2 after random inserts.
    pub fill: f64,
    /// Bytes of the part of the root's buffer that is not in pages.
    pub memtable_bytes: f64,
    /// Bytes of a write unit, which one request writes. No part is larger.
    pub write_unit_bytes: f64,
    /// Bytes between borders that images keep within; a unit has no others of its own.
    pub border_bytes: f64,
    /// Share of the space that live images take.
    pub utilisation: f64,
    /// Write units that are written at the same time.
    pub write_concurrency: f64,
    /// Cleaners, each with one read at a time.
    pub cleaners: f64,
    /// Basement nodes that a range query asks for ahead at most.
    pub read_ahead: f64,
}

/// Bytes of a part over those of a basement node, at least; half of it in the smallest caches.
const PART_PER_BASEMENT_MIN: u64 = 4;
/// A new tree's part takes at most this part of the memory: a flush needs several at a time, and memtables.
const PART_MEMORY_DIVISOR: u64 = 16;
/// In the smallest memories a part may take this part, and those of any tree that is opened do.
pub const PART_MEMORY_DIVISOR_MIN: u64 = 8;
/// One byte in this number of a part's bytes is left for future pivots.
const SLACK_DIVISOR: f64 = 8.0;
/// Bytes of a pivot without its key, at most.
const PIVOT_BYTES_MAX: f64 = 64.0;
/// A part has room for at least this number of the longest pivots.
const LONG_PIVOTS: f64 = 4.0;
/// Pivots take at most this part of a part before its node is divided: three quarters of a half.
const PIVOTS_FRACTION_MAX: f64 = 0.375;
/// Bytes of a message, record or pivot without its key and value.
const ENTRY_BYTES: f64 = 20.0;
/// Keys and values are filled up to whole words: on average, half of the longest padding.
const PADDING_BYTES: f64 = 2.0;
/// Bytes at the beginning of a page that are no entries.
const PAGE_HEADER_BYTES: f64 = 48.0;
/// Basement nodes that a flush reads side by side at most.
const BASEMENTS_AT_ONCE: f64 = 32.0;
/// They take at most this part of the memory.
const BATCH_MEMORY_DIVISOR: f64 = 32.0;
/// Parts that flushes read side by side.
const PARTS_AT_ONCE: f64 = 16.0;
/// Bytes that a range query asks for ahead at most.
const READ_AHEAD_BYTES: f64 = 524_288.0;

/// The effect of flushes on a message on its way down, on one level.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Messages that a part of the level holds when it is full.
    capacity: f64,
    /// Messages that come into a part at a time.
    coming: f64,
    /// Messages that go on to a child at a time.
    going: f64,
}

impl OutOfPlaceBEpsilonTree {
    /// A tree that has grown by random inserts in a store that is as full as one that may grow.
    pub fn new(node_bytes: f64, fanout: f64, basement_bytes: f64, write_unit_bytes: f64) -> Self {
        Self {
            node_bytes,
            fanout: fanout.max(2.0),
            basement_bytes,
            fill: RANDOM_FILL,
            memtable_bytes: 0.0,
            write_unit_bytes,
            border_bytes: write_unit_bytes,
            utilisation: 0.55,
            write_concurrency: 4.0,
            cleaners: 8.0,
            read_ahead: READ_AHEAD_BYTES / basement_bytes,
        }
    }

    /// Bytes of a part of a tree in a cache: B/F as the store has it, a power of two.
    pub fn part_bytes_in(&self, cache_bytes: u64) -> u64 {
        let [basement, unit] = [self.basement_bytes, self.write_unit_bytes].map(|bytes| bytes as u64);
        let wanted = ((self.node_bytes / self.fanout) as u64)
            .max(basement * PART_PER_BASEMENT_MIN)
            .min(cache_bytes / PART_MEMORY_DIVISOR)
            .min(unit)
            .max((basement * PART_PER_BASEMENT_MIN / 2).min(cache_bytes / PART_MEMORY_DIVISOR_MIN).min(unit));
        1 << wanted.max(1).ilog2()
    }

    fn part_bytes(&self, situation: &Situation) -> f64 {
        self.part_bytes_in(situation.cache_bytes as u64) as f64
    }

    fn pivot_bytes(situation: &Situation) -> f64 {
        situation.records.key_bytes + PADDING_BYTES + ENTRY_BYTES
    }

    /// Basement nodes of a leaf: as many as B bytes have, unless their pivots take too much of a part.
    fn basements(&self, situation: &Situation) -> f64 {
        let pivots_max = PIVOTS_FRACTION_MAX * self.part_bytes(situation) / Self::pivot_bytes(situation);
        (self.node_bytes / self.basement_bytes).min(pivots_max).max(2.0)
    }

    fn record_bytes(situation: &Situation) -> f64 {
        situation.records.record_bytes() + 2.0 * PADDING_BYTES + ENTRY_BYTES
    }

    fn records_per_basement(&self, situation: &Situation) -> f64 {
        (self.basement_bytes * self.fill / Self::record_bytes(situation)).max(1.0)
    }

    /// Bytes of messages up to which a part with `pivots` pivots is filled.
    fn buffer_bytes(&self, pivots: f64, situation: &Situation) -> f64 {
        let part = self.part_bytes(situation);
        let longest = situation.records.key_bytes + PIVOT_BYTES_MAX;
        let slack = (part / SLACK_DIVISOR).max(LONG_PIVOTS * longest);
        (part - slack - PAGE_HEADER_BYTES - pivots * Self::pivot_bytes(situation)).max(0.0)
    }

    fn shape(&self, situation: &Situation) -> Shape {
        Shape {
            records_per_leaf: self.records_per_basement(situation),
            leaf_bytes: self.basement_bytes,
            lowest_fanout: self.basements(situation),
            fanout: self.fanout,
            inner_bytes: self.part_bytes(situation),
            parts: 1.0,
        }
    }

    fn stored<'a>(&self, operation: Operation, situation: &'a Situation) -> Stored<'a> {
        Stored::of(operation, situation, self.basement_bytes, GRAIN_BYTES)
    }

    /// Memory for nodes.
    fn cache_bytes(&self, stored: &Stored<'_>) -> f64 {
        (stored.whole.cache_bytes - self.memory_bytes(stored.whole)).max(0.0)
    }

    fn levels(&self, stored: &Stored<'_>) -> Levels {
        Levels::new(&stored.inline, self.cache_bytes(stored), &self.shape(&stored.inline))
    }

    /// The flows of messages of these bytes on the levels of parts, from the lowest up.
    ///
    /// The messages for n children grow alike, and the child with most of them gets its messages: in the
    /// steady state they have from none to m, as children come up to that at random, so that together they
    /// have (m - 1)·n/2. While a part makes room for incoming messages, it has half of their bytes less on
    /// average.
    fn flows(&self, message_bytes: f64, levels: &Levels, situation: &Situation) -> Vec<Flow> {
        let parts: Vec<&Level> = levels.inner().collect();
        let children = |height: usize| match height {
            0 => self.basements(situation),
            // The root has as many as there are.
            _ if height + 1 == parts.len() => parts[height - 1].nodes.max(1.0),
            _ => self.fanout,
        };
        let mut flows = Vec::with_capacity(parts.len());
        // Memtables give their messages in portions.
        let portion = 0.375 * self.part_bytes(situation) / message_bytes;
        let mut coming = portion.max(1.0);
        for height in (0..parts.len()).rev() {
            let children = children(height);
            let capacity = (self.buffer_bytes(children, situation) / message_bytes).max(1.0);
            coming = coming.min(capacity);
            let held = capacity - coming / 2.0;
            let going = (2.0 * held / (children + 1.0) + 1.0).min(capacity).max(1.0);
            flows.push(Flow { capacity, coming, going });
            coming = going;
        }
        flows.reverse();
        flows
    }

    /// Bytes in use of a part of the level with this flow, on average.
    fn part_used_bytes(&self, height: usize, flow: &Flow, message_bytes: f64, situation: &Situation) -> f64 {
        let pivots = if height == 0 { self.basements(situation) } else { self.fanout };
        let held = (flow.capacity - flow.coming / 2.0).max(0.0);
        PAGE_HEADER_BYTES + pivots * Self::pivot_bytes(situation) + held * message_bytes
    }

    /// The same of all levels, with messages as long as records.
    fn parts_used_bytes(&self, levels: &Levels, situation: &Situation) -> Vec<f64> {
        let message_bytes = Self::record_bytes(situation);
        let flows = self.flows(message_bytes, levels, situation);
        let used = |(height, flow)| {
            self.part_used_bytes(height, flow, message_bytes, situation).max(PAGE_HEADER_BYTES)
        };
        flows.iter().enumerate().map(used).collect()
    }

    fn basement_image_bytes(&self) -> f64 {
        image_bytes(self.basement_bytes * self.fill)
    }

    fn basement_read_bytes(&self) -> f64 {
        image_read_bytes(self.basement_image_bytes(), self.basement_bytes)
    }

    /// The way in which images of `image_bytes` are written.
    fn writes(&self, image_bytes: f64, situation: &Situation) -> Writes {
        Writes {
            image_bytes,
            records_per_page: self.records_per_basement(situation),
            write_unit_bytes: self.write_unit_bytes,
            border_bytes: self.border_bytes,
            utilisation: self.utilisation,
            concurrency: self.write_concurrency,
            cleaners: self.cleaners,
        }
    }

    /// The path of a query: a part on each level down to the first that has the key's newest version.
    fn add_path(&self, demand: &mut Demand, operation: Operation, levels: &Levels, situation: &Situation) {
        let message_bytes = Self::record_bytes(situation);
        let flows = self.flows(message_bytes, levels, situation);
        let used = self.parts_used_bytes(levels, situation);
        let part_bytes = self.part_bytes(situation);
        let mut reads = |requests, bytes_each| {
            demand.add(Transfer::reads(requests, bytes_each, situation.clients));
        };
        let mut coming = 1.0;
        let parts: Vec<&Level> = levels.inner().collect();
        for ((level, flow), used) in parts.iter().zip(&flows).zip(used).rev() {
            let image = image_read_bytes(image_bytes(used), part_bytes);
            reads(coming * level.visits * level.miss_share, image);
            if operation == Operation::PointHit {
                // Share of the records below a part that have a message in it.
                let held = flow.capacity - flow.coming / 2.0;
                coming *= (-held * level.nodes / situation.records.count).exp();
            }
        }
        reads(coming * levels.leaves().miss_share, self.basement_read_bytes());
    }

    /// Reads of a range query beyond its path: further basement nodes, and the parts that lead to them.
    fn add_range(&self, demand: &mut Demand, bytes: f64, levels: &Levels, situation: &Situation) {
        let useful = self.records_per_basement(situation) * situation.records.record_bytes();
        let (further, at_once) = further_reads(bytes / useful, self.read_ahead);
        let mut reads = |requests, bytes_each, at_once: f64| {
            demand.add(Transfer::reads(requests, bytes_each, situation.clients * at_once));
        };
        reads(further * levels.leaves().miss_share, self.basement_read_bytes(), at_once);
        let used = self.parts_used_bytes(levels, situation);
        let mut nodes = bytes / useful / self.basements(situation);
        for (level, used) in levels.inner().zip(used) {
            let image = image_read_bytes(image_bytes(used), self.part_bytes(situation));
            reads(nodes * level.visits * level.miss_share, image, 1.0);
            nodes /= self.fanout;
        }
    }

    /// Messages of a memtable for each change: of a key that is changed again and again, one goes on.
    fn messages_per_change(&self, operation: Operation, message_bytes: f64, situation: &Situation) -> f64 {
        situation.changed_keys(operation).first_share(self.memtable_bytes / message_bytes)
    }

    /// Flushes of one message down the levels.
    fn add_flushes(&self, demand: &mut Demand, operation: Operation, levels: Levels, stored: &Stored<'_>) {
        let situation = &stored.inline;
        let message_bytes = operation.changed_bytes(&situation.records) + 2.0 * PADDING_BYTES + ENTRY_BYTES;
        let flows = self.flows(message_bytes, &levels, situation);
        let messages = self.messages_per_change(operation, message_bytes, situation);
        let of_leaves = messages / flows.first().map_or(1.0, |lowest| lowest.going);
        let of_parts = levels.inner().zip(&flows).map(|(level, flow)| level.visits * messages / flow.coming);
        let nodes_used: Vec<f64> = std::iter::once(of_leaves).chain(of_parts).collect();
        let levels = levels.used(situation, self.cache_bytes(stored), &nodes_used);
        let part_bytes = self.part_bytes(situation);
        let read = |requests, bytes_each, concurrency| Transfer {
            access: Access::Read,
            requests,
            bytes_each,
            random_share: 1.0,
            concurrency,
            awaited: false,
        };
        for (height, (level, flow)) in levels.inner().zip(&flows).enumerate() {
            // Both the messages that enter a part and those that leave it change it.
            let visits = level.visits * messages / flow.coming;
            let used = self.part_used_bytes(height, flow, message_bytes, situation);
            let image = image_bytes(used);
            let read_bytes = image_read_bytes(image, part_bytes);
            demand.add(read(visits * level.steady_miss_share, read_bytes, PARTS_AT_ONCE));
            let count = visits * level.first_changes(situation, visits);
            self.writes(image, situation).add(demand, count, situation);
        }
        let Some(lowest) = flows.first() else { return };
        let (leaves, visits) = (levels.leaves(), messages / lowest.going);
        let in_memory = situation.cache_bytes / BATCH_MEMORY_DIVISOR / self.basement_bytes;
        let at_once = (lowest.coming / lowest.going).clamp(1.0, BASEMENTS_AT_ONCE.min(in_memory.max(1.0)));
        demand.add(read(visits * leaves.steady_miss_share, self.basement_read_bytes(), at_once));
        let mut count = visits * leaves.first_changes(situation, visits);
        if operation != Operation::Update {
            // A basement node that is full becomes two; a leaf's border moves with some of its neighbours.
            count += self.records_per_basement(situation).recip();
        }
        self.writes(self.basement_image_bytes(), situation).add(demand, count, situation);
    }
}

impl Design for OutOfPlaceBEpsilonTree {
    fn name(&self) -> String {
        let [node, basement] = [self.node_bytes, self.basement_bytes].map(|bytes| bytes / 1024.0);
        format!(
            "Bε-tree out of place, {node} KiB nodes, fanout {:.0}, {basement} KiB basement nodes",
            self.fanout
        )
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.stored(operation, situation);
        let inline = &stored.inline;
        let levels = self.levels(&stored);
        let left_bytes = situation.cache_bytes - self.memory_bytes(situation) - levels.total_bytes();
        let mut demand = Demand::of(operation, &situation.records);
        if operation.is_change() {
            // Blind: nothing is looked up.
            self.add_flushes(&mut demand, operation, levels, &stored);
            let values = self.writes(0.0, inline).of_values(&stored);
            values.add(&mut demand, stored.put(), inline);
            demand.add(log_write(operation, inline));
        } else {
            self.add_path(&mut demand, operation, &levels, inline);
            if let Operation::Range { bytes } = stored.operation() {
                self.add_range(&mut demand, bytes, &levels, inline);
            }
        }
        stored.add_reads(&mut demand, left_bytes, READ_AHEAD_BYTES / stored.value_bytes);
        demand
    }

    /// Images over the share of the space that they take.
    fn space_amplification(&self, situation: &Situation) -> f64 {
        let stored = self.stored(Operation::Update, situation);
        let levels = self.levels(&stored);
        let used = self.parts_used_bytes(&levels, &stored.inline);
        let parts: f64 = levels.inner().zip(used).map(|(level, used)| level.nodes * image_bytes(used)).sum();
        let basements = levels.leaves().nodes * self.basement_image_bytes();
        (parts + basements + stored.total_bytes()) / self.utilisation / situation.records.total_bytes()
    }

    /// The page table, and a memtable.
    fn memory_bytes(&self, situation: &Situation) -> f64 {
        let stored = self.stored(Operation::Update, situation);
        let levels = Levels::new(situation, 0.0, &self.shape(&stored.inline));
        let pages: f64 = levels.iter().map(|level| level.nodes).sum::<f64>() + stored.values();
        pages * PAGE_TABLE_BYTES + self.memtable_bytes
    }

    fn logged_records(&self, situation: &Situation) -> Records {
        self.stored(Operation::Update, situation).inline.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{OutOfPlaceBTree, Records, Skew};

    fn situation() -> Situation {
        let records = Records { count: 4e6, key_bytes: 8.0, value_bytes: 120.0 };
        Situation {
            changes_per_checkpoint: Some(2e6),
            ..Situation::new(records, 0.1 * records.total_bytes(), 64.0)
        }
    }

    fn tree() -> OutOfPlaceBEpsilonTree {
        OutOfPlaceBEpsilonTree::new(1_048_576.0, 8.0, 4096.0, 262_144.0)
    }

    /// The steady state of a part with `children` children, compared with a drawn one.
    #[test]
    fn what_goes_to_the_fullest_child_is_what_is_drawn() {
        use rand::RngExt;
        for (children, capacity, coming) in [(256usize, 700usize, 1usize), (8, 4000, 1), (256, 700, 170)] {
            let mut rng = crate::test_support::generator(5);
            let mut groups = vec![0usize; children];
            let (mut held, mut moved, mut flushes) = (0, 0usize, 0usize);
            for round in 0..400 * capacity / coming {
                for _ in 0..coming {
                    groups[rng.random_range(0..children)] += 1;
                    held += 1;
                }
                while held + coming > capacity {
                    let fullest = (0..children).max_by_key(|child| groups[*child]).unwrap();
                    held -= groups[fullest];
                    if round > 50 * capacity / coming {
                        moved += groups[fullest];
                        flushes += 1;
                    }
                    groups[fullest] = 0;
                }
            }
            let drawn = moved as f64 / flushes as f64;
            let held = capacity as f64 - coming as f64 / 2.0;
            let going = 2.0 * held / (children as f64 + 1.0) + 1.0;
            assert!((going / drawn - 1.0).abs() < 0.1, "{children}: {going}, drawn {drawn}");
        }
    }

    #[test]
    fn updates_read_and_write_a_part_of_what_a_b_tree_does() {
        let situation = situation();
        let update = tree().demand(Operation::Update, &situation);
        let b_tree = OutOfPlaceBTree::new(4096.0, 262_144.0).demand(Operation::Update, &situation);
        assert!(update.requests(Access::Read) < 0.4 * b_tree.requests(Access::Read), "{update:?}");
        assert!(update.bytes(Access::Write) < 0.6 * b_tree.bytes(Access::Write), "{update:?}");
        assert!(update.transfers.iter().all(|transfer| !transfer.awaited), "{update:?}");
        // A removal is a short message.
        let delete = tree().demand(Operation::Delete, &situation);
        assert!(delete.requests(Access::Read) < 0.6 * update.requests(Access::Read), "{delete:?}");
    }

    #[test]
    fn a_look_up_reads_what_is_not_in_memory_of_each_level() {
        let records = Records { count: 4e6, key_bytes: 8.0, value_bytes: 120.0 };
        let all = |cache_bytes| {
            let demand = tree().demand(Operation::PointMiss, &Situation::new(records, cache_bytes, 1.0));
            demand.requests(Access::Read)
        };
        // Basement node, and parts of the levels.
        assert!(all(4e6) > 2.5 && all(4e6) < 5.0, "{}", all(4e6));
        let parts = 4e6 * 152.0 / RANDOM_FILL / 8.0;
        assert!((all(1.5 * parts) - 0.97).abs() < 0.04, "{}", all(1.5 * parts));
        // Some are answered by messages.
        let hit = tree().demand(Operation::PointHit, &Situation::new(records, 1.5 * parts, 1.0));
        assert!(hit.requests(Access::Read) < 0.95 * all(1.5 * parts), "{hit:?}");
    }

    /// Measured reads of the store's trees per insert, on a simulated disk: one million records and three
    /// tenths as many inserts, a quarter of that in memory (`flashgrain study node-size`).
    #[test]
    fn inserts_read_what_the_stores_trees_do() {
        let measured = [(262_144.0, 0.2986), (1_048_576.0, 0.0732), (4_194_304.0, 0.0172)];
        for (node_bytes, reads) in measured {
            let tree = OutOfPlaceBEpsilonTree {
                fill: 0.65,
                utilisation: 0.25,
                ..OutOfPlaceBEpsilonTree::new(node_bytes, 16.0, node_bytes / 64.0, 262_144.0)
            };
            let records = Records { count: 1.3e6, key_bytes: 16.0, value_bytes: 100.0 };
            let situation = Situation {
                changes_per_checkpoint: Some(2e5),
                ..Situation::new(records, 0.25e6 * 116.0, 1.0)
            };
            let demand = tree.demand(Operation::Insert, &situation);
            let read = demand.requests(Access::Read);
            println!("{node_bytes}: {read:.4} reads, measured {reads:.4}");
            assert!((0.75..1.3).contains(&(read / reads)), "{node_bytes}: {read} {reads}");
        }
    }

    #[test]
    fn skewed_changes_meet_in_the_memtable() {
        let tree = OutOfPlaceBEpsilonTree { memtable_bytes: 16e6, ..tree() };
        let skewed = Situation { skew: Skew::Zipf { exponent: 0.99 }, ..situation() };
        let share = tree.messages_per_change(Operation::Update, 148.0, &skewed);
        assert!((0.3..0.8).contains(&share), "{share}");
        assert!((0.98..1.0).contains(&tree.messages_per_change(Operation::Update, 148.0, &situation())));
        assert_eq!(tree.messages_per_change(Operation::Insert, 148.0, &skewed), 1.0);
    }
}
