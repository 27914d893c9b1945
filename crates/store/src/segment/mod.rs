//! Every page write is a large aligned one: page images are gathered into write units, units into segments, and a cleaner makes whole segments free again.
//!
//! Invariants:
//! - What a completed checkpoint refers to is not overwritten before the next one is complete: a segment without live bytes becomes free only with the first checkpoint
//!   whose epoch is not older than the moment it lost its last live byte.
//! - A location is handed out before its unit is on the device; nobody reads it, and no page leaves memory on account of it, until [`Segments::is_written`].

mod location;

use flashgrain_device::Op;

use crate::Error;
use crate::header::PageId;
use crate::lane::Devices;
use crate::layout::Layout;
use crate::page::Page;
use crate::poison::Poison;
use crate::task::Crew;
pub(crate) use location::Location;

/// Which open segment an image goes to: pages of like lifetimes lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Pages that were changed just now.
    Fresh,
    /// Pages that the cleaner moved.
    Moved,
    /// Large values.
    Overflow,
    /// The page table.
    Map,
}

/// Number of a write unit, in the order in which they were opened; also the write sequence of the images in it. From 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitSequence(pub u64);

/// An image that was gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// Where it will be.
    pub location: Location,
    /// With which unit it gets there.
    pub unit: UnitSequence,
}

/// Why nothing was gathered.
#[derive(Debug)]
pub(crate) enum NotAppended {
    /// All buffers are on their way to the device: call [`Segments::wait_for_room`] with no latch in hand, then try again.
    NoBuffer,
    /// There is no free segment; likewise.
    NoSegment,
    /// The store is poisoned.
    Failed(Error),
}

/// See the module.
pub(crate) struct Segments {}

impl Segments {
    pub fn new(_layout: &Layout, _devices: Devices, _crew: Crew, _poison: Poison) -> Self {
        todo!()
    }

    /// Packs a page, to which the caller has the latch, into the open unit of `stream`, with checksum and sequence. The image becomes live. Never waits and never yields.
    pub fn append(
        &self,
        _stream: Stream,
        _id: PageId,
        _class: usize,
        _page: Page<'_>,
    ) -> Result<Appended, NotAppended> {
        todo!()
    }

    /// Waits until [`Segments::append`] may find a buffer and a segment. Call with no latch in hand.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no free segment and none is to be expected; [`Error::Poisoned`].
    pub fn wait_for_room(&self) -> Result<(), Error> {
        todo!()
    }

    /// Whether this unit and all before it are written.
    pub fn is_written(&self, _unit: UnitSequence) -> bool {
        todo!()
    }

    /// Sends the open units on their way, however full, and waits until all images gathered so far are written (not flushed).
    pub fn write_all(&self) -> Result<(), Error> {
        todo!()
    }

    /// The image there is garbage from now on.
    pub fn release(&self, _location: Location) {
        todo!()
    }

    /// Reads and verifies the image at `location` into `memory` (a frame of that class) and unpacks it. Parks.
    ///
    /// # Safety
    /// `memory` has the bytes of the location's class, is aligned to 4096, and is used by nobody else until this returns.
    pub unsafe fn read(&self, _location: Location, _id: PageId, _memory: *mut u8) -> Result<(), Error> {
        let _ = Op::Read;
        todo!()
    }
}
