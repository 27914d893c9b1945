//! The B-tree that changes its nodes in place (dictionaries paper §3 and §5: Lemmas 2, 3 and 5).

use super::images::further_reads_in_place;
use super::overflow::Stored;
use super::{Demand, Design, Level, Levels, Operation, Shape, Situation, Transfer, log_write};
use crate::Access;

/// Bytes of a child's number and other data that an inner node keeps for each key.
pub(super) const POINTER_BYTES: f64 = 8.0;
/// Bytes that a leaf keeps in addition to each record: an offset and lengths.
pub(super) const SLOT_BYTES: f64 = 8.0;
/// How full nodes are after many random inserts and splits into halves: ln 2.
pub(super) const RANDOM_FILL: f64 = std::f64::consts::LN_2;

/// A B+-tree whose nodes have a place each on the drive, where they are read and overwritten as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BTree {
    /// B: bytes of a node, leaf or inner.
    pub node_bytes: f64,
    /// Share of a node that is in use; ln 2 after random inserts, near 1 after loading in order.
    pub fill: f64,
    /// Share of the steps from a leaf to the next of a range query that go to a random place: 1 for a tree
    /// that has grown by random inserts, near 0 after loading in order.
    pub leaf_step_random_share: f64,
    /// Leaves that a range query asks for ahead at most.
    pub read_ahead: f64,
    /// How changed nodes are written.
    pub write_back: WriteBack,
}

/// How changed nodes get to the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteBack {
    /// A client that needs room in memory writes the node that leaves it, and waits for that.
    ByClients,
    /// Other threads write, with this number of requests outstanding.
    Background {
        /// Effective concurrency of these writes.
        concurrency: f64,
    },
}

impl WriteBack {
    /// Writes of nodes.
    pub(super) fn writes(self, requests: f64, bytes_each: f64, clients: f64) -> Transfer {
        self.transfer(Access::Write, requests, bytes_each, clients)
    }

    /// Reads of nodes that are changed on the way.
    pub(super) fn reads(self, requests: f64, bytes_each: f64, clients: f64) -> Transfer {
        self.transfer(Access::Read, requests, bytes_each, clients)
    }

    fn transfer(self, access: Access, requests: f64, bytes_each: f64, clients: f64) -> Transfer {
        let (concurrency, awaited) = match self {
            Self::ByClients => (clients, true),
            Self::Background { concurrency } => (concurrency, false),
        };
        Transfer { access, requests, bytes_each, random_share: 1.0, concurrency, awaited }
    }
}

impl BTree {
    /// A tree that has grown by random inserts, without read-ahead, whose clients write the dirty nodes that
    /// they evict.
    pub fn new(node_bytes: f64) -> Self {
        Self {
            node_bytes,
            fill: RANDOM_FILL,
            leaf_step_random_share: 1.0,
            read_ahead: 1.0,
            write_back: WriteBack::ByClients,
        }
    }

    fn stored<'a>(&self, operation: Operation, situation: &'a Situation) -> Stored<'a> {
        Stored::of(operation, situation, self.node_bytes, self.node_bytes)
    }

    fn records_per_leaf(&self, situation: &Situation) -> f64 {
        let record = situation.records.record_bytes() + SLOT_BYTES;
        (self.node_bytes * self.fill / record).max(1.0)
    }

    /// Children of an inner node: the paper's B + 1, in keys.
    fn fanout(&self, situation: &Situation) -> f64 {
        (self.node_bytes * self.fill / (situation.records.key_bytes + POINTER_BYTES)).max(2.0)
    }

    fn levels(&self, situation: &Situation) -> Levels {
        let shape = Shape {
            records_per_leaf: self.records_per_leaf(situation),
            leaf_bytes: self.node_bytes,
            lowest_fanout: self.fanout(situation),
            fanout: self.fanout(situation),
            inner_bytes: self.node_bytes,
            parts: 1.0,
        };
        Levels::new(situation, situation.cache_bytes, &shape)
    }

    /// Nodes that a root-to-leaf path reads: log_{B+1}(N/M) of Lemma 2.
    fn path(&self, levels: &Levels, situation: &Situation) -> Transfer {
        Transfer::reads(levels.misses(), self.node_bytes, situation.clients)
    }

    /// Leaves beyond the first that a range query reads: ⌈ℓ/B⌉ of Lemma 2.
    fn further_leaves(&self, bytes: f64, leaves: Level, situation: &Situation) -> Transfer {
        let useful = self.records_per_leaf(situation) * situation.records.record_bytes();
        let (further, at_once) = further_reads_in_place(bytes / useful, self.read_ahead);
        Transfer {
            access: Access::Read,
            requests: further * leaves.miss_share,
            bytes_each: self.node_bytes,
            random_share: self.leaf_step_random_share,
            concurrency: situation.clients * at_once,
            awaited: true,
        }
    }

    /// Splits or merges per insert or delete: O(1/B) of Lemma 2. Each writes one leaf more, and its parent.
    fn splits(&self, situation: &Situation) -> f64 {
        self.records_per_leaf(situation).recip()
    }
}

impl Design for BTree {
    fn name(&self) -> String {
        format!("B-tree, {} KiB nodes", self.node_bytes / 1024.0)
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.stored(operation, situation);
        let levels = self.levels(&stored.inline);
        let leaves = levels.leaves();
        let left_bytes = situation.cache_bytes - levels.total_bytes();
        let mut demand = Demand::of(operation, &situation.records);
        demand.add(self.path(&levels, situation));
        if let Operation::Range { bytes } = stored.operation() {
            demand.add(self.further_leaves(bytes, leaves, &stored.inline));
        }
        stored.add_reads(&mut demand, left_bytes, self.read_ahead);
        if operation.is_change() {
            // With little memory every change writes its leaf, hence Lemma 3's write amplification of Θ(B).
            let mut writes = leaves.first_changes(&stored.inline, 1.0);
            if operation != Operation::Update {
                writes += 2.0 * self.splits(&stored.inline);
            }
            demand.add(self.write_back.writes(writes, self.node_bytes, situation.clients));
            let values = stored.written(left_bytes);
            demand.add(self.write_back.writes(values, stored.value_bytes, situation.clients));
            demand.add(log_write(operation, situation));
        }
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        let stored = self.stored(Operation::Update, situation);
        (self.levels(&stored.inline).total_bytes() + stored.total_bytes()) / situation.records.total_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AffineCosts;
    use crate::dictionary::{Binding, Records, price};

    const SITUATION: fn() -> Situation = || {
        let records = Records { count: 1e8, key_bytes: 16.0, value_bytes: 100.0 };
        Situation::new(records, 0.0, 1.0)
    };

    #[test]
    fn without_memory_a_look_up_reads_a_node_of_each_level() {
        let situation = SITUATION();
        let tree = BTree::new(16_384.0);
        let demand = tree.demand(Operation::PointHit, &situation);
        // 16 KiB · ln 2 hold 91.6 records of 124 bytes, and 473 children of 24 bytes.
        let leaves: f64 = 1e8 / (16_384.0 * RANDOM_FILL / 124.0);
        let height = 1.0 + leaves.ln() / (16_384.0 * RANDOM_FILL / 24.0).ln();
        assert!((demand.requests(Access::Read) - height).abs() < 1e-9, "{demand:?} {height}");
        assert_eq!(demand.write_amplification(), None);
        assert_eq!(demand.read_amplification(), Some(demand.bytes(Access::Read) / 116.0));
    }

    #[test]
    fn memory_for_the_inner_nodes_leaves_one_read_and_an_insert_writes_its_leaf() {
        let tree = BTree::new(16_384.0);
        let inner: f64 = tree.levels(&SITUATION()).inner().map(|level| level.nodes * 16_384.0).sum();
        let situation = Situation { cache_bytes: inner * 8.0, ..SITUATION() };
        let query = tree.demand(Operation::PointMiss, &situation);
        assert!((query.requests(Access::Read) - 1.0).abs() < 0.02, "{query:?}");
        // Lemma 3: a node for each record, and a little for splits.
        let amplification = tree.demand(Operation::Insert, &situation).write_amplification().unwrap();
        assert!((amplification / (16_384.0 / 116.0) - 1.0).abs() < 0.03, "{amplification}");
    }

    #[test]
    fn an_affine_drive_prices_lemma_5() {
        let drive = AffineCosts::from_alpha(0.012, 0.0029, 4096.0);
        let situation = SITUATION();
        let demand = BTree::new(65_536.0).demand(Operation::PointHit, &situation);
        let cost = price(&demand, &drive, &situation).unwrap();
        let lemma = 0.012 * (1.0 + 0.0029 * 16.0) * demand.requests(Access::Read);
        assert!((cost.latency_seconds / lemma - 1.0).abs() < 1e-9, "{cost:?} {lemma}");
        assert_eq!(cost.binding, Binding::Device);
        // The drive does one thing at a time: more clients wait longer and get no more done.
        let many = price(&demand, &drive, &Situation { clients: 8.0, ..situation }).unwrap();
        assert!((many.operations_per_second / cost.operations_per_second - 1.0).abs() < 1e-9);
        assert!((many.latency_seconds / cost.latency_seconds - 8.0).abs() < 1e-9);
    }
}
