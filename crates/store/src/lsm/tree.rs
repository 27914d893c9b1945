//! A tree kept as an LSM-tree.
//!
//! The way of a version:
//!
//! 1. A commit puts it into the *active* memtable. It reads nothing.
//! 2. A full memtable is *frozen*, and another one becomes active. The frozen one is *flushed*: written as
//!    tables, which the manifest gets as the newest run of level 0.
//! 3. *Compactions* merge runs into those of the next level, as the [policy](super::policy) says, and leave
//!    out versions that [no reader will see](crate::buffered::Retention).
//!
//! A reader looks into the memtables and runs from the newest to the oldest, and stops at the first version
//! that it sees.
//!
//! Synchronization: commits change memtables, as long as these are active. The holder of the mutex `changes`,
//! which guards the manifest, changes which memtables are frozen, and the levels. A flush holds the mutex
//! `flushes`, as the oldest memtable comes first. Compactions are [jobs](super::jobs) that keep away from
//! each other's tables.

use std::ops::Bound;
use std::task::Poll;

use flashgrain_settings::layout::Decision;

use super::cursor::RunCursor;
use super::flush_batch::FlushBatch;
use super::jobs::Jobs;
use super::levels::{self, Entry, Levels};
use super::manifest::Manifest;
use super::options::{Decided, LsmOptions, Options};
use super::policy::SMALL_RUNS;
use super::reader::{Reader, Reading};
use super::stats::Counters;
use super::table::{FoundRecord, Table};
use super::throttling::Controller;
use super::walk::Compared;
use crate::Error;
use crate::buffered::{
    Cursor, Cuts, Dead, Full, Hidden, Join, Memtable, MemtableCursor, Memtables, Merged, Removals,
    SeenCursor, Semaphore, TreeResources, Trouble, hidden_by,
};
use crate::header::PageId;
use crate::index::{Direction, LoadId, May, TreeId, TreeOperator, Version, Write};
use crate::log::{LogRecord, Timestamp};
use crate::pool::Pool;
use crate::segment::Reservation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

impl TreeResources {
    /// The numbers of a new LSM-tree.
    ///
    /// # Errors
    /// [`Error::Options`] names the given option that is wrong.
    pub fn decide_lsm(&self, given: LsmOptions) -> Result<Decided, Error> {
        if self.segments.owned.is_in_place() {
            let why = "pages stay in their places, and leave no segments to the tables of LSM-trees";
            return Err(Error::Options(format!("{why}: create the store without that, or use a B+-tree")));
        }
        Decided::of(given, self.room)
    }

    /// The numbers of a new LSM-tree with blocks of `block_bytes` bytes, and why they are so.
    ///
    /// # Errors
    /// As [`Shared::decide_lsm`].
    pub fn lsm_decisions(&self, given: LsmOptions, block_bytes: usize) -> Result<Vec<Decision>, Error> {
        let decided = self.decide_lsm(given)?;
        Ok(decided.decisions(&Options::new(decided, block_bytes, self.room), self.room))
    }

    pub(super) fn reader(&self, reading: Reading) -> Reader {
        Reader { pool: Arc::clone(&self.pool), executor: self.executor.clone(), reading }
    }
}

/// See the module.
pub(crate) struct Lsm {
    pub(super) this: Weak<Self>,
    pub(super) id: TreeId,
    pub(super) shared: Arc<TreeResources>,
    pub(super) manifest: Manifest,
    decided: Decided,
    pub(super) options: Options,
    pub(super) operator: Option<Arc<TreeOperator>>,
    pub(super) counters: Arc<Counters>,
    pub(super) controller: Controller,
    parts: RwLock<Parts>,
    pub(super) flushes: Semaphore,
    pub(super) flush_batch: FlushBatch,
    pub(super) jobs: Jobs,
    pub(super) changes: Semaphore,
    pub(super) sweeps: Semaphore,
    /// Failures of flushes, and of other jobs.
    pub(super) trouble: Trouble,
    pub(super) job_trouble: Trouble,
    /// Whether a task that flushes was sent out.
    pub(super) is_flush_sent: AtomicBool,
    /// Whether its pages have been reassigned.
    pub(super) is_cleared: AtomicBool,
    /// Whether no job is to run any more.
    pub(super) is_stopped: AtomicBool,
    pub(super) cuts: Cuts,
    pub(super) dead: Dead,
    /// Whether a flush has found no room. It would have one more checkpoint made for want of room each time.
    pub(super) is_stuck: AtomicBool,
    /// Whether it takes all measures to make room.
    pub(super) is_making_room: AtomicBool,
    /// Whether small tables have been merged since the last flush without becoming fewer.
    pub(super) is_unified: AtomicBool,
    /// Room for the memtables, and for the merges that follow.
    reservation: Reservation,
    /// Tables that left the levels, and that may still have readers.
    left: Mutex<Vec<Arc<Table>>>,
    /// Loads that an earlier opening has prepared.
    orphans: Mutex<Vec<LoadId>>,
}

/// Where versions are, the newest first.
#[derive(Clone)]
pub(super) struct Parts {
    pub memtables: Memtables,
    pub levels: Arc<Levels>,
}

impl Parts {
    /// Whether memtables and tables are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.memtables.is_same(&other.memtables) && Arc::ptr_eq(&self.levels, &other.levels)
    }

    /// The ranges that are hidden from a scan of these keys with a snapshot of `at`; `None` if nothing is
    /// removed by ranges.
    pub fn hidden(&self, lower: &[u8], upper: Option<&[u8]>, at: Timestamp) -> Result<Option<Hidden>, Error> {
        let mut sources: Vec<Arc<dyn Removals>> = Vec::new();
        for memtable in self.memtables.iter().filter(|memtable| memtable.has_ranges()) {
            sources.push(Arc::clone(memtable) as _);
        }
        for table in self.levels.tables().filter(|table| table.summary.range_tombstones > 0) {
            let summary = &table.summary;
            if upper.is_none_or(|upper| summary.first_key.as_slice() < upper)
                && lower <= summary.last_key.as_slice()
            {
                // They are in memory from now on.
                table.range_tombstones()?;
                sources.push(Arc::clone(table) as _);
            }
        }
        Ok(Hidden::new(sources, at))
    }

    /// The versions that a scan as of `at` needs, from a place on, without tables that are hidden as a whole.
    pub fn merged(
        &self,
        reader: &Reader,
        direction: Direction,
        start: Bound<&[u8]>,
        (at, hidden): (Timestamp, Option<&Hidden>),
    ) -> Result<Merged, Error> {
        // Tables and memtables are of one moment: none has a part of another one's operands.
        let seen = |table| Box::new(SeenCursor::new(table, direction, start, (at, true))) as _;
        self.with_tables(self.memtables.iter().map(seen).collect(), reader, direction, (start, hidden))
    }

    /// All versions, in order. The tables' summaries are compared with them.
    pub fn all(&self, reader: &Reader) -> Result<Merged, Error> {
        let (direction, start) = (Direction::Forward, Bound::Unbounded);
        let all = |table| Box::new(MemtableCursor::new(table, direction, start)) as _;
        let mut sources: Vec<Box<dyn Cursor>> = self.memtables.iter().map(all).collect();
        for run in self.levels.runs() {
            sources.push(Box::new(Compared::new(run, reader)?));
        }
        Ok(Merged::new(sources, direction))
    }

    fn with_tables(
        &self,
        mut sources: Vec<Box<dyn Cursor>>,
        reader: &Reader,
        direction: Direction,
        (start, hidden): (Bound<&[u8]>, Option<&Hidden>),
    ) -> Result<Merged, Error> {
        for run in self.levels.runs() {
            let hidden = hidden.cloned();
            sources.push(Box::new(RunCursor::without(run.clone(), reader, direction, start, hidden)?));
        }
        Ok(Merged::new(sources, direction))
    }
}

impl Lsm {
    /// A new tree without records; the root of its manifest.
    ///
    /// # Errors
    /// The pool's.
    pub fn create(pool: &Arc<Pool>) -> Result<PageId, Error> {
        Manifest::create(pool)
    }

    /// The tree with this number, and this root of its manifest.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the manifest is damaged.
    pub fn open(
        id: TreeId,
        shared: &Arc<TreeResources>,
        root: PageId,
        (decided, block_bytes): (Decided, usize),
        operator: Option<Arc<TreeOperator>>,
    ) -> Result<Arc<Self>, Error> {
        decided.check_build()?;
        let options = Options::new(decided, block_bytes, shared.room);
        let manifest = Manifest::open(&shared.pool, root)?;
        let bytes = manifest.load()?;
        let mut open = |entry: Entry| -> Result<Table, Error> {
            let segment = |page: &PageId| {
                let location = shared.pool.pages.location(*page, false);
                let location =
                    location.ok_or_else(|| damaged(id, format!("nothing with number {}", page.0)))?;
                shared.segments.owned.open(location)
            };
            let segments = entry.pages.iter().map(segment).collect::<Result<_, _>>()?;
            let table = Table::new(segments, entry.pages, entry.places, entry.summary);
            Ok(table.with_metadata(options.metadata()))
        };
        let levels = match bytes.is_empty() {
            true => Levels::default(),
            false => levels::decode(&bytes, &mut open)?
                .ok_or_else(|| damaged(id, format!("{} bytes that are none", bytes.len())))?,
        };
        let orphans = Mutex::new(levels.loads().collect());
        let parts = Parts { memtables: Memtables::none(), levels: Arc::new(levels) };
        let tree = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            id,
            shared: Arc::clone(shared),
            counters: Arc::clone(&manifest.counters),
            manifest,
            decided,
            options,
            operator,
            controller: Options::controller(decided),
            parts: RwLock::new(parts),
            flushes: Semaphore::default(),
            flush_batch: Options::flush_batch(decided),
            jobs: Jobs::default(),
            changes: Semaphore::default(),
            sweeps: Semaphore::default(),
            trouble: Trouble::default(),
            job_trouble: Trouble::default(),
            is_flush_sent: AtomicBool::new(false),
            is_cleared: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            cuts: Cuts::default(),
            dead: Dead::default(),
            is_stuck: AtomicBool::new(false),
            is_making_room: AtomicBool::new(false),
            is_unified: AtomicBool::new(false),
            reservation: shared.segments.owned.reservation(),
            left: Mutex::default(),
            orphans,
        });
        tree.update_reservation();
        Ok(tree)
    }

    /// Reserves the room that flushes and merges need, now that memtables or levels have changed.
    pub(super) fn update_reservation(&self) {
        self.reservation.set_with_flushes(|| {
            if self.is_cleared.load(Ordering::SeqCst) {
                return (0, 0);
            }
            let parts = self.parts().clone();
            let (levels, memtables) = (&parts.levels, &parts.memtables);
            let owned = &self.shared.segments.owned;
            let for_flushes = |bytes: u64| if owned.awaits_flushes() { bytes } else { 0 };
            let in_memory = memtables.reserve(self.options.memtable_bytes);
            if owned.may_grow() {
                // The device grows for memtables that become full, by segments as large as the present ones.
                let has_none_to_merge = memtables.filled() == 0 && levels.runs().count() <= 1;
                let segment_bytes = owned.present_segment_bytes();
                let whole = |bytes: u64| bytes.next_multiple_of(segment_bytes);
                let flushed = in_memory.iter().map(|bytes| whole(*bytes)).sum::<u64>();
                let merged = levels.bytes(0)
                    + in_memory.iter().sum::<u64>()
                    + self.options.policy.largest_job_bytes(levels);
                let all = if has_none_to_merge { 0 } else { flushed + whole(merged) };
                return (all, for_flushes(flushed.min(all)));
            }
            // Removals fill memtables, and are not refused.
            let (count, segment_bytes) = (in_memory.len() as u64, self.options.segment_bytes);
            // Checkpoints may flush small ones, until level 0 is merged.
            let small = u64::from(self.options.policy_options.level_zero_runs)
                .saturating_sub(levels.level(0).len() as u64);
            let flushed = count * self.options.memtable_bytes.div_ceil(segment_bytes) + small;
            let merged_bytes = levels.bytes(0)
                + count * self.options.memtable_bytes
                + self.options.policy.largest_job_bytes(levels);
            // The last table of each part may be a small one.
            let merged = merged_bytes.div_ceil(segment_bytes) + self.parts_of(merged_bytes);
            ((flushed + merged) * segment_bytes, for_flushes(flushed * segment_bytes))
        });
    }

    /// Its numbers, and why they are so.
    pub(super) fn explained(&self) -> Vec<Decision> {
        self.decided.decisions(&self.options, self.shared.room)
    }

    pub(super) fn parts(&self) -> RwLockReadGuard<'_, Parts> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memtables and tables as they are now, for a caller that may wait.
    pub(super) fn current(&self) -> Parts {
        preempt!();
        let parts = self.parts().clone();
        preempt!();
        parts
    }

    pub(super) fn parts_mut(&self) -> RwLockWriteGuard<'_, Parts> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn left(&self) -> MutexGuard<'_, Vec<Arc<Table>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn orphans(&self) -> MutexGuard<'_, Vec<LoadId>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest version of a key that is not newer than `at`. Its value is appended to `into`.
    pub(super) fn newest(
        &self,
        key: &[u8],
        at: Timestamp,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Option<Version>>, Error> {
        self.trouble.check_whole(self.id)?;
        let parts = self.current();
        if let Some(version) = parts.memtables.iter().find_map(|table| table.find(key, at, into)) {
            return Ok(Poll::Ready(Some(version)));
        }
        for run in parts.levels.runs() {
            let table = run.get(run.partition_point(|table| table.summary.last_key.as_slice() < key));
            let Some(table) = table.filter(|table| table.covers(key)) else { continue };
            if may == May::NotWait && planted!(UnreadTableSkipped) {
                continue;
            }
            if may == May::NotWait {
                self.read_ahead(key, at);
                return Ok(Poll::Pending);
            }
            let removed_at = table.removed_at(key, at)?;
            let found = table.find(&self.shared.pool, &self.counters, key, at)?;
            if let Some(version) = hidden_by(removed_at, found.as_ref().map(|found| found.version)) {
                into.extend_from_slice(found.as_ref().map_or(&[], FoundRecord::value));
                return Ok(Poll::Ready(Some(version)));
            }
        }
        Ok(Poll::Ready(None))
    }

    /// Brings the blocks that a look-up of the key needs into memory, in the background.
    fn read_ahead(&self, key: &[u8], at: Timestamp) {
        if let Some(own) = self.this.upgrade() {
            let key = key.to_vec();
            self.shared.executor.send_out(move || {
                // A caller that asks again is told of a failure.
                let _tried = own.newest(&key, at, May::Wait, &mut Vec::new());
            });
        }
    }

    /// Whether as many memtables are frozen as the next flush merges.
    pub(super) fn is_flush_due(&self) -> bool {
        self.parts().memtables.frozen.len() >= self.flush_batch.wanted()
    }

    /// Freezes the active memtable.
    pub(super) fn freeze(&self) {
        self.parts_mut().memtables.freeze(Memtable::none());
        self.update_reservation();
    }

    /// Writes the counts if they are news; tables stay as they are.
    ///
    /// # Errors
    /// As [`Manifest::store`].
    pub(super) fn keep_counts(&self) -> Result<(), Error> {
        let _permits = self.changes.acquire_all();
        if self.counters.kept().is_news(&self.manifest.written()?) {
            let levels = Arc::clone(&self.parts().levels);
            self.manifest.store(&[], |_| Levels::clone(&levels))?;
        }
        Ok(())
    }

    /// Bytes of the next memtable. With small ones level 0 has many runs, which is good for writers; with
    /// large ones few, which is good for readers.
    fn next_memtable_bytes(&self) -> u64 {
        let bytes = self.options.memtable_bytes;
        if !self.options.level_zero_by_reads || self.counters.reads_prevail() {
            return bytes;
        }
        let segment_bytes = self.shared.room.segment_bytes;
        (bytes / u64::from(SMALL_RUNS)).next_multiple_of(segment_bytes).min(bytes)
    }

    /// Freezes a full memtable, unless another thread has.
    pub(super) fn replace(&self, full: &Arc<Memtable>) {
        let next =
            Memtable::new(&self.shared.pool, self.next_memtable_bytes(), self.options.record_bytes_max());
        self.parts_mut().memtables.freeze_full(full, next);
        self.update_reservation();
    }

    pub(super) fn put(&self, key: &[u8], write: Write<'_>, record: LogRecord) {
        let (version, value) = write.version(record.timestamp);
        let operator = self.operator.as_deref().filter(|_| version.is_operands());
        let join = operator.map(|operator| move |lists: &[&[u8]]| operator.joined(key, lists));
        let join = join.as_ref().map(|join| join as Join<'_>);
        self.change(|memtable| memtable.put(key, version, value, record, join));
        if !version.is_tombstone() {
            self.dead.written(key);
        }
    }

    /// Changes the active memtable, or the next one if it is full.
    pub(super) fn change(&self, change: impl Fn(&Memtable) -> Result<(), Full>) {
        loop {
            // A frozen memtable is complete: it is frozen while this lock has no reader.
            let (changed, has_outgrown) = {
                let parts = self.parts();
                (parts.memtables.change(&change), parts.memtables.active.has_outgrown())
            };
            if has_outgrown {
                self.update_reservation();
            }
            let Err(full) = changed else { return };
            self.replace(&full);
            if self.is_flush_due() {
                self.send_flush();
            }
        }
    }
}

#[cold]
fn damaged(id: TreeId, got: String) -> Error {
    Error::Corrupt {
        what: format!("the manifest of tree {}", id.0),
        offset_bytes: 0,
        expected: "levels of tables with segments of their own".into(),
        got,
    }
}
