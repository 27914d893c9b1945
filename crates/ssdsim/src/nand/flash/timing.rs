//! Times of the parts of an operation.

use rand::Rng;

use super::{FlashKind, FlashOp};
use crate::config::NandConfig;
use crate::engine::{nanos_of_us, vary};

/// Latencies of one kind of flash.
#[derive(Debug)]
pub(super) struct Timing {
    read_ns: Vec<u64>,
    program_ns: Vec<u64>,
    erase_ns: u64,
    jitter: f64,
    pub command_ns: u64,
    picoseconds_per_byte: u64,
    pub suspend_ns: u64,
}

impl Timing {
    pub fn new(config: &NandConfig) -> Self {
        let nanos = |latencies: &[f64]| latencies.iter().copied().map(nanos_of_us).collect();
        Self {
            read_ns: nanos(&config.read_us),
            program_ns: nanos(&config.program_us),
            erase_ns: nanos_of_us(config.erase_us),
            jitter: config.jitter,
            command_ns: config.channel_command_ns,
            picoseconds_per_byte: (1e6 / config.channel_mega_transfers_per_s).round() as u64,
            suspend_ns: nanos_of_us(config.suspend_us),
        }
    }

    /// Sensing, programming or erasing.
    #[inline]
    pub fn cells_ns(&self, op: &FlashOp, random: &mut impl Rng) -> u64 {
        let by_type = |latencies: &[u64]| match latencies {
            [only] => *only,
            several => several[op.row as usize % several.len()],
        };
        let typical = match op.kind {
            FlashKind::Read => by_type(&self.read_ns),
            FlashKind::Program => by_type(&self.program_ns),
            FlashKind::Erase => self.erase_ns,
        };
        vary(typical, self.jitter, random)
    }

    /// Bytes over the channel.
    #[inline]
    pub fn transfer_ns(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.picoseconds_per_byte).div_ceil(1000)
    }
}
