//! Where pages are: the page table, and the frames of those in memory.

use super::frames::Frames;
use super::gate::{PLACES, own_place};
use super::prefetch::{prefetch, prefetch_line};
use super::table::{PageLocation, Table};
use super::{Access, OptimisticGuard, PageVersion};
use crate::class::class_bytes;
use crate::header::PageId;
use crate::segment::Location;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::task::{go_on, overlap, yield_now};

/// Less than this is read from the processor's caches more quickly than tasks could take turns.
const PROCESSOR_CACHE_BYTES: u64 = 8 << 20;

/// Page numbers that are looked at before others may run: some 100 µs.
const NUMBERS_PER_TURN: usize = 1 << 14;

/// See the module. Its public functions change nothing but statistics and the mark of a page that is used.
pub(crate) struct Pages {
    table: Table,
    frames: Arc<Frames>,
    counts: Box<[Counts]>,
}

/// Counters of the threads that share a slot.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    /// Bytes of volatile pages that they made, less bytes of those that they freed, in memory or not.
    volatile_bytes: AtomicI64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Counts one more. Mostly one thread has the place, so that this needs no locked instruction; where several
/// share it, a few may be lost.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Pages {
    pub(super) fn new(table: Table, frames: Frames) -> Self {
        Self { table, frames: Arc::new(frames), counts: (0..PLACES).map(|_| Counts::default()).collect() }
    }

    #[inline]
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    #[inline]
    pub(super) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The same for callers that keep memory for longer.
    pub(super) fn shared_frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    /// A page was found in memory.
    #[inline]
    pub(super) fn count_hit(&self) {
        count(&self.counts[own_place()].hits);
    }

    /// A page is going to be read.
    pub(super) fn count_miss(&self) {
        count(&self.counts[own_place()].misses);
    }

    /// How often pages were found in memory, and how often they were read.
    pub(super) fn hits_and_misses(&self) -> (u64, u64) {
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            self.counts.iter().map(|part| of(part).load(Ordering::Relaxed)).sum()
        };
        (sum(|part| &part.hits), sum(|part| &part.misses))
    }

    /// A volatile page of this class was made (`sign` 1) or freed (-1).
    pub(super) fn count_volatile(&self, id: PageId, class: usize, sign: i64) {
        if id.is_volatile() {
            let bytes = sign * class_bytes(class) as i64;
            self.counts[own_place()].volatile_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes of all volatile pages, in memory or on the device.
    pub fn volatile_bytes(&self) -> u64 {
        let bytes = self.counts.iter().map(|part| part.volatile_bytes.load(Ordering::Relaxed));
        bytes.sum::<i64>().max(0) as u64
    }

    /// The pool's budget.
    pub fn budget_bytes(&self) -> u64 {
        self.frames.budget_bytes()
    }

    /// The page, if it is in memory and not being changed. Not counted.
    #[inline]
    pub(super) fn look(&self, id: PageId, access: Access) -> Option<OptimisticGuard<'_>> {
        let frame = self.table.entry(id)?.load().frame()?;
        let meta = self.frames.meta(frame);
        let version = meta.latch.try_read()?;
        // The frame may have become another page's since the entry was looked at, but under this version it
        // stays the same.
        if meta.page.load(Ordering::Acquire) != id.0 {
            return None;
        }
        let guard = OptimisticGuard { meta, page: self.frames.page(frame), version, frame, id };
        if access == Access::Normal {
            guard.note_use();
        }
        Some(guard)
    }

    /// The page, if it is still in memory and has not changed since this pool's `page_version`.
    #[inline]
    pub fn revisit(&self, page_version: PageVersion) -> Option<OptimisticGuard<'_>> {
        let PageVersion { frame, version } = page_version;
        let meta = self.frames.meta(frame);
        // Under this version the frame has had the same page all the time.
        let id = PageId(meta.page.load(Ordering::Relaxed));
        let guard = Some(OptimisticGuard { meta, page: self.frames.page(frame), version, frame, id });
        let guard = guard.filter(OptimisticGuard::is_valid)?;
        guard.note_use();
        self.count_hit();
        Some(guard)
    }

    /// Whether the page is still in memory and has not changed since this pool's `page_version`.
    #[inline]
    pub fn is_valid(&self, page_version: PageVersion) -> bool {
        self.frames.meta(page_version.frame).latch.is_valid(page_version.version)
    }

    /// Whether the page would have to be read from the device.
    #[inline]
    pub fn is_absent(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| {
            matches!(entry.load().location(), PageLocation::Device(_) | PageLocation::Loading(_))
        })
    }

    /// The size class of a page; `None` if there is no such page.
    pub fn class_of(&self, id: PageId) -> Option<usize> {
        match self.table.entry(id)?.load().location() {
            PageLocation::Nowhere => None,
            PageLocation::Device(location) | PageLocation::Loading(location) => Some(location.class()),
            PageLocation::Memory(frame) => Some(frame.class()),
        }
    }

    /// Whether it is not even being read.
    #[inline]
    pub fn is_only_on_device(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| matches!(entry.load().location(), PageLocation::Device(_)))
    }

    /// Begins to fetch the page table's word of a page into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, id: PageId) {
        self.table.prefetch(id);
    }

    /// The same for the lines that are looked at first of a page that is in memory.
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
        if self.frames.budget_bytes().saturating_sub(self.frames.unbacked_bytes()) > PROCESSOR_CACHE_BYTES {
            overlap();
        } else {
            go_on();
        }
    }

    /// Location of a page's newest image. The image of a page that has changed since is garbage, except for
    /// checkpoints before the change; it counts with `garbage_too`.
    pub fn location(&self, id: PageId, garbage_too: bool) -> Option<Location> {
        let entry = self.table.entry(id)?;
        loop {
            match entry.load().location() {
                PageLocation::Nowhere => return None,
                PageLocation::Loading(_) if garbage_too && planted!(LoadingPageLeftOutOfMap) => return None,
                PageLocation::Device(location) | PageLocation::Loading(location) => return Some(location),
                PageLocation::Memory(frame) => {
                    let meta = self.frames.meta(frame);
                    if let Some(version) = meta.latch.try_read()
                        && meta.page.load(Ordering::Acquire) == id.0
                    {
                        let location = Location::from_bits(meta.location.load(Ordering::Relaxed));
                        let garbage = meta.dirty_epoch.load(Ordering::Relaxed) != 0;
                        if meta.latch.is_valid(version) {
                            return location.filter(|_| garbage_too || !garbage);
                        }
                    }
                    yield_now();
                }
            }
        }
    }

    /// The first page number that was never given out.
    pub fn next_page(&self) -> PageId {
        PageId(self.table.next_number())
    }

    /// Whether the page exists.
    pub fn exists(&self, id: PageId) -> bool {
        self.table.entry(id).is_some_and(|entry| entry.load().location() != PageLocation::Nowhere)
    }

    /// The numbers of all durable pages.
    pub fn all(&self) -> Vec<PageId> {
        self.table.all_numbers().filter(|id| !id.is_volatile() && self.exists(*id)).collect()
    }

    /// Number of existing durable pages.
    pub fn count(&self) -> u64 {
        self.table.pages()
    }

    /// For the cleaner: whether the page's newest state is the image at `location`.
    pub fn is_at(&self, id: PageId, location: Location) -> bool {
        let Some(entry) = self.table.entry(id) else { return false };
        match entry.load().location() {
            PageLocation::Nowhere => false,
            PageLocation::Device(at) | PageLocation::Loading(at) => at == location,
            PageLocation::Memory(frame) => {
                let meta = self.frames.meta(frame);
                meta.page.load(Ordering::Acquire) == id.0
                    && meta.dirty_epoch.load(Ordering::Relaxed) == 0
                    && meta.location.load(Ordering::Relaxed) == location.bits()
            }
        }
    }

    /// For the cleaner: all pages whose newest image is at a place that is `wanted`. It looks at every page
    /// that there is; lets others run in between.
    pub fn with_image(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)> {
        let mut found = Vec::new();
        for (number, id) in self.table.all_numbers().enumerate() {
            if let Some(location) = self.location(id, false).filter(|location| wanted(*location)) {
                found.push((id, location));
            }
            if number % NUMBERS_PER_TURN == 0 {
                yield_now();
            }
        }
        found
    }
}
