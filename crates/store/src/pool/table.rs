//! The page table: one word per page with its location, and the numbers that are free for new pages.
//!
//! ```text
//! 00 | location   on the device       10 | frame      in memory
//! 01 | next       no such page        11 | location   being loaded from there
//! 0               no such page
//! ```
//!
//! Numbers of pages that were freed are linked through their own words. A checkpoint still knows those freed
//! since, so a number is given out again only when the checkpoint of the epoch that freed it is complete.
//! Volatile pages are in no checkpoint; their numbers are given out again at once.

use super::prefetch::prefetch_line;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicPtr;

use super::frames::Frame;
use super::mapping::Mapping;
use crate::header::PageId;
use crate::segment::Location;

/// Pages of either sort: 32 TiB of the smallest.
const PAGES_MAX: u64 = 1 << 33;

/// Entries are mapped a chunk of this many at a time, when their numbers come near: 16 MiB of addresses, and
/// memory only for existing pages.
const CHUNK_PAGES: u64 = 1 << 21;

/// Chunks of either sort of pages.
const CHUNKS: usize = (PAGES_MAX / CHUNK_PAGES) as usize;

/// Entries are mapped this many numbers ahead: more than are given out between two looks at
/// [`Table::has_room`].
const AHEAD_PAGES: u64 = 1 << 20;

/// An entry's content, encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

/// A decoded [`Word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageLocation {
    Nowhere,
    Device(Location),
    Memory(Frame),
    Loading(Location),
}

const TAG_SHIFT: u32 = 62;
const FREE: u64 = 0b01;
const MEMORY: u64 = 0b10;
const LOADING: u64 = 0b11;
const REST: u64 = (1 << TAG_SHIFT) - 1;

impl Word {
    /// Of no page.
    pub fn nowhere() -> Self {
        Self(0)
    }

    pub fn device(location: Location) -> Self {
        Self(location.bits())
    }

    pub fn memory(frame: Frame) -> Self {
        Self(MEMORY << TAG_SHIFT | u64::from(frame.bits()))
    }

    pub fn loading(location: Location) -> Self {
        Self(LOADING << TAG_SHIFT | location.bits())
    }

    /// The frame, if the page is in memory.
    #[inline]
    pub fn frame(self) -> Option<Frame> {
        (self.0 >> TAG_SHIFT == MEMORY).then(|| Frame::from_bits(self.0 as u32))
    }

    pub fn location(self) -> PageLocation {
        let location = Location::from_bits(self.0 & REST);
        match (self.0 >> TAG_SHIFT, location) {
            (MEMORY, _) => PageLocation::Memory(Frame::from_bits(self.0 as u32)),
            (LOADING, Some(location)) => PageLocation::Loading(location),
            (0, Some(location)) => PageLocation::Device(location),
            _ => PageLocation::Nowhere,
        }
    }
}

/// The word of a page.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Entry(AtomicU64);

impl Entry {
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    #[inline]
    pub fn store(&self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }

    /// The page does not exist.
    pub fn clear(&self) {
        self.store(Word(0));
    }

    /// Puts `new` there if it is still `old`.
    pub fn exchange(&self, old: Word, new: Word) -> bool {
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// See the module.
pub(super) struct Table {
    /// Address of each chunk's entries, first of durable pages, then of volatile ones; null if the chunk is
    /// not mapped yet. Never changed once it is not null.
    chunks: Box<[AtomicPtr<Entry>; 2 * CHUNKS]>,
    is_huge: bool,
    numbers: Mutex<Numbers>,
}

/// Free numbers.
struct Numbers {
    durable: Sort,
    volatile: Sort,
    /// Freed in an epoch whose checkpoint is not complete; oldest first.
    waiting: VecDeque<(u32, Chain)>,
    /// The chunks.
    mapped: Vec<Mapping>,
}

/// Of one sort of pages.
struct Sort {
    reusable: Chain,
    /// From here on none was ever given out.
    next: u64,
    /// Numbers of all existing pages.
    pages: u64,
}

/// See [`Table::restoring`].
pub(super) struct Restoring<'a> {
    table: &'a Table,
    numbers: MutexGuard<'a, Numbers>,
}

impl<'a> Restoring<'a> {
    /// Puts `word` there, or nothing.
    #[inline]
    pub fn restore(&mut self, id: PageId, word: Option<Word>) {
        let table = self.table;
        let Some(entry) = table.entry(id).or_else(|| self.mapped(id)) else { return };
        let pages = &mut self.numbers.durable.pages;
        *pages -= u64::from(entry.load() != Word(0));
        *pages += u64::from(word.is_some());
        entry.store(word.unwrap_or(Word(0)));
    }

    /// All that a superblock counts is mapped; a log may name more.
    #[cold]
    fn mapped(&mut self, id: PageId) -> Option<&'a Entry> {
        self.table.map(&mut self.numbers, id).ok()?;
        self.table.entry(id)
    }
}

/// Free numbers linked through their words; zero ends.
#[derive(Clone, Copy, Default)]
struct Chain {
    first: u64,
    last: u64,
}

impl Table {
    pub fn new(huge: bool) -> io::Result<Self> {
        let chunks = Box::new(std::array::from_fn(|_| AtomicPtr::default()));
        let numbers = Numbers {
            durable: Sort { reusable: Chain::default(), next: 1, pages: 0 },
            volatile: Sort { reusable: Chain::default(), next: PageId::FIRST_VOLATILE, pages: 0 },
            waiting: VecDeque::new(),
            mapped: Vec::new(),
        };
        let table = Self { chunks, is_huge: huge, numbers: Mutex::new(numbers) };
        for first in [0, PageId::FIRST_VOLATILE] {
            table.map(&mut table.numbers(), PageId(first))?;
        }
        Ok(table)
    }

    /// Maps the entry of a number, with its chunk, unless it is.
    fn map(&self, numbers: &mut Numbers, id: PageId) -> io::Result<()> {
        let Some(chunk) = self.chunk(id) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        if chunk.load(Ordering::Acquire).is_null() {
            let mapping = Mapping::reserve(CHUNK_PAGES * 8, self.is_huge)?;
            chunk.store(mapping.start().cast(), Ordering::Release);
            numbers.mapped.push(mapping);
        }
        Ok(())
    }

    /// Maps the entries of all durable numbers below `next`.
    pub fn map_until(&self, next: PageId) -> io::Result<()> {
        let mut numbers = self.numbers();
        let firsts = (0..next.0.min(PAGES_MAX)).step_by(CHUNK_PAGES as usize);
        firsts.map(PageId).try_for_each(|first| self.map(&mut numbers, first))
    }

    /// The entry of a page; `None` for a number that no page can have.
    #[inline]
    pub fn entry(&self, id: PageId) -> Option<&Entry> {
        let chunk = self.chunk(id)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk stays mapped as long as `self` lives and holds `CHUNK_PAGES` words; zeroed memory
        // is a valid `Entry`, which is only changed atomically.
        Some(unsafe { &*chunk.add((id.0 % CHUNK_PAGES) as usize) })
    }

    /// The chunk that has a page's entry; `None` for a number that no page can have. Every look at a page
    /// goes through here, hence shifts and masks instead of a look-up by sort.
    #[inline]
    fn chunk(&self, id: PageId) -> Option<&AtomicPtr<Entry>> {
        const SORT: u64 = PageId::FIRST_VOLATILE / CHUNK_PAGES;
        let number = id.0 / CHUNK_PAGES;
        let is_number = number & !(SORT | (CHUNKS as u64 - 1)) == 0;
        let index = number % SORT + number / SORT * CHUNKS as u64;
        is_number.then(|| &self.chunks[index as usize % (2 * CHUNKS)])
    }

    /// Has the processor fetch the entry of a page that exists.
    #[inline]
    pub fn prefetch(&self, id: PageId) {
        if let Some(entry) = self.entry(id) {
            prefetch_line(entry);
        }
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are numbers for many more pages.
    pub fn has_room(&self) -> bool {
        let mut numbers = self.numbers();
        let last = PAGES_MAX - AHEAD_PAGES;
        let nexts = [numbers.durable.next, numbers.volatile.next];
        nexts.iter().all(|next| {
            next % PageId::FIRST_VOLATILE < last
                && self.map(&mut numbers, PageId(*next)).is_ok()
                && self.map(&mut numbers, PageId(next + AHEAD_PAGES)).is_ok()
        })
    }

    /// A number for a new page, whose entry says that the page does not exist yet. Look at
    /// [`Table::has_room`] before.
    pub fn take_number(&self, volatile: bool) -> PageId {
        let mut numbers = self.numbers();
        let sort = if volatile { &mut numbers.volatile } else { &mut numbers.durable };
        sort.pages += 1;
        let first = PageId(sort.reusable.first);
        match self.entry(first) {
            Some(entry) if first.0 != 0 => {
                let next = entry.0.swap(0, Ordering::AcqRel) & REST;
                sort.reusable = Chain { first: next, last: if next == 0 { 0 } else { sort.reusable.last } };
                first
            }
            _ => {
                sort.next += 1;
                PageId(sort.next - 1)
            }
        }
    }

    /// The page of this number does not exist any longer, since `epoch`.
    pub fn free_number(&self, id: PageId, epoch: u32) {
        let mut numbers = self.numbers();
        if id.is_volatile() {
            numbers.volatile.pages -= 1;
            return self.link(&mut numbers.volatile.reusable, id);
        }
        numbers.durable.pages -= 1;
        if numbers.waiting.back().is_none_or(|(last, _)| *last < epoch) {
            numbers.waiting.push_back((epoch, Chain::default()));
        }
        // The chain of a younger epoch does, too.
        if let Some((_, chain)) = numbers.waiting.back_mut() {
            self.link(chain, id);
        }
    }

    fn link(&self, chain: &mut Chain, id: PageId) {
        let Some(entry) = self.entry(id) else { return };
        entry.0.store(FREE << TAG_SHIFT | chain.first, Ordering::Release);
        chain.first = id.0;
        if chain.last == 0 {
            chain.last = id.0;
        }
    }

    /// The checkpoint of `epoch` is complete: numbers freed until then can be used again.
    pub fn reuse_until(&self, epoch: u32) {
        let mut numbers = self.numbers();
        while let Some(&(freed_in, chain)) = numbers.waiting.front() {
            if freed_in > epoch {
                return;
            }
            numbers.waiting.pop_front();
            let reusable = &mut numbers.durable.reusable;
            if let Some(last) = self.entry(PageId(chain.last)).filter(|_| chain.last != 0) {
                last.0.store(FREE << TAG_SHIFT | reusable.first, Ordering::Release);
                let last = if reusable.last == 0 { chain.last } else { reusable.last };
                *reusable = Chain { first: chain.first, last };
            }
        }
    }

    /// Puts `word` where no page is; `false` if there is one. The number is not given out any more.
    pub fn adopt(&self, id: PageId, word: Word) -> bool {
        let mut numbers = self.numbers();
        // Recovery has mapped all numbers that a log can name.
        let _mapped = self.map(&mut numbers, id);
        let Some(entry) = self.entry(id).filter(|entry| entry.load() == Word(0)) else { return false };
        entry.store(word);
        numbers.durable.next = numbers.durable.next.max(id.0 + 1);
        numbers.durable.pages += 1;
        true
    }

    /// While a store is opened: puts words there, with the numbers locked once for all.
    pub fn restoring(&self) -> Restoring<'_> {
        Restoring { table: self, numbers: self.numbers() }
    }

    /// All numbers that were ever given out.
    pub fn all_numbers(&self) -> impl Iterator<Item = PageId> + use<> {
        let numbers = self.numbers();
        (1..numbers.durable.next).chain(PageId::FIRST_VOLATILE..numbers.volatile.next).map(PageId)
    }

    /// Number of existing durable pages.
    pub fn pages(&self) -> u64 {
        self.numbers().durable.pages
    }

    /// The first durable number that was never given out.
    pub fn next_number(&self) -> u64 {
        self.numbers().durable.next
    }

    /// Numbers below `next` are not given out as new ones.
    pub fn begin_at(&self, next: u64) {
        let durable = &mut self.numbers().durable;
        durable.next = durable.next.max(next);
    }

    /// Makes all numbers reusable that were given out and whose page does not exist; those that wait for a
    /// checkpoint stay. It takes no new memory for entries that were never used.
    pub fn find_reusable(&self) {
        let mut numbers = self.numbers();
        let next = numbers.durable.next;
        for id in (1..next).rev().map(PageId) {
            if self.entry(id).is_some_and(|entry| entry.load() == Word(0)) {
                self.link(&mut numbers.durable.reusable, id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_where_the_page_is() {
        let location = Location::new(512 * 77, 4096, 3);
        let frame = Frame::from_bits(5 << 28 | 123);
        assert_eq!(Word::device(location).location(), PageLocation::Device(location));
        assert_eq!(Word::loading(location).location(), PageLocation::Loading(location));
        assert_eq!(Word::memory(frame).location(), PageLocation::Memory(frame));
        assert_eq!((Word::memory(frame).frame(), Word::loading(location).frame()), (Some(frame), None));
        assert_eq!(
            (Word(0).location(), Word(FREE << TAG_SHIFT | 9).location()),
            (PageLocation::Nowhere, PageLocation::Nowhere)
        );
    }

    #[test]
    fn numbers_come_back_with_the_checkpoint_of_their_epoch() {
        let table = Table::new(false).unwrap();
        let take = || table.take_number(false).0;
        assert_eq!([take(), take(), take(), take()], [1, 2, 3, 4]);
        for (id, epoch) in [(2, 7), (4, 7), (1, 8)] {
            table.free_number(PageId(id), epoch);
        }
        assert_eq!(take(), 5);
        table.reuse_until(6);
        assert_eq!(take(), 6);
        table.reuse_until(7);
        assert_eq!([take(), take(), take()], [4, 2, 7]);
        table.free_number(PageId(3), 8);
        table.reuse_until(8);
        assert_eq!([take(), take(), take()], [3, 1, 8]);
        assert!(table.entry(PageId(3)).unwrap().load() == Word(0));
    }

    #[test]
    fn volatile_numbers_come_back_at_once() {
        let table = Table::new(false).unwrap();
        let first = table.take_number(true);
        assert!(first.is_volatile());
        table.free_number(first, 1);
        assert_eq!(table.take_number(true), first);
    }

    #[test]
    fn what_cannot_be_a_page_has_no_entry() {
        let table = Table::new(false).unwrap();
        for id in [PAGES_MAX, PageId::FIRST_VOLATILE + PAGES_MAX, 2 * PageId::FIRST_VOLATILE, u64::MAX] {
            assert!(table.entry(PageId(id)).is_none(), "{id}");
        }
        assert!(table.entry(PageId(PAGES_MAX - 1)).is_none(), "mapped although no number is near");
        table.map(&mut table.numbers(), PageId(PAGES_MAX - 1)).unwrap();
        assert!(table.entry(PageId(PAGES_MAX - 1)).is_some());
    }

    #[test]
    fn entries_are_mapped_before_their_numbers_are_given_out() {
        let table = Table::new(false).unwrap();
        table.begin_at(3 * CHUNK_PAGES - 1);
        assert!(table.has_room());
        for _ in 0..3 {
            let id = table.take_number(false);
            table.entry(id).unwrap().store(Word::device(Location::new(4096, 4096, 0)));
        }
        assert!(table.entry(PageId(CHUNK_PAGES)).is_none());
        table.map_until(PageId(3 * CHUNK_PAGES)).unwrap();
        assert!((0..3).all(|chunk| table.entry(PageId(chunk * CHUNK_PAGES)).is_some()));
        assert!(table.numbers().mapped.len() <= 6);
    }

    #[test]
    fn gaps_are_found_after_opening() {
        let table = Table::new(false).unwrap();
        table.begin_at(6);
        for id in [1, 2, 4] {
            table.entry(PageId(id)).unwrap().store(Word::device(Location::new(id * 4096, 4096, 0)));
        }
        table.find_reusable();
        let taken: Vec<u64> = (0..3).map(|_| table.take_number(false).0).collect();
        assert_eq!(taken, [3, 5, 6]);
    }
}
