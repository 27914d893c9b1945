//! The segments' records, and the sums that follow from them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::SegmentState;
use crate::epoch::Epoch;
use crate::layout::sizes::Sizes;
use crate::segment::tally::Tally;

/// The part of a segment's record that the lock guards; the other part is in [`Fill`](super::fill::Fill).
#[derive(Clone, Copy, Debug)]
pub(in crate::segment) struct Segment {
    pub state: SegmentState,
    /// Number of its moves under way, and one more while the cleaner goes through it.
    pub in_hand: u32,
    /// An image in it cannot be read: it is not cleaned.
    pub damaged: bool,
    /// The cleaner has filled it, as densely as it can.
    pub packed: bool,
}

const FREE: Segment = Segment { state: SegmentState::Free, in_hand: 0, damaged: false, packed: false };

impl Segment {
    pub fn is_cleanable(&self) -> bool {
        self.state == SegmentState::Full && self.in_hand == 0 && !self.damaged
    }
}

/// All segments. Only its own functions change a record, so that the sums are always right:
///
/// - the tally is the sum over all records;
/// - the free set contains the segments whose state is [`SegmentState::Free`], and no others.
pub(in crate::segment) struct Ledger {
    sizes: Sizes,
    segments: Vec<Segment>,
    free: BTreeSet<u32>,
    tally: Tally,
    /// Bytes of all segments.
    bytes: u64,
    /// Of the largest one.
    largest_bytes: u64,
}

impl Ledger {
    pub fn new(sizes: Sizes) -> Self {
        let (segments, free) = (Vec::new(), BTreeSet::new());
        Self { sizes, segments, free, tally: Tally::default(), bytes: 0, largest_bytes: sizes.length(0) }
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn get(&self, index: usize) -> Option<&Segment> {
        self.segments.get(index)
    }

    /// A segment that is there.
    pub fn state(&self, index: usize) -> SegmentState {
        self.segments[index].state
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &Segment)> + ExactSizeIterator {
        self.segments.iter().enumerate()
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The free segments, the first ones first.
    pub fn free(&self) -> impl Iterator<Item = usize> {
        self.free.iter().map(|index| *index as usize)
    }

    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// The first adjacent free segments that have at least `bytes` together.
    pub fn free_run(&self, bytes: u64) -> Option<Range<usize>> {
        let mut run = 0..0;
        self.free().find_map(|index| {
            run = if index == run.end { run.start..index + 1 } else { index..index + 1 };
            let run_bytes = self.sizes.device_bytes(run.end) - self.sizes.device_bytes(run.start);
            (run_bytes >= bytes).then(|| run.clone())
        })
    }

    /// Bytes of all segments but the log's and the owned ones.
    pub fn bytes_of_pages(&self) -> u64 {
        self.bytes - self.tally.log - self.tally.owned
    }

    pub fn largest_bytes(&self) -> u64 {
        self.largest_bytes
    }

    /// The largest of the first `count` segments.
    pub fn largest_of(&self, count: usize) -> u64 {
        self.sizes.length(count.saturating_sub(1))
    }

    /// Rounds down to whole segments.
    pub fn whole_below(&self, bytes: u64) -> u64 {
        bytes - bytes % self.largest_bytes
    }

    /// Rounds up to whole segments.
    pub fn whole_above(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.largest_bytes)
    }

    /// Whether one more segment can be taken with `kept_bytes` of free ones left.
    pub fn has_free_beside(&self, kept_bytes: u64) -> bool {
        self.free().next().is_some_and(|next| self.tally.free >= kept_bytes + self.sizes.length(next))
    }

    /// Bytes that pages may fill if there were only `count` segments, with `reserved_bytes` of them reserved.
    pub fn usable_of(&self, count: usize, reserved_bytes: u64) -> u64 {
        let bytes = self.sizes.device_bytes(count) - self.sizes.device_bytes(0);
        bytes.saturating_sub(self.tally.log + self.tally.owned + reserved_bytes)
    }

    /// Segments up to the last closed one.
    pub fn end_of_closed(&self) -> usize {
        let is_closed = |segment: &Segment| {
            !matches!(segment.state, SegmentState::Free | SegmentState::Open | SegmentState::Log)
        };
        self.segments.iter().rposition(is_closed).map_or(0, |last| last + 1)
    }

    /// Segments up to the last one that is not free.
    pub fn end_of_used(&self) -> usize {
        let last = self.segments.iter().rposition(|segment| segment.state != SegmentState::Free);
        last.map_or(0, |last| last + 1)
    }

    /// Adds segments, up to `count`.
    pub fn grow(&mut self, count: usize) {
        for index in self.segments.len()..count {
            self.segments.push(FREE);
            self.tally.count(&FREE, self.sizes.length(index));
            self.free.insert(index as u32);
        }
        self.measure();
    }

    /// Gives up the last segment if it is free.
    pub fn pop_free(&mut self) -> bool {
        let Some(last) = self.segments.pop_if(|segment| segment.state == SegmentState::Free) else {
            return false;
        };
        let index = self.segments.len();
        self.free.remove(&(index as u32));
        self.tally.forget(&last, self.sizes.length(index));
        self.measure();
        true
    }

    /// Updates the byte counts after the number of segments has changed.
    fn measure(&mut self) {
        let count = self.segments.len();
        self.bytes = self.sizes.device_bytes(count) - self.sizes.device_bytes(0);
        self.largest_bytes = self.largest_of(count);
    }

    /// Puts the first free segment into a state.
    pub fn take_first_free(&mut self, state: SegmentState) -> Option<usize> {
        let index = self.free().next()?;
        self.set_state(index, state);
        Some(index)
    }

    /// Gives these free segments to the log, and returns their bytes.
    pub fn take_for_log(&mut self, run: Range<usize>) -> Range<u64> {
        run.clone().for_each(|index| self.set_state(index, SegmentState::Log));
        self.sizes.device_bytes(run.start)..self.sizes.device_bytes(run.end)
    }

    /// Makes a segment free. Nothing is on its way from it.
    pub fn set_free(&mut self, index: usize) {
        debug_assert_eq!(self.segments[index].in_hand, 0, "a free segment from which images are moved");
        self.change(index, |segment| *segment = FREE);
    }

    /// Puts a segment into another state. One that was free is new.
    pub fn set_state(&mut self, index: usize, state: SegmentState) {
        self.change(index, |segment| segment.state = state);
    }

    /// Without live images since `epoch`.
    pub fn set_pending(&mut self, index: usize, epoch: Epoch) {
        self.set_state(index, SegmentState::Pending(epoch));
    }

    /// Nothing more is put into it.
    pub fn close(&mut self, index: usize, state: SegmentState, packed: bool) {
        debug_assert_eq!(self.state(index), SegmentState::Open, "closed twice");
        self.change(index, |segment| (segment.state, segment.packed) = (state, packed));
    }

    /// One more image of it, or the cleaner, is on its way.
    pub fn take_in_hand(&mut self, index: usize) {
        self.change(index, |segment| segment.in_hand += 1);
    }

    /// One of them has arrived.
    pub fn put_down(&mut self, index: usize) {
        self.change(index, |segment| {
            debug_assert!(segment.in_hand > 0, "a move that was not begun");
            segment.in_hand -= 1;
        });
    }

    pub fn note_damage(&mut self, index: usize) {
        self.change(index, |segment| segment.damaged = true);
    }

    /// Takes out segments, on their way to be free.
    pub fn take_out(&mut self, which: impl Fn(usize, &Segment) -> bool) -> Vec<usize> {
        let chosen = self.iter().filter(|(index, segment)| segment.in_hand == 0 && which(*index, segment));
        let chosen: Vec<usize> = chosen.map(|(index, _)| index).collect();
        chosen.iter().for_each(|index| self.set_state(*index, SegmentState::Freed));
        chosen
    }

    /// The only way to change a record.
    fn change(&mut self, index: usize, act: impl FnOnce(&mut Segment)) {
        let (segment, bytes) = (&mut self.segments[index], self.sizes.length(index));
        let was_free = segment.state == SegmentState::Free;
        self.tally.forget(segment, bytes);
        act(segment);
        self.tally.count(segment, bytes);
        match (was_free, segment.state == SegmentState::Free) {
            (true, false) => drop(self.free.remove(&(index as u32))),
            (false, true) => drop(self.free.insert(index as u32)),
            _ => {}
        }
    }

    /// Asserts the sums (see the type).
    pub fn check(&self) {
        let all = || self.iter().map(|(index, segment)| (segment, self.sizes.length(index)));
        debug_assert_eq!(self.tally, Tally::of_all(all()), "a change that was not counted");
        debug_assert!(
            self.free.iter().all(|index| self.state(*index as usize) == SegmentState::Free),
            "a segment in use counts as free"
        );
        debug_assert_eq!(
            self.free.len(),
            self.iter().filter(|(_, segment)| segment.state == SegmentState::Free).count(),
            "a free segment is forgotten"
        );
    }
}
