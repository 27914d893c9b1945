//! Effect of a drive's layout on the latency of single reads: closed forms for an idle drive, good to some
//! per cent.

use crate::config::{HostConfig, NandConfig};

/// Times of an idle drive, microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    channels: u64,
    row_bytes: u64,
    sense: f64,
    per_channel_byte: f64,
    per_link_byte: f64,
    overhead: f64,
}

impl Times {
    pub fn new(nand: &NandConfig, host: &HostConfig) -> Self {
        let planes = if nand.multi_plane { u64::from(nand.planes_per_die) } else { 1 };
        let mean = nand.read_us.iter().sum::<f64>() / nand.read_us.len() as f64;
        let overhead_ns = host.command_ns + host.fetch_ns + host.completion_ns + nand.mapping.lookup_ns;
        Self {
            channels: u64::from(nand.channels),
            row_bytes: u64::from(nand.page_bytes) * planes,
            sense: mean + nand.channel_command_ns as f64 / 1e3,
            per_channel_byte: 1.0 / nand.channel_mega_transfers_per_s,
            per_link_byte: 1e6 / host.link_bytes_per_s as f64,
            overhead: overhead_ns as f64 / 1e3,
        }
    }

    /// A die reads `bytes` bytes that lie one after the other in its rows.
    fn die(&self, bytes: u64) -> f64 {
        bytes.div_ceil(self.row_bytes) as f64 * self.sense + bytes as f64 * self.per_channel_byte
    }

    /// A read whose bytes lie in equal parts of at least `part_min` on at most `dies` dies.
    pub fn spread(&self, bytes: u64, part_min: u64, dies: u64) -> f64 {
        let parts = bytes.div_ceil(part_min);
        let dies = dies.min(parts).max(1);
        let on_a_die = parts.div_ceil(dies) * part_min;
        let on_a_channel = parts.div_ceil(dies.min(self.channels)) * part_min;
        let channel = self.sense + on_a_channel as f64 * self.per_channel_byte;
        let first = on_a_die.min(self.row_bytes);
        let link = self.die(first) + bytes as f64 * self.per_link_byte;
        let last = first as f64 * self.per_link_byte;
        self.overhead + link.max(self.die(on_a_die) + last).max(channel + last)
    }

    /// A read of a whole chunk from one die.
    pub fn one_chunk(&self, chunk_bytes: u64) -> f64 {
        self.spread(chunk_bytes, chunk_bytes, 1)
    }

    /// A read of the second half of a chunk and the first of the next, on two channels.
    pub fn two_halves(&self, chunk_bytes: u64) -> f64 {
        self.spread(chunk_bytes, chunk_bytes / 2, 2)
    }
}
