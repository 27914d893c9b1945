//! Tables: sorted records that never change, in segments of their own.
//!
//! A table's blocks lie one after the other in its segments:
//!
//! ```text
//! data | … | data | partition | data | … | data | partition | … | ranges | … | top
//! ```
//!
//! - A *data* block has records ([`Block`]), which may be [compressed](super::compression).
//! - A *partition* follows the data blocks that it is about. It is a [filter](super::filter) of their keys,
//!   and for each of them its last key and version, the *fence pointer*, and its place.
//! - *Ranges* are removals of [ranges of keys](crate::buffered::RangeTombstones), which the table's first
//!   and last key include.
//! - The *top* has the same of each partition. It stays in memory while the table is used.
//!
//! Partitions that were read stay in memory, too, if metadata is *pinned*, as long as the table is used and
//! the pool has room for them.
//!
//! A look-up reads a partition and a data block at most, and of a table without the key hardly ever more than
//! the partition. The versions of a key never lie in two tables of a run.

use std::sync::OnceLock;

use flashgrain_settings::LsmMetadata;

use super::block::{Block, BlockBuilder, Content, Record};
use super::compression::{Compressor, unpack, unpack_shared};
use super::filter;
use super::stats::Counters;
use crate::Error;
use crate::buffered::{RangeTombstones, order};
use crate::compression::LsmCompression;
use crate::hash::hash;
use crate::header::PageId;
use crate::index::Version;
use crate::log::Timestamp;
use crate::pool::{Access, BlockId, PinnedBlock, Pool};
use crate::segment::{BLOCK_HEADER_BYTES, OwnedBlock, OwnedSegment, OwnedSegments, Purpose, SegmentWriter};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::varint;
use crate::worker::spend_search;

/// Seed of the keys' hashes in filters.
const FILTER_SEED: u64 = 0x6c73_6d5f_7461_626c;

/// The timestamp of the versions in the tables of a load: those of the load's commit. The first commit of a
/// store makes its first tree, so that no record has this one.
pub(super) const LOADED: Timestamp = Timestamp(1);

const LENGTH_BYTES: usize = size_of::<u32>();

/// Bytes of the codec of a data block that is not compressed.
const CODEC_BYTES: usize = 1;

/// Most bytes of the last entry of a top, but for long keys, and of headers.
const END_BYTES: usize = 128;

/// A key has at most this part of a block.
pub(super) const KEY_DIVISOR: usize = 4;
/// A value, too.
pub(super) const VALUE_DIVISOR: usize = 4;

/// At most this part of a block is left empty at its end.
const PADDING_DIVISOR: u64 = 16;

/// How tables are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TableOptions {
    /// B′: bytes of a data block and of a partition, at most, unless a single record takes more. Where it
    /// costs little, they end at multiples of this, so that reading one takes no more than that of the
    /// device.
    pub block_bytes: usize,
    /// Bits of a filter for each key; below 1 there are no filters.
    pub filter_bits_per_key: f64,
    pub compression: LsmCompression,
    pub metadata: LsmMetadata,
}

/// A block of one of a table's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Where the parts of a table are that are not found by others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub top: Place,
    pub ranges: Vec<Place>,
}

/// The facts about a table that are known without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    pub records: u64,
    pub tombstones: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// The newest version, or removal of a range, in it.
    pub newest: u64,
    /// Removals of ranges, in all their fragments.
    pub range_tombstones: u64,
    /// Overflow values.
    pub overflows: u64,
}

impl Summary {
    /// The table has one more version.
    pub fn count(&mut self, version: Version) {
        self.records += 1;
        self.tombstones += u64::from(version.is_tombstone());
        self.overflows += u64::from(version.is_overflow());
        self.newest = self.newest.max(version.timestamp().0);
    }
}

/// A table that is being made.
pub(super) struct TableWriter<'a> {
    segments: &'a OwnedSegments,
    purpose: Purpose,
    options: TableOptions,
    written: Vec<OwnedSegment>,
    open: Option<SegmentWriter>,
    data: BlockBuilder,
    compressor: Compressor,
    last_version: Version,
    /// Fence pointers of the partition that is being made.
    fences: BlockBuilder,
    hashes: Vec<u64>,
    top: BlockBuilder,
    summary: Summary,
}

/// A table that was made, which nothing records yet.
pub(super) struct Made {
    pub segments: Vec<OwnedSegment>,
    pub places: Places,
    pub summary: Summary,
    pub metadata: LsmMetadata,
}

impl<'a> TableWriter<'a> {
    pub fn new(segments: &'a OwnedSegments, options: TableOptions) -> Self {
        Self {
            segments,
            purpose: Purpose::Merge,
            options,
            written: Vec::new(),
            open: None,
            data: BlockBuilder::default(),
            compressor: Compressor::new(options.compression),
            last_version: Version::from_bits(0),
            fences: BlockBuilder::default(),
            hashes: Vec::new(),
            top: BlockBuilder::default(),
            summary: Summary::default(),
        }
    }

    /// The same, which takes the room of flushes.
    pub fn of_flush(self) -> Self {
        Self { purpose: Purpose::Flush, ..self }
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.summary.records
    }

    /// Bytes of the device that it takes at most if it is finished with one more small record.
    fn bytes_with_end(&self) -> u64 {
        if self.summary.records == 0 {
            return 0;
        }
        let written: u64 = self.written.iter().map(OwnedSegment::length).sum();
        let open = self.open.as_ref().map_or(0, SegmentWriter::at);
        // A data block, a partition and the top; each may leave a gap.
        let end = 3 * self.options.block_bytes + self.top.len_bytes() + END_BYTES;
        written + open + end as u64
    }

    /// Whether the next record belongs into another table: with it this one might take more than
    /// `table_bytes`, or its top, which is one block, might not fit into the smallest segment.
    pub fn is_full(&self, table_bytes: u64) -> bool {
        // Each partition adds its last key.
        let more = 2 * (self.options.block_bytes / KEY_DIVISOR + END_BYTES);
        let top = self.top.len_bytes() + more;
        self.bytes_with_end() > table_bytes || top as u64 > self.segments.least_segment_bytes()
    }

    /// The key of the last record.
    pub fn last_key(&self) -> &[u8] {
        &self.summary.last_key
    }

    /// Appends a record.
    ///
    /// # Errors
    /// Those of [`OwnedSegments::take`] and [`SegmentWriter::append`].
    pub fn push(&mut self, key: &[u8], version: Version, value: &[u8]) -> Result<(), Error> {
        if self.summary.records == 0 {
            self.summary.first_key = key.to_vec();
        }
        let room = self.compressor.expected(self.block_room());
        if !self.data.is_empty() && self.data.len_bytes_with(key, value) > room {
            self.finish_data()?;
        }
        let is_new = self.hashes.is_empty() || self.summary.last_key != key;
        let is_left_out = version.is_tombstone() && planted!(FilterForgetsRemovals);
        if is_new && !is_left_out {
            self.hashes.push(hash(FILTER_SEED, key));
            key.clone_into(&mut self.summary.last_key);
        }
        self.data.push(key, version, value);
        self.last_version = version;
        self.summary.count(version);
        Ok(())
    }

    /// Bytes of content that the next block should have at most.
    fn block_room(&self) -> usize {
        let block = self.options.block_bytes;
        let left = block - self.open.as_ref().map_or(0, |writer| writer.at() as usize % block);
        let bytes = if left < block / 2 { left + block } else { left };
        // The bytes that follow the records of a data block are fewer, as it has fewer records.
        bytes - BLOCK_HEADER_BYTES as usize - CODEC_BYTES
    }

    fn finish_data(&mut self) -> Result<(), Error> {
        let block = self.compressor.pack(self.data.finish());
        let place = self.append(&block)?;
        let mut value = Vec::new();
        place.put(&mut value);
        let fence = if planted!(FenceHasNoVersion) { Version::from_bits(0) } else { self.last_version };
        self.fences.push(&self.summary.last_key, fence, &value);
        let filter_bytes = filter::bytes_max(self.hashes.len(), self.options.filter_bits_per_key);
        // The next data block will add as much again.
        let bytes = LENGTH_BYTES + filter_bytes + self.fences.len_bytes();
        if bytes + bytes / self.blocks_in_partition() >= self.block_room() {
            self.finish_partition()?;
        }
        Ok(())
    }

    fn blocks_in_partition(&self) -> usize {
        self.fences.records().max(1)
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
        self.hashes.clear();
        Ok(())
    }

    fn append(&mut self, content: &[u8]) -> Result<Place, Error> {
        loop {
            let mut writer = match self.open.take() {
                Some(writer) => writer,
                None => self.segments.take(self.purpose)?,
            };
            let is_empty = writer.is_empty();
            let block = writer.append(content)?;
            if let Some(block) = block {
                let bytes = self.options.block_bytes as u64;
                if writer.at().next_multiple_of(bytes) - writer.at() <= bytes / PADDING_DIVISOR {
                    writer.align(bytes as u32)?;
                }
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

    /// Writes the rest, and these removals of ranges, which no other table of the run has; all of it is on
    /// the device then. `None` if nothing was added.
    ///
    /// # Errors
    /// As [`TableWriter::push`].
    pub fn finish(mut self, ranges: &RangeTombstones) -> Result<Option<Made>, Error> {
        if self.summary.records == 0 && ranges.is_empty() {
            return Ok(None);
        }
        if !self.data.is_empty() {
            self.finish_data()?;
        }
        if !self.fences.is_empty() {
            self.finish_partition()?;
        }
        let mut places = Places::default();
        for block in ranges.encode(self.block_room()) {
            places.ranges.push(self.append(&block)?);
        }
        self.summarise(ranges);
        let top = self.top.finish();
        places.top = self.append(&top)?;
        if let Some(writer) = self.open.take() {
            self.written.push(writer.finish()?);
        }
        let metadata = self.options.metadata;
        Ok(Some(Made { segments: self.written, places, summary: self.summary, metadata }))
    }

    fn summarise(&mut self, ranges: &RangeTombstones) {
        let fragments = ranges.fragments();
        let (Some(first), Some(last)) = (fragments.first(), fragments.last()) else { return };
        let summary = &mut self.summary;
        if summary.records == 0 || first.lower < summary.first_key {
            summary.first_key.clone_from(&first.lower);
        }
        if last.last_key() > summary.last_key.as_slice() {
            summary.last_key = last.last_key().to_vec();
        }
        let newest = fragments.iter().filter_map(|fragment| fragment.removed_at.first()).max();
        summary.newest = summary.newest.max(newest.map_or(0, |newest| newest.0));
        summary.range_tombstones = ranges.count() as u64;
    }
}

/// A table, which lives as long as it has a reader.
pub(super) struct Table {
    /// Numbers of the segments in the page table.
    pub pages: Vec<PageId>,
    pub places: Places,
    pub summary: Summary,
    segments: Vec<OwnedSegment>,
    metadata: LsmMetadata,
    top: OnceLock<Vec<Fence>>,
    ranges: OnceLock<RangeTombstones>,
}

/// Where the records up to this one are.
struct Fence {
    key: Vec<u8>,
    timestamp: Timestamp,
    place: Place,
    /// The partition there, if it stays in memory.
    pinned: OnceLock<PinnedPartition>,
}

/// A partition as it is searched.
#[derive(Clone)]
struct Partition {
    filter: Content,
    fences: Block,
}

/// A partition that stays in memory as long as its table is used.
struct PinnedPartition {
    partition: Partition,
    /// Its part of the pool's budget.
    _block: PinnedBlock,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
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
    pub fn new(segments: Vec<OwnedSegment>, pages: Vec<PageId>, places: Places, summary: Summary) -> Self {
        let metadata = LsmMetadata::Cached;
        Self { pages, places, summary, segments, metadata, top: OnceLock::new(), ranges: OnceLock::new() }
    }

    /// The same table, whose partitions are kept so once they were read.
    pub fn with_metadata(self, metadata: LsmMetadata) -> Self {
        Self { metadata, ..self }
    }

    /// The same table of a load, whose commit is known by now.
    pub fn loaded_at(&self, at: Timestamp) -> Self {
        let summary = Summary { newest: at.0, ..self.summary.clone() };
        Self::new(self.segments.clone(), self.pages.clone(), self.places.clone(), summary)
            .with_metadata(self.metadata)
    }

    /// A version as readers know it, of one in its blocks.
    pub fn version(&self, version: Version) -> Version {
        match version.timestamp() == LOADED && !planted!(LoadSeenByOlderSnapshots) {
            true => version.at(Timestamp(self.summary.newest)),
            false => version,
        }
    }

    /// The opening sequence of its first segment; 0 without segments.
    pub fn opening(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.opening().0)
    }

    /// Where the last of its segments ends on the device.
    pub fn end_bytes(&self) -> u64 {
        self.segments.iter().map(OwnedSegment::end_bytes).max().unwrap_or(0)
    }

    /// Bytes of its segments.
    pub fn segment_bytes(&self) -> u64 {
        self.segments.iter().map(OwnedSegment::length).sum()
    }

    /// Whether a key may be in it.
    pub fn covers(&self, key: &[u8]) -> bool {
        let last = self.summary.last_key.as_slice();
        self.summary.first_key.as_slice() <= key
            && (key < last || key == last && !planted!(LastKeyNotCovered))
    }

    fn segment(&self, place: Place) -> Result<&OwnedSegment, Error> {
        let segment = self.segments.get(place.segment as usize);
        segment.ok_or_else(|| self.damaged("a segment that it has", place))
    }

    /// The content of a block, from memory if it is there. `unpack` makes it of the bytes on the device.
    fn content(
        &self,
        pool: &Pool,
        place: Place,
        unpack: fn(Vec<u8>) -> Option<Vec<u8>>,
    ) -> Result<Content, Error> {
        let segment = self.segment(place)?;
        let opening = if planted!(OpeningNotInBlockId) { 0 } else { segment.opening().0 };
        let id = BlockId { opening, start: place.block.start.into() };
        let mut read = || {
            unpack(segment.read(place.block)?)
                .ok_or_else(|| self.damaged("a block that this build can unpack", place))
        };
        Ok(pool.block_or(id, Access::Normal, &mut read)?.map_or_else(Content::from, Content::from))
    }

    /// The error of records that are not as they should be.
    #[cold]
    pub fn damaged_at(&self, place: Option<Place>) -> Error {
        self.damaged("records", place.unwrap_or(self.places.top))
    }

    /// The error of a table that has something else than its summary says.
    #[cold]
    pub fn out_of_step(&self, got: String) -> Error {
        Error::Corrupt {
            what: format!("the table with segments {:?}", self.pages),
            offset_bytes: self.places.top.block.start.into(),
            expected: format!("its summary: {:?}", self.summary),
            got,
        }
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
        let place = self.places.top;
        let block = Block::of(self.segment(place)?.read(place.block)?);
        let fences = self.fences_in(&block.ok_or_else(|| self.damaged("records", place))?, place)?;
        Ok(self.top.get_or_init(|| fences))
    }

    /// Its removals of ranges, which stay in memory while it is used.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn range_tombstones(&self) -> Result<&RangeTombstones, Error> {
        if let Some(ranges) = self.ranges.get() {
            return Ok(ranges);
        }
        let mut ranges = RangeTombstones::default();
        for place in &self.places.ranges {
            let block = Block::of(self.segment(*place)?.read(place.block)?);
            let whole = block.and_then(|block| ranges.decode(&block));
            whole.ok_or_else(|| self.damaged("removals of ranges", *place))?;
        }
        Ok(self.ranges.get_or_init(|| ranges))
    }

    /// Its removals of ranges, if they have been read. It does not wait.
    pub fn known_range_tombstones(&self) -> Option<&RangeTombstones> {
        self.ranges.get()
    }

    /// The newest removal of a range with this key that is not newer than `at`.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn removed_at(&self, key: &[u8], at: Timestamp) -> Result<Option<Timestamp>, Error> {
        match self.places.ranges.is_empty() {
            true => Ok(None),
            false => Ok(self.range_tombstones()?.newest(key, at)),
        }
    }

    /// The fence pointers of a block.
    fn fences_in(&self, block: &Block, place: Place) -> Result<Vec<Fence>, Error> {
        let (mut fences, mut are_whole) = (Vec::new(), true);
        let is_whole = block.each_from(None, |key, record| {
            let place = Place::take(&mut block.value(record));
            let timestamp = record.version.timestamp();
            let fence = |place| Fence { key: key.to_vec(), timestamp, place, pinned: OnceLock::new() };
            fences.extend(place.map(fence));
            are_whole &= place.is_some();
            are_whole
        });
        // A table that has nothing but removals of ranges has no fences.
        let is_whole = is_whole && are_whole && fences.is_empty() == (self.summary.records == 0);
        if is_whole { Ok(fences) } else { Err(self.damaged("fence pointers", place)) }
    }

    /// The partition of a fence of the top, which stays in memory if it is to and there is room.
    fn partition(&self, pool: &Pool, fence: &Fence) -> Result<Partition, Error> {
        if let Some(pinned) = fence.pinned.get() {
            return Ok(pinned.partition.clone());
        }
        let content = self.content(pool, fence.place, Some)?;
        let partition = self.partition_in(&content, fence.place)?;
        let share = content.share().filter(|_| self.metadata == LsmMetadata::Pinned);
        if let Some(block) = share.and_then(|share| pool.try_pin(share)) {
            // Another reader may have been first.
            let _same = fence.pinned.set(PinnedPartition { partition: partition.clone(), _block: block });
        }
        Ok(partition)
    }

    fn partition_numbered(&self, pool: &Pool, number: usize) -> Result<Partition, Error> {
        let fence = self.top()?.get(number);
        self.partition(pool, fence.ok_or_else(|| self.damaged("a partition", self.places.top))?)
    }

    fn partition_in(&self, content: &Content, place: Place) -> Result<Partition, Error> {
        let parts = content.split_first_chunk::<LENGTH_BYTES>().and_then(|(length, rest)| {
            let filter_end = LENGTH_BYTES.checked_add(u32::from_le_bytes(*length) as usize)?;
            let end = LENGTH_BYTES + rest.len();
            let fences = Block::of(content.part(filter_end..end)?)?;
            Some(Partition { filter: content.part(LENGTH_BYTES..filter_end)?, fences })
        });
        parts.ok_or_else(|| self.damaged("a partition", place))
    }

    /// The records of a data block.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn block(&self, pool: &Pool, place: Place) -> Result<Block, Error> {
        Block::of(self.content(pool, place, unpack)?).ok_or_else(|| self.damaged("records", place))
    }

    /// The same of several in their order, by few requests, and without keeping them in memory.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn read_blocks(&self, places: &[Place]) -> Result<Vec<Block>, Error> {
        let mut blocks = Vec::with_capacity(places.len());
        for of_segment in places.chunk_by(|one, other| one.segment == other.segment) {
            let Some(first) = of_segment.first() else { continue };
            let owned: Vec<OwnedBlock> = of_segment.iter().map(|place| place.block).collect();
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            self.segment(*first)?.read_all(&owned, &mut |content| {
                bytes.extend_from_slice(content);
                ends.push(bytes.len());
            })?;
            // Blocks that are read once more have two ends here: the last ones are whole.
            let ends = ends.get(ends.len().saturating_sub(owned.len())..).unwrap_or_default();
            let all = Content::from(bytes);
            let lengths = owned.iter().map(|block| (block.length - BLOCK_HEADER_BYTES) as usize);
            for (place, (end, length)) in of_segment.iter().zip(ends.iter().zip(lengths)) {
                let packed = end.checked_sub(length).and_then(|start| all.part(start..*end));
                let block = packed.as_ref().and_then(unpack_shared).and_then(Block::of);
                blocks.push(block.ok_or_else(|| self.damaged("records", *place))?);
            }
        }
        Ok(blocks)
    }

    /// The newest version of a key that is not newer than `at`.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the table is damaged.
    pub fn find(
        &self,
        pool: &Pool,
        counters: &Counters,
        key: &[u8],
        at: Timestamp,
    ) -> Result<Option<FoundRecord>, Error> {
        if !self.covers(key) {
            return Ok(None);
        }
        let top = self.top()?;
        let is_before = |fence: &Fence| order((&fence.key, fence.timestamp), (key, at)).is_lt();
        let Some(fence) = top.get(top.partition_point(is_before)) else { return Ok(None) };
        let partition = self.partition(pool, fence)?;
        let has_filter = !partition.filter.is_empty();
        if has_filter {
            count(&counters.filter_looked);
        }
        if !filter::may_have(&partition.filter, hash(FILTER_SEED, key)) {
            count(&counters.filter_kept_out);
            return Ok(None);
        }
        let damaged = || self.damaged("fence pointers", fence.place);
        let mut scratch = Vec::new();
        let pointer = partition.fences.first_from(Some((key, at)), &mut scratch).map_err(|()| damaged())?;
        // The partition has nothing after its last fence.
        let Some(pointer) = pointer else { return Ok(None) };
        let place = Place::take(&mut partition.fences.value(&pointer)).ok_or_else(damaged)?;
        spend_search();
        let block = self.block(pool, place)?;
        let record = block.find(key, at).map_err(|()| self.damaged("records", place))?;
        if record.is_none() && has_filter {
            count(&counters.filter_passed_in_vain);
        }
        let found = record.map(|record| FoundRecord { version: self.version(record.version), record, block });
        Ok(found.filter(|found| found.version.timestamp() <= at))
    }

    /// Partitions; none if it has nothing but removals of ranges.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn partitions(&self) -> Result<usize, Error> {
        Ok(self.top()?.len())
    }

    /// The first partition whose last record does not lie before a place; the number of partitions if all do.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn partition_of(&self, place: (&[u8], Timestamp)) -> Result<usize, Error> {
        Ok(self.top()?.partition_point(|fence| order((&fence.key, fence.timestamp), place).is_lt()))
    }

    /// The first data block of a partition that does not end before a place, if there is one.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn block_from(
        &self,
        pool: &Pool,
        partition: usize,
        from: (&[u8], Timestamp),
    ) -> Result<Option<Place>, Error> {
        let fences = self.partition_numbered(pool, partition)?.fences;
        let damaged = || self.damaged("fence pointers", self.places.top);
        let pointer = fences.first_from(Some(from), &mut Vec::new()).map_err(|()| damaged())?;
        pointer.map(|pointer| Place::take(&mut fences.value(&pointer)).ok_or_else(damaged)).transpose()
    }

    /// The data blocks of a partition, at least one, and how many of them end before a place.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn blocks_of(
        &self,
        pool: &Pool,
        partition: usize,
        before: Option<(&[u8], Timestamp)>,
    ) -> Result<(Vec<Place>, usize), Error> {
        let fences = self.partition_numbered(pool, partition)?.fences;
        let (mut places, mut count, mut are_whole) = (Vec::new(), 0, true);
        let is_whole = fences.each_from(None, |key, record| {
            let own = Place::take(&mut fences.value(record));
            let ends = |before| order((key, record.version.timestamp()), before).is_lt();
            count += usize::from(before.is_some_and(ends));
            places.extend(own);
            are_whole &= own.is_some();
            are_whole
        });
        let is_whole = is_whole && are_whole && !places.is_empty();
        if is_whole { Ok((places, count)) } else { Err(self.damaged("fence pointers", self.places.top)) }
    }
}

/// The records of a block, each at hand.
#[derive(Default)]
pub(super) struct Entries {
    keys: Vec<u8>,
    /// The end of each record's key, and the rest of the record.
    records: Vec<(usize, Record)>,
}

impl Entries {
    /// `None` if the block is damaged.
    pub fn of(block: &Block) -> Option<Self> {
        let mut entries = Self::default();
        let is_whole = block.each_from(None, |key, record| {
            entries.keys.extend_from_slice(key);
            entries.records.push((entries.keys.len(), record.clone()));
            true
        });
        is_whole.then_some(entries)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn get(&self, index: usize) -> Option<(&[u8], &Record)> {
        let (end, record) = self.records.get(index)?;
        let start =
            index.checked_sub(1).and_then(|before| self.records.get(before)).map_or(0, |(end, _)| *end);
        Some((self.keys.get(start..*end)?, record))
    }

    /// How many records lie before a place.
    pub fn before(&self, place: (&[u8], Timestamp)) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let lies_before =
                |(key, record): (&[u8], &Record)| order((key, record.version.timestamp()), place).is_lt();
            if self.get(middle).is_some_and(lies_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
