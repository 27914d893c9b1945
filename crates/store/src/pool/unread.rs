//! Freeing pages that need not be looked at.

use super::changes::Moved;
use super::section::{Denied, Parts, Section};
use super::table::{PageLocation, Word};
use super::{Access, Pool};
use crate::Error;
use crate::header::PageId;
use crate::segment::Lifetime;
use crate::task::yield_now;

impl<'a> Section<'a> {
    /// The page does not exist any longer, if it did. It is not loaded for that. Only the caller has a
    /// reference to it.
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

impl Pool {
    /// Frees a page, or a segment that is owned whole, in a section of its own. Only the caller has a
    /// reference to it.
    ///
    /// # Errors
    /// Those of [`Images::recover`](super::images::Images::recover); the page is still there then.
    pub fn free_unread(&self, id: PageId) -> Result<(), Error> {
        loop {
            let section = self.section_of(Lifetime::Fixed);
            let freed = section.free_unread(id);
            drop(section);
            match freed {
                Ok(()) => return Ok(()),
                Err(denied) => self.images.recover(denied)?,
            }
            yield_now();
        }
    }
}
