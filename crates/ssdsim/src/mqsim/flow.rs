//! Workloads that run on a drive of MQSim.

use std::path::PathBuf;

use crate::config::{MediumConfig, SimConfig};

/// Flows that run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The flows; the address space is divided evenly among them, as MQSim does.
    pub flows: Vec<Flow>,
    /// Fields that are ignored or missing, each in words.
    pub notes: Vec<String>,
}

/// A stream of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Whether the drive's cache takes its writes.
    pub write_cache: bool,
    /// Source of its requests.
    pub kind: FlowKind,
}

/// Source of a flow's requests.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// They are made up.
    Synthetic(Synthetic),
    /// They were recorded.
    Trace(Trace),
}

/// Requests that are made up.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Share of the flow's addresses that is used, 0 to 1.
    pub working_set: f64,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// When they come.
    pub arrivals: Arrivals,
    /// Rule for their addresses.
    pub addresses: Addresses,
    /// Their starts are multiples of this.
    pub align_bytes: u64,
    /// Lengths.
    pub sizes: Sizes,
    /// Seed of all this.
    pub seed: u64,
    /// No request starts after this much time.
    pub stop_ns: Option<u64>,
    /// No more requests than this.
    pub requests: Option<u64>,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A constant number of requests is in flight.
    QueueDepth(u32),
    /// At exponentially distributed times that make this many bytes per second.
    BytesPerSecond(f64),
}

/// Rule for the addresses of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Addresses {
    /// One after the other, from a random one on.
    Streaming,
    /// Anywhere.
    Uniform,
    /// The first share `hot` of the addresses gets the share 1 - `hot` of the requests.
    HotCold {
        /// 0 to 1.
        hot: f64,
    },
}

/// Lengths of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// All alike.
    Fixed {
        /// Sectors of 512 bytes.
        sectors: u64,
    },
    /// Normally distributed and rounded up, at least one sector.
    Normal {
        /// Mean, in sectors of 512 bytes.
        mean: f64,
        /// Standard deviation, in sectors.
        deviation: f64,
    },
}

/// Requests that were recorded: lines of arrival time, device, first sector, sectors, and 0 for a write;
/// anything else is a read.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The file.
    pub path: PathBuf,
    /// Share of it that runs, from its beginning, 0 to 1; of a file that runs more than once, all does.
    pub share: f64,
    /// How many times it runs.
    pub repeats: u32,
    /// Nanoseconds in a unit of its arrival times.
    pub unit_ns: f64,
}

impl Scenario {
    /// The drive as the scenario uses it: without a write cache if no flow wants one.
    pub fn prepare(&self, config: &SimConfig) -> SimConfig {
        let mut config = config.clone();
        if let MediumConfig::Nand(nand) = &mut config.medium
            && self.flows.iter().all(|flow| !flow.write_cache)
        {
            nand.write_cache.bytes = 0;
        }
        config
    }
}
