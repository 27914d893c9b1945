//! Mapping from positions of the log to bytes of its device.

use super::Lsn;
use crate::layout::LogExtent;

/// A ring of blocks: positions grow for ever, their places repeat. On either side of it is a block for the
/// [durable mark](super::durable_mark).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub start_bytes: u64,
    pub length_bytes: u64,
    pub block_bytes: u64,
}

impl Ring {
    pub fn at(place: LogExtent, block_bytes: u32) -> Self {
        let block_bytes = u64::from(block_bytes);
        Self {
            start_bytes: place.start_bytes + block_bytes,
            length_bytes: place.bytes - 2 * block_bytes,
            block_bytes,
        }
    }

    /// Its bytes on the device, with the blocks of the durable mark.
    pub fn whole(&self) -> LogExtent {
        let [start_bytes, end_bytes] = self.durable_marks();
        LogExtent { start_bytes, bytes: end_bytes + self.block_bytes - start_bytes }
    }

    /// Offsets of the durable mark's copies.
    pub fn durable_marks(&self) -> [u64; 2] {
        [self.start_bytes - self.block_bytes, self.start_bytes + self.length_bytes]
    }

    /// Offset of a position on the device.
    pub fn place(&self, lsn: Lsn) -> u64 {
        self.start_bytes + lsn.0 % self.length_bytes
    }

    /// Bytes from `lsn` to where the ring begins again.
    pub fn until_wrap(&self, lsn: Lsn) -> u64 {
        self.length_bytes - lsn.0 % self.length_bytes
    }

    /// The block that it is in.
    pub fn block(&self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0 - lsn.0 % self.block_bytes)
    }

    /// The first block that begins there or later.
    pub fn next_block(&self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0.next_multiple_of(self.block_bytes))
    }

    /// The end of the room in the ring while everything from `tail` on is needed.
    pub fn room_until(&self, tail: Lsn) -> Lsn {
        Lsn(self.block(tail).0 + self.length_bytes)
    }

    /// The longest record: with a share of the ring each, records cannot fill it up before a checkpoint makes
    /// room.
    pub fn record_limit_bytes(&self) -> u64 {
        (self.length_bytes / 8).min(1 << 30)
    }

    /// Length of a place for a ring that takes records of this length.
    pub fn bytes_for(&self, record_bytes: u64) -> u64 {
        (8 * record_bytes).next_multiple_of(8 * self.block_bytes) + 2 * self.block_bytes
    }

    /// Longest part of the log that is written and not durable. So all blocks that a crash leaves after the
    /// log's end lie within it.
    pub fn window_bytes(&self) -> u64 {
        let share = self.length_bytes / 8;
        (share - share % self.block_bytes).clamp(self.block_bytes, 4 << 20)
    }
}
