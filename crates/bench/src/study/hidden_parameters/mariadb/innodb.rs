//! The requests that a server with InnoDB makes of its drive for one client, in virtual time: reads of pages
//! that are not in the buffer pool, a write of the redo log and a flush for each commit, and the page
//! cleaner's batches, which go on while the client works.
//!
//! Of the table, only the leaves are modelled: all pages above them stay in memory. A transaction takes the
//! next one of the rollback segments. Each has a page with its header and one with its undo log in the system
//! tablespace. Purge, which looks at some of these again, is left out. `recording` holds the requests to
//! those of a server.

use std::sync::Arc;

use flashgrain_device::{Nanos, Op};
use flashgrain_profile::load::InFlight;
use flashgrain_ssdsim::{Counters, SimDevice};

use super::cleaner::{Asked, Cleaner};
use super::layout::Layout;
use super::pool::Pool;

/// Pages of a rollback segment.
const SEGMENT_PAGES: u32 = 2;

/// Requests in flight, at most; `innodb_write_io_threads` times 256 are more than a batch has.
const DEPTH: u32 = 512;

/// The largest request of all.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Tags of requests.
const CLIENT: u64 = 0;
const CLEANER: u64 = 1;

/// InnoDB's memory, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Frames of the buffer pool.
    pub frames: usize,
    /// `innodb_lru_scan_depth`: the cleaner makes this number of frames free when half as many are.
    pub scan_depth: usize,
    /// While fewer pages are in memory, the cleaner does not begin (`BUF_LRU_MIN_LEN`).
    pub wake_pages: usize,
    /// Pages that stay in memory: 5 % of the frames, or fewer.
    pub pages_min: usize,
    /// `innodb_io_capacity`: pages that leave memory together.
    pub io_capacity: usize,
    /// Rollback segments.
    pub rollback_segments: u32,
}

impl Memory {
    /// The same shares of these frames as InnoDB's defaults are of the paper's pool, 2,048 frames of 64 KiB.
    pub fn scaled(frames: usize) -> Self {
        let defaults = Self::of_frames(2048);
        let share = |of: usize| (of * frames).div_ceil(defaults.frames).max(1);
        Self {
            frames,
            scan_depth: share(defaults.scan_depth),
            wake_pages: share(defaults.wake_pages),
            pages_min: share(defaults.pages_min),
            io_capacity: share(defaults.io_capacity),
            rollback_segments: share(defaults.rollback_segments as usize) as u32,
        }
    }

    /// InnoDB's defaults.
    pub fn of_frames(frames: usize) -> Self {
        let wake_pages = 256;
        Self {
            frames,
            scan_depth: 1536,
            wake_pages,
            pages_min: (frames / 20).saturating_sub(1).min(wake_pages),
            io_capacity: 200,
            rollback_segments: 128,
        }
    }

    /// Pages of the system tablespace that transactions change.
    pub fn system_pages(&self) -> u32 {
        SEGMENT_PAGES * self.rollback_segments
    }
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub layout: Layout,
    /// Pages of the table and of the system tablespace.
    pub pages: u32,
    pub memory: Memory,
    pub has_doublewrite: bool,
    /// Writes of pages are split where these begin, with a flush between.
    pub split_bytes: Option<u64>,
}

/// See the module.
pub(super) struct InnoDb {
    setup: Setup,
    device: Arc<SimDevice>,
    requests: InFlight,
    pool: Pool,
    cleaner: Cleaner,
    /// Bytes that the redo log has grown by.
    log_bytes: u64,
    transactions: u32,
    /// The client's request is complete.
    is_answered: bool,
    /// All requests, in the order of their submission.
    #[cfg(test)]
    pub sent: Vec<(Op, u64, u32)>,
}

impl InnoDb {
    /// A server on an empty drive.
    pub fn make(setup: Setup, device: Arc<SimDevice>, seed: u64) -> anyhow::Result<Self> {
        let requests = InFlight::open(device.as_ref(), DEPTH, REQUEST_BYTES_MAX, seed)?;
        let cleaner = Cleaner::new(setup.layout, setup.has_doublewrite, setup.split_bytes);
        let pool = Pool::new(setup.memory.frames, setup.pages);
        Ok(Self {
            setup,
            device,
            requests,
            pool,
            cleaner,
            log_bytes: 0,
            transactions: 0,
            is_answered: false,
            #[cfg(test)]
            sent: Vec::new(),
        })
    }

    /// Writes these pages as the cleaner does.
    pub fn write(&mut self, pages: &[u32]) -> anyhow::Result<()> {
        self.cleaner.begin(pages.to_vec());
        self.submit()?;
        while !self.cleaner.is_idle() {
            self.advance(None)?;
        }
        Ok(())
    }

    pub fn now(&self) -> Nanos {
        self.requests.now()
    }

    pub fn counters(&self) -> Counters {
        self.device.statistics().counters
    }

    /// Has a page in memory; whether it had to be read.
    pub fn fetch(&mut self, page: u32) -> anyhow::Result<bool> {
        if self.pool.access(page, self.now()) {
            return Ok(false);
        }
        self.make_room()?;
        let place = self.setup.layout.page(page);
        self.ask(Op::Read, place.start, self.setup.layout.page_bytes as u32)?;
        self.pool.insert(page, self.now());
        Ok(true)
    }

    /// Has a page in memory and changes it, in a transaction of its own; whether it had to be read.
    pub fn change(&mut self, page: u32) -> anyhow::Result<bool> {
        let is_read = self.fetch(page)?;
        self.pool.dirty(page);
        let segment = self.transactions % self.setup.memory.rollback_segments;
        self.transactions = self.transactions.wrapping_add(1);
        for of_segment in segment * SEGMENT_PAGES..(segment + 1) * SEGMENT_PAGES {
            self.fetch(of_segment)?;
            self.pool.dirty(of_segment);
        }
        Ok(is_read)
    }

    /// Makes a transaction durable that has written `redo_bytes` to the redo log.
    pub fn commit(&mut self, redo_bytes: u64) -> anyhow::Result<()> {
        let from = self.log_bytes;
        self.log_bytes += redo_bytes;
        let blocks = self.setup.layout.log(from, self.log_bytes);
        self.ask(Op::Write, blocks.start, (blocks.end - blocks.start) as u32)?;
        self.ask(Op::Flush, 0, 0)
    }

    /// The client's processor works.
    pub fn work(&mut self, time_ns: u64) -> anyhow::Result<()> {
        let until = Nanos(self.now().0 + time_ns);
        while self.now() < until {
            self.advance(Some(until))?;
        }
        Ok(())
    }

    /// Has a frame free. The cleaner frees some in the background as soon as few are.
    fn make_room(&mut self) -> anyhow::Result<()> {
        let Memory { scan_depth, wake_pages, .. } = self.setup.memory;
        if self.pool.free() < scan_depth / 2 && self.pool.length() > wake_pages {
            self.clean()?;
        }
        while self.pool.free() == 0 {
            self.clean()?;
            if self.pool.free() == 0 {
                self.advance(None)?;
            }
        }
        Ok(())
    }

    /// Gives up clean pages, and begins to write dirty ones that are in their way.
    fn clean(&mut self) -> anyhow::Result<()> {
        let Memory { scan_depth, pages_min, io_capacity, .. } = self.setup.memory;
        let dirty = self.pool.scan(scan_depth, pages_min, io_capacity, self.cleaner.is_idle());
        if !dirty.is_empty() {
            dirty.iter().for_each(|page| self.pool.begin_write(*page));
            self.cleaner.begin(dirty);
            self.submit()?;
        }
        Ok(())
    }

    /// Does a request of the client's.
    fn ask(&mut self, op: Op, offset_bytes: u64, length_bytes: u32) -> anyhow::Result<()> {
        while !self.requests.has_room() {
            self.advance(None)?;
        }
        self.send(op, offset_bytes, length_bytes, CLIENT)?;
        self.is_answered = false;
        while !self.is_answered {
            self.advance(None)?;
        }
        Ok(())
    }

    fn send(&mut self, op: Op, offset_bytes: u64, length_bytes: u32, tag: u64) -> anyhow::Result<()> {
        #[cfg(test)]
        self.sent.push((op, offset_bytes, length_bytes));
        Ok(self.requests.submit(op, offset_bytes, length_bytes, tag)?)
    }

    /// Lets time pass until a request is complete, or until a point in time.
    fn advance(&mut self, until: Option<Nanos>) -> anyhow::Result<()> {
        for tag in self.requests.wait(until)? {
            if tag == CLIENT {
                self.is_answered = true;
                continue;
            }
            for page in self.cleaner.completed().into_iter().flatten() {
                self.pool.end_write(page);
            }
        }
        self.submit()
    }

    /// Submits the cleaner's requests.
    fn submit(&mut self) -> anyhow::Result<()> {
        while self.requests.has_room()
            && let Some(asked) = self.cleaner.next_request()
        {
            match asked {
                Asked::Write(place) => {
                    let length_bytes = (place.end - place.start) as u32;
                    self.send(Op::Write, place.start, length_bytes, CLEANER)?;
                }
                Asked::Flush => self.send(Op::Flush, 0, 0, CLEANER)?,
            }
        }
        Ok(())
    }
}
