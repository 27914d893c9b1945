//! A rotating disk.

use serde::{Deserialize, Serialize};

/// Seek curve, rotation, zoned transfer, command queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Rotations per minute.
    pub rotations_per_minute: f64,
    /// Cylinders, from the outermost inwards.
    pub cylinders: u32,
    /// Seek to the next cylinder.
    pub track_seek_ms: f64,
    /// Seek over a third of the cylinders, the mean distance of random ones.
    pub average_seek_ms: f64,
    /// Seek over all cylinders.
    pub full_seek_ms: f64,
    /// Media rate of the outermost zone, switches of head and track included.
    pub outer_bytes_per_s: u64,
    /// Media rate of the innermost zone.
    pub inner_bytes_per_s: u64,
    /// Zones of equal numbers of cylinders.
    pub zones: u32,
    /// Commands among which the disk chooses the next by positioning time; 1: first come, first served.
    pub reorder_depth: u32,
    /// Buffer for data after the last access, which are read while nothing else is to be done; 0: none.
    #[serde(default)]
    pub read_ahead_bytes: u64,
    /// Cache for writes; 0: none. Lost in a power cut.
    #[serde(default)]
    pub write_cache_bytes: u64,
}
