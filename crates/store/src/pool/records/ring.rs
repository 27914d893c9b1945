//! A ring of frames with records: the oldest frame becomes the newest, and keeps those of its records that
//! were used lately.

use std::collections::VecDeque;

use super::record::{FRAME_BYTES, HEADER_BYTES, PointerSlot, Record, RecordPointer, end_at, records};
use super::{RECORD_BYTES_MAX, RecordKey, TAIL_DIVISOR};
use crate::page::Page;
use crate::pool::frames::{Frame, Frames};

/// Upper bound for the records that stay when a frame becomes the newest: there must be room for another
/// record.
const STAYING_BYTES_MAX: u32 = FRAME_BYTES - 2 * RECORD_BYTES_MAX;

/// Percent of a ring's places that are in use before it gets more: few buckets are full until then.
const PLACES_USED_MAX_PERCENT: u64 = 60;

/// Places that may have a record, by its hash.
const BUCKET: u32 = 8;
const PLACES_PER_FRAME: u64 = FRAME_BYTES as u64 / 8;
const BUCKETS_PER_FRAME: u64 = PLACES_PER_FRAME / BUCKET as u64;

/// See the module.
#[derive(Default)]
pub(super) struct Ring {
    /// The oldest first.
    pub frames: VecDeque<Frame>,
    /// The number of the oldest one.
    pub first: u64,
    /// Bytes of the newest one that are used.
    end: u32,
    /// Places; none as long as there are no records. One whose frame has left the ring is as good as none.
    pub index: Vec<Frame>,
    /// Bytes of a record, about.
    mean_bytes: u32,
    pub hits: u64,
    /// First uses of records in the tail since the last balance.
    pub saved: u64,
}

/// A record that is there.
pub(super) struct Found<'a> {
    /// The slot of its pointer.
    pub slot: PointerSlot<'a>,
    pub record: Record<'a>,
    /// Whether its frame is among the oldest.
    pub is_in_tail: bool,
}

impl Ring {
    /// Takes the oldest frame out.
    pub fn take_oldest(&mut self) -> Option<Frame> {
        let oldest = self.frames.pop_front()?;
        self.first += 1;
        Some(oldest)
    }

    /// The number of the newest frame, which exists.
    fn newest_number(&self) -> u64 {
        self.first + self.frames.len() as u64 - 1
    }

    fn page<'a>(&self, frames: &'a Frames, number: u64) -> Option<Page<'a>> {
        let index = number.checked_sub(self.first)?;
        self.frames.get(index as usize).map(|frame| frames.page(*frame))
    }

    /// The slots of a hash; none as long as there was no record.
    fn bucket<'a>(&self, frames: &'a Frames, hash: u64) -> impl Iterator<Item = PointerSlot<'a>> + use<'a> {
        let bucket = (hash >> 40) % (self.index.len().max(1) as u64 * BUCKETS_PER_FRAME);
        let page = self.index.get((bucket / BUCKETS_PER_FRAME) as usize).map(|frame| frames.page(*frame));
        let start = (bucket % BUCKETS_PER_FRAME) as u32 * 8 * BUCKET;
        page.into_iter()
            .flat_map(move |page| (0..BUCKET).map(move |slot| PointerSlot { page, offset: start + 8 * slot }))
    }

    pub fn find<'a>(&self, frames: &'a Frames, of: &RecordKey<'_>) -> Option<Found<'a>> {
        self.bucket(frames, of.hash).find_map(|slot| {
            let place = Some(slot.get()).filter(|place| place.may_have(of.hash))?;
            let number = place.number();
            let record = Record { page: self.page(frames, number)?, offset: place.offset() };
            record.is(of).then_some(Found { slot, record, is_in_tail: number - self.first < self.tail() })
        })
    }

    /// The slot for a new record's pointer: an empty one, or that of the oldest record.
    fn slot<'a>(&self, frames: &'a Frames, hash: u64) -> Option<PointerSlot<'a>> {
        self.bucket(frames, hash).min_by_key(|slot| match slot.get().number() {
            gone if gone < self.first => 0,
            number => number,
        })
    }

    /// Frames of the tail.
    pub fn tail(&self) -> u64 {
        (self.frames.len() as u64 / TAIL_DIVISOR).max(1)
    }

    /// The oldest frame becomes the newest, with those of its records that were used lately.
    pub fn turn(&mut self, frames: &Frames) {
        let half = self.frames.get(self.frames.len() / 2).map(|frame| frames.page(*frame));
        half.into_iter().flat_map(records).for_each(|record| record.set_used(false));
        let gone = self.first;
        let Some(oldest) = self.take_oldest() else { return };
        self.frames.push_back(oldest);
        let number = self.newest_number();
        let page = frames.page(oldest);
        self.end = 0;
        let mut next = 0;
        while let Some(record) = Record::at(page, next) {
            let (bytes, hash) = (record.bytes(), record.hash());
            let stays = record.is_used() && self.end + bytes <= STAYING_BYTES_MAX;
            let own = RecordPointer::new(hash, gone, next);
            next += bytes;
            if let Some(slot) = self.bucket(frames, hash).find(|slot| stays && slot.get() == own) {
                record.set_used(false);
                page.shift(record.offset, self.end, bytes);
                slot.set(RecordPointer::new(hash, number, self.end));
                self.end += bytes;
            }
        }
        end_at(page, self.end);
    }

    /// Takes a frame in as the newest one.
    pub fn grow(&mut self, frames: &Frames, frame: Frame) {
        if self.frames.is_empty() {
            // Zero is no frame's number.
            self.first = self.first.max(1);
        }
        if self.mean_bytes == 0 {
            self.mean_bytes = RECORD_BYTES_MAX / 4;
        }
        self.frames.push_back(frame);
        self.end = 0;
        end_at(frames.page(frame), 0);
    }

    /// Puts a record into the newest frame, which has room.
    pub fn append(&mut self, frames: &Frames, of: &RecordKey<'_>, value: &[u8]) {
        let (Some(newest), Some(slot)) = (self.frames.back(), self.slot(frames, of.hash)) else { return };
        let (page, offset) = (frames.page(*newest), self.end);
        let record = Record::put(page, offset, of, value);
        self.end += record.bytes();
        self.mean_bytes = (self.mean_bytes * 15 + record.bytes()) / 16;
        end_at(page, self.end);
        slot.set(RecordPointer::new(of.hash, self.newest_number(), offset));
    }

    /// Keeps all places in other frames, and gives those that they were in.
    pub fn move_places(&mut self, frames: &Frames, index: Vec<Frame>) -> Vec<Frame> {
        for page in index.iter().map(|frame| frames.page(*frame)) {
            (0..FRAME_BYTES).step_by(8).for_each(|at| page.set_long(at, 0));
        }
        let mut kept = Vec::new();
        for (number, frame) in (self.first..).zip(&self.frames) {
            for record in records(frames.page(*frame)) {
                let (hash, own) = (record.hash(), RecordPointer::new(record.hash(), number, record.offset));
                if self.bucket(frames, hash).any(|slot| slot.get() == own) {
                    kept.push((hash, own));
                }
            }
        }
        let before = std::mem::replace(&mut self.index, index);
        for (hash, own) in kept {
            if let Some(slot) = self.slot(frames, hash) {
                slot.set(own);
            }
        }
        before
    }

    /// Whether there are enough places for its records.
    pub fn has_places(&self) -> bool {
        let bytes = self.frames.len() as u64 * u64::from(FRAME_BYTES);
        let records = bytes / u64::from(self.mean_bytes.max(HEADER_BYTES));
        let places = self.index.len() as u64 * PLACES_PER_FRAME;
        places > 0 && records * 100 <= places * PLACES_USED_MAX_PERCENT
    }

    pub fn has_room(&self, bytes: u32) -> bool {
        !self.frames.is_empty() && self.end + bytes <= FRAME_BYTES
    }
}
