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
//! Free    ─ take_owned ───────────────────────► Owned
//! Owned   ─ release ──────────────────────────► Pending(epoch)
//! Owned   ─ give_up_owned, never recorded ────► Freed
//! ```
//!
//! Fields that belong together have their own type, whose functions alone change them:
//!
//! | part | contents |
//! | --- | --- |
//! | [`Ledger`](ledger::Ledger) | the segments' records, the free ones, and the sums over them |
//! | [`Reservations`](reserve::Reservations) | room needed later, by purpose; the reserve follows from it |
//! | [`Fill`](fill::Fill) | live bytes and ages, which are used without the lock |
//!
//! Room is counted in bytes, as segments have several [sizes](crate::layout::sizes). Numbers of segments,
//! such as those that are kept for the cleaner, are of the largest size that the store has.

mod cleaning;
mod fill;
mod ledger;
mod log_room;
mod need;
mod opening;
mod owning;
mod reserve;
mod tail;
mod usage;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::ops::Range;

use super::location::{DEVICE_BYTES_MAX, Location};
use super::{Stream, UnitSequence};
use crate::epoch::Epoch;
use crate::layout::Layout;
use crate::layout::sizes::Sizes;

use fill::Fill;
use ledger::Ledger;
use reserve::{Reservations, Reserve, cleaner_bytes_min};

pub(super) use ledger::Segment;
pub(crate) use tail::Leave;
pub(crate) use usage::Usage;

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
    /// All of it is an owner's.
    Owned,
    /// Being discarded.
    Freed,
}

/// See the module.
pub(super) struct Space {
    sizes: Sizes,
    fill: Fill,
    epoch: AtomicU32,
    inner: Mutex<Inner>,
}

/// State that the lock guards.
pub(super) struct Inner {
    ledger: Ledger,
    reservations: Reservations,
    /// Bytes of the segments that were taken since the last checkpoint began.
    taken: u64,
    /// Bytes of segments taken from the beginning of one checkpoint to the end of its pages: a decaying
    /// maximum.
    taken_by_checkpoint: u64,
    /// While the store is compacted, the number of segments that it is to have.
    ceiling: Option<usize>,
}

impl Inner {
    fn reserve(&self) -> Reserve<'_> {
        Reserve { ledger: &self.ledger, reservations: &self.reservations }
    }
}

impl Space {
    /// As many segments as fit, all of them free.
    pub fn new(layout: &Layout, capacity_bytes: u64) -> Self {
        let sizes = Sizes::of(layout);
        let space = Self {
            sizes,
            fill: Fill::new(sizes),
            epoch: AtomicU32::new(0),
            inner: Mutex::new(Inner {
                ledger: Ledger::new(sizes),
                reservations: Reservations {
                    cleaner_bytes_min: cleaner_bytes_min(layout),
                    ..Reservations::default()
                },
                taken: 0,
                taken_by_checkpoint: 0,
                ceiling: None,
            }),
        };
        space.grow(capacity_bytes);
        space
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device has this many bytes now.
    pub fn grow(&self, capacity_bytes: u64) {
        self.lock().ledger.grow(self.sizes.count(capacity_bytes.min(DEVICE_BYTES_MAX)));
    }

    /// Positions and sizes of segments.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes of the largest segment.
    pub fn largest_segment_bytes(&self) -> u64 {
        self.lock().ledger.largest_bytes()
    }

    /// Number of segments.
    pub fn count(&self) -> usize {
        self.lock().ledger.len()
    }

    /// The segment that contains this byte of the device; there may be no segment of that number.
    #[inline]
    pub fn index_of(&self, offset_bytes: u64) -> Option<usize> {
        self.sizes.index_of(offset_bytes)
    }

    /// The segment that would contain all of an image there.
    #[inline]
    pub fn index_of_image(&self, location: Location) -> Option<usize> {
        let index = self.index_of(location.offset_bytes())?;
        let end = location.offset_bytes() + u64::from(location.length_bytes());
        (index < self.count() && end <= self.range(index).end).then_some(index)
    }

    /// A segment's bytes of the device.
    pub fn range(&self, index: usize) -> Range<u64> {
        self.sizes.range(index)
    }

    /// No image at `location` was written with an earlier unit.
    pub fn opening(&self, location: Location) -> u64 {
        self.fill.opening_at(location).0
    }

    pub fn opening_of(&self, index: usize) -> UnitSequence {
        self.fill.opening_of(index)
    }

    pub fn live_bytes_of(&self, index: usize) -> u64 {
        self.fill.live_bytes_of(index)
    }

    /// Bytes of all images to which pages refer.
    pub fn live_bytes(&self) -> u64 {
        self.fill.live_bytes()
    }

    /// Bytes of all segments but the log's and the owned ones.
    pub fn bytes(&self) -> u64 {
        self.lock().ledger.bytes_of_pages()
    }

    /// Bytes of these that pages may fill, without the reserve.
    pub fn usable_bytes(&self) -> u64 {
        let inner = self.lock();
        inner.ledger.bytes_of_pages().saturating_sub(inner.reserve().reserved())
    }

    /// Images released from now on belong to this epoch.
    pub fn set_epoch(&self, epoch: Epoch) {
        let reservations = &mut self.lock().reservations;
        reservations.is_cut = reservations.checkpointing;
        self.epoch.store(epoch.0, Ordering::Release);
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// A checkpoint begins or ends writing pages.
    pub fn set_checkpointing(&self, checkpointing: bool) {
        let mut inner = self.lock();
        inner.reservations.checkpointing = checkpointing;
        inner.reservations.is_cut = false;
        if checkpointing {
            inner.taken = 0;
        } else {
            // Earlier maxima decay.
            inner.taken_by_checkpoint = inner.taken.max(inner.taken_by_checkpoint / 4 * 3);
        }
    }

    /// This number of checkpoints has failed one after the other.
    pub fn set_checkpoints_failed(&self, times: u32) {
        self.lock().reservations.checkpoints_failed = times;
    }

    /// Whether a checkpoint is writing pages.
    pub fn is_checkpointing(&self) -> bool {
        self.lock().reservations.checkpointing
    }

    /// Whether a checkpoint that is under way is to have the changes of this epoch.
    pub fn is_awaited(&self, epoch: Epoch) -> bool {
        epoch < self.epoch() && self.is_cut()
    }

    /// Whether a checkpoint is writing pages, and nothing that changes now is for it.
    pub fn is_cut(&self) -> bool {
        self.lock().reservations.is_cut
    }

    /// Whether [`Space::open`] would find one.
    pub fn can_open(&self, stream: Stream) -> bool {
        self.lock().reserve().can_open(stream)
    }

    /// Takes a free segment; `opening` is not above the number of the first unit in it.
    pub fn open(&self, stream: Stream, opening: UnitSequence) -> Option<usize> {
        let mut inner = self.lock();
        if !inner.reserve().can_open(stream) {
            return None;
        }
        let index = inner.ledger.take_first_free(SegmentState::Open)?;
        inner.taken += self.sizes.length(index);
        self.fill.open(index, opening);
        Some(index)
    }

    /// Nothing more is put into the segment.
    pub fn close(&self, index: usize, stream: Stream) {
        let mut inner = self.lock();
        let state = match stream {
            Stream::Map => SegmentState::Map,
            _ if self.live_bytes_of(index) == 0 => SegmentState::Pending(self.epoch()),
            _ => SegmentState::Full,
        };
        inner.ledger.close(index, state, stream == Stream::Moved);
    }

    /// Counts the image at `location` as live. Its page was last changed at the store's age
    /// `changed_at_bytes`, or just now.
    #[inline]
    pub fn add_live(&self, location: Location, changed_at_bytes: Option<u64>) {
        self.fill.add_live(location, changed_at_bytes);
    }

    /// Counts padding of a unit that was written before it was full.
    pub fn add_padding(&self, index: usize, bytes: u64) {
        self.fill.add_padding(index, bytes);
    }

    /// The image there is garbage from now on.
    #[inline]
    pub fn release(&self, location: Location) {
        if location.is_segment() {
            return self.release_owned(location);
        }
        if let Some(empty) = self.fill.release(location) {
            self.note_empty(empty);
        }
    }

    fn note_empty(&self, index: usize) {
        let mut inner = self.lock();
        let epoch = self.epoch();
        // An open segment may get more images, and is checked when it is closed.
        let is_full = |segment: &Segment| segment.state == SegmentState::Full;
        if inner.ledger.get(index).is_some_and(is_full) && self.live_bytes_of(index) == 0 {
            inner.ledger.set_pending(index, epoch);
            if inner.ledger.get(index).is_some_and(|segment| segment.in_hand == 0)
                && planted!(SegmentReusedTooEarly)
            {
                inner.ledger.set_free(index);
            }
        }
    }

    /// Takes out the segments to which the page tables of `epoch` and later ones do not refer. The caller
    /// discards them and then calls [`Space::freed`].
    pub fn free_pending(&self, epoch: Epoch) -> Vec<usize> {
        self.lock().ledger.take_out(|_, segment| match segment.state {
            SegmentState::Pending(since) => {
                since <= epoch || since.0 == epoch.0 + 1 && planted!(PendingEpochOffByOne)
            }
            _ => false,
        })
    }

    /// Takes out the page table's segments that were opened before the one with `first`, likewise.
    pub fn release_map_before(&self, first: Location) -> Vec<usize> {
        let opening = self.fill.opening_at(first);
        self.lock()
            .ledger
            .take_out(|index, segment| segment.state == SegmentState::Map && self.opening_of(index) < opening)
    }

    /// Makes a segment that was taken out free.
    pub fn freed(&self, index: usize) {
        self.lock().ledger.set_free(index);
    }

    /// The segments' states.
    #[cfg(test)]
    pub fn states(&self) -> Vec<SegmentState> {
        self.lock().ledger.iter().map(|(_, segment)| segment.state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Placement;
    use crate::segment::locator::Dirty;
    use crate::segment::tests::layout;

    /// The log takes adjacent segments, and leaves others the room that they may need.
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

    /// It frees pending segments. A checkpoint that leaves a short page table two segments is never made in a
    /// store that has no more than these.
    #[test]
    fn pages_of_a_checkpoint_lack_no_segment_that_the_page_table_can_spare() {
        let layout = layout(Placement::OutOfPlace);
        let space = Space::new(&layout, layout.segments_start_bytes + 20 * layout.segment_bytes);
        let open = |stream| space.open(stream, UnitSequence(1));
        let empty = open(Stream::Fresh).unwrap();
        (0..17).for_each(|_| assert!(open(Stream::Map).is_some()));
        space.set_checkpointing(true);
        assert!(!space.can_open(Stream::Awaited), "it would free nothing");
        space.close(empty, Stream::Fresh);
        assert!(space.can_open(Stream::Awaited), "what is pending would stay so");
        space.set_map_bytes(layout.segment_bytes);
        assert!(!space.can_open(Stream::Awaited), "the page table needs both");
        space.set_map_bytes(layout.segment_bytes / 2);
        open(Stream::Awaited).unwrap();
        assert!(!space.can_open(Stream::Awaited) && space.can_open(Stream::Map), "the last one is its own");
    }

    /// However small segments are: commits between two checks make bytes dirty, not segments.
    #[test]
    fn segments_are_few_where_a_few_commits_may_need_them_all() {
        let small = layout(Placement::OutOfPlace);
        let layout = Layout { segment_bytes: 64 << 10, ..small };
        let few_of = |bytes| {
            let space = Space::new(&layout, layout.segments_start_bytes + bytes);
            (space.need(Dirty::default()).few, space.lacks_room())
        };
        assert_eq!([2 << 20, 4 << 20, 8 << 20].map(few_of), [(true, false), (true, false), (false, false)]);
    }

    /// A commit that is under way changes pages over and over in a small cache: it would use up the room that
    /// the checkpoint needs, which frees the room that the commit needs.
    #[test]
    fn pages_that_change_behind_a_cut_leave_the_checkpoint_its_room() {
        let layout = layout(Placement::OutOfPlace);
        let space = Space::new(&layout, layout.segments_start_bytes + 20 * layout.segment_bytes);
        let opened = |stream| (0..20).take_while(|_| space.open(stream, UnitSequence(1)).is_some()).count();
        space.room(3 * layout.segment_bytes);
        space.set_checkpointing(true);
        space.set_epoch(Epoch(8));
        assert!(space.is_awaited(Epoch(7)) && !space.is_awaited(Epoch(8)));
        // Two are the page table's, three are for dirty pages, and one is spare.
        assert_eq!([Stream::Fresh, Stream::Awaited, Stream::Map].map(opened), [14, 4, 2]);
        space.set_checkpointing(false);
        assert!(!space.is_awaited(Epoch(7)), "there is none");
    }
}
