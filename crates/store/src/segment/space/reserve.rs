//! Free segments that one stream of images must leave to others.

use super::ledger::Ledger;
use crate::layout::Layout;
use crate::segment::Stream;
use crate::segment::policy::TARGETS;

/// Segments that only the page table may take, besides those that it needs when it is written as a whole:
/// without it no checkpoint can be completed, and nothing becomes free.
const RESERVED_FOR_MAP: u64 = 2;

/// Segments for the pages of a checkpoint. Segments that the cleaner has emptied become free only with the
/// checkpoint.
const RESERVED_FOR_CHECKPOINT: u64 = 1;

/// Segments that the cleaner may take as well, for the images that it moves, before it has won any.
const RESERVED_FOR_CLEANER: u64 = 4;

/// Units that it may take at least, in a store whose segments all have few units.
const UNITS_FOR_CLEANER: u64 = 16;

/// With no more free segments than these and those that are kept from the cleaner, it chooses the emptiest
/// segments, whatever their age, so that each wins more than it costs.
const EMERGENCY: u64 = RESERVED_FOR_CLEANER / 2;

/// Room is short if no more segments than these are free beyond the reserve.
const NEAR: u64 = 4;

/// Writers check for room before every commit if no more than those are free, or than these bytes, which a
/// few commits between two checks may make dirty however small segments are.
const NEAR_BYTES_MIN: u64 = 4 << 20;

/// Bytes that the cleaner may take at least. Removals take them before they make room, and dirty as many
/// pages however small segments are. Segments of a store that grows become large enough.
pub(super) fn cleaner_bytes_min(layout: &Layout) -> u64 {
    let units = layout.segment_bytes / u64::from(layout.unit_bytes);
    match RESERVED_FOR_CLEANER * units < UNITS_FOR_CLEANER {
        true => UNITS_FOR_CLEANER * u64::from(layout.unit_bytes),
        false => 0,
    }
}

/// Bytes of free segments that will be needed, by purpose.
#[derive(Default)]
pub(super) struct Reservations {
    /// See [`cleaner_bytes_min`].
    pub cleaner_bytes_min: u64,
    /// A checkpoint is writing pages, which may take from the reserve.
    pub checkpointing: bool,
    /// It is known which pages these are.
    pub is_cut: bool,
    /// Checkpoints that have failed one after the other, with no commit in between, in a store without a log.
    pub checkpoints_failed: u32,
    /// Bytes that the page table needs when it is written as a whole.
    pub map_bytes: u64,
    /// Dirty bytes in memory at the last check: they must find room before a checkpoint makes segments free.
    pub dirty_bytes: u64,
    /// Bytes for overflow values that are going to be written, or are being written.
    pub wanted_bytes: u64,
    /// Bytes of the segments that cleaners go through.
    pub walked_bytes: u64,
    /// Bytes that owners of segments need for their memtables, and for the merges that follow.
    pub owners_bytes: u64,
    /// The part of them that flushes need, if no checkpoint is made without these; otherwise 0.
    pub flush_bytes: u64,
    /// Merges of owners that are running, which may make segments free.
    pub owners_at_work: u32,
}

/// The reservations, and the segments that they are made on.
pub(super) struct Reserve<'a> {
    pub ledger: &'a Ledger,
    pub reservations: &'a Reservations,
}

impl Reserve<'_> {
    /// Bytes of free segments that this stream must leave to others.
    pub fn kept_from(&self, stream: Stream) -> u64 {
        let largest_bytes = self.ledger.largest_bytes();
        match stream {
            Stream::Map => 0,
            // With nothing dirty and nothing pending, no checkpoint can help: the cleaner may take nearly all
            // of the reserve.
            Stream::Moved if self.reservations.dirty_bytes == 0 && self.ledger.tally().pending == 0 => {
                largest_bytes
            }
            // Without a log, a checkpoint frees nothing before owners have written all that they have in
            // memory.
            Stream::Moved if self.reservations.flush_bytes > 0 => {
                self.kept_for_checkpoint() + self.kept_for_owners()
            }
            Stream::Moved => self.kept_for_checkpoint(),
            Stream::Fresh if !self.reservations.checkpointing => self.reserved(),
            // Pages that change after a checkpoint's cut leave it the room that it may need: commits under
            // way change any number of them, again and again in a small cache.
            Stream::Fresh if self.reservations.is_cut => self.kept_for_checkpoint(),
            // A short page table has room in one segment. Pages may take the other one: the checkpoint frees
            // pending segments, which without it would stay so for ever.
            Stream::Fresh | Stream::Awaited if self.lends_of_map() => largest_bytes,
            Stream::Fresh | Stream::Awaited => RESERVED_FOR_MAP * largest_bytes,
            // No checkpoint waits for a value whose commit is not logged yet, or for an owner, so they never
            // take the room that one may need.
            Stream::Overflow => self.kept_from_commits(),
            Stream::Owned => self.kept_from_commits() - self.kept_for_owners(),
        }
    }

    /// Whether pages of a checkpoint may take one of the page table's segments.
    fn lends_of_map(&self) -> bool {
        self.ledger.tally().pending > 0 && self.reservations.map_bytes <= self.ledger.largest_bytes() / 2
    }

    /// Bytes reserved for writing the page table as a whole.
    pub fn kept_for_map(&self, largest_bytes: u64) -> u64 {
        let more = self.reservations.map_bytes.next_multiple_of(largest_bytes).saturating_sub(largest_bytes);
        RESERVED_FOR_MAP * largest_bytes + more
    }

    /// Bytes reserved for dirty pages.
    pub fn kept_for_dirty(&self) -> u64 {
        self.ledger.whole_above(self.reservations.dirty_bytes)
    }

    /// Bytes that a checkpoint may need.
    pub fn kept_for_checkpoint(&self) -> u64 {
        self.kept_for_checkpoint_with(self.ledger.largest_bytes())
    }

    /// The same if the largest segment had `largest_bytes`.
    fn kept_for_checkpoint_with(&self, largest_bytes: u64) -> u64 {
        self.kept_for_map(largest_bytes) + RESERVED_FOR_CHECKPOINT * largest_bytes + self.kept_for_dirty()
    }

    /// The reserve: bytes that pages may not take that become dirty now. It does not include the bytes for
    /// pages that are dirty already.
    pub fn reserved(&self) -> u64 {
        self.reserved_with(self.ledger.largest_bytes())
    }

    /// The reserve if the largest segment had `largest_bytes`.
    pub fn reserved_with(&self, largest_bytes: u64) -> u64 {
        let for_checkpoint = RESERVED_FOR_CHECKPOINT * largest_bytes;
        let for_cleaner = (RESERVED_FOR_CLEANER * largest_bytes).max(self.reservations.cleaner_bytes_min);
        self.kept_for_map(largest_bytes) + for_checkpoint + for_cleaner + self.kept_for_owners()
    }

    /// Bytes that owners have reserved, with those of the open segments of pages; 0 without reservations.
    pub fn kept_for_owners(&self) -> u64 {
        match self.reservations.owners_bytes {
            0 => 0,
            bytes => bytes + self.kept_for_targets(),
        }
    }

    /// An open segment of each target, as far as there are pages for them: these cannot be cleaned.
    pub fn kept_for_targets(&self) -> u64 {
        let largest_bytes = self.ledger.largest_bytes();
        let of_pages = self.ledger.bytes_of_pages() - self.ledger.tally().free;
        of_pages.min(TARGETS as u64 * largest_bytes)
    }

    /// Bytes that small commits must leave: the reserve, and room for dirty pages.
    pub fn kept_from_commits(&self) -> u64 {
        self.reserved() + self.kept_for_dirty()
    }

    /// Bytes that all other writers must leave: those, and room for overflow values.
    pub fn kept_from_all(&self) -> u64 {
        self.kept_from_commits() + self.reservations.wanted_bytes
    }

    /// Whether few segments are free beyond the reserve.
    pub fn is_near(&self) -> bool {
        self.ledger.tally().free <= self.kept_from_commits() + NEAR * self.ledger.largest_bytes()
    }

    /// Whether free segments are so scarce that writers check before every commit.
    pub fn is_near_for_commits(&self) -> bool {
        let near_bytes = (NEAR * self.ledger.largest_bytes()).max(NEAR_BYTES_MIN);
        self.ledger.tally().free <= self.kept_from_commits() + near_bytes
    }

    /// Free bytes that keep writers from waiting, if there were only `count` segments.
    pub fn kept_for_writing(&self, count: usize) -> u64 {
        let largest_bytes = self.ledger.largest_of(count);
        let Reservations { dirty_bytes, wanted_bytes, .. } = self.reservations;
        self.reserved_with(largest_bytes) + dirty_bytes + wanted_bytes + NEAR * largest_bytes
    }

    /// Free bytes that keep removals from being refused, if there were only `count` segments.
    pub fn kept_for_removing(&self, count: usize) -> u64 {
        let largest_bytes = self.ledger.largest_of(count);
        self.kept_for_checkpoint_with(largest_bytes) + largest_bytes
    }

    /// Whether the stream may take one more segment.
    pub fn can_open(&self, stream: Stream) -> bool {
        self.ledger.has_free_beside(self.kept_from(stream))
    }

    /// Whether a merge of an owner may take one more segment: it leaves those that flushes need.
    pub fn can_merge(&self) -> bool {
        self.ledger.has_free_beside(self.kept_from(Stream::Owned) + self.reservations.flush_bytes)
    }

    /// Whether the live images of one more segment have room elsewhere. Only as many segments are cleaned at
    /// a time as there are free segments to move their images to, or none might be finished.
    pub fn can_clean(&self) -> bool {
        self.ledger.has_free_beside(self.kept_from(Stream::Moved) + self.reservations.walked_bytes)
    }

    /// Whether free segments are so scarce that the emptiest ones are cleaned.
    pub fn is_emergency(&self) -> bool {
        self.ledger.tally().free <= self.kept_for_checkpoint() + EMERGENCY * self.ledger.largest_bytes()
    }
}
