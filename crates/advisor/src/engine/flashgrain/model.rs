//! The configurations of a store, as models of its I/O: B-trees with pages out of place, whose write unit is
//! the profile's, with nodes that are read whole or in blocks; the Bε-tree; and the LSM-tree that the store
//! makes for a declared workload.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::{Design, OutOfPlaceBEpsilonTree, OutOfPlaceBTree, OutOfPlaceBTreeOfBlocks};
use flashgrain_cost::lsm::{LsmTree, Metadata, OutOfPlaceLsmTree};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, asked, situation};
use flashgrain_settings::lsm_usual::{self, MEMTABLE_BYTES_MAX, MEMTABLE_DIVISOR};
use flashgrain_settings::unit::{self, DEFAULT_UNIT_BYTES, UNIT_BYTES};
use flashgrain_settings::{
    Bytes, Count, LsmDesign, LsmSurroundings, LsmWorkload, SyncMethod, drive as decided,
};

use super::super::tuned::Configuration;
use super::around::AroundItsSize;
use crate::drive::Drive;
use crate::workload::{Durability, Workload};

pub(super) const KIBI: f64 = 1024.0;

/// The structure of a store's tree, apart from the size of its nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeStructure {
    /// A B+-tree with nodes that are read whole.
    BTree,
    /// A B+-tree with nodes of `blocks` blocks; look-ups read single blocks.
    BTreeOfBlocks {
        /// Blocks of a node.
        blocks: u32,
    },
    /// An LSM-tree.
    LsmTree {
        /// Layout, F and C.
        design: LsmDesign,
        /// T: bytes of a table, and of a memtable.
        table_bytes: u64,
    },
    /// A Bε-tree.
    BeTree {
        /// B: bytes of a node with all its parts, and of a leaf.
        node_bytes: u64,
        /// F: children of a node.
        fanout: u32,
    },
}

/// The parts of the configuration that the model knows.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub cache_bytes: f64,
    /// The size of a B+-tree's nodes or of the blocks of one, of an LSM-tree's blocks, and of a Bε-tree's
    /// basement nodes.
    pub node_bytes: f64,
    pub write_unit_bytes: f64,
    /// Bytes between borders that images of pages keep within.
    pub border_bytes: f64,
    /// Tables take whole segments.
    pub segment_bytes: u64,
    pub sync_method: SyncMethod,
    pub syncs: bool,
    /// Requests that saturate the drive.
    pub in_flight: u32,
    /// Bytes that the busy drive transfers in the time of a setup of its reads; 0 if that was not learned.
    pub half_bandwidth_bytes: u64,
    /// How the tree is kept.
    pub structure: TreeStructure,
    /// Facts about an existing store.
    pub facts: StoreFacts,
    /// Whether the tree is there, with the size that it has, rather than one that is to be made.
    pub is_there: bool,
}

/// Facts about an existing store.
#[derive(Clone, Copy, Debug)]
pub struct StoreFacts {
    /// Processor times of its operations.
    pub processor: ProcessorTimes,
    /// Share of its segments that live images take; `None`: that of a store that may grow.
    pub utilisation: Option<f64>,
}

impl StoreFacts {
    /// Those of a store that is only thought of.
    pub const USUAL: Self = Self { processor: ProcessorTimes::OF_GOOD_STORE, utilisation: None };
}

pub(super) const DEFAULT: Store = Store {
    cache_bytes: 256.0 * KIBI * KIBI,
    node_bytes: 4.0 * KIBI,
    write_unit_bytes: DEFAULT_UNIT_BYTES as f64,
    border_bytes: DEFAULT_UNIT_BYTES as f64,
    segment_bytes: 4 << 20,
    sync_method: SyncMethod::Fdatasync,
    syncs: true,
    in_flight: 64,
    half_bandwidth_bytes: 0,
    structure: TreeStructure::BTree,
    facts: StoreFacts::USUAL,
    is_there: false,
};

/// A store keeps its cache within this budget; logs and requests need a little more.
const CACHE_FRACTION: f64 = 0.9;
const CACHE_BYTES_MIN: f64 = KIBI * KIBI;
/// Blocks of a run that a scan of an LSM-tree reads one by one, before it reads up to a partition at once.
const BLOCKS_ALONE: f64 = 16.0;
const PARTITION_BYTES: f64 = lsm_usual::PARTITION_BYTES as f64;
/// Log between two checkpoints.
const LOG_BYTES: f64 = 256.0 * KIBI * KIBI;

impl Store {
    /// The settings that follow from workload and drive, except for kind and node size of trees.
    pub fn advised(workload: &Workload, drive: &Drive) -> Self {
        let learned = |setting| {
            let learned = drive.decided(setting).filter(|(_, decision)| !decision.from_default);
            learned.map(|(Bytes(bytes), _)| bytes)
        };
        let unit = learned(decided::Setting::write_unit);
        let unit_bytes = unit.map_or(DEFAULT_UNIT_BYTES, |bytes| unit::fitting(bytes, UNIT_BYTES));
        let border = learned(decided::Setting::log_block);
        let border_bytes =
            border.map_or(unit_bytes, |bytes| unit::fitting(bytes, unit::border_bytes(unit_bytes)));
        let segment = drive.decided(decided::Setting::segment);
        let segment = segment.filter(|(_, decision)| !decision.from_default);
        let in_flight = drive.decided(decided::Setting::requests_in_flight);
        let method = drive.decided(decided::Setting::sync_method).map(|(method, _)| method);
        Self {
            cache_bytes: (workload.memory_bytes as f64 * CACHE_FRACTION).max(CACHE_BYTES_MIN),
            write_unit_bytes: unit_bytes.into(),
            border_bytes: border_bytes.into(),
            segment_bytes: segment.map_or(DEFAULT.segment_bytes, |(shape, _)| shape.bytes.max(1)),
            in_flight: in_flight.map_or(DEFAULT.in_flight, |(Count(count), _)| count as u32),
            half_bandwidth_bytes: learned(decided::Setting::busy_half_bandwidth).unwrap_or_default(),
            sync_method: method.unwrap_or(DEFAULT.sync_method),
            // A store's buffered writes are bound to no window.
            syncs: workload.durability != Durability::None,
            ..DEFAULT
        }
    }

    /// Bytes of a memtable and of a table.
    pub fn table_bytes(&self) -> u64 {
        let bytes = (self.cache_bytes as u64 / MEMTABLE_DIVISOR).min(MEMTABLE_BYTES_MAX);
        bytes.next_multiple_of(self.segment_bytes)
    }

    /// Space of the tree over that of its records.
    pub fn space_amplification(&self, workload: &Workload) -> f64 {
        self.design().space_amplification(&situation(workload, &self.engine(workload)))
    }

    /// Bytes of a memtable of a Bε-tree.
    fn memtable_bytes(&self) -> f64 {
        (self.cache_bytes / MEMTABLE_DIVISOR as f64).min(MEMTABLE_BYTES_MAX as f64)
    }

    /// The tree as a model of its I/O.
    fn design(&self) -> Box<dyn Design> {
        let (node, unit) = (self.node_bytes, self.write_unit_bytes);
        let filled = |tree: OutOfPlaceBTree| OutOfPlaceBTree {
            utilisation: self.facts.utilisation.unwrap_or(tree.utilisation),
            border_bytes: self.border_bytes,
            ..tree
        };
        match self.structure {
            TreeStructure::BTree => Box::new(filled(OutOfPlaceBTree::new(node, unit))),
            TreeStructure::BTreeOfBlocks { blocks } => {
                let tree = OutOfPlaceBTreeOfBlocks::new(node, blocks.into(), unit);
                Box::new(OutOfPlaceBTreeOfBlocks { whole: filled(tree.whole), ..tree })
            }
            TreeStructure::LsmTree { design, table_bytes } => {
                let pages = filled(OutOfPlaceBTree::new(node, unit));
                // Levels are sized in memtables, whatever the tables are.
                let file_bytes = if self.is_there { table_bytes } else { self.table_bytes() };
                let tree = OutOfPlaceLsmTree { tree: self.lsm_tree(design, file_bytes), pages };
                if self.is_there { Box::new(tree) } else { Box::new(AroundItsSize(tree)) }
            }
            TreeStructure::BeTree { node_bytes, fanout } => {
                let tree = OutOfPlaceBEpsilonTree::new(node_bytes as f64, fanout.into(), node, unit);
                Box::new(OutOfPlaceBEpsilonTree {
                    memtable_bytes: self.memtable_bytes(),
                    utilisation: self.facts.utilisation.unwrap_or(tree.utilisation),
                    border_bytes: self.border_bytes,
                    ..tree
                })
            }
        }
    }

    /// The structure with its parameters, in words.
    pub fn structure_text(&self) -> String {
        match self.structure {
            TreeStructure::BTree => "a B+-tree".into(),
            TreeStructure::BTreeOfBlocks { blocks } => format!("a B+-tree with nodes of {blocks} blocks"),
            TreeStructure::LsmTree { design: LsmDesign { layout, fanout, level_zero_runs }, .. } => {
                let runs = if level_zero_runs == 1 { "run" } else { "runs" };
                format!("an LSM-tree ({layout}, fanout {fanout}, level 0 of {level_zero_runs} {runs})")
            }
            TreeStructure::BeTree { node_bytes, fanout } => {
                format!("a Bε-tree (nodes of {}, fanout {fanout})", Bytes(node_bytes))
            }
        }
    }

    /// The same with the size of its nodes or blocks.
    pub fn describe(&self) -> String {
        format!("{}, {}", self.structure_text(), Bytes(self.node_bytes as u64))
    }

    /// The LSM-trees that the store makes for a workload: a design follows from each size of tables up to
    /// that of a memtable, the largest first. With more memory there are all that there are with less.
    pub fn lsm_trees_for(&self, workload: &Workload) -> Vec<TreeStructure> {
        let (declared, most) = (declared(workload), self.table_bytes());
        let sizes = std::iter::successors(Some(self.segment_bytes), |bytes| bytes.checked_mul(2));
        let of = |table_bytes| {
            let half_bandwidth_bytes = self.half_bandwidth_bytes as f64;
            let room = LsmSurroundings { half_bandwidth_bytes, memtable_bytes: table_bytes };
            TreeStructure::LsmTree { design: declared.best(&room).0, table_bytes }
        };
        let mut all: Vec<_> = sizes.take_while(|bytes| *bytes <= most).map(of).collect();
        all.reverse();
        all
    }

    fn lsm_tree(&self, design: LsmDesign, table_bytes: u64) -> LsmTree {
        LsmTree {
            block_bytes: self.node_bytes,
            metadata: Metadata::Cached,
            blocks_alone: BLOCKS_ALONE,
            read_ahead_bytes: PARTITION_BYTES,
            compaction_threads: lsm_usual::jobs(self.in_flight).into(),
            subcompactions: lsm_usual::parts(self.in_flight).into(),
            ..design.tree(table_bytes)
        }
    }
}

/// The declaration of a workload for an LSM-tree.
pub(super) fn declared(workload: &Workload) -> LsmWorkload {
    let operations = workload.operations;
    let look_ups = operations.point_hits + operations.point_misses;
    let record_bytes = workload.records.record_bytes();
    LsmWorkload::new(operations.writes(), look_ups, operations.ranges)
        .data_bytes(workload.records.count.saturating_mul(record_bytes))
        .record_bytes(u32::try_from(record_bytes).unwrap_or(u32::MAX))
}

impl Configuration for Store {
    fn engine(&self, workload: &Workload) -> Engine {
        Engine {
            flushes_per_commit: if self.syncs { 1.0 } else { 0.0 },
            group_commit: true,
            commits_exclude_readers: false,
            checkpoint_log_bytes: Some(LOG_BYTES),
            cache_fraction: self.cache_bytes / workload.memory_bytes as f64,
            processor: self.facts.processor,
        }
    }

    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.flush(self.sync_method)
    }

    fn asked(&self, workload: &Workload) -> Asked {
        asked(&*self.design(), workload, &self.engine(workload))
    }
}
