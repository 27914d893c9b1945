//! Segments that are owned whole.
//!
//! An owner, such as a table of an index, takes free segments, writes each of them in order, and reads blocks
//! of it. Nothing else lies in it. So it is given up at once, without cleaning: blocks that die together need
//! no log below a log.
//!
//! The life of an owned segment:
//!
//! 1. *Taken*: [`OwnedSegments::take`]. No checkpoint knows it, so that it is free after a crash.
//! 2. *Written*: [`SegmentWriter::append`] writes blocks one after the other, in requests of a write unit.
//!    [`SegmentWriter::finish`] returns when all are on the device, though perhaps in its volatile cache.
//! 3. *Recorded*: [`Section::record_segment`](crate::pool::Section::record_segment) gives it a page number,
//!    in the section that changes the reference to it. Checkpoints that are cut from then on have both: the
//!    page table has the number, and its location says that it is a segment. A checkpoint flushes the device
//!    after its cut, so the blocks are durable when it is.
//! 4. *Freed*: [`Section::free_unread`](crate::pool::Section::free_unread) of the number. The segment is free
//!    when a checkpoint without it is durable. An owner frees it when it has no reader any more: later reads
//!    may find other blocks, and refuse them.
//! 5. If all of it is dropped before it was recorded, and no request is under way, it is free at once.
//!
//! After recovery [`OwnedSegments::open`] opens the recorded segments. An owner whose index names none of its
//! numbers any more has lost nothing: they are reclaimed like any page that no tree refers to.
//!
//! The cleaner and the gatherings never look at such a segment. A compaction cannot move it either: its
//! blocks are referred to by the owner alone. It asks owners to rewrite their segments after the new end,
//! into the first free segments; and the device keeps at least the segments up to the last owned one.
//!
//! A block is its checksum (4 bytes), the length of its content (4 bytes) and its content. The checksum
//! covers where the block should be, the opening sequence of the segment, which no other use of any segment
//! has, the length and the content. So a block that was lost, or written elsewhere, is refused, and so is one
//! that an earlier owner has left.

use std::ops::Range;

use super::changes::Changes;
use super::gather::Gatherer;
use super::location::Location;
use super::reclaim::Reclaim;
use super::space::Space;
use super::upkeep::Upkeep;
use super::{Purpose, Stream, UnitSequence};
use crate::Error;
use crate::checksum::Crc32c;
use crate::io_context::{Block, Devices, Role};
use crate::poison::Poison;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};
use crate::task::Executor;

/// Bytes of a block before its content.
pub(crate) const BLOCK_HEADER_BYTES: u32 = 8;

/// Units of a segment that are on their way at a time: one is written while the next one is filled.
const UNITS_UNDER_WAY: usize = 2;

/// Gives segments to owners.
pub(crate) struct OwnedSegments {
    parts: Arc<Parts>,
    upkeep: Arc<Upkeep>,
    is_in_place: bool,
    /// Of all segments but the first ones, which may be shorter.
    segment_bytes: u64,
    awaits_flushes: AtomicBool,
}

/// The parts that every owned segment uses.
struct Parts {
    devices: Devices,
    executor: Executor,
    poison: Poison,
    unit_bytes: u32,
    sector_bytes: u32,
    space: Arc<Space>,
    gatherer: Arc<Gatherer>,
    reclaim: Arc<Reclaim>,
    changes: Arc<Changes>,
}

/// An owned segment that is being written, read or recorded. One that nothing records is free when this is
/// dropped.
struct Taken {
    parts: Arc<Parts>,
    index: usize,
    range: Range<u64>,
    /// Unique to this use of the segment.
    opening: UnitSequence,
    is_recorded: AtomicBool,
    /// Units on their way to the device.
    under_way: AtomicUsize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        debug_assert_eq!(self.under_way.load(Ordering::Relaxed), 0, "a request writes into a free segment");
        if !self.is_recorded.load(Ordering::Acquire) {
            self.parts.reclaim.free(self.parts.space.give_up_owned(self.index));
        }
    }
}

/// A unit that is on its way. Its drop counts it out on every path, panics included.
struct UnderWay(Arc<Taken>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
        self.0.parts.changes.wake_all();
    }
}

/// Bytes of free segments that commits leave to an owner, until this is dropped. An owner that has changes in
/// memory, or in the log, needs them to go on: without them these could never leave the log, and nothing that
/// was removed could make room.
pub(crate) struct Reservation {
    space: Arc<Space>,
    /// All, and the part for flushes.
    bytes: Mutex<(u64, u64)>,
}

impl Reservation {
    /// The owner needs as much as `bytes` gives from now on, which is called with the reservation's lock.
    pub fn set(&self, bytes: impl FnOnce() -> u64) {
        self.set_with_flushes(|| (bytes(), 0));
    }

    /// The same, and as the second number the part that flushes need, if no checkpoint is made without them.
    pub fn set_with_flushes(&self, bytes: impl FnOnce() -> (u64, u64)) {
        let mut reserved = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = bytes();
        debug_assert!(bytes.1 <= bytes.0, "{bytes:?}");
        self.space.reserve_for_owner(bytes.0, reserved.0);
        self.space.reserve_for_flushes(bytes.1, reserved.1);
        *reserved = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(|| 0);
    }
}

/// See [`OwnedSegments::at_work`].
pub(crate) struct AtWork {
    space: Arc<Space>,
    changes: Arc<Changes>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.space.set_owner_at_work(false);
        self.changes.wake_all();
    }
}

/// A block of an owned segment. The owner remembers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnedBlock {
    /// First byte, from the segment's beginning.
    pub start: u32,
    /// Bytes, with the header.
    pub length: u32,
}

impl OwnedBlock {
    fn end(self) -> u64 {
        u64::from(self.start) + u64::from(self.length)
    }
}

/// An owned segment that is being written.
pub(crate) struct SegmentWriter {
    taken: Arc<Taken>,
    /// Memory of the unit that is being filled.
    unit: Block,
    /// Its first byte in the segment, and how many of its bytes are filled.
    start: u32,
    filled: u32,
}

/// An owned segment that is written.
#[derive(Clone)]
pub(crate) struct OwnedSegment(Arc<Taken>);

impl OwnedSegments {
    pub(super) fn new(
        (devices, executor, poison): (Devices, Executor, Poison),
        (sector_bytes, segment_bytes): (u32, u64),
        (space, gatherer): (&Arc<Space>, &Arc<Gatherer>),
        (reclaim, changes, upkeep): (&Arc<Reclaim>, &Arc<Changes>, &Arc<Upkeep>),
    ) -> Self {
        let parts = Parts {
            devices,
            executor,
            poison,
            unit_bytes: gatherer.unit_bytes() as u32,
            sector_bytes,
            space: Arc::clone(space),
            gatherer: Arc::clone(gatherer),
            reclaim: Arc::clone(reclaim),
            changes: Arc::clone(changes),
        };
        let is_in_place = gatherer.in_place().is_some();
        let (upkeep, awaits_flushes) = (Arc::clone(upkeep), AtomicBool::new(false));
        Self { parts: Arc::new(parts), upkeep, is_in_place, segment_bytes, awaits_flushes }
    }

    /// From now on no checkpoint is made before owners have written their memtables, so the room that these
    /// need is kept from all other uses. To be called before there are owners.
    pub fn await_flushes(&self) {
        self.awaits_flushes.store(true, Ordering::Release);
    }

    /// See [`OwnedSegments::await_flushes`].
    pub fn awaits_flushes(&self) -> bool {
        self.awaits_flushes.load(Ordering::Acquire)
    }

    /// Whether [`OwnedSegments::take`] would have a segment at once.
    pub fn has_room(&self) -> bool {
        let space = &self.parts.space;
        space.usage().free > 0 && space.is_room_for_owner(0)
    }

    /// Whether segments of `bytes` bytes will be free, once those that are pending are.
    pub fn will_have_room(&self, bytes: u64) -> bool {
        self.upkeep.may_grow() || self.parts.space.is_room_for_owner(bytes)
    }

    /// Bytes that owners may take, now or when the segments that are pending are free.
    pub fn room_to_come(&self) -> u64 {
        self.parts.space.room_for_owner_to_come()
    }

    /// Bytes of free segments before this byte of the device that owners may take.
    pub fn room_before(&self, end_bytes: u64) -> u64 {
        self.parts.space.room_for_owner_before(end_bytes)
    }

    /// Room that no other owner may take from now on: an owner's reservation, of nothing yet.
    pub fn reservation(&self) -> Reservation {
        Reservation { space: Arc::clone(&self.parts.space), bytes: Mutex::default() }
    }

    /// Whether commits have to wait for room, or will soon.
    pub fn lacks_room(&self) -> bool {
        !self.upkeep.may_grow() && self.parts.space.lacks_room()
    }

    /// An owner is at work that may make segments free, until the result is dropped: commits wait for it
    /// rather than be refused.
    pub fn at_work(&self) -> AtWork {
        self.parts.space.set_owner_at_work(true);
        AtWork { space: Arc::clone(&self.parts.space), changes: Arc::clone(&self.parts.changes) }
    }

    /// Whether pages stay where they are, so that there is nothing to take.
    pub fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// See [`Upkeep::may_grow`].
    pub fn may_grow(&self) -> bool {
        self.upkeep.may_grow()
    }

    /// Bytes of the largest segment. Those of a store that grows become larger with it.
    pub fn present_segment_bytes(&self) -> u64 {
        self.parts.space.largest_segment_bytes()
    }

    /// Bytes of the smallest segments.
    pub fn least_segment_bytes(&self) -> u64 {
        self.parts.space.sizes().length(0)
    }

    /// Bytes of most segments.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Takes the first free segment; waits until one is free. Segments have several sizes: see
    /// [`SegmentWriter::room`]. Owners that write much reserve room with [`Upkeep::want`] before, as overflow
    /// values do.
    ///
    /// # Errors
    /// [`Error::Full`] if none is free, and none is to be expected; [`Error::Poisoned`]; [`Error::Options`]
    /// if pages stay where they are.
    pub fn take(&self, purpose: Purpose) -> Result<SegmentWriter, Error> {
        if self.is_in_place {
            return Err(Error::Options("pages that stay in their places leave no segments to owners".into()));
        }
        let parts = &self.parts;
        let unit = Block::new(parts.unit_bytes as usize)?;
        loop {
            self.upkeep.wait_for_room_for_owner()?;
            let opening = parts.gatherer.output().buffers().draw_sequence();
            let index = parts.space.take_owned(opening, purpose);
            parts.changes.segments_changed();
            let Some(index) = index else {
                self.upkeep.wait_for_owned(purpose)?;
                continue;
            };
            let taken = Arc::new(self.taken(index, opening, false));
            return Ok(SegmentWriter { taken, unit, start: 0, filled: 0 });
        }
    }

    fn taken(&self, index: usize, opening: UnitSequence, is_recorded: bool) -> Taken {
        Taken {
            parts: Arc::clone(&self.parts),
            index,
            range: self.parts.space.range(index),
            opening,
            is_recorded: AtomicBool::new(is_recorded),
            under_way: AtomicUsize::new(0),
        }
    }

    /// The segment that the page table has at this location.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no owned segment is there.
    pub fn open(&self, location: Location) -> Result<OwnedSegment, Error> {
        let space = &self.parts.space;
        let index = space.owned_at(location).ok_or_else(|| space.nowhere(location))?;
        Ok(OwnedSegment(Arc::new(self.taken(index, space.opening_of(index), true))))
    }
}

impl Taken {
    /// Bytes of the segment.
    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The checksum of a block that begins at this byte of the segment.
    fn checksum(&self, start: u32, content: &[u8]) -> u32 {
        let mut checksum = Crc32c::new();
        checksum.add(&self.range.start.to_le_bytes());
        checksum.add(&self.opening.0.to_le_bytes());
        checksum.add(&start.to_le_bytes());
        checksum.add(&(content.len() as u32).to_le_bytes());
        checksum.add(content);
        checksum.get()
    }

    /// The task that writes a unit.
    fn write(&self, start: u32, unit: &Block, length: u32) {
        let (parts, offset) = (&self.parts, self.range.start + u64::from(start));
        if let Err(error) = unit.write_some(&parts.devices, Role::Data, offset, length) {
            let _first_counts = parts.poison.by(error);
        }
    }

    /// Waits until at most `most` units are on their way.
    fn wait(&self, most: usize) -> Result<(), Error> {
        self.parts.changes.wait_until(|| {
            self.parts.poison.check()?;
            Ok(self.under_way.load(Ordering::Acquire) <= most)
        })
    }
}

impl SegmentWriter {
    /// Bytes of content that one more block can have.
    pub fn room(&self) -> u64 {
        self.taken.length().saturating_sub(self.at() + u64::from(BLOCK_HEADER_BYTES))
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.at() == 0
    }

    /// Bytes of the segment that are used.
    pub fn at(&self) -> u64 {
        u64::from(self.start) + u64::from(self.filled)
    }

    /// Has the next block begin at a multiple of `bytes`: those of a sector or page of the drive, so that
    /// reading the block takes none in vain.
    ///
    /// # Errors
    /// As [`SegmentWriter::append`].
    pub fn align(&mut self, bytes: u32) -> Result<(), Error> {
        const ZEROS: [u8; 512] = [0; 512];
        let mut missing = self.at().next_multiple_of(u64::from(bytes.max(1))) - self.at();
        missing = missing.min(self.taken.length() - self.at());
        while missing > 0 {
            let part = missing.min(ZEROS.len() as u64);
            self.push(&ZEROS[..part as usize])?;
            missing -= part;
        }
        Ok(())
    }

    /// Appends a block. `None` if the segment has no [room](Self::room) for it, and then nothing has changed.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn append(&mut self, content: &[u8]) -> Result<Option<OwnedBlock>, Error> {
        if content.len() as u64 > self.room() {
            return Ok(None);
        }
        let start = self.at() as u32;
        let checksum = self.taken.checksum(start, content);
        self.push(&checksum.to_le_bytes())?;
        self.push(&(content.len() as u32).to_le_bytes())?;
        self.push(content)?;
        Ok(Some(OwnedBlock { start, length: content.len() as u32 + BLOCK_HEADER_BYTES }))
    }

    /// Puts bytes into the unit, and sends units that are full.
    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let room = (self.taken.parts.unit_bytes - self.filled) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.unit.bytes()[self.filled as usize..][..now.len()].copy_from_slice(now);
            self.filled += now.len() as u32;
            bytes = later;
            if self.filled == self.taken.parts.unit_bytes {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Has the unit written in the background, as far as it is filled, up to a whole sector.
    fn send(&mut self) -> Result<(), Error> {
        let parts = Arc::clone(&self.taken.parts);
        let (start, length) = (self.start, self.filled.next_multiple_of(parts.sector_bytes));
        self.unit.bytes()[self.filled as usize..length as usize].fill(0);
        let next = Block::new(parts.unit_bytes as usize)?;
        self.taken.wait(UNITS_UNDER_WAY - 1)?;
        let unit = std::mem::replace(&mut self.unit, next);
        self.taken.under_way.fetch_add(1, Ordering::AcqRel);
        let under_way = UnderWay(Arc::clone(&self.taken));
        parts.gatherer.output().count(Stream::Owned, self.taken.range.start + u64::from(start), length);
        parts.executor.spawn(move || under_way.0.write(start, &unit, length));
        (self.start, self.filled) = (start + length, 0);
        Ok(())
    }

    /// Writes the rest, and waits until all is on the device. It is durable with the next checkpoint that is
    /// cut, or after a flush of the data device.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn finish(mut self) -> Result<OwnedSegment, Error> {
        if self.filled > 0 {
            self.send()?;
        }
        if !planted!(TableNotAwaited) {
            self.taken.wait(0)?;
        }
        Ok(OwnedSegment(self.taken))
    }
}

impl OwnedSegment {
    /// Bytes of it.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Where it ends on the device.
    pub fn end_bytes(&self) -> u64 {
        self.0.range.end
    }

    /// Unique to this use of the segment.
    pub fn opening(&self) -> UnitSequence {
        self.0.opening
    }

    /// Its location in the page table.
    pub fn location(&self) -> Location {
        Location::of_segment(self.0.range.start)
    }

    /// The page table has it: it stays when this is dropped.
    pub fn set_recorded(&self) {
        self.0.is_recorded.store(true, Ordering::Release);
    }

    /// The content of a block. Parks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the block is not there.
    pub fn read(&self, block: OwnedBlock) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        self.read_all(&[block], &mut |bytes| content.extend_from_slice(bytes))?;
        Ok(content)
    }

    /// The same of several blocks in their order, all by one request, which reads the bytes between them,
    /// too.
    ///
    /// # Errors
    /// As [`OwnedSegment::read`]; `see` has seen some of them then, perhaps twice.
    pub fn read_all(&self, blocks: &[OwnedBlock], see: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        // Damage in transit is gone when it is read again.
        let mut verified = 0;
        match self.read_once(blocks, &mut verified, see) {
            Err(Error::Corrupt { .. }) => {
                let rest = blocks.get(verified..).unwrap_or_default();
                self.read_once(rest, &mut 0, see)
            }
            first => first,
        }
    }

    fn read_once(
        &self,
        blocks: &[OwnedBlock],
        verified: &mut usize,
        see: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let (taken, parts) = (&self.0, &self.0.parts);
        let Some(start) = blocks.iter().map(|block| block.start).min() else { return Ok(()) };
        let end = blocks.iter().map(|block| block.end()).max().unwrap_or(0);
        if end > taken.length() {
            let place = format!("bytes {start} to {end} of a segment of {}", taken.length());
            return Err(self.damaged(start, "a block of the segment".into(), place));
        }
        let sector = u64::from(parts.sector_bytes);
        let first = u64::from(start) / sector * sector;
        let mut memory = Block::new((end.next_multiple_of(sector) - first) as usize)?;
        memory.read(&parts.devices, Role::Data, taken.range.start + first)?;
        for block in blocks {
            let bytes = memory.bytes().get((u64::from(block.start) - first) as usize..);
            let bytes = bytes.and_then(|bytes| bytes.get(..block.length as usize)).unwrap_or_default();
            see(self.verify(*block, bytes)?);
            *verified += 1;
        }
        Ok(())
    }

    /// The content of a block that was read.
    fn verify<'b>(&self, block: OwnedBlock, bytes: &'b [u8]) -> Result<&'b [u8], Error> {
        let (checksum, rest) = bytes.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (length, content) = rest.split_first_chunk().unwrap_or((&[0xff; 4], &[]));
        let (checksum, length) = (u32::from_le_bytes(*checksum), u32::from_le_bytes(*length));
        if length as usize != content.len() {
            let expected = format!("{} bytes of content", content.len());
            return Err(self.damaged(block.start, expected, format!("{length} bytes")));
        }
        let should_be = self.0.checksum(block.start, content);
        if checksum != should_be && !planted!(TableChecksumIgnored) {
            let [expected, got] = [should_be, checksum].map(|sum| format!("checksum {sum:08x}"));
            return Err(self.damaged(block.start, expected, got));
        }
        Ok(content)
    }

    #[cold]
    fn damaged(&self, start: u32, expected: String, got: String) -> Error {
        let what = format!("a block of the segment with opening sequence {}", self.0.opening.0);
        Error::Corrupt { what, offset_bytes: self.0.range.start + u64::from(start), expected, got }
    }
}
