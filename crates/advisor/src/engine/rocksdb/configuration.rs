//! A configuration of RocksDB, and its model.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::{Design, Situation};
use flashgrain_cost::lsm::{Layout, LsmTree, Metadata};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, asked, situation};

use super::super::tuned::Configuration;
use super::version::Version;
use crate::drive::Drive;
use crate::workload::Workload;

pub(super) const MEBI: f64 = 1_048_576.0;

/// Measured with `db_bench`: time of an operation, without the blocks that it looks into, and 0.7 µs per
/// record after a seek.
const OPERATION: Interval = Interval { low: 1e-6, value: 4e-6, high: 10e-6 };
const SCANNED_RECORD: Interval = Interval { low: 0.3e-6, value: 0.7e-6, high: 1.5e-6 };
/// Of a block that an operation looks into: the search of the index, the copy from the page cache, its
/// checksum and its place in the block cache. Look-ups in a tree in the page cache took 20 µs with 2.1 blocks
/// and 11 µs with one.
const BLOCK: Interval = Interval { low: 2e-6, value: 6e-6, high: 10e-6 };

/// The parts of RocksDB's configuration that the model knows.
#[derive(Clone, Debug)]
pub(super) struct RocksDb {
    pub version: Version,
    /// Whether changes have ended, and level 0 is empty.
    pub is_resting: bool,
    /// Also of a file, as is RocksDB's default.
    pub memtable_bytes: f64,
    pub level_zero_files: f64,
    pub fanout: f64,
    pub block_bytes: f64,
    pub filter_bits: f64,
    pub jobs: f64,
    pub subcompactions: f64,
}

/// RocksDB's defaults, as the usual version has them.
pub(super) const DEFAULT: RocksDb = RocksDb {
    version: Version::V7_8,
    is_resting: false,
    memtable_bytes: 64.0 * MEBI,
    level_zero_files: 4.0,
    fanout: 10.0,
    block_bytes: 4096.0,
    filter_bits: 0.0,
    jobs: 2.0,
    subcompactions: 1.0,
};

/// Memtables that there may be at a time.
pub(super) const MEMTABLES: f64 = 2.0;
/// Share of a memtable that is in use on average while it fills. The page cache has the rest.
const MEMTABLES_FILLED: f64 = 0.5;
/// Filters and indexes that take more of the memory are in the cache, those in use alone.
const METADATA_FRACTION: f64 = 0.5;

impl RocksDb {
    /// The tree, with filters and indexes in memory.
    pub fn tree(&self, workload: &Workload) -> LsmTree {
        let flushes = (self.jobs / 4.0).floor().max(1.0);
        let is_written = !self.is_resting && workload.operations.writes() > 0.0;
        let tree = LsmTree {
            fanout: self.fanout,
            file_bytes: self.memtable_bytes,
            memtables: if is_written { MEMTABLES_FILLED } else { 0.0 },
            level_one_files: self.level_zero_files,
            level_zero_files: if self.is_resting { 0.0 } else { self.level_zero_files / 2.0 },
            level_zero_batch_files: self.level_zero_files,
            block_bytes: self.block_bytes,
            filter_bits_per_key: self.filter_bits,
            compaction_threads: (self.jobs - flushes).max(1.0),
            subcompactions: self.subcompactions,
            ..LsmTree::new(Layout::Leveled)
        };
        match self.version.has_dynamic_levels() {
            true => tree.with_full_last_level(0.0, &self.situation(workload)),
            false => tree,
        }
    }

    /// The tree, whose filters and indexes are read block by block where memory has no room for all of them:
    /// as partitions, or as pages that were swapped out.
    pub fn tree_for(&self, workload: &Workload) -> LsmTree {
        let most = workload.memory_bytes as f64 * METADATA_FRACTION;
        let has_room = self.is_resting || self.metadata_bytes(workload) <= most;
        LsmTree {
            metadata: if has_room { Metadata::Pinned } else { Metadata::Cached },
            ..self.tree(workload)
        }
    }

    /// Bytes of filters and indexes.
    pub fn metadata_bytes(&self, workload: &Workload) -> f64 {
        LsmTree { memtables: 0.0, ..self.tree(workload) }.memory_bytes(&self.situation(workload))
    }

    /// Memory that is reserved before any cache: for full memtables, and for filters and indexes outside the
    /// cache.
    pub fn reserved_bytes(&self, workload: &Workload) -> f64 {
        LsmTree { memtables: MEMTABLES, ..self.tree_for(workload) }.memory_bytes(&self.situation(workload))
    }

    /// The situation of the tree.
    pub fn situation(&self, workload: &Workload) -> Situation {
        situation(workload, &WITHOUT_BLOCKS)
    }

    /// Blocks that the average operation looks into, cached or not.
    fn blocks(&self, workload: &Workload) -> f64 {
        let (tree, surroundings) = (self.tree_for(workload), self.situation(workload));
        let operations = workload.operations;
        let runs: f64 = tree.runs(&surroundings).iter().map(|runs| runs.count).sum();
        operations.point_hits * tree.blocks_per_query(true, &surroundings)
            + operations.point_misses * tree.blocks_per_query(false, &surroundings)
            + operations.ranges * runs
    }
}

/// RocksDB around its tree, but for the processor time of blocks.
const WITHOUT_BLOCKS: Engine = Engine {
    flushes_per_commit: 1.0,
    group_commit: true,
    commits_exclude_readers: false,
    checkpoint_log_bytes: None,
    cache_fraction: 1.0,
    processor: ProcessorTimes {
        operation: OPERATION,
        scanned_record: SCANNED_RECORD,
        request: ProcessorTimes::REQUEST,
    },
};

impl Configuration for RocksDb {
    fn engine(&self, workload: &Workload) -> Engine {
        let blocks = self.blocks(workload);
        let with = |operation: f64, block: f64| operation + blocks * block;
        let operation = Interval {
            low: with(OPERATION.low, BLOCK.low),
            value: with(OPERATION.value, BLOCK.value),
            high: with(OPERATION.high, BLOCK.high),
        };
        let processor = ProcessorTimes { operation, ..WITHOUT_BLOCKS.processor };
        Engine { processor, ..WITHOUT_BLOCKS }
    }

    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.flush_of_growing_file()
    }

    fn asked(&self, workload: &Workload) -> Asked {
        asked(&self.tree_for(workload), workload, &self.engine(workload))
    }
}
