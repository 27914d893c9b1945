//! Tables: sorted records that never change, in segments of their own.
//!
//! A table's blocks lie one behind the other in its segments:
//!
//! ```text
//! data | … | data | partition | data | … | data | partition | … | top
//! ```
//!
//! - A *data* block has records ([`Block`]).
//! - A *partition* is behind the data blocks that it is about: a [filter](super::filter) of their keys, and
//!   for each of them its last key and version, the *fence pointer*, and where it is.
//! - The *top* has the same of each partition. It stays in memory while the table is used.
//!
//! A look-up reads a partition and a data block at most, and of a table without the key hardly ever more than
//! the partition. The versions of a key never lie in two tables of a run.

use std::sync::OnceLock;

use super::block::{Block, BlockBuilder, Record, order};
use super::filter;
use crate::Error;
use crate::hash::hash;
use crate::header::PageId;
use crate::index::Version;
use crate::log::Timestamp;
use crate::segment::{OwnedBlock, OwnedSegment, OwnedSegments, SegmentWriter};
use crate::varint;

/// Seed of the keys' hashes in filters.
const FILTER_SEED: u64 = 0x6c73_6d5f_7461_626c;

const LENGTH_BYTES: usize = size_of::<u32>();

/// How tables are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TableOptions {
    /// B′: bytes of a data block, from which on it is finished.
    pub block_bytes: usize,
    /// Bytes of data blocks that a partition is about.
    pub partition_bytes: usize,
    /// Bits of a filter for each key; below 1 there are no filters.
    pub filter_bits_per_key: f64,
}

/// A block of one of a table's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: u32,
    pub block: OwnedBlock,
}

impl Place {
    pub fn put(self, into: &mut Vec<u8>) {
        for number in [self.segment, self.block.start, self.block.length] {
            varint::put(number.into(), into);
        }
    }

    pub fn take(bytes: &mut &[u8]) -> Option<Self> {
        let mut number = || u32::try_from(varint::take(bytes)?).ok();
        let (segment, start, length) = (number()?, number()?, number()?);
        Some(Self { segment, block: OwnedBlock { start, length } })
    }
}

/// What is known of a table without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    pub records: u64,
    pub tombstones: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// The newest version in it.
    pub newest: u64,
}

/// A table that is being made.
pub(super) struct TableWriter<'a> {
    segments: &'a OwnedSegments,
    options: TableOptions,
    written: Vec<OwnedSegment>,
    open: Option<SegmentWriter>,
    data: BlockBuilder,
    last_version: Version,
    /// Of the partition that is being made.
    fences: BlockBuilder,
    hashes: Vec<u64>,
    partition_bytes: usize,
    top: BlockBuilder,
    summary: Summary,
}

/// A table that was made, which nothing records yet.
pub(super) struct Made {
    pub segments: Vec<OwnedSegment>,
    pub top: Place,
    pub summary: Summary,
}

impl<'a> TableWriter<'a> {
    pub fn new(segments: &'a OwnedSegments, options: TableOptions) -> Self {
        Self {
            segments,
            options,
            written: Vec::new(),
            open: None,
            data: BlockBuilder::default(),
            last_version: Version::from_bits(0),
            fences: BlockBuilder::default(),
            hashes: Vec::new(),
            partition_bytes: 0,
            top: BlockBuilder::default(),
            summary: Summary::default(),
        }
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.summary.bytes + self.data.len_bytes() as u64
    }

    /// Adds a record behind all others.
    ///
    /// # Errors
    /// Those of [`OwnedSegments::take`] and [`SegmentWriter::append`].
    pub fn push(&mut self, key: &[u8], version: Version, value: &[u8]) -> Result<(), Error> {
        if self.summary.records == 0 {
            self.summary.first_key = key.to_vec();
        }
        let is_new = self.hashes.is_empty() || self.summary.last_key != key;
        if is_new {
            self.hashes.push(hash(FILTER_SEED, key));
            key.clone_into(&mut self.summary.last_key);
        }
        self.data.push(key, version, value);
        self.last_version = version;
        self.summary.records += 1;
        self.summary.tombstones += u64::from(version.is_tombstone());
        self.summary.newest = self.summary.newest.max(version.timestamp().0);
        if self.data.len_bytes() >= self.options.block_bytes {
            self.finish_data()?;
        }
        Ok(())
    }

    fn finish_data(&mut self) -> Result<(), Error> {
        let block = self.data.finish();
        let place = self.append(&block)?;
        let mut value = Vec::new();
        place.put(&mut value);
        self.fences.push(&self.summary.last_key, self.last_version, &value);
        self.partition_bytes += block.len();
        if self.partition_bytes >= self.options.partition_bytes {
            self.finish_partition()?;
        }
        Ok(())
    }

    fn finish_partition(&mut self) -> Result<(), Error> {
        let filter = filter::build(&self.hashes, self.options.filter_bits_per_key);
        let mut partition = (filter.len() as u32).to_le_bytes().to_vec();
        partition.extend_from_slice(&filter);
        partition.extend_from_slice(&self.fences.finish());
        let place = self.append(&partition)?;
        let mut value = Vec::new();
        place.put(&mut value);
        self.top.push(&self.summary.last_key, self.last_version, &value);
        self.partition_bytes = 0;
        self.hashes.clear();
        Ok(())
    }

    fn append(&mut self, content: &[u8]) -> Result<Place, Error> {
        loop {
            let mut writer = match self.open.take() {
                Some(writer) => writer,
                None => self.segments.take()?,
            };
            let is_empty = writer.is_empty();
            let block = writer.append(content)?;
            if let Some(block) = block {
                self.open = Some(writer);
                self.summary.bytes += u64::from(block.length);
                return Ok(Place { segment: self.written.len() as u32, block });
            }
            if is_empty {
                let problem = format!("a block of {} bytes is longer than a segment", content.len());
                return Err(Error::Options(problem));
            }
            self.written.push(writer.finish()?);
        }
    }

    /// Writes the rest; all of it is on the device then. `None` if nothing was added.
    ///
    /// # Errors
    /// As [`TableWriter::push`].
    pub fn finish(mut self) -> Result<Option<Made>, Error> {
        if self.summary.records == 0 {
            return Ok(None);
        }
        if !self.data.is_empty() {
            self.finish_data()?;
        }
        if !self.fences.is_empty() {
            self.finish_partition()?;
        }
        let top = self.top.finish();
        let top = self.append(&top)?;
        if let Some(writer) = self.open.take() {
            self.written.push(writer.finish()?);
        }
        Ok(Some(Made { segments: self.written, top, summary: self.summary }))
    }
}

/// A table, for as long as somebody reads it.
pub(super) struct Table {
    /// Numbers of the segments, by which the page table knows them.
    pub pages: Vec<PageId>,
    pub place_of_top: Place,
    pub summary: Summary,
    segments: Vec<OwnedSegment>,
    top: OnceLock<Vec<Fence>>,
}

/// Where the records up to this one are.
struct Fence {
    key: Vec<u8>,
    timestamp: Timestamp,
    place: Place,
}

/// A partition as it is searched.
struct Partition {
    filter: Vec<u8>,
    fences: Block,
}

/// A record that was found.
pub(super) struct FoundRecord {
    pub version: Version,
    pub block: Block,
    pub record: Record,
}

impl FoundRecord {
    pub fn value(&self) -> &[u8] {
        self.block.value(&self.record)
    }
}

impl Table {
    /// The table that has these segments, which the page table knows by these numbers.
    pub fn new(segments: Vec<OwnedSegment>, pages: Vec<PageId>, top: Place, summary: Summary) -> Self {
        Self { pages, place_of_top: top, summary, segments, top: OnceLock::new() }
    }

    /// Whether a key may be in it.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.summary.first_key.as_slice() <= key && key <= self.summary.last_key.as_slice()
    }

    fn read(&self, place: Place) -> Result<Vec<u8>, Error> {
        let segment = self.segments.get(place.segment as usize);
        segment.ok_or_else(|| self.damaged("a segment that it has", place))?.read(place.block)
    }

    #[cold]
    fn damaged(&self, expected: &str, place: Place) -> Error {
        Error::Corrupt {
            what: format!("the table with segments {:?}", self.pages),
            offset_bytes: place.block.start.into(),
            expected: expected.to_owned(),
            got: format!("{place:?}"),
        }
    }

    fn top(&self) -> Result<&[Fence], Error> {
        if let Some(top) = self.top.get() {
            return Ok(top);
        }
        let fences = self.fences_in(&self.block(self.place_of_top)?, self.place_of_top)?;
        Ok(self.top.get_or_init(|| fences))
    }

    /// The fence pointers of a block; at least one.
    fn fences_in(&self, block: &Block, place: Place) -> Result<Vec<Fence>, Error> {
        let (mut fences, mut are_whole) = (Vec::new(), true);
        let is_whole = block.each_from(None, |key, record| {
            let place = Place::take(&mut block.value(record));
            let fence = |place| Fence { key: key.to_vec(), timestamp: record.version.timestamp(), place };
            fences.extend(place.map(fence));
            are_whole &= place.is_some();
            are_whole
        });
        let is_whole = is_whole && are_whole && !fences.is_empty();
        if is_whole { Ok(fences) } else { Err(self.damaged("fence pointers", place)) }
    }

    fn partition(&self, place: Place) -> Result<Partition, Error> {
        let bytes = self.read(place)?;
        let parts = bytes
            .split_first_chunk::<LENGTH_BYTES>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let parts = parts.and_then(|(filter, fences)| {
            Some(Partition { filter: filter.to_vec(), fences: Block::of(fences.to_vec())? })
        });
        parts.ok_or_else(|| self.damaged("a partition", place))
    }

    fn block(&self, place: Place) -> Result<Block, Error> {
        Block::of(self.read(place)?).ok_or_else(|| self.damaged("records", place))
    }

    /// The newest version of a key that is not newer than `at`.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the table is damaged.
    pub fn find(&self, key: &[u8], at: Timestamp) -> Result<Option<FoundRecord>, Error> {
        if !self.covers(key) {
            return Ok(None);
        }
        let top = self.top()?;
        let is_before = |fence: &Fence| order((&fence.key, fence.timestamp), (key, at)).is_lt();
        let Some(fence) = top.get(top.partition_point(is_before)) else { return Ok(None) };
        let partition = self.partition(fence.place)?;
        if !filter::may_have(&partition.filter, hash(FILTER_SEED, key)) {
            return Ok(None);
        }
        let mut place = None;
        let is_whole = partition.fences.each_from(Some((key, at)), |own, record| {
            let is_before = order((own, record.version.timestamp()), (key, at)).is_lt();
            if !is_before {
                place = Some(Place::take(&mut partition.fences.value(record)));
            }
            is_before
        });
        let damaged = || self.damaged("fence pointers", fence.place);
        let place = match place {
            _ if !is_whole => return Err(damaged()),
            // Behind the last fence of the partition there is nothing of it.
            None => return Ok(None),
            Some(place) => place.ok_or_else(damaged)?,
        };
        let block = self.block(place)?;
        let record = block.find(key, at).map_err(|()| self.damaged("records", place))?;
        Ok(record.map(|record| FoundRecord { version: record.version, record, block }))
    }
}

/// The records of a block, each at hand.
#[derive(Default)]
pub(super) struct Entries {
    block: Option<Block>,
    keys: Vec<u8>,
    /// Of each record the end of its key, and the rest of it.
    records: Vec<(usize, Record)>,
}

impl Entries {
    pub fn len(&self) -> usize {
        self.records.len()
    }

    fn key(&self, index: usize) -> Option<&[u8]> {
        let (end, _) = self.records.get(index)?;
        let start =
            index.checked_sub(1).and_then(|before| self.records.get(before)).map_or(0, |(end, _)| *end);
        self.keys.get(start..*end)
    }

    pub fn get(&self, index: usize) -> Option<(&[u8], Version, &[u8])> {
        let (key, (_, record)) = self.key(index).zip(self.records.get(index))?;
        Some((key, record.version, self.block.as_ref()?.value(record)))
    }

    /// How many records lie before a place: those at the front whose keys do.
    pub fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle).is_some_and(&is_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Table {
    /// Partitions; at least one.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn partitions(&self) -> Result<usize, Error> {
        Ok(self.top()?.len())
    }

    /// The first partition whose last key does not lie before a place; the number of partitions if all do.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn partition_of(&self, is_before: impl Fn(&[u8]) -> bool) -> Result<usize, Error> {
        Ok(self.top()?.partition_point(|fence| is_before(&fence.key)))
    }

    fn fences(&self, partition: usize) -> Result<Vec<Fence>, Error> {
        let place = self.top()?.get(partition).map_or(self.place_of_top, |fence| fence.place);
        self.fences_in(&self.partition(place)?.fences, place)
    }

    /// The data blocks of a partition; at least one.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn blocks_of(&self, partition: usize) -> Result<Vec<Place>, Error> {
        Ok(self.fences(partition)?.iter().map(|fence| fence.place).collect())
    }

    /// The first of its blocks whose last key does not lie before a place.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn block_of(&self, partition: usize, is_before: impl Fn(&[u8]) -> bool) -> Result<usize, Error> {
        Ok(self.fences(partition)?.partition_point(|fence| is_before(&fence.key)))
    }

    /// The records of a data block; at least one.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn entries(&self, place: Place) -> Result<Entries, Error> {
        let block = self.block(place)?;
        let (mut keys, mut records) = (Vec::new(), Vec::new());
        let is_whole = block.each_from(None, |key, record| {
            keys.extend_from_slice(key);
            records.push((keys.len(), record.clone()));
            true
        });
        if !is_whole || records.is_empty() {
            return Err(self.damaged("records", place));
        }
        Ok(Entries { block: Some(block), keys, records })
    }
}
