//! The store of a study, and the drive below it.

use std::path::PathBuf;
use std::sync::Arc;

use flashgrain::{Builder, Durability, IndexKind, LsmCompression, LsmOptions, TreeOptions};
use flashgrain_device::{BackendKind, Device, MemoryDevice};
use flashgrain_profile::Error;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::store::{StoreLocation, StoreOptions};

/// Most bytes of a request that writes a table.
const UNIT_BYTES_MAX: u64 = 256 << 10;

/// Write units of a segment, at least.
const UNITS: u64 = 4;

/// Where the log of a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// On the drive of the tree.
    WithTree,
    /// On a device in memory: where the drive is simulated, one that answers in less than a microsecond.
    Memory,
    /// No log is written.
    Nowhere {
        /// Bytes of commits between two checkpoints.
        per_checkpoint_bytes: u64,
    },
}

/// Bytes of a device in memory for the log.
const LOG_DEVICE_BYTES: u64 = 64 << 20;

/// A simulated device that is as fast as memory accessed by system calls.
const MEMORY_DEVICE: &str = include_str!("memory.toml");

/// A store with one tree, and where it is.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A directory, or `sim:PRESET` or `sim:FILE.toml`.
    pub target: PathBuf,
    /// Bytes that a simulated drive is shrunk to.
    pub drive_bytes: u64,
    /// Drives of a simulated set; as many as the target has unless given.
    pub drives: Option<u32>,
    /// How requests to a directory reach the kernel, if that is said.
    pub backend: Option<BackendKind>,
    /// Whether completions of requests to a directory are polled for.
    pub polled: bool,
    /// The records that the tree is filled with.
    pub records: Records,
    /// How the tree is kept.
    pub tree: TreeOptions,
    /// Bytes of a segment; tables of LSM-trees take whole ones.
    pub segment_bytes: u64,
    /// Memory for blocks, memtables and pages.
    pub cache_bytes: u64,
    /// Processors that the store uses.
    pub workers: u32,
    /// Most clients at a time.
    pub clients_max: u32,
    /// How durable a write is when it returns.
    pub durability: Durability,
    /// Where the log is.
    pub log: LogPlace,
    /// How commits in the log are compressed.
    pub log_compression: LsmCompression,
    /// Processor time of simulated workers.
    pub costs: ProcessorCosts,
    /// Seed of everything random.
    pub seed: u64,
}

impl Setup {
    /// The target: a simulated drive of its size, or a folder of its own in a directory.
    ///
    /// # Errors
    /// If there is no such drive or directory.
    pub(super) fn place(&self) -> anyhow::Result<StoreLocation> {
        match self.target.to_str().filter(|name| SimConfig::is_name(name)) {
            Some(name) => {
                let config = SimConfig::named(name)?.resized(self.drive_bytes);
                let drives = self.drives.unwrap_or(config.drives);
                let config = SimConfig { drives, ..config };
                StoreLocation::simulated(&config, name, self.seed, self.costs)
            }
            None if self.target.is_dir() => Ok(StoreLocation::in_directory(&self.target, None)),
            None => {
                let target = self.target.display();
                let wanted = "name one on the drive, or a simulated drive such as sim:990pro";
                Err(Error::Argument(format!("{target}: not a directory: {wanted}")).into())
            }
        }
    }

    /// The store as it is made in this place.
    ///
    /// # Errors
    /// If there is no memory for the log.
    pub(super) fn builder(&self, place: &StoreLocation) -> anyhow::Result<Builder> {
        let options = StoreOptions {
            cache_bytes: self.cache_bytes,
            workers: self.workers,
            pin: false,
            tasks: self.clients_max,
            durability: self.durability,
            in_place: false,
            backend: self.backend,
            polled: self.polled,
            log_bytes: None,
            recovery_log_bytes: None,
            node_bytes: None,
            profile: None,
        };
        let builder = place
            .builder(&options)
            .segment_bytes(self.segment_bytes)
            .write_unit_bytes(unit_bytes(self.segment_bytes))
            .log_compression(self.log_compression);
        Ok(match self.log {
            LogPlace::WithTree => builder,
            LogPlace::Memory => builder.log_device(self.memory(place)?),
            LogPlace::Nowhere { per_checkpoint_bytes } => {
                builder.write_log(false).recovery_log_bytes(2 * per_checkpoint_bytes)
            }
        })
    }

    fn memory(&self, place: &StoreLocation) -> anyhow::Result<Arc<dyn Device>> {
        if place.drive().is_none() {
            return Ok(Arc::new(MemoryDevice::new(LOG_DEVICE_BYTES, LOG_DEVICE_BYTES)?));
        }
        let config = SimConfig::from_toml(MEMORY_DEVICE, "memory.toml")?.resized(LOG_DEVICE_BYTES);
        Ok(Arc::new(SimDevice::new(&config, "the log", self.seed)?))
    }
}

/// Bytes of a request that writes in a store with such segments.
pub(super) fn unit_bytes(segment_bytes: u64) -> u32 {
    (segment_bytes / UNITS).min(UNIT_BYTES_MAX) as u32
}

/// An LSM-tree with blocks of `block_bytes`.
pub(super) fn lsm_tree(options: LsmOptions, block_bytes: u32) -> TreeOptions {
    TreeOptions::new().kind(IndexKind::Lsm).lsm(options).node_bytes(block_bytes)
}
