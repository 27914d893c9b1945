//! Out-of-place page writes: page images are gathered into write units, units into segments, and a cleaner
//! makes whole segments free again. So every write to the device is large and aligned.
//!
//! The life of a page image:
//!
//! 1. [`Gatherer::append`] packs the page into the open unit of a [target](policy::Target). The image is
//!    *live* from now on; its location is known, but it is not on the device yet.
//! 2. The unit is sealed when it is full or awaited, and written by one request. From then on
//!    [`Gatherer::is_written`] is true.
//! 3. The page is changed and gets a newer image. [`Gatherer::release`] makes the old one garbage.
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
//!   on account of it, until [`Gatherer::is_written`].
//! - An image's write sequence is at least its segment's opening sequence, so an image that an earlier use of
//!   the segment left there is never taken for it.
//!
//! The parts, from the bottom; each uses only those above it in this table, and its fields are its own:
//!
//! | part | state that it owns, and alone changes |
//! | --- | --- |
//! | [`Space`] | states of segments, live bytes, ages, reservations |
//! | [`Buffers`] | memory of units that are open or on their way, and their numbers |
//! | [`Changes`] | tasks that wait for a unit or a segment |
//! | [`LocatorSlot`] | the engine's [`PageLocator`] |
//! | [`ImageReader`] | nothing: it reads |
//! | [`Moves`] | copies of the cleaner that are not on the device yet |
//! | [`UnitWriter`] | requests that write units |
//! | [`Output`] | counts of written bytes; it gives gatherings their segments and units |
//! | [`Gathering`](gathering::Gathering) | the open segment and unit of a target; [`Gatherer`] has all |
//! | [`Survey`] | which segments are cleaned next; [`Cleaner`] empties them |
//! | [`Growth`] | how long the device may be; [`DeviceEnd`] makes it shorter |
//! | [`Reclaim`] | whether freed segments are discarded; [`LogRoom`] gives back segments of the log with it |
//! | [`Upkeep`] | the shortage of room, and the number of cleaners at work |
//! | [`OwnedSegments`] | segments that an owner has whole, until they are recorded |
//! | [`Compactor`], [`Opening`] | nothing: they use the others |
//!
//! Synchronization, by state and the part or thread that alone may change it:
//! - The state of a segment: [`space`] alone, with its lock, which keeps the tally right.
//! - A segment's live bytes: a gathering adds, [`Gatherer::release`] and [`Moves`] subtract, without the
//!   lock.
//! - An open unit: the holder of its gathering's lock. The bytes of an image in it: the caller that got their
//!   place, until it ends its copy.
//! - The buffer of a sealed unit: the task that writes it.
//! - The location of a page: the pool alone. [`Moves`] asks it to relocate a page, and it refuses if the page
//!   has a newer image.

pub(crate) mod blocks;
mod changes;
mod cleaner;
mod compact;
mod device_end;
mod gather;
mod gathering;
mod growth;
pub(crate) mod image;
mod in_place;
mod location;
mod locator;
mod log_room;
mod moves;
mod opening;
mod output;
mod owned;
pub(crate) mod pack;
mod policy;
mod reading;
mod reclaim;
mod space;
mod stats;
mod survey;
mod table;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod unit;
mod upkeep;
mod writing;

use crate::Error;
use crate::io_context::{Devices, Role};
use crate::layout::{Layout, Placement};
use crate::poison::Poison;
use crate::sync::Arc;
use crate::task::Executor;
use blocks::Division;
use changes::Changes;
use cleaner::Cleaner;
pub(crate) use cleaner::GAP_BYTES;
pub(crate) use compact::Compaction;
use compact::Compactor;
use device_end::DeviceEnd;
use gather::Gatherer;
use growth::Growth;
use in_place::InPlace;
use location::GRAIN_BYTES;
pub(crate) use location::{DEVICE_BYTES_MAX, Location};
use locator::LocatorSlot;
pub(crate) use locator::{Dirty, PageLocator};
use log_room::LogRoom;
use moves::Moves;
use opening::Opening;
use output::Output;
pub(crate) use owned::{
    BLOCK_HEADER_BYTES, OwnedBlock, OwnedSegment, OwnedSegments, Reservation, SegmentWriter,
};
use reading::ImageReader;
pub(crate) use reading::{BlockRead, BroughtBlocks, ImagePlace};
use reclaim::Reclaim;
use space::Space;
pub(crate) use space::{Leave, Usage};
pub(crate) use stats::Written;
use survey::Survey;
use unit::{Buffers, Fleet};
use upkeep::Upkeep;
pub(crate) use upkeep::{Pressure, Wanted};
use writing::UnitWriter;

/// How long the images of pages live, as the maker of the pages' section expects. Images that die together
/// are gathered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until the page is changed again. How soon that is, is observed.
    Changing,
    /// The same of a page that a checkpoint is to have which is under way.
    Awaited,
    /// The page is written once, and freed together with those that were written with it.
    Fixed,
    /// Until the page table is written as a whole.
    Map,
}

impl Lifetime {
    /// From [`Lifetime::code`]; any other code counts as changing.
    pub fn from_code(code: u8) -> Self {
        [Self::Changing, Self::Awaited, Self::Fixed, Self::Map]
            .get(usize::from(code))
            .copied()
            .unwrap_or(Self::Changing)
    }

    /// As a number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The stream of its images.
    fn stream(self) -> Stream {
        match self {
            Self::Changing => Stream::Fresh,
            Self::Awaited => Stream::Awaited,
            Self::Fixed => Stream::Overflow,
            Self::Map => Stream::Map,
        }
    }
}

/// Content that the owner of a segment writes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Records that were in memory.
    Flush,
    /// Records of other segments.
    Merge,
}

/// Kinds of images: segments are reserved, and written bytes are counted, for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Pages that were changed just now.
    Fresh,
    /// Those of them that a checkpoint is to have which is under way. They are counted with the others.
    Awaited,
    /// Pages that the cleaner moved.
    Moved,
    /// Overflow values.
    Overflow,
    /// The page table.
    Map,
    /// Blocks of owners.
    Owned,
}

/// Number of a write unit, in the order of opening, with gaps; also the write sequence of the images in it.
/// From 1 on.
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
    /// All buffers are on their way to the device: call [`Upkeep::wait_for_room`] with no latch in hand,
    /// then try again.
    NoBuffer,
    /// No segment is free; likewise.
    NoSegment,
    /// The store is poisoned.
    Failed(Error),
}

/// All parts of the module, put together. Each part serves one user of the segments, and has fields of its
/// own.
pub(crate) struct Segments {
    /// Nothing is written after the first failure.
    pub poison: Poison,
    /// For code that loads pages.
    pub reader: ImageReader,
    /// For code that writes pages.
    pub gatherer: Arc<Gatherer>,
    /// For writers that wait for room, and for ending the background work.
    pub upkeep: Arc<Upkeep>,
    /// For checkpoints.
    pub reclaim: Arc<Reclaim>,
    /// For recovery.
    pub opening: Opening,
    /// For owners of whole segments.
    pub owned: OwnedSegments,
    /// For the log.
    pub log_room: LogRoom,
    /// For deciding how long the device is.
    pub growth: Arc<Growth>,
    /// For making it shorter.
    pub end: Arc<DeviceEnd>,
    /// For compactions.
    pub compactor: Arc<Compactor>,
    space: Arc<Space>,
    buffers: Arc<Buffers>,
    cleaner: Arc<Cleaner>,
    #[cfg(test)]
    devices: Devices,
    #[cfg(test)]
    layout: Layout,
    #[cfg(test)]
    moves: Arc<Moves>,
    #[cfg(test)]
    changes: Arc<Changes>,
}

impl Segments {
    /// Segments on the data device, all of them free. `division` says how pages are divided whose images are
    /// in blocks.
    ///
    /// # Errors
    /// If there is no memory for the buffers.
    pub fn new(
        layout: &Layout,
        devices: Devices,
        executor: Executor,
        poison: Poison,
        division: &'static dyn Division,
    ) -> Result<Arc<Self>, Error> {
        // A store may have been made on a drive with smaller sectors, and copied here. New images obey this
        // device's sectors.
        let sector_bytes = layout.sector_bytes.max(devices.device(Role::Data).geometry().offset_align_bytes);
        let layout = &Layout { sector_bytes, ..layout.clone() };
        let is_in_place = layout.placement == Placement::InPlace;
        let fleet = if is_in_place { Fleet::Depth } else { Fleet::Bandwidth };
        let buffers = Arc::new(Buffers::new(layout.unit_bytes, fleet)?);
        let space = Arc::new(Space::new(layout, devices.device(Role::Data).capacity_bytes()));
        let (changes, locator) = (Arc::<Changes>::default(), Arc::<LocatorSlot>::default());
        let moves = Arc::new(Moves::new(&space, &locator));
        let (with, at_work) = (devices.clone(), executor.clone());
        let writer = UnitWriter::new(with, at_work, poison.clone(), (&buffers, &moves, &changes));
        let output = Output::new(layout, (&space, &buffers), (&Arc::new(writer), &changes));
        let in_place = is_in_place.then(InPlace::default);
        let gatherer = Gatherer::new((devices.clone(), poison.clone()), output, in_place, &locator, division);
        let gatherer = Arc::new(gatherer);
        let survey = Survey::new(poison.clone(), &space, &buffers, &changes);
        let cleaner = Cleaner::new(devices.clone(), layout, survey, (&space, &moves, &gatherer));
        let cleaner = Arc::new(cleaner);
        let growth = Arc::new(Growth::new(devices.clone(), executor.clone(), &space, &changes));
        let end = DeviceEnd::new(devices.clone(), layout, is_in_place, (&space, &growth, &changes));
        let end = Arc::new(end);
        let reclaim = Arc::new(Reclaim::new(devices.clone(), executor.clone(), &space, &changes));
        let (works, moving) = ((executor, poison.clone()), (&space, &gatherer, &cleaner));
        let upkeep = Upkeep::new(works.clone(), moving, (&growth, &locator, &changes));
        let compactor = Compactor::new(works.clone(), moving, (&growth, &end), (&locator, &changes));
        let watching = Arc::downgrade(&changes);
        poison.when_failed(move || watching.upgrade().iter().for_each(|changes| changes.wake_all()));
        let owners = (devices.clone(), works.0, poison.clone());
        let owned = OwnedSegments::new(
            owners,
            (sector_bytes, layout.segment_bytes),
            (&space, &gatherer),
            (&reclaim, &changes, &upkeep),
        );
        Ok(Arc::new(Self {
            owned,
            poison,
            reader: ImageReader::new(devices.clone(), sector_bytes, &space, division),
            opening: Opening::new(&space, &gatherer),
            log_room: LogRoom::new(&space, &growth, &reclaim),
            compactor: Arc::new(compactor),
            #[cfg(test)]
            devices,
            #[cfg(test)]
            layout: layout.clone(),
            #[cfg(test)]
            moves,
            #[cfg(test)]
            changes,
            gatherer,
            upkeep,
            reclaim,
            growth,
            end,
            space,
            buffers,
            cleaner,
        }))
    }

    /// For a checkpoint: a number above that of every unit so far, and the opening sequence of every segment.
    pub fn sequences(&self) -> (UnitSequence, Vec<(u64, UnitSequence)>) {
        let segments = self.space.count();
        let openings = (0..segments).map(|index| (index as u64, self.space.opening_of(index))).collect();
        (self.buffers.next_sequence(), openings)
    }

    /// Bytes of images to which pages refer; unlike [`Segments::usage`] it looks at no segment.
    pub fn live_bytes(&self) -> u64 {
        self.space.live_bytes()
    }

    /// Numbers of segments and bytes, by state.
    pub fn usage(&self) -> Usage {
        self.space.usage()
    }

    /// Statistics of writes by stream, and of the cleaner.
    pub fn written(&self) -> Written {
        let (written, cleaned) = (self.gatherer.output().counters(), self.cleaner.counters());
        stats::read(written, cleaned, self.reclaim.freed_bytes())
    }
}
