//! Records without their pages: a cache of single records whose pages have left memory.
//!
//! A page stays in memory when any of its records is used. If frequently used keys lie among many others,
//! most of the memory is taken by records that are not used. Therefore a record that needed a page to be read
//! is also kept alone. As long as its page is in memory the copy is not used; when the page has left, the
//! next look-up finds the copy, in a twentieth of the memory.
//!
//! A copy always equals the record in the leaf: a change of a record in its leaf changes the copy before the
//! leaf's latch is released ([`RecordCache::amend`]), and a record that a reader has found is taken in only
//! if the leaf has not changed since ([`RecordCache::keep`]). Copies are never dirty, and any of them may be
//! dropped at any time.
//!
//! The memory is frames of the pool, each a sequence of records. There are several rings of frames, by the
//! keys' hashes, each with a lock of its own. The oldest frame becomes the newest, and of its records those
//! stay that were used since the frame was half as old. The pool's clock treats pages likewise, so the two
//! can be compared: from time to time memory moves to the one whose least recently used part saved more reads
//! ([`Records::balance`]). If records save few reads, because all keys are looked for equally often, they
//! take hardly any memory, and only one key in eight is taken in, to notice when that changes.

mod record;
mod ring;
#[cfg(test)]
mod tests;

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

use super::BUDGET_BYTES_MIN;
use super::frames::{Frame, Frames, META_BYTES};
use crate::class::class_bytes;
use crate::page::padded;
use record::{FRAME_BYTES, RecordPointer, record_bytes};
use ring::{Found, Ring};

/// Size class of the frames.
const CLASS: usize = 0;

/// With key and value; larger ones are not worth it, as few of them share a page.
const RECORD_BYTES_MAX: u32 = FRAME_BYTES / 4;

/// Most rings, and how many frames each may have at least, but for a single one.
const RINGS_MAX: u64 = 64;
const FRAMES_PER_RING: u64 = 16;

/// The least and the largest part of the budget that records take.
const RECORDS_MIN_DIVISOR: u64 = 64;
const RECORDS_MAX_DIVISOR: u64 = 2;

/// Frames of a ring.
const RING_FRAMES_MIN: u64 = 2;

/// Memory is moved between records and pages by this part of the budget, after twice as many frames have
/// turned: slowly enough for the tails to follow.
const STEP_DIVISOR: u64 = 128;

/// The least recently used part of the records, and of the pages; their use is judged by it.
pub(super) const TAIL_DIVISOR: u64 = 16;

/// Records get more memory from `MORE_FROM` times the pages' use on, and less below `LESS_BELOW` times it.
const MORE_FROM: f64 = 1.1;
const LESS_BELOW: f64 = 0.9;

/// Their use is the mean of about this number of balances.
const BALANCES: f64 = 4.0;

/// While records have the least memory, one key in `TRIED_ONE_IN` is taken in.
const TRIED_ONE_IN: u64 = 8;

/// A key of a tree.
#[derive(Clone, Copy)]
pub(crate) struct RecordKey<'a> {
    /// No two trees have the same.
    pub tree: u64,
    /// Of the key, and the tree; its high bits are the best.
    pub hash: u64,
    pub key: &'a [u8],
}

/// See the module.
pub(super) struct Records {
    /// None if the budget is too small.
    rings: Box<[Padded]>,
    /// Frames of the whole budget, and the least and the most that records have.
    budget_frames: u64,
    frames_min: u64,
    frames_max: u64,
    /// Frames that all rings together should have.
    target: AtomicU64,
    /// Frames that have become the newest, of all rings.
    turns: AtomicU64,
    /// Frames that records take, places included.
    frames: AtomicU64,
    /// Pages of the clock's tail that were not used so far, less those of them that were not used in the end:
    /// those that were, since the last balance.
    pages_saved: AtomicI64,
    saved: Mutex<Saved>,
}

/// Reads that the tails have saved lately, for each frame of them.
#[derive(Clone, Copy, Default)]
struct Saved {
    by_records: f64,
    by_pages: f64,
}

#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Ring>);

impl Padded {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames that a budget has.
fn frames_of(budget_bytes: u64) -> u64 {
    budget_bytes / (class_bytes(CLASS) + META_BYTES)
}

impl Records {
    /// Of a pool with that budget.
    pub fn new(budget_bytes: u64) -> Self {
        let budget_frames = frames_of(budget_bytes);
        // Twice the smallest budget is left to pages.
        let beyond_need = budget_frames.saturating_sub(2 * frames_of(BUDGET_BYTES_MIN));
        let frames_max = (budget_frames / RECORDS_MAX_DIVISOR).min(beyond_need);
        let rings = frames_max.div_ceil(FRAMES_PER_RING).min(RINGS_MAX);
        Self {
            rings: (0..rings).map(|_| Padded::default()).collect(),
            budget_frames,
            frames_min: (budget_frames / RECORDS_MIN_DIVISOR).min(frames_max),
            frames_max,
            target: AtomicU64::new(frames_max / 8),
            turns: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            pages_saved: AtomicI64::new(0),
            saved: Mutex::default(),
        }
    }

    /// Whether records with this hash are taken in.
    #[inline]
    fn takes(&self, hash: u64) -> bool {
        self.target.load(Ordering::Relaxed) > self.frames_min || hash.is_multiple_of(TRIED_ONE_IN)
    }

    fn ring(&self, hash: u64) -> Option<MutexGuard<'_, Ring>> {
        self.rings.get(((hash >> 32) as usize * self.rings.len()) >> 32).map(Padded::lock)
    }

    /// Of the pages in the tail of the clock, `cooling` were not used so far; of those that came to its end,
    /// `left` were not.
    #[inline]
    pub fn note_pages(&self, cooling: usize, left: usize) {
        self.pages_saved.fetch_add(cooling as i64 - left as i64, Ordering::Relaxed);
    }

    /// Bytes of the budget that records take.
    pub fn bytes(&self) -> u64 {
        self.frames.load(Ordering::Relaxed) * (class_bytes(CLASS) + META_BYTES)
    }

    /// How often a record was found here.
    pub fn hits(&self) -> u64 {
        self.rings.iter().map(|ring| ring.lock().hits).sum()
    }

    /// Moves memory between records and pages, to where the tail was of more use: where more reads of the
    /// device were saved for each frame of it.
    fn balance(&self) {
        let (mut saved, mut tail) = (0, 0);
        for ring in &self.rings {
            let mut ring = ring.lock();
            saved += std::mem::take(&mut ring.saved);
            tail += ring.tail();
        }
        let pages_saved = self.pages_saved.swap(0, Ordering::Relaxed);
        let pages_tail =
            self.budget_frames.saturating_sub(self.frames.load(Ordering::Relaxed)) / TAIL_DIVISOR;
        let mut lately = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let gain = |lately: &mut f64, now: f64| *lately += (now - *lately) / BALANCES;
        gain(&mut lately.by_records, saved as f64 / tail.max(1) as f64);
        gain(&mut lately.by_pages, pages_saved as f64 / pages_tail.max(1) as f64);
        let Saved { by_records, by_pages } = *lately;
        let step = (self.budget_frames / STEP_DIVISOR).max(1);
        let target = self.target.load(Ordering::Relaxed);
        let target = if by_records > by_pages * MORE_FROM {
            target + step
        } else if by_records < by_pages * LESS_BELOW {
            target.saturating_sub(step)
        } else {
            target
        };
        self.target.store(target.clamp(self.frames_min, self.frames_max), Ordering::Relaxed);
    }
}

/// The records, with the frames that their memory is taken from.
#[derive(Clone, Copy)]
pub(crate) struct RecordCache<'a> {
    records: &'a Records,
    frames: &'a Frames,
}

impl<'a> RecordCache<'a> {
    pub(super) fn new(records: &'a Records, frames: &'a Frames) -> Self {
        Self { records, frames }
    }

    /// Appends the value of a record to `into`, if it is known without its page.
    pub fn recall(&self, of: &RecordKey<'_>, into: &mut Vec<u8>) -> bool {
        if !self.records.takes(of.hash) {
            return false;
        }
        let Some(mut ring) = self.records.ring(of.hash) else { return false };
        let Some(Found { record, is_in_tail, .. }) = ring.find(self.frames, of) else { return false };
        record.copy_value(into);
        ring.hits += 1;
        if !record.is_used() {
            record.set_used(true);
            ring.saved += u64::from(is_in_tail);
        }
        true
    }

    /// Takes in a record whose page had to be loaded, if `is_valid` says that its leaf has not changed since
    /// `value` was read of it.
    pub fn keep(&self, of: &RecordKey<'_>, value: &[u8], is_valid: impl Fn() -> bool) {
        let bytes = record_bytes(of.key.len() as u32, value.len() as u32);
        if bytes > RECORD_BYTES_MAX || !self.records.takes(of.hash) {
            return;
        }
        preempt!();
        let Some(mut ring) = self.records.ring(of.hash) else { return };
        if ring.find(self.frames, of).is_some() || !self.grow_index(&mut ring) {
            return;
        }
        let has_turned = !ring.has_room(bytes);
        if has_turned {
            self.make_room(&mut ring);
        }
        // Validated with the ring's lock held: a later change of the leaf changes this copy, too.
        if ring.has_room(bytes) && is_valid() {
            ring.append(self.frames, of, value);
        }
        drop(ring);
        let turns = self.records.turns.fetch_add(has_turned.into(), Ordering::Relaxed);
        if has_turned && turns.is_multiple_of((2 * self.records.budget_frames / STEP_DIVISOR).max(1)) {
            self.records.balance();
        }
    }

    /// The record has this value in its leaf now, or is not there any more. Called with the leaf's latch, on
    /// each change of the record.
    #[inline]
    pub fn amend(&self, of: &RecordKey<'_>, value: Option<&[u8]>) {
        let Some(ring) = self.records.ring(of.hash) else { return };
        let Some(Found { slot, record, .. }) = ring.find(self.frames, of) else { return };
        if planted!(RecordNotAmended) {
            return;
        }
        // A shorter value would leave a gap, which a walk through the frame would take for a record.
        let fits = |value: &&[u8]| padded(value.len() as u32) == padded(record.lengths().1);
        match value.filter(fits) {
            Some(value) => record.set_value(value),
            None => slot.set(RecordPointer::NONE),
        }
    }

    /// A frame, if one is free: nothing here is worth waiting for.
    fn take_frame(&self) -> Option<Frame> {
        let frame = self.frames.take(CLASS)?;
        self.frames.note_demand(class_bytes(CLASS));
        self.records.frames.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Doubles the places if they are few for the ring's frames. Returns whether there are any.
    fn grow_index(&self, ring: &mut Ring) -> bool {
        if ring.has_places() {
            return true;
        }
        let wanted = (ring.index.len() * 2).max(1);
        let index: Vec<Frame> = (0..wanted).map_while(|_| self.take_frame()).collect();
        let is_more = index.len() == wanted;
        let unused = if is_more { ring.move_places(self.frames, index) } else { index };
        self.give_frames_back(&unused);
        !ring.index.is_empty()
    }

    /// Takes memory from records for a while, for a caller that finds no memory, or whose descent is evicted
    /// while it goes on. It returns whether records had some.
    pub fn give_up(&self) -> bool {
        let target = self.records.target.load(Ordering::Relaxed);
        self.records.target.store(target.saturating_sub(1).max(self.records.frames_min), Ordering::Relaxed);
        let oldest = self.records.rings.iter().find_map(|ring| ring.lock().take_oldest());
        oldest.inspect(|frame| self.give_frames_back(&[*frame])).is_some()
    }

    fn give_frames_back(&self, frames: &[Frame]) {
        let before = self.records.frames.fetch_sub(frames.len() as u64, Ordering::Relaxed);
        debug_assert!(before >= frames.len() as u64, "records give back more frames than they have");
        self.frames.give_back(frames);
    }

    /// Makes another frame the newest one of a ring.
    fn make_room(&self, ring: &mut Ring) {
        let Records { target, rings, .. } = self.records;
        let target = (target.load(Ordering::Relaxed) / rings.len() as u64).max(RING_FRAMES_MIN);
        let has = ring.frames.len() as u64;
        // While a ring grows, its records get older all the same.
        let may_grow = has < RING_FRAMES_MIN || has < target && !(ring.first + has).is_multiple_of(4);
        if may_grow && let Some(frame) = self.take_frame() {
            return ring.grow(self.frames, frame);
        }
        if has > target
            && let Some(oldest) = ring.take_oldest()
        {
            self.give_frames_back(&[oldest]);
        }
        ring.turn(self.frames);
    }
}
