//! The B-tree with nodes of several blocks of this project's store (dictionaries paper §8).
//!
//! A node is one page, and its image on the drive is divided: the first block has a directory, which says in
//! which of the other blocks a key is. A look-up that meets a node which is not in memory reads the first
//! block, by a request of P blocks divided by the number of clients (the drive serves P blocks at a time),
//! and then the block with the key unless it has come along. Directories are kept apart, so that with enough
//! memory for them the one block is read alone. Changes and range queries read and write whole nodes.

use super::b_tree::POINTER_BYTES;
use super::overflow::Stored;
use super::{Demand, Design, Level, Levels, Operation, OutOfPlaceBTree, Records, Situation, Transfer};

/// A B+-tree with nodes of several blocks, whose pages are written out of place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutOfPlaceBTreeOfBlocks {
    /// B: bytes of a block.
    pub block_bytes: f64,
    /// P: blocks of a node, as many as the drive serves in the time of one.
    pub blocks: f64,
    /// How nodes are filled, written and cleaned; its node size is of no meaning.
    pub whole: OutOfPlaceBTree,
}

/// Images in blocks begin at multiples of this, or of a block if that is less.
const ALIGN_BYTES: f64 = 4096.0;
/// Bytes of a directory in memory without its separators.
const DIRECTORY_BYTES: f64 = 112.0;
/// Directories take at most this part of the memory.
const DIRECTORIES_DIVISOR: f64 = 2.0;

/// The reads of a node's visits by look-ups.
struct Reads {
    /// Requests for the first block, with `width` blocks each.
    first: f64,
    width: f64,
    /// Requests for a single block.
    single: f64,
}

impl OutOfPlaceBTreeOfBlocks {
    /// A tree that has grown by random inserts in a store that is as full as one that may grow.
    pub fn new(block_bytes: f64, blocks: f64, write_unit_bytes: f64) -> Self {
        let blocks = blocks.max(1.0);
        Self {
            block_bytes,
            blocks,
            whole: OutOfPlaceBTree {
                align_bytes: ALIGN_BYTES.min(block_bytes),
                block_bytes,
                ..OutOfPlaceBTree::new(blocks * block_bytes, write_unit_bytes)
            },
        }
    }

    /// Blocks of a node that are in use.
    fn used_blocks(&self) -> f64 {
        (self.blocks * self.whole.fill).max(1.0)
    }

    /// Blocks of a request: P divided by the requests under way.
    fn width(&self, situation: &Situation) -> f64 {
        (self.blocks / situation.clients.max(1.0)).floor().clamp(1.0, self.blocks)
    }

    /// Requests of visits that find nothing of their node in memory; a share `known` of them knows the
    /// directory.
    fn reads(&self, visits: f64, known: f64, situation: &Situation) -> Reads {
        let width = self.width(situation);
        let elsewhere = 1.0 - (width / self.used_blocks()).min(1.0);
        let unknown = visits * (1.0 - known);
        Reads { first: unknown, width, single: visits * known + unknown * elsewhere }
    }

    fn directory_bytes(&self, situation: &Situation) -> f64 {
        DIRECTORY_BYTES + self.used_blocks() * (situation.records.key_bytes + POINTER_BYTES)
    }

    /// Requests of a look-up, by levels from the leaves up, and the memory that is left for overflow values.
    /// Blocks of inner nodes stay in memory before directories of leaves, and these before blocks of leaves.
    fn path(&self, stored: &Stored<'_>) -> (Vec<Reads>, f64) {
        let situation = &stored.inline;
        let whole = self.whole.levels_without_memory(situation);
        let block_levels = |level: &Level| {
            let used = self.used_blocks();
            Level::unread(level.nodes * used, self.block_bytes, level.visits)
        };
        let memory = (situation.cache_bytes - self.whole.page_table_bytes(stored)).max(0.0);
        let inner: Vec<Level> = whole.inner().map(block_levels).collect();
        let inner_bytes: f64 = inner.iter().map(|level| level.nodes * level.node_bytes).sum();
        let inner = Levels::in_memory(situation, memory, inner, 1.0);
        let of_leaves = (memory - inner_bytes).max(0.0);
        let leaves = whole.leaves();
        let directories_bytes = leaves.nodes * self.directory_bytes(situation);
        let kept_bytes = directories_bytes.min(memory / DIRECTORIES_DIVISOR).min(of_leaves);
        let known = kept_bytes / directories_bytes;
        let of_blocks = vec![block_levels(&leaves)];
        let blocks = Levels::in_memory(situation, of_leaves - kept_bytes, of_blocks, 1.0);
        let leaf = self.reads(blocks.leaves().miss_share, known, situation);
        let above = inner.iter().map(|level| self.reads(level.visits * level.miss_share, 0.0, situation));
        let left_bytes = of_leaves - kept_bytes - blocks.total_bytes();
        (std::iter::once(leaf).chain(above).collect(), left_bytes)
    }
}

impl Design for OutOfPlaceBTreeOfBlocks {
    fn name(&self) -> String {
        let (blocks, kib) = (self.blocks, self.block_bytes / 1024.0);
        format!("B-tree out of place, nodes of {blocks:.0} × {kib} KiB in van Emde Boas order")
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        if operation.is_change() || matches!(operation, Operation::Range { .. }) {
            return self.whole.demand(operation, situation);
        }
        let mut demand = Demand::of(operation, &situation.records);
        let stored = self.whole.stored(operation, situation);
        let (path, left_bytes) = self.path(&stored);
        for Reads { first, width, single } in path {
            for (requests, blocks) in [(first, width), (single, 1.0)] {
                demand.add(Transfer::reads(requests, blocks * self.block_bytes, situation.clients));
            }
        }
        stored.add_reads(&mut demand, left_bytes, 1.0);
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.whole.space_amplification(situation)
    }

    fn memory_bytes(&self, situation: &Situation) -> f64 {
        self.whole.memory_bytes(situation)
    }

    fn logged_records(&self, situation: &Situation) -> Records {
        self.whole.logged_records(situation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use crate::dictionary::Records;

    /// The store's study of such trees: a million records of 776 bytes in full nodes of four blocks of 4 KiB,
    /// with 0.25 % and 2 % of them as memory.
    #[test]
    fn look_ups_read_what_the_study_has_measured() {
        let records = Records { count: 1e6, key_bytes: 16.0, value_bytes: 760.0 };
        let mut tree = OutOfPlaceBTreeOfBlocks::new(4096.0, 4.0, 65_536.0);
        tree.whole.fill = 0.97;
        let requests = |clients, share: f64| {
            let situation = Situation::new(records, share * records.total_bytes(), clients);
            tree.demand(Operation::PointHit, &situation).requests(Access::Read)
        };
        for (clients, share, measured) in
            [(1.0, 0.0025, 1.03), (2.0, 0.0025, 1.48), (4.0, 0.0025, 1.75), (4.0, 0.02, 1.28)]
        {
            let predicted = requests(clients, share);
            assert!((predicted / measured - 1.0).abs() < 0.15, "{clients}, {share}: {predicted} {measured}");
        }
        // With memory for directories, and without enough for leaves: a block.
        assert!((requests(4.0, 0.1) - 0.9).abs() < 0.05, "{}", requests(4.0, 0.1));
    }

    #[test]
    fn a_change_writes_its_whole_node() {
        let records = Records { count: 1e7, key_bytes: 16.0, value_bytes: 100.0 };
        let situation = Situation::new(records, 0.01 * records.total_bytes(), 1.0);
        let written = |design: &dyn Design| design.demand(Operation::Update, &situation).bytes(Access::Write);
        let blocks = written(&OutOfPlaceBTreeOfBlocks::new(4096.0, 4.0, 65_536.0));
        let small = written(&OutOfPlaceBTree::new(4096.0, 65_536.0));
        assert!((4.0..5.5).contains(&(blocks / small)), "{blocks} {small}");
    }
}
