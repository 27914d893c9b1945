//! The B-tree of this project's store: pages are written out of place, without their gap, in large units.
//!
//! A page has a number, and a page table in memory says where its newest image is. A changed page is written
//! when it leaves the memory and at checkpoints, packed with others into a write unit; only the bytes in use
//! are written. A cleaner copies live images out of segments that are mostly garbage. A log makes changes
//! durable before their pages are written.

use super::b_tree::{POINTER_BYTES, RANDOM_FILL, SLOT_BYTES};
use super::images::{GRAIN_BYTES, PAGE_TABLE_BYTES, Writes, further_reads, image_bytes, image_read_bytes};
use super::overflow::Stored;
use super::{Demand, Design, Levels, Operation, Records, Shape, Situation, Transfer, log_write};

/// A B+-tree whose pages are written out of place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutOfPlaceBTree {
    /// Bytes of a node in memory.
    pub node_bytes: f64,
    /// Share of a node that is in use, and so of its image on the drive; ln 2 after random inserts.
    pub fill: f64,
    /// Bytes of a write unit, which one request writes.
    pub write_unit_bytes: f64,
    /// Bytes between borders that images keep within; a unit has no others of its own.
    pub border_bytes: f64,
    /// Share of the space that live images take: the fuller, the more the cleaner moves.
    pub utilisation: f64,
    /// Write units that are written at the same time.
    pub write_concurrency: f64,
    /// Cleaners, each with one read at a time.
    pub cleaners: f64,
    /// Leaves that a range query asks for ahead at most.
    pub read_ahead: f64,
    /// Share of a range query's steps to a next leaf that are random accesses: 1 in a tree whose leaves were
    /// written in any order, 0 in one that was loaded in order and not changed since.
    pub leaf_step_random_share: f64,
    /// Images begin at multiples of this.
    pub align_bytes: f64,
    /// Bytes of a node, or of a block of one with several: longer values than a quarter of it are elsewhere.
    pub block_bytes: f64,
}

/// Bytes that a range query asks for ahead at most.
const READ_AHEAD_BYTES: f64 = 524_288.0;

impl OutOfPlaceBTree {
    /// A tree that has grown by random inserts in a store that is as full as one that may grow: images take
    /// 0.55 of its space. Background writes as far as a drive with a queue can use them.
    pub fn new(node_bytes: f64, write_unit_bytes: f64) -> Self {
        Self {
            node_bytes,
            fill: RANDOM_FILL,
            write_unit_bytes,
            border_bytes: write_unit_bytes,
            utilisation: 0.55,
            write_concurrency: 4.0,
            cleaners: 8.0,
            read_ahead: READ_AHEAD_BYTES / node_bytes,
            leaf_step_random_share: 1.0,
            align_bytes: GRAIN_BYTES,
            block_bytes: node_bytes,
        }
    }

    pub(crate) fn stored<'a>(&self, operation: Operation, situation: &'a Situation) -> Stored<'a> {
        Stored::of(operation, situation, self.block_bytes, GRAIN_BYTES)
    }

    fn records_per_leaf(&self, situation: &Situation) -> f64 {
        (self.node_bytes * self.fill / (situation.records.record_bytes() + SLOT_BYTES)).max(1.0)
    }

    fn shape(&self, situation: &Situation) -> Shape {
        let children = self.node_bytes * self.fill / (situation.records.key_bytes + POINTER_BYTES);
        Shape {
            records_per_leaf: self.records_per_leaf(situation),
            leaf_bytes: self.node_bytes,
            lowest_fanout: children.max(2.0),
            fanout: children.max(2.0),
            inner_bytes: self.node_bytes,
            parts: 1.0,
        }
    }

    fn levels(&self, stored: &Stored<'_>) -> Levels {
        let cache_bytes = stored.whole.cache_bytes - self.page_table_bytes(stored);
        Levels::new(&stored.inline, cache_bytes, &self.shape(&stored.inline))
    }

    pub(super) fn page_table_bytes(&self, stored: &Stored<'_>) -> f64 {
        let nodes: f64 = self.levels_without_memory(&stored.inline).iter().map(|level| level.nodes).sum();
        (nodes + stored.values()) * PAGE_TABLE_BYTES
    }

    /// The levels, with nothing in memory.
    pub(super) fn levels_without_memory(&self, situation: &Situation) -> Levels {
        Levels::new(situation, 0.0, &self.shape(situation))
    }

    /// Bytes of a page on the drive.
    fn image_bytes(&self) -> f64 {
        // Before one that is to be aligned, half of a multiple is lost on average.
        image_bytes(self.node_bytes * self.fill) + (self.align_bytes - GRAIN_BYTES) / 2.0
    }

    /// Bytes that are read for a page.
    fn read_bytes(&self) -> f64 {
        image_read_bytes(self.image_bytes(), self.node_bytes)
    }

    /// How its images are written.
    pub(crate) fn writes(&self, situation: &Situation) -> Writes {
        Writes {
            image_bytes: self.image_bytes(),
            records_per_page: self.records_per_leaf(situation),
            write_unit_bytes: self.write_unit_bytes,
            border_bytes: self.border_bytes,
            utilisation: self.utilisation,
            concurrency: self.write_concurrency,
            cleaners: self.cleaners,
        }
    }

    fn reads(&self, requests: f64, at_once: f64, situation: &Situation) -> Transfer {
        Transfer::reads(requests, self.read_bytes(), situation.clients * at_once)
    }
}

impl Design for OutOfPlaceBTree {
    fn name(&self) -> String {
        let (nodes, units) = (self.node_bytes / 1024.0, self.write_unit_bytes / 1024.0);
        format!("B-tree out of place, {nodes} KiB nodes, {units} KiB units")
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.stored(operation, situation);
        let inline = &stored.inline;
        let levels = self.levels(&stored);
        let leaves = levels.leaves();
        let left_bytes = situation.cache_bytes - self.page_table_bytes(&stored) - levels.total_bytes();
        let mut demand = Demand::of(operation, &situation.records);
        demand.add(self.reads(levels.misses(), 1.0, situation));
        if let Operation::Range { bytes } = stored.operation() {
            let useful = self.records_per_leaf(inline) * inline.records.record_bytes();
            let (further, at_once) = further_reads(bytes / useful, self.read_ahead);
            let reads = self.reads(further * leaves.miss_share, at_once, situation);
            demand.add(Transfer { random_share: self.leaf_step_random_share, ..reads });
        }
        stored.add_reads(&mut demand, left_bytes, READ_AHEAD_BYTES / stored.value_bytes);
        if operation.is_change() {
            let mut images = leaves.first_changes(inline, 1.0);
            if operation != Operation::Update {
                images += 2.0 / self.records_per_leaf(inline);
            }
            self.writes(inline).add(&mut demand, images, inline);
            self.writes(inline).of_values(&stored).add(&mut demand, stored.put(), inline);
            demand.add(log_write(operation, inline));
        }
        demand
    }

    /// Images over the share of the space that they take.
    fn space_amplification(&self, situation: &Situation) -> f64 {
        let stored = self.stored(Operation::Update, situation);
        let nodes: f64 = self.levels_without_memory(&stored.inline).iter().map(|level| level.nodes).sum();
        let bytes = nodes * self.image_bytes() + stored.total_bytes();
        bytes / self.utilisation / situation.records.total_bytes()
    }

    /// The page table.
    fn memory_bytes(&self, situation: &Situation) -> f64 {
        self.page_table_bytes(&self.stored(Operation::Update, situation))
    }

    fn logged_records(&self, situation: &Situation) -> Records {
        self.stored(Operation::Update, situation).inline.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use crate::dictionary::{BTree, Durability, Records};

    const NODE: f64 = 4096.0;

    fn situation() -> Situation {
        let records = Records { count: 2.5e6, key_bytes: 8.0, value_bytes: 120.0 };
        Situation::new(records, 0.1 * records.total_bytes(), 1.0)
    }

    /// The whole store of decision note 12: cache of a tenth, 56 % live images, 1.14 bytes written for each
    /// of a changed page.
    #[test]
    fn uniform_updates_write_what_the_store_writes() {
        let tree = OutOfPlaceBTree { utilisation: 0.56, ..OutOfPlaceBTree::new(NODE, 262_144.0) };
        let demand = tree.demand(Operation::Update, &situation());
        let changed_pages = tree
            .levels(&tree.stored(Operation::Update, &situation()))
            .leaves()
            .first_changes(&situation(), 1.0);
        let written = demand.bytes(Access::Write) / (changed_pages * NODE);
        println!("written per byte of a changed page: {written:.3}");
        assert!((0.8..1.02).contains(&(written / 1.14)), "{written}");
    }

    /// The read-ahead of the store's scans, as its code has it, for scans of 1, 2, 3... leaves.
    #[test]
    fn range_queries_read_in_vain_what_scans_of_the_store_do() {
        const LOADED: [f64; 16] =
            [1.0, 2.0, 4.0, 4.0, 8.0, 8.0, 8.0, 14.0, 14.0, 14.0, 14.0, 22.0, 22.0, 22.0, 22.0, 22.0];
        let tree = OutOfPlaceBTree::new(NODE, 262_144.0);
        let read = |leaves: f64| 1.0 + further_reads(leaves - 1.0, tree.read_ahead).0;
        let predicted: f64 = (1..=16).map(|leaves| read(f64::from(leaves))).sum();
        let ratio = predicted / LOADED.iter().sum::<f64>();
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        assert_eq!((read(1.0), read(2.0)), (1.0, 2.0), "short ones read nothing in vain");
        let long = read(10_000.0);
        assert!(long < 10_070.0, "{long}: at most what is on its way when it ends");
    }

    #[test]
    fn fuller_stores_write_more_and_images_are_smaller_than_nodes() {
        let amplification = |utilisation: f64| {
            let tree = OutOfPlaceBTree { utilisation, ..OutOfPlaceBTree::new(NODE, 262_144.0) };
            tree.demand(Operation::Update, &situation()).write_amplification().unwrap()
        };
        assert!(amplification(0.4) < amplification(0.6) && amplification(0.6) < amplification(0.9));
        let in_place = BTree::new(NODE).demand(Operation::Update, &situation());
        assert!(amplification(0.55) < 1.05 * in_place.write_amplification().unwrap());
        let demand = OutOfPlaceBTree::new(NODE, 262_144.0).demand(Operation::PointHit, &situation());
        assert_eq!(demand.transfers[0].bytes_each, NODE * RANDOM_FILL + 576.0);
    }

    #[test]
    fn a_log_that_is_waited_for_is_shared_by_the_clients() {
        let tree = OutOfPlaceBTree::new(NODE, 262_144.0);
        let log = |durability| {
            let situation = Situation { durability, ..situation() };
            let demand = tree.demand(Operation::Update, &situation);
            demand
                .transfers
                .into_iter()
                .rev()
                .find(|transfer| transfer.awaited && transfer.access == Access::Write)
        };
        let alone = log(Durability::Synced { changes_per_write: 1.0 }).unwrap();
        assert_eq!((alone.requests, alone.bytes_each), (1.0, 4096.0));
        // 64 records of 152 bytes fill three blocks.
        let shared = log(Durability::Synced { changes_per_write: 64.0 }).unwrap();
        assert_eq!((shared.requests, shared.bytes_each), (1.0 / 64.0, 12_288.0));
        assert_eq!(log(Durability::Buffered), None);
        assert_eq!(log(Durability::NoLog), None);
    }
}
