//! Counting segments as they change.

use super::space::{Segment, SegmentState};

/// Bytes of the segments of each kind, kept so that they need not be summed over all segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub free: u64,
    pub pending: u64,
    /// Of these, bytes of segments without images on their way elsewhere.
    pub settled: u64,
    /// Of segments with images on their way elsewhere.
    pub moving: u64,
    pub freed: u64,
    /// Of the page table, closed.
    pub map: u64,
    /// Of the log.
    pub log: u64,
    /// Owned whole.
    pub owned: u64,
    pub damaged: u64,
}

impl Tally {
    fn of(segment: &Segment, bytes: u64) -> Self {
        let of = |is_one: bool| if is_one { bytes } else { 0 };
        let is_pending = matches!(segment.state, SegmentState::Pending(_));
        Self {
            free: of(segment.state == SegmentState::Free),
            pending: of(is_pending),
            settled: of(is_pending && segment.in_hand == 0),
            moving: of(segment.in_hand > 0),
            freed: of(segment.state == SegmentState::Freed),
            map: of(segment.state == SegmentState::Map),
            log: of(segment.state == SegmentState::Log),
            owned: of(segment.state == SegmentState::Owned),
            damaged: of(segment.damaged),
        }
    }

    /// Of segments with their lengths.
    pub fn of_all<'a>(segments: impl Iterator<Item = (&'a Segment, u64)>) -> Self {
        let mut all = Self::default();
        segments.for_each(|(segment, bytes)| all.count(segment, bytes));
        all
    }

    pub fn count(&mut self, segment: &Segment, bytes: u64) {
        let Self { free, pending, settled, moving, freed, map, log, owned, damaged } =
            Self::of(segment, bytes);
        self.free += free;
        self.pending += pending;
        self.settled += settled;
        self.moving += moving;
        self.freed += freed;
        self.map += map;
        self.log += log;
        self.owned += owned;
        self.damaged += damaged;
    }

    pub fn forget(&mut self, segment: &Segment, bytes: u64) {
        let Self { free, pending, settled, moving, freed, map, log, owned, damaged } =
            Self::of(segment, bytes);
        self.free -= free;
        self.pending -= pending;
        self.settled -= settled;
        self.moving -= moving;
        self.freed -= freed;
        self.map -= map;
        self.log -= log;
        self.owned -= owned;
        self.damaged -= damaged;
    }
}
