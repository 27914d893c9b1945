//! The pages of a checkpoint, summed by segment before the segments are told: the segments are locked once
//! each, and not once for each page.

use super::Location;
use super::opening::Opening;
use super::space::{SegmentState, Space};
use crate::Error;
use crate::header::PageId;

/// See the module.
pub(crate) struct Adoption<'a> {
    opening: &'a Opening,
    space: &'a Space,
    /// The bytes of live images of each segment, and one of these.
    live: Vec<(u64, Option<Location>)>,
}

impl<'a> Adoption<'a> {
    pub(super) fn new(opening: &'a Opening, space: &'a Space) -> Self {
        Self { opening, space, live: vec![(0, None); space.count()] }
    }

    /// This page is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no segment has such a place.
    #[inline]
    pub fn add(&mut self, id: PageId, location: Location) -> Result<(), Error> {
        self.opening.adopt_in_place(id, location)?;
        if location.is_segment() {
            return self.opening.adopt_as(location, SegmentState::Full);
        }
        let end = location.offset_bytes() + u64::from(location.length_bytes());
        let index = self.space.index_of(location.offset_bytes());
        // The number of segments is asked once: it takes their lock.
        match index.and_then(|index| Some((self.live.get_mut(index)?, self.space.range(index)))) {
            Some(((bytes, one), range)) if end <= range.end => {
                *bytes += u64::from(location.length_bytes());
                *one = Some(location);
                Ok(())
            }
            _ => Err(self.space.nowhere(location)),
        }
    }

    /// Tells the segments.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a page is where there is something else.
    pub fn finish(self) -> Result<(), Error> {
        for (index, (bytes, one)) in self.live.into_iter().enumerate() {
            if let Some(location) = one
                && !self.space.adopt_live(index, bytes)
            {
                return Err(self.space.nowhere(location));
            }
        }
        Ok(())
    }
}
