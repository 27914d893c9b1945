//! The B-tree for a varying number of clients (dictionaries paper §8, Lemma 13).
//!
//! Its nodes have P·B bytes, so that one client can have all P slots of the drive busy with one node, and are
//! laid out in the order of van Emde Boas, so that k clients can each read P/k blocks of a node at a time and
//! still learn as much from them as from any other P/k blocks.

use super::b_tree::{POINTER_BYTES, RANDOM_FILL, SLOT_BYTES};
use super::images::further_reads_in_place;
use super::overflow::Stored;
use super::{Demand, Design, Levels, Operation, Shape, Situation, Transfer, WriteBack, log_write};

/// A B-tree with nodes of P blocks in the order of van Emde Boas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PdamBTree {
    /// B: bytes of a block.
    pub block_bytes: f64,
    /// P: blocks of a node, and requests that the drive serves at a time.
    pub parallelism: f64,
    /// Share of a node that is in use.
    pub fill: f64,
    /// Runs of blocks that a range query asks for ahead at most.
    pub read_ahead: f64,
    /// How changed nodes are written.
    pub write_back: WriteBack,
}

impl PdamBTree {
    /// A tree for a drive with these parameters that has grown by random inserts.
    pub fn new(block_bytes: f64, parallelism: f64) -> Self {
        Self {
            block_bytes,
            parallelism: parallelism.max(1.0),
            fill: RANDOM_FILL,
            read_ahead: 1.0,
            write_back: WriteBack::ByClients,
        }
    }

    fn stored<'a>(&self, operation: Operation, situation: &'a Situation) -> Stored<'a> {
        Stored::of(operation, situation, self.node_bytes(), self.block_bytes)
    }

    fn node_bytes(&self) -> f64 {
        self.parallelism * self.block_bytes
    }

    /// Bytes of the P/k blocks that a client reads at a time; at least one block.
    fn run_bytes(&self, situation: &Situation) -> f64 {
        (self.parallelism / situation.clients.max(1.0)).max(1.0) * self.block_bytes
    }

    fn children(&self, bytes: f64, situation: &Situation) -> f64 {
        (bytes * self.fill / (situation.records.key_bytes + POINTER_BYTES)).max(2.0)
    }

    fn records(&self, bytes: f64, situation: &Situation) -> f64 {
        (bytes * self.fill / (situation.records.record_bytes() + SLOT_BYTES)).max(1.0)
    }

    fn levels(&self, situation: &Situation) -> Levels {
        let node_bytes = self.node_bytes();
        let shape = Shape {
            records_per_leaf: self.records(node_bytes, situation),
            leaf_bytes: node_bytes,
            lowest_fanout: self.children(node_bytes, situation),
            fanout: self.children(node_bytes, situation),
            inner_bytes: node_bytes,
            parts: self.parallelism,
        };
        Levels::new(situation, situation.cache_bytes, &shape)
    }

    /// Runs that a path reads: log_{PB/k} N of Lemma 13. Within a node their number is the quotient of the
    /// logarithms of the node's and of a run's number of keys. A leaf that is laid out anew is read as a
    /// whole.
    fn path(&self, operation: Operation, levels: &Levels, situation: &Situation) -> [Transfer; 2] {
        let run_bytes = self.run_bytes(situation);
        let runs = |node: f64, run: f64| (node.max(2.0).ln() / run.max(2.0).ln()).max(1.0);
        let inner_runs =
            runs(self.children(self.node_bytes(), situation), self.children(run_bytes, situation));
        let leaf_runs = runs(self.records(self.node_bytes(), situation), self.records(run_bytes, situation));
        let (inner, leaf) = (levels.inner_misses() * inner_runs, levels.leaves().miss_share);
        match operation {
            Operation::Insert | Operation::Delete => {
                let whole = Transfer { bytes_each: self.node_bytes(), ..self.reads(leaf, situation) };
                [self.reads(inner, situation), whole]
            }
            _ => [self.reads(inner, situation), self.reads(leaf * leaf_runs, situation)],
        }
    }

    fn reads(&self, runs: f64, situation: &Situation) -> Transfer {
        Transfer::reads(runs, self.run_bytes(situation), situation.clients)
    }
}

impl Design for PdamBTree {
    fn name(&self) -> String {
        format!(
            "B-tree, nodes of {:.1} × {} KiB in van Emde Boas order",
            self.parallelism,
            self.block_bytes / 1024.0
        )
    }

    /// The paper has queries only. A new value of the same size changes a block; a new record or a removal
    /// has its leaf laid out anew.
    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let stored = self.stored(operation, situation);
        let inline = &stored.inline;
        let levels = self.levels(inline);
        let leaves = levels.leaves();
        let left_bytes = situation.cache_bytes - levels.total_bytes();
        let mut demand = Demand::of(operation, &situation.records);
        self.path(operation, &levels, inline).into_iter().for_each(|reads| demand.add(reads));
        if let Operation::Range { bytes } = stored.operation() {
            let useful = self.records(self.run_bytes(inline), inline) * inline.records.record_bytes();
            let (further, at_once) = further_reads_in_place(bytes / useful, self.read_ahead);
            let reads = self.reads(further * leaves.miss_share, inline);
            demand.add(Transfer { concurrency: reads.concurrency * at_once, ..reads });
        }
        stored.add_reads(&mut demand, left_bytes, self.read_ahead);
        if operation.is_change() {
            let bytes = match operation {
                Operation::Update => self.block_bytes,
                _ => self.node_bytes(),
            };
            let splits = match operation {
                Operation::Update => 0.0,
                _ => 2.0 / self.records(self.node_bytes(), inline),
            };
            let writes = leaves.first_changes(inline, 1.0) + splits;
            demand.add(self.write_back.writes(writes, bytes, situation.clients));
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
    use crate::dictionary::{BTree, Records, price};
    use crate::test_support::ParallelDrive;

    const BLOCK_BYTES: f64 = 4096.0;
    const PARALLELISM: f64 = 16.0;
    const STEP: f64 = 1e-4;

    fn queries_per_step(design: &dyn Design, clients: f64) -> f64 {
        let records = Records { count: 1e12, key_bytes: 16.0, value_bytes: 0.0 };
        let situation = Situation::new(records, 0.0, clients);
        let drive = ParallelDrive { block_bytes: BLOCK_BYTES, parallelism: PARALLELISM, step_seconds: STEP };
        let demand = design.demand(Operation::PointHit, &situation);
        price(&demand, &drive, &situation).unwrap().operations_per_second * STEP
    }

    /// Lemma 13: one client is as fast as with large nodes, P clients as with small ones, and those between
    /// are faster than with either.
    #[test]
    fn any_number_of_clients_has_the_nodes_it_wants() {
        let small = BTree::new(BLOCK_BYTES);
        let large = BTree::new(PARALLELISM * BLOCK_BYTES);
        let tree = PdamBTree::new(BLOCK_BYTES, PARALLELISM);
        for clients in [1.0, 2.0, 4.0, 8.0, 16.0, 64.0] {
            let rate = queries_per_step(&tree, clients);
            let (small, large) = (queries_per_step(&small, clients), queries_per_step(&large, clients));
            // k / log_{PB/k} N with the constants of keys, pointers and fill.
            let run = (PARALLELISM / clients).max(1.0) * BLOCK_BYTES * RANDOM_FILL / 24.0;
            let lemma = clients.min(PARALLELISM) / (1e12f64.ln() / run.ln());
            println!(
                "k {clients}: {rate:.3} queries a step, small nodes {small:.3}, large {large:.3}, lemma {lemma:.3}"
            );
            assert!((rate / lemma - 1.0).abs() < 0.1, "{clients}: {rate} {lemma}");
            assert!(rate >= 0.97 * small && rate >= 0.999 * large, "{clients}: {rate} {small} {large}");
            if clients == 1.0 {
                assert!((rate / large - 1.0).abs() < 1e-9 && rate > 1.3 * small);
            }
            if clients >= PARALLELISM {
                assert!((rate / small - 1.0).abs() < 0.03 && rate > 8.0 * large);
            }
        }
    }
}
