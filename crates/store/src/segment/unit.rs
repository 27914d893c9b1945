//! Write units: a fixed number of aligned buffers, and how images are placed in the one that is open.
//!
//! A unit is a range of a segment that is written with one request. It ends where a multiple of the desirable write size ends, and begins at one unless an earlier unit was sent away half full.
//! Its images lie in packs (multiples of the flash page) without crossing from one to the next, back to back from the beginning of each; what is left of a pack is zeros.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use flashgrain_device::{Arena, Error as DeviceError};

use super::UnitSequence;

/// Memory for units: what a drive writes in some milliseconds.
const MEMORY_BYTES: u64 = 16 << 20;

/// More buffers than this help no drive.
const MOST_BUFFERS: u64 = 256;

/// Every stream may have one open, and others must be on their way meanwhile.
const FEWEST_BUFFERS: u64 = 16;

/// Set in [`Buffer::copies`] when nothing more will be placed in the unit.
const SEALED: u32 = 1 << 31;

/// Packs with room that are tried before the next one is begun.
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

/// A unit's number says which buffer it has: its remainder by the number of buffers. So whether it is written is one load.
#[derive(Default)]
#[repr(align(64))]
struct Buffer {
    /// The unit that is in it and not written yet; 0 if there is none.
    sequence: AtomicU64,
    /// Images that are being copied, and [`SEALED`].
    copies: AtomicU32,
    length_bytes: AtomicU32,
    offset_bytes: AtomicU64,
}

/// A unit that can be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub unit: UnitSequence,
    pub offset_bytes: u64,
    pub length_bytes: u32,
}

impl Buffers {
    pub fn new(buffer_bytes: u32) -> Result<Self, DeviceError> {
        let count = (MEMORY_BYTES / u64::from(buffer_bytes)).clamp(FEWEST_BUFFERS, MOST_BUFFERS);
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

    /// Whether a part of this range of the device is not written yet.
    pub fn holds_any_of(&self, range: Range<u64>) -> bool {
        self.unwritten().any(|unit| range.contains(&self.of(unit).offset_bytes.load(Ordering::Relaxed)))
    }

    /// The memory of a unit.
    pub fn memory(&self, unit: UnitSequence) -> *mut u8 {
        let index = unit.0 as usize & (self.all.len() - 1);
        self.memory.as_ptr().wrapping_add(index * self.buffer_bytes as usize)
    }

    /// Somebody will copy an image into the unit, which is open.
    pub fn begin_copy(&self, unit: UnitSequence) {
        self.of(unit).copies.fetch_add(1, Ordering::Relaxed);
    }

    /// The image is in the unit. Returns the unit if it was the last that was waited for.
    pub fn end_copy(&self, unit: UnitSequence) -> Option<Ready> {
        let before = self.of(unit).copies.fetch_sub(1, Ordering::AcqRel);
        (before == SEALED | 1).then(|| self.ready(unit))
    }

    /// Nothing more will be placed in the unit, of which this many bytes are used. Returns it if nobody is copying any more.
    pub fn seal(&self, unit: UnitSequence, length_bytes: u32) -> Option<Ready> {
        self.of(unit).length_bytes.store(length_bytes, Ordering::Relaxed);
        let before = self.of(unit).copies.fetch_or(SEALED, Ordering::AcqRel);
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
        self.of(unit).sequence.store(0, Ordering::Release);
        free.buffers.push((unit.0 as usize & (self.all.len() - 1)) as u32);
    }
}

/// Which bytes of an open unit are taken.
pub(super) struct Open {
    pub unit: UnitSequence,
    pub offset_bytes: u64,
    length_bytes: u32,
    pack_bytes: u32,
    /// Where the next pack begins.
    next: u32,
    gaps: [Gap; GAPS],
}

/// The unused end of a pack.
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
    pub fn new(unit: UnitSequence, offset_bytes: u64, length_bytes: u32, pack_bytes: u32) -> Self {
        Self { unit, offset_bytes, length_bytes, pack_bytes, next: 0, gaps: Default::default() }
    }

    /// A place for an image, from the unit's beginning, and what has to be filled with zeros now as nothing will be put there any more.
    pub fn place(&mut self, bytes: u32) -> Option<(u32, Range<u32>)> {
        let fits = |gap: &&mut Gap| gap.bytes() >= bytes;
        if let Some(gap) = self.gaps.iter_mut().filter(fits).min_by_key(|gap| gap.bytes()) {
            gap.start += bytes;
            return Some((gap.start - bytes, 0..0));
        }
        let start = self.next;
        if bytes > self.length_bytes - start {
            return None;
        }
        self.next = (start + bytes).next_multiple_of(self.pack_bytes).min(self.length_bytes);
        let mut left = Gap { start: start + bytes, end: self.next };
        if let Some(smallest) = self.gaps.iter_mut().min_by_key(|gap| gap.bytes())
            && smallest.bytes() < left.bytes()
        {
            std::mem::swap(smallest, &mut left);
        }
        Some((start, left.start..left.end))
    }

    /// Bytes that are taken, whole packs.
    pub fn taken_bytes(&self) -> u32 {
        self.next
    }

    /// Bytes of the unit.
    pub fn length_bytes(&self) -> u32 {
        self.length_bytes
    }

    /// What has to be filled with zeros before the unit is written.
    pub fn unused(&self) -> impl Iterator<Item = Range<u32>> {
        self.gaps.iter().map(|gap| gap.start..gap.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Images do not overlap, do not cross packs without need, and together with the zeros cover what is taken.
        #[test]
        fn images_are_placed_within_packs(sectors in prop::collection::vec(1u32..80, 1..200), pack_sectors in prop::sample::select(vec![1u32, 8, 32, 256])) {
            let (length, pack) = (256 * 512, pack_sectors * 512);
            let mut open = Open::new(UnitSequence(1), 0, length, pack);
            let mut covered = vec![0u8; 256];
            let mut cover = |range: Range<u32>| range.step_by(512).for_each(|at| covered[at as usize / 512] += 1);
            for bytes in sectors.iter().map(|count| count * 512) {
                let Some((start, zeros)) = open.place(bytes) else {
                    prop_assert!(length - open.taken_bytes() < bytes);
                    break;
                };
                if bytes <= pack {
                    prop_assert_eq!(start / pack, (start + bytes - 1) / pack);
                } else {
                    prop_assert_eq!(start % pack, 0);
                }
                cover(start..start + bytes);
                cover(zeros);
            }
            open.unused().for_each(cover);
            let taken = open.taken_bytes() as usize / 512;
            prop_assert!(covered[..taken].iter().all(|count| *count == 1), "{covered:?}");
            prop_assert!(covered[taken..].iter().all(|count| *count == 0));
        }
    }

    #[test]
    fn a_unit_is_ready_when_it_is_sealed_and_the_last_copy_has_ended() {
        let buffers = Buffers::new(1 << 20).unwrap();
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
        let buffers = Buffers::new(1 << 20).unwrap();
        let taken: Vec<UnitSequence> = std::iter::from_fn(|| buffers.take(0)).collect();
        assert_eq!(taken.len(), 32);
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
