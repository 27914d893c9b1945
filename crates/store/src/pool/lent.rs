//! Memory of the pool's budget that holds no page.

use super::Pool;
use super::frames::Frame;
use super::section::Reserved;
use crate::class::class_bytes;
use crate::page::Page;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

/// At most the budget divided by this is lent: pages need the rest.
const LENT_DIVISOR: u64 = 2;

/// A frame, for as long as this lives. All zeros at first.
pub(crate) struct Lent {
    pool: Arc<Pool>,
    frame: Frame,
}

impl Pool {
    /// Lends a frame of `class`, if one is free and not too much is lent.
    pub fn try_lend(self: &Arc<Self>, class: usize) -> Option<Lent> {
        let most = self.pages.budget_bytes() / LENT_DIVISOR;
        let more = |lent| Some(lent + class_bytes(class)).filter(|lent| *lent <= most);
        self.lent_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let lent = self.lend(class);
        if lent.is_none() {
            self.lent_bytes.fetch_sub(class_bytes(class), Ordering::Relaxed);
        }
        lent
    }

    fn lend(self: &Arc<Self>, class: usize) -> Option<Lent> {
        let frame = Reserved::new(self.pages.frames(), self.pages.frames().spare(class)?).keep();
        Some(Lent { pool: Arc::clone(self), frame })
    }
}

impl Lent {
    /// Its bytes.
    #[inline]
    pub fn page(&self) -> Page<'_> {
        self.pool.pages.frames().page(self.frame)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.lent_bytes.fetch_sub(class_bytes(self.frame.class()), Ordering::Relaxed);
        self.pool.pages.frames().give_back(&[self.frame]);
    }
}
