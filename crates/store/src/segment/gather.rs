//! Gathering of images into units, and writing of units.

use crate::sync::{MutexGuard, PoisonError};
use std::ops::Range;

use flashgrain_device::{Nanos, Op};

use super::policy::{self, Target};
use super::stats::add;
use super::unit::{Open, Ready, Rules};
use super::{Appended, Location, NotAppended, Pressure, Segments, Stream, UnitSequence, pack};
use crate::Error;
use crate::class::class_bytes;
use crate::header::{Header, PageId};
use crate::io_context::{self, Role};
use crate::page::Page;

/// Shortest rest of a unit that is sealed early. A shorter one is written along, as hardly an image would fit
/// into it.
const REST_BYTES: u32 = 8 << 10;

/// A unit that is to be written stays open for this long, again and again as long as it is being filled, but
/// not more often than this.
const FILLING_TURN: Nanos = Nanos(2_000_000);
const FILLING_TURNS: usize = 25;

/// Bytes on their way to the device beyond which a writer that is in no hurry waits. They are enough to keep
/// a drive writing, and so few that reads hardly wait for them.
pub(super) const PACED_BYTES: u64 = 2 << 20;

/// State of a target: its open segment and unit, into which the next image goes.
#[derive(Default)]
pub(super) struct Gathering {
    /// The open segment, and its first byte that belongs to no unit.
    segment: Option<(usize, u64)>,
    unit: Option<Open>,
}

impl Gathering {
    /// The unit that is open.
    pub(super) fn open_unit(&self) -> Option<UnitSequence> {
        self.unit.as_ref().map(|open| open.unit)
    }

    /// The segment that is open.
    pub(super) fn open_segment(&self) -> Option<usize> {
        self.segment.map(|(segment, _)| segment)
    }

    /// The open segment, which is closed from now on. No unit of it is open.
    pub(super) fn take_segment(&mut self) -> Option<usize> {
        self.segment.take().map(|(segment, _)| segment)
    }
}

/// A range of a unit's buffer for an image.
pub(super) struct BufferSlot {
    pub unit: UnitSequence,
    pub location: Location,
    pub start: u32,
}

impl Target {
    /// The target to fall back to if there is no segment for this one.
    fn instead(self) -> Option<Self> {
        match self {
            Self::FreshHot => Some(Self::FreshCold),
            Self::FreshCold => Some(Self::FreshHot),
            _ => None,
        }
    }

    pub(super) fn stream(self) -> Stream {
        match self {
            Self::FreshHot | Self::FreshCold => Stream::Fresh,
            Self::MovedYoung | Self::MovedOld => Stream::Moved,
            Self::Overflow => Stream::Overflow,
            Self::Map => Stream::Map,
        }
    }
}

impl Segments {
    /// Packs a page into an open unit of `stream`, with checksum and sequence. The caller holds the page's
    /// latch. The image becomes live. Never waits and never yields. The page is at most of the
    /// [`Segments::class_max`]. `old` is the location of its last image, even if that is released: pages
    /// that change often are gathered apart.
    ///
    /// # Errors
    /// [`NotAppended`], which says for what the caller must wait.
    pub fn append(
        &self,
        stream: Stream,
        id: PageId,
        class: usize,
        page: Page<'_>,
        old: Option<Location>,
    ) -> Result<Appended, NotAppended> {
        self.poison.check().map_err(NotAppended::Failed)?;
        let place = match &self.in_place {
            Some(in_place) if stream != Stream::Map => self.place_in_place(in_place, id, class)?,
            _ => {
                let target = match stream {
                    Stream::Fresh => {
                        let interval = old.and_then(|old| self.space.known_age_at(old));
                        policy::fresh(interval, self.space.live_bytes())
                    }
                    Stream::Moved => Target::MovedOld,
                    Stream::Overflow => Target::Overflow,
                    Stream::Map => Target::Map,
                };
                let bytes = pack::Used::of(page).image_bytes();
                match (self.place(target, bytes, class, None), target.instead()) {
                    // A checkpoint must not fail because hot and cold pages are kept apart.
                    (Err(NotAppended::NoSegment), Some(other)) if self.space.is_checkpointing() => {
                        self.place(other, bytes, class, None)?
                    }
                    (placed, _) => placed?,
                }
            }
        };
        if stream == Stream::Fresh {
            add(&self.counters.dirty_page_bytes, class_bytes(class));
        }
        pack::pack(page, id, class, place.unit.0, self.image(&place));
        self.send(self.buffers.end_copy(place.unit));
        Ok(Appended { location: place.location, unit: place.unit })
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
        let place = self.place(target, image.len() as u32, header.class.into(), Some(changed_at))?;
        before(Appended { location: place.location, unit: place.unit });
        let copy = self.image(&place);
        copy.copy_from_slice(image);
        pack::seal(Header { sequence: place.unit.0, ..header }, copy);
        self.send(self.buffers.end_copy(place.unit));
        Ok(())
    }

    /// The bytes of a place.
    #[expect(clippy::mut_from_ref, reason = "every place is other bytes")]
    fn image(&self, place: &BufferSlot) -> &mut [u8] {
        let bytes = place.location.length_bytes() as usize;
        let memory = self.buffers.memory(place.unit).wrapping_add(place.start as usize);
        // SAFETY: these bytes of the unit's buffer were given to the caller alone, and the unit is not
        // written before it calls `end_copy`.
        unsafe { std::slice::from_raw_parts_mut(memory, bytes) }
    }

    /// Takes a place for an image in the target's open unit, opening another one if need be.
    fn place(
        &self,
        target: Target,
        bytes: u32,
        class: usize,
        changed_at: Option<u64>,
    ) -> Result<BufferSlot, NotAppended> {
        self.check_fits(u64::from(bytes))?;
        let mut gathering = self.gathering(target);
        loop {
            let Some(unit) = &mut gathering.unit else {
                self.open_unit(target, &mut gathering)?;
                continue;
            };
            let Some((start, zeros)) = unit.place(bytes, class_bytes(class) as u32) else {
                self.seal(target, &mut gathering, true);
                continue;
            };
            let location = Location::new(unit.offset_bytes + u64::from(start), bytes, class);
            let place = BufferSlot { unit: unit.unit, location, start };
            self.zero(unit.unit, zeros);
            self.buffers.begin_copy(place.unit);
            if target != Target::Map {
                self.space.add_live(location, changed_at);
            }
            return Ok(place);
        }
    }

    /// An image of so many bytes is in one unit.
    pub(super) fn check_fits(&self, bytes: u64) -> Result<(), NotAppended> {
        let unit = self.unit_bytes();
        if bytes <= unit {
            return Ok(());
        }
        let problem = format!("a page of {bytes} bytes does not fit into a write unit of {unit}");
        Err(NotAppended::Failed(Error::Options(problem)))
    }

    pub(super) fn gathering(&self, target: Target) -> MutexGuard<'_, Gathering> {
        self.gatherings[target as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn zero(&self, unit: UnitSequence, range: Range<u32>) {
        let memory = self.buffers.memory(unit).wrapping_add(range.start as usize);
        // SAFETY: the range lies within the unit's buffer and holds no image; only whoever has the target's
        // lock touches it.
        unsafe { memory.write_bytes(0, range.len()) };
    }

    fn open_unit(&self, target: Target, gathering: &mut Gathering) -> Result<(), NotAppended> {
        if !self.buffers.has_free() {
            return Err(NotAppended::NoBuffer);
        }
        let (segment, next) = match gathering.segment {
            Some(open) => open,
            None => {
                let opening = self.buffers.next_sequence();
                let opened = self.space.open(target.stream(), opening);
                self.tend();
                (opened.ok_or(NotAppended::NoSegment)?, 0)
            }
        };
        gathering.segment = Some((segment, next));
        let offset = self.space.range(segment).start + next;
        let unit = u64::from(self.layout.unit_bytes);
        let length = (next + 1).next_multiple_of(unit) - next;
        let sequence = self.buffers.take(offset).ok_or(NotAppended::NoBuffer)?;
        let pack = self.layout.pack_bytes.min(self.layout.unit_bytes);
        let rules = Rules { pack_bytes: pack, sector_bytes: self.layout.sector_bytes };
        gathering.unit = Some(Open::new(sequence, offset, length as u32, rules));
        Ok(())
    }

    /// Ends the open unit of a target, if there is one: with zeros to its end if it is `full`, else where its
    /// last image ends; the next one begins there.
    pub(super) fn seal(&self, target: Target, gathering: &mut Gathering, full: bool) {
        let (Some(open), Some((segment, next))) = (gathering.unit.take(), gathering.segment) else { return };
        let taken = open.taken_bytes();
        let is_rest_small = taken > 0 && open.length_bytes() - taken < REST_BYTES;
        let length = if full || is_rest_small { open.length_bytes() } else { taken };
        if !full && target.stream() != Stream::Moved {
            self.space.add_padding(segment, length.saturating_sub(open.image_bytes()).into());
        }
        let next = next + u64::from(length);
        gathering.segment = Some((segment, next));
        if next == self.space.sizes().length(segment) {
            gathering.segment = None;
            self.space.close(segment, target.stream());
        }
        if length == 0 {
            self.buffers.written(open.unit);
            return;
        }
        for range in open.unused() {
            self.zero(open.unit, range);
        }
        self.zero(open.unit, taken..length);
        self.count(target.stream(), open.offset_bytes, length);
        self.send(self.buffers.seal(open.unit, length));
    }

    /// Waits until nobody fills those of these units that are open, so that they are written as full as
    /// possible.
    pub(super) fn let_fill(&self, units: &[UnitSequence]) -> Result<(), Error> {
        let mut before = Vec::new();
        for _ in 0..FILLING_TURNS {
            let is_any_dirty = self.page_locator().is_some_and(|locator| locator.dirty().bytes > 0);
            let filling = [Target::FreshHot, Target::FreshCold].map(|target| {
                let gathering = self.gathering(target);
                gathering.unit.as_ref().map(|open| (open.unit, open.taken_bytes()))
            });
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

    /// Waits while more than [`PACED_BYTES`] are on their way to the device, unless somebody waits for room,
    /// or pages are written in place.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn pace(&self) -> Result<(), Error> {
        let most = (PACED_BYTES / self.unit_bytes()).max(1) as usize;
        self.wait_until(|| {
            self.poison.check()?;
            let is_in_a_hurry = self.in_place.is_some() || self.pressure() != Pressure::None;
            Ok(is_in_a_hurry || self.buffers.on_their_way() <= most)
        })
    }

    pub(super) fn count(&self, stream: Stream, offset_bytes: u64, length_bytes: u32) {
        let bytes = u64::from(length_bytes);
        add(&self.counters.by_stream_bytes[stream as usize], bytes);
        let unit = u64::from(self.layout.unit_bytes);
        let whole = bytes == unit && (offset_bytes - self.layout.segments_start_bytes).is_multiple_of(unit);
        let counter = if whole { &self.counters.full_unit_bytes } else { &self.counters.partial_unit_bytes };
        add(counter, bytes);
    }

    /// Has a unit written in the background.
    fn send(&self, ready: Option<Ready>) {
        if let (Some(ready), Some(own)) = (ready, self.own.upgrade()) {
            self.executor.spawn(move || own.write(ready));
        }
    }

    fn write(&self, ready: Ready) {
        let memory = self.buffers.memory(ready.unit);
        // SAFETY: the unit is sealed and nobody copies into it; its buffer is not used again before
        // `written`.
        let result = unsafe {
            io_context::write(
                &self.devices,
                Role::Data,
                Op::Write,
                ready.offset_bytes,
                memory,
                ready.length_bytes,
            )
        };
        match result {
            // The buffer is not given back: its images count as not written, so their pages stay in memory.
            Err(failure) if !planted!(FailedWriteForgotten) => drop(self.poison.by(failure.error(format!(
                "write {} bytes of pages at byte {}",
                ready.length_bytes, ready.offset_bytes
            )))),
            _ => {
                self.buffers.written(ready.unit);
                self.end_moves(ready.unit);
                if self.pressure() != Pressure::None {
                    // A segment of which this was the last unit may be worth cleaning.
                    self.tend();
                }
            }
        }
        self.wake_all();
    }
}
