//! The bytes of a drive, stored sparsely, and which of them a power cut would lose.
//!
//! Pages that were never written take no memory and read as zeros. On a volatile drive, every write keeps the
//! previous content until the medium says that the write is settled. Invariants:
//! - the newest bytes are always in the table, so reads need not know which bytes are settled;
//! - for every sector, the bytes that were settled last are in the before-image of the oldest unsettled write
//!   to it, or, if there is none, in the table;
//! - the bytes that an unsettled write put into a sector are in the before-image of the next write to that
//!   sector, or, if there is none, in the table.

mod history;
mod pool;
mod survive;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use self::history::{Entry, History};
use self::pool::{Pool, Sources};
use self::table::{PAGE_BYTES, Page, PageStorage, Table};

/// Sectors are the smallest unit that a power cut leaves whole.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// A page that was written more often than this without being settled is taken to have been written back by
/// the drive's own choice, the oldest write first: otherwise a place that is written over and over would take
/// memory without bound.
const UNSETTLED_PER_PAGE_MAX: usize = 32;

static ZEROS: Page = [0; PAGE_BYTES];

/// See the module. A clone shares all pages that neither of the two writes.
#[derive(Clone)]
pub(crate) struct Content {
    capacity_bytes: u64,
    volatile: bool,
    table: Table,
    history: History,
    pool: Pool,
    sources: Sources,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Content")
            .field("capacity_bytes", &self.capacity_bytes)
            .finish_non_exhaustive()
    }
}

/// A range within one page.
struct Piece {
    page: u64,
    start: usize,
    /// Bytes in the whole range.
    bytes: Range<usize>,
}

/// The pages of a range, in order.
fn pieces(offset_bytes: u64, length_bytes: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length_bytes {
            return None;
        }
        let at = offset_bytes + done as u64;
        let start = (at % PAGE_BYTES as u64) as usize;
        let bytes = done..length_bytes.min(done + PAGE_BYTES - start);
        done = bytes.end;
        Some(Piece { page: at / PAGE_BYTES as u64, start, bytes })
    })
}

/// The sectors that a range within a page touches.
fn sectors(start: usize, length: usize) -> u8 {
    let sector = SECTOR_BYTES as usize;
    let (first, end) = (start / sector, (start + length).div_ceil(sector));
    ((1_u32 << end) - (1_u32 << first)) as u8
}

impl Content {
    /// All zeros. On a `volatile` drive, writes are lost in a power cut until they are settled.
    pub fn new(capacity_bytes: u64, volatile: bool) -> Self {
        Self {
            capacity_bytes,
            volatile,
            table: Table::new(capacity_bytes.div_ceil(PAGE_BYTES as u64)),
            history: History::default(),
            pool: Pool::default(),
            sources: Sources::default(),
        }
    }

    /// Size of the drive.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Stores `bytes`, whole sectors. `version` numbers the writes to all drives of a device in the order in
    /// which they arrive.
    pub fn write(&mut self, version: u64, offset_bytes: u64, bytes: &[u8]) {
        debug_assert!((offset_bytes | bytes.len() as u64).is_multiple_of(SECTOR_BYTES));
        for piece in pieces(offset_bytes, bytes.len()) {
            let bytes = &bytes[piece.bytes];
            let same = if bytes.len() == PAGE_BYTES {
                self.sources.same(bytes, piece.page, &self.table)
            } else {
                None
            };
            if self.volatile {
                self.write_undoably(version, piece.page, piece.start, bytes, same);
                continue;
            }
            let slot = self.table.entry(piece.page);
            match same {
                Some(same) => {
                    if let Some(page) = slot.page.replace(same) {
                        self.pool.give_back(page);
                    }
                }
                None => overwrite(slot, &mut self.pool, piece.start, bytes),
            }
        }
    }

    /// `same` is a page with the same bytes, if one is known.
    fn write_undoably(
        &mut self,
        version: u64,
        page: u64,
        start: usize,
        bytes: &[u8],
        same: Option<Arc<Page>>,
    ) {
        let Self { table, history, pool, .. } = self;
        let slot = table.entry(page);
        let before = slot.page.take();
        slot.page = Some(match same {
            Some(same) => same,
            None if bytes.len() == PAGE_BYTES => pool.page(bytes),
            None => {
                let mut page = pool.page(before.as_deref().unwrap_or(&ZEROS));
                Arc::make_mut(&mut page)[start..start + bytes.len()].copy_from_slice(bytes);
                page
            }
        });
        let (older, sectors) = (slot.unsettled, sectors(start, bytes.len()));
        slot.unsettled = history.insert(Entry { page, version, sectors, doomed: false, before, older });
        if history.chain(slot.unsettled).count() > UNSETTLED_PER_PAGE_MAX {
            let oldest = history.chain(slot.unsettled).filter(|entry| !entry.doomed).last();
            if let Some(version) = oldest.map(|entry| entry.version) {
                history.settle(slot, u8::MAX, version, |page| pool.give_back(page));
            }
        }
    }

    /// The newest bytes.
    #[inline]
    pub fn read(&self, offset_bytes: u64, bytes: &mut [u8]) {
        for piece in pieces(offset_bytes, bytes.len()) {
            let room = &mut bytes[piece.bytes];
            match self.table.get(piece.page).and_then(|slot| slot.page.as_ref()) {
                Some(page) => room.copy_from_slice(&page[piece.start..piece.start + room.len()]),
                None => room.fill(0),
            }
        }
    }

    /// Marks as durable, so that it survives a power cut, all that write `version` and earlier writes put
    /// into this range.
    pub fn settle(&mut self, offset_bytes: u64, length_bytes: u64, version: u64) {
        if self.history.is_empty() {
            return;
        }
        if length_bytes / PAGE_BYTES as u64 > self.history.slots() as u64 {
            // Cheaper the other way round, such as for a whole disk.
            let end = offset_bytes + length_bytes;
            let pages: Vec<u64> = self.history.iter().map(|entry| entry.page).collect();
            for page in pages {
                let start = page * PAGE_BYTES as u64;
                let (from, to) = (start.max(offset_bytes), (start + PAGE_BYTES as u64).min(end));
                if from < to {
                    self.settle_page(page, (from - start) as usize, (to - from) as usize, version);
                }
            }
            return;
        }
        for piece in pieces(offset_bytes, length_bytes as usize) {
            self.settle_page(piece.page, piece.start, piece.bytes.len(), version);
        }
    }

    fn settle_page(&mut self, page: u64, start: usize, length: usize, version: u64) {
        let Self { table, history, pool, .. } = self;
        if table.get(page).is_some_and(|slot| slot.unsettled != table::NONE)
            && let Some(slot) = table.get_mut(page)
        {
            history.settle(slot, sectors(start, length), version, |page| pool.give_back(page));
        }
    }

    /// Zeros from now on, power cut or not, and no memory for them.
    pub fn discard(&mut self, offset_bytes: u64, length_bytes: u64) {
        let page_bytes = PAGE_BYTES as u64;
        let end = offset_bytes + length_bytes;
        let whole = offset_bytes.div_ceil(page_bytes)..end / page_bytes;
        if whole.start > whole.end {
            return self.zero(offset_bytes, length_bytes);
        }
        self.zero(offset_bytes, whole.start * page_bytes - offset_bytes);
        self.zero(whole.end * page_bytes, end - whole.end * page_bytes);
        let Self { table, history, pool, .. } = self;
        table.clear(whole, |slot| {
            history.forget(slot, u8::MAX, |page| pool.give_back(page));
            if let Some(page) = slot.page.take() {
                pool.give_back(page);
            }
        });
    }

    /// Zeros in a part of a page, for good.
    fn zero(&mut self, offset_bytes: u64, length_bytes: u64) {
        let Self { table, history, pool, .. } = self;
        for piece in pieces(offset_bytes, length_bytes as usize) {
            if let Some(slot) = table.get_mut(piece.page) {
                history.forget(slot, sectors(piece.start, piece.bytes.len()), |page| pool.give_back(page));
                if slot.page.is_some() {
                    overwrite(slot, pool, piece.start, &ZEROS[..piece.bytes.len()]);
                }
            }
        }
    }

    /// Stores `bytes` for good, as if they had always been settled.
    pub fn put(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let Self { table, history, pool, .. } = self;
        for piece in pieces(offset_bytes, bytes.len()) {
            let slot = table.entry(piece.page);
            history.forget(slot, sectors(piece.start, piece.bytes.len()), |page| pool.give_back(page));
            overwrite(slot, pool, piece.start, &bytes[piece.bytes]);
        }
    }

    /// Changes a bit for all later reads.
    pub fn flip(&mut self, offset_bytes: u64, bit: u32) {
        let mut byte = [0];
        self.read(offset_bytes, &mut byte);
        byte[0] ^= 1 << bit;
        let slot = self.table.entry(offset_bytes / PAGE_BYTES as u64);
        overwrite(slot, &mut self.pool, (offset_bytes % PAGE_BYTES as u64) as usize, &byte);
    }

    /// The drive has lost the unsettled writes, but for versions that are spared, and does not know: they are
    /// read until the next power cut, and never settled.
    pub fn doom_unsettled(&mut self, is_spared: impl Fn(u64) -> bool) {
        self.history.doom(is_spared);
    }

    /// Bytes of memory that hold the newest bytes; shared pages count once.
    pub fn stored_bytes(&self) -> u64 {
        let pages: HashSet<*const Page> = self.table.pages().map(|(_, page)| Arc::as_ptr(page)).collect();
        (pages.len() * PAGE_BYTES) as u64
    }
}

/// Puts `bytes` into a page, in place unless the page is shared.
#[inline]
fn overwrite(slot: &mut PageStorage, pool: &mut Pool, start: usize, bytes: &[u8]) {
    match &mut slot.page {
        Some(page) if bytes.len() < PAGE_BYTES => {
            Arc::make_mut(page)[start..start + bytes.len()].copy_from_slice(bytes);
        }
        Some(page) => match Arc::get_mut(page) {
            Some(page) => page.copy_from_slice(bytes),
            None => *page = pool.page(bytes),
        },
        None if bytes.len() == PAGE_BYTES => slot.page = Some(pool.page(bytes)),
        None => {
            let mut page = pool.page(&ZEROS);
            Arc::make_mut(&mut page)[start..start + bytes.len()].copy_from_slice(bytes);
            slot.page = Some(page);
        }
    }
}
