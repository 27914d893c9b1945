//! Segments that are owned whole: see [`owned`](crate::segment::owned).

use super::reserve::Reserve;
use super::{Segment, SegmentState, Space};
use crate::segment::Purpose;
use crate::segment::location::Location;
use crate::segment::{Stream, UnitSequence};

fn may_take(reserve: &Reserve<'_>, purpose: Purpose) -> bool {
    match purpose {
        Purpose::Flush => reserve.can_open(Stream::Owned),
        Purpose::Merge => reserve.can_merge(),
    }
}

impl Space {
    /// Whether an owner may take a segment.
    pub fn can_take(&self, purpose: Purpose) -> bool {
        may_take(&self.lock().reserve(), purpose)
    }

    /// Takes the first free segment for an owner. No segment was opened with this sequence before.
    pub fn take_owned(&self, opening: UnitSequence, purpose: Purpose) -> Option<usize> {
        let mut inner = self.lock();
        if !may_take(&inner.reserve(), purpose) {
            return None;
        }
        let index = inner.ledger.take_first_free(SegmentState::Owned)?;
        inner.taken += self.sizes.length(index);
        self.fill.open(index, opening);
        Some(index)
    }

    /// Whether an owner may take segments of `bytes` bytes, or one, now or when those that are pending are
    /// free: those that owners have reserved, or, if more, as long as live and dirty pages would have room.
    pub fn is_room_for_owner(&self, bytes: u64) -> bool {
        let mut usage = self.usage();
        let inner = self.lock();
        let (tally, needed_bytes) = (inner.ledger.tally(), bytes.max(inner.ledger.largest_bytes()));
        let coming_bytes = tally.free + tally.pending + tally.freed;
        if needed_bytes <= inner.reservations.owners_bytes
            && coming_bytes >= needed_bytes + inner.reserve().kept_from(Stream::Owned)
        {
            return true;
        }
        usage.reserved_bytes = usage.reserved_bytes.saturating_sub(inner.reserve().kept_for_owners());
        let less_bytes = needed_bytes + inner.reserve().kept_for_targets();
        usage.has_room_for(inner.reservations.dirty_bytes, less_bytes)
    }

    /// Bytes that owners may take, now or when the segments that are pending are free.
    pub fn room_for_owner_to_come(&self) -> u64 {
        let inner = self.lock();
        let tally = inner.ledger.tally();
        (tally.free + tally.pending + tally.freed).saturating_sub(inner.reserve().kept_from(Stream::Owned))
    }

    /// Bytes of free segments before this byte of the device that an owner may take.
    pub fn room_for_owner_before(&self, end_bytes: u64) -> u64 {
        let inner = self.lock();
        let (ledger, kept_bytes) = (&inner.ledger, inner.reserve().kept_from(Stream::Owned));
        let before = ledger.free().map(|index| self.range(index)).take_while(|range| range.end <= end_bytes);
        let before_bytes: u64 = before.map(|range| range.end - range.start).sum();
        before_bytes.min(ledger.tally().free.saturating_sub(kept_bytes))
    }

    /// Keeps `more_bytes` more and `less_bytes` less for owners.
    pub fn reserve_for_owner(&self, more_bytes: u64, less_bytes: u64) {
        let reservations = &mut self.lock().reservations;
        debug_assert!(
            reservations.owners_bytes >= less_bytes,
            "room that no owner has reserved is given back"
        );
        reservations.owners_bytes = reservations.owners_bytes + more_bytes - less_bytes;
    }

    /// Keeps `more_bytes` more and `less_bytes` less of these for flushes. Called where no checkpoint is made
    /// before owners have written all that they have in memory.
    pub fn reserve_for_flushes(&self, more_bytes: u64, less_bytes: u64) {
        let reservations = &mut self.lock().reservations;
        debug_assert!(
            reservations.flush_bytes >= less_bytes,
            "room that no owner has reserved is given back"
        );
        reservations.flush_bytes = reservations.flush_bytes + more_bytes - less_bytes;
    }

    /// An owner begins or ends work that may make segments free.
    pub fn set_owner_at_work(&self, begins: bool) {
        let reservations = &mut self.lock().reservations;
        debug_assert!(begins || reservations.owners_at_work > 0, "work ends that never began");
        reservations.owners_at_work =
            if begins { reservations.owners_at_work + 1 } else { reservations.owners_at_work - 1 };
    }

    /// Whether commits have to wait for room, or will soon.
    pub fn lacks_room(&self) -> bool {
        self.lock().reserve().is_near()
    }

    /// The owned segment that begins at this location, if there is one.
    pub fn owned_at(&self, location: Location) -> Option<usize> {
        let index = self.beginning_at(location)?;
        let is_owned = |segment: &Segment| segment.state == SegmentState::Owned;
        self.lock().ledger.get(index).is_some_and(is_owned).then_some(index)
    }

    fn beginning_at(&self, location: Location) -> Option<usize> {
        let index = self.index_of(location.offset_bytes())?;
        (location.is_segment() && self.range(index).start == location.offset_bytes()).then_some(index)
    }

    /// Takes out an owned segment that no page table has ever had, on its way to be free.
    pub fn give_up_owned(&self, index: usize) -> Vec<usize> {
        self.lock().ledger.take_out(|other, segment| other == index && segment.state == SegmentState::Owned)
    }

    /// The owned segment is garbage from now on: a checkpoint may still have it.
    #[cold]
    pub(super) fn release_owned(&self, location: Location) {
        let Some(index) = self.owned_at(location) else {
            debug_assert!(false, "a segment without an owner is given up");
            return;
        };
        let mut inner = self.lock();
        let epoch = self.epoch();
        inner.ledger.set_pending(index, epoch);
    }

    /// While a store is opened: the page table has this segment. `false` if none begins there, or if it is
    /// taken already.
    pub(super) fn adopt_owned(&self, location: Location) -> bool {
        let Some(index) = self.beginning_at(location) else { return false };
        let mut inner = self.lock();
        let is_free = inner.ledger.get(index).is_some_and(|segment| segment.state == SegmentState::Free);
        if is_free {
            inner.ledger.set_state(index, SegmentState::Owned);
        }
        is_free
    }
}
