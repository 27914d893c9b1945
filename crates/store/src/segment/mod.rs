//! Every page write is a large aligned one: page images are gathered into write units, units into segments, and a cleaner makes whole segments free again.
//!
//! Invariants:
//! - What a completed checkpoint refers to is not overwritten before the next one is complete: a segment without live bytes becomes free only with the first checkpoint
//!   whose epoch is not older than the moment it lost its last live byte.
//! - A location is handed out before its unit is on the device; nobody reads it, and no page leaves memory on account of it, until [`Segments::is_written`].
//! - An image's write sequence is at least its segment's opening sequence; so what an earlier owner of the place left there is never taken for it.

mod in_place;
mod location;
mod pack;
mod space;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod unit;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use flashgrain_device::Op;

use crate::Error;
use crate::header::PageId;
use crate::lane::{self, Block, Devices, Role};
use crate::layout::{Layout, Placement};
use crate::page::Page;
use crate::poison::Poison;
use crate::pool::{CLASSES, Epoch, class_bytes};
use crate::task::{Crew, Waker, park, waker, yield_now};
use in_place::InPlace;
pub(crate) use location::Location;
pub(crate) use space::Usage;
use space::{Space, State};
pub(crate) use stats::Written;
use stats::{Counters, STREAMS, add};
use unit::{Buffers, Open, Ready};

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

/// Number of a write unit, in the order in which they were opened, with gaps; also the write sequence of the images in it. From 1 on.
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

/// Whoever knows where pages are: the pool, and the checkpoints.
pub(crate) trait Tenant: Send + Sync {
    /// Whether the newest image of the page is the one at `location`, and nothing newer is in memory.
    fn is_at(&self, id: PageId, location: Location) -> bool;

    /// Makes `new` the page's location if it is still `old` and nothing newer is in memory. Releases neither.
    fn relocate(&self, id: PageId, old: Location, new: Location) -> bool;

    /// All pages whose newest image is within these bytes of the device. Slow: for what is damaged.
    fn pages_within(&self, bytes: std::ops::Range<u64>) -> Vec<(PageId, Location)>;

    /// A checkpoint would make segments free: do one soon. Returns at once.
    fn want_checkpoint(&self);
}

/// See the module.
pub(crate) struct Segments {
    own: Weak<Self>,
    layout: Layout,
    devices: Devices,
    crew: Crew,
    poison: Poison,
    space: Space,
    buffers: Buffers,
    streams: [Mutex<Gathering>; STREAMS],
    in_place: Option<InPlace>,
    waiting: Mutex<Vec<Waker>>,
    tenant: OnceLock<Weak<dyn Tenant>>,
    counters: Counters,
}

/// Where a stream's next image goes.
#[derive(Default)]
struct Gathering {
    /// The open segment, and its first byte that belongs to no unit.
    segment: Option<(usize, u64)>,
    unit: Option<Open>,
}

/// A place in a buffer.
struct Place {
    unit: UnitSequence,
    location: Location,
    start: u32,
}

impl Segments {
    /// Segments on the data device, all of them free.
    ///
    /// # Errors
    /// If there is no memory for the buffers.
    pub fn new(layout: &Layout, devices: Devices, crew: Crew, poison: Poison) -> Result<Arc<Self>, Error> {
        let in_place = (layout.placement == Placement::InPlace).then(InPlace::default);
        let buffers = Buffers::new(layout.unit_bytes)?;
        let capacity_bytes = devices.device(Role::Data).geometry().capacity_bytes;
        Ok(Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            layout: layout.clone(),
            space: Space::new(layout, capacity_bytes),
            buffers,
            devices,
            crew,
            poison,
            streams: Default::default(),
            in_place,
            waiting: Mutex::default(),
            tenant: OnceLock::new(),
            counters: Counters::default(),
        }))
    }

    /// Who is asked where pages are. Once, before anything is cleaned.
    pub fn set_tenant(&self, tenant: Weak<dyn Tenant>) {
        let _first_stays = self.tenant.set(tenant);
    }

    /// The largest size class of which every page fits into a unit.
    pub fn largest_class(&self) -> usize {
        (0..CLASSES).rev().find(|class| class_bytes(*class) <= u64::from(self.layout.unit_bytes)).unwrap_or(0)
    }

    /// Packs a page, to which the caller has the latch, into the open unit of `stream`, with checksum and sequence. The image becomes live. Never waits and never yields.
    /// The page is at most of the [`Segments::largest_class`].
    pub fn append(
        &self,
        stream: Stream,
        id: PageId,
        class: usize,
        page: Page<'_>,
    ) -> Result<Appended, NotAppended> {
        self.poison.check().map_err(NotAppended::Failed)?;
        let place = match &self.in_place {
            Some(in_place) if stream != Stream::Map => self.place_in_place(in_place, id, class)?,
            _ => {
                let bytes = pack::Used::of(page).image_bytes(self.layout.sector_bytes);
                self.place(stream, bytes, class)?
            }
        };
        if stream == Stream::Fresh {
            add(&self.counters.dirty_page_bytes, class_bytes(class));
        }
        let bytes = place.location.length_bytes() as usize;
        let memory = self.buffers.memory(place.unit).wrapping_add(place.start as usize);
        // SAFETY: these bytes of the unit's buffer were given to this call alone, and the unit is not written before `end_copy`.
        let image = unsafe { std::slice::from_raw_parts_mut(memory, bytes) };
        pack::pack(page, id, class, place.unit.0, image);
        self.send(self.buffers.end_copy(place.unit));
        Ok(Appended { location: place.location, unit: place.unit })
    }

    /// Takes a place for an image in the stream's open unit, opening another one if need be.
    fn place(&self, stream: Stream, bytes: u32, class: usize) -> Result<Place, NotAppended> {
        if bytes > self.layout.unit_bytes {
            let unit = self.layout.unit_bytes;
            let problem = format!("a page of {bytes} bytes does not fit into a write unit of {unit}");
            return Err(NotAppended::Failed(Error::Options(problem)));
        }
        let mut gathering = self.gathering(stream);
        loop {
            let Some(unit) = &mut gathering.unit else {
                self.open_unit(stream, &mut gathering)?;
                continue;
            };
            let Some((start, zeros)) = unit.place(bytes) else {
                self.seal(stream, &mut gathering, true);
                continue;
            };
            let location = Location::new(unit.offset_bytes + u64::from(start), bytes, class);
            let place = Place { unit: unit.unit, location, start };
            self.zero(unit.unit, zeros);
            self.buffers.begin_copy(place.unit);
            if stream != Stream::Map {
                self.space.add_live(location);
            }
            return Ok(place);
        }
    }

    fn gathering(&self, stream: Stream) -> MutexGuard<'_, Gathering> {
        self.streams[stream as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn zero(&self, unit: UnitSequence, range: std::ops::Range<u32>) {
        let memory = self.buffers.memory(unit).wrapping_add(range.start as usize);
        // SAFETY: the range lies within the unit's buffer and holds no image; only whoever has the stream's lock touches it.
        unsafe { memory.write_bytes(0, range.len()) };
    }

    fn open_unit(&self, stream: Stream, gathering: &mut Gathering) -> Result<(), NotAppended> {
        if !self.buffers.has_free() {
            return Err(NotAppended::NoBuffer);
        }
        let (segment, next) = match gathering.segment {
            Some(open) => open,
            None => {
                let opening = self.buffers.next_sequence();
                let index = self.space.open(stream, opening).ok_or(NotAppended::NoSegment)?;
                (index, 0)
            }
        };
        gathering.segment = Some((segment, next));
        let offset = self.space.range(segment).start + next;
        let unit = u64::from(self.layout.unit_bytes);
        let length = (next + 1).next_multiple_of(unit) - next;
        let sequence = self.buffers.take(offset).ok_or(NotAppended::NoBuffer)?;
        let pack = self.layout.pack_bytes.min(self.layout.unit_bytes);
        gathering.unit = Some(Open::new(sequence, offset, length as u32, pack));
        Ok(())
    }

    /// Ends the open unit of a stream, if there is one: with zeros to its end if it is `full`, else where its last image ends; the next one begins there.
    fn seal(&self, stream: Stream, gathering: &mut Gathering, full: bool) {
        let (Some(open), Some((segment, next))) = (gathering.unit.take(), gathering.segment) else { return };
        let taken = open.taken_bytes();
        let length = if full { open.length_bytes() } else { taken };
        let next = next + u64::from(length);
        gathering.segment = Some((segment, next));
        if next == self.layout.segment_bytes {
            gathering.segment = None;
            self.space.close(segment, stream, 0);
        }
        if taken == 0 {
            self.buffers.written(open.unit);
            return;
        }
        for range in open.unused() {
            self.zero(open.unit, range);
        }
        self.zero(open.unit, taken..length);
        self.count(stream, open.offset_bytes, length);
        self.send(self.buffers.seal(open.unit, length));
    }

    fn count(&self, stream: Stream, offset_bytes: u64, length_bytes: u32) {
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
            self.crew.spawn(move || own.write(ready));
        }
    }

    fn write(&self, ready: Ready) {
        let memory = self.buffers.memory(ready.unit);
        // SAFETY: the unit is sealed and nobody copies into it; its buffer is not used again before `written`.
        let result = unsafe {
            lane::write(&self.devices, Role::Data, Op::Write, ready.offset_bytes, memory, ready.length_bytes)
        };
        match result {
            Ok(()) => self.buffers.written(ready.unit),
            // The buffer stays as it is: its images count as not written, so their pages stay in memory.
            Err(failure) => drop(self.poison.by(failure.error(format!(
                "write {} bytes of pages at byte {}",
                ready.length_bytes, ready.offset_bytes
            )))),
        }
        self.wake_all();
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for waiter in waiting {
            waiter.wake();
        }
    }

    /// Waits until `done`, which is looked at whenever a unit was written or a segment became free.
    fn wait_until(&self, mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
        while !done()? {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            if done()? {
                break;
            }
            park();
        }
        Ok(())
    }

    /// Waits until [`Segments::append`] may find a buffer and a segment. Call with no latch in hand.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no free segment and none is to be expected; [`Error::Poisoned`].
    pub fn wait_for_room(&self) -> Result<(), Error> {
        if self.in_place.is_some() {
            // What is waited for may be the write of one page.
            yield_now();
        }
        self.wait_until(|| {
            self.poison.check()?;
            Ok(self.buffers.has_free() && self.space.can_open(Stream::Fresh))
        })
    }

    /// Waits until [`Segments::append`] may find a buffer, for whom no segment would be kept free.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn wait_for_buffer(&self) -> Result<(), Error> {
        self.wait_until(|| {
            self.poison.check()?;
            Ok(self.buffers.has_free())
        })
    }

    /// Whether this unit is written.
    #[inline]
    pub fn is_written(&self, unit: UnitSequence) -> bool {
        self.buffers.is_written(unit)
    }

    /// Sends the open unit of a stream on its way, however full. Does not wait.
    pub fn push(&self, stream: Stream) {
        self.seal(stream, &mut self.gathering(stream), false);
    }

    /// Sends the open units on their way, however full, and waits until all images gathered so far are written (not flushed).
    ///
    /// # Errors
    /// [`Error::Poisoned`] if one cannot be.
    pub fn write_all(&self) -> Result<(), Error> {
        for stream in [Stream::Fresh, Stream::Moved, Stream::Overflow, Stream::Map] {
            self.push(stream);
        }
        let mut left: Vec<UnitSequence> = self.buffers.unwritten().collect();
        self.wait_until(|| {
            left.retain(|unit| !self.is_written(*unit));
            match left.is_empty() {
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

    /// What is released from now on belongs to this epoch. Called at a checkpoint's cut.
    pub fn begin_epoch(&self, epoch: Epoch) {
        self.space.set_epoch(epoch);
    }

    /// A checkpoint is writing pages from now on, or no longer: meanwhile pages may take segments that are otherwise kept, as the checkpoint makes segments free.
    pub fn set_checkpointing(&self, checkpointing: bool) {
        self.space.lock().checkpointing = checkpointing;
    }

    /// The checkpoint of this epoch is durable: segments that nothing refers to since then, or earlier, are free.
    pub fn free_pending(&self, epoch: Epoch) {
        self.free(self.space.free_pending(epoch));
    }

    /// A page table that begins with the image at `first` is durable and needs no older one: segments of the page table that were opened before are free.
    pub fn release_map_before(&self, first: Location) {
        self.free(self.space.release_map_before(first));
    }

    fn free(&self, segments: Vec<usize>) {
        add(&self.counters.freed_bytes, segments.len() as u64 * self.layout.segment_bytes);
        for index in segments {
            self.space.freed(index);
        }
        self.wake_all();
    }

    /// While a store is opened: this page is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such place.
    pub fn adopt(&self, id: PageId, location: Location) -> Result<(), Error> {
        if let Some(in_place) = &self.in_place {
            in_place.adopt(id, location);
        }
        self.adopt_as(location, State::Full)
    }

    /// While a store is opened: a part of the page table is at `location`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such place.
    pub fn adopt_map(&self, location: Location) -> Result<(), Error> {
        self.adopt_as(location, State::Map)
    }

    fn adopt_as(&self, location: Location, state: State) -> Result<(), Error> {
        if self.space.adopt(location, state) {
            return Ok(());
        }
        Err(Error::Corrupt {
            what: "a page's location".into(),
            offset_bytes: location.offset_bytes(),
            expected: format!("one of {} segments", self.space.usage().segments),
            got: "a place outside of them".into(),
        })
    }

    /// While a store is opened: the write sequences as the checkpoint knew them. Units are numbered from far behind `next` on, so that what was written after that
    /// checkpoint, and is forgotten, is never taken for what is written from now on.
    pub fn restore_sequences(&self, next: UnitSequence, openings: &[(u64, UnitSequence)]) {
        for (index, opening) in openings {
            self.space.set_opening(*index as usize, *opening);
        }
        self.buffers.skip_to(UnitSequence((next.0 | u64::from(u32::MAX)) + 1));
    }

    /// For a checkpoint: a number above that of every unit so far, and the opening sequence of every segment.
    pub fn sequences(&self) -> (UnitSequence, Vec<(u64, UnitSequence)>) {
        let segments = self.space.lock().segments.len();
        let openings = (0..segments).map(|index| (index as u64, self.space.opening_of(index))).collect();
        (self.buffers.next_sequence(), openings)
    }

    /// How many segments are what.
    pub fn usage(&self) -> Usage {
        self.space.usage()
    }

    /// What was written, and why.
    pub fn written(&self) -> Written {
        self.counters.read()
    }

    /// Reads and verifies the image at `location`, for those who have no frame for it. Parks.
    ///
    /// # Errors
    /// As [`Segments::read`].
    pub fn read_block(&self, location: Location, id: PageId) -> Result<Block, Error> {
        let mut block = Block::new(class_bytes(location.class().min(CLASSES - 1)) as usize)?;
        // SAFETY: the block has the bytes of the class and belongs to this call alone.
        unsafe { self.read(location, id, block.bytes().as_mut_ptr())? };
        Ok(block)
    }

    /// Reads and verifies the image at `location` into `memory` (a frame of that class) and unpacks it. Parks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if what is there is not the image, also when read again.
    ///
    /// # Safety
    /// `memory` has the bytes of the location's class, is aligned to 4096, and is used by nobody else until this returns.
    pub unsafe fn read(&self, location: Location, id: PageId, memory: *mut u8) -> Result<(), Error> {
        let expected = pack::Expected { location, page: id, oldest_sequence: self.space.opening(location) };
        // SAFETY: passed on from the caller.
        let first = unsafe { self.read_once(expected, memory) };
        match first {
            // What was damaged on the way is whole the second time.
            // SAFETY: as above.
            Err(Error::Corrupt { .. }) => unsafe { self.read_once(expected, memory) },
            first => first,
        }
    }

    /// # Safety
    /// As for [`Segments::read`].
    unsafe fn read_once(&self, expected: pack::Expected, memory: *mut u8) -> Result<(), Error> {
        let (offset, length) = (expected.location.offset_bytes(), expected.location.length_bytes());
        let page_bytes = class_bytes(expected.location.class().min(CLASSES - 1));
        if expected.location.class() >= CLASSES || u64::from(length) > page_bytes {
            return Err(Error::Corrupt {
                what: format!("the location of page {}", expected.page.0),
                offset_bytes: offset,
                expected: format!("at most {page_bytes} bytes"),
                got: format!("{length} bytes, size class {}", expected.location.class()),
            });
        }
        // SAFETY: the image is not longer than the page; the rest is passed on from the caller.
        let read = unsafe { lane::read(&self.devices, Role::Data, offset, memory, length) };
        read.map_err(|failure| failure.error(format!("read page {} at byte {offset}", expected.page.0)))?;
        // SAFETY: `memory` has that many bytes, which the read or an earlier use of the frame has initialised, and nobody else uses them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, page_bytes as usize) };
        let header = pack::verify(bytes, expected)?;
        pack::unpack(header, bytes);
        Ok(())
    }
}
