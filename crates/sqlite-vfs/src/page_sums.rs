//! Checksums in the pages of an open database, as pages pass.
//!
//! 1. A page that is written gets its checksum in the bytes that SQLite reserves for others.
//! 2. A page that is read is compared with its checksum, and SQLite finds zeros there: what it writes to a
//!    journal or a log has none.
//! 3. SQLite reads and writes whole pages, of the size that its header says; shorter reads are of the header
//!    alone.
//!
//! The first page of a database with checksums never says that fewer bytes are reserved than they take. So a
//! page's last bytes are nobody's content, whatever is rolled back.

use flashgrain_layout::{Layout, open_page, seal_page};

/// How each SQLite database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Where SQLite's header has the size of pages, and how many bytes of each are reserved.
const PAGE_SIZE_AT: usize = 16;
const RESERVED_AT: usize = 20;

const PAGE_BYTES_MIN: usize = 512;

/// What a connection knows of a database's checksums.
#[derive(Debug)]
pub(crate) struct PageSums {
    /// The size of its pages, once it is known; 0 before.
    page_bytes: usize,
    /// Whether pages that are read are compared with their checksums.
    pub are_checked: bool,
    sealed: Vec<u8>,
}

impl Default for PageSums {
    fn default() -> Self {
        Self { page_bytes: 0, are_checked: true, sealed: Vec::new() }
    }
}

/// Whether a range may be a page.
fn is_page(offset: u64, bytes: usize) -> bool {
    bytes >= PAGE_BYTES_MIN && bytes.is_power_of_two() && offset.is_multiple_of(bytes as u64)
}

impl PageSums {
    /// Looks at SQLite's header as it passes.
    fn note(&mut self, offset: u64, bytes: &[u8]) {
        let size = bytes.get(PAGE_SIZE_AT..).and_then(|rest| rest.first_chunk()).copied();
        if let Some(size) = size.filter(|_| offset == 0 && bytes.starts_with(MAGIC)) {
            // 65536 does not fit.
            self.page_bytes = match u16::from_be_bytes(size) {
                1 => 1 << 16,
                size => size.into(),
            };
        }
    }

    /// Takes the checksum off a page that was read, which may be only a part of one.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub fn opened(&mut self, bytes: &mut [u8], offset: u64) -> Result<(), String> {
        self.note(offset, bytes);
        if bytes.len() != self.page_bytes || !is_page(offset, bytes.len()) || open_page(bytes, offset) {
            return Ok(());
        }
        if !self.are_checked {
            // What SQLite finds there must not go to a log.
            let end = bytes.len() - flashgrain_layout::PAGE_CHECKSUM_BYTES as usize;
            bytes[end..].fill(0);
            return Ok(());
        }
        Err(format!(
            "page {} of the database, at byte {offset}, is not what was written there: its checksum differs; restore the database from a backup, or save what can be read after `PRAGMA flashgrain_checksums = off`",
            offset / self.page_bytes as u64 + 1
        ))
    }

    /// A page with its checksum, as it is to be written.
    ///
    /// # Errors
    /// If there is no place for a checksum.
    pub fn sealed(&mut self, bytes: &[u8], offset: u64, layout: Layout) -> Result<&[u8], &'static str> {
        self.note(offset, bytes);
        let reserved = bytes.get(RESERVED_AT).filter(|_| offset == 0 && bytes.starts_with(MAGIC));
        if reserved.is_some_and(|reserved| u64::from(*reserved) < layout.reserved_bytes()) {
            return Err(
                "the database reserves too few bytes of its pages for the checksums of its layout: open a new database as the main one and not by ATTACH, and leave SQLITE_FCNTL_RESERVE_BYTES as it is",
            );
        }
        if !is_page(offset, bytes.len()) {
            return Err("SQLite has written a part of a page, which has no checksum");
        }
        self.sealed.clear();
        self.sealed.extend_from_slice(bytes);
        seal_page(&mut self.sealed, offset);
        Ok(&self.sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        "hot:4096:0+checksums".parse().unwrap()
    }

    /// A first page of 512 bytes.
    fn first_page(reserved: u8) -> Vec<u8> {
        let mut page = vec![7; 512];
        page[..16].copy_from_slice(MAGIC);
        page[16..18].copy_from_slice(&[2, 0]);
        page[RESERVED_AT] = reserved;
        page[504..].fill(0);
        page
    }

    #[test]
    fn pages_come_back_and_damage_is_told() {
        let mut sums = PageSums::default();
        let first = first_page(8);
        let mut read = sums.sealed(&first, 0, layout()).unwrap().to_vec();
        assert_ne!(read, first);
        sums.opened(&mut read, 0).unwrap();
        assert_eq!(read, first);
        let mut second = sums.sealed(&[3; 512], 512, layout()).unwrap().to_vec();
        second[100] ^= 1;
        let said = sums.opened(&mut second.clone(), 512).unwrap_err();
        assert!(said.starts_with("page 2 of the database, at byte 512"), "{said}");
        sums.are_checked = false;
        sums.opened(&mut second, 512).unwrap();
        assert_eq!(second[504..], [0; 8]);
    }

    #[test]
    fn pages_of_another_size_are_not_looked_at() {
        let mut sums = PageSums::default();
        let mut header = first_page(8)[..100].to_vec();
        sums.opened(&mut header, 0).unwrap();
        for (offset, bytes) in [(24, 16), (0, 1024), (1024, 1024), (512, 504)] {
            sums.opened(&mut vec![1; bytes], offset).unwrap();
        }
        assert!(sums.opened(&mut vec![1; 512], 512).is_err());
    }

    #[test]
    fn without_a_place_nothing_is_written() {
        let mut sums = PageSums::default();
        assert!(sums.sealed(&first_page(7), 0, layout()).is_err());
        assert!(sums.sealed(&[0; 100], 0, layout()).is_err());
        let with_log: Layout = "hot:4096:0+log:4096+checksums".parse().unwrap();
        assert!(sums.sealed(&first_page(8), 0, with_log).is_err());
        assert!(sums.sealed(&first_page(24), 0, with_log).is_ok());
    }
}
