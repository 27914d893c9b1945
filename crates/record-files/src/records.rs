//! A file of records: which of its bytes are where, and how they are read and written.

use std::io::{Error, ErrorKind, Result};

use flashgrain_layout::header::{ENCODED_BYTES, HEADER_BYTES, decode_records, encode_records};
use flashgrain_layout::{Error as LayoutError, FlashPages};

use crate::known::Known;
use crate::storage::Storage;

/// Zeros that are appended at a time where a program leaves a gap, and at most: they take room.
const GAP_BYTES: u64 = 64 << 10;
const GAP_BYTES_MAX: u64 = 64 << 20;

/// The records of a file. Each call gets the file, as programs open one file several times, with several
/// rights; one [`Records`] serves them all, and only one writes at a time, after [`Records::refresh`].
#[derive(Clone, Debug)]
pub struct Records {
    pub(crate) pages: FlashPages,
    /// The bytes of the last page, from its head on.
    pub(crate) last: Vec<u8>,
    /// Whether something lies after the end that is no record.
    pub(crate) has_rest: bool,
    pub(crate) known: Known,
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

pub(crate) fn damaged(offset_bytes: u64, problem: &'static str) -> Error {
    invalid(LayoutError::Page { offset_bytes, problem })
}

/// The same error, with the offset of a page from the file's begin on instead of the first page's.
pub(crate) fn located(first: u64, error: LayoutError) -> Error {
    match error {
        LayoutError::Page { offset_bytes, problem } => damaged(first + offset_bytes, problem),
        other => invalid(other),
    }
}

/// The kind of a file, by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has no content: it may become a file of records.
    Empty,
    /// It has content without a layout.
    Plain,
    /// It has the header of a file of records, which may be damaged.
    Records,
}

impl Kind {
    /// Bytes that say it.
    pub const LOOKED_AT_BYTES: usize = ENCODED_BYTES;

    /// The kind of a file of `file_bytes` with these first bytes, all of them or [`Kind::LOOKED_AT_BYTES`].
    pub fn of(beginning: &[u8], file_bytes: u64) -> Self {
        let is_torn = file_bytes == ENCODED_BYTES as u64 && beginning.iter().all(|byte| *byte == 0);
        match decode_records(beginning) {
            // In a crash, the length of a new file may reach the drive before its header does.
            Ok(None) if file_bytes == 0 || is_torn => Self::Empty,
            Ok(None) => Self::Plain,
            Ok(Some(_)) | Err(_) => Self::Records,
        }
    }
}

fn beginning_of(file: &impl Storage) -> Result<Vec<u8>> {
    let mut beginning = vec![0; ENCODED_BYTES];
    let read = file.read_up_to(&mut beginning, 0)?;
    beginning.truncate(read);
    Ok(beginning)
}

impl Records {
    /// The kind of a file.
    ///
    /// # Errors
    /// Those of reading.
    pub fn kind_of(file: &impl Storage) -> Result<Kind> {
        Ok(Kind::of(&beginning_of(file)?, file.length_bytes()?))
    }

    /// Makes an empty file one of records in flash pages of `page_bytes`: a power of two from 512 bytes to
    /// 64 KiB. Where the drive's are unknown, 1 KiB is a careful guess (§4.3).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for another size; those of writing.
    pub fn create(file: &impl Storage, page_bytes: u64) -> Result<Self> {
        let pages =
            FlashPages::new(page_bytes).map_err(|error| Error::new(ErrorKind::InvalidInput, error))?;
        file.write_all_at(&encode_records(page_bytes), 0)?;
        // A record that reached the drive before the header would be in a file without a layout.
        file.sync_data()?;
        Ok(Self::without_pages(&pages))
    }

    /// The records of a file that has such a layout; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if its header is damaged or of a later version, or a page that was durable
    /// is damaged, with the page's offset; those of reading.
    pub fn open(file: &impl Storage) -> Result<Option<Self>> {
        let Some(pages) = decode_records(&beginning_of(file)?).map_err(invalid)? else { return Ok(None) };
        let mut records = Self::without_pages(&pages);
        match records.pages.has_counts() {
            true => records.resume_counts(file)?,
            false => records.resume_heads(file)?,
        }
        Ok(Some(records))
    }

    /// No records, in pages of the same kind.
    pub(crate) fn without_pages(pages: &FlashPages) -> Self {
        let mut pages = pages.clone();
        pages.truncate(0);
        Self { pages, last: Vec::new(), has_rest: false, known: Known::default() }
    }

    /// Where the first flash page is.
    pub(crate) fn first(&self) -> u64 {
        HEADER_BYTES.max(self.pages.page_bytes())
    }

    /// Bytes of the file from the first flash page on.
    pub(crate) fn physical_bytes(&self, file: &impl Storage) -> Result<u64> {
        Ok(file.length_bytes()?.saturating_sub(self.first()))
    }

    /// Bytes of all records.
    pub fn length_bytes(&self) -> u64 {
        self.pages.length_bytes()
    }

    /// Takes in the bytes that other processes have appended, changed or cut off since.
    ///
    /// # Errors
    /// As [`Records::open`]. The records are then those before the damage, as far as they are known.
    pub fn refresh(&mut self, file: &impl Storage) -> Result<()> {
        if self.pages.has_counts() { self.refresh_counts(file) } else { self.refresh_heads(file) }
    }

    pub(crate) fn load_last(&mut self, file: &impl Storage) -> Result<()> {
        let begin = self.pages.last_page();
        let mut last = vec![0; (self.pages.physical_length() - begin) as usize];
        file.read_all_at(&mut last, self.first() + begin)?;
        self.last = last;
        Ok(())
    }

    /// Writes a record after all others, in one request, which touches as few flash pages as it can.
    ///
    /// # Errors
    /// Those of writing; the record is not there then.
    pub fn append(&mut self, file: &impl Storage, record: &[u8]) -> Result<()> {
        self.settle(file)?;
        let (before, last_page) = (self.length_bytes(), self.pages.last_page());
        let pieces = self.pages.append(record.len() as u64);
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(()) };
        let page_bytes = self.pages.page_bytes();
        let begin = first.physical / page_bytes * page_bytes;
        let mut bytes = vec![0; (last.physical + last.length_bytes - begin) as usize];
        if begin == last_page {
            bytes[..self.last.len()].copy_from_slice(&self.last);
        }
        for piece in &pieces {
            let (from, to) = ((piece.logical - before) as usize, (piece.physical - begin) as usize);
            let length = piece.length_bytes as usize;
            bytes[to..to + length].copy_from_slice(&record[from..from + length]);
            if self.pages.has_counts()
                && let Some((page, count)) = self.pages.count(piece.physical)
            {
                bytes[(page - begin) as usize..][..count.len()].copy_from_slice(&count);
            }
        }
        let known = self.known.clone();
        if !self.pages.has_counts() {
            self.put_heads((begin / page_bytes) as usize, &mut bytes);
        }
        if let Err(error) = file.write_all_at(&bytes, self.first() + begin) {
            self.pages.truncate(before);
            self.known = known.after_failure();
            // The first error is the one to be told. Without this, the next write does the same.
            let is_undone = self.undo(file).is_ok();
            self.has_rest = !is_undone && !self.pages.has_counts();
            return Err(error);
        }
        self.last = bytes.split_off((self.pages.last_page() - begin) as usize);
        Ok(())
    }

    /// Puts the last page back as it was before a write that failed in its middle, for others to find it.
    fn undo(&self, file: &impl Storage) -> Result<()> {
        file.write_all_at(&self.last, self.first() + self.pages.last_page())?;
        file.set_len(self.first() + self.pages.physical_length())
    }

    /// Reads from a logical offset on; fewer bytes than asked for at the end. It returns how many.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_at(&self, file: &impl Storage, bytes: &mut [u8], logical: u64) -> Result<usize> {
        let mut read = 0;
        for piece in self.pages.pieces(logical, bytes.len() as u64) {
            let part = &mut bytes[read..read + piece.length_bytes as usize];
            file.read_all_at(part, self.first() + piece.physical)?;
            read += part.len();
        }
        Ok(read)
    }

    /// Writes from a logical offset on: over existing bytes, and the rest as a record after them. A gap is
    /// filled with zeros.
    ///
    /// # Errors
    /// [`ErrorKind::FileTooLarge`] for a gap of more than 64 MiB; those of writing. Some of the bytes may be
    /// written then.
    pub fn write_at(&mut self, file: &impl Storage, bytes: &[u8], logical: u64) -> Result<()> {
        self.settle(file)?;
        self.grow(file, logical)?;
        let there = (self.length_bytes() - logical).min(bytes.len() as u64) as usize;
        let (over, behind) = bytes.split_at(there);
        match self.pages.has_counts() {
            true => self.overwrite_counts(file, over, logical)?,
            false => self.overwrite_heads(file, over, logical)?,
        }
        self.append(file, behind)
    }

    /// Makes the file `length_bytes` long: bytes after that go, and missing ones are zeros.
    ///
    /// # Errors
    /// Those of writing.
    pub fn set_length(&mut self, file: &impl Storage, length_bytes: u64) -> Result<()> {
        self.settle(file)?;
        match length_bytes {
            _ if length_bytes >= self.length_bytes() => self.grow(file, length_bytes),
            _ if self.pages.has_counts() => self.shorten_counts(file, length_bytes),
            _ => self.shorten_heads(file, length_bytes),
        }
    }

    fn grow(&mut self, file: &impl Storage, length_bytes: u64) -> Result<()> {
        if length_bytes.saturating_sub(self.length_bytes()) > GAP_BYTES_MAX {
            return Err(Error::from(ErrorKind::FileTooLarge));
        }
        while self.length_bytes() < length_bytes {
            let missing = (length_bytes - self.length_bytes()).min(GAP_BYTES);
            self.append(file, &vec![0; missing as usize])?;
        }
        Ok(())
    }
}
