//! Segments that are cleaned, and the progress of their cleaning.

use std::ops::Range;

use super::{Inner, Space};
use crate::segment::location::Location;
use crate::segment::{UnitSequence, policy};

/// Victims chosen by a survey: this number, or this part of all segments if that is more.
const VICTIMS_MIN: usize = 4;
const VICTIMS_DIVISOR: usize = 64;

impl Space {
    /// The victims of the next survey: the segments with the largest benefit of cleaning, among those whose
    /// units are all written; a bounded part of all.
    pub fn victims(&self, is_written: impl Fn(Range<u64>) -> bool) -> Vec<usize> {
        let inner = self.lock();
        let mut worth = self.worth_of_all(&inner).collect::<Vec<_>>();
        worth.sort_unstable_by(|(one, _), (other, _)| other.total_cmp(one));
        let at_a_time = VICTIMS_MIN.max(inner.ledger.len() / VICTIMS_DIVISOR);
        let written =
            worth.into_iter().map(|(_, index)| index).filter(|index| is_written(self.range(*index)));
        written.take(at_a_time).collect()
    }

    /// The cleanable segment with the largest benefit.
    pub(super) fn victim(&self, inner: &Inner) -> Option<usize> {
        self.worth_of_all(inner).max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, index)| index)
    }

    /// Benefit of cleaning each cleanable segment that is worth cleaning.
    fn worth_of_all(&self, inner: &Inner) -> impl Iterator<Item = (f64, usize)> {
        let emergency = inner.reserve().is_emergency();
        let cleanable = inner.ledger.iter().filter(|(_, segment)| segment.is_cleanable());
        cleanable.filter_map(move |(index, segment)| {
            let (live, filled) = (self.fill.live_bytes_of(index), self.fill.filled_bytes_of(index));
            let worth = if emergency {
                // Gaps between images are won as well, except those that the cleaner left: it would leave the
                // same ones again, for ever.
                policy::worth_now(live, if segment.packed { filled } else { self.sizes.length(index) })
            } else {
                policy::worth(live, filled, self.fill.age_of(index))
            };
            worth.map(|worth| (worth, index))
        })
    }

    /// Begins to clean the segment, if it is cleanable and still the one that was opened with `opening`.
    pub fn begin_victim(&self, index: usize, opening: UnitSequence) -> bool {
        let mut inner = self.lock();
        // The device's end may have been cut off meanwhile.
        let is_there = inner.ledger.get(index).is_some_and(|segment| segment.is_cleanable());
        let is_same = is_there && self.opening_of(index) == opening;
        if is_same {
            inner.ledger.take_in_hand(index);
            inner.reservations.walked_bytes += self.sizes.length(index);
        }
        is_same
    }

    /// The cleaner has gone through it.
    pub fn end_victim(&self, index: usize) {
        let mut inner = self.lock();
        inner.ledger.put_down(index);
        inner.reservations.walked_bytes -= self.sizes.length(index);
    }

    /// Begins the move of an image out of the segment.
    pub fn begin_move(&self, index: usize) {
        self.lock().ledger.take_in_hand(index);
    }

    /// Ends a move.
    pub fn end_move(&self, index: usize) {
        self.lock().ledger.put_down(index);
    }

    /// Marks the segment as damaged if something in it cannot be read.
    pub fn note_damage(&self, index: usize, is_damaged: bool) {
        if is_damaged {
            self.lock().ledger.note_damage(index);
        }
    }

    /// Whether the live images of one more segment have room elsewhere.
    pub fn may_clean(&self) -> bool {
        self.lock().reserve().can_clean()
    }

    /// Whether free segments are few enough that the emptiest ones are cleaned.
    pub fn is_emergency(&self) -> bool {
        self.lock().reserve().is_emergency()
    }

    /// Whether more than half of the segment that is cleaned next would have to be moved.
    pub fn is_cleaning_dear(&self) -> bool {
        let victim = self.victim(&self.lock());
        victim.is_some_and(|index| self.live_bytes_of(index) > self.sizes.length(index) / 2)
    }

    /// [`Space::known_age_of`] the segment of `location`.
    pub fn known_age_at(&self, location: Location) -> Option<u64> {
        self.known_age_of(self.index_of(location.offset_bytes())?)
    }

    /// See `Fill`.
    pub fn known_age_of(&self, index: usize) -> Option<u64> {
        self.fill.known_age_of(index)
    }

    /// The store's age: bytes of changed pages that were gathered.
    pub fn age_bytes(&self) -> u64 {
        self.fill.age_bytes()
    }

    /// The store's age when the youngest image of a segment was changed.
    pub fn changed_at(&self, index: usize) -> u64 {
        self.fill.changed_at(index)
    }
}
