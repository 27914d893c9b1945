//! InnoDB's page cleaner (`buf0flu.cc` and `buf0dblwr.cc` of MariaDB 10.11): dirty pages go by batches to the
//! doublewrite area, then, when that is durable, to their places, and leave memory when these are durable.
//!
//! ```text
//! idle ──► doublewrite ──► flush ──► pages ──────────────────────────────► flush ──► idle
//!                                      └─► first parts ─► flush ─► rest ─────┘
//! ```
//!
//! The lower way is the paper's (Figure 9b): pages that lie across stripes are written in two parts, with a
//! flush between, so that no cache joins them.

use std::ops::Range;

use super::layout::Layout;

/// Bytes of the largest request that the kernel makes of a write.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// Stage of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Doublewrite,
    DoublewriteFlush,
    FirstParts,
    FirstPartsFlush,
    Rest,
    PagesFlush,
}

/// A request to the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Write(Range<u64>),
    Flush,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cleaner {
    layout: Layout,
    has_doublewrite: bool,
    /// Writes of pages are split where these begin.
    split_bytes: Option<u64>,
    stage: Stage,
    batch: Vec<u32>,
    /// Pages of later batches.
    rest: Vec<u32>,
    /// Requests of the stage that are to be submitted, the next one last, and those that are in flight.
    waiting: Vec<Asked>,
    in_flight: usize,
}

impl Cleaner {
    pub fn new(layout: Layout, has_doublewrite: bool, split_bytes: Option<u64>) -> Self {
        Self {
            layout,
            has_doublewrite,
            split_bytes,
            stage: Stage::Idle,
            batch: Vec::new(),
            rest: Vec::new(),
            waiting: Vec::new(),
            in_flight: 0,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Begins to write pages, as many at a time as the doublewrite area has room for.
    pub fn begin(&mut self, pages: Vec<u32>) {
        debug_assert!(self.is_idle(), "a batch is under way");
        self.rest = pages;
        self.begin_batch();
    }

    fn begin_batch(&mut self) {
        let pages = self.layout.doublewrite_pages().min(self.rest.len());
        self.batch = self.rest.drain(..pages).collect();
        if !self.batch.is_empty() {
            self.enter(if self.has_doublewrite { Stage::Doublewrite } else { Stage::FirstParts });
        }
    }

    /// The next request to submit, if one is to be submitted now.
    pub fn next_request(&mut self) -> Option<Asked> {
        let next = self.waiting.pop()?;
        self.in_flight += 1;
        Some(next)
    }

    /// A request is complete; the pages of the batch, if these are written.
    pub fn completed(&mut self) -> Option<Vec<u32>> {
        self.in_flight -= 1;
        if self.in_flight > 0 || !self.waiting.is_empty() {
            return None;
        }
        let next = match self.stage {
            Stage::Doublewrite => Stage::DoublewriteFlush,
            Stage::DoublewriteFlush => Stage::FirstParts,
            Stage::FirstParts if self.split_bytes.is_some() => Stage::FirstPartsFlush,
            Stage::FirstPartsFlush => Stage::Rest,
            Stage::FirstParts | Stage::Rest => Stage::PagesFlush,
            Stage::PagesFlush | Stage::Idle => Stage::Idle,
        };
        self.enter(next);
        if !self.is_idle() {
            return None;
        }
        let written = std::mem::take(&mut self.batch);
        self.begin_batch();
        Some(written)
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.waiting = match stage {
            Stage::Idle => Vec::new(),
            Stage::Doublewrite => {
                let Range { start, end } = self.layout.doublewrite(self.batch.len());
                let starts = (start..end).step_by(REQUEST_BYTES_MAX as usize);
                starts.map(|start| Asked::Write(start..end.min(start + REQUEST_BYTES_MAX))).collect()
            }
            Stage::FirstParts => self.parts_of_batch(0),
            Stage::Rest => self.parts_of_batch(1),
            Stage::DoublewriteFlush | Stage::FirstPartsFlush | Stage::PagesFlush => vec![Asked::Flush],
        };
        self.waiting.reverse();
        // A batch whose pages all end at stripes has no rest.
        if stage == Stage::Rest && self.waiting.is_empty() {
            self.enter(Stage::PagesFlush);
        }
    }

    /// The first part of each page, or the second one of those that have one.
    fn parts_of_batch(&self, number: usize) -> Vec<Asked> {
        let parts = self.batch.iter().filter_map(|page| self.parts(*page)[number].clone());
        parts.map(Asked::Write).collect()
    }

    /// A page up to the first stripe that begins within it, and from there on.
    fn parts(&self, page: u32) -> [Option<Range<u64>>; 2] {
        let Range { start, end } = self.layout.page(page);
        let middle = self.split_bytes.map_or(end, |bytes| (start + 1).next_multiple_of(bytes).min(end));
        [Some(start..middle), (middle < end).then_some(middle..end)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stages of a batch of two pages, as the bytes of their requests; 0 is a flush.
    fn stages(has_doublewrite: bool, split_bytes: Option<u64>, table_shift_bytes: u64) -> Vec<Vec<u64>> {
        let layout =
            Layout { page_bytes: 65536, partition_begin_bytes: 0, table_shift_bytes, system_pages: 0 };
        let mut cleaner = Cleaner::new(layout, has_doublewrite, split_bytes);
        cleaner.begin(vec![7, 3]);
        let mut stages = Vec::new();
        while !cleaner.is_idle() {
            let asked: Vec<_> = std::iter::from_fn(|| cleaner.next_request()).collect();
            let bytes = asked.iter().map(|asked| match asked {
                Asked::Write(range) => range.end - range.start,
                Asked::Flush => 0,
            });
            stages.push(bytes.collect());
            let done = asked.iter().filter_map(|_| cleaner.completed()).next_back();
            assert_eq!(done, cleaner.is_idle().then(|| vec![7, 3]));
        }
        stages
    }

    #[test]
    fn pages_go_to_the_doublewrite_area_and_then_to_their_places() {
        assert_eq!(stages(true, None, 0), [vec![131_072], vec![0], vec![65536, 65536], vec![0]]);
        assert_eq!(stages(false, None, 0), [vec![65536, 65536], vec![0]]);
    }

    #[test]
    fn pages_across_stripes_are_split_with_a_flush_between() {
        let half = 32768;
        let parts = [vec![half, half], vec![0], vec![half, half], vec![0]];
        assert_eq!(stages(false, Some(65536), half), parts);
    }
}
