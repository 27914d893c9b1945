//! A block of a table: records by key, the versions of a key from the newest on.
//!
//! ```text
//! | record | record | … | restart offsets, u32 each | number of restarts, u32 |
//!
//! record: | shared bytes, varint | other bytes, varint | value bytes, varint | the other bytes of the key
//!         | version, u64 | value |
//! ```
//!
//! A key is stored without the bytes that it shares with the key before it. At a *restart* it is stored
//! whole, so that a search can begin there. Readers of blocks have verified their checksums; a block that is
//! damaged nevertheless causes no panic.

use std::cmp::Ordering;
use std::ops::{Deref, Range};

use crate::buffered::order;
use crate::index::{VERSION_BYTES, Version};
use crate::log::Timestamp;
use crate::pool::BlockShare;
use crate::sync::Arc;
use crate::varint;

/// Records from one restart to the next.
const RESTART_EVERY: usize = 16;

const OFFSET_BYTES: usize = size_of::<u32>();

/// Most bytes of a record besides key and value: their lengths, which take three each, and the version.
const RECORD_BYTES: usize = 3 * 3 + VERSION_BYTES;

/// Bytes that were read, which several may share.
#[derive(Clone)]
pub(super) struct Content {
    of: Source,
    range: Range<usize>,
}

#[derive(Clone)]
enum Source {
    Cached(BlockShare),
    Read(Arc<Vec<u8>>),
}

impl Content {
    /// The same as a copy of its own, if it has a share of memory that others may want.
    pub fn let_go(&mut self) {
        if matches!(self.of, Source::Cached(_)) {
            *self = self.to_vec().into();
        }
    }

    /// The share of memory that it has; `None` if it has a copy of its own.
    pub fn share(&self) -> Option<&BlockShare> {
        match &self.of {
            Source::Cached(block) => Some(block),
            Source::Read(_) => None,
        }
    }

    /// A part of it.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        let range = self.range.start.checked_add(range.start)?..self.range.start.checked_add(range.end)?;
        (range.start <= range.end && range.end <= self.range.end).then(|| Self { of: self.of.clone(), range })
    }
}

impl Deref for Content {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let all = match &self.of {
            Source::Cached(block) => block.content(),
            Source::Read(bytes) => bytes,
        };
        all.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<BlockShare> for Content {
    fn from(block: BlockShare) -> Self {
        Self { range: 0..block.content().len(), of: Source::Cached(block) }
    }
}

impl From<Arc<Vec<u8>>> for Content {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        Self { range: 0..bytes.len(), of: Source::Read(bytes) }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Arc::new(bytes).into()
    }
}

/// A block that is being made.
#[derive(Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    records: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// Appends a record.
    pub fn push(&mut self, key: &[u8], version: Version, value: &[u8]) {
        let shared = if self.records.is_multiple_of(RESTART_EVERY) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            self.last_key.iter().zip(key).take_while(|(one, other)| one == other).count()
        };
        varint::put(shared as u64, &mut self.bytes);
        varint::put((key.len() - shared) as u64, &mut self.bytes);
        varint::put(value.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(&version.bits().to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.records += 1;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    /// Bytes that it has at most when it is finished with this record.
    pub fn len_bytes_with(&self, key: &[u8], value: &[u8]) -> usize {
        self.len_bytes() + OFFSET_BYTES + RECORD_BYTES + key.len() + value.len()
    }

    /// Bytes that it has when it is finished.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() + (self.restarts.len() + 1) * OFFSET_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub fn records(&self) -> usize {
        self.records
    }

    /// The whole block; it is empty afterwards.
    pub fn finish(&mut self) -> Vec<u8> {
        for restart in self.restarts.iter().copied().chain([self.restarts.len() as u32]) {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.restarts.clear();
        self.last_key.clear();
        self.records = 0;
        std::mem::take(&mut self.bytes)
    }
}

/// A record of a block, apart from its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub version: Version,
    /// Bytes of the block.
    value: Range<usize>,
    /// Where the next record begins.
    end: usize,
}

/// A finished block.
#[derive(Clone)]
pub(super) struct Block {
    bytes: Content,
    /// Where records end and restarts begin.
    records_end: usize,
}

impl Block {
    /// `None` if it cannot have been made by a [`BlockBuilder`].
    pub fn of(bytes: impl Into<Content>) -> Option<Self> {
        let bytes = bytes.into();
        let (rest, count) = bytes.split_last_chunk::<OFFSET_BYTES>()?;
        let restarts_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(OFFSET_BYTES)?;
        let records_end = rest.len().checked_sub(restarts_bytes)?;
        Some(Self { bytes, records_end })
    }

    /// See [`Content::let_go`].
    pub fn let_go(&mut self) {
        self.bytes.let_go();
    }

    fn restarts(&self) -> usize {
        (self.bytes.len() - self.records_end) / OFFSET_BYTES - 1
    }

    fn restart(&self, number: usize) -> Option<usize> {
        let offset = self.bytes.get(self.records_end + number * OFFSET_BYTES..)?.first_chunk()?;
        Some(u32::from_le_bytes(*offset) as usize)
    }

    pub fn value(&self, record: &Record) -> &[u8] {
        self.bytes.get(record.value.clone()).unwrap_or_default()
    }

    /// The record at an offset; `key` is that of the one before it and becomes its own. `None` if there is
    /// none.
    fn record_at(&self, offset: usize, key: &mut Vec<u8>) -> Option<Record> {
        let mut rest = self.bytes.get(offset..self.records_end)?;
        let shared = usize::try_from(varint::take(&mut rest)?).ok()?;
        let other = usize::try_from(varint::take(&mut rest)?).ok()?;
        let value_bytes = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (suffix, rest) = rest.split_at_checked(other)?;
        let (version, value) = rest.split_first_chunk::<VERSION_BYTES>()?;
        if shared > key.len() || value.len() < value_bytes {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(suffix);
        let start = self.records_end - value.len();
        let value = start..start + value_bytes;
        Some(Record { version: Version::from_bits(u64::from_le_bytes(*version)), end: value.end, value })
    }

    /// Shows all records in their order, from the last restart before `from` on or from the first, until it
    /// is told to stop. `false` if the block is damaged.
    pub fn each_from(
        &self,
        from: Option<(&[u8], Timestamp)>,
        mut see: impl FnMut(&[u8], &Record) -> bool,
    ) -> bool {
        let mut key = Vec::new();
        let Some(mut at) = from.map_or(Some(0), |from| self.restart_before(from)) else { return false };
        while at < self.records_end {
            let Some(record) = self.record_at(at, &mut key) else { return false };
            at = record.end;
            if !see(&key, &record) {
                return true;
            }
        }
        true
    }

    /// The first record, or the first one that does not lie before a place; its key is put into `key`. `None`
    /// if there is none.
    ///
    /// # Errors
    /// `Err` if the block is damaged.
    pub fn first_from(
        &self,
        place: Option<(&[u8], Timestamp)>,
        key: &mut Vec<u8>,
    ) -> Result<Option<Record>, ()> {
        key.clear();
        let start = place.map_or(Some(0), |place| self.restart_before(place)).ok_or(())?;
        let mut record = self.next_of(start, key)?;
        while let Some(found) = &record
            && let Some(place) = place
            && order((key, found.version.timestamp()), place) == Ordering::Less
        {
            record = self.next_of(found.end, key)?;
        }
        Ok(record)
    }

    /// The record after another one. `key` is that record's key, and becomes that of the next one. `None` at
    /// the end.
    ///
    /// # Errors
    /// `Err` if the block is damaged.
    pub fn after(&self, record: &Record, key: &mut Vec<u8>) -> Result<Option<Record>, ()> {
        self.next_of(record.end, key)
    }

    fn next_of(&self, at: usize, key: &mut Vec<u8>) -> Result<Option<Record>, ()> {
        if at >= self.records_end {
            return Ok(None);
        }
        self.record_at(at, key).map(Some).ok_or(())
    }

    /// The first record that does not lie before this place, if its key is the same.
    pub fn find(&self, key: &[u8], at: Timestamp) -> Result<Option<Record>, ()> {
        let mut found = None;
        let is_whole = self.each_from(Some((key, at)), |own, record| {
            let is_before = order((own, record.version.timestamp()), (key, at)) == Ordering::Less;
            if !is_before && own == key {
                found = Some(record.clone());
            }
            is_before
        });
        if is_whole { Ok(found) } else { Err(()) }
    }

    /// Key and timestamp of the record at a restart, which has its whole key.
    fn restart_place(&self, number: usize) -> Option<(&[u8], Timestamp)> {
        let mut rest = self.bytes.get(self.restart(number)?..self.records_end)?;
        let (shared, length, _) =
            (varint::take(&mut rest)?, varint::take(&mut rest)?, varint::take(&mut rest)?);
        let (key, rest) = rest.split_at_checked(usize::try_from(length).ok().filter(|_| shared == 0)?)?;
        let version = Version::from_bits(u64::from_le_bytes(*rest.first_chunk::<VERSION_BYTES>()?));
        Some((key, version.timestamp()))
    }

    /// Offset of the last restart that lies before this place; the first one if none does.
    fn restart_before(&self, place: (&[u8], Timestamp)) -> Option<usize> {
        let (mut low, mut high) = (0, self.restarts());
        while high - low > 1 {
            let middle = low.midpoint(high);
            if order(self.restart_place(middle)?, place) == Ordering::Less {
                low = middle;
            } else {
                high = middle;
            }
        }
        if high == 0 { Some(0) } else { self.restart(low) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Keys with common beginnings, and some versions of each.
    fn versions() -> impl Strategy<Value = BTreeSet<(Vec<u8>, std::cmp::Reverse<u64>)>> {
        let key = proptest::collection::vec(0_u8..3, 0..12);
        proptest::collection::btree_set((key, (1_u64..9).prop_map(std::cmp::Reverse)), 0..200)
    }

    fn value_of(key: &[u8], timestamp: u64) -> Vec<u8> {
        [key, &timestamp.to_le_bytes()[..timestamp as usize % 8]].concat()
    }

    fn block_of(versions: &BTreeSet<(Vec<u8>, std::cmp::Reverse<u64>)>) -> Block {
        let mut builder = BlockBuilder::default();
        for (key, timestamp) in versions {
            builder.push(key, Version::put(Timestamp(timestamp.0)), &value_of(key, timestamp.0));
        }
        let length = builder.len_bytes();
        let bytes = builder.finish();
        assert_eq!(bytes.len(), length);
        assert!(builder.is_empty());
        Block::of(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn records_come_back_in_order(versions in versions()) {
            let block = block_of(&versions);
            let mut seen = Vec::new();
            let is_whole = block.each_from(None, |key, record| {
                let timestamp = record.version.timestamp().0;
                assert_eq!(block.value(record), value_of(key, timestamp));
                seen.push((key.to_vec(), std::cmp::Reverse(timestamp)));
                true
            });
            prop_assert!(is_whole);
            prop_assert_eq!(seen, versions.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn the_newest_version_up_to_a_timestamp_is_found(
            versions in versions(),
            key in proptest::collection::vec(0_u8..3, 0..12),
            at in 0_u64..10,
        ) {
            let block = block_of(&versions);
            let expected = versions.range((key.clone(), std::cmp::Reverse(at))..).next();
            let expected = expected.filter(|(own, _)| *own == key).map(|(_, timestamp)| timestamp.0);
            let found = block.find(&key, Timestamp(at)).unwrap();
            prop_assert_eq!(found.map(|record| record.version.timestamp().0), expected);
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>, key: Vec<u8>, at: u64) {
            if let Some(block) = Block::of(bytes) {
                let _any_answer = block.find(&key, Timestamp(at));
                block.each_from(None, |_, record| {
                    let _any_value = block.value(record);
                    true
                });
            }
        }

        #[test]
        fn a_flipped_byte_is_no_panic(versions in versions(), at: prop::sample::Index, flip in 1_u8..) {
            let mut bytes = block_of(&versions).bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Some(block) = Block::of(bytes) {
                block.each_from(None, |_, record| {
                    let _any_value = block.value(record);
                    true
                });
                for (key, timestamp) in &versions {
                    let _any_answer = block.find(key, Timestamp(timestamp.0));
                }
            }
        }
    }
}
