//! A group: records that are written together.

use flashgrain_device::Arena;

use super::block::{HEADER_BYTES, Header, PREFIX_BYTES, seal};
use super::{Lsn, Timestamp};
use crate::Error;

/// Memory that a group keeps for the next one.
const KEPT_BYTES: usize = 4 << 20;

/// Consecutive blocks in memory, filled with records at their final offsets. The headers stay unset until the
/// blocks are sealed.
pub(super) struct Group {
    memory: Arena,
    block_bytes: usize,
    /// Position of its first block.
    start: Lsn,
    /// Bytes from there, headers included.
    used: usize,
    /// For each block, the offset of the first record that begins in it, and that record's timestamp; zeros
    /// if none does.
    firsts: Vec<(u32, u64)>,
    records: usize,
}

impl Group {
    /// An empty one at `start`, a block's position.
    pub fn new(block_bytes: u32, start: Lsn) -> Result<Self, Error> {
        let block_bytes = block_bytes as usize;
        let memory = Arena::new(block_bytes)?;
        Ok(Self { memory, block_bytes, start, used: 0, firsts: Vec::new(), records: 0 })
    }

    /// Empties it, to begin again at `start`.
    pub fn restart(&mut self, start: Lsn) {
        (self.start, self.used, self.records) = (start, 0, 0);
        self.firsts.clear();
    }

    pub fn start(&self) -> Lsn {
        self.start
    }

    /// The position of the next record, or of the next group if it is a multiple of the block.
    pub fn end(&self) -> Lsn {
        Lsn(self.start.0 + self.used as u64)
    }

    /// The end of its last block, where the next group begins.
    pub fn blocks_end(&self) -> Lsn {
        Lsn(self.start.0 + self.used.next_multiple_of(self.block_bytes) as u64)
    }

    pub fn used_bytes(&self) -> usize {
        self.used
    }

    pub fn records(&self) -> usize {
        self.records
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The end of the group with one more record of this length.
    pub fn end_with(&self, record_bytes: usize) -> Lsn {
        let room = self.block_bytes - HEADER_BYTES;
        let within = self.used % self.block_bytes;
        let filled = self.used / self.block_bytes * room + within.saturating_sub(HEADER_BYTES);
        let filled = filled + PREFIX_BYTES + record_bytes;
        let rest = match filled % room {
            0 => 0,
            rest => HEADER_BYTES + rest,
        };
        Lsn(self.start.0 + (filled / room * self.block_bytes + rest) as u64)
    }

    /// Adds a record and returns its position.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn push(&mut self, timestamp: Timestamp, record: &[u8]) -> Result<Lsn, Error> {
        self.make_room((self.end_with(record.len()).0 - self.start.0) as usize)?;
        self.begin_block_if_due();
        let start = self.end();
        let within = (self.used % self.block_bytes) as u32;
        if let Some(first) = self.firsts.last_mut().filter(|first| first.0 == 0) {
            *first = (within, timestamp.0);
        }
        self.copy(&(record.len() as u32).to_le_bytes());
        self.copy(record);
        self.records += 1;
        Ok(start)
    }

    fn begin_block_if_due(&mut self) {
        if self.used.is_multiple_of(self.block_bytes) {
            self.used += HEADER_BYTES;
            self.firsts.push((0, 0));
        }
    }

    fn copy(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.begin_block_if_due();
            let room = self.block_bytes - self.used % self.block_bytes;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.memory.bytes_mut()[self.used..self.used + now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
        }
    }

    fn make_room(&mut self, used: usize) -> Result<(), Error> {
        let needed = used.next_multiple_of(self.block_bytes);
        if needed > self.memory.len_bytes() {
            let mut larger = Arena::new(needed.max(2 * self.memory.len_bytes()))?;
            larger.bytes_mut()[..self.used].copy_from_slice(&self.memory.bytes_mut()[..self.used]);
            self.memory = larger;
        }
        Ok(())
    }

    /// Gives back memory that only a huge record needed.
    pub fn shrink(&mut self) -> Result<(), Error> {
        if self.memory.len_bytes() > KEPT_BYTES {
            self.memory = Arena::new(self.block_bytes)?;
        }
        Ok(())
    }

    /// Blocks in it.
    pub fn blocks(&self) -> usize {
        self.firsts.len()
    }

    /// Makes block `index` of it whole. It returns its checksum.
    pub fn seal(&mut self, index: usize, store: u64, previous: u32, durable: Lsn) -> u32 {
        let offset = index * self.block_bytes;
        let used = (self.used - offset).min(self.block_bytes);
        let (from, timestamp) = match self.firsts[index] {
            (0, _) => (used as u32, 0),
            first => first,
        };
        let header = Header {
            previous,
            store,
            lsn: Lsn(self.start.0 + offset as u64),
            durable,
            timestamp,
            used: used as u32,
            records_from: from,
        };
        seal(&mut self.memory.bytes_mut()[offset..offset + self.block_bytes], &header)
    }

    /// The bytes of block `index` and the blocks after it.
    pub fn memory(&self, index: usize) -> *const u8 {
        self.memory.as_ptr().wrapping_add(index * self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_known_before_the_record_is_there() {
        for length in [0, 1, 459, 460, 461, 463, 464, 465, 924, 925, 5000] {
            for before in [None, Some(10), Some(460), Some(455), Some(458)] {
                let mut group = Group::new(512, Lsn(1024)).unwrap();
                if let Some(before) = before {
                    group.push(Timestamp(1), &vec![1; before]).unwrap();
                }
                let expected = group.end_with(length);
                group.push(Timestamp(2), &vec![2; length]).unwrap();
                assert_eq!(group.end(), expected, "{length} after {before:?}");
                assert_eq!(group.blocks() as u64 * 512, group.blocks_end().0 - 1024);
            }
        }
    }
}
