//! Memory for pages: one range of addresses per size class. All together are backed by no more memory than
//! the budget allows.
//!
//! Each range could hold the whole budget, so no size class can run out of addresses while another has memory
//! to spare; which class has how much memory follows from use (Umbra's variable-size pages). The budget
//! counts memory that is *backed*, used or not: a free frame keeps its memory for the next page of its class,
//! until another class needs it and there is no other. So a page fault takes a free frame from a list that
//! its thread mostly has to itself, and the budget is looked at only when that is empty.

use crate::class::{CLASSES, class_bytes};
use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::io;

use super::gate::own_place;
use super::latch::Latch;
use super::mapping::Mapping;
use super::waiters::{WaitTicket, Waiters, changed};
use crate::header::PageId;
use crate::page::Page;

const INDEX_BITS: u32 = 28;

/// Lists of free frames. Threads beyond this number share them.
pub(super) const SHARDS: usize = 32;

/// Key of the waiters in the queue for frames.
const FRAME: u64 = 0;

/// Budgets from here on are backed by large pages of the processor. One per size class may be partly used.
pub(super) const HUGE_BUDGET_BYTES: u64 = 64 << 20;

/// A place for a page: its size class and its number there. Only those exist that [`Frames::take`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame(u32);

impl Frame {
    /// Fills up arrays.
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(class: usize, index: u32) -> Self {
        Self((class as u32) << INDEX_BITS | index)
    }

    /// The inverse of [`Frame::bits`].
    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// As a number.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Its size class.
    #[inline]
    pub fn class(self) -> usize {
        (self.0 >> INDEX_BITS) as usize
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

/// Size of the kernel's huge pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// State of a frame and its page. The fields except the latch, the page and the state change only under the
/// latch, or while the frame has no page.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Meta {
    /// Guards the page.
    pub latch: Latch,
    /// The page's id; zero for none. Set last when a page comes, cleared first when it goes.
    pub page: AtomicU64,
    /// Location of the page's newest image, which may not be written yet; zero if there was never one. The
    /// image of a dirty page is older than the page.
    pub location: AtomicU64,
    /// The unit that the image is written with; zero if it is written.
    pub unit: AtomicU64,
    /// Epoch of the first change since the image was made; zero if there was none.
    pub dirty_epoch: AtomicU32,
    /// The next in a list of free frames, plus one.
    next: AtomicU32,
    /// Hot, cooling or other state for the eviction.
    pub state: AtomicU8,
    /// The [lifetime](crate::segment::Lifetime) of the next image of a dirty page.
    pub lifetime: AtomicU8,
}

pub(super) const META_BYTES: u64 = size_of::<Meta>() as u64;

/// See the module.
pub(crate) struct Frames {
    /// Addresses of each class's pages and metas. There are as many as a class has bits, so that no look-up
    /// needs a check.
    bases: [Base; 16],
    pages: Mapping,
    _metas: Mapping,
    classes: Vec<Class>,
    budget_bytes: u64,
    /// Of the budget.
    unbacked_bytes: AtomicU64,
    /// Memory for one page that is too large for the budget; 0 as long as none was needed.
    extra_bytes: AtomicU64,
    cold: Mutex<[List; CLASSES]>,
    shards: Box<[Shard]>,
    /// The threads and tasks that wait for a frame.
    room: Waiters,
}

#[derive(Clone, Copy)]
struct Base {
    pages: *mut u8,
    metas: *const Meta,
}

// SAFETY: they point into the mappings of the `Frames` that has them, which may be used from any thread.
unsafe impl Send for Base {}
// SAFETY: as above.
unsafe impl Sync for Base {}

struct Class {
    /// Offset of its pages among all.
    pages_at: u64,
    metas_at: u64,
    count: u32,
    /// Frames from this index on were never used.
    fresh: AtomicU32,
}

/// Free frames of the threads of a place.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    lists: Mutex<[List; CLASSES]>,
    bytes: AtomicU64,
    /// Bytes of frames that the threads took lately.
    demand_bytes: AtomicU64,
}

/// Free frames of a class, linked through their metas.
#[derive(Clone, Copy, Default)]
struct List {
    first: u32,
}

impl List {
    fn push(&mut self, frames: &Frames, frame: Frame) {
        frames.meta(frame).next.store(self.first, Ordering::Relaxed);
        self.first = frame.index() as u32 + 1;
    }

    fn pop(&mut self, frames: &Frames, class: usize) -> Option<Frame> {
        let frame = Frame::new(class, self.first.checked_sub(1)?);
        self.first = frames.meta(frame).next.load(Ordering::Relaxed);
        Some(frame)
    }
}

impl Frames {
    /// Frames for pages of `budget_bytes` in all, with their [`Meta`].
    pub fn new(budget_bytes: u64) -> io::Result<Self> {
        let huge = budget_bytes >= HUGE_BUDGET_BYTES;
        let (mut pages_bytes, mut metas_bytes) = (0, 0);
        let mut class = |class: usize| {
            // One more, for `Frames::widen`.
            let count = (budget_bytes / (class_bytes(class) + META_BYTES) + 1).min(1 << INDEX_BITS);
            let (pages_at, metas_at) = (pages_bytes, metas_bytes);
            // Each class begins where a huge page can.
            pages_bytes +=
                (count * class_bytes(class)).next_multiple_of(if huge { HUGE_PAGE_BYTES } else { 1 });
            metas_bytes += count * META_BYTES;
            Class { pages_at, metas_at, count: count as u32, fresh: AtomicU32::new(0) }
        };
        let classes: Vec<Class> = (0..CLASSES).map(&mut class).collect();
        let pages = Mapping::reserve(pages_bytes, huge)?;
        let metas = Mapping::reserve(metas_bytes, huge)?;
        let bases = std::array::from_fn(|class| {
            let class = &classes[class.min(CLASSES - 1)];
            Base {
                pages: pages.start().wrapping_add(class.pages_at as usize),
                metas: metas.start().wrapping_add(class.metas_at as usize).cast(),
            }
        });
        Ok(Self {
            bases,
            pages,
            _metas: metas,
            classes,
            budget_bytes,
            unbacked_bytes: AtomicU64::new(budget_bytes),
            extra_bytes: AtomicU64::new(0),
            cold: Mutex::default(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            room: Waiters::default(),
        })
    }

    /// The budget.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Frames of a class that were ever used: their numbers are below it.
    pub fn used(&self, class: usize) -> u32 {
        self.classes[class].fresh.load(Ordering::Acquire)
    }

    /// Bytes of the budget that are not backed.
    pub fn unbacked_bytes(&self) -> u64 {
        self.unbacked_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the free frames that a thread of this shard finds first.
    pub fn free_bytes_of(&self, shard: usize) -> u64 {
        self.shards[shard].bytes.load(Ordering::Relaxed)
    }

    /// The shard of the calling thread.
    pub fn own_shard(&self) -> usize {
        own_place() % SHARDS
    }

    /// Bytes of frames that the calling thread took lately.
    pub fn demand_bytes(&self) -> u64 {
        self.shards[self.own_shard()].demand_bytes.load(Ordering::Relaxed)
    }

    /// Sets them for a shard, as earlier demand decays.
    pub fn set_demand(&self, shard: usize, bytes: u64) {
        self.shards[shard].demand_bytes.store(bytes, Ordering::Relaxed);
    }

    /// A frame of `bytes` was taken on this thread.
    pub fn note_demand(&self, bytes: u64) {
        let demand = &self.shards[self.own_shard()].demand_bytes;
        // Exact counts do not matter, and mostly one thread has the place.
        demand.store(demand.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// [`Frames::take`] for a page. If there is none now, there soon will be more.
    #[inline]
    pub fn spare(&self, class: usize) -> Option<Frame> {
        self.note_demand(class_bytes(class));
        self.take(class)
    }

    /// Puts the caller into the queue for a frame.
    pub(super) fn enter_queue(&self) -> WaitTicket<'_> {
        self.room.enter(FRAME)
    }

    /// Whether the queue has a waiter.
    #[cfg(test)]
    pub fn is_awaited(&self) -> bool {
        self.room.is_awaited()
    }

    /// Wakes one waiter for a frame, as one may be evicted now.
    pub fn wake_one(&self) {
        self.room.wake_one(FRAME);
    }

    /// Makes a frame, whose bytes are complete, the page's.
    pub fn publish(&self, id: PageId, frame: Frame, state: u8) {
        let meta = self.meta(frame);
        meta.state.store(state, Ordering::Relaxed);
        meta.page.store(id.0, Ordering::Release);
    }

    /// A frame of the class without a page, if there is memory. Its content is unspecified.
    pub fn take(&self, class: usize) -> Option<Frame> {
        let own = self.own_shard();
        self.take_free(own, class)
            .or_else(|| self.take_unbacked(class))
            .or_else(|| (1..SHARDS).find_map(|step| self.take_free((own + step) % SHARDS, class)))
            .or_else(|| {
                self.unback(class);
                self.take_unbacked(class)
            })
    }

    /// Adds memory for a page of this class to the budget, once. Where frames are lent, a page of more than
    /// half of the budget would wait for room for ever: it was written with a larger cache.
    pub fn widen(&self, class: usize) {
        let needed = class_bytes(class) + META_BYTES;
        if needed > self.budget_bytes / 2 {
            let before = self.extra_bytes.fetch_max(needed, Ordering::Relaxed);
            self.unbacked_bytes.fetch_add(needed.saturating_sub(before), Ordering::Relaxed);
        }
    }

    fn lists(&self, shard: usize) -> MutexGuard<'_, [List; CLASSES]> {
        self.shards[shard].lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_free(&self, shard: usize, class: usize) -> Option<Frame> {
        if self.shards[shard].bytes.load(Ordering::Relaxed) < class_bytes(class) {
            return None;
        }
        let mut lists = self.lists(shard);
        let frame = lists[class].pop(self, class)?;
        self.shards[shard].bytes.fetch_sub(class_bytes(class), Ordering::Relaxed);
        Some(frame)
    }

    fn take_unbacked(&self, class: usize) -> Option<Frame> {
        let needed = class_bytes(class) + META_BYTES;
        if self.unbacked_bytes.load(Ordering::Relaxed) < needed {
            return None;
        }
        let mut cold = self.cold.lock().unwrap_or_else(PoisonError::into_inner);
        // Decreased only under the lock.
        if self.unbacked_bytes.load(Ordering::Relaxed) < needed {
            return None;
        }
        let owner = &self.classes[class];
        let fresh = owner.fresh.load(Ordering::Relaxed);
        let frame = cold[class].pop(self, class).or_else(|| {
            (fresh < owner.count).then(|| {
                owner.fresh.store(fresh + 1, Ordering::Release);
                Frame::new(class, fresh)
            })
        })?;
        self.unbacked_bytes.fetch_sub(needed, Ordering::Relaxed);
        Some(frame)
    }

    /// Gives memory of free frames back to the kernel until a page of `class` has room in the budget, or none
    /// is left.
    fn unback(&self, class: usize) {
        let needed = class_bytes(class) + META_BYTES;
        for (shard, other) in (0..SHARDS).flat_map(|shard| (0..CLASSES).map(move |other| (shard, other))) {
            while other != class && self.unbacked_bytes.load(Ordering::Relaxed) < needed {
                let Some(frame) = self.take_free(shard, other) else { break };
                let bytes = class_bytes(other) as usize;
                self.pages.give_up(self.classes[other].pages_at as usize + frame.index() * bytes, bytes);
                let mut cold = self.cold.lock().unwrap_or_else(PoisonError::into_inner);
                cold[other].push(self, frame);
                self.unbacked_bytes.fetch_add(class_bytes(other) + META_BYTES, Ordering::Relaxed);
            }
        }
    }

    /// Gives back frames that have no page any more.
    pub fn give_back(&self, frames: &[Frame]) {
        if frames.is_empty() {
            return;
        }
        self.free(frames);
        changed();
        frames.iter().for_each(|_| self.wake_one());
    }

    fn free(&self, frames: &[Frame]) {
        let own = self.own_shard();
        let mut lists = self.lists(own);
        for frame in frames {
            let meta = self.meta(*frame);
            debug_assert_eq!(meta.page.load(Ordering::Relaxed), 0, "still a page");
            debug_assert_eq!(meta.dirty_epoch.load(Ordering::Relaxed), 0, "a free frame counts as dirty");
            lists[frame.class()].push(self, *frame);
        }
        let bytes = frames.iter().map(|frame| class_bytes(frame.class())).sum();
        // Under the lock, so that it never falls below the bytes that were taken.
        self.shards[own].bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    fn base(&self, frame: Frame) -> Base {
        self.bases[frame.class() & 15]
    }

    /// The bytes of a frame.
    #[inline]
    pub fn page(&self, frame: Frame) -> Page<'_> {
        let words = class_bytes(frame.class()) as usize / 4;
        // SAFETY: the range is mapped as long as `self` lives, and the frame exists, so it lies within; words
        // are only used atomically.
        Page::new(unsafe {
            std::slice::from_raw_parts(
                self.base(frame).pages.cast::<std::sync::atomic::AtomicU32>().add(frame.index() * words),
                words,
            )
        })
    }

    /// Address of a frame's page, for reads and writes of devices.
    pub fn memory(&self, frame: Frame) -> *mut u8 {
        self.base(frame).pages.wrapping_add(frame.index() * class_bytes(frame.class()) as usize)
    }

    /// State of a frame.
    #[inline]
    pub fn meta(&self, frame: Frame) -> &Meta {
        // SAFETY: the range is mapped as long as `self` lives, and the frame exists; zeroed memory is a valid
        // `Meta`, which is only changed atomically.
        unsafe { &*self.base(frame).metas.add(frame.index()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET_BYTES: u64 = (1 << 20) + (16 << 10);

    #[test]
    fn the_budget_is_shared_by_all_classes() {
        let frames = Frames::new(BUDGET_BYTES).unwrap();
        let large = frames.take(8).unwrap();
        assert_eq!(frames.take(8), None);
        frames.give_back(&[large]);
        let small: Vec<Frame> = std::iter::from_fn(|| frames.take(0)).collect();
        assert_eq!(small.len() as u64, BUDGET_BYTES / (4096 + 64));
        assert_eq!(frames.take(8), None);
        frames.give_back(&small);
        assert!(frames.take(8).is_some() && frames.take(8).is_none());
    }

    #[test]
    fn frames_do_not_overlap_and_those_of_another_class_give_their_memory() {
        let frames = Frames::new(BUDGET_BYTES).unwrap();
        let taken: Vec<Frame> = [0, 0, 1, 2, 0, 4].map(|class| frames.take(class).unwrap()).into();
        for (number, frame) in taken.iter().enumerate() {
            let page = frames.page(*frame);
            assert_eq!(u64::from(page.len_bytes()), class_bytes(frame.class()));
            (0..page.len_bytes()).step_by(4).for_each(|at| page.set_word(at, number as u32 + 1));
            frames.meta(*frame).page.store(number as u64, Ordering::Relaxed);
        }
        for (number, frame) in taken.iter().enumerate() {
            let page = frames.page(*frame);
            assert!((0..page.len_bytes()).step_by(4).all(|at| page.word(at) == number as u32 + 1));
            assert_eq!(frames.meta(*frame).page.swap(0, Ordering::Relaxed), number as u64);
        }
        frames.give_back(&taken);
        assert_eq!(frames.take(4), Some(taken[5]), "a free frame of the class comes first");
        frames.give_back(&taken[5..]);
        let all = frames.take(8).unwrap();
        frames.give_back(&[all]);
        assert_eq!(
            frames.page(frames.take(2).unwrap()).word(100),
            0,
            "its memory was given back to the kernel"
        );
    }

    #[test]
    fn a_frame_that_another_thread_gave_back_is_found() {
        let frames = Frames::new(class_bytes(0) + META_BYTES).unwrap();
        let only = frames.take(0).unwrap();
        std::thread::scope(|scope| scope.spawn(|| frames.give_back(&[only])).join().unwrap());
        assert_eq!((frames.take(0), frames.take(0)), (Some(only), None));
    }
}
