//! The cleaner makes segments free by copying their live images to other units.
//!
//! 1. Take the next victim from the [survey](super::survey), with its list of live images.
//! 2. Read them, images that lie close together by one request, and verify each.
//! 3. Append each image that is still live, unchanged, to an open unit of a moved target, and note the move.
//! 4. When that unit is written, tell the page locator the new locations, and release the old images. So no
//!    page ever refers to an image that is not on the device.
//! 5. When all moves have ended and no live image is left, the segment is pending, like any other.
//!
//! An image that cannot be read stays where it is, and its segment is marked as damaged and never cleaned
//! again.

use super::gather::Gatherer;
use super::image::Expected;
use super::moves::{Move, Moves};
use super::pack;
use super::space::Space;
use super::stats::{CleanerCounters, add};
use super::survey::{Survey, Surveyed, extents};
use super::{Appended, Location, NotAppended, PageLocator, UnitSequence, policy};
use crate::Error;
use crate::header::{Header, PageId};
use crate::io_context::{Block, Devices, Role};
use crate::layout::Layout;
use crate::sync::Arc;

/// A cleaner has one read under way at a time. There is one cleaner for this many of the requests that
/// saturate the drive, within these bounds.
const CLEANERS_DIVISOR: u32 = 2;
const CLEANERS_MIN: u32 = 4;
const CLEANERS_MAX: u32 = 32;

/// Longest read, unless a single image is larger.
const READ_BYTES: u32 = 64 << 10;

/// Longest gap between two images that are read by one request. Another request costs a drive about as much
/// as this many more bytes, and it costs processor time, too.
pub(crate) const GAP_BYTES: u32 = 8 << 10;

/// A segment that is being cleaned.
struct Victim {
    index: usize,
    /// No image in it was written with an earlier unit.
    opening: UnitSequence,
    /// The store's age when the youngest image in it was changed.
    changed_at: u64,
    /// Something in it cannot be read.
    damaged: bool,
}

/// Why a segment was not cleaned to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// No segment is free for copies: a checkpoint must come first.
    NoSegment,
    Failed,
}

/// Copies live images out of segments.
pub(super) struct Cleaner {
    devices: Devices,
    sector_bytes: u32,
    cleaners_max: usize,
    space: Arc<Space>,
    survey: Survey,
    moves: Arc<Moves>,
    gatherer: Arc<Gatherer>,
    counters: CleanerCounters,
}

impl Cleaner {
    pub fn new(
        devices: Devices,
        layout: &Layout,
        survey: Survey,
        (space, moves, gatherer): (&Arc<Space>, &Arc<Moves>, &Arc<Gatherer>),
    ) -> Self {
        Self {
            devices,
            sector_bytes: layout.sector_bytes,
            cleaners_max: (layout.in_flight / CLEANERS_DIVISOR).clamp(CLEANERS_MIN, CLEANERS_MAX) as usize,
            space: Arc::clone(space),
            survey,
            moves: Arc::clone(moves),
            gatherer: Arc::clone(gatherer),
            counters: CleanerCounters::default(),
        }
    }

    /// Cleaners at a time, at most.
    pub fn cleaners_max(&self) -> usize {
        self.cleaners_max
    }

    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    pub fn counters(&self) -> &CleanerCounters {
        &self.counters
    }

    /// Memory that a cleaner reads into.
    pub fn block() -> Result<Block, Error> {
        Block::new(READ_BYTES as usize)
    }

    /// Cleans the next segment of the survey. `Ok(false)` if none is worth it.
    pub fn clean_next(&self, locator: &dyn PageLocator, block: &mut Block) -> Result<bool, Stop> {
        let Some(victim) = self.survey.next_victim(locator) else { return Ok(false) };
        let index = victim.index;
        let result = self.clean_segment(victim, locator, block);
        self.space.end_victim(index);
        result?;
        add(&self.counters.cleaned_segments, 1);
        Ok(true)
    }

    /// Moves live images out of the segment, if it is still the surveyed one.
    pub fn empty(&self, victim: Surveyed, locator: &dyn PageLocator, block: &mut Block) -> Result<(), Stop> {
        let index = victim.index;
        if !self.space.begin_victim(index, victim.opening) {
            return Ok(());
        }
        let result = self.clean_segment(victim, locator, block);
        self.space.end_victim(index);
        result
    }

    pub(super) fn clean_segment(
        &self,
        surveyed: Surveyed,
        locator: &dyn PageLocator,
        block: &mut Block,
    ) -> Result<(), Stop> {
        let Surveyed { index, opening, mut live } = surveyed;
        live.retain(|(page, location)| locator.is_at(*page, *location));
        let changed_at = self.space.changed_at(index);
        let mut victim = Victim { index, opening, changed_at, damaged: false };
        for extent in extents(&live, self.sector_bytes, READ_BYTES, GAP_BYTES) {
            // A larger image is read alone.
            let is_read = extent.length_bytes <= READ_BYTES && {
                add(&self.counters.cleaner_read_bytes, extent.length_bytes.into());
                block.read_some(&self.devices, Role::Data, extent.offset_bytes, extent.length_bytes).is_ok()
            };
            let bytes: &[u8] = if is_read { &block.bytes()[..extent.length_bytes as usize] } else { &[] };
            for (page, location) in &live[extent.images] {
                let image = bytes.get((location.offset_bytes() - extent.offset_bytes) as usize..);
                self.move_page(&mut victim, *page, *location, image.unwrap_or(&[]), locator)?;
            }
        }
        self.space.note_damage(index, victim.damaged);
        Ok(())
    }

    /// Moves a page if its image is still live. `image` was read together with others; if it does not verify,
    /// the image is read once more, alone.
    fn move_page(
        &self,
        victim: &mut Victim,
        page: PageId,
        location: Location,
        image: &[u8],
        locator: &dyn PageLocator,
    ) -> Result<(), Stop> {
        if !locator.is_at(page, location) {
            return Ok(());
        }
        let expected = Expected { location, page, oldest_sequence: victim.opening.0 };
        match pack::verify(image, expected) {
            Ok(header) => {
                self.move_image(victim, header, location, &image[..location.length_bytes() as usize])
            }
            Err(_) => self.move_alone(victim, expected, locator),
        }
    }

    fn move_alone(
        &self,
        victim: &mut Victim,
        expected: Expected,
        locator: &dyn PageLocator,
    ) -> Result<(), Stop> {
        let Expected { location, page, .. } = expected;
        let (offset, length, skipped) = location.span(self.sector_bytes);
        let own = skipped as usize..(skipped + location.length_bytes()) as usize;
        add(&self.counters.cleaner_read_bytes, length.into());
        let image = Block::new(length as usize).and_then(|mut block| {
            block.read(&self.devices, Role::Data, offset)?;
            let header = pack::verify(&block.bytes()[own.clone()], expected)?;
            Ok((header, block))
        });
        match image {
            Ok((header, mut block)) if locator.is_at(page, location) => {
                self.move_image(victim, header, location, &block.bytes()[own])
            }
            Ok(_) => Ok(()),
            Err(_) => {
                victim.damaged |= locator.is_at(page, location);
                Ok(())
            }
        }
    }

    fn move_image(
        &self,
        victim: &mut Victim,
        header: Header,
        old: Location,
        image: &[u8],
    ) -> Result<(), Stop> {
        let age = self.space.known_age_of(victim.index);
        let target = policy::moved(age, self.space.live_bytes());
        let index = victim.index;
        let note = |appended: Appended| {
            let moved = Move { page: header.page, old, new: appended.location, victim: index };
            self.moves.begin(appended.unit, moved);
        };
        loop {
            match self.gatherer.append_image(target, header, image, victim.changed_at, note) {
                Ok(()) => break,
                Err(NotAppended::NoBuffer) => self.gatherer.wait_for_buffer().map_err(|_| Stop::Failed)?,
                Err(NotAppended::NoSegment) => return Err(Stop::NoSegment),
                Err(NotAppended::Failed(_)) => return Err(Stop::Failed),
            }
        }
        add(&self.counters.moved_images, 1);
        Ok(())
    }
}
