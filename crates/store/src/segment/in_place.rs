//! Pages that always stay at the same place, one write per page: the baseline for measurements. Nothing here
//! is safe against crashes.

use crate::sync::{Mutex, PoisonError};
use std::collections::HashMap;

use super::{BufferSlot, Location, NotAppended, Segments, Stream, UnitSequence};
use crate::class::{CLASSES, class_bytes};
use crate::header::PageId;

/// Fixed locations of pages. A segment holds pages of one size class.
#[derive(Default)]
pub(super) struct InPlace(Mutex<Places>);

#[derive(Default)]
struct Places {
    of_pages: HashMap<PageId, Location>,
    /// Per size class the segment that has room left, and how much of it is taken.
    open: [Option<(usize, u64)>; CLASSES],
}

impl InPlace {
    /// While a store is opened.
    pub fn adopt(&self, id: PageId, location: Location) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).of_pages.insert(id, location);
    }
}

impl Segments {
    /// The page's place, and a unit of its own to write it with.
    pub(super) fn place_in_place(
        &self,
        in_place: &InPlace,
        id: PageId,
        class: usize,
    ) -> Result<BufferSlot, NotAppended> {
        self.check_fits(class_bytes(class))?;
        if !self.buffers.has_free() {
            return Err(NotAppended::NoBuffer);
        }
        let mut places = in_place.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = class_bytes(class);
        let known = places.of_pages.get(&id).filter(|location| location.class() == class);
        let location = match known {
            Some(location) => *location,
            None => {
                let location = Location::new(self.free_place(&mut places, class)?, bytes as u32, class);
                self.space.add_live(location, None);
                places.of_pages.insert(id, location);
                location
            }
        };
        let offset = location.offset_bytes();
        // Two writes of one page must not overtake each other.
        if self.buffers.holds_any_of(offset..offset + bytes) {
            return Err(NotAppended::NoBuffer);
        }
        let unit: UnitSequence = self.buffers.take(offset).ok_or(NotAppended::NoBuffer)?;
        self.buffers.begin_copy(unit);
        let _being_copied = self.buffers.seal(unit, bytes as u32);
        self.count(Stream::Fresh, offset, bytes as u32);
        Ok(BufferSlot { unit, location, start: 0 })
    }

    fn free_place(&self, places: &mut Places, class: usize) -> Result<u64, NotAppended> {
        let bytes = class_bytes(class);
        let (segment, taken) = match places.open[class] {
            Some((segment, taken)) if taken + bytes <= self.space.sizes().length(segment) => (segment, taken),
            _ => {
                let opening = self.buffers.next_sequence();
                (self.space.open(Stream::Fresh, opening).ok_or(NotAppended::NoSegment)?, 0)
            }
        };
        places.open[class] = Some((segment, taken + bytes));
        Ok(self.space.range(segment).start + taken)
    }
}
