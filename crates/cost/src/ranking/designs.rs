//! The designs that are ranked, each with the parameters that are tried.

use std::cell::RefCell;

use serde::Serialize;

use crate::dictionary::{
    BEpsilonTree, BTree, Demand, Design, Operation, OutOfPlaceBTree, PdamBTree, Records, Situation,
    WriteBack, powers_of_two,
};
use crate::lsm::{Layout, LsmTree, Metadata};

/// A kind of design; its best parameters stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// B+-tree with pages in place.
    BTree,
    /// B+-tree whose nodes have P blocks in van Emde Boas order (dictionaries paper, Lemma 13).
    PdamBTree,
    /// B+-tree whose pages are written elsewhere each time, in large units.
    OutOfPlaceBTree,
    /// Bε-tree whose nodes are read as a whole.
    BEpsilonNaive,
    /// Bε-tree with a buffer per child and pivots in the parent (dictionaries paper, Theorem 9).
    BEpsilonOptimised,
    /// LSM-tree with one run per level.
    LsmLeveled,
    /// LSM-tree with several runs per level.
    LsmTiered,
    /// LSM-tree with several runs per level but the last.
    LsmLazyLeveled,
    /// LSM-tree with one run.
    LsmSingleLevel,
}

impl Family {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::BTree,
        Self::PdamBTree,
        Self::OutOfPlaceBTree,
        Self::BEpsilonNaive,
        Self::BEpsilonOptimised,
        Self::LsmLeveled,
        Self::LsmTiered,
        Self::LsmLazyLeveled,
        Self::LsmSingleLevel,
    ];

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::BTree => "B-tree in place",
            Self::PdamBTree => "PDAM B-tree",
            Self::OutOfPlaceBTree => "B-tree out of place",
            Self::BEpsilonNaive => "Bε-tree, nodes read whole",
            Self::BEpsilonOptimised => "Bε-tree, buffers per child",
            Self::LsmLeveled => "LSM-tree, leveled",
            Self::LsmTiered => "LSM-tree, tiered",
            Self::LsmLazyLeveled => "LSM-tree, lazy leveled",
            Self::LsmSingleLevel => "LSM-tree, single level",
        }
    }

    fn of_layout(layout: Layout) -> Self {
        match layout {
            Layout::Leveled => Self::LsmLeveled,
            Layout::Tiered => Self::LsmTiered,
            Layout::LazyLeveled => Self::LsmLazyLeveled,
            Layout::SingleLevel => Self::LsmSingleLevel,
        }
    }
}

/// Node sizes of B-trees.
const NODE_BYTES_MIN: f64 = 4096.0;
const NODE_BYTES_MAX: f64 = 1_048_576.0;
/// Blocks of a PDAM B-tree's nodes: their bytes, and how many of them, as many as the store makes.
const BLOCK_BYTES_MAX: f64 = 16_384.0;
const BLOCKS_MAX: f64 = 16.0;
/// Bytes that range queries read ahead, at most.
const READ_AHEAD_BYTES: f64 = 524_288.0;
/// Bytes that one request of a tree out of place writes.
const WRITE_UNIT_BYTES: f64 = 65_536.0;
/// Node sizes of Bε-trees, whose nodes have room for buffers.
const BUFFERED_BYTES_MIN: f64 = 65_536.0;
const BUFFERED_BYTES_MAX: f64 = 4_194_304.0;
const BUFFERED_FANOUTS: [f64; 4] = [4.0, 8.0, 16.0, 32.0];
const LSM_FANOUTS: [f64; 4] = [4.0, 6.0, 10.0, 16.0];
/// Small ones for memories that have no room for memtables of larger ones.
const LSM_FILE_BYTES: [f64; 5] = [64.0 * MEBI, 256.0 * MEBI, 16.0 * MEBI, 4.0 * MEBI, 0.5 * MEBI];
const LSM_BLOCK_BYTES: [f64; 2] = [4096.0, 16384.0];
const LSM_FILTER_BITS: [f64; 2] = [0.0, 10.0];
const MEBI: f64 = 1_048_576.0;

type Demands = Vec<(Operation, Demand)>;

/// A design, and its demand in the last situation: mixes of the same operations differ in shares only. Its
/// clients do not depend on each other, but wait for as many requests each.
struct Remembering {
    design: Box<dyn Design>,
    last: RefCell<Option<(Situation, Demands)>>,
}

fn remembering(design: Box<dyn Design>) -> Box<dyn Design> {
    Box::new(Remembering { design, last: RefCell::default() })
}

impl Design for Remembering {
    fn name(&self) -> String {
        self.design.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let alone = Situation { clients: 1.0, ..*situation };
        let mut last = self.last.borrow_mut();
        let (_, known) = match last.take_if(|(of, _)| *of == alone) {
            Some(same) => last.insert(same),
            None => last.insert((alone, Vec::new())),
        };
        let position = known.iter().position(|(of, _)| *of == operation).unwrap_or_else(|| {
            known.push((operation, self.design.demand(operation, &alone)));
            known.len() - 1
        });
        let mut demand = known.get(position).map(|(_, demand)| demand.clone()).unwrap_or_default();
        let awaited = demand.transfers.iter_mut().filter(|transfer| transfer.awaited);
        awaited.for_each(|transfer| transfer.concurrency *= situation.clients);
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.design.space_amplification(situation)
    }

    fn memory_bytes(&self, situation: &Situation) -> f64 {
        self.design.memory_bytes(situation)
    }

    fn logged_records(&self, situation: &Situation) -> Records {
        self.design.logged_records(situation)
    }
}

/// A design with parameters.
pub(super) struct Candidate {
    pub family: Family,
    /// The design with its parameters, for people.
    pub name: String,
    pub design: Box<dyn Design>,
}

/// All that are tried. `write_concurrency` are the writes that background work keeps outstanding,
/// `parallelism` are the requests that the drive serves in the time of one.
pub(super) fn candidates(write_concurrency: f64, parallelism: f64) -> Vec<Candidate> {
    let mut all = Vec::new();
    let mut add = |family: Family, design: Box<dyn Design>| {
        // Clients have the more blocks of a node at once the fewer they are.
        let is_wide = family == Family::PdamBTree;
        let name = design.name();
        let design =
            if is_wide { design } else { Box::new(Remembering { design, last: RefCell::default() }) };
        all.push(Candidate { family, name, design });
    };
    let background = WriteBack::Background { concurrency: write_concurrency };
    for node_bytes in powers_of_two(NODE_BYTES_MIN, NODE_BYTES_MAX) {
        let read_ahead = READ_AHEAD_BYTES / node_bytes;
        let tree = BTree { write_back: background, read_ahead, ..BTree::new(node_bytes) };
        add(Family::BTree, Box::new(tree));
        let tree =
            OutOfPlaceBTree { write_concurrency, ..OutOfPlaceBTree::new(node_bytes, WRITE_UNIT_BYTES) };
        add(Family::OutOfPlaceBTree, Box::new(tree));
    }
    for block_bytes in powers_of_two(NODE_BYTES_MIN, BLOCK_BYTES_MAX) {
        let blocks = parallelism.clamp(1.0, BLOCKS_MAX).log2().floor().exp2();
        let read_ahead = READ_AHEAD_BYTES / block_bytes;
        let tree = PdamBTree { write_back: background, read_ahead, ..PdamBTree::new(block_bytes, blocks) };
        add(Family::PdamBTree, Box::new(tree));
    }
    for node_bytes in powers_of_two(BUFFERED_BYTES_MIN, BUFFERED_BYTES_MAX) {
        for fanout in BUFFERED_FANOUTS {
            let read_ahead = READ_AHEAD_BYTES / node_bytes;
            let of = |tree| Box::new(BEpsilonTree { flushes: background, read_ahead, ..tree });
            add(Family::BEpsilonNaive, of(BEpsilonTree::naive(node_bytes, fanout)));
            // Parts are no smaller than the nodes of B-trees.
            if node_bytes / fanout >= NODE_BYTES_MIN {
                add(Family::BEpsilonOptimised, of(BEpsilonTree::optimised(node_bytes, fanout)));
            }
        }
    }
    for tree in lsm_trees(write_concurrency) {
        let name = format!(
            "{}, {} MiB files, {} KiB blocks, {} filter bits",
            tree.name(),
            tree.file_bytes / MEBI,
            tree.block_bytes / 1024.0,
            tree.filter_bits_per_key
        );
        let family = Family::of_layout(tree.layout);
        all.push(Candidate { family, name, design: remembering(Box::new(tree)) });
    }
    all
}

fn lsm_trees(compaction_threads: f64) -> Vec<LsmTree> {
    let mut all = Vec::new();
    for layout in Layout::ALL {
        let fanouts = if layout == Layout::SingleLevel { &LSM_FANOUTS[..1] } else { &LSM_FANOUTS[..] };
        for fanout in fanouts {
            for file_bytes in LSM_FILE_BYTES {
                for block_bytes in LSM_BLOCK_BYTES {
                    all.extend(LSM_FILTER_BITS.map(|filter_bits_per_key| LsmTree {
                        fanout: *fanout,
                        file_bytes,
                        block_bytes,
                        filter_bits_per_key,
                        metadata: Metadata::Cached,
                        compaction_threads,
                        subcompactions: compaction_threads,
                        ..LsmTree::new(layout)
                    }));
                }
            }
        }
    }
    all
}
