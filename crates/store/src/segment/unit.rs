//! Write units: a fixed number of aligned buffers, and the placement of images in the open one.
//!
//! A unit is a range of a segment that is written by one request. It ends at a multiple of the desirable
//! write size, and begins at one unless an earlier unit was sealed half full. Its images lie back to back,
//! with two exceptions:
//!
//! - An image that would need more sectors to be read than its page has begins at the next sector.
//! - With packs (see [`crate::layout::Layout::pack_bytes`]), an image that fits into one pack does not cross
//!   into the next.
//!
//! Gaps are filled with zeros.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, PoisonError};
use std::ops::Range;

use flashgrain_device::{Arena, Error as DeviceError};
use flashgrain_settings::unit::UNIT_BYTES;

use super::blocks::{self, Divided};
use super::{Location, UnitSequence};
use crate::class::class_bytes;
use crate::header::Header;

/// Memory for units: as much as a drive writes in some milliseconds.
const MEMORY_BYTES: u64 = 16 << 20;

/// More buffers than this help no drive.
const BUFFERS_MAX: u64 = 256;

/// Every target may have one open, and others must be on their way meanwhile.
const FEWEST_BUFFERS: u64 = 16;

/// Buffers of stores with smaller units than users may set: such stores are opened by the thousand in tests,
/// and hardly use their buffers.
const BUFFERS_OF_SMALL: u64 = 64;

/// Rule for the number of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fleet {
    /// Enough for the bandwidth of a drive.
    Bandwidth,
    /// As many as any drive can use: each request is a page, so the number of requests counts. Only used
    /// parts of a buffer are backed by memory.
    Depth,
}

/// Set in [`Buffer::copies`] when nothing more will be placed in the unit.
const SEALED: u32 = 1 << 31;

/// Gaps that are remembered, and tried before new bytes are taken.
const GAPS: usize = 8;

/// The memory of units that are open or on their way.
pub(super) struct Buffers {
    memory: Arena,
    buffer_bytes: u32,
    all: Box<[Buffer]>,
    free: Mutex<Free>,
}

struct Free {
    buffers: Vec<u32>,
    next_sequence: u64,
}

/// A buffer. The buffer of a unit is its number modulo the number of buffers, so it takes one load to see
/// whether a unit is written.
#[derive(Default)]
#[repr(align(64))]
struct Buffer {
    /// The unit that is in it and not written yet; 0 if it is empty.
    sequence: AtomicU64,
    /// Images that are being copied, and [`SEALED`].
    copies: AtomicU32,
    length_bytes: AtomicU32,
    offset_bytes: AtomicU64,
}

/// A range of a unit's buffer for an image.
pub(super) struct BufferSlot {
    pub unit: UnitSequence,
    pub location: Location,
    pub start: u32,
}

/// A unit that can be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub unit: UnitSequence,
    pub offset_bytes: u64,
    pub length_bytes: u32,
}

impl Buffers {
    pub fn new(buffer_bytes: u32, fleet: Fleet) -> Result<Self, DeviceError> {
        let count = match fleet {
            Fleet::Bandwidth if buffer_bytes < UNIT_BYTES.0 => BUFFERS_OF_SMALL,
            Fleet::Bandwidth => (MEMORY_BYTES / u64::from(buffer_bytes)).clamp(FEWEST_BUFFERS, BUFFERS_MAX),
            Fleet::Depth => BUFFERS_MAX,
        };
        let count = if count.is_power_of_two() { count } else { count.next_power_of_two() / 2 };
        Ok(Self {
            memory: Arena::new(count as usize * buffer_bytes as usize)?,
            buffer_bytes,
            all: (0..count).map(|_| Buffer::default()).collect(),
            free: Mutex::new(Free { buffers: (0..count as u32).collect(), next_sequence: 1 }),
        })
    }

    /// A buffer for a unit at `offset_bytes`, if one is free.
    pub fn take(&self, offset_bytes: u64) -> Option<UnitSequence> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = u64::from(free.buffers.pop()?);
        let count = self.all.len() as u64;
        let next = free.next_sequence;
        let sequence = next + (index + count - next % count) % count;
        free.next_sequence = sequence + 1;
        let buffer = &self.all[index as usize];
        buffer.copies.store(0, Ordering::Relaxed);
        buffer.offset_bytes.store(offset_bytes, Ordering::Relaxed);
        buffer.length_bytes.store(self.buffer_bytes, Ordering::Relaxed);
        buffer.sequence.store(sequence, Ordering::Release);
        Some(UnitSequence(sequence))
    }

    pub fn has_free(&self) -> bool {
        !self.free.lock().unwrap_or_else(PoisonError::into_inner).buffers.is_empty()
    }

    /// Numbers units from `next` on, or later.
    pub fn skip_to(&self, next: UnitSequence) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.next_sequence = free.next_sequence.max(next.0);
    }

    /// A number that no unit has, above those of all units so far.
    pub fn draw_sequence(&self) -> UnitSequence {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.next_sequence += 1;
        UnitSequence(free.next_sequence - 1)
    }

    /// No unit so far has this number or a higher one.
    pub fn next_sequence(&self) -> UnitSequence {
        UnitSequence(self.free.lock().unwrap_or_else(PoisonError::into_inner).next_sequence)
    }

    #[inline]
    fn of(&self, unit: UnitSequence) -> &Buffer {
        // The count is a power of two.
        &self.all[unit.0 as usize & (self.all.len() - 1)]
    }

    #[inline]
    pub fn is_written(&self, unit: UnitSequence) -> bool {
        self.of(unit).sequence.load(Ordering::Acquire) != unit.0
    }

    /// Units that are not written yet.
    pub fn unwritten(&self) -> impl Iterator<Item = UnitSequence> {
        self.all.iter().filter_map(|buffer| match buffer.sequence.load(Ordering::Acquire) {
            0 => None,
            sequence => Some(UnitSequence(sequence)),
        })
    }

    /// Units that are complete and not written yet.
    pub fn on_their_way(&self) -> usize {
        let is_on_its_way = |buffer: &&Buffer| {
            buffer.sequence.load(Ordering::Acquire) != 0
                && buffer.copies.load(Ordering::Relaxed) & SEALED != 0
        };
        self.all.iter().filter(is_on_its_way).count()
    }

    /// Whether a part of this range of the device is not written yet.
    pub fn holds_any_of(&self, range: Range<u64>) -> bool {
        self.unwritten().any(|unit| range.contains(&self.of(unit).offset_bytes.load(Ordering::Relaxed)))
    }

    /// The memory of a unit.
    pub fn memory(&self, unit: UnitSequence) -> *mut u8 {
        let index = unit.0 as usize & (self.all.len() - 1);
        self.memory.as_ptr().wrapping_add(index * self.buffer_bytes as usize)
    }

    /// The bytes of a place.
    #[expect(clippy::mut_from_ref, reason = "every place is other bytes")]
    pub fn image(&self, slot: &BufferSlot) -> &mut [u8] {
        let bytes = slot.location.length_bytes() as usize;
        let memory = self.memory(slot.unit).wrapping_add(slot.start as usize);
        // SAFETY: these bytes of the unit's buffer were given to the caller alone, and the unit is not
        // written before it calls `end_copy`.
        unsafe { std::slice::from_raw_parts_mut(memory, bytes) }
    }

    /// Fills a part of a unit that holds no image with zeros.
    pub fn zero(&self, unit: UnitSequence, range: Range<u32>) {
        let memory = self.memory(unit).wrapping_add(range.start as usize);
        // SAFETY: the range lies within the unit's buffer and holds no image; only the holder of the target's
        // lock touches it.
        unsafe { memory.write_bytes(0, range.len()) };
    }

    /// Announces the copy of an image into the unit, which is open.
    pub fn begin_copy(&self, unit: UnitSequence) {
        self.of(unit).copies.fetch_add(1, Ordering::Relaxed);
    }

    /// The image is in the unit. It returns the unit if it was the last that was waited for.
    pub fn end_copy(&self, unit: UnitSequence) -> Option<Ready> {
        let before = self.of(unit).copies.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before & !SEALED > 0, "a copy that was not begun");
        (before == SEALED | 1).then(|| self.ready(unit))
    }

    /// Closes the unit to more images; this many bytes of it are used. It returns the unit if no copy is
    /// under way any more.
    pub fn seal(&self, unit: UnitSequence, length_bytes: u32) -> Option<Ready> {
        self.of(unit).length_bytes.store(length_bytes, Ordering::Relaxed);
        let before = self.of(unit).copies.fetch_or(SEALED, Ordering::AcqRel);
        debug_assert_eq!(before & SEALED, 0, "a unit is sealed twice");
        (before == 0).then(|| self.ready(unit))
    }

    fn ready(&self, unit: UnitSequence) -> Ready {
        let buffer = self.of(unit);
        Ready {
            unit,
            offset_bytes: buffer.offset_bytes.load(Ordering::Relaxed),
            length_bytes: buffer.length_bytes.load(Ordering::Relaxed),
        }
    }

    /// The unit is on the device.
    pub fn written(&self, unit: UnitSequence) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.of(unit).sequence.swap(0, Ordering::AcqRel);
        debug_assert_eq!(before, unit.0, "a unit that is not in its buffer is written");
        free.buffers.push((unit.0 as usize & (self.all.len() - 1)) as u32);
        debug_assert!(free.buffers.len() <= self.all.len(), "more buffers are free than there are");
    }
}

/// An open unit, and the ranges of it that are taken.
pub(super) struct Open {
    pub unit: UnitSequence,
    pub offset_bytes: u64,
    length_bytes: u32,
    rules: Rules,
    /// End of the last image: nothing is taken from here on.
    next: u32,
    /// Bytes of the images in it.
    image_bytes: u32,
    gaps: [Gap; GAPS],
}

/// The requirements of an image on its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub bytes: u32,
    /// Of its page.
    pub class: usize,
    /// It begins at a multiple of this number of bytes of the device, or of a pack if that is less.
    align_bytes: u32,
}

impl Shape {
    /// Of an image of a page of `class`.
    pub fn plain(bytes: u32, class: usize) -> Self {
        Self { bytes, class, align_bytes: 1 }
    }

    /// Of an image with this header.
    pub fn of(header: Header, bytes: u32) -> Self {
        Self { bytes, class: header.class.into(), align_bytes: blocks::align_bytes(header.kind) }
    }

    /// Of the image in blocks of the page with this header.
    pub fn in_blocks(header: Header, divided: Divided) -> Self {
        Self { align_bytes: blocks::align_of_blocks(header.kind), ..Self::of(header, divided.image_bytes) }
    }

    fn page_bytes(self) -> u32 {
        class_bytes(self.class) as u32
    }
}

/// Placement rules for images.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// An image that is not larger does not cross multiples of this.
    pub pack_bytes: u32,
    pub sector_bytes: u32,
}

impl Rules {
    /// The first place from `from` on for an image of a page of `page_bytes`.
    fn start(self, from: u32, bytes: u32, page_bytes: u32) -> u32 {
        let whole_sectors = |start: u32| start.next_multiple_of(self.sector_bytes);
        let skip = from % self.sector_bytes;
        let start = if whole_sectors(skip + bytes) > page_bytes { whole_sectors(from) } else { from };
        let pack_end = (start + 1).next_multiple_of(self.pack_bytes);
        if start + bytes > pack_end && (bytes <= self.pack_bytes || start + self.pack_bytes > pack_end) {
            return pack_end;
        }
        start
    }
}

/// A range left empty before an image.
#[derive(Clone, Copy, Default)]
struct Gap {
    start: u32,
    end: u32,
}

impl Gap {
    fn bytes(self) -> u32 {
        self.end - self.start
    }
}

impl Open {
    pub fn new(unit: UnitSequence, offset_bytes: u64, length_bytes: u32, rules: Rules) -> Self {
        Self { unit, offset_bytes, length_bytes, rules, next: 0, image_bytes: 0, gaps: Default::default() }
    }

    /// A place for an image, from the unit's beginning, and the range that has to be filled with zeros now as
    /// no image will be put there any more.
    pub fn place(&mut self, shape: Shape) -> Option<(u32, Range<u32>)> {
        let Shape { bytes, align_bytes, .. } = shape;
        let (rules, phase) = (self.rules, (self.offset_bytes % u64::from(self.rules.pack_bytes)) as u32);
        let align = align_bytes.min(rules.pack_bytes);
        let start_from = |from: u32| {
            rules.start((phase + from).next_multiple_of(align), bytes, shape.page_bytes()) - phase
        };
        let fits = |gap: &&mut Gap| start_from(gap.start) + bytes <= gap.end;
        if let Some(gap) = self.gaps.iter_mut().filter(fits).min_by_key(|gap| gap.bytes()) {
            let start = start_from(gap.start);
            let before = gap.start..start;
            gap.start = start + bytes;
            self.image_bytes += bytes;
            return Some((start, before));
        }
        let start = start_from(self.next);
        if start + bytes > self.length_bytes {
            return None;
        }
        let mut left = Gap { start: self.next, end: start };
        self.next = start + bytes;
        self.image_bytes += bytes;
        if let Some(smallest) = self.gaps.iter_mut().min_by_key(|gap| gap.bytes())
            && smallest.bytes() < left.bytes()
        {
            std::mem::swap(smallest, &mut left);
        }
        Some((start, left.start..left.end))
    }

    /// Bytes that are taken, whole sectors.
    pub fn taken_bytes(&self) -> u32 {
        self.next.next_multiple_of(self.rules.sector_bytes).min(self.length_bytes)
    }

    /// Bytes of the unit.
    pub fn length_bytes(&self) -> u32 {
        self.length_bytes
    }

    /// Bytes of the images in it.
    pub fn image_bytes(&self) -> u32 {
        self.image_bytes
    }

    /// Ranges that have to be filled with zeros before the unit is written.
    pub fn unused(&self) -> impl Iterator<Item = Range<u32>> {
        let last = std::iter::once(self.next..self.taken_bytes());
        self.gaps.iter().map(|gap| gap.start..gap.end).chain(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Images do not overlap, cross neither packs nor sectors where they must not, and together with the
        /// zeros cover the used bytes, in a unit that was partly sent away before.
        #[test]
        fn images_are_placed_by_the_rules(
            images in prop::collection::vec((0u32..8, 1u32..=64), 1..400),
            pack_sectors in prop::sample::select(vec![1u32, 8, 32, 256]),
            sector in prop::sample::select(vec![512u32, 4096]),
            begun_sectors in 0u32..20,
        ) {
            const UNIT: u32 = 256 * 512;
            let (pack, begun) = ((pack_sectors * 512).max(sector), begun_sectors * sector);
            let length = UNIT - begun;
            let rules = Rules { pack_bytes: pack, sector_bytes: sector };
            let mut open = Open::new(UnitSequence(1), u64::from(UNIT * 7 + begun), length, rules);
            let mut covered = vec![0u8; (length / 64) as usize];
            let mut cover = |range: Range<u32>| range.step_by(64).for_each(|at| covered[at as usize / 64] += 1);
            let mut left_out = 0;
            for (class, share) in images {
                let page = 4096 << class.min(3);
                let bytes = page / 64 * share;
                let Some((start, zeros)) = open.place(Shape::plain(bytes, class.min(3) as usize)) else {
                    left_out = bytes;
                    break;
                };
                let place = begun + start;
                let sectors = (place + bytes).div_ceil(sector) - place / sector;
                prop_assert!(sectors * sector <= page, "{} bytes at {}", bytes, place);
                if bytes <= pack {
                    prop_assert_eq!(place / pack, (place + bytes - 1) / pack);
                } else {
                    prop_assert_eq!(place % pack, 0);
                }
                cover(start..start + bytes);
                cover(zeros);
            }
            open.unused().for_each(cover);
            prop_assert!(left_out == 0 || open.next + left_out + pack > length);
            let taken = open.taken_bytes() as usize / 64;
            prop_assert!(covered[..taken].iter().all(|count| *count == 1), "{covered:?}");
            prop_assert!(covered[taken..].iter().all(|count| *count == 0));
        }
    }

    #[test]
    fn a_unit_is_ready_when_it_is_sealed_and_the_last_copy_has_ended() {
        let buffers = Buffers::new(1 << 20, Fleet::Bandwidth).unwrap();
        let unit = buffers.take(4096).unwrap();
        buffers.begin_copy(unit);
        buffers.begin_copy(unit);
        assert!(buffers.end_copy(unit).is_none());
        assert!(buffers.seal(unit, 512).is_none());
        let ready = buffers.end_copy(unit).unwrap();
        assert_eq!((ready.unit, ready.offset_bytes, ready.length_bytes), (unit, 4096, 512));
        assert!(!buffers.is_written(unit) && buffers.holds_any_of(0..8192) && !buffers.holds_any_of(0..4096));
        buffers.written(unit);
        assert!(buffers.is_written(unit));
    }

    #[test]
    fn units_are_numbered_upwards_and_each_knows_its_own_buffer() {
        let buffers = Buffers::new(1 << 20, Fleet::Bandwidth).unwrap();
        let taken: Vec<UnitSequence> = std::iter::from_fn(|| buffers.take(0)).collect();
        assert_eq!(taken.len() as u64, MEMORY_BYTES >> 20);
        assert!(taken.is_sorted() && !buffers.has_free());
        let mut places: Vec<usize> = taken.iter().map(|unit| buffers.memory(*unit) as usize).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == 1 << 20));
        buffers.written(taken[7]);
        buffers.skip_to(UnitSequence(1000));
        let next = buffers.take(0).unwrap();
        assert!(next.0 >= 1000 && buffers.memory(next) == buffers.memory(taken[7]));
        assert!(buffers.is_written(taken[7]) && !buffers.is_written(next) && !buffers.is_written(taken[8]));
    }
}
