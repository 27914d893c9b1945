//! The Bε-tree of this project's store: the parts of nodes are pages of their own, written out of place.
//!
//! Theorem 9 of the dictionaries paper has the parts of a node side by side, so that a flush reads and writes
//! a node with one setup. Here a part is a page somewhere on the drive, and so is each basement node of a
//! leaf: a flush goes from a part to one page below it, and reads that one page.

use super::b_tree::{POINTER_BYTES, RANDOM_FILL, SLOT_BYTES};
use super::images::{GRAIN_BYTES, SECTOR_BYTES, Writes};
use super::{
    Demand, Design, Level, Levels, Operation, OutOfPlaceBTree, Shape, Situation, Transfer, log_write,
};
use crate::Access;

/// A Bε-tree whose parts and basement nodes are pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedBEpsilonTree {
    /// B: bytes of a leaf, all its basement nodes together.
    pub node_bytes: f64,
    /// F: children of an inner node, at least 2.
    pub fanout: f64,
    /// Bytes of a part: the buffer for one child with that child's pivots. B/F in the paper.
    pub part_bytes: f64,
    /// Bytes of a basement node: a piece of a leaf that is read and written on its own.
    pub basement_bytes: f64,
    /// Share of a basement node that is in use.
    pub fill: f64,
    /// How pages are written.
    pub write_unit_bytes: f64,
    /// Share of the space that live images take.
    pub utilisation: f64,
    /// Write units that are written at the same time.
    pub write_concurrency: f64,
}

/// Share of a part that is in use, on average: a flush takes the fullest child's share of a full one, so that
/// most are nearly full.
const PART_FILL: f64 = 0.8;

/// A part is flushed when so much of it is in use.
const PART_FILL_MAX: f64 = 0.875;

impl PagedBEpsilonTree {
    /// A tree that has grown by random inserts, with parts of B/F and basement nodes of `basement_bytes`.
    pub fn new(node_bytes: f64, fanout: f64, basement_bytes: f64, write_unit_bytes: f64) -> Self {
        let writes = OutOfPlaceBTree::new(basement_bytes, write_unit_bytes);
        Self {
            node_bytes,
            fanout: fanout.max(2.0),
            part_bytes: node_bytes / fanout.max(2.0),
            basement_bytes,
            fill: RANDOM_FILL,
            write_unit_bytes,
            utilisation: writes.utilisation,
            write_concurrency: writes.write_concurrency,
        }
    }

    fn records_per_basement(&self, situation: &Situation) -> f64 {
        (self.basement_bytes * self.fill / (situation.records.record_bytes() + SLOT_BYTES)).max(1.0)
    }

    /// Basement nodes below a part that leads to a leaf.
    fn basements(&self) -> f64 {
        (self.node_bytes / self.basement_bytes).max(2.0)
    }

    fn levels(&self, situation: &Situation) -> Levels {
        let shape = Shape {
            records_per_leaf: self.records_per_basement(situation),
            leaf_bytes: self.basement_bytes,
            lowest_fanout: self.basements(),
            fanout: self.fanout,
            inner_bytes: self.part_bytes,
            parts: 1.0,
        };
        let cache_bytes = situation.cache_bytes - self.memory_bytes(situation);
        Levels::new(situation, cache_bytes, &shape)
    }

    /// Bytes of a page of the level of this height on the drive; basement nodes have height 0.
    fn image_bytes(&self, height: usize) -> f64 {
        GRAIN_BYTES + if height == 0 { self.basement_bytes * self.fill } else { self.part_bytes * PART_FILL }
    }

    fn page_bytes(&self, height: usize) -> f64 {
        if height == 0 { self.basement_bytes } else { self.part_bytes }
    }

    fn read(&self, height: usize, requests: f64, situation: &Situation, awaited: bool) -> Transfer {
        let bytes = self.image_bytes(height) + SECTOR_BYTES;
        Transfer {
            access: Access::Read,
            requests,
            bytes_each: bytes.min(self.page_bytes(height)),
            random_share: 1.0,
            concurrency: if awaited { situation.clients } else { 1.0 },
            awaited,
        }
    }

    /// Messages that one flush moves from a part to a page below it: if the fullest child is always the one
    /// that is flushed to, it has twice the mean of all.
    fn flushed_messages(&self, children: f64, operation: Operation, situation: &Situation) -> f64 {
        let message = operation.changed_bytes(&situation.records) + SLOT_BYTES;
        let pivots = children * (situation.records.key_bytes + POINTER_BYTES);
        let messages = (self.part_bytes * PART_FILL_MAX - pivots).max(message) / message;
        (2.0 * messages / (children + 1.0)).max(1.0)
    }

    /// How often a message has each level's pages changed, from the basement nodes up: by the flush that
    /// brings it, and by the one that takes it on.
    fn flushes(&self, levels: &Levels, operation: Operation, situation: &Situation) -> Vec<Flushes> {
        let inner: Vec<&Level> = levels.inner().collect();
        let into = |height: usize| {
            // The highest level gets messages from memory.
            let above = inner.get(height)?;
            let children = if height == 0 { self.basements() } else { self.fanout };
            Some(above.visits / self.flushed_messages(children, operation, situation))
        };
        (0..=inner.len())
            .map(|height| {
                let out_of = height.checked_sub(1).and_then(into).unwrap_or_default();
                Flushes { into: into(height).unwrap_or_default(), out_of }
            })
            .collect()
    }

    fn add_flushes(&self, demand: &mut Demand, levels: &Levels, operation: Operation, situation: &Situation) {
        let flushes = self.flushes(levels, operation, situation);
        for (height, (level, flushes)) in levels.iter().zip(flushes).enumerate() {
            let reads = flushes.into * level.steady_miss_share;
            demand.add(self.read(height, reads, situation, false));
            let changes = flushes.into + flushes.out_of;
            let mut images = changes * level.first_changes(situation, changes);
            if height == 0 && operation != Operation::Update {
                images += 2.0 / self.records_per_basement(situation);
            }
            let writes = Writes {
                image_bytes: self.image_bytes(height),
                records_per_page: self.records_per_basement(situation),
                write_unit_bytes: self.write_unit_bytes,
                utilisation: self.utilisation,
                concurrency: self.write_concurrency,
                cleaners: 1.0,
            };
            writes.add(demand, images, situation);
        }
    }
}

/// Pages that a message has changed on one level, as a part of one.
#[derive(Clone, Copy, Debug)]
struct Flushes {
    into: f64,
    out_of: f64,
}

impl Design for PagedBEpsilonTree {
    fn name(&self) -> String {
        let (node, part) = (self.node_bytes / 1024.0, self.part_bytes / 1024.0);
        format!("Bε-tree in pages, {node} KiB nodes, {part} KiB parts, fanout {:.0}", self.fanout)
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let levels = self.levels(situation);
        let mut demand = Demand::of(operation, &situation.records);
        if operation.is_change() {
            // Blind: nothing is looked up.
            self.add_flushes(&mut demand, &levels, operation, situation);
            demand.add(log_write(operation, situation));
            return demand;
        }
        let leaves = levels.leaves().miss_share;
        demand.add(self.read(1, levels.inner_misses(), situation, true));
        demand.add(self.read(0, leaves, situation, true));
        if let Operation::Range { bytes } = operation {
            let useful = self.records_per_basement(situation) * situation.records.record_bytes();
            let further = bytes / useful;
            demand.add(self.read(0, further * leaves, situation, true));
            let parts = further / self.basements();
            demand.add(self.read(1, parts * levels.inner_misses(), situation, true));
        }
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        let levels = self.levels(&Situation { cache_bytes: 0.0, ..*situation });
        let images: f64 =
            levels.iter().enumerate().map(|(height, level)| level.nodes * self.image_bytes(height)).sum();
        images / self.utilisation / situation.records.total_bytes()
    }

    /// The root's part.
    fn memory_bytes(&self, _situation: &Situation) -> f64 {
        self.part_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Records;

    fn situation(cache_share: f64) -> Situation {
        let records = Records { count: 1e6, key_bytes: 16.0, value_bytes: 100.0 };
        Situation::new(records, cache_share * records.total_bytes(), 1.0)
    }

    /// F = 16, with basement nodes of a quarter of a part.
    fn tree(node_bytes: f64) -> PagedBEpsilonTree {
        PagedBEpsilonTree::new(node_bytes, 16.0, node_bytes / 64.0, 262_144.0)
    }

    #[test]
    fn a_look_up_reads_a_part_on_each_level_and_a_basement_node() {
        let tree = tree(1_048_576.0);
        let situation = situation(0.0);
        let demand = tree.demand(Operation::PointHit, &situation);
        let basements: f64 = 1e6 / (16_384.0 * RANDOM_FILL / 124.0);
        // 64 basement nodes below each of the lowest parts, 16 parts below each of the others.
        let height = 2.0 + (basements / 64.0).ln() / 16.0_f64.ln();
        assert!((demand.requests(Access::Read) - height).abs() < 1e-9, "{demand:?} {height}");
        let each = demand.bytes(Access::Read) / height;
        assert!(each < 65_536.0, "{each}: parts of 64 KiB");
    }

    #[test]
    fn memory_for_the_parts_leaves_the_basement_node_whatever_the_size_of_nodes_is() {
        for node_bytes in [262_144.0, 1_048_576.0, 4_194_304.0] {
            let reads = tree(node_bytes).demand(Operation::PointHit, &situation(0.25)).requests(Access::Read);
            assert!((0.85..1.0).contains(&reads), "{node_bytes}: {reads}");
        }
    }

    /// What the store's trees were found to read for an insert, on a simulated disk: one million records and
    /// three tenths as many inserts, a quarter of that in memory (`flashgrain study node-size`).
    #[test]
    fn inserts_read_what_the_stores_trees_read() {
        let measured = [(262_144.0, 0.2986), (1_048_576.0, 0.0732), (4_194_304.0, 0.0172)];
        for (node_bytes, reads) in measured {
            let tree = PagedBEpsilonTree { fill: 0.65, utilisation: 0.25, ..tree(node_bytes) };
            let records = Records { count: 1.3e6, ..situation(0.0).records };
            let situation = Situation { records, ..situation(0.25) };
            let predicted = tree.demand(Operation::Insert, &situation).requests(Access::Read);
            println!("{node_bytes}: {predicted:.4} reads, measured {reads:.4}");
            assert!((0.75..1.33).contains(&(predicted / reads)), "{node_bytes}: {predicted} {reads}");
        }
    }

    #[test]
    fn an_insert_reads_and_writes_less_than_in_a_tree_without_buffers() {
        let insert = |design: &dyn Design| design.demand(Operation::Insert, &situation(0.25));
        let (buffered, alone) =
            (insert(&tree(1_048_576.0)), insert(&OutOfPlaceBTree::new(65_536.0, 262_144.0)));
        assert!(buffered.requests(Access::Read) < alone.requests(Access::Read) / 5.0, "{buffered:?}");
        assert!(buffered.bytes(Access::Write) < alone.bytes(Access::Write) / 5.0, "{buffered:?}");
    }
}
