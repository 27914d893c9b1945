//! Pages that begin with counts, as in files of earlier versions. They go on as they began: a crash before
//! all was synchronised can leave a file that is refused, with the place to cut it off at.

use std::io::Result;

use flashgrain_layout::PAGE_COUNT_BYTES;

use crate::Records;
use crate::records::{damaged, located};
use crate::storage::Storage;

/// After the last page there is nothing: bytes that were lost in a crash, before they were synchronised, are
/// zero. Anything else was written after a page that is not there any more.
fn check_end(file: &impl Storage, end: u64) -> Result<()> {
    let mut at = end;
    let mut bytes = vec![0; 64 << 10];
    loop {
        match file.read_up_to(&mut bytes, at)? {
            0 => return Ok(()),
            read if bytes[..read].iter().all(|byte| *byte == 0) => at += read as u64,
            _ => return Err(damaged(end, "it is empty, and more bytes follow its beginning")),
        }
    }
}

impl Records {
    pub(crate) fn refresh_counts(&mut self, file: &impl Storage) -> Result<()> {
        let physical_bytes = self.physical_bytes(file)?;
        if physical_bytes == self.pages.physical_length() {
            return Ok(());
        }
        if physical_bytes > self.pages.physical_length() {
            return self.resume_counts(file);
        }
        let mut shorter = Self::without_pages(&self.pages);
        shorter.resume_counts(file)?;
        *self = shorter;
        Ok(())
    }

    /// Reads the counts from the last page that is known on.
    pub(crate) fn resume_counts(&mut self, file: &impl Storage) -> Result<()> {
        let first = self.first();
        let physical_bytes = self.physical_bytes(file)?;
        let mut counts = Vec::new();
        let mut at = self.pages.last_page();
        let mut count = [0; PAGE_COUNT_BYTES as usize];
        while at < physical_bytes && file.read_up_to(&mut count, first + at)? == count.len() {
            counts.push(count);
            at += self.pages.page_bytes();
        }
        self.pages.resume(counts, physical_bytes).map_err(|error| located(first, error))?;
        self.load_last(file)?;
        let end = self.pages.next_page();
        // A page may also be cut off within its count, or right after it.
        if physical_bytes <= end + PAGE_COUNT_BYTES { Ok(()) } else { check_end(file, first + end) }
    }

    pub(crate) fn overwrite_counts(&mut self, file: &impl Storage, bytes: &[u8], logical: u64) -> Result<()> {
        for piece in self.pages.pieces(logical, bytes.len() as u64) {
            let from = (piece.logical - logical) as usize;
            let part = &bytes[from..from + piece.length_bytes as usize];
            file.write_all_at(part, self.first() + piece.physical)?;
            if let Some(at) = piece.physical.checked_sub(self.pages.last_page()) {
                self.last[at as usize..at as usize + part.len()].copy_from_slice(part);
            }
        }
        Ok(())
    }

    pub(crate) fn shorten_counts(&mut self, file: &impl Storage, length_bytes: u64) -> Result<()> {
        self.pages.truncate(length_bytes);
        file.set_len(self.first() + self.pages.physical_length())?;
        if let Some((page, count)) = self.pages.count(self.pages.last_page()) {
            // A page with less than its count says ends with the file. The other way round, a crash would
            // leave a shorter page, and after it the bytes that were to be cut off.
            file.sync_data()?;
            file.write_all_at(&count, self.first() + page)?;
        }
        self.load_last(file)
    }
}
