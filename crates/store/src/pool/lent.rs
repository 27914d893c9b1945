//! Memory of the pool's budget that holds no page.

use super::Pool;
use super::frames::Frame;
use super::section::Reserved;
use crate::page::Page;
use crate::sync::Arc;

/// A frame, for as long as this lives. All zeros at first.
pub(crate) struct Lent {
    pool: Arc<Pool>,
    frame: Frame,
}

impl Pool {
    /// Lends a frame of `class`, if there is a free one.
    pub fn try_lend(self: &Arc<Self>, class: usize) -> Option<Lent> {
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
        self.pool.pages.frames().give_back(&[self.frame]);
    }
}
