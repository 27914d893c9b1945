//! A tree that was filled and has come to rest.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::Design as _;

use super::super::tuned::Tuned;
use super::configuration::{DEFAULT, RocksDb};
use crate::drive::Drive;
use crate::workload::Workload;

/// A leveled tree of RocksDB that has come to rest: nothing is in level 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestingTree {
    /// `max_bytes_for_level_multiplier`.
    pub fanout: f64,
    /// `block_size`, in bytes.
    pub block_bytes: f64,
    /// `write_buffer_size` and `target_file_size_base`, in bytes; level 1 has four times as much.
    pub file_bytes: f64,
}

/// Predicted operations per second of reads from a tree without filters, whose block cache takes all the
/// memory of the workload and that nothing else caches.
pub fn predicted_rocksdb_rate(workload: &Workload, drive: &Drive, tree: &RestingTree) -> Interval {
    let advised = RocksDb {
        is_resting: true,
        memtable_bytes: tree.file_bytes,
        fanout: tree.fanout,
        block_bytes: tree.block_bytes,
        ..DEFAULT
    };
    let mut workload = workload.clone();
    let beside = advised.tree(&workload).memory_bytes(&advised.situation(&workload));
    workload.memory_bytes += beside as u64;
    Tuned { default: DEFAULT, advised: advised.clone(), workload: &workload, drive }.rate(&advised)
}
