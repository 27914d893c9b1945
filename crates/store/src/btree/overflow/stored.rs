//! Reading an overflow value page by page, from any place of it.

use super::{AHEAD, Overflow, Owner, Pages, damaged, decode};
use crate::Error;
use crate::checksum::Crc32c;
use crate::header::PageId;

/// An overflow value that is being read. It has the bytes of one page in memory, and the numbers of all
/// pages.
pub(crate) struct Stored {
    length: u64,
    checksum: u32,
    owner: Option<Owner>,
    pages: Vec<PageId>,
    /// Bytes that each page holds but the last; known when the first was read.
    part_bytes: u64,
    /// The page that was read last, and its content.
    held: Option<usize>,
    part: Vec<u8>,
    /// Pages before this one were asked for.
    asked: usize,
    /// Checks the value as a whole if it is read from its beginning to its end: over the pages before this
    /// one.
    so_far: (usize, Crc32c),
}

impl Stored {
    /// Bytes of the value.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Overflow {
    /// Begins to read a value. It must not be freed meanwhile.
    ///
    /// # Errors
    /// As [`Overflow::read`].
    pub fn open(&self, reference: &[u8]) -> Result<Stored, Error> {
        let reference = decode(reference)?;
        let Pages { data, mut owner, .. } = self.resolve(&reference)?;
        let mut part = Vec::new();
        if let Some(first) = data.first() {
            let found = self.read_page(*first, &mut part)?;
            owner = Some(*owner.get_or_insert(found));
        }
        let stored = Stored {
            length: reference.length,
            checksum: reference.checksum,
            owner,
            pages: data,
            part_bytes: part.len() as u64,
            held: None,
            part: Vec::new(),
            asked: 0,
            so_far: (0, Crc32c::new()),
        };
        match stored.pages.len() as u64 == stored.length.div_ceil(stored.part_bytes.max(1)) {
            true => Ok(stored),
            false => Err(damaged(
                &format!("pages for {} bytes", stored.length),
                format!("{} pages of {} bytes", stored.pages.len(), stored.part_bytes),
            )),
        }
    }

    /// The value's bytes from `position` to the end of the page that contains it; none at the value's end.
    /// Reading the whole value in order reads ahead, and verifies its checksum at the end; the pages have
    /// checksums of their own.
    ///
    /// # Errors
    /// As [`Overflow::read`].
    pub fn read_at<'s>(&self, stored: &'s mut Stored, position: u64) -> Result<&'s [u8], Error> {
        if position >= stored.length {
            return Ok(&[]);
        }
        let index = (position / stored.part_bytes) as usize;
        if stored.held != Some(index) {
            self.hold(stored, index)?;
        }
        Ok(stored.part.get((position % stored.part_bytes) as usize..).unwrap_or_default())
    }

    fn hold(&self, stored: &mut Stored, index: usize) -> Result<(), Error> {
        let is_next = index == stored.held.map_or(0, |held| held + 1);
        if is_next {
            let asked = stored.asked.max(index + 1);
            let until = (index + 1 + AHEAD).min(stored.pages.len());
            let coming = stored.pages.get(asked..until).unwrap_or_default();
            coming.iter().for_each(|page| self.pool.prefetch(*page));
            stored.asked = until;
        } else {
            stored.asked = 0;
        }
        let no_page = || damaged("a page of it", format!("no page {index}"));
        let page = *stored.pages.get(index).ok_or_else(no_page)?;
        stored.held = None;
        stored.part.clear();
        let found = self.read_page(page, &mut stored.part)?;
        if Some(found) != stored.owner {
            return Err(damaged(&format!("{:?}", stored.owner), format!("{found:?}")));
        }
        let expected = stored.part_bytes.min(stored.length - index as u64 * stored.part_bytes);
        let got = stored.part.len() as u64;
        if got != expected {
            return Err(damaged(&format!("{expected} bytes"), format!("{got} bytes")));
        }
        stored.check(index)?;
        stored.held = Some(index);
        Ok(())
    }
}

impl Stored {
    /// A page was read.
    fn check(&mut self, index: usize) -> Result<(), Error> {
        if index == 0 {
            self.so_far = (0, Crc32c::new());
        }
        let (next, checksum) = &mut self.so_far;
        if *next != index {
            return Ok(());
        }
        *next += 1;
        checksum.add(&self.part);
        let (expected, got) = (self.checksum, checksum.get());
        match *next == self.pages.len() && got != expected {
            true => Err(damaged(&format!("checksum {expected:08x}"), format!("{got:08x}"))),
            false => Ok(()),
        }
    }
}
