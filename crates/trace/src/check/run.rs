//! Writes that follow each other without a gap and without a flush between them, as one: so they reach the
//! drive where a page cache lies before it, and so the paper counts wear (§4.2.3): of two frames of a commit,
//! the overflow is one flash page.

use serde::Serialize;

/// Sizes of flash pages that are checked in addition to the drive's own: those of the paper's Figure 14.
pub const FLASH_PAGES_BYTES: [u64; 4] = [2048, 4096, 8192, 16384];

/// Flash pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlashPages {
    /// Pages that were modified, each run by itself.
    pub modified: u64,
    /// Pages that the same runs would have modified, had each begun at a page.
    pub least: u64,
    /// Modified pages that were only written in part.
    pub partial: u64,
}

impl FlashPages {
    fn add_run(&mut self, begin: u64, end: u64, page_bytes: u64) {
        let modified = (end - 1) / page_bytes - begin / page_bytes + 1;
        let ragged =
            u64::from(!begin.is_multiple_of(page_bytes)) + u64::from(!end.is_multiple_of(page_bytes));
        self.modified += modified;
        self.least += (end - begin).div_ceil(page_bytes);
        self.partial += ragged.min(modified);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.modified += other.modified;
        self.least += other.least;
        self.partial += other.partial;
    }
}

/// The runs of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    open: Option<(u64, u64)>,
    pub count: u64,
    /// Bytes of the runs; those that were written twice between two flushes count once.
    pub bytes: u64,
    /// For each of [`FLASH_PAGES_BYTES`].
    pub pages: [FlashPages; FLASH_PAGES_BYTES.len()],
    /// For the drive's own, if that is known.
    pub own_pages: FlashPages,
}

impl Runs {
    /// Takes a write in; `own_page_bytes` is the drive's flash page. Whether the write begins a run.
    pub fn write(&mut self, offset: u64, length: u64, own_page_bytes: Option<u64>) -> bool {
        let end = offset.saturating_add(length);
        match &mut self.open {
            Some(run) if run.1 == offset => run.1 = end,
            Some(run) if run.0 == end => run.0 = offset,
            // The same bytes again, before they were flushed.
            Some(run) if run.0 <= offset && end <= run.1 => {}
            _ => {
                self.close(own_page_bytes);
                self.open = Some((offset, end));
                return true;
            }
        }
        false
    }

    /// Ends the run: a flush came, or the trace is over.
    pub fn close(&mut self, own_page_bytes: Option<u64>) {
        let Some((begin, end)) = self.open.take().filter(|(begin, end)| begin < end) else { return };
        self.count += 1;
        self.bytes = self.bytes.saturating_add(end - begin);
        for (pages, page_bytes) in self.pages.iter_mut().zip(FLASH_PAGES_BYTES) {
            pages.add_run(begin, end, page_bytes);
        }
        if let Some(page_bytes) = own_page_bytes {
            self.own_pages.add_run(begin, end, page_bytes);
        }
    }

    /// Adds closed runs of another file.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (pages, other) in self.pages.iter_mut().zip(&other.pages) {
            pages.add(other);
        }
        self.own_pages.add(&other.own_pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 bytes before each page of 64 KiB, two frames a commit: the paper's log of SQLite.
    #[test]
    fn the_papers_log_has_a_flash_page_more_for_each_commit() {
        let mut runs = Runs::default();
        let mut offset = 32;
        for _commit in 0..1000 {
            for _frame in 0..2 {
                for length in [24, 65536] {
                    runs.write(offset, length, None);
                    offset += length;
                }
            }
            runs.close(None);
        }
        assert_eq!(runs.count, 1000);
        let pages = runs.pages[1];
        let payload = 1000 * 32;
        // One more for each commit, and rarely a second one, where the overflow itself crosses a boundary.
        assert!((payload + 1000..payload + 1020).contains(&pages.modified), "{pages:?}");
        let gain = (pages.modified * 4096) as f64 / (2.0 * 65536.0 * 1000.0) - 1.0;
        assert!((gain - 0.031).abs() < 0.002, "{gain}: the paper's Figure 14 has 3.1 %");
    }

    #[test]
    fn a_run_grows_on_both_sides_and_ends_with_a_flush() {
        let mut runs = Runs::default();
        assert!(runs.write(4096, 4096, Some(512)));
        assert!(!runs.write(0, 4096, Some(512)));
        assert!(!runs.write(100, 8, Some(512)));
        assert!(runs.write(100_000, 1, Some(512)));
        runs.close(Some(512));
        assert!(runs.write(100_001, 1, Some(512)));
        runs.close(Some(512));
        assert_eq!((runs.count, runs.own_pages), (3, FlashPages { modified: 18, least: 18, partial: 2 }));
    }
}
