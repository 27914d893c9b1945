//! Checksums in the pages of an open database, as pages pass.
//!
//! 1. A page that is written gets its checksum in the bytes that SQLite reserves for others.
//! 2. A page that is read is compared with its checksum, and SQLite finds zeros there: pages in a journal or
//!    a log have no checksum.
//! 3. A page is as large as the database's header says, whatever the length of a write. Where the two differ,
//!    SQLite changes the size of all pages: by `VACUUM` or a backup it writes pages of the new size in pieces
//!    of the old one, and the first page as one of the last. A crash meanwhile brings the old ones back,
//!    again over a header of the other size.
//! 4. So a piece that has content where its checksum would be is written as it is. Pages get their checksums
//!    when the transaction is about to end, from [`PageSums::unsettled`] on; until then, its lock keeps all
//!    others out, and its journal has all that was there before.
//! 5. Whatever else is written or read is refused: parts of pages, and other sizes without that lock.
//!
//! The first page of a database with checksums never says that fewer bytes are reserved than they take. So a
//! page's last bytes are never content, whatever is rolled back.

mod ranges;

use std::ops::Range;

use flashgrain_layout::{Layout, PAGE_CHECKSUM_BYTES, open_page, seal_page};

use ranges::Ranges;

/// How each SQLite database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// SQLite's header, which is also read in parts.
pub(crate) const HEADER_OF_DATABASE_BYTES: usize = 100;

/// Where SQLite's header has the size of pages, how many bytes of each are reserved, and how many there are.
const PAGE_SIZE_AT: usize = 16;
const RESERVED_AT: usize = 20;
const PAGES_AT: usize = 28;

const PAGE_BYTES_MIN: usize = 512;
const PAGE_BYTES_MAX: usize = 1 << 16;

/// Why a write is refused.
const OTHER_SIZE: &str = "SQLite has written pages of another size than the database has";

/// The page with this byte is for locks: SQLite never reads or writes it.
const LOCK_BYTE: u64 = 1 << 30;

/// Whether a page is the one for locks. A change of the pages' size leaves anything there.
pub(crate) fn is_for_locks(offset: u64, page_bytes: u64) -> bool {
    (offset..offset.saturating_add(page_bytes)).contains(&LOCK_BYTE)
}

const CHECKSUM_BYTES: usize = PAGE_CHECKSUM_BYTES as usize;

/// A connection's knowledge of a database's checksums.
#[derive(Debug)]
pub(crate) struct PageSums {
    /// The size of its pages, once it is known; 0 before.
    page_bytes: usize,
    /// Whether pages that are read are compared with their checksums.
    pub are_checked: bool,
    /// The size of writes, as long as it is another one: until the first page is written with its own size,
    /// or all pages have checksums.
    piece_bytes: Option<usize>,
    /// Number of pages that are being written in such pieces, from the first one on.
    resized_pages: Option<u64>,
    /// Pieces that were written as they are.
    unsealed: Ranges,
    sealed: Vec<u8>,
}

impl Default for PageSums {
    fn default() -> Self {
        Self {
            page_bytes: 0,
            are_checked: true,
            piece_bytes: None,
            resized_pages: None,
            unsealed: Ranges::default(),
            sealed: Vec::new(),
        }
    }
}

/// Whether a range may be a page.
fn is_page(offset: u64, bytes: usize) -> bool {
    (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&bytes)
        && bytes.is_power_of_two()
        && offset.is_multiple_of(bytes as u64)
}

/// The size of pages in SQLite's header.
fn size_in(header: &[u8]) -> Option<usize> {
    let size = header.get(PAGE_SIZE_AT..)?.first_chunk()?;
    // 65536 does not fit.
    let bytes = match u16::from_be_bytes(*size) {
        1 => PAGE_BYTES_MAX,
        size => size.into(),
    };
    (header.starts_with(MAGIC) && is_page(0, bytes)).then_some(bytes)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn clear_checksum(page: &mut [u8]) {
    if let Some(checksum) = page.last_chunk_mut::<CHECKSUM_BYTES>() {
        checksum.fill(0);
    }
}

impl PageSums {
    /// Looks at the beginning of the database.
    pub fn note(&mut self, header: &[u8]) {
        // The pieces of a page that is being written are no pages yet.
        if let Some(bytes) = size_in(header).filter(|_| self.resized_pages.is_none()) {
            self.page_bytes = bytes;
        }
    }

    /// The size of SQLite's reads and writes; 0 if it is unknown.
    fn expected_bytes(&self) -> usize {
        self.piece_bytes.unwrap_or(self.page_bytes)
    }

    /// Whether a range is a page as far as is known. If not, the database's header may have changed since it
    /// was looked at.
    pub fn is_expected(&self, offset: u64, bytes: usize) -> bool {
        offset < HEADER_OF_DATABASE_BYTES as u64 || bytes == self.expected_bytes()
    }

    /// Takes the checksum off a page that was read. Of the first page, it may be only a part.
    ///
    /// # Errors
    /// The defect of the page.
    pub fn opened(&mut self, bytes: &mut [u8], offset: u64) -> Result<(), String> {
        if offset == 0 {
            self.note(bytes);
        }
        let length = bytes.len();
        if self.unsealed.contains(offset) {
            return Ok(());
        }
        if length != self.expected_bytes() || !is_page(offset, length) {
            // SQLite looks at its header before it knows the size of pages.
            let is_header = offset == 0 || offset + length as u64 <= HEADER_OF_DATABASE_BYTES as u64;
            return if is_header || !self.are_checked { Ok(()) } else { Err(no_page(offset, length)) };
        }
        if open_page(bytes, offset) {
            return Ok(());
        }
        if !self.are_checked {
            // The bytes in the place of the checksum must not go to a log.
            clear_checksum(bytes);
            return Ok(());
        }
        Err(format!(
            "page {} of the database, at byte {offset}, differs from its checksum; restore the database from a backup, or save the readable data after `PRAGMA flashgrain_checksums = off`",
            offset / length as u64 + 1
        ))
    }

    /// A page with its checksum, as it is to be written, or a piece of one as it is. `is_alone` if no other
    /// connection reads or writes the database until the transaction ends.
    ///
    /// # Errors
    /// If there is no place for a checksum.
    pub fn sealed<'a>(
        &'a mut self,
        bytes: &'a [u8],
        offset: u64,
        layout: Layout,
        is_alone: bool,
    ) -> Result<&'a [u8], &'static str> {
        if !is_page(offset, bytes.len()) {
            return Err("SQLite has written a part of a page, which has no checksum");
        }
        if offset == 0 {
            self.first_page(bytes, layout, is_alone)?;
        } else if self.resized_pages.is_none() && bytes.len() != self.page_bytes {
            if self.page_bytes != 0 && !is_alone {
                return Err(OTHER_SIZE);
            }
            self.piece_bytes = Some(bytes.len());
        }
        let range = offset..offset.saturating_add(bytes.len() as u64);
        let has_content = bytes.last_chunk::<CHECKSUM_BYTES>().is_none_or(|last| !is_zero(last));
        if self.resized_pages.is_some() || has_content && is_alone {
            self.unsealed.insert(range);
            return Ok(bytes);
        }
        self.unsealed.remove(range);
        self.sealed.clear();
        self.sealed.extend_from_slice(bytes);
        seal_page(&mut self.sealed, offset);
        Ok(&self.sealed)
    }

    /// Looks at the first page before it is written.
    fn first_page(&mut self, bytes: &[u8], layout: Layout, is_alone: bool) -> Result<(), &'static str> {
        let Some(page_bytes) = size_in(bytes) else {
            return if is_zero(bytes) {
                Ok(())
            } else {
                Err("SQLite has written a first page without its header")
            };
        };
        let reserved = bytes.get(RESERVED_AT).copied().unwrap_or(0);
        if u64::from(reserved) < layout.reserved_bytes() {
            return Err(
                "the database reserves too few bytes of its pages for the checksums of its layout: open a new database as the main one and not by ATTACH, and leave SQLITE_FCNTL_RESERVE_BYTES as it is",
            );
        }
        if page_bytes == bytes.len() {
            (self.piece_bytes, self.resized_pages) = (None, None);
        } else if is_alone {
            let pages =
                bytes.get(PAGES_AT..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
            self.resized_pages = Some(u32::from_be_bytes(pages).into());
            self.piece_bytes = Some(bytes.len());
        } else {
            return Err(OTHER_SIZE);
        }
        self.page_bytes = page_bytes;
        Ok(())
    }

    /// The file was truncated at `end`.
    pub fn cut(&mut self, end: u64) {
        self.unsealed.remove(end..u64::MAX);
        if end == 0 {
            // It may be filled with pages of another size.
            self.settled();
            self.page_bytes = 0;
        }
    }

    /// Whether all pages have checksums.
    pub fn is_settled(&self) -> bool {
        self.piece_bytes.is_none() && self.unsealed.is_empty()
    }

    /// Offsets of the pages that are to get checksums before the transaction ends, in a database of
    /// `database_bytes`, and their size.
    ///
    /// # Errors
    /// If the first page was not written: its header has the size of the others.
    pub fn unsettled(&self, database_bytes: u64) -> Result<(Vec<Range<u64>>, usize), &'static str> {
        let page_bytes = self.page_bytes as u64;
        let whole = |range: Range<u64>| {
            let end = range.end.min(database_bytes).next_multiple_of(page_bytes);
            range.start / page_bytes * page_bytes..end
        };
        let ranges = match (self.resized_pages, self.piece_bytes) {
            (None, Some(_)) => return Err(OTHER_SIZE),
            _ if page_bytes == 0 => return Err(OTHER_SIZE),
            (Some(pages), _) => vec![whole(0..pages.saturating_mul(page_bytes))],
            (None, None) => self.unsealed.iter().map(whole).collect(),
        };
        Ok((ranges, self.page_bytes))
    }

    /// Gives a page its checksum that was written in pieces, some of them with checksums of their own.
    pub fn settle_page(&self, page: &mut [u8], offset: u64) {
        let piece_bytes = self.piece_bytes.unwrap_or(page.len());
        for (piece, at) in page.chunks_exact_mut(piece_bytes).zip((offset..).step_by(piece_bytes)) {
            if !self.unsealed.contains(at) {
                clear_checksum(piece);
            }
        }
        seal_page(page, offset);
    }

    /// All pages have checksums.
    pub fn settled(&mut self) {
        (self.piece_bytes, self.resized_pages) = (None, None);
        self.unsealed.clear();
    }
}

fn no_page(offset: u64, length: usize) -> String {
    format!(
        "{length} bytes were read at byte {offset} of the database, which are no page and so have no checksum"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        "hot:4096:0+checksums".parse().unwrap()
    }

    /// A first page of `bytes` bytes, of a database whose pages have another size, perhaps.
    fn first_page(bytes: usize, page_bytes: usize, reserved: u8) -> Vec<u8> {
        let mut page = vec![7; bytes];
        page[..16].copy_from_slice(MAGIC);
        page[16..18].copy_from_slice(&(page_bytes as u16).to_be_bytes());
        page[RESERVED_AT] = reserved;
        page[PAGES_AT..PAGES_AT + 4].copy_from_slice(&2_u32.to_be_bytes());
        if page_bytes <= bytes {
            page[bytes - 8..].fill(0);
        }
        page
    }

    fn write(sums: &mut PageSums, file: &mut [u8], bytes: &[u8], offset: usize) {
        let sealed = sums.sealed(bytes, offset as u64, layout(), true).unwrap();
        file[offset..offset + bytes.len()].copy_from_slice(sealed);
    }

    /// The only range of pages that are to get checksums, and their size.
    fn unsettled(sums: &PageSums, database_bytes: u64) -> (Range<u64>, usize) {
        let (ranges, page_bytes) = sums.unsettled(database_bytes).unwrap();
        assert_eq!(ranges.len(), 1);
        (ranges[0].clone(), page_bytes)
    }

    #[test]
    fn pages_come_back_and_damage_is_told() {
        let mut sums = PageSums::default();
        let first = first_page(512, 512, 8);
        let mut read = sums.sealed(&first, 0, layout(), false).unwrap().to_vec();
        assert_ne!(read, first);
        sums.opened(&mut read, 0).unwrap();
        assert_eq!(read, first);
        let mut second = sums.sealed(&[3; 512], 512, layout(), false).unwrap().to_vec();
        second[100] ^= 1;
        let said = sums.opened(&mut second.clone(), 512).unwrap_err();
        assert!(said.starts_with("page 2 of the database, at byte 512"), "{said}");
        sums.are_checked = false;
        sums.opened(&mut second, 512).unwrap();
        assert_eq!(second[504..], [0; 8]);
    }

    #[test]
    fn parts_of_pages_are_refused_but_those_of_the_header() {
        let mut sums = PageSums::default();
        sums.opened(&mut first_page(512, 512, 8)[..100], 0).unwrap();
        for (offset, bytes) in [(24, 16), (0, 1024), (0, 100)] {
            sums.opened(&mut vec![1; bytes], offset).unwrap();
        }
        for (offset, bytes) in [(1024, 1024), (512, 504), (500, 16), (512, 512), (512, 0)] {
            sums.opened(&mut vec![1; bytes], offset).unwrap_err();
        }
        sums.are_checked = false;
        sums.opened(&mut [1; 16], 500).unwrap();
    }

    #[test]
    fn one_page_is_for_locks() {
        for page_bytes in (9..=16).map(|shift| 1_u64 << shift) {
            assert!(is_for_locks(1 << 30, page_bytes));
            assert!(!is_for_locks((1 << 30) - page_bytes, page_bytes));
            assert!(!is_for_locks((1 << 30) + page_bytes, page_bytes));
        }
    }

    #[test]
    fn without_a_place_nothing_is_written() {
        let mut sums = PageSums::default();
        let mut refused = |page: &[u8], offset, layout| sums.sealed(page, offset, layout, true).is_err();
        assert!(refused(&first_page(512, 512, 7), 0, layout()));
        assert!(refused(&[0; 100], 0, layout()));
        assert!(refused(&[7; 512], 0, layout()), "no header");
        assert!(refused(&[0; 512], 100, layout()));
        let with_log: Layout = "hot:4096:0+log:4096+checksums".parse().unwrap();
        assert!(refused(&first_page(512, 512, 8), 0, with_log));
        assert!(!refused(&first_page(512, 512, 24), 0, with_log));
    }

    #[test]
    fn other_sizes_are_refused_without_the_lock() {
        let mut sums = PageSums::default();
        sums.sealed(&first_page(512, 512, 8), 0, layout(), false).unwrap();
        assert!(sums.sealed(&[1; 1024], 1024, layout(), false).is_err());
        assert!(sums.sealed(&first_page(512, 1024, 8), 0, layout(), false).is_err());
        sums.sealed(&[1; 512], 512, layout(), false).unwrap();
        assert!(sums.is_settled());
    }

    /// Two pages of 1024 bytes over four of 512, some before the first page and some after it.
    #[test]
    fn larger_pages_are_written_in_pieces() {
        let (mut sums, mut file) = (PageSums::default(), vec![0; 2048]);
        write(&mut sums, &mut file, &first_page(512, 512, 8), 0);
        // One of the pieces has zeros where its checksum would be.
        let mut piece = [9; 512];
        piece[504..].fill(0);
        let mut last = [4; 512];
        last[504..].fill(0);
        write(&mut sums, &mut file, &piece, 1024);
        write(&mut sums, &mut file, &[8; 512], 512);
        for (offset, content) in [(512, [8; 512]), (1024, piece)] {
            let mut read = file[offset..offset + 512].to_vec();
            sums.opened(&mut read, offset as u64).unwrap();
            assert_eq!(read, content, "SQLite may read a piece again");
        }
        let first = first_page(512, 1024, 8);
        write(&mut sums, &mut file, &first, 0);
        write(&mut sums, &mut file, &last, 1536);
        assert_eq!(unsettled(&sums, 2048), (0..2048, 1024));
        for offset in [0, 1024] {
            sums.settle_page(&mut file[offset..offset + 1024], offset as u64);
        }
        sums.settled();
        for (offset, content) in
            [(0, [first, [[8; 504].to_vec(), vec![0; 8]].concat()]), (1024, [piece.to_vec(), last.to_vec()])]
        {
            let mut read = file[offset..offset + 1024].to_vec();
            sums.opened(&mut read, offset as u64).unwrap();
            assert!(read[..1016] == content.concat()[..1016], "page at {offset}");
        }
    }

    #[test]
    fn smaller_pages_are_all_settled_and_a_rollback_settles_the_old_ones() {
        let (mut sums, mut file) = (PageSums::default(), vec![0; 2048]);
        write(&mut sums, &mut file, &first_page(1024, 1024, 8), 0);
        write(&mut sums, &mut file, &first_page(1024, 512, 8), 0);
        write(&mut sums, &mut file, &[5; 1024], 1024);
        assert_eq!(unsettled(&sums, 2048), (0..1024, 512), "as many as the header says");
        // The journal's pages, the first one as the last.
        let mut old = [6; 1024];
        old[1016..].fill(0);
        write(&mut sums, &mut file, &old, 1024);
        write(&mut sums, &mut file, &first_page(1024, 1024, 8), 0);
        assert_eq!(unsettled(&sums, 2048), (1024..2048, 1024));
        sums.cut(1024);
        assert!(sums.is_settled());
    }

    #[test]
    fn pieces_without_a_first_page_are_never_settled() {
        let mut sums = PageSums::default();
        sums.note(&first_page(512, 512, 8));
        sums.sealed(&[1; 1024], 1024, layout(), true).unwrap();
        assert!(!sums.is_settled() && sums.unsettled(4096).is_err());
        sums.cut(0);
        assert!(sums.is_settled() && sums.page_bytes == 0);
    }
}
