//! Images that the cleaner has moved.

use super::changes::Moved;
use super::table::{Entry, PageLocation, Word};
use super::{Pool, Section};
use crate::header::PageId;
use crate::segment::Location;
use crate::sync::atomic::Ordering;
use crate::task::yield_now;

impl Pool {
    /// For the cleaner: makes `new`, where the image is already on the device, the page's location if it is
    /// still `old` and the page has not changed since. Releases neither.
    pub fn relocate(&self, id: PageId, old: Location, new: Location) -> bool {
        let Some(entry) = self.pages.table().entry(id) else { return false };
        loop {
            // The change belongs to the epoch of its section.
            let section = self.section();
            if let Some(done) = section.try_relocate(id, entry, old, new) {
                return done;
            }
            drop(section);
            yield_now();
        }
    }
}

impl Section<'_> {
    /// `None` if the page or its entry is being changed.
    fn try_relocate(&self, id: PageId, entry: &Entry, old: Location, new: Location) -> Option<bool> {
        let moved = Moved { id, from: Some(old), to: Some(new) };
        let note = |make: &dyn Fn() -> bool| match id.is_volatile() {
            true => make(),
            false => self.parts.images.changes().note_if(self.epoch().0, moved, make),
        };
        match entry.load().location() {
            PageLocation::Device(at) if at == old => {
                note(&|| entry.exchange(Word::device(old), Word::device(new))).then_some(true)
            }
            PageLocation::Loading(at) if at == old => {
                note(&|| entry.exchange(Word::loading(old), Word::loading(new))).then_some(true)
            }
            PageLocation::Device(at) if planted!(CleanerMovesStale) => {
                note(&|| entry.exchange(Word::device(at), Word::device(new))).then_some(true)
            }
            PageLocation::Nowhere | PageLocation::Device(_) | PageLocation::Loading(_) => Some(false),
            PageLocation::Memory(frame) => {
                let meta = self.parts.pages.frames().meta(frame);
                let version = meta.latch.try_read()?;
                if meta.page.load(Ordering::Acquire) != id.0 || !meta.latch.try_upgrade(version) {
                    return None;
                }
                let current = meta.dirty_epoch.load(Ordering::Relaxed) == 0
                    && meta.location.load(Ordering::Relaxed) == old.bits();
                if current {
                    note(&|| true);
                    meta.location.store(new.bits(), Ordering::Relaxed);
                    meta.unit.store(0, Ordering::Relaxed);
                }
                meta.latch.unlock_unchanged();
                Some(current)
            }
        }
    }
}
