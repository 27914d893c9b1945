//! A file of records: which of its bytes are where, and how they are read and written.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::FileExt;

use flashgrain_layout::header::{ENCODED_BYTES, HEADER_BYTES, decode_records, encode_records};
use flashgrain_layout::{Error as LayoutError, FlashPages, PAGE_HEAD_BYTES};

/// Zeros that are appended at a time where a program leaves a gap, and at most: they take room.
const GAP_BYTES: u64 = 64 << 10;
const GAP_BYTES_MAX: u64 = 64 << 20;

/// The records of a file. Each call gets the file, as programs open one file several times, with several
/// rights; one [`Records`] serves them all, and only one writes at a time.
#[derive(Clone, Debug)]
pub struct Records {
    pages: FlashPages,
    /// What the last page has, from its head on.
    last: Vec<u8>,
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

fn damaged(offset_bytes: u64, problem: &'static str) -> Error {
    invalid(LayoutError::Page { offset_bytes, problem })
}

/// Behind the last page there is nothing: what was lost in a crash, before it was synchronised, is zero.
/// Anything else was written behind a page that is not there any more.
fn check_end(file: &File, end: u64) -> Result<()> {
    let mut rest = Positioned { file, at: end };
    let mut bytes = vec![0; 64 << 10];
    loop {
        match rest.read(&mut bytes)? {
            0 => return Ok(()),
            read if bytes[..read].iter().all(|byte| *byte == 0) => {}
            _ => return Err(damaged(end, "it is empty, and there is more behind its begin")),
        }
    }
}

fn head_at(file: &File, offset: u64) -> Result<Option<[u8; PAGE_HEAD_BYTES as usize]>> {
    let mut head = [0; PAGE_HEAD_BYTES as usize];
    match file.read_exact_at(&mut head, offset) {
        Ok(()) => Ok(Some(head)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
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

    /// Bytes that say it.
    pub const LOOKED_AT_BYTES: usize = ENCODED_BYTES;
}

fn beginning_of(file: &File) -> Result<Vec<u8>> {
    let mut beginning = Vec::new();
    Positioned { file, at: 0 }.take(ENCODED_BYTES as u64).read_to_end(&mut beginning)?;
    Ok(beginning)
}

impl Records {
    /// The kind of a file.
    ///
    /// # Errors
    /// Those of reading.
    pub fn kind_of(file: &File) -> Result<Kind> {
        Ok(Kind::of(&beginning_of(file)?, file.metadata()?.len()))
    }

    /// Makes an empty file one of records in flash pages of `page_bytes`: a power of two from 512 bytes to
    /// 64 KiB. Where the drive's are unknown, 1 KiB is a careful guess (§4.3).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for another size; those of writing.
    pub fn create(file: &File, page_bytes: u64) -> Result<Self> {
        let pages =
            FlashPages::new(page_bytes).map_err(|error| Error::new(ErrorKind::InvalidInput, error))?;
        file.write_all_at(&encode_records(page_bytes), 0)?;
        // A record that reached the drive before the header would be in a file without a layout.
        file.sync_data()?;
        Ok(Self { pages, last: Vec::new() })
    }

    /// The records of a file that has such a layout; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if its header is damaged or of a later version, or a page's count of its
    /// bytes is damaged, with the page's offset; those of reading.
    pub fn open(file: &File) -> Result<Option<Self>> {
        let Some(pages) = decode_records(&beginning_of(file)?).map_err(invalid)? else { return Ok(None) };
        let mut records = Self { pages, last: Vec::new() };
        records.resume(file)?;
        Ok(Some(records))
    }

    /// Where the first flash page is.
    fn first(&self) -> u64 {
        HEADER_BYTES.max(self.pages.page_bytes())
    }

    /// Bytes of all records.
    pub fn length_bytes(&self) -> u64 {
        self.pages.length_bytes()
    }

    /// Takes in what other processes have appended or cut off since.
    ///
    /// # Errors
    /// As [`Records::open`]. The records are then those before the damage, as far as they are known.
    pub fn refresh(&mut self, file: &File) -> Result<()> {
        let physical_bytes = file.metadata()?.len().saturating_sub(self.first());
        if physical_bytes == self.pages.physical_length() {
            return Ok(());
        }
        if physical_bytes < self.pages.physical_length() {
            let mut pages = self.pages.clone();
            pages.truncate(0);
            let mut shorter = Self { pages, last: Vec::new() };
            shorter.resume(file)?;
            *self = shorter;
            return Ok(());
        }
        self.resume(file)
    }

    /// Reads the heads from the last page that is known on.
    fn resume(&mut self, file: &File) -> Result<()> {
        let first = self.first();
        let physical_bytes = file.metadata()?.len().saturating_sub(first);
        let mut heads = Vec::new();
        let mut at = self.pages.last_page();
        while at < physical_bytes
            && let Some(head) = head_at(file, first + at)?
        {
            heads.push(head);
            at += self.pages.page_bytes();
        }
        self.pages.resume(heads, physical_bytes).map_err(|error| match error {
            LayoutError::Page { offset_bytes, problem } => damaged(first + offset_bytes, problem),
            other => invalid(other),
        })?;
        self.load_last(file)?;
        let end = self.pages.next_page();
        // A page may also be cut off within its head, or right behind it.
        if physical_bytes <= end + PAGE_HEAD_BYTES { Ok(()) } else { check_end(file, first + end) }
    }

    fn load_last(&mut self, file: &File) -> Result<()> {
        let begin = self.pages.last_page();
        let mut last = vec![0; (self.pages.physical_length() - begin) as usize];
        file.read_exact_at(&mut last, self.first() + begin)?;
        self.last = last;
        Ok(())
    }

    /// Writes a record behind all others, in one request, which touches as few flash pages as it can.
    ///
    /// # Errors
    /// Those of writing; the record is not there then.
    pub fn append(&mut self, file: &File, record: &[u8]) -> Result<()> {
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
            if let Some((page, head)) = self.pages.head(piece.physical) {
                bytes[(page - begin) as usize..][..head.len()].copy_from_slice(&head);
            }
        }
        if let Err(error) = file.write_all_at(&bytes, self.first() + begin) {
            self.pages.truncate(before);
            return Err(error);
        }
        self.last = bytes.split_off((self.pages.last_page() - begin) as usize);
        Ok(())
    }

    /// Reads from a logical offset on; fewer bytes than asked for at the end. It returns how many.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_at(&self, file: &File, bytes: &mut [u8], logical: u64) -> Result<usize> {
        let mut read = 0;
        for piece in self.pages.pieces(logical, bytes.len() as u64) {
            let part = &mut bytes[read..read + piece.length_bytes as usize];
            file.read_exact_at(part, self.first() + piece.physical)?;
            read += part.len();
        }
        Ok(read)
    }

    /// Writes from a logical offset on: over what is there, and the rest as a record behind it. A gap is
    /// filled with zeros.
    ///
    /// # Errors
    /// [`ErrorKind::FileTooLarge`] for a gap of more than 64 MiB; those of writing. Some of the bytes may be
    /// written then.
    pub fn write_at(&mut self, file: &File, bytes: &[u8], logical: u64) -> Result<()> {
        self.grow(file, logical)?;
        let mut written = 0;
        for piece in self.pages.pieces(logical, bytes.len() as u64) {
            let part = &bytes[written..written + piece.length_bytes as usize];
            file.write_all_at(part, self.first() + piece.physical)?;
            if let Some(at) = piece.physical.checked_sub(self.pages.last_page()) {
                self.last[at as usize..at as usize + part.len()].copy_from_slice(part);
            }
            written += part.len();
        }
        self.append(file, &bytes[written..])
    }

    /// Makes the file so long: what is behind goes, and what is missing are zeros.
    ///
    /// # Errors
    /// Those of writing.
    pub fn set_length(&mut self, file: &File, length_bytes: u64) -> Result<()> {
        if length_bytes >= self.length_bytes() {
            return self.grow(file, length_bytes);
        }
        self.pages.truncate(length_bytes);
        file.set_len(self.first() + self.pages.physical_length())?;
        if let Some((page, head)) = self.pages.head(self.pages.last_page()) {
            // A page with less than its head says ends with the file. The other way round, a crash would
            // leave a shorter page, and behind it what was to be cut off.
            file.sync_data()?;
            file.write_all_at(&head, self.first() + page)?;
        }
        self.load_last(file)
    }

    fn grow(&mut self, file: &File, length_bytes: u64) -> Result<()> {
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

/// A file that is read from a place on, without its own position.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
