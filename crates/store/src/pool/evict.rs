//! Eviction: a clock with two hands per size class.
//!
//! The first hand marks pages as cooling; a use of a page removes the mark. The second hand follows at half a
//! turn, and evicts pages that are still cooling. So a page stays in memory if it is used at least once in
//! half a turn, and a page in use costs one store in that time, not one per use. (LeanStore's hands are a
//! tenth of a turn apart: then an inner node must be used more often to stay, and with data larger than
//! memory a turn takes a tenth of a second.)
//!
//! A dirty page is first gathered into a write unit and is evicted when that is written; meanwhile it waits
//! in a queue, and a use keeps it in memory. Pages that a scan loaded wait in another queue, of bounded
//! length: beyond that a scan evicts its own pages, not others'.
//!
//! Nothing here waits, except [`Evictor::take_frame`]. Each thread keeps frames free for itself, as part of
//! its worker's loop, so there is no page cleaner to wait for.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;

use super::blocks::{Blocks, is_block};
use super::frames::{Frame, Frames, META_BYTES, SHARDS};
use super::gate::own_place;
use super::images::Images;
use super::pages::Pages;
use super::records::{RecordCache, Records, TAIL_DIVISOR};
use super::table::Word;
use super::{COOLING, HOT};
use crate::Error;
use crate::class::CLASSES;
use crate::class::class_bytes;
use crate::header::PageId;
use crate::segment::{Lifetime, Location, NotAppended, UnitSequence};
use crate::task::park;

/// Frames that a hand passes at a time.
const BATCH: usize = 64;

/// The free memory that a thread keeps in store is at least this, and at most this part of the budget.
const STORE_BYTES_MIN: u64 = 128 << 10;
const STORE_DIVISOR: u64 = 32;

/// While pages of this number of units wait to be written, the hands stand still: the pages that they would
/// pass could not leave sooner. Enough for every stream to have one open, half full, and others on their way.
const UNITS_UNDER_WAY: u64 = 8;

/// But at most this part of the budget waits.
const UNDER_WAY_DIVISOR: u64 = 8;

/// The part of the budget that the pages of scans on one thread may take.
const SCAN_DIVISOR: u64 = 16;

/// Batches of a step of a worker's loop.
const BATCHES_PER_STEP: usize = 4;

/// Batches before a thread that needs a frame looks at all frames.
const BATCHES_PER_FAULT: usize = 16;

/// See the module.
pub(super) struct Clock {
    /// How far the second hand came, by size class; the frame is the remainder.
    hands: [AtomicU64; CLASSES],
    turns: AtomicU64,
    queues: Box<[Padded]>,
}

/// Of the threads of a place.
#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Gathered into units that were not written when last looked at, oldest first.
    gathered: VecDeque<Candidate>,
    gathered_bytes: u64,
    /// Loaded by scans, oldest first.
    scanned: VecDeque<Candidate>,
    scanned_bytes: u64,
}

/// A page that may leave memory if it is still in its frame and was not used since.
#[derive(Clone, Copy)]
struct Candidate {
    frame: Frame,
    id: u64,
}

/// Result of making room.
#[derive(Default)]
struct Made {
    freed_bytes: u64,
    /// A unit that some page waits for.
    waits_for: Option<UnitSequence>,
    /// The reason why dirty pages stayed in memory.
    denied: Option<NotAppended>,
}

/// Result of trying to evict a page.
enum Outcome {
    Left,
    Stays,
    /// It was gathered just now.
    Gathered(UnitSequence),
    /// It was gathered into this unit, which is not written.
    Unwritten(UnitSequence),
    Denied(NotAppended),
}

/// Frames on their way to the free ones.
struct Freed<'a> {
    frames: &'a Frames,
    batch: [Frame; BATCH],
    count: usize,
}

impl<'a> Freed<'a> {
    fn new(frames: &'a Frames) -> Self {
        Self { frames, batch: [Frame::NONE; BATCH], count: 0 }
    }

    fn push(&mut self, frame: Frame) {
        self.batch[self.count] = frame;
        self.count += 1;
        if self.count == BATCH {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        self.frames.give_back(&self.batch[..std::mem::take(&mut self.count)]);
    }
}

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Clock {
    pub fn new() -> Self {
        Self {
            hands: Default::default(),
            turns: AtomicU64::new(0),
            queues: (0..SHARDS).map(|_| Padded::default()).collect(),
        }
    }

    fn queue(&self, shard: usize) -> MutexGuard<'_, Queue> {
        self.queues[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A scan has loaded a page into the frame.
    pub fn note_scanned(&self, frame: Frame, id: PageId) {
        let mut queue = self.queue(own_place() % SHARDS);
        queue.scanned.push_back(Candidate { frame, id: id.0 });
        queue.scanned_bytes += class_bytes(frame.class());
    }
}

/// Takes pages out of memory: the clock, with the parts that it looks at.
#[derive(Clone, Copy)]
pub(super) struct Evictor<'a> {
    pages: &'a Pages,
    images: &'a Images,
    clock: &'a Clock,
    /// Records, and directories.
    records: [&'a Records; 2],
    blocks: &'a Blocks,
}

impl<'a> Evictor<'a> {
    pub fn new(
        (pages, images): (&'a Pages, &'a Images),
        clock: &'a Clock,
        (records, blocks): ([&'a Records; 2], &'a Blocks),
    ) -> Self {
        Self { pages, images, clock, records, blocks }
    }

    fn frames(self) -> &'a Frames {
        self.pages.frames()
    }

    /// Makes as much memory free as the calling thread lately needed at a time, in a few bounded steps,
    /// without waiting. Part of every worker's loop; costs next to nothing if there is nothing to do.
    #[inline]
    pub fn make_room(&self) {
        let demand_bytes = self.frames().demand_bytes();
        if demand_bytes > 0 {
            self.fill_store(self.frames().own_shard(), demand_bytes);
        }
    }

    fn fill_store(&self, shard: usize, demand_bytes: u64) {
        // Earlier demand decays.
        self.frames().set_demand(shard, demand_bytes - demand_bytes.div_ceil(4));
        let store_bytes = demand_bytes.max(STORE_BYTES_MIN).min(self.frames().budget_bytes() / STORE_DIVISOR);
        if self.frames().unbacked_bytes() < store_bytes && self.frames().free_bytes_of(shard) < store_bytes {
            self.evict(shard, store_bytes, BATCHES_PER_STEP);
        }
    }

    /// Evicts until the thread has `store_bytes` in store, or the hands have passed `batches`, or enough
    /// pages wait to be written for the hands to stop.
    fn evict(&self, shard: usize, store_bytes: u64, batches: usize) -> Made {
        let mut made = Made::default();
        let enough = (UNITS_UNDER_WAY * self.images.store().unit_bytes())
            .min(self.frames().budget_bytes() / UNDER_WAY_DIVISOR);
        self.evict_queued(shard, store_bytes.saturating_sub(self.frames().free_bytes_of(shard)), &mut made);
        for _ in 0..batches {
            let under_way = self.clock.queue(shard).gathered_bytes;
            if self.frames().free_bytes_of(shard) >= store_bytes || under_way >= store_bytes + enough {
                break;
            }
            self.pass(shard, self.next_class(), &mut made);
        }
        made
    }

    /// Pages whose units have been written, until `needed_bytes` are free, and those of scans beyond their
    /// share.
    fn evict_queued(&self, shard: usize, needed_bytes: u64, made: &mut Made) {
        let mut freed = Freed::new(self.frames());
        let scan_bytes = self.frames().budget_bytes() / SCAN_DIVISOR;
        let mut queue = self.clock.queue(shard);
        let begin = made.freed_bytes;
        while made.freed_bytes - begin < needed_bytes
            && let Some(candidate) = queue.gathered.front().copied()
        {
            match self.try_evict(candidate) {
                Outcome::Gathered(unit) | Outcome::Unwritten(unit) => {
                    made.waits_for = Some(unit);
                    break;
                }
                Outcome::Left => made.left(candidate.frame, &mut freed),
                // It was used or changed meanwhile.
                Outcome::Stays | Outcome::Denied(_) => {}
            }
            queue.gathered.pop_front();
            queue.gathered_bytes -= class_bytes(candidate.frame.class());
            debug_assert!(!queue.gathered.is_empty() || queue.gathered_bytes == 0, "bytes of no page");
        }
        while queue.scanned_bytes > scan_bytes
            && let Some(candidate) = queue.scanned.pop_front()
        {
            queue.scanned_bytes -= class_bytes(candidate.frame.class());
            if matches!(self.try_evict(candidate), Outcome::Left) {
                made.left(candidate.frame, &mut freed);
            }
        }
    }

    /// Both hands of one size class pass a batch of frames.
    fn pass(&self, shard: usize, class: usize, made: &mut Made) {
        let used = u64::from(self.frames().used(class));
        if used == 0 {
            return;
        }
        // A few batches must be much less than the half turn that gives a page time to be used again.
        let count = (BATCH as u64).min(used.div_ceil(32));
        let start = self.clock.hands[class].fetch_add(count, Ordering::Relaxed);
        let frame = |at: u64| Frame::new(class, (at % used) as u32);
        for at in start + used / 2..start + used / 2 + count {
            let meta = self.frames().meta(frame(at));
            if meta.page.load(Ordering::Relaxed) != 0 && meta.state.load(Ordering::Relaxed) != COOLING {
                meta.state.store(COOLING, Ordering::Relaxed);
            }
        }
        let cooling = |at: u64| {
            let meta = self.frames().meta(frame(at));
            let id = meta.page.load(Ordering::Relaxed);
            let is_cooling = id != 0 && meta.state.load(Ordering::Relaxed) == COOLING;
            is_cooling.then_some(Candidate { frame: frame(at), id })
        };
        let tail = start + used / TAIL_DIVISOR;
        let in_tail = (tail..tail + count).filter_map(cooling).count();
        let mut candidates = [Candidate { frame: Frame::NONE, id: 0 }; BATCH];
        let mut found = 0;
        for candidate in (start..start + count).filter_map(cooling) {
            candidates[found] = candidate;
            found += 1;
            if !is_block(candidate.id) {
                self.pages.table().prefetch(PageId(candidate.id));
            }
        }
        self.records.iter().for_each(|records| records.note_pages(in_tail, found));
        let mut freed = Freed::new(self.frames());
        for candidate in &candidates[..found] {
            match self.try_evict(*candidate) {
                Outcome::Left => made.left(candidate.frame, &mut freed),
                Outcome::Stays => {}
                Outcome::Gathered(unit) => {
                    made.waits_for = Some(unit);
                    let mut queue = self.clock.queue(shard);
                    queue.gathered.push_back(*candidate);
                    queue.gathered_bytes += class_bytes(class);
                }
                Outcome::Unwritten(unit) => made.waits_for = Some(unit),
                Outcome::Denied(denied) => made.denied = Some(denied),
            }
        }
    }

    /// The size classes take turns by how much memory they have.
    fn next_class(&self) -> usize {
        let bytes = |class: usize| u64::from(self.frames().used(class)) * class_bytes(class);
        let total: u64 = (0..CLASSES).map(bytes).sum();
        // Multiples of the golden ratio are spread evenly over [0, 1), however many there are.
        let turn = self.clock.turns.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = ((u128::from(turn) * u128::from(total)) >> 64) as u64;
        for class in 0..CLASSES {
            if at < bytes(class) {
                return class;
            }
            at -= bytes(class);
        }
        0
    }

    fn try_evict_block(&self, Candidate { frame, id }: Candidate) -> Outcome {
        let meta = self.frames().meta(frame);
        if meta.page.load(Ordering::Acquire) != id || meta.state.load(Ordering::Relaxed) == HOT {
            return Outcome::Stays;
        }
        match self.blocks.evict(id) {
            Some(left) if left == frame => Outcome::Left,
            // The block was read again meanwhile, into another frame.
            Some(other) => {
                self.frames().give_back(&[other]);
                Outcome::Stays
            }
            None => Outcome::Stays,
        }
    }

    /// Takes a page out of memory unless it was used again; one that has changed is gathered first.
    fn try_evict(&self, candidate: Candidate) -> Outcome {
        let Candidate { frame, id } = candidate;
        let meta = self.frames().meta(frame);
        if is_block(id) {
            return self.try_evict_block(candidate);
        }
        let Some(version) = meta.latch.try_read() else { return Outcome::Stays };
        if meta.page.load(Ordering::Acquire) != id || meta.state.load(Ordering::Relaxed) == HOT {
            return Outcome::Stays;
        }
        let is_under_way = |unit: UnitSequence| {
            unit.0 != 0 && !self.images.store().is_written(unit) && !planted!(EvictedBeforeWritten)
        };
        let unit = UnitSequence(meta.unit.load(Ordering::Relaxed));
        if meta.dirty_epoch.load(Ordering::Relaxed) == 0 && is_under_way(unit) {
            return Outcome::Unwritten(unit);
        }
        if !meta.latch.try_upgrade(version) {
            return Outcome::Stays;
        }
        // Read with the latch held: gathering a page does not change its version, so another task may have
        // done so.
        let dirty_epoch = meta.dirty_epoch.load(Ordering::Relaxed);
        let unit = UnitSequence(meta.unit.load(Ordering::Relaxed));
        if dirty_epoch == 0 && is_under_way(unit) {
            meta.latch.unlock_unchanged();
            return Outcome::Unwritten(unit);
        }
        if dirty_epoch != 0 {
            let appended = self.images.gather(self.frames(), PageId(id), frame, dirty_epoch);
            meta.latch.unlock_unchanged();
            return match appended {
                Ok(unit) => Outcome::Gathered(unit),
                Err(denied) => Outcome::Denied(denied),
            };
        }
        let location = Location::from_bits(meta.location.load(Ordering::Relaxed));
        let (Some(location), Some(entry)) = (location, self.pages.table().entry(PageId(id))) else {
            meta.latch.unlock_unchanged();
            return Outcome::Stays;
        };
        meta.page.store(0, Ordering::Release);
        entry.store(Word::device(location));
        meta.latch.unlock();
        Outcome::Left
    }

    /// A frame without a page; makes room and waits for it if need be.
    ///
    /// # Errors
    /// The error that keeps changed pages from being written, if no others are in memory.
    #[inline]
    pub fn take_frame(&self, class: usize) -> Result<Frame, Error> {
        match self.frames().spare(class) {
            Some(frame) => Ok(frame),
            None => loop {
                if let Some(frame) = self.wait_for_frame(class, true)? {
                    return Ok(frame);
                }
            },
        }
    }

    /// The same for a caller that may have shares of other frames: two that waited for each other's would
    /// wait for ever. `None` if all frames are in use.
    ///
    /// # Errors
    /// As [`Evictor::take_frame`].
    pub fn take_frame_beside_others(&self, class: usize) -> Result<Option<Frame>, Error> {
        match self.frames().spare(class) {
            Some(frame) => Ok(Some(frame)),
            None => self.wait_for_frame(class, false),
        }
    }

    /// `None` if all frames are in use and it may not wait for their users.
    #[cold]
    #[inline(never)]
    fn wait_for_frame(&self, class: usize, may_wait_for_users: bool) -> Result<Option<Frame>, Error> {
        let needed = class_bytes(class) + META_BYTES;
        self.frames().widen(class);
        let (mut place, mut thorough) = (None, false);
        loop {
            let made = self.evict_anything(needed, thorough);
            if let Some(frame) = self.frames().take(class) {
                drop(place);
                // Another waiter that was woken in vain may find the rest.
                self.frames().wake_one();
                return Ok(Some(frame));
            }
            if made.freed_bytes > 0 {
                continue;
            }
            let waited = match made {
                Made { waits_for: Some(unit), .. } => self.images.store().wait_written(unit),
                Made { denied: Some(NotAppended::Failed(error)), .. } => Err(error),
                Made { denied: Some(_), .. } => self.images.store().wait_for_room(Lifetime::Changing),
                // All frames are being loaded, or are reserved.
                _ if self
                    .records
                    .iter()
                    .any(|records| RecordCache::new(records, self.frames()).give_up()) =>
                {
                    continue;
                }
                _ if !may_wait_for_users => return Ok(None),
                // To be looked at once more, as one may have become free just before.
                _ if place.is_none() => {
                    place = Some(self.frames().enter_queue());
                    continue;
                }
                _ => {
                    park();
                    Ok(())
                }
            };
            place = None;
            match waited {
                Err(error) if thorough => {
                    self.frames().wake_one();
                    return Err(error);
                }
                // Nothing can be written, but pages may be left that have not changed.
                Err(_) => thorough = true,
                Ok(()) => {}
            }
        }
    }

    /// Evicts `bytes`, wherever they are. If that is not possible, the hands have passed all frames twice;
    /// unless pages are on their way to the device, so that it is better to wait for them, and the search
    /// need not be `thorough`.
    fn evict_anything(&self, bytes: u64, thorough: bool) -> Made {
        let own = self.frames().own_shard();
        let mut made = self.evict(own, self.frames().free_bytes_of(own) + bytes, BATCHES_PER_FAULT);
        for shard in (0..SHARDS).filter(|shard| *shard != own) {
            if made.freed_bytes < bytes {
                self.evict_queued(shard, bytes - made.freed_bytes, &mut made);
            }
        }
        for class in 0..CLASSES {
            let hand = &self.clock.hands[class];
            let end = hand.load(Ordering::Relaxed) + 2 * u64::from(self.frames().used(class));
            while made.freed_bytes < bytes && hand.load(Ordering::Relaxed) < end {
                if !thorough
                    && (made.waits_for.is_some() || matches!(made.denied, Some(NotAppended::NoBuffer)))
                {
                    return made;
                }
                self.pass(own, class, &mut made);
            }
        }
        made
    }
}

impl Made {
    fn left(&mut self, frame: Frame, freed: &mut Freed<'_>) {
        self.freed_bytes += class_bytes(frame.class());
        freed.push(frame);
    }
}
