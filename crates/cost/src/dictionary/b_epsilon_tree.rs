//! The Bε-tree (dictionaries paper §3 and §6: Theorem 4, Lemma 8, Theorem 9).
//!
//! A change is a message. It goes into the buffer of the root; where a buffer is full, the messages for one
//! child are flushed into that child's buffer, and those that reach a leaf change its records. So a node is
//! read and written once for many messages, and a query looks at one buffer on each level.

use super::b_tree::{POINTER_BYTES, RANDOM_FILL, SLOT_BYTES};
use super::images::further_reads_in_place;
use super::overflow::Stored;
use super::{Demand, Design, Levels, Operation, Shape, Situation, Transfer, WriteBack, log_write};

/// Overflow pages take whole blocks of this size.
const BLOCK_BYTES: f64 = 4096.0;

/// A Bε-tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BEpsilonTree {
    /// B: bytes of a node. With [`NodeLayout::Parts`] an inner node has its grandchildren's pivots in
    /// addition.
    pub node_bytes: f64,
    /// F: children of an inner node, at least 2.
    pub fanout: f64,
    /// The parts of a node that a query reads.
    pub layout: NodeLayout,
    /// Share of a leaf that is in use; ln 2 after random inserts.
    pub fill: f64,
    /// Share of the steps from a leaf to the next of a range query that go to a random place.
    pub leaf_step_random_share: f64,
    /// Leaves that a range query asks for ahead at most.
    pub read_ahead: f64,
    /// How nodes are flushed: their reads as well as their writes.
    pub flushes: WriteBack,
}

/// How a node's bytes are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeLayout {
    /// A node has its pivots and one buffer, and is read as a whole (Lemma 8). A full buffer is flushed to
    /// the child with the most messages.
    Whole,
    /// A node has a buffer of B/F bytes for each child, with that child's pivots next to it, so that a query
    /// reads one such part and knows before which one (Theorem 9). A child's buffer is flushed when it is
    /// full. A leaf has F parts as well, told apart by pivots in the leaf's parent. The weights of nodes are
    /// balanced, so that all of them have about F children.
    Parts,
}

impl BEpsilonTree {
    /// A tree that has grown by random inserts, with whole nodes: that of Theorem 4 and Lemma 8.
    pub fn naive(node_bytes: f64, fanout: f64) -> Self {
        Self {
            node_bytes,
            fanout: fanout.max(2.0),
            layout: NodeLayout::Whole,
            fill: RANDOM_FILL,
            leaf_step_random_share: 1.0,
            read_ahead: 1.0,
            flushes: WriteBack::ByClients,
        }
    }

    /// The same with nodes in parts: that of Theorem 9.
    pub fn optimised(node_bytes: f64, fanout: f64) -> Self {
        Self { layout: NodeLayout::Parts, ..Self::naive(node_bytes, fanout) }
    }

    /// The fanout that the paper's Table 3 and Corollary 10 have for a node size: √B, B counted in records.
    pub fn root_fanout(node_bytes: f64, record_bytes: f64) -> f64 {
        (node_bytes / record_bytes).sqrt().max(2.0)
    }

    /// A message has at most a quarter of the bytes that are read of a leaf.
    fn stored<'a>(&self, operation: Operation, situation: &'a Situation) -> Stored<'a> {
        Stored::of(operation, situation, self.leaf_read_bytes(), BLOCK_BYTES)
    }

    /// Bytes of the pivots that tell a node's children apart.
    fn pivot_bytes(&self, situation: &Situation) -> f64 {
        self.fanout * (situation.records.key_bytes + POINTER_BYTES)
    }

    fn records_per_leaf(&self, situation: &Situation) -> f64 {
        (self.node_bytes * self.fill / (situation.records.record_bytes() + SLOT_BYTES)).max(1.0)
    }

    /// Parts of a node that are read on their own.
    fn parts(&self) -> f64 {
        match self.layout {
            NodeLayout::Whole => 1.0,
            NodeLayout::Parts => self.fanout,
        }
    }

    fn inner_bytes(&self, situation: &Situation) -> f64 {
        match self.layout {
            NodeLayout::Whole => self.node_bytes,
            NodeLayout::Parts => self.node_bytes + self.fanout * self.pivot_bytes(situation),
        }
    }

    fn levels(&self, situation: &Situation) -> Levels {
        let shape = Shape {
            records_per_leaf: self.records_per_leaf(situation),
            leaf_bytes: self.node_bytes,
            lowest_fanout: self.fanout,
            fanout: self.fanout,
            inner_bytes: self.inner_bytes(situation),
            parts: self.parts(),
        };
        Levels::new(situation, situation.cache_bytes, &shape)
    }

    /// Bytes that a query reads of an inner node: 1 + αB in Lemma 8's unit of setups, 1 + αB/F + αF in
    /// Theorem 9's.
    fn inner_read_bytes(&self, situation: &Situation) -> f64 {
        self.inner_bytes(situation) / self.parts()
    }

    fn leaf_read_bytes(&self) -> f64 {
        self.node_bytes / self.parts()
    }

    /// Messages that a flush moves to a child.
    ///
    /// Whole nodes: if the fullest child is always the one that is flushed to, the shares of the F children
    /// grow alike from nothing up to the same size, so that the flushed one has twice the mean, 2/F of the
    /// buffer. Parts: all that the child's buffer holds.
    fn flushed_messages(&self, operation: Operation, situation: &Situation) -> f64 {
        let message = operation.changed_bytes(&situation.records) + SLOT_BYTES;
        let bytes = match self.layout {
            NodeLayout::Whole => {
                // A node that is full of pivots still has a message for each child.
                2.0 * (self.node_bytes - self.pivot_bytes(situation)).max(0.0) / (self.fanout + 1.0)
            }
            NodeLayout::Parts => self.node_bytes / self.fanout,
        };
        (bytes / message).max(1.0)
    }

    fn reads(&self, requests: f64, bytes_each: f64, situation: &Situation) -> Transfer {
        Transfer::reads(requests, bytes_each, situation.clients)
    }

    /// The path of a query: a read on each level.
    fn add_path(&self, demand: &mut Demand, levels: &Levels, situation: &Situation) {
        let inner = self.inner_read_bytes(situation);
        demand.add(self.reads(levels.inner_misses(), inner, situation));
        demand.add(self.reads(levels.leaves().miss_share, self.leaf_read_bytes(), situation));
    }

    /// Reads of a range query beyond its path: whole leaves, and the messages of the nodes above them.
    fn add_range(&self, demand: &mut Demand, bytes: f64, levels: &Levels, situation: &Situation) {
        let useful = self.records_per_leaf(situation) * situation.records.record_bytes();
        let mut nodes = bytes / useful;
        for (height, level) in levels.iter().enumerate() {
            let bytes_each = if height == 0 { self.node_bytes } else { self.inner_bytes(situation) };
            let read_ahead = if height == 0 { self.read_ahead } else { 1.0 };
            let (further, at_once) = further_reads_in_place(nodes * level.visits, read_ahead);
            let reads = self.reads(further * level.miss_share, bytes_each, situation);
            let (random_share, concurrency) = (self.leaf_step_random_share, reads.concurrency * at_once);
            demand.add(Transfer { random_share, concurrency, ..reads });
            nodes /= self.fanout;
        }
    }

    /// Flushes of one message down the levels: (F/B + αF) on each of them (Lemma 8, Theorem 9).
    fn add_flushes(&self, demand: &mut Demand, operation: Operation, levels: &Levels, situation: &Situation) {
        let flushes = self.flushed_messages(operation, situation).recip();
        let inner_bytes = self.inner_bytes(situation);
        let above = levels.inner().map(|level| level.visits);
        for (height, (level, parent_visits)) in levels.iter().zip(above).enumerate() {
            let bytes_each = if height == 0 { self.node_bytes } else { inner_bytes };
            let flushes = flushes * parent_visits;
            let node_reads = flushes * level.steady_miss_share;
            let node_writes = flushes * level.first_changes(situation, flushes);
            demand.add(self.flushes.reads(node_reads, bytes_each, situation.clients));
            demand.add(self.flushes.writes(node_writes, bytes_each, situation.clients));
        }
        if operation == Operation::Update {
            return;
        }
        // Splits and merges of leaves: each writes one more, and its parent.
        let splits = self.records_per_leaf(situation).recip();
        demand.add(self.flushes.writes(splits, self.node_bytes, situation.clients));
        demand.add(self.flushes.writes(splits, inner_bytes, situation.clients));
        if self.layout == NodeLayout::Parts {
            // A node whose weight has changed by 1/log F has the tree below its parent rebuilt: with changes
            // all over the tree, each of its leaves and few nodes above them, log F times as often as a leaf
            // splits.
            let rebuilt = splits * self.fanout.log2().max(1.0);
            for height in levels.inner().map(|level| level.visits) {
                let nodes = rebuilt * height;
                demand.add(self.flushes.reads(nodes, self.node_bytes, situation.clients));
                demand.add(self.flushes.writes(nodes, self.node_bytes, situation.clients));
            }
        }
    }
}

impl Design for BEpsilonTree {
    fn name(&self) -> String {
        let layout = match self.layout {
            NodeLayout::Whole => "Bε-tree",
            NodeLayout::Parts => "Bε-tree in parts",
        };
        format!("{layout}, {} KiB nodes, fanout {:.0}", self.node_bytes / 1024.0, self.fanout)
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.stored(operation, situation);
        let inline = &stored.inline;
        let levels = self.levels(inline);
        let left_bytes = situation.cache_bytes - levels.total_bytes();
        let mut demand = Demand::of(operation, &situation.records);
        if operation.is_change() {
            // Blind: nothing is looked up.
            self.add_flushes(&mut demand, operation, &levels, inline);
            let values = stored.written(left_bytes);
            demand.add(self.flushes.writes(values, stored.value_bytes, situation.clients));
            demand.add(log_write(operation, situation));
        } else {
            self.add_path(&mut demand, &levels, inline);
        }
        if let Operation::Range { bytes } = stored.operation() {
            self.add_range(&mut demand, bytes, &levels, inline);
        }
        stored.add_reads(&mut demand, left_bytes, self.read_ahead);
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        let stored = self.stored(Operation::Update, situation);
        (self.levels(&stored.inline).total_bytes() + stored.total_bytes()) / situation.records.total_bytes()
    }

    /// The root, whose buffer takes the messages.
    fn memory_bytes(&self, situation: &Situation) -> f64 {
        self.inner_bytes(situation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use crate::dictionary::Records;

    fn situation() -> Situation {
        Situation::new(Records { count: 1e8, key_bytes: 16.0, value_bytes: 100.0 }, 0.0, 1.0)
    }

    /// The constant of a flush to the fullest child, compared with a drawn one.
    #[test]
    fn the_fullest_child_has_almost_twice_the_mean() {
        use rand::RngExt;
        for (fanout, messages) in [(8usize, 4000usize), (64, 8000)] {
            let mut rng = crate::test_support::generator(11);
            let mut children = vec![0usize; fanout];
            let (mut held, mut flushes, mut flushed) = (0, 0usize, 0usize);
            for _ in 0..100 * messages {
                let child = rng.random_range(0..fanout);
                children[child] += 1;
                held += 1;
                if held == messages {
                    let fullest = (0..fanout).max_by_key(|child| children[*child]).unwrap();
                    held -= children[fullest];
                    flushed += children[fullest];
                    flushes += 1;
                    children[fullest] = 0;
                }
            }
            let share = 2.0 * messages as f64 / (fanout as f64 + 1.0);
            let drawn = flushed as f64 / flushes as f64;
            assert!((drawn / share - 1.0).abs() < 0.05, "{fanout}: {drawn} {share}");
        }
    }

    #[test]
    fn a_query_of_parts_reads_one_of_each_level() {
        let situation = situation();
        let tree = BEpsilonTree::optimised(1_048_576.0, 16.0);
        let demand = tree.demand(Operation::PointHit, &situation);
        let [inner, leaf] = demand.transfers.as_slice() else { panic!("{demand:?}") };
        // B/F and F pivots of 24 bytes; a leaf's part has no pivots.
        assert_eq!((inner.bytes_each, leaf.bytes_each), (65_536.0 + 16.0 * 24.0, 65_536.0));
        let leaves: f64 = 1e8 / (1_048_576.0 * RANDOM_FILL / 124.0);
        assert!((inner.requests - leaves.ln() / 16f64.ln()).abs() < 1e-9, "{inner:?}");
        let naive = BEpsilonTree::naive(1_048_576.0, 16.0).demand(Operation::PointHit, &situation);
        assert!((naive.requests(Access::Read) - demand.requests(Access::Read)).abs() < 1e-9);
        assert_eq!(naive.transfers[0].bytes_each, 1_048_576.0);
    }

    #[test]
    fn an_update_is_flushed_once_for_each_level_below_the_root() {
        let situation = situation();
        let tree = BEpsilonTree::naive(1_048_576.0, 16.0);
        let demand = tree.demand(Operation::Update, &situation);
        let flushed = 2.0 * (1_048_576.0 - 16.0 * 24.0) / 17.0 / 124.0;
        let leaves: f64 = 1e8 / (1_048_576.0 * RANDOM_FILL / 124.0);
        let levels = leaves.ln() / 16f64.ln();
        assert!((demand.requests(Access::Write) * flushed / levels - 1.0).abs() < 1e-9, "{demand:?}");
        assert!((demand.requests(Access::Read) * flushed / levels - 1.0).abs() < 1e-9);
        // Theorem 4: write amplification F·log_F(N/M), halved by the choice of the fullest child.
        let amplification = demand.write_amplification().unwrap();
        assert!(
            (amplification / (8.5 * levels * 124.0 / 116.0) - 1.0).abs() < 1e-3,
            "{amplification} {levels}"
        );
        // A removal is a short message.
        let delete = tree.demand(Operation::Delete, &situation);
        assert!(delete.requests(Access::Read) < 0.3 * demand.requests(Access::Read));
    }
}
