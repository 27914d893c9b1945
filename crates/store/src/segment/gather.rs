//! Gathering of images into units, and waiting until these are written.

use flashgrain_device::Nanos;

use super::blocks::{self, Division};
use super::gathering::Gathering;
use super::in_place::InPlace;
use super::locator::LocatorSlot;
use super::output::Output;
use super::policy::{self, TARGETS, Target};
use super::stats::add;
use super::unit::{BufferSlot, Shape};
use super::{Appended, Lifetime, Location, NotAppended, Stream, UnitSequence, pack};
use crate::Error;
use crate::class::{CLASSES, class_bytes};
use crate::header::{Header, PageId};
use crate::io_context::{self, Devices};
use crate::page::Page;
use crate::poison::Poison;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A unit that is to be written stays open for this long, again and again as long as it is being filled, but
/// not more often than this.
const FILLING_TURN: Nanos = Nanos(2_000_000);
const FILLING_TURNS: usize = 25;

/// Puts images into the open units of all targets.
pub(crate) struct Gatherer {
    devices: Devices,
    poison: Poison,
    output: Output,
    targets: [Mutex<Gathering>; TARGETS],
    /// Pages stay where they are, and only the page table is gathered.
    in_place: Option<InPlace>,
    locator: Arc<LocatorSlot>,
    division: &'static dyn Division,
}

impl Gatherer {
    pub(super) fn new(
        (devices, poison): (Devices, Poison),
        output: Output,
        in_place: Option<InPlace>,
        locator: &Arc<LocatorSlot>,
        division: &'static dyn Division,
    ) -> Self {
        let targets = Target::ALL.map(|target| Mutex::new(Gathering::new(target)));
        Self { devices, poison, output, targets, in_place, locator: Arc::clone(locator), division }
    }

    fn target(&self, target: Target) -> MutexGuard<'_, Gathering> {
        self.targets[target as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    pub(super) fn in_place(&self) -> Option<&InPlace> {
        self.in_place.as_ref()
    }

    /// Bytes of a write unit.
    pub fn unit_bytes(&self) -> u64 {
        self.output.unit_bytes().into()
    }

    /// The largest size class whose pages all fit into a unit.
    pub fn class_max(&self) -> usize {
        (0..CLASSES).rev().find(|class| class_bytes(*class) <= self.unit_bytes()).unwrap_or(0)
    }

    /// Packs a page into an open unit for images that live as long as `lifetime` says, with checksum and
    /// sequence. The caller holds the page's latch. The image becomes live. Never waits and never yields. The
    /// page is at most of the [`Gatherer::class_max`]. `old` is the location of its last image, even if that
    /// is released: pages that change often are gathered apart.
    ///
    /// # Errors
    /// [`NotAppended`], which names the resource that the caller must wait for.
    pub fn append(
        &self,
        lifetime: Lifetime,
        id: PageId,
        class: usize,
        page: Page<'_>,
        old: Option<Location>,
    ) -> Result<Appended, NotAppended> {
        self.poison.check().map_err(NotAppended::Failed)?;
        if matches!(lifetime, Lifetime::Changing | Lifetime::Awaited) {
            add(&self.output.counters().dirty_page_bytes, class_bytes(class));
        }
        let is_in_place = self.in_place.is_some();
        if !is_in_place && let Some(appended) = self.append_blocks(lifetime, id, page, old).transpose()? {
            return Ok(appended);
        }
        let slot = match &self.in_place {
            Some(in_place) if lifetime != Lifetime::Map => in_place.place(&self.output, id, class)?,
            _ => self.place(lifetime, Shape::plain(pack::Used::of(page).image_bytes(), class), old)?,
        };
        Ok(self.output.complete(&slot, |image| pack::pack(page, id, class, slot.unit.0, image)))
    }

    /// The same in blocks, if the page is of a kind with blocks and can be divided.
    fn append_blocks(
        &self,
        lifetime: Lifetime,
        id: PageId,
        page: Page<'_>,
        old: Option<Location>,
    ) -> Option<Result<Appended, NotAppended>> {
        let header = Header::of(page);
        blocks::with_divided(self.division, page, |made, divided| {
            let slot = self.place(lifetime, Shape::in_blocks(header, divided), old)?;
            let header = Header { page: id, sequence: slot.unit.0, ..header };
            Ok(self.output.complete(&slot, |image| blocks::pack(made, divided, header, image)))
        })
    }

    fn place(
        &self,
        lifetime: Lifetime,
        shape: Shape,
        old: Option<Location>,
    ) -> Result<BufferSlot, NotAppended> {
        let space = self.output.space();
        let target = match lifetime {
            Lifetime::Changing | Lifetime::Awaited => {
                let interval = old.and_then(|old| space.known_age_at(old));
                policy::fresh(interval, space.live_bytes())
            }
            Lifetime::Fixed => Target::Overflow,
            Lifetime::Map => Target::Map,
        };
        let stream = lifetime.stream();
        let place = |target| self.target(target).place(&self.output, stream, shape, None);
        match (place(target), target.instead()) {
            // A checkpoint must not fail because hot and cold pages are kept apart.
            (Err(NotAppended::NoSegment), Some(other)) if space.is_checkpointing() => place(other),
            (placed, _) => placed,
        }
    }

    /// Gathers a copy of an image, for the cleaner. `before` is called with the copy's location before it can
    /// be written.
    pub(super) fn append_image(
        &self,
        target: Target,
        header: Header,
        image: &[u8],
        changed_at: u64,
        before: impl FnOnce(Appended),
    ) -> Result<(), NotAppended> {
        self.poison.check().map_err(NotAppended::Failed)?;
        let shape = Shape::of(header, image.len() as u32);
        let slot = self.target(target).place(&self.output, target.stream(), shape, Some(changed_at))?;
        before(Appended { location: slot.location, unit: slot.unit });
        self.output.complete(&slot, |copy| {
            copy.copy_from_slice(image);
            pack::seal(Header { sequence: slot.unit.0, ..header }, copy);
        });
        Ok(())
    }

    /// The image there is garbage from now on.
    #[inline]
    pub fn release(&self, location: Location) {
        if self.in_place.is_none() {
            self.output.space().release(location);
        }
    }

    /// Whether this unit is written.
    #[inline]
    pub fn is_written(&self, unit: UnitSequence) -> bool {
        self.output.buffers().is_written(unit)
    }

    /// Waits until this unit is written; sends it on its way if it is open, however full.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if it cannot be.
    pub fn wait_written(&self, unit: UnitSequence) -> Result<(), Error> {
        self.seal_those_of(&[unit]);
        self.output.writer().wait_written(vec![unit])
    }

    /// Waits until [`Gatherer::append`] may find a buffer. It does not wait for a free segment.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn wait_for_buffer(&self) -> Result<(), Error> {
        self.output.writer().wait_for_buffer()
    }

    /// Seals the units that hold changed pages, overflow values or parts of the page table by now, and waits
    /// until they are written (not flushed). A unit that is being filled gets a moment to become full. Units
    /// of the cleaner are not waited for: nothing refers to their images yet.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if one cannot be written.
    pub fn write_all(&self) -> Result<(), Error> {
        // The set of units is fixed here: a unit that is opened later may stay open for as long as no image
        // fills it.
        let mut remaining: Vec<UnitSequence> = self.output.buffers().unwritten().collect();
        let open = [Target::MovedYoung, Target::MovedOld].map(|target| self.target(target).open_unit());
        remaining.retain(|unit| !open.contains(&Some(*unit)));
        self.let_fill(&remaining)?;
        self.seal_those_of(&remaining);
        if remaining.len() > 1 && planted!(OneUnitAwaited) {
            remaining.truncate(1);
        }
        self.output.writer().wait_written(remaining)
    }

    /// Seals those of these units that are open.
    fn seal_those_of(&self, units: &[UnitSequence]) {
        for target in Target::ALL {
            let mut gathering = self.target(target);
            if gathering.open_unit().is_some_and(|unit| units.contains(&unit)) {
                gathering.seal(&self.output, false);
            }
        }
    }

    /// Waits until the open units among these are not being filled any more, so that they are written as full
    /// as possible.
    fn let_fill(&self, units: &[UnitSequence]) -> Result<(), Error> {
        let mut before = Vec::new();
        for _ in 0..FILLING_TURNS {
            let is_any_dirty = self.locator.dirty().bytes > 0;
            let filling = [Target::FreshHot, Target::FreshCold].map(|target| self.target(target).filled());
            let filling: Vec<_> =
                filling.into_iter().flatten().filter(|(unit, _)| units.contains(unit)).collect();
            if filling.is_empty() || filling == before || !is_any_dirty {
                break;
            }
            before = filling;
            io_context::sleep_until(&self.devices, io_context::now(&self.devices) + FILLING_TURN)?;
        }
        Ok(())
    }

    /// Seals the units of moved images, unless images are being added to them.
    pub(super) fn push_moved(&self) {
        for target in [Target::MovedYoung, Target::MovedOld] {
            if let Ok(mut gathering) = self.targets[target as usize].try_lock() {
                gathering.seal(&self.output, false);
            }
        }
    }

    /// Waits until the units of moved images are written.
    pub(super) fn write_moved(&self) -> Result<(), Error> {
        let mut open: Vec<UnitSequence> = Vec::new();
        for target in Target::ALL {
            let mut gathering = self.target(target);
            match target.stream() {
                Stream::Moved => gathering.seal(&self.output, false),
                Stream::Fresh | Stream::Awaited | Stream::Overflow | Stream::Map | Stream::Owned => {
                    open.extend(gathering.open_unit())
                }
            }
        }
        let unwritten = self.output.buffers().unwritten();
        self.output.writer().wait_written(unwritten.filter(|unit| !open.contains(unit)).collect())
    }

    /// Closes open segments after the first `keep` ones. It returns whether there were any: those without
    /// images are free after the next checkpoint.
    pub fn close_open_behind(&self, keep: usize) -> bool {
        let closed = Target::ALL.map(|target| self.target(target).close_behind(&self.output, keep));
        closed.contains(&true)
    }
}
