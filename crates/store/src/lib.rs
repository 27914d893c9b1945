#![doc = include_str!("../README.md")]

#[macro_use]
mod planted;

mod betree;
mod btree;
mod buffered;
mod catalog;
mod checkpoint;
mod checksum;
mod class;
mod compression;
mod db;
mod engine;
mod epoch;
mod error;
mod factory;
mod hash;
mod header;
mod index;
mod io_context;
mod layout;
mod log;
mod lsm;
mod options;
mod page;
mod poison;
mod pool;
mod sector;
mod segment;
mod spare;
mod store_id;
mod sync;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod txn;
mod varint;
mod versioned;
mod worker;

pub use betree::BeTreeOptions;
pub use btree::overflow::VALUE_BYTES_MAX;
pub use compression::LsmCompression;
pub use db::{
    Backup, Batch, Builder, CacheStats, Check, CheckpointStats, Compacted, CompareAndSwapError,
    ConflictStats, Cursor, DATA_FILE, Db, HistoryStats, Iter, LOG_FILE, LoadError, LogStats, Readable,
    RecoveryStats, Simulated, Snapshot, SpaceStats, Stats, ThrottleStats, Transaction, Tree, TreeOptions,
    Value, ValueReader, WrittenStats,
};
pub use error::{Error, ErrorKind, IoError};
pub use flashgrain_device::BackendKind;
pub use flashgrain_settings::layout::{Decision, Setting};
pub use flashgrain_settings::{Amount, Bytes, Count, LsmMetadata, Placement, SyncMethod};
pub use index::{
    AddOperator, AppendOperator, BeTreeLevelStats, BeTreeStats, IndexKind, LsmLevelStats, LsmStats,
    MergeOperator, OperatorError, TreeOperations,
};
pub use io_context::Traffic;
pub use layout::NodeBlocks;
pub use log::Durability;
pub use lsm::{LsmLayout, LsmOptions, LsmThrottling, LsmWorkload};
pub use task::JoinHandle;
pub use txn::ThrottleReason;
pub use worker::CpuCosts;

/// The programs of the guide and of the repository's page, as tests.
#[cfg(all(doctest, feature = "profile"))]
#[doc = include_str!("../../../docs/store.md")]
#[doc = include_str!("../../../README.md")]
mod guides {}
