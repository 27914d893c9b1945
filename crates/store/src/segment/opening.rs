//! The interface of an opening store to its segments.

use super::gather::Gatherer;
use super::space::{SegmentState, Space};
use super::{Location, UnitSequence};
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::PageId;
use crate::sync::Arc;

/// See the module. Only pages that replaying the log changes are gathered meanwhile.
pub(crate) struct Opening {
    space: Arc<Space>,
    gatherer: Arc<Gatherer>,
}

impl Opening {
    pub(super) fn new(space: &Arc<Space>, gatherer: &Arc<Gatherer>) -> Self {
        Self { space: Arc::clone(space), gatherer: Arc::clone(gatherer) }
    }

    /// Sets the write sequences as the checkpoint knew them. Units are numbered from far after `next` on, so
    /// that images that were written after that checkpoint, and are forgotten, are never taken for those that
    /// are written from now on.
    pub fn restore_sequences(&self, next: UnitSequence, openings: &[(u64, UnitSequence)]) {
        self.space.restore_openings(openings);
        self.gatherer.output().buffers().skip_to(UnitSequence((next.0 | u64::from(u32::MAX)) + 1));
    }

    /// Adopts the pages of a checkpoint.
    pub fn adoption(&self) -> Adoption<'_> {
        Adoption { opening: self, live: vec![(0, None); self.space.count()] }
    }

    /// This page is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no segment has such a place.
    pub fn adopt(&self, id: PageId, location: Location) -> Result<(), Error> {
        self.adopt_in_place(id, location)?;
        self.adopt_as(location, SegmentState::Full)
    }

    /// The part of [`adopt`](Self::adopt) for pages that stay in their places.
    fn adopt_in_place(&self, id: PageId, location: Location) -> Result<(), Error> {
        if let Some(in_place) = self.gatherer.in_place() {
            let page_bytes = class_bytes(location.class().min(CLASSES - 1));
            let length_bytes = u64::from(location.length_bytes());
            // The page will be written to the same location again, however long its next image is.
            if length_bytes != page_bytes || page_bytes > self.gatherer.unit_bytes() {
                return Err(Error::Corrupt {
                    what: format!("the location of page {}, which stays in its place,", id.0),
                    offset_bytes: location.offset_bytes(),
                    expected: format!("all {page_bytes} bytes of the page, in one write unit"),
                    got: format!("{length_bytes} bytes"),
                });
            }
            in_place.adopt(id, location);
        }
        Ok(())
    }

    /// A part of the page table is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no segment has such a place.
    pub fn adopt_map(&self, location: Location) -> Result<(), Error> {
        self.adopt_as(location, SegmentState::Map)
    }

    fn adopt_as(&self, location: Location, state: SegmentState) -> Result<(), Error> {
        if self.space.adopt(location, state) { Ok(()) } else { Err(self.space.nowhere(location)) }
    }

    /// A record that is going to be replayed refers to the image at `location`, so no other image may be
    /// written there until [`Opening::let_go`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no segment has such a place.
    pub fn hold(&self, location: Location) -> Result<(), Error> {
        if self.space.hold(location) { Ok(()) } else { Err(self.space.nowhere(location)) }
    }

    /// Everything is replayed.
    pub fn let_go(&self) {
        self.space.let_go();
    }
}

/// The pages of a checkpoint, summed by segment before the segments are told: these are locked once each, and
/// not once for each page.
pub(crate) struct Adoption<'a> {
    opening: &'a Opening,
    /// The bytes of live images of each segment, and one of these.
    live: Vec<(u64, Option<Location>)>,
}

impl Adoption<'_> {
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
        let index = self.opening.space.index_of(location.offset_bytes());
        // The number of segments is asked once: it takes their lock.
        match index.and_then(|index| Some((self.live.get_mut(index)?, self.opening.space.range(index)))) {
            Some(((bytes, one), range)) if end <= range.end => {
                *bytes += u64::from(location.length_bytes());
                *one = Some(location);
                Ok(())
            }
            _ => Err(self.opening.space.nowhere(location)),
        }
    }

    /// Tells the segments.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a page is where there is something else.
    pub fn finish(self) -> Result<(), Error> {
        for (index, (bytes, one)) in self.live.into_iter().enumerate() {
            if let Some(location) = one
                && !self.opening.space.adopt_live(index, bytes)
            {
                return Err(self.opening.space.nowhere(location));
            }
        }
        Ok(())
    }
}
