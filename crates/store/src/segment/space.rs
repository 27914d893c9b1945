//! States of segments, and their live bytes.
//!
//! ```text
//! Free    ─ open ─────────────────────────────► Open
//! Open    ─ close ────────────────────────────► Full; Map for the page table; Pending if nothing is live
//! Full    ─ the last live image is released ──► Pending(epoch)
//! Pending ─ a checkpoint of that epoch, or a later one, is durable ► Freed
//! Map     ─ release_map_before ───────────────► Freed
//! Freed   ─ discarded, or no discard wanted ──► Free
//! Free    ─ take_log ─► Log ─ release_log ────► Freed
//! ```
//!
//! Room is counted in bytes, as segments have several [sizes](crate::layout::sizes). Numbers of segments,
//! such as those that are kept for the cleaner, are of the largest size that the store has.

mod log_room;
mod tail;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::location::{DEVICE_BYTES_MAX, Location};
use super::table::Table;
use super::tally::Tally;
use super::{Dirty, Stream, UnitSequence, policy};
use crate::epoch::Epoch;
use crate::layout::Layout;
use crate::layout::sizes::Sizes;

/// Segments that only the page table may take, besides those that it needs when it is written as a whole:
/// without it no checkpoint can be completed, and nothing becomes free.
const RESERVED_FOR_MAP: u64 = 2;

/// Segments for the pages of a checkpoint. Segments that the cleaner has emptied become free only with the
/// checkpoint.
const RESERVED_FOR_CHECKPOINT: u64 = 1;

/// Segments that the cleaner may take as well, for the images that it moves, before it has won any.
const RESERVED_FOR_CLEANER: u64 = 4;

/// With no more free segments than these and those that are kept from the cleaner, it chooses the emptiest
/// segments, whatever their age, so that each wins more than it costs.
const EMERGENCY: u64 = RESERVED_FOR_CLEANER / 2;

/// Writers check for room before every commit if no more segments than these are free beyond the reserve.
const NEAR: u64 = 4;

/// Cleaning begins when so many segments above the reserve are free or soon will be.
const LOW_WATER: u64 = 2;

/// Of the segments that are being cleaned, so many count as nearly free when deciding whether more must be
/// cleaned. They are not free yet when the next checkpoint begins, and if all counted, many cleaners would
/// leave nothing for the pages written meanwhile.
const MOVING_COUNTED: u64 = 4;

/// Victims chosen by a survey: so many, or this part of all segments.
const VICTIMS_MIN: usize = 4;
const VICTIMS_DIVISOR: usize = 64;

/// Initial age of the store, above the age of any segment that it has.
const EARLIEST_BYTES: u64 = 1 << 50;

/// A checkpoint is asked for when the pending segments exceed this part of the spare ones, but at most the
/// second and at least the third of these parts of all segments. Checkpoints should be rare, because a page
/// that changes several times in between is written once; but pending segments are room that the cleaner
/// lacks.
const PENDING_SPARE_DIVISOR: u64 = 8;
const PENDING_MAX_DIVISOR: u64 = 12;
const PENDING_MIN_DIVISOR: u64 = 32;

/// Segments that the page table may take beyond twice its length when written as a whole: each opening of a
/// store begins a new segment.
const MAP_SPARE: u64 = 2;

/// Bytes that a checkpoint may write for each byte that it makes free. The price of a checkpoint that is made
/// early, to free segments, is the pages that it writes, most of which would have changed again before the
/// next regular one. Beyond this price, growing the store is cheaper.
const WRITTEN_PER_FREED_MAX: u64 = 2;

/// Free segments are kept ahead for as much as the last checkpoint saw taken, so that writers need not wait
/// for a checkpoint; but at most this part of the spare ones, because the more segments are free, the fuller
/// are those that are cleaned.
const AHEAD_DIVISOR: u64 = 4;

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// Nothing refers to it.
    Free,
    /// Images are put into it.
    Open,
    /// Closed, with live images.
    Full,
    /// Without live images since this epoch: an older checkpoint may still refer to it.
    Pending(Epoch),
    /// Closed, with parts of the page table.
    Map,
    /// Part of the log's ring.
    Log,
    /// Being discarded.
    Freed,
}

/// The part of a segment's record that the lock guards; the other part is [`Words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub state: SegmentState,
    /// Number of its moves under way, and one more while the cleaner goes through it.
    pub in_hand: u32,
    /// An image in it cannot be read: it is not cleaned.
    pub damaged: bool,
    /// The cleaner has filled it, as densely as it can.
    pub packed: bool,
}

const FREE: Segment = Segment { state: SegmentState::Free, in_hand: 0, damaged: false, packed: false };

fn is_cleanable(segment: &Segment) -> bool {
    segment.state == SegmentState::Full && segment.in_hand == 0 && !segment.damaged
}

/// The part of a segment's record that is used without the lock.
#[derive(Default)]
struct Words {
    /// No image in it was written with an earlier unit.
    opening: AtomicU64,
    /// Bytes of the images in it to which pages refer.
    live_bytes: AtomicU64,
    /// Bytes of all images in it, and of padding that cleaning would win back.
    filled_bytes: AtomicU64,
    /// The store's age when the youngest of its images was changed last.
    changed_at_bytes: AtomicU64,
}

/// See the module.
pub(super) struct Space {
    sizes: Sizes,
    words: Table<Words>,
    epoch: AtomicU32,
    live_bytes: AtomicU64,
    /// The store's age: bytes of changed pages that were gathered.
    age_bytes: AtomicU64,
    inner: Mutex<Inner>,
}

/// State that the lock guards.
pub(super) struct Inner {
    pub segments: Vec<Segment>,
    sizes: Sizes,
    /// Bytes of all segments.
    bytes: u64,
    /// Of the largest one.
    largest_bytes: u64,
    tally: Tally,
    free: BTreeSet<u32>,
    /// Bytes of the segments that cleaners go through.
    walked: u64,
    /// A checkpoint is writing pages, which may take from the reserve.
    checkpointing: bool,
    /// Bytes of the segments that were taken since the last checkpoint began.
    taken: u64,
    /// Bytes of segments taken from the beginning of one checkpoint to the end of its pages: a decaying
    /// maximum.
    taken_by_checkpoint: u64,
    /// Bytes that the page table needs when it is written as a whole.
    map_bytes: u64,
    /// Dirty bytes in memory at the last check: they must find room before a checkpoint makes segments free.
    dirty_bytes: u64,
    /// Bytes for overflow values that are going to be written, or are being written.
    wanted_bytes: u64,
    /// While the store is compacted, the number of segments that it is to have.
    ceiling: Option<usize>,
}

/// Numbers of segments and bytes, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub segments: u64,
    /// Ready to be taken.
    pub free: u64,
    /// Free as soon as a checkpoint is complete.
    pub pending: u64,
    /// Of the page table.
    pub map: u64,
    /// Segments in which something cannot be read.
    pub damaged: u64,
    /// Of all segments but the log's.
    pub bytes: u64,
    pub free_bytes: u64,
    pub pending_bytes: u64,
    pub map_bytes: u64,
    pub damaged_bytes: u64,
    /// Of the log's segments.
    pub log_bytes: u64,
    /// Those that are kept for the cleaner and for checkpoints.
    pub reserved_bytes: u64,
    /// Bytes of images that pages refer to.
    pub live_bytes: u64,
}

impl Usage {
    /// Bytes of images that there is certainly room for besides the live ones, once what is garbage is
    /// cleaned. Admission keeps this above the dirty bytes in memory, as dirty pages for which there is no
    /// room would stay in memory for ever.
    pub fn available_bytes(&self) -> u64 {
        let usable = self.bytes.saturating_sub(self.reserved_bytes + self.map_bytes + self.damaged_bytes);
        (usable / 100 * FULLEST_PERCENT).saturating_sub(self.live_bytes)
    }
}

/// Fullest use of the device by live images. Beyond it the cleaner would move too many bytes for each byte
/// won; besides, packs have gaps.
const FULLEST_PERCENT: u64 = 85;

/// Bytes of pending segments that are worth a checkpoint.
fn enough_pending(bytes: u64, spare_bytes: u64) -> u64 {
    (spare_bytes / PENDING_SPARE_DIVISOR).clamp(bytes / PENDING_MIN_DIVISOR, bytes / PENDING_MAX_DIVISOR)
}

impl Space {
    /// As many segments as fit, all of them free.
    pub fn new(layout: &Layout, capacity_bytes: u64) -> Self {
        let sizes = Sizes::of(layout);
        let space = Self {
            sizes,
            words: Table::new(),
            epoch: AtomicU32::new(0),
            live_bytes: AtomicU64::new(0),
            age_bytes: AtomicU64::new(EARLIEST_BYTES),
            inner: Mutex::new(Inner {
                segments: Vec::new(),
                sizes,
                bytes: 0,
                largest_bytes: sizes.length(0),
                tally: Tally::default(),
                free: BTreeSet::new(),
                walked: 0,
                checkpointing: false,
                taken: 0,
                taken_by_checkpoint: 0,
                map_bytes: 0,
                dirty_bytes: 0,
                wanted_bytes: 0,
                ceiling: None,
            }),
        };
        space.grow(capacity_bytes);
        space
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device has this many bytes now.
    pub fn grow(&self, capacity_bytes: u64) {
        self.lock().grow(self.sizes.count(capacity_bytes.min(DEVICE_BYTES_MAX)));
    }

    /// Positions and sizes of segments.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The segment that contains this byte of the device; there may be no segment of that number.
    #[inline]
    pub fn index_of(&self, offset_bytes: u64) -> Option<usize> {
        self.sizes.index_of(offset_bytes)
    }

    /// Whether all of an image there would be in one segment.
    pub fn has(&self, location: Location) -> bool {
        let Some(index) = self.index_of(location.offset_bytes()) else { return false };
        let end = location.offset_bytes() + u64::from(location.length_bytes());
        index < self.lock().segments.len() && end <= self.range(index).end
    }

    /// A segment's bytes of the device.
    pub fn range(&self, index: usize) -> Range<u64> {
        self.sizes.range(index)
    }

    #[inline]
    fn words(&self, location: Location) -> Option<&Words> {
        Some(self.words.get(self.index_of(location.offset_bytes())?))
    }

    /// No image at `location` was written with an earlier unit.
    pub fn opening(&self, location: Location) -> u64 {
        // An unchecked location may be anywhere.
        let words = self.index_of(location.offset_bytes()).and_then(|index| self.words.peek(index));
        words.map_or(0, |words| words.opening.load(Ordering::Acquire))
    }

    pub fn opening_of(&self, index: usize) -> UnitSequence {
        UnitSequence(self.words.get(index).opening.load(Ordering::Acquire))
    }

    pub fn live_bytes_of(&self, index: usize) -> u64 {
        self.words.get(index).live_bytes.load(Ordering::Acquire)
    }

    /// While a store is opened: sets each segment's opening unit. Ages follow from their order: the bytes
    /// gathered since a segment was opened are estimated as the length of all segments opened since.
    pub fn restore_openings(&self, openings: &[(u64, UnitSequence)]) {
        let mut youngest_first = openings.to_vec();
        youngest_first.sort_unstable_by_key(|(_, opening)| Reverse(opening.0));
        let mut gathered_since = 0;
        for (index, opening) in youngest_first {
            let index = index as usize;
            self.set_opening(index, opening);
            gathered_since += self.sizes.length(index);
            let changed_at = EARLIEST_BYTES.saturating_sub(gathered_since);
            self.words.get(index).changed_at_bytes.store(changed_at, Ordering::Relaxed);
        }
    }

    fn set_opening(&self, index: usize, opening: UnitSequence) {
        self.words.get(index).opening.store(opening.0, Ordering::Release);
    }

    /// Images released from now on belong to this epoch.
    pub fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, Ordering::Release);
    }

    /// Takes a free segment; `opening` is not above the number of the first unit in it.
    pub fn open(&self, stream: Stream, opening: UnitSequence) -> Option<usize> {
        let mut inner = self.lock();
        if !inner.can_open(stream) {
            return None;
        }
        let index = inner.free.pop_first()? as usize;
        inner.change(index, |segment| *segment = Segment { state: SegmentState::Open, ..FREE });
        inner.taken += self.sizes.length(index);
        let words = self.words.get(index);
        words.filled_bytes.store(0, Ordering::Relaxed);
        words.changed_at_bytes.store(0, Ordering::Relaxed);
        self.set_opening(index, opening);
        Some(index)
    }

    /// A checkpoint begins or ends writing pages.
    pub fn set_checkpointing(&self, checkpointing: bool) {
        let mut inner = self.lock();
        inner.checkpointing = checkpointing;
        if checkpointing {
            inner.taken = 0;
        } else {
            // Earlier maxima decay.
            inner.taken_by_checkpoint = inner.taken.max(inner.taken_by_checkpoint / 4 * 3);
        }
    }

    /// Whether a checkpoint is writing pages.
    pub fn is_checkpointing(&self) -> bool {
        self.lock().checkpointing
    }

    /// Whether [`Space::open`] would find one.
    pub fn can_open(&self, stream: Stream) -> bool {
        self.lock().can_open(stream)
    }

    /// Nothing more is put into the segment.
    pub fn close(&self, index: usize, stream: Stream) {
        let mut inner = self.lock();
        let state = match stream {
            Stream::Map => SegmentState::Map,
            _ if self.live_bytes_of(index) == 0 => SegmentState::Pending(self.epoch()),
            _ => SegmentState::Full,
        };
        inner.change(index, |segment| {
            segment.state = state;
            segment.packed = stream == Stream::Moved;
        });
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// [`Space::known_age_of`] the segment of `location`.
    pub fn known_age_at(&self, location: Location) -> Option<u64> {
        self.known_age_of(self.index_of(location.offset_bytes())?)
    }

    /// Bytes gathered since the youngest image in the segment was changed. `None` if that was before the
    /// store was opened, as nothing is known about the time between.
    pub fn known_age_of(&self, index: usize) -> Option<u64> {
        (self.changed_at(index) > EARLIEST_BYTES).then(|| self.age_of(index))
    }

    /// An age for every segment, estimated for those of before the opening, in the order of their openings.
    fn age_of(&self, index: usize) -> u64 {
        self.age_bytes.load(Ordering::Relaxed).saturating_sub(self.changed_at(index))
    }

    /// Bytes of all segments but the log's.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes_of_pages()
    }

    /// Bytes of these that pages may fill, without the reserve.
    pub fn usable_bytes(&self) -> u64 {
        let inner = self.lock();
        inner.bytes_of_pages().saturating_sub(inner.reserved())
    }

    /// Bytes of all images to which pages refer.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// The victims of the next survey: the segments with the largest benefit of cleaning, of those of which
    /// all units are written; a bounded part of all.
    pub fn victims(&self, is_written: impl Fn(Range<u64>) -> bool) -> Vec<usize> {
        let inner = self.lock();
        let mut worth = self.worth_of_all(&inner).collect::<Vec<_>>();
        worth.sort_unstable_by(|(one, _), (other, _)| other.total_cmp(one));
        let at_a_time = VICTIMS_MIN.max(inner.segments.len() / VICTIMS_DIVISOR);
        let written =
            worth.into_iter().map(|(_, index)| index).filter(|index| is_written(self.range(*index)));
        written.take(at_a_time).collect()
    }

    /// Begins to clean the segment, if it is cleanable and still the one that was opened with `opening`.
    pub fn begin_victim(&self, index: usize, opening: UnitSequence) -> bool {
        let mut inner = self.lock();
        // The device's end may have been cut off meanwhile.
        let is_there = inner.segments.get(index).is_some_and(is_cleanable);
        let is_same = is_there && self.opening_of(index) == opening;
        if is_same {
            inner.change(index, |segment| segment.in_hand = 1);
            inner.walked += self.sizes.length(index);
        }
        is_same
    }

    /// Whether the live images of one more segment have room elsewhere. Only as many segments are cleaned at
    /// a time as there are free segments to move their images to, or none might be finished.
    pub fn may_clean(&self) -> bool {
        self.lock().can_clean()
    }

    /// Whether so few segments are free that the emptiest ones are cleaned.
    pub fn is_emergency(&self) -> bool {
        self.lock().is_emergency()
    }

    /// The store's age: bytes of changed pages that were gathered.
    pub fn age_bytes(&self) -> u64 {
        self.age_bytes.load(Ordering::Relaxed)
    }

    /// Whether more than half of the segment that is cleaned next would have to be moved.
    pub fn is_cleaning_dear(&self) -> bool {
        let victim = self.victim(&self.lock());
        victim.is_some_and(|index| self.live_bytes_of(index) > self.sizes.length(index) / 2)
    }

    /// Marks the segment as damaged if something in it cannot be read.
    pub fn note_damage(&self, index: usize, is_damaged: bool) {
        self.lock().change(index, |segment| segment.damaged |= is_damaged);
    }

    /// The cleaner has gone through it.
    pub fn end_victim(&self, index: usize) {
        let mut inner = self.lock();
        inner.change(index, |segment| segment.in_hand -= 1);
        inner.walked -= self.sizes.length(index);
    }

    /// The cleanable segment with the largest benefit.
    fn victim(&self, inner: &Inner) -> Option<usize> {
        self.worth_of_all(inner).max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, index)| index)
    }

    /// Benefit of cleaning each cleanable segment that is worth cleaning.
    fn worth_of_all(&self, inner: &Inner) -> impl Iterator<Item = (f64, usize)> {
        let emergency = inner.is_emergency();
        let cleanable = inner.segments.iter().enumerate().filter(|(_, segment)| is_cleanable(segment));
        cleanable.filter_map(move |(index, segment)| {
            let live = self.live_bytes_of(index);
            let filled = self.words.get(index).filled_bytes.load(Ordering::Relaxed);
            let worth = if emergency {
                // Gaps between images are won as well, except those that the cleaner left: it would leave the
                // same ones again, for ever.
                policy::worth_now(live, if segment.packed { filled } else { self.sizes.length(index) })
            } else {
                policy::worth(live, filled, self.age_of(index))
            };
            worth.map(|worth| (worth, index))
        })
    }

    /// Begins the move of an image out of the segment.
    pub fn begin_move(&self, index: usize) {
        self.lock().change(index, |segment| segment.in_hand += 1);
    }

    /// Ends so many moves.
    pub fn end_moves(&self, index: usize, count: u32) {
        self.lock().change(index, |segment| {
            debug_assert!(segment.in_hand >= count, "a move that nobody began");
            segment.in_hand -= count;
        });
    }

    /// Counts the image at `location` as live. Its page was last changed at the store's age
    /// `changed_at_bytes`, or just now.
    #[inline]
    pub fn add_live(&self, location: Location, changed_at_bytes: Option<u64>) {
        let bytes = u64::from(location.length_bytes());
        let Some(words) = self.words(location) else { return };
        let changed_at =
            changed_at_bytes.unwrap_or_else(|| self.age_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
        words.changed_at_bytes.fetch_max(changed_at, Ordering::Relaxed);
        words.filled_bytes.fetch_add(bytes, Ordering::Relaxed);
        words.live_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts padding of a unit that was written before it was full. Like garbage, it is won by cleaning, as
    /// the images take less when moved.
    pub fn add_padding(&self, index: usize, bytes: u64) {
        self.words.get(index).filled_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The store's age when the youngest image of a segment was changed.
    pub fn changed_at(&self, index: usize) -> u64 {
        self.words.get(index).changed_at_bytes.load(Ordering::Relaxed)
    }

    /// The image there is garbage from now on.
    #[inline]
    pub fn release(&self, location: Location) {
        let bytes = u64::from(location.length_bytes());
        let Some(index) = self.index_of(location.offset_bytes()) else { return };
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let before = self.words.get(index).live_bytes.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "a release of what was not live");
        if before == bytes {
            self.note_empty(index);
        }
    }

    fn note_empty(&self, index: usize) {
        let mut inner = self.lock();
        let epoch = self.epoch();
        // An open segment may get more images, and is checked when it is closed.
        if inner.segments.get(index).is_some_and(|segment| segment.state == SegmentState::Full)
            && self.live_bytes_of(index) == 0
        {
            inner.change(index, |segment| segment.state = SegmentState::Pending(epoch));
            if inner.segments[index].in_hand == 0 && planted!(SegmentReusedTooEarly) {
                inner.change(index, |segment| *segment = FREE);
                inner.free.insert(index as u32);
            }
        }
    }

    /// Takes out the segments to which the page tables of `epoch` and later ones do not refer. The caller
    /// discards them and then calls [`Space::freed`].
    pub fn free_pending(&self, epoch: Epoch) -> Vec<usize> {
        self.lock().take_out(|_, segment| match segment.state {
            SegmentState::Pending(since) => {
                since <= epoch || since.0 == epoch.0 + 1 && planted!(PendingEpochOffByOne)
            }
            _ => false,
        })
    }

    /// Takes out the page table's segments that were opened before the one with `first`, likewise.
    pub fn release_map_before(&self, first: Location) -> Vec<usize> {
        let opening = UnitSequence(self.opening(first));
        self.lock()
            .take_out(|index, segment| segment.state == SegmentState::Map && self.opening_of(index) < opening)
    }

    /// Makes a segment that was taken out free.
    pub fn freed(&self, index: usize) {
        let mut inner = self.lock();
        inner.change(index, |segment| *segment = FREE);
        inner.free.insert(index as u32);
    }

    /// While a store is opened: nothing may be written over this image, to which the log refers. The image may
    /// be gone already, as a later commit gave it up: its segment may have been used again, even by the log.
    pub fn hold(&self, location: Location) -> bool {
        let Some(index) = self.index_of(location.offset_bytes()).filter(|_| self.has(location)) else {
            return false;
        };
        let mut inner = self.lock();
        if inner.free.remove(&(index as u32)) {
            inner.change(index, |segment| segment.state = SegmentState::Full);
            self.words.get(index).filled_bytes.store(self.sizes.length(index), Ordering::Relaxed);
        }
        true
    }

    /// Ends [`hold`](Self::hold): held images that no page refers to become garbage.
    pub fn let_go(&self) {
        let epoch = self.epoch();
        let mut inner = self.lock();
        for index in 0..inner.segments.len() {
            if inner.segments[index].state == SegmentState::Full && self.live_bytes_of(index) == 0 {
                inner.change(index, |segment| segment.state = SegmentState::Pending(epoch));
            }
        }
    }

    /// While a store is opened: a page refers to this image.
    pub fn adopt(&self, location: Location, state: SegmentState) -> bool {
        let Some(index) = self.index_of(location.offset_bytes()).filter(|_| self.has(location)) else {
            return false;
        };
        let mut inner = self.lock();
        if inner.segments[index].state == SegmentState::Log {
            return false;
        }
        inner.free.remove(&(index as u32));
        inner.change(index, |segment| segment.state = state);
        if state == SegmentState::Full {
            self.add_live(location, Some(0));
            // The amount of garbage is unknown: all the rest counts as garbage.
            self.words.get(index).filled_bytes.store(self.sizes.length(index), Ordering::Relaxed);
        }
        true
    }

    pub fn usage(&self) -> Usage {
        let inner = self.lock();
        let tally = inner.tally;
        let mut usage = Usage {
            segments: inner.segments.len() as u64,
            free: inner.free.len() as u64,
            bytes: inner.bytes_of_pages(),
            free_bytes: tally.free,
            pending_bytes: tally.pending + tally.freed,
            map_bytes: tally.map,
            damaged_bytes: tally.damaged,
            log_bytes: tally.log,
            reserved_bytes: inner.reserved(),
            live_bytes: self.live_bytes(),
            ..Usage::default()
        };
        for segment in &inner.segments {
            match segment.state {
                SegmentState::Pending(_) | SegmentState::Freed => usage.pending += 1,
                SegmentState::Map => usage.map += 1,
                SegmentState::Free | SegmentState::Open | SegmentState::Full | SegmentState::Log => {}
            }
            usage.damaged += u64::from(segment.damaged);
        }
        usage
    }

    /// Computes the shortages, with so many dirty bytes in memory.
    pub fn need(&self, dirty: Dirty) -> Need {
        let mut inner = self.lock();
        inner.dirty_bytes = dirty.bytes;
        let inner = &*inner;
        inner.check_tally();
        let Tally { settled: pending, moving, freed, free, .. } = inner.tally;
        let segment = inner.largest_bytes;
        let coming = pending + moving + freed;
        let kept_from_small = inner.reserved() + inner.kept_for_dirty();
        let kept = kept_from_small + inner.wanted_bytes;
        let live = inner.whole_below(self.live_bytes());
        let spare = inner.bytes_of_pages().saturating_sub(live + kept);
        let several = inner.whole_below(enough_pending(inner.bytes_of_pages(), spare));
        let ahead = inner.whole_below(inner.taken_by_checkpoint.min(spare / AHEAD_DIVISOR));
        let enough = kept + LOW_WATER * segment + several + ahead;
        let urgent = !inner.has_free_beside(kept);
        // Dirty pages reserve segments, which the cleaner and waiters lack; writing them helps both.
        let written_bytes = dirty.durable_bytes;
        let written_helps = written_bytes >= segment || written_bytes > 0 && !inner.can_clean();
        Need {
            cleaning: free + pending + freed + moving.min(MOVING_COUNTED * segment) < enough
                && inner.can_clean(),
            urgent,
            tight: !inner.has_free_beside(kept_from_small),
            moving: moving > 0,
            // One checkpoint for several segments, unless somebody waits.
            checkpoint: free < enough && pending > several || urgent && (pending > 0 || written_helps),
            hopeless: coming == 0 && urgent && !written_helps && self.victim(inner).is_none(),
            pending: pending > 0,
            checkpoint_pays: pending * WRITTEN_PER_FREED_MAX >= written_bytes,
            freeing: freed > 0,
        }
    }

    /// Room for more dirty pages, besides so many dirty bytes.
    pub fn room(&self, dirty_bytes: u64) -> Room {
        let mut inner = self.lock();
        inner.dirty_bytes = dirty_bytes;
        let kept = inner.reserved() + inner.kept_for_dirty();
        Room {
            to_grow: inner.has_free_beside(kept),
            to_remove: inner.has_free_beside(inner.kept_for_checkpoint()),
            for_overflow: inner.has_free_beside(kept + inner.wanted_bytes),
            is_near: inner.tally.free <= kept + NEAR * inner.largest_bytes,
        }
    }

    /// Sets the bytes that the page table takes when it is written as a whole.
    pub fn set_map_bytes(&self, bytes: u64) {
        self.lock().map_bytes = bytes;
    }

    /// Whether the page table takes so many segments, besides the open one, that it should be written as a
    /// whole, which frees them; fewer are enough if free segments are few.
    pub fn is_map_long(&self) -> bool {
        let inner = self.lock();
        let segment = inner.largest_bytes;
        let whole = inner.whole_above(inner.map_bytes).max(segment);
        let is_near = inner.tally.free <= inner.reserved() + inner.kept_for_dirty() + NEAR * segment;
        let more = if is_near { inner.whole_below(whole / 2) } else { whole + MAP_SPARE * segment };
        inner.tally.map > whole + more || inner.is_map_behind_ceiling()
    }

    /// Bytes of the segments that overflow values of so many bytes take: open segments have no room for them,
    /// and their pages may leave gaps.
    pub fn bytes_for(&self, bytes: u64) -> u64 {
        let inner = self.lock();
        inner.whole_above(bytes) + inner.largest_bytes
    }

    /// Reserves so many bytes for overflow values; `unwant` takes it back.
    pub fn want(&self, bytes: u64) {
        self.lock().wanted_bytes += bytes;
    }

    pub fn unwant(&self, bytes: u64) {
        self.lock().wanted_bytes -= bytes;
    }

    /// Bytes that are reserved for overflow values.
    pub fn wanted_bytes(&self) -> u64 {
        self.lock().wanted_bytes
    }
}

/// Room for pages that become dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// For commits that need more room than before.
    pub to_grow: bool,
    /// For commits that only remove.
    pub to_remove: bool,
    /// For all overflow values that room is reserved for.
    pub for_overflow: bool,
    /// So few segments are free that writers check before every commit.
    pub is_near: bool,
}

/// Shortages, and remedies under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// Segments should be cleaned.
    pub cleaning: bool,
    /// Free segments are so few that somebody may be waiting.
    pub urgent: bool,
    /// The same for writers of small values.
    pub tight: bool,
    /// Images are on their way to other places.
    pub moving: bool,
    /// A checkpoint would make segments free.
    pub checkpoint: bool,
    /// There is no free segment, and nothing will make one free.
    pub hopeless: bool,
    /// A checkpoint will certainly make segments free.
    pub pending: bool,
    /// It makes so many segments free that its price is worth paying.
    pub checkpoint_pays: bool,
    /// Segments are being discarded, and will be free.
    pub freeing: bool,
}

impl Inner {
    /// Adds segments, up to `count`.
    fn grow(&mut self, count: usize) {
        for index in self.segments.len()..count {
            self.segments.push(FREE);
            self.tally.count(&FREE, self.sizes.length(index));
            self.free.insert(index as u32);
        }
        self.measure();
    }

    /// Gives these free segments to the log, and returns their bytes.
    fn take_for_log(&mut self, run: Range<usize>) -> Range<u64> {
        for index in run.clone() {
            self.free.remove(&(index as u32));
            self.change(index, |segment| *segment = Segment { state: SegmentState::Log, ..FREE });
        }
        self.sizes.device_bytes(run.start)..self.sizes.device_bytes(run.end)
    }

    /// Updates the byte counts after the number of segments has changed.
    fn measure(&mut self) {
        let count = self.segments.len();
        self.bytes = self.sizes.device_bytes(count) - self.sizes.device_bytes(0);
        self.largest_bytes = self.sizes.length(count.saturating_sub(1));
    }

    fn bytes_of_pages(&self) -> u64 {
        self.bytes - self.tally.log
    }

    /// Rounds down to whole segments.
    fn whole_below(&self, bytes: u64) -> u64 {
        bytes - bytes % self.largest_bytes
    }

    /// Rounds up to whole segments.
    fn whole_above(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.largest_bytes)
    }

    /// Whether one more segment can be taken, and so many bytes of free ones are left then.
    fn has_free_beside(&self, kept_bytes: u64) -> bool {
        let next = self.free.first().map(|index| self.sizes.length(*index as usize));
        next.is_some_and(|next| self.tally.free >= kept_bytes + next)
    }

    fn can_open(&self, stream: Stream) -> bool {
        self.has_free_beside(self.kept_from(stream))
    }

    /// Bytes of free segments that this stream must leave to others.
    fn kept_from(&self, stream: Stream) -> u64 {
        match stream {
            Stream::Map => 0,
            // With nothing dirty and nothing pending, no checkpoint can help: the cleaner may take nearly all
            // of the reserve.
            Stream::Moved if self.dirty_bytes == 0 && !self.is_any_pending() => self.largest_bytes,
            Stream::Moved => self.kept_for_checkpoint(),
            Stream::Fresh if self.checkpointing => RESERVED_FOR_MAP * self.largest_bytes,
            Stream::Fresh => self.reserved(),
            // No checkpoint waits for a value whose commit is not logged yet, so it never takes what one may
            // need.
            Stream::Overflow => self.reserved() + self.kept_for_dirty(),
        }
    }

    /// Bytes reserved for writing the page table as a whole.
    fn kept_for_map(&self, largest_bytes: u64) -> u64 {
        let more = self.map_bytes.next_multiple_of(largest_bytes).saturating_sub(largest_bytes);
        RESERVED_FOR_MAP * largest_bytes + more
    }

    /// Bytes reserved for dirty pages.
    fn kept_for_dirty(&self) -> u64 {
        self.whole_above(self.dirty_bytes)
    }

    /// Bytes that a checkpoint may need.
    fn kept_for_checkpoint(&self) -> u64 {
        self.kept_for_map(self.largest_bytes)
            + RESERVED_FOR_CHECKPOINT * self.largest_bytes
            + self.kept_for_dirty()
    }

    /// The reserve: bytes that pages may not take that become dirty now. It does not include the bytes for
    /// pages that are dirty already.
    fn reserved(&self) -> u64 {
        self.reserved_with(self.largest_bytes)
    }

    /// The reserve if the largest segment had so many bytes.
    fn reserved_with(&self, largest_bytes: u64) -> u64 {
        self.kept_for_map(largest_bytes) + (RESERVED_FOR_CHECKPOINT + RESERVED_FOR_CLEANER) * largest_bytes
    }

    fn is_any_pending(&self) -> bool {
        self.tally.pending > 0
    }

    /// Whether the live images of one more segment have room elsewhere.
    fn can_clean(&self) -> bool {
        self.has_free_beside(self.kept_from(Stream::Moved) + self.walked)
    }

    fn is_emergency(&self) -> bool {
        self.tally.free <= self.kept_for_checkpoint() + EMERGENCY * self.largest_bytes
    }

    fn check_tally(&self) {
        let all = || self.segments.iter().enumerate().map(|(at, segment)| (segment, self.sizes.length(at)));
        debug_assert_eq!(self.tally, Tally::of_all(all()), "a change that was not counted");
    }

    fn take_out(&mut self, which: impl Fn(usize, &Segment) -> bool) -> Vec<usize> {
        let mut taken = Vec::new();
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.in_hand == 0 && which(index, segment) {
                self.change(index, |segment| segment.state = SegmentState::Freed);
                taken.push(index);
            }
        }
        taken
    }

    /// The only way to change a segment's record: it keeps the tally right.
    fn change(&mut self, index: usize, act: impl FnOnce(&mut Segment)) {
        let (segment, bytes) = (&mut self.segments[index], self.sizes.length(index));
        self.tally.forget(segment, bytes);
        act(segment);
        self.tally.count(segment, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Placement;
    use crate::segment::tests::layout;

    /// The log takes what lies side by side, and leaves others what they may need.
    #[test]
    fn the_log_takes_free_segments_that_lie_side_by_side() {
        let layout = layout(Placement::OutOfPlace);
        let (start, segment) = (layout.segments_start_bytes, layout.segment_bytes);
        let space = Space::new(&layout, start + 20 * segment);
        let open = |_| space.open(Stream::Fresh, UnitSequence(1)).unwrap();
        assert_eq!([0, 1, 2, 3].map(open), [0, 1, 2, 3]);
        // Nothing is wanted of it any more.
        space.close(1, Stream::Fresh);
        assert_eq!(space.free_pending(Epoch(0)), [1]);
        space.freed(1);
        let bytes = space.bytes();
        let one = space.take_log(segment - 5).unwrap();
        assert_eq!(one, start + segment..start + 2 * segment);
        let three = space.take_log(2 * segment + 1).unwrap();
        assert_eq!(three, start + 4 * segment..start + 7 * segment);
        assert_eq!((space.bytes(), space.usage().log_bytes), (bytes - 4 * segment, 4 * segment));
        // Of the 13 that are left 7 are kept.
        assert_eq!((space.usage().free, space.take_log(7 * segment)), (13, None));
        assert_eq!(space.release_log(&three), [4, 5, 6]);
        [4, 5, 6].into_iter().for_each(|index| space.freed(index));
        assert_eq!(space.usage().free, 16);
        assert_eq!(space.device_bytes_for_log(3 * segment), start + 23 * segment);
        assert_eq!(space.grow_for_log(start + 22 * segment, 3 * segment), None);
        assert_eq!(
            space.grow_for_log(start + 24 * segment, 2 * segment),
            Some(start + 22 * segment..start + 24 * segment)
        );
        let again = Space::new(&layout, start + 20 * segment);
        assert!(!again.adopt_log(&(start + 18 * segment..start + 21 * segment)));
        assert!(again.adopt_log(&three) && again.usage().log_bytes == 3 * segment);
        let image = Location::new(three.start, 4096, 0);
        assert!(!again.adopt(image, SegmentState::Full) && again.hold(image));
    }

    #[test]
    fn the_more_is_spare_the_more_waits_for_a_checkpoint() {
        let enough = |spare| enough_pending(960, spare);
        assert_eq!([0, 240, 320, 640, 900].map(enough), [30, 30, 40, 80, 80]);
        // However small the store is.
        assert_eq!([(0, 0), (8, 8), (48, 16)].map(|(all, spare)| enough_pending(all, spare)), [0, 0, 2]);
    }
}
