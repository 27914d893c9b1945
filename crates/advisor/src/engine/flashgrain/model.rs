//! The configurations of a store, as models of its I/O: B-trees with pages out of place, whose write unit is
//! the profile's, with nodes that are read whole or in blocks; the Bε-tree; and the LSM-tree that the store
//! makes for a declared workload.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::{Design, OutOfPlaceBEpsilonTree, OutOfPlaceBTree, OutOfPlaceBTreeOfBlocks};
use flashgrain_cost::lsm::{Layout, LsmTree};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, asked, situation};
use flashgrain_settings::lsm_usual::{self, MEMTABLE_BYTES_MAX, MEMTABLE_DIVISOR};
use flashgrain_settings::{Bytes, Count, LsmDesign, LsmLayout, LsmWorkload, SyncMethod, drive as decided};

use super::super::tuned::Configuration;
use crate::drive::Drive;
use crate::workload::{Durability, Workload};

pub(super) const KIBI: f64 = 1024.0;

/// How a tree of a store is kept, beside the size of its nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeStructure {
    /// A B+-tree with nodes that are read whole.
    BTree,
    /// A B+-tree with nodes of so many blocks, of which look-ups read single ones.
    BTreeOfBlocks {
        /// Blocks of a node.
        blocks: u32,
    },
    /// The LSM-tree that the store makes for what is declared.
    LsmTree(LsmWorkload),
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
    /// Tables take whole segments.
    pub segment_bytes: u64,
    pub sync_method: SyncMethod,
    pub syncs: bool,
    /// Requests that saturate the drive.
    pub in_flight: u32,
    /// How the tree is kept.
    pub structure: TreeStructure,
}

pub(super) const DEFAULT: Store = Store {
    cache_bytes: 256.0 * KIBI * KIBI,
    node_bytes: 4.0 * KIBI,
    write_unit_bytes: 64.0 * KIBI,
    segment_bytes: 4 << 20,
    sync_method: SyncMethod::Fdatasync,
    syncs: true,
    in_flight: 64,
    structure: TreeStructure::BTree,
};

/// A store keeps its cache within this budget; logs and requests need a little beside it.
const CACHE_FRACTION: f64 = 0.9;
const CACHE_BYTES_MIN: f64 = KIBI * KIBI;
/// A scan of an LSM-tree reads so many blocks of a run one by one, then up to a partition at once.
const BLOCKS_ALONE: f64 = 16.0;
const PARTITION_BYTES: f64 = 64.0 * KIBI;
/// Log between two checkpoints.
const LOG_BYTES: f64 = 256.0 * KIBI * KIBI;

impl Store {
    /// What follows from workload and drive, but for kind and node size of trees.
    pub fn advised(workload: &Workload, drive: &Drive) -> Self {
        let unit = drive.decided(decided::Setting::write_unit);
        let unit = unit.filter(|(_, decision)| !decision.from_default);
        let segment = drive.decided(decided::Setting::segment);
        let segment = segment.filter(|(_, decision)| !decision.from_default);
        let in_flight = drive.decided(decided::Setting::requests_in_flight);
        let method = drive.decided(decided::Setting::sync_method).map(|(method, _)| method);
        Self {
            cache_bytes: (workload.memory_bytes as f64 * CACHE_FRACTION).max(CACHE_BYTES_MIN),
            write_unit_bytes: unit.map_or(DEFAULT.write_unit_bytes, |(Bytes(bytes), _)| bytes as f64),
            segment_bytes: segment.map_or(DEFAULT.segment_bytes, |(shape, _)| shape.bytes.max(1)),
            in_flight: in_flight.map_or(DEFAULT.in_flight, |(Count(count), _)| count as u32),
            sync_method: method.unwrap_or(DEFAULT.sync_method),
            // What a store buffers is bound to no window.
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
        match self.structure {
            TreeStructure::BTree => Box::new(OutOfPlaceBTree::new(node, unit)),
            TreeStructure::BTreeOfBlocks { blocks } => {
                Box::new(OutOfPlaceBTreeOfBlocks::new(node, blocks.into(), unit))
            }
            TreeStructure::LsmTree(declared) => Box::new(self.lsm_tree(declared)),
            TreeStructure::BeTree { node_bytes, fanout } => Box::new(OutOfPlaceBEpsilonTree {
                memtable_bytes: self.memtable_bytes(),
                ..OutOfPlaceBEpsilonTree::new(node_bytes as f64, fanout.into(), node, unit)
            }),
        }
    }

    /// The structure with its parameters, in words.
    pub fn structure_text(&self) -> String {
        match self.structure {
            TreeStructure::BTree => "a B+-tree".into(),
            TreeStructure::BTreeOfBlocks { blocks } => format!("a B+-tree with nodes of {blocks} blocks"),
            TreeStructure::LsmTree(declared) => {
                let design = declared.best(self.table_bytes()).0;
                format!(
                    "an LSM-tree ({}, fanout {}, level 0 of {} runs)",
                    design.layout.name(),
                    design.fanout,
                    design.level_zero_runs
                )
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

    /// The LSM-tree that the store makes of what is declared.
    fn lsm_tree(&self, declared: LsmWorkload) -> LsmTree {
        let LsmDesign { layout, fanout, level_zero_runs } = declared.best(self.table_bytes()).0;
        LsmTree {
            fanout: fanout.into(),
            file_bytes: self.table_bytes() as f64,
            level_one_files: level_zero_runs.into(),
            level_zero_files: f64::from(level_zero_runs) / 2.0,
            level_zero_batch_files: level_zero_runs.into(),
            block_bytes: self.node_bytes,
            blocks_alone: BLOCKS_ALONE,
            read_ahead_bytes: PARTITION_BYTES,
            filter_bits_per_key: f64::from(lsm_usual::FILTER.0) / 10.0,
            compaction_threads: lsm_usual::jobs(self.in_flight).into(),
            subcompactions: lsm_usual::parts(self.in_flight).into(),
            ..LsmTree::new(match layout {
                LsmLayout::Leveled => Layout::Leveled,
                LsmLayout::Tiered => Layout::Tiered,
                LsmLayout::LazyLeveled => Layout::LazyLeveled,
                LsmLayout::SingleLevel => Layout::SingleLevel,
            })
        }
    }
}

/// What one declares of a workload for an LSM-tree.
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
            checkpoint_log_bytes: Some(LOG_BYTES),
            cache_fraction: self.cache_bytes / workload.memory_bytes as f64,
            processor: ProcessorTimes::OF_GOOD_STORE,
        }
    }

    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.flush(self.sync_method)
    }

    fn asked(&self, workload: &Workload) -> Asked {
        asked(&*self.design(), workload, &self.engine(workload))
    }
}
