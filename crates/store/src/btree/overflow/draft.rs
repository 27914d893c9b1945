//! Writing an overflow value, part by part.
//!
//! 1. *Begun*: [`Overflow::begin`].
//! 2. *Written*: [`Overflow::append`] writes one page after another, of full size but for the last.
//! 3. *Sealed*: [`Overflow::seal`] writes the pages with the numbers of the others. Now it can be read.
//! 4. *Completed*: [`Overflow::complete`] has checkpoints take its pages in, which they leave out before, and
//!    returns the reference for the log.
//!
//! Until it is completed its pages are [withheld](Withheld), and [`Overflow::discard`] frees them.

use super::{
    BYTES, EPOCH, FIRST, INLINE_PAGES, LENGTH, Overflow, Owner, Reference, VALUE_BYTES_MAX, damaged,
};
use crate::Error;
use crate::checksum::Crc32c;
use crate::class::class_bytes;
use crate::header::{FRONT_END, PageId, PageKind};
use crate::page::padded;
use crate::pool::{Denied, Withheld};
use crate::segment::Lifetime;

/// See the module.
pub(crate) struct Draft {
    set: Withheld,
    owner: Option<Owner>,
    /// In the order of their writes: the pages that hold the value come first.
    pages: Vec<PageId>,
    length: u64,
    checksum: Crc32c,
}

impl Draft {
    /// Bytes of the value so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its pages, as checkpoints know them.
    pub fn set(&self) -> Withheld {
        self.set
    }
}

impl Overflow {
    /// Bytes of a value that a page holds.
    pub fn part_bytes(&self) -> usize {
        room(self.class_max)
    }

    /// A value without any bytes yet.
    pub fn begin(&self) -> Draft {
        let set = self.pool.withheld.begin();
        Draft { set, owner: None, pages: Vec::new(), length: 0, checksum: Crc32c::new() }
    }

    /// Writes the next part of the value: [`Overflow::part_bytes`] of it; the last one may have less.
    ///
    /// # Errors
    /// [`Error::ValueLength`]; the pool's. The draft is as it was.
    pub fn append(&self, draft: &mut Draft, part: &[u8]) -> Result<(), Error> {
        let (got, limit) = (draft.length + part.len() as u64, VALUE_BYTES_MAX);
        if got > limit {
            return Err(Error::ValueLength { got, limit });
        }
        self.write_page(part, draft)?;
        draft.length = got;
        draft.checksum.add(part);
        Ok(())
    }

    /// All parts are written: the reference of the value, which its record keeps.
    ///
    /// # Errors
    /// The pool's. The draft is as it was.
    pub fn seal(&self, draft: &mut Draft) -> Result<Vec<u8>, Error> {
        let data_pages = draft.pages.len();
        let sealed = self.write_numbers(draft);
        if sealed.is_err() {
            let _what_was_in_the_way_is_told = self.free_withheld(draft.set, data_pages);
            draft.pages.truncate(data_pages);
        }
        sealed
    }

    fn write_numbers(&self, draft: &mut Draft) -> Result<Vec<u8>, Error> {
        let (mut level, mut depth) = (draft.pages.clone(), 0);
        while level.len() > INLINE_PAGES {
            let written = draft.pages.len();
            let numbers: Vec<u8> = level.iter().flat_map(|page| page.0.to_le_bytes()).collect();
            for part in numbers.chunks(self.part_bytes()) {
                self.write_page(part, draft)?;
            }
            level = draft.pages.get(written..).unwrap_or_default().to_vec();
            depth += 1;
        }
        let reference =
            Reference { length: draft.length, checksum: draft.checksum.get(), depth, pages: level };
        Ok(reference.encode())
    }

    /// Ends the withholding of a sealed value's pages. Returns the reference for the log; the value's record
    /// keeps its [first part](super::kept). The log must not have it before the pages are durable: write all
    /// units and flush the data device first. If it is not committed after all, free it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a page of it is gone.
    pub fn complete(&self, draft: &Draft, reference: &[u8]) -> Result<Vec<u8>, Error> {
        // A statement of its own, so that the section ends.
        let completed = self.pool.section_of(Lifetime::Fixed).release(draft.set);
        let begun = draft.owner.map_or(0, |owner| owner.epoch);
        let mut logged = reference.to_vec();
        logged.extend_from_slice(&super::logged_epochs(begun, completed).to_le_bytes());
        logged.extend_from_slice(&(draft.pages.len() as u32).to_le_bytes());
        for page in &draft.pages {
            // Only now: the earlier place of a page may have been reassigned after a checkpoint that has left
            // the page out.
            let location = self.pool.pages.location(*page, true);
            let gone = || damaged("the pages that were written", format!("no page {}", page.0));
            logged.extend_from_slice(&page.0.to_le_bytes());
            logged.extend_from_slice(&location.ok_or_else(gone)?.bits().to_le_bytes());
        }
        Ok(logged)
    }

    /// Whether this set exists, and was neither completed nor discarded.
    pub fn is_withheld(&self, set: Withheld) -> bool {
        self.pool.withheld.is_withheld(set)
    }

    /// Frees the written pages of a value, unless it was completed.
    ///
    /// # Errors
    /// The pool's; some pages are left then, and gone when the store is opened again.
    pub fn discard(&self, set: Withheld) -> Result<(), Error> {
        self.free_withheld(set, 0)
    }

    /// Frees pages of the set but the first ones.
    fn free_withheld(&self, set: Withheld, kept: usize) -> Result<(), Error> {
        self.free_by_sections(|section| {
            let Some(page) = section.last_withheld(set, kept) else { return Ok(false) };
            section.free_unread(page)?;
            section.leave(set);
            Ok(true)
        })
    }

    fn write_page(&self, part: &[u8], draft: &mut Draft) -> Result<(), Error> {
        let class = (0..self.class_max).find(|class| room(*class) >= part.len());
        let class = class.unwrap_or(self.class_max);
        loop {
            let memory = self.pool.reserve(class)?;
            let section = self.pool.section_of(Lifetime::Fixed);
            let locked = section.create(memory, PageKind::Overflow, false);
            let (id, page) = (locked.id(), locked.page());
            let owner = draft.owner.unwrap_or(Owner { first: id, epoch: section.epoch().0.into() });
            let length = part.len() as u32;
            page.set_word(LENGTH, if planted!(OverflowLengthPadded) { padded(length) } else { length });
            page.set_long(FIRST, owner.first.0);
            page.set_long(EPOCH, owner.epoch);
            page.copy_from(BYTES, part);
            page.set_word(FRONT_END, BYTES + padded(length));
            match section.gather(&locked) {
                Ok(_) => {
                    section.join(draft.set, id);
                    draft.owner = Some(owner);
                    draft.pages.push(id);
                    return Ok(());
                }
                Err(denied) => {
                    section.free(locked);
                    drop(section);
                    match denied {
                        Denied::NoRoom => self.pool.images.wait_for_overflow_room()?,
                        denied => self.pool.images.recover(denied)?,
                    }
                }
            }
        }
    }
}

/// Bytes that a page of this class holds.
fn room(class: usize) -> usize {
    class_bytes(class) as usize - BYTES as usize
}
