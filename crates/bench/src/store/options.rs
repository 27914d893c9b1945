//! Options of a store under test, and of an experiment on it.

use std::path::PathBuf;
use std::sync::Arc;

use flashgrain::Durability;
use flashgrain_device::BackendKind;
use flashgrain_profile::DeviceProfile;
use flashgrain_ssdsim::SimConfig;

use crate::fill::Order;
use crate::keys::Distribution;
use crate::processor::ProcessorCosts;
use crate::records::Records;

/// Operations on a simulated drive unless it is said.
const SIMULATED_OPERATIONS: u64 = 1_000_000;

/// How a store is made or opened. The layout decides settings without a value.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory for pages.
    pub cache_bytes: u64,
    /// Worker threads, or simulated ones.
    pub workers: u32,
    /// Whether each worker stays on a processor of its own.
    pub pin: bool,
    /// Tasks under way at a time at most, all workers together.
    pub tasks: u32,
    /// How durable a write is when it returns, unless the client says otherwise.
    pub durability: Durability,
    /// Whether each page stays at one place.
    pub in_place: bool,
    /// How requests to directories reach the kernel, if that is said.
    pub backend: Option<BackendKind>,
    /// Whether completions of requests to directories are polled for.
    pub polled: bool,
    /// Size of the log's ring.
    pub log_bytes: Option<u64>,
    /// The most log that a recovery may have to read.
    pub recovery_log_bytes: Option<u64>,
    /// Size of nodes.
    pub node_bytes: Option<u64>,
    /// A profile of the drive, which decides the layout.
    pub profile: Option<Arc<DeviceProfile>>,
}

impl StoreOptions {
    /// Bytes of a page, if the layout does not decide otherwise.
    pub fn page_bytes(&self) -> u64 {
        const PAGE_BYTES: u64 = 4096;
        self.node_bytes.unwrap_or(PAGE_BYTES)
    }
}

/// A benchmark of a store that is filled with records.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory; `mem`; `sim:PRESET` or `sim:FILE.toml`.
    pub target: PathBuf,
    /// A directory on another drive for the log.
    pub log: Option<PathBuf>,
    /// The records that the store is filled with.
    pub records: Records,
    /// How it is filled.
    pub fill_order: Order,
    /// Share of the store's room that its pages take, each counted whole; without it the store may grow.
    pub space_use: Option<f64>,
    /// How it is made.
    pub store: StoreOptions,
    /// Counted seconds.
    pub seconds: f64,
    /// Ends after this number of operations if that is earlier.
    pub operations_max: Option<u64>,
    /// Seconds before that are not counted.
    pub warmup_s: f64,
    /// The distribution of the records that are touched.
    pub distribution: Distribution,
    /// Whether the store stays, and one that is there is used again.
    pub keep: bool,
    /// Seconds that the raw device is measured before and after; 0 leaves it out.
    pub raw_seconds: f64,
    /// Processor time that simulated workers are charged, instead of measured times.
    pub processor: Option<ProcessorCosts>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Options {
    /// The name of the simulated drive that is the target, if it is one.
    pub fn simulated(&self) -> Option<&str> {
        self.target.to_str().filter(|name| SimConfig::is_name(name))
    }

    /// Fills in the target's usual values where none were given.
    pub fn for_target(mut self) -> Self {
        if self.simulated().is_some() {
            self.operations_max.get_or_insert(SIMULATED_OPERATIONS);
        }
        self
    }

    /// The same as a store in memory with one worker and nothing that is not asked of every store.
    pub(crate) fn in_memory(&self, records_max: u64) -> Self {
        let store =
            StoreOptions { workers: 1, durability: Durability::None, in_place: false, ..self.store.clone() };
        let records = Records { count: self.records.count.min(records_max), ..self.records };
        Self { target: "mem".into(), log: None, keep: false, records, store, ..self.clone() }
    }
}
