//! Out-of-place page writes: page images are gathered into write units, units into segments, and a cleaner
//! makes whole segments free again. So every write to the device is large and aligned.
//!
//! The life of a page image:
//!
//! 1. [`Segments::append`] packs the page into the open unit of a [target](policy::Target). The image is
//!    *live* from now on; its location is known, but there is nothing on the device yet.
//! 2. The unit is sealed when it is full, or when somebody waits for it, and written by one request. From
//!    then on [`Segments::is_written`] is true.
//! 3. The page is changed and gets a newer image. [`Segments::release`] makes the old one garbage.
//! 4. Or the [cleaner](cleaner) copies the image to another unit. When that is written, the page is relocated
//!    and the old image is garbage.
//!
//! The life of a segment is in [`space`].
//!
//! Invariants:
//! - No image that a completed checkpoint refers to is overwritten before the next one is complete: a segment
//!   without live bytes becomes free only with the first checkpoint whose epoch is not older than the moment
//!   it lost its last live byte.
//! - A location is handed out before its unit is on the device. No image is read, and no page leaves memory
//!   on account of it, until [`Segments::is_written`].
//! - An image's write sequence is at least its segment's opening sequence, so an image that an earlier use of
//!   the segment left there is never taken for it.
//!
//! Who may change what:
//! - The state of a segment: [`space`] alone, with its lock, which keeps the tally right.
//! - A segment's live bytes: `append` adds, `release` subtracts, both without the lock.
//! - An open unit: the holder of its target's gathering lock. The bytes of an image in it: the caller that
//!   got their place, until it ends its copy.
//! - The buffer of a sealed unit: the task that writes it.
//! - The location of a page: the pool alone. The cleaner asks it to relocate a page, and it refuses if the
//!   page has a newer image.

mod cleaner;
mod compact;
mod gather;
mod in_place;
mod location;
pub(crate) mod pack;
mod policy;
mod reading;
mod space;
mod stats;
mod survey;
mod table;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod unit;
mod upkeep;

use crate::sync::{Arc, Mutex, OnceLock, Weak};

use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::io_context::{Devices, Role};
use crate::layout::{Layout, Placement};
use crate::poison::Poison;
use crate::task::{Executor, Waker};
pub(crate) use cleaner::GAP_BYTES;
use cleaner::Moves;
use gather::{BufferSlot, Gathering};
use in_place::InPlace;
pub(crate) use location::{DEVICE_BYTES_MAX, Location};
use policy::{TARGETS, Target};
pub(crate) use space::Usage;
use space::{SegmentState, Space};
use stats::Counters;
pub(crate) use stats::Written;
use survey::Survey;
use unit::{Buffers, Fleet};
pub(crate) use upkeep::Pressure;
use upkeep::Upkeep;

/// Kinds of images, each gathered in segments of its own, so that pages of like lifetimes lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Pages that were changed just now.
    Fresh,
    /// Pages that the cleaner moved.
    Moved,
    /// Overflow values.
    Overflow,
    /// The page table.
    Map,
}

/// Number of a write unit, in the order in which they were opened, with gaps; also the write sequence of the
/// images in it. From 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UnitSequence(pub u64);

/// An image that was gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// Its location.
    pub location: Location,
    /// The unit that it is written with.
    pub unit: UnitSequence,
}

/// Why nothing was gathered.
#[derive(Debug)]
pub(crate) enum NotAppended {
    /// All buffers are on their way to the device: call [`Segments::wait_for_room`] with no latch in hand,
    /// then try again.
    NoBuffer,
    /// There is no free segment; likewise.
    NoSegment,
    /// The store is poisoned.
    Failed(Error),
}

/// The page locator: it knows the location of every page. The engine implements it over the pool, and asks
/// for checkpoints through it.
pub(crate) trait PageLocator: Send + Sync {
    /// Whether the newest image of the page is the one at `location`, and nothing newer is in memory.
    fn is_at(&self, id: PageId, location: Location) -> bool;

    /// Makes `new` the page's location if it is still `old` and nothing newer is in memory. Releases neither.
    fn relocate(&self, id: PageId, old: Location, new: Location) -> bool;

    /// All pages whose newest image is at a location that `wanted` accepts. It looks at every page of the
    /// store.
    fn pages_where(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)>;

    /// Asks for a checkpoint soon, as it would make segments free. Returns at once.
    fn want_checkpoint(&self);

    /// The pages that are newer in memory than on the device.
    fn dirty(&self) -> Dirty;
}

/// Bytes of pages that are newer in memory than on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// Of all: they need a place when they leave the memory.
    pub bytes: u64,
    /// Of those that the next checkpoint writes.
    pub durable_bytes: u64,
}

/// See the module.
pub(crate) struct Segments {
    own: Weak<Self>,
    layout: Layout,
    devices: Devices,
    executor: Executor,
    pub(crate) poison: Poison,
    space: Space,
    buffers: Buffers,
    gatherings: [Mutex<Gathering>; TARGETS],
    survey: Survey,
    moves: Moves,
    upkeep: Upkeep,
    in_place: Option<InPlace>,
    waiting: Mutex<Vec<Waker>>,
    page_locator: OnceLock<Weak<dyn PageLocator>>,
    counters: Counters,
}

impl Segments {
    /// Segments on the data device, all of them free.
    ///
    /// # Errors
    /// If there is no memory for the buffers.
    pub fn new(
        layout: &Layout,
        devices: Devices,
        executor: Executor,
        poison: Poison,
    ) -> Result<Arc<Self>, Error> {
        // A store may have been made on a drive with smaller sectors, and copied here. New images obey this
        // device's sectors.
        let sector_bytes = layout.sector_bytes.max(devices.device(Role::Data).geometry().offset_align_bytes);
        let layout = &Layout { sector_bytes, ..layout.clone() };
        let in_place = (layout.placement == Placement::InPlace).then(InPlace::default);
        let fleet = if in_place.is_some() { Fleet::Depth } else { Fleet::Bandwidth };
        let buffers = Buffers::new(layout.unit_bytes, fleet)?;
        let capacity_bytes = devices.device(Role::Data).capacity_bytes();
        let segments = Arc::new_cyclic(|own: &Weak<Self>| Self {
            own: Weak::clone(own),
            layout: layout.clone(),
            space: Space::new(layout, capacity_bytes),
            buffers,
            devices,
            executor,
            poison,
            gatherings: Default::default(),
            survey: Survey::default(),
            moves: Moves::default(),
            upkeep: Upkeep::default(),
            in_place,
            waiting: Mutex::default(),
            page_locator: OnceLock::new(),
            counters: Counters::default(),
        });
        let watching = Arc::downgrade(&segments);
        let wake = move || watching.upgrade().iter().for_each(|segments| segments.wake_all());
        segments.poison.when_failed(wake);
        Ok(segments)
    }

    /// Sets the page locator. To be called once, before anything is cleaned.
    pub fn set_page_locator(&self, locator: Weak<dyn PageLocator>) {
        let _first_stays = self.page_locator.set(locator);
    }

    /// The largest size class of which every page fits into a unit.
    pub fn class_max(&self) -> usize {
        (0..CLASSES).rev().find(|class| class_bytes(*class) <= u64::from(self.layout.unit_bytes)).unwrap_or(0)
    }

    fn page_locator(&self) -> Option<Arc<dyn PageLocator>> {
        self.page_locator.get()?.upgrade()
    }

    /// Bytes of a write unit.
    pub fn unit_bytes(&self) -> u64 {
        self.layout.unit_bytes.into()
    }

    /// Whether this unit is written.
    #[inline]
    pub fn is_written(&self, unit: UnitSequence) -> bool {
        self.buffers.is_written(unit)
    }

    /// Waits until this unit is written; sends it on its way if it is open, however full.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if it cannot be.
    pub fn wait_written(&self, unit: UnitSequence) -> Result<(), Error> {
        for target in Target::ALL {
            let mut gathering = self.gathering(target);
            if gathering.open_unit() == Some(unit) {
                self.seal(target, &mut gathering, false);
            }
        }
        self.wait_all_written(vec![unit])
    }

    /// Seals the units that hold changed pages, overflow values or parts of the page table by now, and waits
    /// until they are written (not flushed). A unit that is being filled gets a moment to become full. Units
    /// of the cleaner are not waited for: nothing refers to their images yet.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if one cannot be written.
    pub fn write_all(&self) -> Result<(), Error> {
        // The set of units is fixed here: a unit that is opened later may stay open for as long as nobody
        // fills it.
        let mut remaining: Vec<UnitSequence> = self.buffers.unwritten().collect();
        let open = [Target::MovedYoung, Target::MovedOld].map(|target| self.gathering(target).open_unit());
        remaining.retain(|unit| !open.contains(&Some(*unit)));
        self.let_fill(&remaining)?;
        for target in Target::ALL {
            let mut gathering = self.gathering(target);
            if gathering.open_unit().is_some_and(|unit| remaining.contains(&unit)) {
                self.seal(target, &mut gathering, false);
            }
        }
        if remaining.len() > 1 && planted!(OneUnitAwaited) {
            remaining.truncate(1);
        }
        self.wait_all_written(remaining)
    }

    /// Waits until these units are written. None of them is open.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if one cannot be written.
    fn wait_all_written(&self, mut units: Vec<UnitSequence>) -> Result<(), Error> {
        self.wait_until(|| {
            units.retain(|unit| !self.is_written(*unit));
            match units.is_empty() {
                true => Ok(true),
                false => self.poison.check().map(|()| false),
            }
        })
    }

    /// The image there is garbage from now on.
    #[inline]
    pub fn release(&self, location: Location) {
        if self.in_place.is_none() {
            self.space.release(location);
        }
    }

    /// Images released from now on belong to this epoch. Called at a checkpoint's cut.
    pub fn begin_epoch(&self, epoch: Epoch) {
        self.space.set_epoch(epoch);
    }

    /// A checkpoint begins or ends writing pages. Meanwhile pages may take segments from the reserve, as the
    /// checkpoint makes segments free.
    pub fn set_checkpointing(&self, checkpointing: bool) {
        self.space.set_checkpointing(checkpointing);
        if !checkpointing {
            // If the checkpoint failed for lack of room, another one is still needed, and waiters must check
            // whether there is hope.
            self.tend();
            self.wake_all();
        }
    }

    /// Sets the bytes that the page table takes when it is written as a whole, for which room is reserved.
    pub fn set_map_bytes(&self, bytes: u64) {
        self.space.set_map_bytes(bytes);
    }

    /// Whether the page table takes too many segments, which are free when it is written as a whole.
    pub fn is_map_long(&self) -> bool {
        self.space.is_map_long()
    }

    /// The checkpoint of this epoch is durable: segments that nothing refers to since then, or earlier, are
    /// free.
    pub fn free_pending(&self, epoch: Epoch) {
        self.free(self.space.free_pending(epoch));
    }

    /// A page table that begins with the image at `first` is durable and needs no older one: segments of the
    /// page table that were opened before are free.
    pub fn release_map_before(&self, first: Location) {
        self.free(self.space.release_map_before(first));
    }

    /// While a store is opened: this page is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such place.
    pub fn adopt(&self, id: PageId, location: Location) -> Result<(), Error> {
        if let Some(in_place) = &self.in_place {
            let page_bytes = class_bytes(location.class());
            let length_bytes = u64::from(location.length_bytes());
            // The page will be written to the same location again, however long its next image is.
            if length_bytes != page_bytes || page_bytes > self.unit_bytes() {
                return Err(Error::Corrupt {
                    what: format!("the location of page {}, which stays in its place,", id.0),
                    offset_bytes: location.offset_bytes(),
                    expected: format!("all {page_bytes} bytes of the page, in one write unit"),
                    got: format!("{length_bytes} bytes"),
                });
            }
            in_place.adopt(id, location);
        }
        self.adopt_as(location, SegmentState::Full)
    }

    /// While a store is opened: a part of the page table is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such place.
    pub fn adopt_map(&self, location: Location) -> Result<(), Error> {
        self.adopt_as(location, SegmentState::Map)
    }

    /// While a store is opened: a record that is going to be replayed refers to what was written at
    /// `location`, so nothing else may be until [`Segments::let_go`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such place.
    pub fn hold(&self, location: Location) -> Result<(), Error> {
        if self.space.hold(location) { Ok(()) } else { Err(self.nowhere(location)) }
    }

    /// Everything is replayed.
    pub fn let_go(&self) {
        self.space.let_go();
    }

    fn adopt_as(&self, location: Location, state: SegmentState) -> Result<(), Error> {
        if self.space.adopt(location, state) { Ok(()) } else { Err(self.nowhere(location)) }
    }

    /// A location outside of all segments, or in more than one.
    fn nowhere(&self, location: Location) -> Error {
        Error::Corrupt {
            what: "a page's location".into(),
            offset_bytes: location.offset_bytes(),
            expected: format!("one of {} segments", self.space.usage().segments),
            got: format!("{} bytes outside of them", location.length_bytes()),
        }
    }

    /// While a store is opened: the write sequences as the checkpoint knew them. Units are numbered from far
    /// behind `next` on, so that what was written after that checkpoint, and is forgotten, is never taken for
    /// what is written from now on.
    pub fn restore_sequences(&self, next: UnitSequence, openings: &[(u64, UnitSequence)]) {
        self.space.restore_openings(openings);
        self.buffers.skip_to(UnitSequence((next.0 | u64::from(u32::MAX)) + 1));
    }

    /// For a checkpoint: a number above that of every unit so far, and the opening sequence of every segment.
    pub fn sequences(&self) -> (UnitSequence, Vec<(u64, UnitSequence)>) {
        let segments = self.space.count();
        let openings = (0..segments).map(|index| (index as u64, self.space.opening_of(index))).collect();
        (self.buffers.next_sequence(), openings)
    }

    /// Numbers of segments and bytes, by state.
    pub fn usage(&self) -> Usage {
        self.space.usage()
    }

    /// Statistics of writes by stream, and of the cleaner.
    pub fn written(&self) -> Written {
        self.counters.read()
    }
}
