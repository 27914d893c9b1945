//! Which segment is what, and how much of it is live.
//!
//! ```text
//!          open            closed              last image released          checkpoint of that epoch durable
//!  Free ─────────► Open ───────────► Full ─────────────────────► Pending ─────────────────────────────► Freed ──discarded──► Free
//!                    └── Map ──► Map ─────────── release_map_before ───────────────────────────────────────┘
//! ```

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::location::Location;
use super::table::Table;
use super::{Stream, UnitSequence};
use crate::layout::Layout;
use crate::pool::Epoch;

/// Segments that only the page table may take: without it no checkpoint frees anything.
const RESERVED_FOR_MAP: usize = 2;

/// Segments that the cleaner may take as well, for what it moves.
const RESERVED_FOR_CLEANER: usize = 2;

/// Every so many segments one more is kept for both.
const SEGMENTS_PER_RESERVED: usize = 100;

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing refers to it.
    Free,
    /// Images are put into it.
    Open,
    /// Closed, with live images.
    Full,
    /// Without live images since this epoch: an older checkpoint may still refer to it.
    Pending(Epoch),
    /// Of the page table, closed.
    Map,
    /// Being discarded.
    Freed,
}

/// What is known of a segment besides what is in [`Words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub state: State,
    /// The cleaner has it.
    pub cleaning: bool,
    /// Some of it cannot be read: it stays as it is.
    pub damaged: bool,
    /// Bytes that had been appended to the store when the youngest of its images was changed last.
    pub changed_at_bytes: u64,
}

const FREE: Segment = Segment { state: State::Free, cleaning: false, damaged: false, changed_at_bytes: 0 };

/// What is known of a segment without the lock.
#[derive(Default)]
struct Words {
    /// No image in it was written with an earlier unit.
    opening: AtomicU64,
    live_bytes: AtomicU64,
}

/// See the module.
pub(super) struct Space {
    start_bytes: u64,
    segment_bytes: u64,
    words: Table<Words>,
    epoch: AtomicU32,
    inner: Mutex<Inner>,
}

/// What the lock guards.
pub(super) struct Inner {
    pub segments: Vec<Segment>,
    free: BTreeSet<u32>,
    /// A checkpoint is writing pages: they may take from the reserve.
    pub checkpointing: bool,
}

/// How many segments are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub segments: u64,
    /// Ready to be taken.
    pub free: u64,
    /// Free as soon as a checkpoint is complete.
    pub pending: u64,
    /// Of the page table.
    pub map: u64,
    /// Those that are kept for the cleaner and for checkpoints.
    pub reserved: u64,
    pub segment_bytes: u64,
    /// Bytes of images that pages refer to.
    pub live_bytes: u64,
}

impl Space {
    /// As many segments as fit, all of them free.
    pub fn new(layout: &Layout, capacity_bytes: u64) -> Self {
        let space = Self {
            start_bytes: layout.segments_start_bytes,
            segment_bytes: layout.segment_bytes,
            words: Table::new(),
            epoch: AtomicU32::new(0),
            inner: Mutex::new(Inner { segments: Vec::new(), free: BTreeSet::new(), checkpointing: false }),
        };
        space.grow(capacity_bytes);
        space
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device has this many bytes now. Returns how many segments that makes more.
    pub fn grow(&self, capacity_bytes: u64) -> usize {
        let count = capacity_bytes.saturating_sub(self.start_bytes) / self.segment_bytes;
        let mut inner = self.lock();
        let before = inner.segments.len();
        for index in before..count as usize {
            inner.segments.push(FREE);
            inner.free.insert(index as u32);
        }
        inner.segments.len() - before
    }

    /// Which segment has this byte of the device; there may be no such segment.
    #[inline]
    pub fn index_of(&self, offset_bytes: u64) -> Option<usize> {
        Some((offset_bytes.checked_sub(self.start_bytes)? / self.segment_bytes) as usize)
    }

    /// A segment's bytes of the device.
    pub fn range(&self, index: usize) -> Range<u64> {
        let start = self.start_bytes + index as u64 * self.segment_bytes;
        start..start + self.segment_bytes
    }

    #[inline]
    fn words(&self, location: Location) -> Option<&Words> {
        Some(self.words.get(self.index_of(location.offset_bytes())?))
    }

    /// No image at `location` was written with an earlier unit.
    pub fn opening(&self, location: Location) -> u64 {
        self.words(location).map_or(0, |words| words.opening.load(Ordering::Acquire))
    }

    pub fn opening_of(&self, index: usize) -> UnitSequence {
        UnitSequence(self.words.get(index).opening.load(Ordering::Acquire))
    }

    pub fn live_bytes_of(&self, index: usize) -> u64 {
        self.words.get(index).live_bytes.load(Ordering::Acquire)
    }

    pub fn set_opening(&self, index: usize, opening: UnitSequence) {
        self.words.get(index).opening.store(opening.0, Ordering::Release);
    }

    /// The epoch in which things are released from now on.
    pub fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, Ordering::Release);
    }

    /// Takes a free segment; `opening` is not above the number of the first unit in it.
    pub fn open(&self, stream: Stream, opening: UnitSequence) -> Option<usize> {
        let mut inner = self.lock();
        if inner.free.len() <= inner.kept_from(stream) {
            return None;
        }
        let index = inner.free.pop_first()? as usize;
        inner.segments[index] = Segment { state: State::Open, ..FREE };
        self.set_opening(index, opening);
        Some(index)
    }

    /// Whether [`Space::open`] would find one.
    pub fn can_open(&self, stream: Stream) -> bool {
        let inner = self.lock();
        inner.free.len() > inner.kept_from(stream)
    }

    /// Nothing more is put into the segment.
    pub fn close(&self, index: usize, stream: Stream, changed_at_bytes: u64) {
        let mut inner = self.lock();
        let segment = &mut inner.segments[index];
        segment.changed_at_bytes = changed_at_bytes;
        segment.state = match stream {
            Stream::Map => State::Map,
            _ if self.live_bytes_of(index) == 0 => State::Pending(self.epoch()),
            _ => State::Full,
        };
    }

    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// An image there is live from now on.
    #[inline]
    pub fn add_live(&self, location: Location) {
        if let Some(words) = self.words(location) {
            words.live_bytes.fetch_add(u64::from(location.length_bytes()), Ordering::AcqRel);
        }
    }

    /// The image there is garbage from now on.
    #[inline]
    pub fn release(&self, location: Location) {
        let bytes = u64::from(location.length_bytes());
        let Some(index) = self.index_of(location.offset_bytes()) else { return };
        let before = self.words.get(index).live_bytes.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "a release of what was not live");
        if before == bytes {
            let mut inner = self.lock();
            let epoch = self.epoch();
            // An open segment may get more images, and finds out when it is closed.
            if let Some(segment) = inner.segments.get_mut(index)
                && segment.state == State::Full
                && self.live_bytes_of(index) == 0
            {
                segment.state = State::Pending(epoch);
            }
        }
    }

    /// The segments of which the page table of `epoch` and later ones know nothing, on their way to be free.
    pub fn free_pending(&self, epoch: Epoch) -> Vec<usize> {
        self.lock().take_out(|_, segment| matches!(segment.state, State::Pending(since) if since <= epoch))
    }

    /// The page table's segments that were closed before the one with `first` was opened, on their way to be free.
    pub fn release_map_before(&self, first: Location) -> Vec<usize> {
        let opening = UnitSequence(self.opening(first));
        self.lock().take_out(|index, segment| segment.state == State::Map && self.opening_of(index) < opening)
    }

    /// A segment that was on its way to be free is.
    pub fn freed(&self, index: usize) {
        let mut inner = self.lock();
        inner.segments[index] = FREE;
        inner.free.insert(index as u32);
    }

    /// While a store is opened: a page refers to this image.
    pub fn adopt(&self, location: Location, state: State) -> bool {
        let Some(index) = self.index_of(location.offset_bytes()) else { return false };
        let mut inner = self.lock();
        inner.free.remove(&(index as u32));
        let Some(segment) = inner.segments.get_mut(index) else { return false };
        segment.state = state;
        if state == State::Full {
            self.add_live(location);
        }
        true
    }

    pub fn usage(&self) -> Usage {
        let inner = self.lock();
        let mut usage = Usage {
            segments: inner.segments.len() as u64,
            free: inner.free.len() as u64,
            reserved: inner.reserved() as u64,
            segment_bytes: self.segment_bytes,
            ..Usage::default()
        };
        for (index, segment) in inner.segments.iter().enumerate() {
            usage.live_bytes += self.live_bytes_of(index);
            match segment.state {
                State::Pending(_) => usage.pending += 1,
                State::Map => usage.map += 1,
                State::Free | State::Freed | State::Open | State::Full => {}
            }
        }
        usage
    }
}

impl Inner {
    fn more_reserved(&self) -> usize {
        self.segments.len() / SEGMENTS_PER_RESERVED
    }

    fn reserved(&self) -> usize {
        RESERVED_FOR_MAP + RESERVED_FOR_CLEANER + self.more_reserved()
    }

    /// Free segments that this stream must leave to others.
    fn kept_from(&self, stream: Stream) -> usize {
        match stream {
            Stream::Map => 0,
            Stream::Moved => RESERVED_FOR_MAP,
            Stream::Fresh | Stream::Overflow if self.checkpointing => RESERVED_FOR_MAP,
            Stream::Fresh | Stream::Overflow => self.reserved(),
        }
    }

    fn take_out(&mut self, which: impl Fn(usize, &Segment) -> bool) -> Vec<usize> {
        let mut taken = Vec::new();
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if !segment.cleaning && which(index, segment) {
                segment.state = State::Freed;
                taken.push(index);
            }
        }
        taken
    }
}
