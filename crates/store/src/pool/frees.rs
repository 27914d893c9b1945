//! Whether pages were freed during a walk over all of them.
//!
//! A list of pages is out of date as soon as a page on it is freed: its number may be another page's then.
//! [`Frees::count`] before the list is made and after it was used say that nothing was freed meanwhile.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Frees of durable pages.
#[derive(Default)]
pub(crate) struct Frees {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A page is being freed.
pub(super) struct Freeing<'a>(&'a Frees);

impl Frees {
    pub(super) fn begin(&self) -> Freeing<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Freeing(self)
    }

    /// How often a durable page was freed, or tried to be, since the store was opened; `None` while one is
    /// being freed.
    pub fn count(&self) -> Option<u64> {
        // In this order: equal counts say that whatever has begun by the second load had ended by the first.
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        (begun == ended).then_some(begun)
    }
}

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}
