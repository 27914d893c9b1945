//! Places of InnoDB's files on a drive: the redo log, the system tablespace with the doublewrite area and the
//! undo log, and a table whose page `n` is at `n` times the page size. Pages have numbers: those of the
//! system tablespace come before the table's.

use std::ops::Range;

/// `innodb_log_file_size`.
const LOG_BYTES: u64 = 96 << 20;

/// Files begin at multiples of this, and the partition's begin later: of the largest units of drives.
const ALIGN_BYTES: u64 = 4 << 20;

/// The log is written in blocks of this, on a drive with sectors of 4 KiB; else of 512 bytes.
const LOG_BLOCK_BYTES: u64 = 4096;

/// An extent: 1 MiB, but no less than 64 pages.
const EXTENT_BYTES: u64 = 1 << 20;
const EXTENT_PAGES_MIN: u64 = 64;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub page_bytes: u64,
    /// Where the partition begins after a multiple of the drive's units.
    pub partition_begin_bytes: u64,
    /// Bytes that the engine shifts the table's pages by from the begin of their file.
    pub table_shift_bytes: u64,
    /// Pages of the system tablespace without the doublewrite area.
    pub system_pages: u32,
}

impl Layout {
    /// Bytes of a drive for `pages` pages.
    pub fn drive_bytes(&self, pages: u32) -> u64 {
        self.page(pages).end.next_multiple_of(ALIGN_BYTES)
    }

    /// The log's file.
    pub fn log_file(&self) -> Range<u64> {
        self.partition_begin_bytes..self.partition_begin_bytes + LOG_BYTES
    }

    /// Where the table's file begins, after the system tablespace.
    fn table_begin(&self) -> u64 {
        let pages = self.doublewrite_pages() as u64 + u64::from(self.system_pages);
        self.log_file().end + (pages * self.page_bytes).next_multiple_of(ALIGN_BYTES)
    }

    /// A page.
    pub fn page(&self, page: u32) -> Range<u64> {
        let begin = match page.checked_sub(self.system_pages) {
            Some(of_table) => {
                let table = self.table_begin() + self.table_shift_bytes;
                table + u64::from(of_table) * self.page_bytes
            }
            None => self.doublewrite(self.doublewrite_pages()).end + u64::from(page) * self.page_bytes,
        };
        begin..begin + self.page_bytes
    }

    /// The most pages of a batch: those of the doublewrite area, of two extents.
    pub fn doublewrite_pages(&self) -> usize {
        2 * (EXTENT_BYTES / self.page_bytes).max(EXTENT_PAGES_MIN) as usize
    }

    /// The doublewrite area of a batch of pages.
    pub fn doublewrite(&self, pages: usize) -> Range<u64> {
        let begin = self.log_file().end;
        begin..begin + pages as u64 * self.page_bytes
    }

    /// The blocks of the log that a commit writes when the log has grown from `from` to `to` bytes: also the
    /// block that was not full before.
    pub fn log(&self, from: u64, to: u64) -> Range<u64> {
        let (from, to) = (from / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES, to.next_multiple_of(LOG_BLOCK_BYTES));
        let length = to - from;
        // The log begins anew where its file ends.
        let begin = from % LOG_BYTES;
        let begin = if begin + length > LOG_BYTES { 0 } else { begin };
        self.partition_begin_bytes + begin..self.partition_begin_bytes + begin + length
    }
}
