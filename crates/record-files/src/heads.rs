//! Pages that begin with heads: their state after a crash, and the order of their writes.
//!
//! A crash may keep any of the sectors that were written since the last synchronisation, and lose any others.
//! A head is in one sector, so it is old or new, and whole.
//!
//! - *The durable offset* is the largest of all heads: all before it was synchronised before that head was
//!   written. The bytes that the last one does not cover are checked by sums. If a page was torn, the bytes
//!   below the offset are whole: appending changes no byte that is there.
//! - *A page counts* if it begins where the one before it ends. Whatever lies after the first page that does
//!   not was never synchronised, or the durable offset says that it was: then it is damaged.
//! - *Bytes after the end* are cut off, durably, before anything is written: else a page of a lost future
//!   could follow a new one by chance.
//! - *Writes of other processes* may be durable by their doing. Before this process writes after them, it
//!   synchronises the file itself; and when it synchronises, it says so in the last head, for them.
//! - *Overwriting and shortening* change bytes that may be durable. Before that, the pages' heads say,
//!   durably, that all their bytes are: their sums mean nothing then.

use std::io::Result;
use std::ops::Range;

use flashgrain_layout::{PAGE_HEAD_BYTES, PageHead, sum};

use crate::Records;
use crate::known::Known;
use crate::records::damaged;
use crate::storage::Storage;

const HEAD_BYTES: usize = PAGE_HEAD_BYTES as usize;

/// A moment before a synchronisation.
#[derive(Clone, Copy, Debug)]
pub struct SyncPoint {
    length_bytes: u64,
    written: u64,
    heads: u64,
}

/// A head, or why there is none.
type Found = std::result::Result<PageHead, &'static str>;

impl Records {
    /// The moment before a synchronisation, for [`Records::synced`].
    pub fn sync_point(&self) -> SyncPoint {
        let Known { written, heads, .. } = self.known;
        SyncPoint { length_bytes: self.length_bytes(), written, heads }
    }

    /// The file was synchronised after that moment, and before this call: heads may say so from now on. If
    /// one was written meanwhile, or by another process, it does not say so: it is synchronised again, before
    /// anything else is written. Else durable bytes could be lost with a page that goes on after them.
    ///
    /// # Errors
    /// As [`Records::refresh`]; those of writing.
    pub fn synced(&mut self, file: &impl Storage, point: SyncPoint) -> Result<()> {
        self.refresh(file)?;
        if self.known.is_by_others || self.known.heads != point.heads {
            return self.sync(file);
        }
        self.learn(point);
        Ok(())
    }

    fn learn(&mut self, point: SyncPoint) {
        self.known.durable = self.known.durable.max(point.length_bytes.min(self.length_bytes()));
        self.known.noted = self.known.noted.max(point.written.min(self.length_bytes()));
    }

    /// Makes all records durable.
    ///
    /// # Errors
    /// Those of writing.
    pub fn sync(&mut self, file: &impl Storage) -> Result<()> {
        let point = self.sync_point();
        file.sync_data()?;
        self.learn(point);
        if self.known.is_by_others { self.finish(file) } else { Ok(()) }
    }

    pub(crate) fn refresh_heads(&mut self, file: &impl Storage) -> Result<()> {
        let mut head = vec![0; HEAD_BYTES.min(self.last.len())];
        let is_there = file.read_up_to(&mut head, self.first() + self.pages.last_page())? == head.len();
        let is_known = is_there && self.last.starts_with(&head);
        if is_known && self.physical_bytes(file)? == self.pages.physical_length() {
            return Ok(());
        }
        self.resume_heads(file)
    }

    /// Reads the heads from the last page that is known on, or all if others have changed it.
    pub(crate) fn resume_heads(&mut self, file: &impl Storage) -> Result<()> {
        let known = self.pages.pages().saturating_sub(1);
        let found = self.find_heads(file, known)?;
        let begin = self.pages.begin(known);
        let shortened = self.known.shortened;
        let goes_on = self.pages.pages() > 0
            && self.physical_bytes(file)? >= self.pages.physical_length()
            && matches!(found.first(), Some(Ok(head)) if head.begin == begin && head.end() >= self.length_bytes())
            && found.iter().flatten().all(|head| head.shortened == shortened);
        if goes_on {
            return self.take_in(file, known, &found, self.known.durable);
        }
        let mut anew = Self::without_pages(&self.pages);
        let found = anew.find_heads(file, 0)?;
        anew.take_in(file, 0, &found, 0)?;
        *self = anew;
        Ok(())
    }

    /// The heads of pages from this one on.
    fn find_heads(&self, file: &impl Storage, from: usize) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut bytes = [0; HEAD_BYTES];
        for page in from as u64.. {
            let at = self.first() + page * self.pages.page_bytes();
            if file.read_up_to(&mut bytes, at)? < HEAD_BYTES {
                break;
            }
            let head = PageHead::decode(bytes, page, self.pages.room_bytes());
            found.push(head.and_then(|head| head.ok_or("it is empty")));
        }
        Ok(found)
    }

    fn take_in(&mut self, file: &impl Storage, from: usize, found: &[Found], durable: u64) -> Result<()> {
        let noted = found.iter().flatten().map(|head| head.durable).max().unwrap_or(0);
        let mut pages = self.pages.clone();
        pages.truncate(pages.begin(from));
        let mut is_torn = false;
        for head in found {
            let page = pages.next_page();
            let begin = pages.length_bytes();
            let problem = match head {
                Ok(head) if head.begin == begin => {
                    let there = self.physical_bytes(file)?.saturating_sub(page + PAGE_HEAD_BYTES);
                    let whole = self.whole_bytes(file, page, head, there, noted)?;
                    if whole > 0 {
                        pages.push(whole);
                    }
                    if whole == head.used_bytes {
                        continue;
                    }
                    is_torn = true;
                    if there < head.used_bytes {
                        // The file was cut off here: by a program, or before it was synchronised.
                        break;
                    }
                    "its bytes do not have the checksum that its head says"
                }
                Ok(_) => "it does not begin where the page before it ends",
                Err(problem) => problem,
            };
            if noted > pages.length_bytes() {
                return Err(damaged(self.first() + page, problem));
            }
            break;
        }
        self.pages = pages;
        self.load_last(file)?;
        self.has_rest = is_torn || self.physical_bytes(file)? > self.pages.physical_length();
        let length = self.length_bytes();
        let shortened = found.iter().flatten().map(|head| head.shortened).max().unwrap_or(0);
        self.known = Known {
            durable: durable.max(noted).min(length),
            written: noted.min(length),
            shortened,
            is_by_others: length > 0,
            heads: self.known.heads,
            ..Known::default()
        };
        Ok(())
    }

    /// Bytes of a page that a crash has left whole; `there` are before the end of the file.
    fn whole_bytes(
        &self,
        file: &impl Storage,
        page: u64,
        head: &PageHead,
        there: u64,
        noted: u64,
    ) -> Result<u64> {
        let there = there.min(head.used_bytes);
        if head.end() <= noted {
            return Ok(there);
        }
        let mut bytes = vec![0; there as usize];
        file.read_all_at(&mut bytes, self.first() + page + PAGE_HEAD_BYTES)?;
        if there == head.used_bytes && sum(&bytes) == head.used_sum {
            return Ok(there);
        }
        Ok(noted.saturating_sub(head.begin).min(there))
    }

    /// The head of a page with these used bytes.
    fn head_of(&self, page: usize, used: &[u8]) -> [u8; HEAD_BYTES] {
        let begin = self.pages.begin(page);
        let end = begin + used.len() as u64;
        let head = PageHead {
            used_bytes: used.len() as u64,
            begin,
            durable: self.known.durable.min(end),
            shortened: self.known.shortened,
            used_sum: sum(used),
        };
        head.encode(page as u64)
    }

    /// Puts heads before the bytes of pages from this one on.
    pub(crate) fn put_heads(&mut self, first_page: usize, bytes: &mut [u8]) {
        for (index, page) in bytes.chunks_mut(self.pages.page_bytes() as usize).enumerate() {
            let number = first_page + index;
            let used = self.pages.used_bytes(number) as usize;
            let head = self.head_of(number, &page[HEAD_BYTES..HEAD_BYTES + used]);
            page[..HEAD_BYTES].copy_from_slice(&head);
        }
        self.known.written = self.known.written.max(self.known.durable);
        self.known.is_by_others = false;
        self.known.heads += 1;
        if self.known.noted_pages.end > first_page {
            self.known.noted_pages = 0..0;
        }
    }

    /// Before anything is written: writes of other processes become durable, bytes after the end are cut off,
    /// and the head of a torn page states the bytes that remain.
    pub(crate) fn settle(&mut self, file: &impl Storage) -> Result<()> {
        if self.known.is_by_others {
            let point = self.sync_point();
            file.sync_data()?;
            self.learn(point);
        }
        if !self.has_rest {
            return Ok(());
        }
        file.set_len(self.first() + self.pages.physical_length())?;
        if let Some(last) = self.pages.pages().checked_sub(1) {
            let mut bytes = self.page(file, last)?;
            self.write_page(file, last, &mut bytes)?;
        }
        // The old head may call bytes durable that were cut off, and a lost page may follow a new one.
        file.sync_data()?;
        self.has_rest = false;
        Ok(())
    }

    /// The used bytes of a page, and room for its head before.
    fn page(&self, file: &impl Storage, page: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; HEAD_BYTES + self.pages.used_bytes(page) as usize];
        file.read_all_at(&mut bytes, self.first() + page as u64 * self.pages.page_bytes())?;
        Ok(bytes)
    }

    fn write_page(&mut self, file: &impl Storage, page: usize, bytes: &mut [u8]) -> Result<()> {
        let head = self.head_of(page, &bytes[HEAD_BYTES..]);
        bytes[..HEAD_BYTES].copy_from_slice(&head);
        file.write_all_at(bytes, self.first() + page as u64 * self.pages.page_bytes())?;
        if page + 1 == self.pages.pages() {
            self.last = bytes.to_vec();
            self.known.written = self.known.written.max(self.known.durable);
            self.known.is_by_others = false;
        }
        self.known.heads += 1;
        Ok(())
    }

    /// Has the heads of these pages say, durably, that all of them is durable.
    fn note_durable(&mut self, file: &impl Storage, pages: Range<usize>) -> Result<()> {
        let Some(last) = pages.clone().next_back() else { return Ok(()) };
        let end = self.pages.begin(last) + self.pages.used_bytes(last);
        let noted = &self.known.noted_pages;
        if end <= self.known.noted || noted.start <= pages.start && pages.end <= noted.end {
            return Ok(());
        }
        self.sync(file)?;
        for page in pages.clone() {
            let mut bytes = self.page(file, page)?;
            self.write_page(file, page, &mut bytes)?;
        }
        file.sync_data()?;
        self.known.noted_pages = pages;
        Ok(())
    }

    /// Has the last head state the durable offset: other processes, which have not synchronised it, go on
    /// from there, and damage of the last page is known from a crash. A file whose heads say so is not
    /// written to.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(&mut self, file: &impl Storage) -> Result<()> {
        let last = self.pages.pages().checked_sub(1).filter(|_| !self.pages.has_counts());
        let Some(last) = last.filter(|_| self.known.written < self.known.durable && !self.has_rest) else {
            return Ok(());
        };
        let mut bytes = self.page(file, last)?;
        self.write_page(file, last, &mut bytes)
    }

    /// Overwrites bytes that are there.
    pub(crate) fn overwrite_heads(&mut self, file: &impl Storage, bytes: &[u8], logical: u64) -> Result<()> {
        let pieces = self.pages.pieces(logical, bytes.len() as u64);
        let page_of = |physical: u64| (physical / self.pages.page_bytes()) as usize;
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(()) };
        let pages = page_of(first.physical)..page_of(last.physical) + 1;
        self.note_durable(file, pages.clone())?;
        for (page, piece) in pages.zip(pieces) {
            let from = (piece.logical - logical) as usize;
            let part = &bytes[from..from + piece.length_bytes as usize];
            let mut whole = self.page(file, page)?;
            let at = HEAD_BYTES + (piece.logical - self.pages.begin(page)) as usize;
            whole[at..at + part.len()].copy_from_slice(part);
            self.write_page(file, page, &mut whole)?;
        }
        Ok(())
    }

    /// Makes the file shorter.
    pub(crate) fn shorten_heads(&mut self, file: &impl Storage, length_bytes: u64) -> Result<()> {
        let mut shorter = self.pages.clone();
        shorter.truncate(length_bytes);
        // Offsets of later pages go with them: the last page must say it itself.
        self.known.noted = 0;
        let last = shorter.pages().saturating_sub(1)..shorter.pages();
        self.note_durable(file, last.clone())?;
        file.set_len(self.first() + shorter.physical_length())?;
        file.sync_data()?;
        self.pages = shorter;
        self.has_rest = false;
        let (durable, shortened) = (self.length_bytes(), self.known.shortened.wrapping_add(1));
        self.known = Known { durable, shortened, heads: self.known.heads + 1, ..Known::default() };
        for page in last.clone() {
            let mut bytes = self.page(file, page)?;
            self.write_page(file, page, &mut bytes)?;
            // Else appended bytes may be durable before this, and the old head would have them go on after
            // the old end.
            file.sync_data()?;
        }
        self.known.noted_pages = last;
        self.load_last(file)
    }
}
