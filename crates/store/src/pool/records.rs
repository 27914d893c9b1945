//! Records without their pages: what was read of a page that had to be loaded for it.
//!
//! A page stays in memory when one of its records is used, and the others with it. Where keys that are used often lie among many that are not, most of the memory is then taken by records that nobody
//! asks for. So what had to be read from the device for the sake of one record is kept, too, as that record alone: as long as its page is in memory nobody looks here, and when the page has left, whoever asks for the
//! record again finds it here, in a twentieth of the memory.
//!
//! What is here is what the leaf has, always: who changes a record in its leaf changes it here before he gives the leaf's latch back ([`Pool::amend_record`]), and what a reader has found is taken in only if the leaf
//! has not changed since ([`Pool::keep_record`]). Nothing here is dirty, and nothing depends on what is here: any record may be forgotten at any time.
//!
//! The memory is frames of the pool, each a row of records. Several rings of frames, by the keys' hashes, each under a lock of its own; the oldest frame becomes the newest, and of its records those stay that were
//! used since the frame was half as old. That is what the pool's clock does with pages, so that both can be compared: each time the frames have turned for a while, memory goes to where the least recently used part of
//! it was of more use ([`Records::balance`]). If records are of little use, as where all keys are looked for as often, they take next to nothing, and only one key in eight is taken in, to see whether that changes.
//!
//! ```text
//! record    0       8      16           18             20     24
//!           | tree  | hash | key length | value length | used | key, value, zeros up to a multiple of eight
//!           | u64   | u64  | u16        | u16          | u32  |
//!
//! place     63..48      47..39       38..0
//!           | of hash  | offset / 8 | the frame's number in its ring, from 1 on
//! ```
//!
//! A key length of zero ends a frame. Places are kept in buckets of eight, by the hash; one whose frame has left its ring is as good as none.

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;

use super::frames::{Frame, Frames, META_BYTES, SMALLEST_PAGE_BYTES, class_bytes};
use super::{LEAST_BUDGET_BYTES, Pool};
use crate::page::{Page, padded};

/// Size class of the frames.
const CLASS: usize = 0;
const FRAME_BYTES: u32 = SMALLEST_PAGE_BYTES as u32;
const HEADER_BYTES: u32 = 24;

/// With key and value; larger ones are not worth it, as few of them share a page.
const RECORD_BYTES_MAX: u32 = FRAME_BYTES / 4;

/// What the records of a frame may take that stay when it becomes the newest: there must be room for another one.
const STAYING_BYTES_MAX: u32 = FRAME_BYTES / 2;

/// Percent of a ring's places that are in use before it gets more: few buckets are full until then.
const PLACES_USED_MAX_PERCENT: u64 = 60;

/// Most rings, and how many frames of the budget there are for each at least.
const RINGS_MAX: u64 = 64;
const FRAMES_PER_RING: u64 = 16;

/// The least and the largest part of the budget that records take.
const LEAST_SHARE: u64 = 64;
const LARGEST_SHARE: u64 = 2;

/// Frames of a ring.
const LEAST_FRAMES: u64 = 2;

/// Memory is moved between records and pages by this part of the budget, after twice as many frames have turned: slowly enough for the tails to follow.
const STEP_SHARE: u64 = 128;

/// The least recently used part of the records, and of the pages, by which their use is judged.
pub(super) const TAIL_SHARE: u64 = 16;

/// Records get more memory from so many times the pages' use on, and less below so many times it.
const MORE_FROM: f64 = 1.1;
const LESS_BELOW: f64 = 0.9;

/// Their use is the mean of about so many balances.
const BALANCES: f64 = 4.0;

/// While records have the least memory, one key in so many is taken in.
const TRIED_ONE_IN: u64 = 8;

const BUCKET: u32 = 8;
const PLACES_PER_FRAME: u64 = FRAME_BYTES as u64 / 8;
const BUCKETS_PER_FRAME: u64 = PLACES_PER_FRAME / BUCKET as u64;

const NUMBER_BITS: u32 = 39;
const TAG_SHIFT: u32 = 48;

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
    /// Frames that all rings together should have.
    target: AtomicU64,
    least: u64,
    /// Frames that have become the newest, of all rings.
    turns: AtomicU64,
    /// Frames that records take, places included.
    frames: AtomicU64,
    /// Pages of the clock's tail that were not used so far, less those of them that were not used in the end: those that were, since the last balance.
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

/// Frames with records.
#[derive(Default)]
struct Ring {
    /// The oldest first.
    frames: VecDeque<Frame>,
    /// The number of the oldest one.
    first: u64,
    /// Bytes of the newest one that are used.
    end: u32,
    /// Places; none as long as there are no records.
    index: Vec<Frame>,
    /// Bytes of a record, about.
    mean_bytes: u32,
    hits: u64,
    /// First uses of records in the tail since the last balance.
    saved: u64,
}

/// Where a record is, and where its place is kept.
struct Found<'a> {
    slot: Slot<'a>,
    page: Page<'a>,
    offset: u32,
    number: u64,
}

/// Where a place is kept.
#[derive(Clone, Copy)]
struct Slot<'a> {
    page: Page<'a>,
    offset: u32,
}

impl Slot<'_> {
    fn get(self) -> u64 {
        self.page.long(self.offset)
    }

    fn set(self, place: u64) {
        self.page.set_long(self.offset, place);
    }
}

fn place(hash: u64, number: u64, offset: u32) -> u64 {
    tag(hash) << TAG_SHIFT | u64::from(offset / 8) << NUMBER_BITS | number
}

fn tag(hash: u64) -> u64 {
    hash >> 24 & 0xffff
}

fn number_of(place: u64) -> u64 {
    place & ((1 << NUMBER_BITS) - 1)
}

fn offset_of(place: u64) -> u32 {
    (place >> NUMBER_BITS) as u32 % (FRAME_BYTES / 8) * 8
}

/// Bytes of a record in a frame.
fn record_bytes(key_bytes: u32, value_bytes: u32) -> u32 {
    (HEADER_BYTES + padded(key_bytes) + padded(value_bytes)).next_multiple_of(8)
}

/// A record in a frame.
#[derive(Clone, Copy)]
struct Record<'a> {
    page: Page<'a>,
    offset: u32,
}

impl<'a> Record<'a> {
    /// The one at an offset, if there is one.
    fn at(page: Page<'a>, offset: u32) -> Option<Self> {
        let record = Self { page, offset };
        (offset + HEADER_BYTES <= FRAME_BYTES && record.lengths().0 > 0).then_some(record)
    }

    fn lengths(self) -> (u32, u32) {
        let (key, value) = self.page.halves(self.offset + 16);
        (key.into(), value.into())
    }

    fn bytes(self) -> u32 {
        let (key, value) = self.lengths();
        record_bytes(key, value)
    }

    fn hash(self) -> u64 {
        self.page.long(self.offset + 8)
    }

    fn is(self, of: &RecordKey<'_>) -> bool {
        let (key, _) = self.lengths();
        self.hash() == of.hash
            && self.page.long(self.offset) == of.tree
            && self.page.compare(self.offset + HEADER_BYTES, key, of.key).is_eq()
    }

    fn value_offset(self) -> u32 {
        self.offset + HEADER_BYTES + padded(self.lengths().0)
    }

    fn is_used(self) -> bool {
        self.page.word(self.offset + 20) != 0
    }

    fn set_used(self, used: bool) {
        self.page.set_word(self.offset + 20, used.into());
    }

    fn set_value(self, value: &[u8]) {
        let (key, _) = self.lengths();
        self.page.set_halves(self.offset + 16, key as u16, value.len() as u16);
        self.page.copy_from(self.value_offset(), value);
    }
}

/// The records of a frame, from its beginning to its end.
fn records(page: Page<'_>) -> impl Iterator<Item = Record<'_>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let record = Record::at(page, offset)?;
        offset += record.bytes();
        Some(record)
    })
}

/// No record follows.
fn end_at(page: Page<'_>, offset: u32) {
    if offset + HEADER_BYTES <= FRAME_BYTES {
        page.set_halves(offset + 16, 0, 0);
    }
}

impl Ring {
    fn page<'a>(&self, frames: &'a Frames, number: u64) -> Option<Page<'a>> {
        let index = number.checked_sub(self.first)?;
        self.frames.get(index as usize).map(|frame| frames.page(*frame))
    }

    /// The slots of a hash; none as long as there was no record.
    fn bucket<'a>(&self, frames: &'a Frames, hash: u64) -> impl Iterator<Item = Slot<'a>> + use<'a> {
        let bucket = (hash >> 40) % (self.index.len().max(1) as u64 * BUCKETS_PER_FRAME);
        let page = self.index.get((bucket / BUCKETS_PER_FRAME) as usize).map(|frame| frames.page(*frame));
        let start = (bucket % BUCKETS_PER_FRAME) as u32 * 8 * BUCKET;
        page.into_iter()
            .flat_map(move |page| (0..BUCKET).map(move |slot| Slot { page, offset: start + 8 * slot }))
    }

    fn find<'a>(&self, frames: &'a Frames, of: &RecordKey<'_>) -> Option<Found<'a>> {
        self.bucket(frames, of.hash).find_map(|slot| {
            let place = slot.get();
            if place == 0 || place >> TAG_SHIFT != tag(of.hash) {
                return None;
            }
            let (number, offset) = (number_of(place), offset_of(place));
            let page = self.page(frames, number)?;
            Record { page, offset }.is(of).then_some(Found { slot, page, offset, number })
        })
    }

    /// Where the place of a new record is to be kept: instead of none, or of the oldest one.
    fn slot<'a>(&self, frames: &'a Frames, hash: u64) -> Option<Slot<'a>> {
        self.bucket(frames, hash).min_by_key(|slot| match number_of(slot.get()) {
            gone if gone < self.first => 0,
            number => number,
        })
    }

    /// Frames of the tail.
    fn tail(&self) -> u64 {
        (self.frames.len() as u64 / TAIL_SHARE).max(1)
    }

    /// The oldest frame becomes the newest, with what of it was used lately.
    fn turn(&mut self, frames: &Frames) {
        let half = self.frames.get(self.frames.len() / 2).map(|frame| frames.page(*frame));
        half.into_iter().flat_map(records).for_each(|record| record.set_used(false));
        let Some(oldest) = self.frames.pop_front() else { return };
        let gone = self.first;
        self.first += 1;
        self.frames.push_back(oldest);
        let number = self.first + self.frames.len() as u64 - 1;
        let page = frames.page(oldest);
        self.end = 0;
        let mut next = 0;
        while let Some(record) = Record::at(page, next) {
            let (bytes, hash) = (record.bytes(), record.hash());
            let stays = record.is_used() && self.end + bytes <= STAYING_BYTES_MAX;
            let own = place(hash, gone, next);
            next += bytes;
            if let Some(slot) = self.bucket(frames, hash).find(|slot| stays && slot.get() == own) {
                record.set_used(false);
                page.shift(record.offset, self.end, bytes);
                slot.set(place(hash, number, self.end));
                self.end += bytes;
            }
        }
        end_at(page, self.end);
    }

    /// Takes a frame in as the newest one.
    fn grow(&mut self, frames: &Frames, frame: Frame) {
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
    fn append(&mut self, frames: &Frames, of: &RecordKey<'_>, value: &[u8]) {
        let (Some(newest), Some(slot)) = (self.frames.back(), self.slot(frames, of.hash)) else { return };
        let (page, offset) = (frames.page(*newest), self.end);
        page.set_long(offset, of.tree);
        page.set_long(offset + 8, of.hash);
        page.set_halves(offset + 16, of.key.len() as u16, value.len() as u16);
        page.set_word(offset + 20, 0);
        page.copy_from(offset + HEADER_BYTES, of.key);
        let record = Record { page, offset };
        page.copy_from(record.value_offset(), value);
        self.end += record.bytes();
        self.mean_bytes = (self.mean_bytes * 15 + record.bytes()) / 16;
        end_at(page, self.end);
        slot.set(place(of.hash, self.first + self.frames.len() as u64 - 1, offset));
    }

    /// Keeps all places in other frames, and gives those that they were in.
    fn move_places(&mut self, frames: &Frames, index: Vec<Frame>) -> Vec<Frame> {
        for page in index.iter().map(|frame| frames.page(*frame)) {
            (0..FRAME_BYTES).step_by(8).for_each(|at| page.set_long(at, 0));
        }
        let mut kept = Vec::new();
        for (number, frame) in (self.first..).zip(&self.frames) {
            for record in records(frames.page(*frame)) {
                let (hash, own) = (record.hash(), place(record.hash(), number, record.offset));
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

    /// Whether there are enough places for what is in it.
    fn has_places(&self) -> bool {
        let bytes = self.frames.len() as u64 * u64::from(FRAME_BYTES);
        let records = bytes / u64::from(self.mean_bytes.max(HEADER_BYTES));
        let places = self.index.len() as u64 * PLACES_PER_FRAME;
        places > 0 && records * 100 <= places * PLACES_USED_MAX_PERCENT
    }

    fn has_room(&self, bytes: u32) -> bool {
        !self.frames.is_empty() && self.end + bytes <= FRAME_BYTES
    }
}

/// Frames that a budget has.
fn frames_of(budget_bytes: u64) -> u64 {
    budget_bytes / (class_bytes(CLASS) + META_BYTES)
}

/// Frames that records have at least, once there are any.
fn least(frames_of_budget: u64) -> u64 {
    (frames_of_budget / LEAST_SHARE).min(largest(frames_of_budget))
}

/// Frames that records have at most: what pages need is left.
fn largest(frames_of_budget: u64) -> u64 {
    (frames_of_budget / LARGEST_SHARE).min(frames_of_budget.saturating_sub(frames_of(LEAST_BUDGET_BYTES)))
}

impl Records {
    /// Of a pool with that budget.
    pub fn new(budget_bytes: u64) -> Self {
        let frames = frames_of(budget_bytes);
        let rings = (largest(frames) / FRAMES_PER_RING).min(RINGS_MAX);
        Self {
            rings: (0..rings).map(|_| Padded::default()).collect(),
            target: AtomicU64::new(largest(frames) / 8),
            least: least(frames),
            turns: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            pages_saved: AtomicI64::new(0),
            saved: Mutex::default(),
        }
    }

    /// Whether records with this hash are taken in.
    #[inline]
    fn takes(&self, hash: u64) -> bool {
        self.target.load(Ordering::Relaxed) > self.least || hash.is_multiple_of(TRIED_ONE_IN)
    }

    fn ring(&self, hash: u64) -> Option<MutexGuard<'_, Ring>> {
        let ring = self.rings.get(((hash >> 32) as usize * self.rings.len()) >> 32)?;
        Some(ring.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Of the pages in the tail of the clock, `cooling` were not used so far; of those that came to its end, `left` were not.
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
        let hits = |ring: &Padded| ring.0.lock().unwrap_or_else(PoisonError::into_inner).hits;
        self.rings.iter().map(hits).sum()
    }

    /// Moves memory between records and pages, to where the tail was of more use: where more reads of the device were saved for each frame of it.
    fn balance(&self, frames_of_budget: u64) {
        let (mut saved, mut tail) = (0, 0);
        for ring in &self.rings {
            let mut ring = ring.0.lock().unwrap_or_else(PoisonError::into_inner);
            saved += std::mem::take(&mut ring.saved);
            tail += ring.tail();
        }
        let pages_saved = self.pages_saved.swap(0, Ordering::Relaxed);
        let pages_tail = frames_of_budget.saturating_sub(self.frames.load(Ordering::Relaxed)) / TAIL_SHARE;
        let mut lately = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let gain = |lately: &mut f64, now: f64| *lately += (now - *lately) / BALANCES;
        gain(&mut lately.by_records, saved as f64 / tail.max(1) as f64);
        gain(&mut lately.by_pages, pages_saved as f64 / pages_tail.max(1) as f64);
        let Saved { by_records, by_pages } = *lately;
        let step = (frames_of_budget / STEP_SHARE).max(1);
        let target = self.target.load(Ordering::Relaxed);
        let target = if by_records > by_pages * MORE_FROM {
            target + step
        } else if by_records < by_pages * LESS_BELOW {
            target.saturating_sub(step)
        } else {
            target
        };
        let (least, most) = (least(frames_of_budget), largest(frames_of_budget));
        self.target.store(target.clamp(least, most), Ordering::Relaxed);
    }
}

impl Pool {
    /// Appends the value of a record to `into`, if it is known without its page.
    pub fn recall_record(&self, of: &RecordKey<'_>, into: &mut Vec<u8>) -> bool {
        if !self.records.takes(of.hash) {
            return false;
        }
        let Some(mut ring) = self.records.ring(of.hash) else { return false };
        let Some(Found { page, offset, number, .. }) = ring.find(&self.frames, of) else { return false };
        let record = Record { page, offset };
        page.copy_to(record.value_offset(), record.lengths().1, into);
        ring.hits += 1;
        if !record.is_used() {
            record.set_used(true);
            ring.saved += u64::from(number - ring.first < ring.tail());
        }
        true
    }

    /// Takes in a record whose page had to be loaded, if `is_still` says that its leaf has not changed since `value` was read of it.
    pub fn keep_record(&self, of: &RecordKey<'_>, value: &[u8], is_still: impl Fn() -> bool) {
        let bytes = record_bytes(of.key.len() as u32, value.len() as u32);
        let frames_of_budget = frames_of(self.frames.budget_bytes());
        let target = self.records.target.load(Ordering::Relaxed);
        if bytes > RECORD_BYTES_MAX || !self.records.takes(of.hash) {
            return;
        }
        let Some(mut ring) = self.records.ring(of.hash) else { return };
        if ring.find(&self.frames, of).is_some() || !self.grow_index(&mut ring) {
            return;
        }
        let has_turned = !ring.has_room(bytes);
        if has_turned {
            self.make_record_room(&mut ring, (target / self.records.rings.len() as u64).max(LEAST_FRAMES));
        }
        // Only now, with the ring's lock: whoever changes the leaf from here on changes what is taken in here, too.
        if ring.has_room(bytes) && is_still() {
            ring.append(&self.frames, of, value);
        }
        drop(ring);
        let turns = self.records.turns.fetch_add(has_turned.into(), Ordering::Relaxed);
        if has_turned && turns.is_multiple_of((2 * frames_of_budget / STEP_SHARE).max(1)) {
            self.records.balance(frames_of_budget);
        }
    }

    /// The record has this value in its leaf now, or is not there any more. Called with the leaf's latch, by everybody who changes it.
    #[inline]
    pub fn amend_record(&self, of: &RecordKey<'_>, value: Option<&[u8]>) {
        let Some(ring) = self.records.ring(of.hash) else { return };
        let Some(Found { slot, page, offset, .. }) = ring.find(&self.frames, of) else { return };
        if planted!(RecordNotAmended) {
            return;
        }
        let record = Record { page, offset };
        let fits = |value: &&[u8]| padded(value.len() as u32) == padded(record.lengths().1);
        match value.filter(fits) {
            Some(value) => record.set_value(value),
            None => slot.set(0),
        }
    }

    /// Frees memory that the pool finds first, if there is some: nothing here is worth waiting for.
    fn take_record_frame(&self) -> Option<Frame> {
        let frame = self.frames.take(CLASS)?;
        self.clock.note_demand(class_bytes(CLASS));
        self.records.frames.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Twice as many places, if there are few for so many frames; whether there are any.
    fn grow_index(&self, ring: &mut Ring) -> bool {
        if ring.has_places() {
            return true;
        }
        let wanted = (ring.index.len() * 2).max(1);
        let index: Vec<Frame> = (0..wanted).map_while(|_| self.take_record_frame()).collect();
        let is_more = index.len() == wanted;
        let unused = if is_more { ring.move_places(&self.frames, index) } else { index };
        self.give_record_frames_back(&unused);
        !ring.index.is_empty()
    }

    /// For who finds no memory: whether records had some.
    pub(super) fn give_up_records(&self) -> bool {
        let oldest = self.records.rings.iter().find_map(|ring| {
            let mut ring = ring.0.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest = ring.frames.pop_front();
            ring.first += u64::from(oldest.is_some());
            oldest
        });
        oldest.inspect(|frame| self.give_record_frames_back(&[*frame])).is_some()
    }

    fn give_record_frames_back(&self, frames: &[Frame]) {
        self.records.frames.fetch_sub(frames.len() as u64, Ordering::Relaxed);
        self.give_back(frames);
    }

    /// Makes another frame the newest one of a ring that is to have `target` of them.
    fn make_record_room(&self, ring: &mut Ring, target: u64) {
        let has = ring.frames.len() as u64;
        // While a ring grows, what is in it gets older all the same.
        let may_grow = has < LEAST_FRAMES || has < target && (ring.first + has) % 2 == 1;
        if may_grow && let Some(frame) = self.take_record_frame() {
            return ring.grow(&self.frames, frame);
        }
        if has > target
            && let Some(oldest) = ring.frames.pop_front()
        {
            ring.first += 1;
            self.give_record_frames_back(&[oldest]);
        }
        ring.turn(&self.frames);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::hash;
    use crate::pool::testing::pool_in_memory;

    fn record(key: &[u8]) -> RecordKey<'_> {
        RecordKey { tree: 7, hash: hash(1, key), key }
    }

    fn recalled(pool: &Pool, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = vec![9];
        let found = pool.recall_record(&record(key), &mut value);
        found.then(|| value.split_off(1))
    }

    fn frames_in_use(pool: &Pool) -> u64 {
        pool.records.frames.load(Ordering::Relaxed)
    }

    /// What happens to a key.
    #[derive(Clone, Debug)]
    enum Step {
        Read,
        Put(Vec<u8>),
        Remove,
    }

    fn steps() -> impl Strategy<Value = Vec<(u16, Step)>> {
        let value = prop_oneof![1 => (0..200_usize).boxed(), 5 => Just(40).boxed()]
            .prop_flat_map(|length| proptest::collection::vec(any::<u8>(), length));
        let step =
            prop_oneof![8 => Just(Step::Read), 3 => value.prop_map(Step::Put), 1 => Just(Step::Remove)];
        proptest::collection::vec((0..3000_u16, step), 0..4000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_known_of_a_record_is_what_its_leaf_has(steps in steps(), budget_kib in 160_u64..900) {
            let pool = pool_in_memory(budget_kib << 10);
            let mut leaves: BTreeMap<u16, Vec<u8>> = (0..2000).map(|key| (key, vec![key as u8; 24])).collect();
            for (number, step) in steps {
                let key = format!("{number:0>width$}", width = 4 + usize::from(number % 40));
                let key = key.as_bytes();
                match step {
                    Step::Read => {
                        let known = recalled(&pool, key);
                        if let Some(value) = known {
                            prop_assert_eq!(Some(&value), leaves.get(&number));
                        } else if let Some(value) = leaves.get(&number) {
                            pool.keep_record(&record(key), value, || true);
                        }
                    }
                    Step::Put(value) => {
                        pool.amend_record(&record(key), Some(&value));
                        leaves.insert(number, value);
                    }
                    Step::Remove => {
                        pool.amend_record(&record(key), None);
                        leaves.remove(&number);
                    }
                }
                prop_assert!(frames_in_use(&pool) <= frames_of(pool.budget_bytes()));
            }
        }
    }

    #[test]
    fn records_that_are_used_stay_and_others_make_room_for_new_ones() {
        let pool = pool_in_memory(2 << 20);
        let key = |number: u32| number.to_be_bytes();
        let used: Vec<u32> = (0..2000).step_by(10).collect();
        for number in 0..40_000 {
            pool.keep_record(&record(&key(number)), &[1; 100], || true);
            if number % 50 == 0 {
                used.iter().for_each(|number| drop(recalled(&pool, &key(*number))));
            }
        }
        let still = |numbers: &mut dyn Iterator<Item = u32>| {
            numbers.filter(|number| recalled(&pool, &key(*number)).is_some()).count()
        };
        // Some go where a bucket or a frame has too many that are used.
        assert!(still(&mut used.iter().copied()) > used.len() / 5 * 4);
        assert!(still(&mut (20_000..21_000)) < 10);
        assert!(
            pool.records_bytes() <= pool.budget_bytes() / LARGEST_SHARE * 5 / 4,
            "{}",
            pool.records_bytes()
        );
    }

    #[test]
    fn of_a_leaf_that_has_changed_nothing_is_kept() {
        let pool = pool_in_memory(2 << 20);
        pool.keep_record(&record(b"key"), b"old", || false);
        assert_eq!(recalled(&pool, b"key"), None);
        pool.keep_record(&record(b"key"), b"new", || true);
        assert_eq!(recalled(&pool, b"key").as_deref(), Some(&b"new"[..]));
        let of_another_tree = RecordKey { tree: 8, ..record(b"key") };
        assert!(!pool.recall_record(&of_another_tree, &mut Vec::new()));
        pool.amend_record(&record(b"key"), Some(b"longer than it was"));
        assert_eq!(recalled(&pool, b"key"), None);
    }

    #[test]
    fn memory_goes_to_where_it_is_of_more_use() {
        let pool = pool_in_memory(4 << 20);
        let frames = frames_of(pool.budget_bytes());
        let target = || pool.records.target.load(Ordering::Relaxed);
        let fill = || {
            (0..2000_u32).for_each(|key| pool.keep_record(&record(&key.to_be_bytes()), &[1; 100], || true))
        };
        fill();
        for _ in 0..frames {
            pool.records.note_pages(10, 0);
            pool.records.balance(frames);
        }
        assert_eq!(target(), least(frames), "pages are of use, and no records are");
        for _ in 0..frames {
            pool.records.rings.iter().for_each(|ring| ring.0.lock().unwrap().saved += 1);
            pool.records.balance(frames);
        }
        assert_eq!(target(), largest(frames), "it is the other way round");
    }

    #[test]
    fn who_finds_no_memory_gets_that_of_records() {
        let pool = pool_in_memory(2 << 20);
        (0..2000_u32).for_each(|key| pool.keep_record(&record(&key.to_be_bytes()), &[1; 100], || true));
        let before = frames_in_use(&pool);
        let all: Vec<_> =
            std::iter::from_fn(|| pool.reserve(0).ok().filter(|_| pool.give_up_records())).collect();
        assert!(all.len() as u64 > before / 2 && frames_in_use(&pool) < before / 2);
        drop(all);
        assert_eq!(recalled(&pool, &1_u32.to_be_bytes()), None);
    }
}
