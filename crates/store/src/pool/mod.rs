//! The buffer pool: pages in memory, within a hard budget.
//!
//! The page table has one word per page, which contains the page's frame or its location on the device. So a
//! look-up of a resident page is one load, a page fault is one compare-and-swap, and no page needs to know
//! the references to it (vmcache, instead of swizzled pointers with parent pointers).
//!
//! How to read: [`Pool::read`] a page, look at it, and [`OptimisticGuard::is_valid`] before believing
//! anything. How to change: reserve memory for new pages, [`Pool::section`], [`Section::lock`] the pages that
//! were read, change them, drop the section. A section never waits: no parking, no yielding, no I/O within; a
//! debug assertion watches. A checkpoint's cut falls between sections, so the changes of one section are in a
//! checkpoint as a whole or not at all.
//!
//! The parts own their fields; code that uses several parts is a view that borrows those, and no others:
//!
//! | part | state that it owns, and alone changes |
//! | --- | --- |
//! | [`Frames`] | memory, free frames and the waiters for one |
//! | [`Pages`] | the page table, with access to the frames, and counts of look-ups |
//! | [`Images`] | which pages are dirty, and how locations have changed since the last checkpoint |
//! | [`Gate`] | the epoch, and sections under way |
//! | [`Registry`] | pages that checkpoints leave out |
//! | [`Frees`] | how many pages were freed |
//! | [`Loads`] | waiters for pages that are being loaded |
//! | [`Clock`] | the hands of the eviction, and pages that wait to leave |
//! | [`Records`] | records without their pages; others of them directories of nodes in blocks |
//! | [`Blocks`] | blocks of owned segments |
//! | [`ReadAhead`] | tasks that load pages in advance |
//!
//! | view | operations, and the parts that they use |
//! | --- | --- |
//! | [`Section`] | changes pages: pages, images, gate, registry, frees |
//! | [`Evictor`] | takes pages out of memory: pages, images, clock, records, blocks |
//! | [`Loader`] | brings pages into memory: pages, images, loads, clock, and the evictor for a frame |
//! | [`RecordCache`] | keeps single records: records, frames |
//! | [`Checkpoints`], [`Opening`] | cuts and flushes; restores: pages, images, gate |
//!
//! Synchronization, by state and the thread that alone may change it:
//! - The entry of a page that is in memory, and its frame's [`Meta`]: the holder of the frame's latch.
//! - The entry of a page that is on the device: anyone, by compare-and-swap. The thread or task that makes it
//!   *loading* is the one that loads the page; others wait. Only the cleaner may exchange the location
//!   meanwhile.
//! - A frame of [records]: the holder of its ring's lock. It never holds a page.
//! - A frame of [blocks]: no thread, from when it has a block until the last share of that is gone.
//! - Another frame without a page: its taker from the free list. A latch is taken only after the page was
//!   seen in the frame and the latch's version has not changed since, so no other thread takes the latch of
//!   such a frame.

mod ahead;
mod blocks;
mod changes;
mod checkpoint;
mod evict;
mod fault;
mod frames;
mod frees;
mod gate;
mod image_blocks;
mod images;
mod latch;
mod lent;
mod mapping;
mod opening;
mod page_store;
mod pages;
mod pinned;
mod prefetch;
mod records;
mod relocate;
mod section;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod together;
mod unlent;
mod unread;
mod waiters;
mod withheld;

use flashgrain_device::limits::{Limit, limited};

use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::page::Page;
use crate::segment::Lifetime;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Weak};
use crate::task::{Executor, Upkeep};
use ahead::ReadAhead;
use blocks::Blocks;
pub(crate) use blocks::{BlockId, BlockShare};
pub(crate) use changes::Moved;
use checkpoint::Checkpoints;
use evict::{Clock, Evictor};
use fault::{Loader, Loads};
pub(crate) use frames::{Frame, Frames, Meta};
use frees::Frees;
use gate::Gate;
pub(crate) use gate::own_place;
pub(crate) use image_blocks::ImageBlock;
use images::Images;
use latch::Version;
pub(crate) use lent::Lent;
use opening::Opening;
pub(crate) use page_store::PageStore;
pub(crate) use pages::Pages;
pub(crate) use pinned::PinnedBlock;
use pinned::Pins;
pub(crate) use prefetch::prefetch;
pub(crate) use records::RecordKey;
use records::{RecordCache, Records};
use section::Parts;
pub(crate) use section::{Denied, Reserved, Section};
use table::Table;
pub(crate) use unlent::Unlent;
#[cfg(test)]
pub(crate) use unlent::backing_page_bytes;
use withheld::Registry;
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
/// Of one that a scan loaded, and that has not been used otherwise.
const SCANNED: u8 = 2;

/// The smallest budget: a split, a fault and other operations under way must find frames at the same time.
pub(crate) const BUDGET_BYTES_MIN: u64 = 128 << 10;

/// A page may take this part of the budget.
const PAGE_DIVISOR: u64 = 8;

/// See the module.
pub(crate) struct Pool {
    /// Where pages are.
    pub pages: Pages,
    /// Pages that are newer in memory than on the device.
    pub images: Images,
    /// Pages that checkpoints leave out.
    pub withheld: Registry,
    /// Whether pages were freed.
    pub frees: Frees,
    gate: Gate,
    loads: Loads,
    clock: Clock,
    records: Records,
    directories: Records,
    blocks: Blocks,
    ahead: ReadAhead,
    /// Bytes of [`Lent`] frames.
    lent_bytes: AtomicU64,
    pins: Arc<Pins>,
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

/// A page that was resident when it was looked at, and its version then. Readers take no latch: they read,
/// and ask the guard afterwards whether the page was unchanged meanwhile.
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

/// The frame that a page was in, and the version of its latch then: see [`Pages::revisit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageVersion {
    frame: Frame,
    version: Version,
}

impl Pool {
    /// A pool with no pages. Its frames, with their [`Meta`], take at most `budget_bytes`; in addition it
    /// takes 8 bytes per existing page. `executor` does its background work; unless it gets other upkeep, its
    /// workers make room between their tasks.
    ///
    /// # Errors
    /// [`Error::Options`] if the budget is too small; [`Error::Device`] if the system does not give that many
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
            pages: Pages::new(table, frames),
            images: Images::new(page_store),
            withheld: Registry::default(),
            frees: Frees::default(),
            gate: Gate::new(1),
            loads: Loads::new(),
            clock: Clock::new(),
            records: Records::new(budget_bytes),
            directories: Records::new(budget_bytes / 2),
            blocks: Blocks::new(),
            ahead: ReadAhead::new(executor.clone(), Weak::clone(me), budget_bytes),
            lent_bytes: AtomicU64::new(0),
            pins: Arc::default(),
        });
        let upkeep: Weak<dyn Upkeep> = Arc::<Self>::downgrade(&pool);
        executor.add_upkeep(upkeep);
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
        #[cfg(any(test, feature = "testing"))]
        crate::task::progress::step();
        if trouble!(Page) {
            return Err(Error::io(format!("read page {}", id.0), libc::EIO));
        }
        match self.pages.look(id, access) {
            Some(guard) => {
                self.pages.count_hit();
                Ok(guard)
            }
            None => self.read_slowly(id, access),
        }
    }

    #[cold]
    #[inline(never)]
    fn read_slowly(&self, id: PageId, access: Access) -> Result<OptimisticGuard<'_>, Error> {
        self.loader().read(id, access)
    }

    /// The page, if it is in memory and not being changed.
    #[inline]
    pub fn resident(&self, id: PageId) -> Option<OptimisticGuard<'_>> {
        // Only callers that wait meet trouble.
        let guard = self.pages.look(id, Access::Normal).filter(|_| !trouble!(expected Page))?;
        self.pages.count_hit();
        Some(guard)
    }

    /// Brings pages into memory.
    pub fn loader(&self) -> Loader<'_> {
        Loader::new((&self.pages, &self.images), (&self.loads, &self.clock), self.evictor())
    }

    fn evictor(&self) -> Evictor<'_> {
        Evictor::new(
            (&self.pages, &self.images),
            &self.clock,
            ([&self.records, &self.directories], &self.blocks),
        )
    }

    /// Records without their pages.
    #[inline]
    pub fn records(&self) -> RecordCache<'_> {
        RecordCache::new(&self.records, self.pages.frames())
    }

    /// Directories of nodes in blocks, kept like records without their pages.
    #[inline]
    pub fn directories(&self) -> RecordCache<'_> {
        RecordCache::new(&self.directories, self.pages.frames())
    }

    /// For a checkpoint.
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints::new(&self.pages, &self.images, &self.gate)
    }

    /// For recovery.
    pub fn opening(&self) -> Opening<'_> {
        Opening::new(self.pages.table(), &self.gate)
    }

    /// Begins a change of pages that are changed again and again.
    #[inline]
    pub fn section(&self) -> Section<'_> {
        self.section_of(Lifetime::Changing)
    }

    /// Begins a change of pages that stay as they are for as long as `lifetime` says.
    #[inline]
    pub fn section_of(&self, lifetime: Lifetime) -> Section<'_> {
        let Self { pages, images, gate, withheld, frees, .. } = self;
        Section::new(Parts { pages, images, gate, withheld, frees }, lifetime)
    }

    /// The largest class of pages: an image fits into a write unit, and several pages into the budget.
    pub fn class_max(&self) -> usize {
        let of_budget = |class: &usize| class_bytes(*class) * PAGE_DIVISOR <= self.pages.budget_bytes();
        let of_unit = |class: &usize| class_bytes(*class) <= self.images.store().page_bytes_max();
        (0..CLASSES).rev().find(|class| of_budget(class) && of_unit(class)).unwrap_or(0)
    }

    /// Memory for a new page of `class`; parks until there is some.
    ///
    /// # Errors
    /// [`Error::Options`] if the budget or the write unit is too small for pages of that class;
    /// [`Error::Full`] if there are too many pages. If only dirty pages could give memory, the reason why
    /// these cannot be written.
    pub fn reserve(&self, class: usize) -> Result<Reserved<'_>, Error> {
        let least = class_bytes(class) * PAGE_DIVISOR;
        if least > self.pages.budget_bytes() {
            return Err(too_small_for(self.pages.budget_bytes(), class, least));
        }
        let unit_bytes = self.images.store().page_bytes_max();
        if class_bytes(class) > unit_bytes {
            return Err(too_large_for_unit(class, unit_bytes));
        }
        if !self.pages.table().has_room() {
            return Err(Error::Full { why: "there are no numbers left for new pages".into() });
        }
        if trouble!(Frame) {
            return Err(self.images.fail_write());
        }
        // Pages that will not be written leave no memory to others: it would be taken from the nodes that
        // lead here, again and again.
        self.images.check()?;
        Ok(Reserved::new(self.pages.frames(), self.evictor().take_frame(class)?))
    }

    /// See [`Hits`].
    pub fn hits(&self) -> Hits {
        let (hits, misses) = self.pages.hits_and_misses();
        Hits { hits, misses, records: self.records.hits() }
    }

    /// The part of the budget that records without pages, and directories, leave to pages.
    pub fn budget_of_pages_bytes(&self) -> u64 {
        self.pages.budget_bytes().saturating_sub(self.records.bytes() + self.directories.bytes())
    }

    /// Bytes of records without their pages, and of directories of nodes in blocks.
    pub fn records_bytes(&self) -> u64 {
        self.records.bytes() + self.directories.bytes()
    }

    /// The present epoch; out of date as soon as a cut happens.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.gate.epoch())
    }
}

impl Upkeep for Pool {
    fn step(&self) {
        self.evictor().make_room();
    }
}

/// An image of a page is in one write unit, which has `unit_bytes`.
#[cold]
fn too_large_for_unit(class: usize, unit_bytes: u64) -> Error {
    let page_bytes = class_bytes(class);
    Error::Options(format!("pages of {page_bytes} bytes do not fit into a write unit of {unit_bytes}"))
}

/// The cache, which has `budget_bytes`, would have to have `least` for a page of this class.
#[cold]
fn too_small_for(budget_bytes: u64, class: usize, least: u64) -> Error {
    Error::Options(format!(
        "a cache of {budget_bytes} bytes is too small for pages of {}: give it at least {least}",
        class_bytes(class),
    ))
}
