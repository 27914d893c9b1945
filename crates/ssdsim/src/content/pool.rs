//! Pages that are used again.

use std::sync::Arc;

use super::table::{PAGE_BYTES, Page};

/// So many are kept at most: 4 MiB.
const MOST: usize = 1024;

/// Pages that nobody else holds. A copy of a pool is an empty one.
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

    /// Takes a page back, if nobody else holds it.
    #[inline]
    pub fn give_back(&mut self, mut page: Arc<Page>) {
        if self.0.len() < MOST && Arc::get_mut(&mut page).is_some() {
            self.0.push(page);
        }
    }
}
