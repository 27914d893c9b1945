//! Freeing pages that need not be looked at.

use super::Access;
use super::changes::Moved;
use super::section::{Denied, Parts, Section};
use super::table::{PageLocation, Word};
use crate::header::PageId;

impl<'a> Section<'a> {
    /// The page does not exist any longer, if it did. It is not loaded for that. Nobody refers to it but the
    /// caller.
    ///
    /// # Errors
    /// [`Denied`], and then the page is still there.
    pub fn free_unread(&self, id: PageId) -> Result<(), Denied> {
        let Parts { pages, images, frees, .. } = self.parts;
        let Some(entry) = pages.table().entry(id) else { return Ok(()) };
        match entry.load().location() {
            PageLocation::Nowhere => Ok(()),
            // A prefetch may be under way.
            PageLocation::Loading(_) => Err(Denied::Changed),
            PageLocation::Memory(_) => {
                let guard = pages.look(id, Access::Scan).ok_or(Denied::Changed)?;
                self.free(self.lock(&guard)?);
                Ok(())
            }
            PageLocation::Device(location) => {
                let _freeing = (!id.is_volatile()).then(|| frees.begin());
                let clear = || entry.exchange(Word::device(location), Word::nowhere());
                let moved = Moved { id, from: Some(location), to: None };
                let cleared = if id.is_volatile() {
                    clear()
                } else {
                    images.changes().note_if(self.epoch().0, moved, clear)
                };
                if !cleared {
                    return Err(Denied::Changed);
                }
                pages.count_volatile(id, location.class(), -1);
                images.store().release(location);
                pages.table().free_number(id, self.epoch().0);
                Ok(())
            }
        }
    }
}
