//! Counting segments as they change.

use super::space::{Segment, State};

/// How many segments of a kind there are, so that nobody who needs to know goes through all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub pending: usize,
    /// Of these, those from which nothing is on its way.
    pub settled: usize,
    /// From which images are on their way.
    pub moving: usize,
    pub freed: usize,
}

impl Tally {
    fn of(segment: &Segment) -> Self {
        let is_pending = matches!(segment.state, State::Pending(_));
        Self {
            pending: usize::from(is_pending),
            settled: usize::from(is_pending && segment.in_hand == 0),
            moving: usize::from(segment.in_hand > 0),
            freed: usize::from(segment.state == State::Freed),
        }
    }

    pub fn of_all(segments: &[Segment]) -> Self {
        let mut all = Self::default();
        segments.iter().for_each(|segment| all.count(segment));
        all
    }

    pub fn count(&mut self, segment: &Segment) {
        let Self { pending, settled, moving, freed } = Self::of(segment);
        self.pending += pending;
        self.settled += settled;
        self.moving += moving;
        self.freed += freed;
    }

    pub fn forget(&mut self, segment: &Segment) {
        let Self { pending, settled, moving, freed } = Self::of(segment);
        self.pending -= pending;
        self.settled -= settled;
        self.moving -= moving;
        self.freed -= freed;
    }
}
