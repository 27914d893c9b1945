//! The device's end: how long the device must be, and the part that can be cut off.

use std::ops::Range;

use super::{Inner, Segment, SegmentState, Space};

/// A compaction moves pages until they fill this percentage of the segments that they lie in. Denser ones
/// would cost more moves than they give back.
const COMPACTED_PERCENT: u64 = 85;

/// A checkpoint leaves it no fuller than this, far from growing again.
const CHECKPOINT_PERCENT: u64 = 25;

/// A checkpoint cuts off a tail of at least this part of the device: less is not worth a superblock.
const CUT_DIVISOR: u64 = 4;

/// Compaction empties segments before the new end, too, if those after it have nowhere to go: segments with
/// less than this live. One that the cleaner has packed would take nearly as much again, so less must be live
/// of it.
const LOOSE_PERCENT: u64 = 80;
const LOOSE_PACKED_PERCENT: u64 = 50;

/// A compaction is worth it if this number of segments of the largest size lie after those that are needed,
/// or this part of the device.
const SEGMENTS_WORTH_IT: u64 = 4;
const WORTH_IT_DIVISOR: u64 = 8;

/// Free segments that stay when the device's free end is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// None: nothing is written any more.
    Nothing,
    /// This number of first segments, and the free ones that writers may need soon.
    ForWriting(usize),
    /// The first `first` segments, and the free ones that removals need on a full disk, but no more than
    /// `most` segments if those in use are not more.
    ForRemoving { first: usize, most: usize },
}

impl Space {
    /// Bytes of the device with one segment more.
    pub fn one_more_bytes(&self) -> u64 {
        self.sizes.device_bytes(self.count() + 1)
    }

    /// Segments that are enough for the pages, the page table, the log and the owners. The device may grow
    /// again, so nothing is reserved for more.
    pub fn fewest(&self) -> usize {
        let inner = self.lock();
        let usable = |count: usize| {
            let map_bytes = inner.reserve().kept_for_map(inner.ledger.largest_of(count));
            inner.ledger.usable_of(count, map_bytes)
        };
        self.fewest_at(&inner, usable, COMPACTED_PERCENT)
    }

    /// The fewest segments that live and dirty pages fill to at most `percent` of their `usable` bytes.
    fn fewest_at(&self, inner: &Inner, usable: impl Fn(usize) -> u64, percent: u64) -> usize {
        let used_bytes = self.live_bytes() + inner.reservations.dirty_bytes + inner.reservations.wanted_bytes;
        let is_enough = |count: usize| usable(count) / 100 * percent >= used_bytes;
        // The reserve is of the largest size. So the first segment of a size adds less than it reserves.
        let small = self.sizes.small_count().min(inner.ledger.len());
        if let Some(enough) = (1..small).find(|count| is_enough(*count)) {
            return enough;
        }
        let (mut too_few, mut enough) = (small.saturating_sub(1), inner.ledger.len());
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            match is_enough(middle) {
                true => enough = middle,
                false => too_few = middle,
            }
        }
        enough
    }

    /// How many segments to keep when a checkpoint cuts the device's free end off, if that is worth it. The
    /// first `first` are kept in any case. Open segments do not count: they are closed first.
    pub fn worth_keeping(&self, first: usize) -> Option<usize> {
        let inner = self.lock();
        let all = self.sizes.device_bytes(inner.ledger.len());
        let fewest = self.fewest_at(&inner, |count| inner.usable_of(count), CHECKPOINT_PERCENT);
        let keep = fewest.max(inner.ledger.end_of_closed()).max(first);
        (self.sizes.device_bytes(keep) <= all - all / CUT_DIVISOR).then_some(keep)
    }

    /// Whether segments are in use so far after the first `keep` that moving their content is worth it, or
    /// some become free with a checkpoint or when the log moves.
    pub fn is_worth_compacting(&self, keep: usize) -> bool {
        let inner = self.lock();
        let used_bytes = self.sizes.device_bytes(inner.ledger.end_of_used());
        let least_bytes =
            (SEGMENTS_WORTH_IT * inner.ledger.largest_bytes()).min(used_bytes / WORTH_IT_DIVISOR);
        let tally = inner.ledger.tally();
        tally.pending > 0 || tally.log > 0 || used_bytes > self.sizes.device_bytes(keep) + least_bytes
    }

    /// Gives up the free segments at the device's end. Returns the bytes that the device then needs, if they
    /// are fewer.
    pub fn cut_tail(&self, leave: Leave) -> Option<u64> {
        let mut inner = self.lock();
        let (before, end_bytes) = (inner.ledger.len(), self.sizes.device_bytes(inner.ledger.len()));
        let has_left = |count: usize, kept_bytes: u64| {
            let cut_bytes = end_bytes - self.sizes.device_bytes(count);
            inner.ledger.tally().free >= kept_bytes + cut_bytes
        };
        let is_left = |count: usize| match leave {
            Leave::Nothing => true,
            Leave::ForWriting(first) => {
                count >= first && has_left(count, inner.reserve().kept_for_writing(count))
            }
            Leave::ForRemoving { first, most } => {
                let is_left = || has_left(count, inner.reserve().kept_for_removing(count));
                count >= most || count >= first && is_left()
            }
        };
        // The fewest, not the first from the end: with larger segments more is kept.
        let after = (inner.ledger.end_of_used()..before).find(|count| is_left(*count))?;
        while inner.ledger.len() > after && inner.ledger.pop_free() {}
        Some(self.sizes.device_bytes(inner.ledger.len()))
    }

    /// While a store is compacted, the page table counts as too long if any of it lies after this segment.
    pub fn set_ceiling(&self, ceiling: Option<usize>) {
        self.lock().ceiling = ceiling;
    }

    /// Bytes of the segments after the first `keep` ones that are not free.
    pub fn used_bytes_behind(&self, keep: usize) -> u64 {
        let inner = self.lock();
        let behind = inner.ledger.iter().skip(keep);
        let used = behind.filter(|(_, segment)| segment.state != SegmentState::Free);
        used.map(|(index, _)| self.sizes.length(index)).sum()
    }

    /// The segments that a compaction to `keep` segments empties next, the emptiest first: those after the
    /// first `keep`, and loose ones as long as there is too little room for the content of those. Live images
    /// in them take at most half of the free bytes.
    pub fn to_compact(&self, keep: usize, is_written: impl Fn(Range<u64>) -> bool) -> Vec<usize> {
        let inner = self.lock();
        let free_before =
            inner.ledger.free().take_while(|index| *index < keep).map(|index| self.sizes.length(index));
        let room_before: u64 = free_before.sum();
        let cleanable = || inner.ledger.iter().filter(|(_, segment)| segment.is_cleanable());
        let behind = cleanable().map(|(index, _)| index).filter(|index| *index >= keep);
        let is_crowded = room_before < behind.map(|index| self.live_bytes_of(index)).sum();
        let is_loose = |index: usize, segment: &Segment| {
            let percent = if segment.packed { LOOSE_PACKED_PERCENT } else { LOOSE_PERCENT };
            self.live_bytes_of(index) * 100 < self.sizes.length(index) * percent
        };
        let mut emptied: Vec<(u64, usize)> = cleanable()
            .filter(|(index, segment)| *index >= keep || is_crowded && is_loose(*index, segment))
            .filter(|(index, _)| is_written(self.range(*index)))
            .map(|(index, _)| (self.live_bytes_of(index) * 1000 / self.sizes.length(index), index))
            .collect();
        emptied.sort_unstable();
        let mut room = inner.ledger.tally().free.saturating_sub(inner.reserve().kept_for_checkpoint()) / 2;
        let fits = |(_, index): &(u64, usize)| {
            let live = self.live_bytes_of(*index);
            let fits = live <= room;
            room = room.saturating_sub(live);
            fits
        };
        emptied.into_iter().take_while(fits).map(|(_, index)| index).collect()
    }
}

impl Inner {
    /// Bytes that pages may fill if there were only `count` segments.
    fn usable_of(&self, count: usize) -> u64 {
        self.ledger.usable_of(count, self.reserve().reserved_with(self.ledger.largest_of(count)))
    }

    /// Whether some of the page table lies after the ceiling.
    pub(super) fn is_map_behind_ceiling(&self) -> bool {
        let Some(ceiling) = self.ceiling else { return false };
        self.ledger.iter().skip(ceiling).any(|(_, segment)| segment.state == SegmentState::Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Placement;
    use crate::segment::tests::layout;
    use crate::segment::{Stream, UnitSequence};

    const SEGMENTS: usize = 64;

    /// Segments of 256 KiB, all of them free, after 1 MiB.
    fn space() -> Space {
        let layout = layout(Placement::OutOfPlace);
        Space::new(&layout, layout.segments_start_bytes + SEGMENTS as u64 * layout.segment_bytes)
    }

    #[test]
    fn a_cut_leaves_what_removals_need_and_no_more_than_there_was_before() {
        let space = space();
        let cut = |first, most| {
            space.cut_tail(Leave::ForRemoving { first, most }).unwrap();
            space.count()
        };
        assert_eq!(cut(40, SEGMENTS), 40, "the first ones stay");
        let left = cut(0, SEGMENTS);
        assert!(left < 40 && space.room(0).to_remove, "{left}");
        assert_eq!(cut(0, left - 1), left - 1, "it is no longer than before");
        assert!(!space.room(0).to_remove, "one fewer is too few");
    }

    #[test]
    fn a_compaction_is_worth_it_if_much_lies_behind_or_becomes_free() {
        let space = space();
        assert!(!space.is_worth_compacting(0), "nothing is in use");
        let open = || space.open(Stream::Fresh, UnitSequence(1)).unwrap();
        (0..11).for_each(|_| _ = open());
        let last = open();
        // An eighth of 4 MiB is two segments.
        assert!(!space.is_worth_compacting(12) && !space.is_worth_compacting(10));
        assert!(space.is_worth_compacting(9));
        space.close(last, Stream::Fresh);
        assert!(space.is_worth_compacting(12), "a checkpoint frees a segment");

        let space = self::space();
        space.take_log(1).unwrap();
        assert!(space.is_worth_compacting(SEGMENTS), "the log may move");
    }
}
