//! The cleaner makes segments free by moving what is live in them to others.
//!
//! It reads a segment unit by unit, walks the headers, asks where each page is now and gathers the images that are live once more, as they are. Pages are told their new places when the unit with
//! these is written, so nobody ever refers to what is not on the device. If the headers do not lead to all that is live, some of them are damaged: then the page table says what is
//! in the segment. An image that cannot be read stays where it is, and its segment with it.

use crate::sync::{Mutex, PoisonError};
use std::collections::HashMap;

use super::pack::{self, Expected};
use super::stats::add;
use super::{Appended, Location, NotAppended, Segments, Tenant, UnitSequence, policy};
use crate::header::{Header, PageId};
use crate::lane::{Block, Role};
use crate::pool::{CLASSES, class_bytes};

/// Cleaners at a time, at most.
pub(super) const CLEANERS: usize = 4;

/// An image on its way to another place.
struct Move {
    page: PageId,
    old: Location,
    new: Location,
    victim: usize,
}

/// What is on its way, by the unit that it gets there with.
#[derive(Default)]
pub(super) struct Moves(Mutex<HashMap<UnitSequence, Vec<Move>>>);

/// A segment that is being cleaned.
struct Victim {
    index: usize,
    /// When the youngest image in it was changed.
    changed_at: u64,
    /// Something in it cannot be read.
    damaged: bool,
}

/// Why a segment was not cleaned to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is no segment for what is moved: a checkpoint must come first.
    NoSegment,
    Failed,
}

impl Segments {
    /// Cleans segments until there are enough free ones, or none is worth it.
    pub(super) fn clean(&self, tenant: &dyn Tenant) {
        let Ok(mut block) = Block::new(self.layout.unit_bytes as usize) else { return };
        while !self.is_stopped() && self.poison.check().is_ok() {
            let dirty = tenant.dirty();
            let need = self.space.need(dirty);
            if !need.cleaning || !need.urgent && self.grow_if_dear(dirty.bytes) {
                break;
            }
            let is_written = |range| !self.buffers.holds_any_of(range);
            let Some(index) = self.space.take_victim(is_written) else { break };
            let result = self.clean_segment(index, tenant, &mut block);
            self.space.end_victim(index);
            self.wake_all();
            match result {
                Ok(()) => add(&self.counters.cleaned_segments, 1),
                Err(Stop::NoSegment | Stop::Failed) => break,
            }
        }
    }

    pub(super) fn clean_segment(
        &self,
        index: usize,
        tenant: &dyn Tenant,
        block: &mut Block,
    ) -> Result<(), Stop> {
        let changed_at = self.space.changed_at(index);
        let mut victim = Victim { index, changed_at, damaged: false };
        let range = self.space.range(index);
        let mut suspect = false;
        for offset in range.clone().step_by(self.layout.unit_bytes as usize) {
            if self.is_emptied(index) {
                return Ok(());
            }
            if block.read(&self.devices, Role::Data, offset).is_err() {
                suspect = true;
                continue;
            }
            add(&self.counters.cleaner_read_bytes, u64::from(self.layout.unit_bytes));
            suspect |= self.move_unit(&mut victim, offset, block.bytes(), tenant)?;
        }
        if self.is_emptied(index) {
            return Ok(());
        }
        // A page that was being loaded just now looks like this, too: it is there the next time.
        let before = std::mem::replace(&mut self.space.lock().segments[index].suspect, true);
        if suspect || before {
            for (page, location) in tenant.pages_within(range) {
                self.move_page(&mut victim, page, location, tenant)?;
            }
        }
        self.space.lock().segments[index].damaged |= victim.damaged;
        Ok(())
    }

    /// Whether all that is live in a segment is on its way to another place.
    fn is_emptied(&self, index: usize) -> bool {
        self.space.live_bytes_of(index) <= self.moves.bytes_from(index)
    }

    /// Moves what is live in a unit. Returns whether its headers make no sense.
    fn move_unit(
        &self,
        victim: &mut Victim,
        offset: u64,
        bytes: &[u8],
        tenant: &dyn Tenant,
    ) -> Result<bool, Stop> {
        let opening = self.space.opening_of(victim.index).0;
        let mut found = Vec::new();
        let walked = pack::walk(bytes, self.layout.sector_bytes, |at, header| found.push((at, header)));
        let mut suspect = walked.is_err();
        for (at, header) in found {
            let (class, length) = (usize::from(header.class), pack::image_bytes(header));
            if class >= CLASSES || u64::from(length) > class_bytes(class) {
                suspect = true;
                continue;
            }
            let location = Location::new(offset + at as u64, length, class);
            if header.sequence < opening || !tenant.is_at(header.page, location) {
                continue;
            }
            let expected = Expected { location, page: header.page, oldest_sequence: opening };
            match pack::verify(&bytes[at..], expected) {
                Ok(header) => self.move_image(victim, header, location, &bytes[at..][..length as usize])?,
                Err(_) => suspect = true,
            }
        }
        Ok(suspect)
    }

    /// Moves one image of which the page table knows.
    fn move_page(
        &self,
        victim: &mut Victim,
        page: PageId,
        location: Location,
        tenant: &dyn Tenant,
    ) -> Result<(), Stop> {
        let (offset, length, skipped) = location.span(self.layout.sector_bytes);
        let own = skipped as usize..(skipped + location.length_bytes()) as usize;
        let oldest_sequence = self.space.opening_of(victim.index).0;
        let image = Block::new(length as usize).and_then(|mut block| {
            block.read(&self.devices, Role::Data, offset)?;
            let expected = Expected { location, page, oldest_sequence };
            let header = pack::verify(&block.bytes()[own.clone()], expected)?;
            Ok((header, block))
        });
        match image {
            Ok((header, mut block)) if !self.moves.has(location) && tenant.is_at(page, location) => {
                self.move_image(victim, header, location, &block.bytes()[own])
            }
            Ok(_) => Ok(()),
            Err(_) => {
                victim.damaged = true;
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
            self.space.begin_move(index);
            if planted!(CleanerPointsAhead) {
                self.tell(&moved);
            }
            self.moves.begin(appended.unit, moved);
        };
        loop {
            match self.append_image(target, header, image, victim.changed_at, note) {
                Ok(()) => break,
                Err(NotAppended::NoBuffer) => self.wait_for_buffer().map_err(|_| Stop::Failed)?,
                Err(NotAppended::NoSegment) => return Err(Stop::NoSegment),
                Err(NotAppended::Failed(_)) => return Err(Stop::Failed),
            }
        }
        add(&self.counters.moved_images, 1);
        Ok(())
    }

    /// Tells the pages that were moved with this unit, which is written, where they are.
    pub(super) fn end_moves(&self, unit: UnitSequence) {
        let Some(moves) = self.moves.take(unit) else { return };
        for moved in moves {
            if !planted!(CleanerPointsAhead) {
                self.tell(&moved);
            }
            self.space.end_moves(moved.victim, 1);
        }
        self.tend();
    }

    /// Tells a page that was moved where it is, unless it has changed meanwhile.
    fn tell(&self, moved: &Move) {
        let tenant = self.tenant();
        let relocated = tenant.is_some_and(|tenant| tenant.relocate(moved.page, moved.old, moved.new));
        self.space.release(if relocated { moved.old } else { moved.new });
    }
}

impl Moves {
    fn begin(&self, unit: UnitSequence, moved: Move) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(unit).or_default().push(moved);
    }

    fn take(&self, unit: UnitSequence) -> Option<Vec<Move>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&unit)
    }

    /// Whether this image is on its way.
    fn has(&self, old: Location) -> bool {
        let moves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moves.values().flatten().any(|moved| moved.old == old)
    }

    /// Bytes on their way out of a segment.
    fn bytes_from(&self, victim: usize) -> u64 {
        let moves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let out = moves.values().flatten().filter(|moved| moved.victim == victim);
        out.map(|moved| u64::from(moved.old.length_bytes())).sum()
    }

    /// Where what is on its way will be.
    #[cfg(test)]
    pub(super) fn new_places(&self) -> Vec<Location> {
        let moves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moves.values().flatten().map(|moved| moved.new).collect()
    }
}
