//! Content of a drive after a power cut.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::table::{NONE, PAGE_BYTES, Page};
use super::{Content, SECTOR_BYTES, ZEROS};

const PAGE_SECTORS: u64 = PAGE_BYTES as u64 / SECTOR_BYTES;

impl Content {
    /// The writes that a power cut may undo: version, and from the first to the last byte that is not
    /// settled; the oldest first.
    pub fn unsettled(&self) -> BTreeMap<u64, Range<u64>> {
        let mut writes = BTreeMap::<u64, Range<u64>>::new();
        for entry in self.history.iter().filter(|entry| !entry.doomed) {
            let page = entry.page * PAGE_BYTES as u64;
            let first = page + u64::from(entry.sectors.trailing_zeros()) * SECTOR_BYTES;
            let end = page + u64::from(u8::BITS - entry.sectors.leading_zeros()) * SECTOR_BYTES;
            let range = writes.entry(entry.version).or_insert(first..end);
            *range = range.start.min(first)..range.end.max(end);
        }
        writes
    }

    /// Of the unsettled writes, only those sectors are left for which `survives` (given the version, and the
    /// sector's number on the drive) returns true; of several that survive in one sector the newest.
    /// Everything is settled then.
    pub fn cut_power(&mut self, survives: impl Fn(u64, u64) -> bool) {
        let mut pages: Vec<u64> = self.history.iter().map(|entry| entry.page).collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            let left = self.left_of(page, &survives);
            if let Some(slot) = self.table.get_mut(page) {
                slot.unsettled = NONE;
                slot.page = left;
            }
        }
        self.history = super::History::default();
    }

    /// The bytes of a page after a power cut.
    fn left_of(&self, page: u64, survives: &impl Fn(u64, u64) -> bool) -> Option<Arc<Page>> {
        let slot = self.table.get(page)?;
        let mut sources = [slot.page.as_ref(); PAGE_SECTORS as usize];
        for (sector, source) in sources.iter_mut().enumerate() {
            let number = page * PAGE_SECTORS + sector as u64;
            let writes = self.history.chain(slot.unsettled).filter(|entry| entry.sectors >> sector & 1 == 1);
            for write in writes {
                if !write.doomed && survives(write.version, number) {
                    break;
                }
                *source = write.before.as_ref();
            }
        }
        let same = |a: Option<&Arc<Page>>, b: Option<&Arc<Page>>| a.map(Arc::as_ptr) == b.map(Arc::as_ptr);
        if sources.iter().all(|source| same(*source, sources[0])) {
            return sources[0].map(Arc::clone);
        }
        let mut bytes = ZEROS;
        for (bytes, (sector, source)) in
            bytes.chunks_exact_mut(SECTOR_BYTES as usize).zip(sources.iter().enumerate())
        {
            if let Some(source) = source {
                let from = sector * SECTOR_BYTES as usize;
                bytes.copy_from_slice(&source[from..from + SECTOR_BYTES as usize]);
            }
        }
        Some(Arc::new(bytes))
    }

    /// Whether this drive and `other` hold the same newest bytes.
    pub fn same_bytes(&self, other: &Self) -> bool {
        let covers = |one: &Self, other: &Self| {
            one.table.pages().all(|(number, page)| {
                match other.table.get(number).and_then(|slot| slot.page.as_ref()) {
                    Some(held) => Arc::ptr_eq(page, held) || page == held,
                    None => **page == ZEROS,
                }
            })
        };
        self.capacity_bytes == other.capacity_bytes && covers(self, other) && covers(other, self)
    }
}
