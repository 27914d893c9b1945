//! Host queue, command processing and link.

use serde::{Deserialize, Serialize};

/// The way from the host's queue to the medium and back.
///
/// A command waits in the host's queue until the drive has room for it, is processed (one after another,
/// `command_ns` each), takes `fetch_ns` on the way in and `completion_ns` on the way out, and moves its data
/// over the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Commands that the drive works on at the same time: 32 for SATA, thousands for NVMe. More wait in the
    /// host.
    pub queue_depth: u32,
    /// Time of the command processor per command; its inverse bounds the drive's requests per second.
    pub command_ns: u64,
    /// The same for a write, which allocates and maps; `command_ns` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_command_ns: Option<u64>,
    /// More of it for a command that is no whole number of 4 KiB units.
    #[serde(default)]
    pub partial_command_ns: u64,
    /// Latency of doorbell, fetch and parsing.
    pub fetch_ns: u64,
    /// Latency of posting the completion.
    pub completion_ns: u64,
    /// Bandwidth of the link in each direction.
    pub link_bytes_per_s: u64,
    /// Whether both directions run at the same time: PCIe does, SATA does not.
    #[serde(default = "yes")]
    pub link_full_duplex: bool,
    /// Whether the parts of a read cross the link as the medium delivers them. Otherwise none does before the
    /// last is there, as in MQSim.
    #[serde(default = "yes")]
    pub link_in_parts: bool,
    /// Bandwidth at which the data of one command move, whatever else is idle: that of the link unless given.
    /// It bounds the throughput of one stream of requests, however large they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_bytes_per_s: Option<u64>,
    /// Rates at which the host sends requests to the drive, as clouds limit their volumes; unlimited unless
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<CapConfig>,
}

/// Two token buckets before the drive, one of requests and one of bytes. Reads and writes of any size and
/// order take from both; flushes and discards from neither. Both are full at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapConfig {
    /// Requests per second that the drive is asked for in the long run; no limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<u64>,
    /// Requests that may come on top of that at once after a pause: credits. None unless given.
    #[serde(default)]
    pub burst_requests: u64,
    /// Bytes per second, reads and writes together; no limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u64>,
    /// Bytes that may come on top of that at once after a pause.
    #[serde(default)]
    pub burst_bytes: u64,
}

fn yes() -> bool {
    true
}
