//! Pages that always stay at the same place, one write per page: the baseline for measurements. Nothing here
//! is safe against crashes.

use std::collections::HashMap;

use super::output::Output;
use super::unit::BufferSlot;
use super::{Location, NotAppended, Stream, UnitSequence};
use crate::class::{CLASSES, class_bytes};
use crate::header::PageId;
use crate::sync::{Mutex, PoisonError};

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

    /// The page's place, and a unit of its own to write it with.
    pub fn place(&self, output: &Output, id: PageId, class: usize) -> Result<BufferSlot, NotAppended> {
        output.check_fits(class_bytes(class))?;
        let buffers = output.buffers();
        if !buffers.has_free() {
            return Err(NotAppended::NoBuffer);
        }
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = class_bytes(class);
        let known = places.of_pages.get(&id).filter(|location| location.class() == class);
        let location = match known {
            Some(location) => *location,
            None => {
                let location = Location::new(places.take(output, class)?, bytes as u32, class);
                output.space().add_live(location, None);
                places.of_pages.insert(id, location);
                location
            }
        };
        let offset = location.offset_bytes();
        // Two writes of one page must not overtake each other.
        if buffers.holds_any_of(offset..offset + bytes) {
            return Err(NotAppended::NoBuffer);
        }
        let unit: UnitSequence = buffers.take(offset).ok_or(NotAppended::NoBuffer)?;
        buffers.begin_copy(unit);
        let _being_copied = buffers.seal(unit, bytes as u32);
        output.count(Stream::Fresh, offset, bytes as u32);
        Ok(BufferSlot { unit, location, start: 0 })
    }
}

impl Places {
    /// The first byte of a place for a page of this class.
    fn take(&mut self, output: &Output, class: usize) -> Result<u64, NotAppended> {
        let (bytes, space) = (class_bytes(class), output.space());
        let (segment, taken) = match self.open[class] {
            Some((segment, taken)) if taken + bytes <= space.sizes().length(segment) => (segment, taken),
            _ => {
                let opening = output.buffers().next_sequence();
                (space.open(Stream::Fresh, opening).ok_or(NotAppended::NoSegment)?, 0)
            }
        };
        self.open[class] = Some((segment, taken + bytes));
        Ok(space.range(segment).start + taken)
    }
}
