//! 3D XPoint.

use serde::{Deserialize, Serialize};

/// Channels x banks of memory that is written in place; no erase, no garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XpointConfig {
    /// Buses.
    pub channels: u32,
    /// Banks on each bus that work at the same time.
    pub banks_per_channel: u32,
    /// Contiguous data on one channel; banks serve one chunk at a time.
    pub chunk_bytes: u32,
    /// Time of a bank to read one chunk or a part of it.
    pub read_us: f64,
    /// Time of a bank to write one.
    pub write_us: f64,
    /// Relative standard deviation of both.
    #[serde(default)]
    pub jitter: f64,
    /// Bus rate.
    pub channel_bytes_per_s: u64,
    /// More latency for a read that starts or ends inside of a chunk.
    #[serde(default)]
    pub misaligned_read_us: f64,
}
