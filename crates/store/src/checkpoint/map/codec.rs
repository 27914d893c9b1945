//! Encoding of map pages.
//!
//! ```text
//! 0             32       36        40         44                48             48 + 8 n
//! | page header | priors | pages   | segments | bytes of        | places of    | changes of pages,
//! | kind 3      | n u32  | u32     | u32      | changes u32     | priors, u64s | then of segments
//! ```
//!
//! The page's id is its serial number plus 2^48. Priors are the places of the pages before it in the chain,
//! the nearest first; a page without priors begins the chain.
//!
//! A change of a page is two varints: the difference of its id to that of the change before it (zigzag; to 0
//! for the first), and its location; 0 if the page was freed. A change of a segment is likewise the
//! difference of its number and the sequence of the first unit in it. Later changes win.

use crate::Error;
use crate::header::{BACK_START, FRONT_END, Header, PAGE_HEADER_BYTES, PageId, PageKind};
use crate::page::{OwnPage, Page, padded};
use crate::segment::{Location, UnitSequence};
use crate::varint;

/// Places of earlier pages in each page.
pub(crate) const PRIORS: usize = 64;

const PRIOR_COUNT: u32 = PAGE_HEADER_BYTES;
const PAGE_COUNT: u32 = PAGE_HEADER_BYTES + 4;
const SEGMENT_COUNT: u32 = PAGE_HEADER_BYTES + 8;
const CHANGE_BYTES: u32 = PAGE_HEADER_BYTES + 12;
const PLACES: u32 = PAGE_HEADER_BYTES + 16;

/// Two varints at their longest.
const CHANGE_BYTES_MAX: usize = 20;

const FIRST_ID: u64 = 1 << 48;

/// The id in the header of the map page with this serial number.
pub(crate) fn page_id(serial: u64) -> PageId {
    PageId(FIRST_ID + serial)
}

/// Serial number and location of a map page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapPageLocation {
    pub serial: u64,
    pub location: Location,
}

/// An entry of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The page has this location, or does not exist.
    Page(PageId, Option<Location>),
    /// No image in the segment of this number was written before this unit.
    Segment(u64, UnitSequence),
}

/// Writes changes to map pages: those of pages first, then those of segments.
pub(crate) struct Writer {
    page: OwnPage,
    page_bytes: u32,
    /// The chain's newest pages, the nearest first.
    priors: Vec<MapPageLocation>,
    next_serial: u64,
    changes: Vec<u8>,
    page_count: u32,
    segment_count: u32,
    last: u64,
}

impl Writer {
    /// A writer of pages of `page_bytes`. `priors` are those of the chain that it goes on with, the nearest
    /// first; none to begin a chain.
    pub fn new(page_bytes: u32, priors: Vec<MapPageLocation>, next_serial: u64) -> Self {
        Self {
            page: OwnPage::new(page_bytes),
            page_bytes,
            priors,
            next_serial,
            changes: Vec::with_capacity(page_bytes as usize),
            page_count: 0,
            segment_count: 0,
            last: 0,
        }
    }

    /// Adds a change. `write` is called with each full page, and returns its location.
    pub fn push(
        &mut self,
        change: Change,
        write: &mut dyn FnMut(u64, Page<'_>) -> Result<Location, Error>,
    ) -> Result<(), Error> {
        let used = PLACES as usize + self.priors.len() * 8 + self.changes.len();
        if used + CHANGE_BYTES_MAX > self.page_bytes as usize {
            self.write_page(write)?;
        }
        let (number, value) = match change {
            Change::Page(id, location) => {
                debug_assert_eq!(self.segment_count, 0, "pages come before segments");
                self.page_count += 1;
                (id.0, location.map_or(0, Location::bits))
            }
            Change::Segment(number, opening) => {
                if self.segment_count == 0 {
                    self.last = 0;
                }
                self.segment_count += 1;
                (number, opening.0)
            }
        };
        varint::put(varint::zigzag(number.wrapping_sub(self.last) as i64), &mut self.changes);
        varint::put(value, &mut self.changes);
        self.last = number;
        Ok(())
    }

    /// Writes the rest. It returns the chain's newest pages, the nearest first, and the next serial number.
    pub fn finish(
        mut self,
        write: &mut dyn FnMut(u64, Page<'_>) -> Result<Location, Error>,
    ) -> Result<(Vec<MapPageLocation>, u64), Error> {
        // A chain without a page would have no end to find it by.
        if !self.changes.is_empty() || self.priors.is_empty() {
            self.write_page(write)?;
        }
        Ok((self.priors, self.next_serial))
    }

    fn write_page(
        &mut self,
        write: &mut dyn FnMut(u64, Page<'_>) -> Result<Location, Error>,
    ) -> Result<(), Error> {
        let (page, serial) = (self.page.page(), self.next_serial);
        page.set_word(PRIOR_COUNT, self.priors.len() as u32);
        page.set_word(PAGE_COUNT, self.page_count);
        page.set_word(SEGMENT_COUNT, self.segment_count);
        page.set_word(CHANGE_BYTES, self.changes.len() as u32);
        for (place, at) in self.priors.iter().zip((PLACES..).step_by(8)) {
            page.set_long(at, place.location.bits());
        }
        let start = PLACES + self.priors.len() as u32 * 8;
        page.copy_from(start, &self.changes);
        Header {
            checksum: 0,
            image_grains: 0,
            class: 0,
            kind: PageKind::Map as u8,
            page: page_id(serial),
            sequence: 0,
            front_end: 0,
            back_start: 0,
        }
        .store(page);
        page.set_word(FRONT_END, start + padded(self.changes.len() as u32));
        page.set_word(BACK_START, self.page_bytes);
        let location = write(serial, page)?;
        self.priors.insert(0, MapPageLocation { serial, location });
        self.priors.truncate(PRIORS);
        self.next_serial += 1;
        self.changes.clear();
        (self.page_count, self.segment_count, self.last) = (0, 0, 0);
        Ok(())
    }
}

/// A map page that was read. Its checksum was right, so invalid content is no damage of the medium; still it
/// is an error and no panic.
pub(crate) struct MapPage<'a> {
    page: Page<'a>,
    serial: u64,
    location: Location,
}

impl<'a> MapPage<'a> {
    /// The page with this number, as read from there.
    pub fn new(page: Page<'a>, place: MapPageLocation) -> Self {
        Self { page, serial: place.serial, location: place.location }
    }

    fn nonsense(&self, expected: &str) -> Error {
        Error::Corrupt {
            what: format!("page {} of the map", self.serial),
            offset_bytes: self.location.offset_bytes(),
            expected: expected.into(),
            got: "something else, under a right checksum".into(),
        }
    }

    /// Locations of the pages before it, the nearest first.
    pub fn priors(&self) -> Result<Vec<MapPageLocation>, Error> {
        let count = u64::from(self.page.word(PRIOR_COUNT));
        if count > PRIORS as u64 || count > self.serial {
            return Err(self.nonsense("at most 64 priors"));
        }
        let place = |nearest: u64| {
            let bits = self.page.long(PLACES + nearest as u32 * 8);
            let location = Location::decode(bits).ok_or_else(|| self.nonsense("places of priors"))?;
            Ok(MapPageLocation { serial: self.serial - 1 - nearest, location })
        };
        (0..count).map(place).collect()
    }

    /// Calls `see` with all changes, in order. `scratch` is used again.
    pub fn changes(
        &self,
        scratch: &mut Vec<u8>,
        see: &mut dyn FnMut(Change) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let [priors, pages, segments, length] =
            [PRIOR_COUNT, PAGE_COUNT, SEGMENT_COUNT, CHANGE_BYTES].map(|at| self.page.word(at));
        let start = u64::from(PLACES) + u64::from(priors) * 8;
        if start + u64::from(length) > u64::from(self.page.len_bytes()) {
            return Err(self.nonsense("changes within the page"));
        }
        scratch.clear();
        self.page.copy_to(start as u32, length, scratch);
        let mut rest = scratch.as_slice();
        let mut pairs = |count: u32, see: &mut dyn FnMut(u64, u64) -> Result<(), Error>| {
            let mut number = 0_u64;
            for _ in 0..count {
                let (Some(step), Some(value)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
                    return Err(self.nonsense("as many changes as it says"));
                };
                number = number.wrapping_add(varint::unzigzag(step) as u64);
                see(number, value)?;
            }
            Ok(())
        };
        pairs(pages, &mut |number, bits| {
            let location = match bits {
                0 => None,
                bits => Some(Location::decode_any(bits).ok_or_else(|| self.nonsense("locations"))?),
            };
            if number == 0 || number >= PageId::FIRST_VOLATILE {
                return Err(self.nonsense("pages that last"));
            }
            see(Change::Page(PageId(number), location))
        })?;
        pairs(segments, &mut |number, opening| see(Change::Segment(number, UnitSequence(opening))))?;
        if !rest.is_empty() {
            return Err(self.nonsense("nothing after the last change"));
        }
        Ok(())
    }
}
