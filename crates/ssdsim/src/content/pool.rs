//! Pages that are used again, and pages that are shared because they hold the same bytes.

use std::sync::Arc;

use super::table::{PAGE_BYTES, Page, Table};

/// So many are kept at most: 4 MiB.
const PAGES_MAX: usize = 1024;

/// Pages that are not shared. A copy of a pool is an empty one.
#[derive(Default)]
pub(super) struct Pool(Vec<Arc<Page>>);

impl Clone for Pool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pool {
    /// A page with these bytes, [`PAGE_BYTES`] of them.
    #[inline]
    pub fn page(&mut self, bytes: &[u8]) -> Arc<Page> {
        if let Some(mut page) = self.0.pop()
            && let Some(room) = Arc::get_mut(&mut page)
        {
            room.copy_from_slice(bytes);
            return page;
        }
        // One copy, straight to the heap.
        match Arc::<[u8]>::from(bytes).try_into() {
            Ok(page) => page,
            Err(_) => unreachable!("a page has {PAGE_BYTES} bytes"),
        }
    }

    /// Takes a page back, unless it is shared.
    #[inline]
    pub fn give_back(&mut self, mut page: Arc<Page>) {
        if self.0.len() < PAGES_MAX && Arc::get_mut(&mut page).is_some() {
            self.0.push(page);
        }
    }
}

/// The page that was last written from each place in the host's memory.
///
/// Experiments write the same memory over and over, as its content does not matter. A page with the bytes of
/// the one that was last written from the same place is that page; so a long experiment takes little memory,
/// and no time to fill it.
#[derive(Clone, Default)]
pub(super) struct Sources(Vec<u64>);

/// Pages of the host's memory that are told apart: 32 MiB.
const SOURCES: usize = 8192;

impl Sources {
    /// A page of `table` that was written from the same memory as `bytes` are now, to `page`, if it holds the
    /// same.
    #[inline]
    pub fn same(&mut self, bytes: &[u8], page: u64, table: &Table) -> Option<Arc<Page>> {
        if self.0.is_empty() {
            self.0 = vec![page; SOURCES];
        }
        let last = &mut self.0[bytes.as_ptr() as usize / PAGE_BYTES % SOURCES];
        let held = table.get(std::mem::replace(last, page))?.page.as_ref()?;
        (held[..] == *bytes).then(|| Arc::clone(held))
    }
}
