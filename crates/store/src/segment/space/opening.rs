//! Finding out, while a store is opened, which segments are in use.

use super::{SegmentState, Space};
use crate::Error;
use crate::segment::UnitSequence;
use crate::segment::location::Location;

impl Space {
    /// A location outside of all segments, or in more than one.
    pub fn nowhere(&self, location: Location) -> Error {
        Error::Corrupt {
            what: "a page's location".into(),
            offset_bytes: location.offset_bytes(),
            expected: format!("one of {} segments", self.count()),
            got: format!("{} bytes outside of them", location.length_bytes()),
        }
    }

    /// See `Fill`.
    pub fn restore_openings(&self, openings: &[(u64, UnitSequence)]) {
        self.fill.restore_openings(openings);
    }

    /// Nothing may be written over this image, to which the log refers. The image may be gone already, as a
    /// later commit gave it up: its segment may have been used again, even by the log.
    pub fn hold(&self, location: Location) -> bool {
        let Some(index) = self.index_of_image(location) else { return false };
        let mut inner = self.lock();
        if inner.ledger.state(index) == SegmentState::Free {
            inner.ledger.set_state(index, SegmentState::Full);
            self.fill.fill_up(index);
        }
        true
    }

    /// Ends [`hold`](Self::hold): held images that no page refers to become garbage.
    pub fn let_go(&self) {
        let (mut inner, epoch) = (self.lock(), self.epoch());
        let is_garbage = |index| self.live_bytes_of(index) == 0;
        let full = inner.ledger.iter().filter(|(_, segment)| segment.state == SegmentState::Full);
        let garbage: Vec<usize> = full.map(|(index, _)| index).filter(|index| is_garbage(*index)).collect();
        garbage.into_iter().for_each(|index| inner.ledger.set_pending(index, epoch));
    }

    /// Images of pages with this sum of bytes are in a segment, and no others.
    pub fn adopt_live(&self, index: usize, bytes: u64) -> bool {
        let mut inner = self.lock();
        if matches!(inner.ledger.state(index), SegmentState::Log | SegmentState::Owned) {
            return false;
        }
        inner.ledger.set_state(index, SegmentState::Full);
        self.fill.adopt_live(index, bytes);
        true
    }

    /// A page, or the page table, is in this image.
    pub fn adopt(&self, location: Location, state: SegmentState) -> bool {
        if location.is_segment() {
            return state == SegmentState::Full && self.adopt_owned(location);
        }
        let Some(index) = self.index_of_image(location) else { return false };
        let mut inner = self.lock();
        if matches!(inner.ledger.state(index), SegmentState::Log | SegmentState::Owned) {
            return false;
        }
        inner.ledger.set_state(index, state);
        if state == SegmentState::Full {
            self.fill.add_live(location, Some(0));
            self.fill.fill_up(index);
        }
        true
    }
}
