//! Shortages of room, and their remedies.

use super::{Inner, Space};
use crate::segment::Dirty;

/// Cleaning begins when this number of segments above the reserve are free or soon will be.
const LOW_WATER: u64 = 2;

/// Of the segments that are being cleaned, this number count as nearly free when deciding whether more must
/// be cleaned. They are not free yet when the next checkpoint begins, and if all counted, many cleaners would
/// leave nothing for the pages written meanwhile.
const MOVING_COUNTED: u64 = 4;

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
/// early, to free segments, is the pages that it writes: most of them would have changed again before the
/// next regular one. Beyond this price, growing the store is cheaper.
const WRITTEN_PER_FREED_MAX: u64 = 2;

/// Free segments are kept ahead for as much as the last checkpoint saw taken, so that writers need not wait
/// for a checkpoint; but at most this part of the spare ones, because the more segments are free, the fuller
/// are those that are cleaned.
const AHEAD_DIVISOR: u64 = 4;

/// Checkpoints of a store without a log may need room that only checkpoints make free. After this number that
/// failed, with no commit in between, nothing is expected from another one: segments that it would make free
/// count no more, and it is not asked for.
const CHECKPOINTS_FAILED_MAX: u32 = 20;

/// Room for pages that become dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::segment) struct Room {
    /// For commits that need more room than before.
    pub to_grow: bool,
    /// For commits that only remove.
    pub to_remove: bool,
    /// For all overflow values that room is reserved for.
    pub for_overflow: bool,
    /// Free segments are so scarce that writers check before every commit.
    pub few: bool,
}

/// Shortages, and remedies under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::segment) struct Need {
    /// Segments should be cleaned.
    pub cleaning: bool,
    /// Free segments are so scarce that writers may be waiting.
    pub urgent: bool,
    /// The same for writers of small values.
    pub tight: bool,
    /// Free segments are so scarce that writers check before every commit.
    pub few: bool,
    /// Images are on their way to other places.
    pub moving: bool,
    /// A checkpoint would make segments free.
    pub checkpoint: bool,
    /// No segment is free, and nothing will make one free.
    pub hopeless: bool,
    /// A checkpoint will certainly make segments free.
    pub pending: bool,
    /// It makes enough segments free to be worth its price.
    pub checkpoint_pays: bool,
    /// Segments are being discarded, and will be free.
    pub freeing: bool,
    /// Merges are running that may make segments free.
    pub merging: bool,
}

/// Bytes of pending segments that are worth a checkpoint.
fn enough_pending(bytes: u64, spare_bytes: u64) -> u64 {
    (spare_bytes / PENDING_SPARE_DIVISOR).clamp(bytes / PENDING_MIN_DIVISOR, bytes / PENDING_MAX_DIVISOR)
}

impl Space {
    /// Computes the shortages, with these dirty bytes in memory.
    pub fn need(&self, dirty: Dirty) -> Need {
        let mut inner = self.lock();
        inner.reservations.dirty_bytes = dirty.bytes;
        let (ledger, reserve) = (&inner.ledger, inner.reserve());
        ledger.check();
        let (tally, segment) = (ledger.tally(), ledger.largest_bytes());
        let coming = tally.settled + tally.moving + tally.freed;
        let kept = reserve.kept_from_all();
        let live = ledger.whole_below(self.live_bytes());
        let spare = ledger.bytes_of_pages().saturating_sub(live + kept);
        let several = ledger.whole_below(enough_pending(ledger.bytes_of_pages(), spare));
        let ahead = ledger.whole_below(inner.taken_by_checkpoint.min(spare / AHEAD_DIVISOR));
        let enough = kept + LOW_WATER * segment + several + ahead;
        let soon_free = tally.free + tally.settled + tally.freed + tally.moving.min(MOVING_COUNTED * segment);
        let urgent = !ledger.has_free_beside(kept);
        // Dirty pages reserve segments, which the cleaner and waiters lack; writing them helps both.
        let written_bytes = dirty.durable_bytes;
        let written_helps = written_bytes >= segment || written_bytes > 0 && !reserve.can_clean();
        // Then nothing helps that only a checkpoint makes free.
        let may_checkpoint = inner.reservations.checkpoints_failed <= CHECKPOINTS_FAILED_MAX;
        let is_coming = coming > 0 || written_helps || self.is_cleaned(&inner);
        Need {
            cleaning: soon_free < enough && reserve.can_clean(),
            urgent,
            tight: !ledger.has_free_beside(reserve.kept_from_commits()),
            few: reserve.is_near_for_commits(),
            moving: tally.moving > 0,
            // One checkpoint for several segments, unless a writer waits.
            checkpoint: may_checkpoint
                && (tally.free < enough && tally.settled > several
                    || urgent && (tally.settled > 0 || written_helps)),
            hopeless: urgent && if may_checkpoint { !is_coming } else { tally.freed == 0 },
            pending: may_checkpoint && tally.settled > 0,
            checkpoint_pays: tally.settled * WRITTEN_PER_FREED_MAX >= written_bytes,
            freeing: tally.freed > 0,
            merging: inner.reservations.owners_at_work > 0,
        }
    }

    /// Whether cleaners are at work, or may begin: there is a segment to clean, and room for its live images.
    fn is_cleaned(&self, inner: &Inner) -> bool {
        inner.reservations.walked_bytes > 0 || inner.reserve().can_clean() && self.victim(inner).is_some()
    }

    /// Room for more dirty pages, besides `dirty_bytes`.
    pub fn room(&self, dirty_bytes: u64) -> Room {
        let mut inner = self.lock();
        inner.reservations.dirty_bytes = dirty_bytes;
        let (ledger, reserve) = (&inner.ledger, inner.reserve());
        Room {
            to_grow: ledger.has_free_beside(reserve.kept_from_commits()),
            to_remove: ledger.has_free_beside(reserve.kept_for_checkpoint()),
            for_overflow: ledger.has_free_beside(reserve.kept_from_all()),
            few: reserve.is_near_for_commits(),
        }
    }

    /// Bytes of free segments that more dirty pages may take, besides `dirty_bytes`.
    pub fn spare_to_remove(&self, dirty_bytes: u64) -> u64 {
        let mut inner = self.lock();
        inner.reservations.dirty_bytes = dirty_bytes;
        let kept = inner.reserve().kept_for_checkpoint() + inner.ledger.largest_bytes();
        inner.ledger.tally().free.saturating_sub(kept)
    }

    /// Whether the page table takes enough segments, besides the open one, that it should be written as a
    /// whole, which frees them; fewer are enough if free segments are few.
    pub fn is_map_long(&self) -> bool {
        let inner = self.lock();
        let ledger = &inner.ledger;
        let segment = ledger.largest_bytes();
        let whole = ledger.whole_above(inner.reservations.map_bytes).max(segment);
        let is_near = inner.reserve().is_near();
        let more = if is_near { ledger.whole_below(whole / 2) } else { whole + MAP_SPARE * segment };
        ledger.tally().map > whole + more || inner.is_map_behind_ceiling()
    }

    /// Sets the bytes that the page table takes when it is written as a whole.
    pub fn set_map_bytes(&self, bytes: u64) {
        self.lock().reservations.map_bytes = bytes;
    }

    /// Bytes of the segments that overflow values of `bytes` bytes take: open segments have no room for them,
    /// and their pages may leave gaps.
    pub fn bytes_for(&self, bytes: u64) -> u64 {
        let ledger = &self.lock().ledger;
        ledger.whole_above(bytes) + ledger.largest_bytes()
    }

    /// Reserves `bytes` for overflow values; `unwant` takes it back.
    pub fn want(&self, bytes: u64) {
        self.lock().reservations.wanted_bytes += bytes;
    }

    pub fn unwant(&self, bytes: u64) {
        let reservations = &mut self.lock().reservations;
        debug_assert!(reservations.wanted_bytes >= bytes, "room that was not reserved is given back");
        reservations.wanted_bytes -= bytes;
    }

    /// Bytes that are reserved for overflow values.
    pub fn wanted_bytes(&self) -> u64 {
        self.lock().reservations.wanted_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_spare_the_more_waits_for_a_checkpoint() {
        let enough = |spare| enough_pending(960, spare);
        assert_eq!([0, 240, 320, 640, 900].map(enough), [30, 30, 40, 80, 80]);
        // However small the store is.
        assert_eq!([(0, 0), (8, 8), (48, 16)].map(|(all, spare)| enough_pending(all, spare)), [0, 0, 2]);
    }
}
