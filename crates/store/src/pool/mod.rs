//! The buffer pool: pages in memory, within a hard budget.
//!
//! The page table has one word per page, which contains the page's frame or its location on the device. So a
//! look-up of a resident page is one load, a page fault is one compare-and-swap, and no page needs to know
//! who refers to it (vmcache, instead of swizzled pointers with parent pointers).
//!
//! How to read: [`Pool::read`] a page, look at it, and [`OptimisticGuard::is_valid`] before believing
//! anything. How to change: reserve what new pages need, [`Pool::section`], [`Section::lock`] what was read,
//! change it, drop the section. A section never waits: no parking, no yielding, no I/O within; a debug
//! assertion watches. A checkpoint's cut falls between sections, so what one section changes is in a
//! checkpoint as a whole or not at all.
//!
//! Who may change what:
//! - The entry of a page that is in memory, and its frame's [`Meta`]: the holder of the frame's latch.
//! - The entry of a page that is on the device: anyone, by compare-and-swap. The thread or task that makes it
//!   *loading* is the one that loads the page; others wait. Only the cleaner may exchange the location
//!   meanwhile.
//! - A frame of [records]: the holder of its ring's lock. It never holds a page.
//! - Another frame without a page: its taker from the free list. A latch is taken only after the page was
//!   seen in the frame and the latch's version has not changed since, so nobody else takes the latch of such
//!   a frame.

mod ahead;
mod changes;
mod checkpoint;
mod evict;
mod fault;
mod frames;
mod frees;
mod gate;
mod latch;
mod mapping;
mod page_store;
mod prefetch;
mod records;
mod section;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod together;
mod unread;
mod waiters;
mod withheld;

use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::{Arc, Weak};

use flashgrain_device::limits::{Limit, limited};

use crate::Error;
use crate::header::{Header, PageId, PageKind};
use crate::page::Page;
use crate::segment::{Location, NotAppended, Stream, UnitSequence};
use crate::task::{Executor, Upkeep, go_on, overlap};
use changes::Changes;
pub(crate) use changes::Moved;
use evict::{Clock, FRAME};
pub(crate) use frames::{Frame, Frames, Meta};
use gate::{Gate, PLACES, own_place};
use latch::Version;
pub(crate) use page_store::PageStore;
pub(crate) use prefetch::prefetch;
use prefetch::prefetch_line;
pub(crate) use records::RecordKey;
use records::Records;
pub(crate) use section::{Denied, Reserved, Section};
use table::{PageLocation, Table};
use waiters::{Waiters, changed};
pub(crate) use withheld::Withheld;

/// How a page is going to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Probably again.
    Normal,
    /// Once: it may leave memory right away.
    Scan,
}

/// [`Meta::state`] of a page that was used lately.
const HOT: u8 = 0;
/// Of one that leaves memory unless it is used again.
const COOLING: u8 = 1;
/// Of one that a scan loaded, and nobody else has used.
const SCANNED: u8 = 2;

/// The smallest budget: a split, a fault and what else is under way must find frames at the same time.
pub(crate) const BUDGET_BYTES_MIN: u64 = 128 << 10;

/// A page may take this part of the budget.
const PAGE_DIVISOR: u64 = 8;

/// Less than this is read from the processor's caches more quickly than tasks could take turns.
const PROCESSOR_CACHE_BYTES: u64 = 8 << 20;

/// Queues for pages that are being loaded.
const QUEUES: usize = 64;

/// See the module.
pub(crate) struct Pool {
    frames: Frames,
    table: Table,
    gate: Gate,
    changes: Changes,
    withheld: withheld::Registry,
    frees: frees::Frees,
    page_store: Arc<dyn PageStore>,
    executor: Executor,
    /// Tasks under way that load pages in advance.
    read_ahead_tasks: AtomicU64,
    /// Those who wait for a page that another one loads.
    loading: Box<[Waiters]>,
    /// Those who wait for a frame.
    room: Waiters,
    clock: Clock,
    records: Records,
    counts: Box<[Counts]>,
    me: Weak<Self>,
}

/// Counters of the threads that share a slot.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    /// Bytes of pages that they made dirty, less those that they made clean.
    dirty_bytes: AtomicI64,
    /// Of these, those of volatile pages.
    volatile_dirty_bytes: AtomicI64,
    /// Bytes of volatile pages that they made, less those of which they freed, in memory or not.
    volatile_bytes: AtomicI64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How often pages were looked for since the pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// They were in memory.
    pub hits: u64,
    /// They had to be read.
    pub misses: u64,
    /// They were neither, as the record that was wanted of them was known without its page.
    pub records: u64,
}

/// Counts one more. Mostly one thread has the place, so that this needs no locked instruction; where several
/// share it, a few may be lost.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// A page that was resident when it was looked at, and its version then. Readers take no latch: they
/// read, and ask the guard afterwards whether what they read was whole.
#[derive(Clone, Copy)]
pub(crate) struct OptimisticGuard<'a> {
    meta: &'a Meta,
    page: Page<'a>,
    version: Version,
    frame: Frame,
    id: PageId,
}

impl<'a> OptimisticGuard<'a> {
    /// Its bytes, which may change and become another page's at any time.
    #[inline]
    pub fn page(&self) -> Page<'a> {
        self.page
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> PageId {
        self.id
    }

    /// Whether everything that was read of the page so far was consistent and is still current. A `false` may
    /// become `true` again, because the holder of the latch may change nothing; a caller that has acted on a
    /// `false` must not rely on a later `true`.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.meta.latch.is_valid(self.version)
    }

    /// It stays in memory for some time.
    #[inline]
    fn note_use(&self) {
        if self.meta.state.load(Ordering::Relaxed) != HOT {
            self.meta.state.store(HOT, Ordering::Relaxed);
        }
    }

    /// The version, to look at the page again later.
    #[inline]
    pub fn page_version(&self) -> PageVersion {
        PageVersion { frame: self.frame, version: self.version }
    }

    /// The version after one change that began with this one.
    #[inline]
    pub fn next_page_version(&self) -> PageVersion {
        PageVersion { version: self.version.next(), ..self.page_version() }
    }
}

/// The frame that a page was in, and the version of its latch then: see [`Pool::revisit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageVersion {
    frame: Frame,
    version: Version,
}

impl Pool {
    /// A pool with no pages. Its frames, with what is kept about each, take at most `budget_bytes`; beside
    /// that it takes 8 bytes per page that there is. `executor` does its background work; unless it gets
    /// other upkeep, its workers make room between their tasks.
    ///
    /// # Errors
    /// [`Error::Options`] if the budget is too small; [`Error::Device`] if the system does not give so many
    /// addresses.
    pub fn new(
        budget_bytes: u64,
        page_store: Arc<dyn PageStore>,
        executor: Executor,
    ) -> Result<Arc<Self>, Error> {
        if budget_bytes < BUDGET_BYTES_MIN {
            return Err(Error::Options(format!(
                "a cache of {budget_bytes} bytes is too small: give it at least {BUDGET_BYTES_MIN}"
            )));
        }
        let no_addresses = |error| -> Error {
            limited(
                format!("reserve addresses for a cache of {budget_bytes} bytes"),
                error,
                &[Limit::AddressSpace],
            )
            .into()
        };
        let frames = Frames::new(budget_bytes).map_err(no_addresses)?;
        let table = Table::new(budget_bytes >= frames::HUGE_BUDGET_BYTES).map_err(no_addresses)?;
        let pool = Arc::new_cyclic(|me| Self {
            frames,
            table,
            gate: Gate::new(1),
            changes: Changes::default(),
            withheld: withheld::Registry::default(),
            frees: frees::Frees::default(),
            page_store,
            executor,
            read_ahead_tasks: AtomicU64::new(0),
            loading: (0..QUEUES).map(|_| Waiters::default()).collect(),
            room: Waiters::default(),
            clock: Clock::new(),
            records: Records::new(budget_bytes),
            counts: (0..PLACES).map(|_| Counts::default()).collect(),
            me: Weak::clone(me),
        });
        let upkeep: Weak<dyn Upkeep> = Arc::<Self>::downgrade(&pool);
        pool.executor.add_upkeep(upkeep);
        Ok(pool)
    }

    /// The page, loaded if need be, which parks. It retries until the page was in memory once.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`]; also `Corrupt` if there is no such page (an optimistic read may
    /// return a stale id, so callers validate the parent first and start over). If the page needs memory that
    /// only dirty pages could give, the reason why these cannot be written.
    #[inline]
    pub fn read(&self, id: PageId, access: Access) -> Result<OptimisticGuard<'_>, Error> {
        if trouble!(Page) {
            return Err(Error::Io { doing: format!("read page {}", id.0), errno: libc::EIO });
        }
        match self.look(id, access) {
            Some(guard) => {
                count(&self.counts[own_place()].hits);
                Ok(guard)
            }
            None => self.read_slowly(id, access),
        }
    }

    /// The page, if it is in memory and nobody is changing it.
    #[inline]
    pub fn resident(&self, id: PageId) -> Option<OptimisticGuard<'_>> {
        // Trouble is for those who wait.
        let guard = self.look(id, Access::Normal).filter(|_| !trouble!(expected Page))?;
        count(&self.counts[own_place()].hits);
        Some(guard)
    }

    /// The page, if it is still in memory and nobody has changed it since this pool's `page_version`.
    #[inline]
    pub fn revisit(&self, page_version: PageVersion) -> Option<OptimisticGuard<'_>> {
        let PageVersion { frame, version } = page_version;
        let meta = self.frames.meta(frame);
        // Under this version the frame has had the same page all the time.
        let id = PageId(meta.page.load(Ordering::Relaxed));
        let guard = Some(OptimisticGuard { meta, page: self.frames.page(frame), version, frame, id });
        let guard = guard.filter(OptimisticGuard::is_valid)?;
        guard.note_use();
        count(&self.counts[own_place()].hits);
        Some(guard)
    }

    /// Whether the page would have to be read from the device.
    #[inline]
    pub fn is_absent(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| {
            matches!(entry.load().location(), PageLocation::Device(_) | PageLocation::Loading(_))
        })
    }

    /// Whether it is not even being read.
    #[inline]
    pub fn is_only_on_device(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| matches!(entry.load().location(), PageLocation::Device(_)))
    }

    /// Whether the page is still in memory and nobody has changed it since this pool's `page_version`.
    #[inline]
    pub fn is_valid(&self, page_version: PageVersion) -> bool {
        self.frames.meta(page_version.frame).latch.is_valid(page_version.version)
    }

    /// The page, if it is in memory and nobody is changing it.
    #[inline]
    fn look(&self, id: PageId, access: Access) -> Option<OptimisticGuard<'_>> {
        let frame = self.table.entry(id)?.load().frame()?;
        let meta = self.frames.meta(frame);
        let version = meta.latch.try_read()?;
        // The frame may have become another page's since the entry was looked at, but under this version it
        // stays what it is.
        if meta.page.load(Ordering::Acquire) != id.0 {
            return None;
        }
        let guard = OptimisticGuard { meta, page: self.frames.page(frame), version, frame, id };
        if access == Access::Normal {
            guard.note_use();
        }
        Some(guard)
    }

    /// Begins to fetch the page table's word of a page into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, id: PageId) {
        self.table.prefetch(id);
    }

    /// The same of what is looked at first of a page that is in memory.
    #[inline]
    pub fn prefetch_frame(&self, id: PageId) {
        if let Some(frame) = self.table.entry(id).and_then(|entry| entry.load().frame()) {
            prefetch_line(self.frames.meta(frame));
            prefetch(self.frames.page(frame).words(0, 128));
        }
    }

    /// To be called between prefetching and using a part of a page that was not looked at lately: other tasks
    /// go on meanwhile, unless the processor's cache probably holds all there is.
    #[inline]
    pub fn overlap(&self) {
        if self.frames.budget_bytes() - self.frames.unbacked_bytes() > PROCESSOR_CACHE_BYTES {
            overlap();
        } else {
            go_on();
        }
    }

    /// Begins a change.
    #[inline]
    pub fn section(&self) -> Section<'_> {
        Section::new(self)
    }

    /// The cache would have to have `least` bytes.
    #[cold]
    fn too_small_for(&self, class: usize, least: u64) -> Error {
        Error::Options(format!(
            "a cache of {} bytes is too small for pages of {}: give it at least {least}",
            self.frames.budget_bytes(),
            class_bytes(class),
        ))
    }

    /// Memory for a new page of `class`; parks until there is some.
    ///
    /// # Errors
    /// [`Error::Options`] if the budget is too small for pages of that class; [`Error::Full`] if there are
    /// too many pages. If only dirty pages could give memory, the reason why these cannot be written.
    pub fn reserve(&self, class: usize) -> Result<Reserved<'_>, Error> {
        let least = class_bytes(class) * PAGE_DIVISOR;
        if least > self.frames.budget_bytes() {
            return Err(self.too_small_for(class, least));
        }
        if !self.table.has_room() {
            return Err(Error::Full { why: "there are no numbers left for new pages".into() });
        }
        if trouble!(Frame) {
            return Err(self.fail_write());
        }
        // Pages that nobody will write leave no memory to others: it would be taken from the nodes that lead
        // here, again and again.
        self.page_store.check()?;
        Ok(Reserved::new(self, self.take_frame(class)?))
    }

    /// As after a write that has failed.
    #[cold]
    fn fail_write(&self) -> Error {
        let first = "a write that was to fail".to_owned();
        self.page_store.give_up(&first);
        Error::Poisoned { first }
    }

    /// # Errors
    /// [`Error::Poisoned`] if nothing is written any more.
    pub fn check(&self) -> Result<(), Error> {
        self.page_store.check()
    }

    /// After [`Denied::NoRoom`].
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`].
    pub fn wait_for_room(&self) -> Result<(), Error> {
        self.page_store.wait_for_room(Stream::Fresh)
    }

    /// After [`Section::gather`] was denied for want of room.
    ///
    /// # Errors
    /// As [`Pool::wait_for_room`].
    pub fn wait_for_overflow_room(&self) -> Result<(), Error> {
        self.page_store.wait_for_room(Stream::Overflow)
    }

    /// Bytes of pages in memory that have changed since they were written.
    pub fn dirty_bytes(&self) -> u64 {
        self.sum(|part| &part.dirty_bytes)
    }

    /// Of these, those that a checkpoint writes.
    pub fn durable_dirty_bytes(&self) -> u64 {
        self.dirty_bytes().saturating_sub(self.sum(|part| &part.volatile_dirty_bytes))
    }

    /// Bytes of all volatile pages that there are, in memory or on the device.
    pub fn volatile_bytes(&self) -> u64 {
        self.sum(|part| &part.volatile_bytes)
    }

    fn sum(&self, of: fn(&Counts) -> &AtomicI64) -> u64 {
        self.counts.iter().map(|part| of(part).load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// See [`Hits`].
    pub fn hits(&self) -> Hits {
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            self.counts.iter().map(|part| of(part).load(Ordering::Relaxed)).sum()
        };
        let (hits, misses) = (sum(|part| &part.hits), sum(|part| &part.misses));
        Hits { hits, misses, records: self.records.hits() }
    }

    /// The budget.
    pub fn budget_bytes(&self) -> u64 {
        self.frames.budget_bytes()
    }

    /// The part of the budget that records without pages leave to pages.
    pub fn budget_of_pages_bytes(&self) -> u64 {
        self.budget_bytes() - self.records.bytes()
    }

    /// Bytes of records without their pages.
    pub fn records_bytes(&self) -> u64 {
        self.records.bytes()
    }

    /// The present epoch; out of date as soon as a cut happens.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.gate.epoch())
    }

    fn mark_dirty(&self, id: PageId, frame: Frame, epoch: u32) {
        self.frames.meta(frame).dirty_epoch.store(epoch, Ordering::Release);
        self.count_dirty(id, class_bytes(frame.class()) as i64);
    }

    fn mark_clean(&self, id: PageId, frame: Frame) {
        self.frames.meta(frame).dirty_epoch.store(0, Ordering::Release);
        self.count_dirty(id, -(class_bytes(frame.class()) as i64));
    }

    fn count_dirty(&self, id: PageId, more_bytes: i64) {
        let counts = &self.counts[own_place()];
        counts.dirty_bytes.fetch_add(more_bytes, Ordering::Relaxed);
        if id.is_volatile() {
            counts.volatile_dirty_bytes.fetch_add(more_bytes, Ordering::Relaxed);
        }
    }

    /// A volatile page of this class was made (`sign` 1) or freed (-1).
    fn count_volatile(&self, id: PageId, class: usize, sign: i64) {
        if id.is_volatile() {
            let bytes = sign * class_bytes(class) as i64;
            self.counts[own_place()].volatile_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Gathers the image of a page that is dirty since `dirty_epoch`; then it is clean. The caller has the
    /// latch.
    fn append(&self, id: PageId, frame: Frame, dirty_epoch: u32) -> Result<UnitSequence, NotAppended> {
        let (meta, page) = (self.frames.meta(frame), self.frames.page(frame));
        let overflow = Header::of(page).kind == PageKind::Overflow as u8;
        let stream = if overflow { Stream::Overflow } else { Stream::Fresh };
        let from = Location::from_bits(meta.location.load(Ordering::Relaxed));
        let appended = self.page_store.append(stream, id, frame.class(), page, from)?;
        if !id.is_volatile() {
            self.changes.note(dirty_epoch, Moved { id, from, to: Some(appended.location) });
        }
        meta.location.store(appended.location.bits(), Ordering::Relaxed);
        meta.unit.store(appended.unit.0, Ordering::Relaxed);
        self.mark_clean(id, frame);
        Ok(appended.unit)
    }

    /// Makes a frame, whose bytes are complete, the page's.
    fn publish(&self, id: PageId, frame: Frame, state: u8) {
        let meta = self.frames.meta(frame);
        meta.state.store(state, Ordering::Relaxed);
        meta.page.store(id.0, Ordering::Release);
    }

    /// Gives frames back that are nobody's page any more.
    fn give_back(&self, frames: &[Frame]) {
        if !frames.is_empty() {
            self.frames.give_back(frames);
            changed();
            frames.iter().for_each(|_| self.room.wake_one(FRAME));
        }
    }
}
