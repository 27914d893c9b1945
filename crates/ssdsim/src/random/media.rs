//! Media other than flash.

use super::draw::Draw;
use super::host;
use crate::config::{DiskConfig, HostConfig, MediumConfig, XpointConfig};

/// 3D XPoint: all write sizes alike, and reads across the border of a chunk slower.
pub(super) fn xpoint(draw: &mut Draw, sector_bytes: u32) -> (HostConfig, MediumConfig, u64) {
    let read_us = draw.between(5.0, 12.0);
    let chunk_bytes = draw.power_of_two(u64::from(sector_bytes).max(4 << 10), 8 << 10);
    let bytes_per_us = draw.between(600.0, 2000.0);
    // A read across a border moves half of its bytes over each of two channels; it has to be slower all the
    // same.
    let gained_us = chunk_bytes as f64 / 2.0 / bytes_per_us;
    let config = XpointConfig {
        channels: draw.power_of_two(4, 16) as u32,
        banks_per_channel: draw.power_of_two(4, 32) as u32,
        chunk_bytes: chunk_bytes as u32,
        read_us,
        write_us: read_us * draw.between(1.0, 2.0),
        jitter: draw.unit() * 0.05,
        channel_bytes_per_s: (bytes_per_us * 1e6) as u64,
        misaligned_read_us: ((gained_us + draw.between(2.5, 6.0)) * 10.0).round() / 10.0,
    };
    (host(draw), MediumConfig::Xpoint(config), draw.power_of_two(8, 64) << 30)
}

/// A hard disk: nothing is hidden in it.
pub(super) fn disk(draw: &mut Draw) -> (HostConfig, MediumConfig, u64) {
    let outer = draw.between(8e7, 2.5e8);
    let average_seek_ms = draw.between(6.0, 14.0);
    let config = DiskConfig {
        rotations_per_minute: draw.one_of(&[5400.0, 5900.0, 7200.0, 10_000.0]),
        cylinders: draw.between(5e4, 3e5) as u32,
        track_seek_ms: draw.between(0.5, 1.5),
        average_seek_ms,
        full_seek_ms: average_seek_ms * draw.between(1.7, 2.3),
        outer_bytes_per_s: outer as u64,
        inner_bytes_per_s: (outer * draw.between(0.45, 0.7)) as u64,
        zones: draw.one_of(&[8, 16, 24]),
        reorder_depth: draw.one_of(&[1, 32]),
        read_ahead_bytes: 4 << 20,
        write_cache_bytes: draw.one_of(&[0, 16 << 20, 64 << 20]),
    };
    let host = HostConfig {
        queue_depth: 32,
        command_ns: 50_000,
        write_command_ns: None,
        partial_command_ns: 0,
        fetch_ns: 20_000,
        completion_ns: 10_000,
        link_bytes_per_s: draw.one_of(&[300_000_000, 550_000_000]),
        link_full_duplex: false,
        link_in_parts: true,
        command_bytes_per_s: None,
        cap: None,
    };
    (host, MediumConfig::Disk(config), draw.power_of_two(64, 4096) << 30)
}
