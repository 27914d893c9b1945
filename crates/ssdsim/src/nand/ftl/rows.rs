//! Rows in memory: being filled, waiting to be programmed, or being programmed.

use super::geometry::FlashAddress;
use crate::engine::Slab;

/// Source of the units that fill a row; each has its own open blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Writes large enough to be striped, and the mapping table.
    Striped,
    /// Smaller writes.
    Small,
    /// Valid units of collected blocks.
    Collect,
    /// Copies of units of open rows, made durable by a flush; they are in no block of the mapping.
    Journal,
}

/// A unit in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowUnit {
    pub unit: u32,
    /// The newest write in it.
    pub version: u64,
    /// Parts of the unit that were written, a bit each (see [`covered`]).
    pub covered: u64,
    /// Place of the unit before, if on flash: the parts that are not covered must be read there.
    pub before: Option<FlashAddress>,
    /// Whether a flush has put it into the journal.
    pub durable: bool,
}

/// All parts of a unit.
pub(super) const WHOLE: u64 = u64::MAX;

/// Parts of a unit of `unit_bytes` that the bytes from `start` to `end` cover wholly; a part is a 64th of the
/// unit.
pub(super) fn covered(start: u32, end: u32, unit_bytes: u32) -> u64 {
    let part = |byte: u32, up: u64| (u64::from(byte) * 64 + up) / u64::from(unit_bytes);
    let (first, end) = (part(start, u64::from(unit_bytes) - 1), part(end, 0));
    let below = |bit: u64| if bit >= 64 { u64::MAX } else { (1 << bit) - 1 };
    below(end) & !below(first)
}

/// A row.
#[derive(Debug)]
pub(super) struct Row {
    pub stream: Stream,
    pub die: u32,
    pub block: u32,
    pub row: u32,
    pub slots: Vec<RowUnit>,
    /// Whether it takes no more units.
    pub sealed: bool,
    /// Reads that it must wait for before it can be programmed.
    pub reads: u32,
    /// Its number among those that a flush waits for.
    pub number: u64,
    /// Room that it takes in the write cache.
    pub cached: u32,
    /// Slots that hold parts of the mapping table.
    pub table: u32,
    /// Slots that a power cut would lose.
    pub volatile: u32,
    /// The next row of the block, if that must wait for this one: rows of a block are programmed in their
    /// order.
    pub next: Option<u32>,
    /// Commands that are done when it is programmed.
    pub writers: Vec<u32>,
}

/// All rows in memory; slots of rows are used again.
#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Slab<Row>,
    spare: Vec<(Vec<RowUnit>, Vec<u32>)>,
}

impl Rows {
    pub fn insert(&mut self, stream: Stream, die: u32, block: u32, row: u32) -> u32 {
        let (slots, writers) = self.spare.pop().unwrap_or_default();
        self.all.insert(Row {
            stream,
            die,
            block,
            row,
            slots,
            sealed: false,
            reads: 0,
            number: 0,
            cached: 0,
            table: 0,
            volatile: 0,
            next: None,
            writers,
        })
    }

    pub fn remove(&mut self, row: u32) {
        let entry = &mut self.all[row];
        let (mut slots, mut writers) = (std::mem::take(&mut entry.slots), std::mem::take(&mut entry.writers));
        slots.clear();
        writers.clear();
        self.spare.push((slots, writers));
        self.all.remove(row);
    }
}

impl std::ops::Index<u32> for Rows {
    type Output = Row;
    #[inline]
    fn index(&self, row: u32) -> &Row {
        &self.all[row]
    }
}

impl std::ops::IndexMut<u32> for Rows {
    #[inline]
    fn index_mut(&mut self, row: u32) -> &mut Row {
        &mut self.all[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_covered_only_as_a_whole() {
        assert_eq!(covered(0, 4096, 4096), WHOLE);
        assert_eq!(covered(0, 512, 4096), 0xff);
        assert_eq!(covered(3584, 4096, 4096), 0xff << 56);
        assert_eq!(covered(512, 1024, 4096) | covered(0, 512, 4096), 0xffff);
        // Of a large unit, a sector is less than a part.
        assert_eq!(covered(0, 512, 65536), 0);
        assert_eq!(covered(512, 2048, 65536), 0b10);
        // Of a small one, it is more.
        assert_eq!(covered(0, 512, 512), WHOLE);
    }
}
