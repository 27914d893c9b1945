//! A tree kept as an LSM-tree.
//!
//! The way of a version:
//!
//! 1. A commit puts it into the *active* memtable. It reads nothing.
//! 2. A full memtable is *frozen*, and another one becomes active. The frozen one is *flushed*: written as
//!    tables, which the manifest gets as the newest run of level 0.
//! 3. *Compactions* merge runs into those of the next level, as the [policy](super::policy) says, and leave
//!    out what [nobody will see](super::retention).
//!
//! A reader looks into the memtables and runs from the newest to the oldest, and stops at the first version
//! that it sees.
//!
//! Who may change what: memtables, commits, as long as these are active. The manifest, the levels and which
//! memtables there are, the holder of the turn.

use std::ops::Bound;
use std::task::Poll;

use super::cursor::{Cursor, MemtableCursor, Merged, RunCursor};
use super::levels::{self, Edit, Entry, Levels, Run, Target};
use super::manifest::Manifest;
use super::memtable::{Full, Memtable, OwnVersion};
use super::policy::{Job, Leveled, Policy};
use super::retention::Retention;
use super::table::{Made, Table, TableOptions, TableWriter};
use super::turn::{Turn, Turns};
use crate::Error;
use crate::class::class_bytes;
use crate::header::PageId;
use crate::index::{
    Census, Commit, Direction, Found, Horizon, Index, Limits, May, Newest, Piece, Prior, Reapplied,
    SeeVersion, Snapshots, Steps, TreeId, Version, Write, Written,
};
use crate::log::{LogRecord, Timestamp};
use crate::pool::Pool;
use crate::segment::Segments;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use crate::task::{Executor, yield_now};

/// Bytes of records that a step of a scan yields.
const STEP_BYTES: usize = 32 << 10;

/// Keys that a merge writes before others may go on.
const KEYS_PER_PAUSE: usize = 64;

/// Frozen memtables at which writers are stopped.
const FROZEN_MAX: f64 = 3.0;

/// What LSM-trees share with the rest of the store.
pub(crate) struct Shared {
    pool: Arc<Pool>,
    segments: Arc<Segments>,
    executor: Executor,
    /// Known when transactions are.
    horizon: OnceLock<Weak<dyn Horizon>>,
}

impl Shared {
    pub fn new(pool: &Arc<Pool>, segments: &Arc<Segments>, executor: &Executor) -> Arc<Self> {
        let (pool, segments, executor) = (Arc::clone(pool), Arc::clone(segments), executor.clone());
        Arc::new(Self { pool, segments, executor, horizon: OnceLock::new() })
    }

    /// From now on merges leave out what nobody will see. Only the first call of this has an effect.
    pub fn set_horizon(&self, horizon: Weak<dyn Horizon>) {
        let _first_stays = self.horizon.set(horizon);
    }
}

/// Memtables take this part of the memory, tables are as large.
const MEMTABLE_DIVISOR: u64 = 16;
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;

/// As the model's defaults, but for the fanout, which small trees would never need.
const FANOUT: f64 = 8.0;

/// A table is finished when its last segment has less left than one part in so many.
const TAIL_DIVISOR: u64 = 6;
const LEVEL_ZERO_RUNS: usize = 4;
const FILTER_BITS_PER_KEY: f64 = 10.0;
const BLOCK_BYTES: usize = 4096;
const PARTITION_BYTES: usize = 64 << 10;

/// The numbers of a tree.
struct Options {
    memtable_bytes: u64,
    /// T: bytes from which on a table is finished.
    table_bytes: u64,
    table: TableOptions,
    policy: Box<dyn Policy>,
}

impl Options {
    /// With a cache and segments of so many bytes.
    fn of(cache_bytes: u64, segment_bytes: u64) -> Self {
        let wanted = (cache_bytes / MEMTABLE_DIVISOR).min(MEMTABLE_BYTES_MAX);
        // As much as whole segments hold: what is left of the last one is lost.
        let table_bytes = wanted.max(1).next_multiple_of(segment_bytes);
        let policy = Leveled {
            fanout: FANOUT,
            level_zero_runs: LEVEL_ZERO_RUNS,
            level_one_bytes: table_bytes * LEVEL_ZERO_RUNS as u64,
        };
        let table = TableOptions {
            block_bytes: BLOCK_BYTES,
            partition_bytes: PARTITION_BYTES,
            filter_bits_per_key: FILTER_BITS_PER_KEY,
        };
        // Room for a data block, a partition and the top, which come when it is finished.
        let tail_bytes = segment_bytes / TAIL_DIVISOR;
        Self {
            memtable_bytes: table_bytes,
            table_bytes: table_bytes - tail_bytes,
            table,
            policy: Box::new(policy),
        }
    }
}

/// See the module.
pub(crate) struct Lsm {
    this: Weak<Self>,
    shared: Arc<Shared>,
    manifest: Manifest,
    options: Options,
    parts: RwLock<Parts>,
    turns: Turns,
    /// Whether a task that takes the turn was sent out.
    is_sent_out: AtomicBool,
    /// Whether its pages are others' by now.
    is_cleared: AtomicBool,
    /// See [`Lsm::last_cut`].
    last_cut: AtomicU64,
    /// Whether a flush has found no room. It would have one more checkpoint made for want of room each time.
    is_stuck: AtomicBool,
    /// Tables that left the levels, and that somebody may still read.
    left: Mutex<Vec<Arc<Table>>>,
}

/// Where versions are, the newest first.
#[derive(Clone)]
struct Parts {
    active: Arc<Memtable>,
    frozen: Vec<Arc<Memtable>>,
    levels: Arc<Levels>,
}

impl Parts {
    fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// Another memtable becomes active.
    fn replace(&mut self, next: Memtable) {
        let active = std::mem::replace(&mut self.active, Arc::new(next));
        if active.first().is_some() {
            self.frozen.insert(0, active);
        }
    }

    /// All versions, from a place on.
    fn merged(&self, direction: Direction, start: Bound<&[u8]>) -> Result<Merged, Error> {
        let in_memory =
            self.memtables().map(|table| Box::new(MemtableCursor::new(table, direction, start)) as _);
        let mut sources: Vec<Box<dyn Cursor>> = in_memory.collect();
        for run in self.levels.runs() {
            sources.push(Box::new(RunCursor::new(run.clone(), direction, start)?));
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
        Ok(Manifest::create(pool)?.root())
    }

    /// The tree with this number, and this root of its manifest.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if the manifest is damaged.
    pub fn open(id: TreeId, shared: &Arc<Shared>, root: PageId) -> Result<Arc<Self>, Error> {
        let options = Options::of(shared.pool.pages.budget_bytes(), shared.segments.owned.segment_bytes());
        let manifest = Manifest::open(&shared.pool, root);
        let bytes = manifest.load()?;
        let mut open = |entry: Entry| -> Result<Table, Error> {
            let segment = |page: &PageId| {
                let location = shared.pool.pages.location(*page, false);
                let location =
                    location.ok_or_else(|| damaged(id, format!("nothing with number {}", page.0)))?;
                shared.segments.owned.open(location)
            };
            let segments = entry.pages.iter().map(segment).collect::<Result<_, _>>()?;
            Ok(Table::new(segments, entry.pages, entry.top, entry.summary))
        };
        let levels = match bytes.is_empty() {
            true => Levels::default(),
            false => levels::decode(&bytes, &mut open)?
                .ok_or_else(|| damaged(id, format!("{} bytes that are none", bytes.len())))?,
        };
        let active = Arc::new(Memtable::none());
        let parts = Parts { active, frozen: Vec::new(), levels: Arc::new(levels) };
        Ok(Arc::new_cyclic(|this| Self {
            this: this.clone(),
            shared: Arc::clone(shared),
            manifest,
            options,
            parts: RwLock::new(parts),
            turns: Turns::default(),
            is_sent_out: AtomicBool::new(false),
            is_cleared: AtomicBool::new(false),
            last_cut: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            left: Mutex::default(),
        }))
    }

    /// The last commit that could be seen before the last checkpoint.
    fn last_cut(&self) -> Timestamp {
        Timestamp(self.last_cut.load(Ordering::Relaxed))
    }

    fn note_cut(&self) {
        if let Some(horizon) = self.shared.horizon.get().and_then(Weak::upgrade) {
            self.last_cut.store(horizon.visible().0, Ordering::Relaxed);
        }
    }

    fn parts(&self) -> RwLockReadGuard<'_, Parts> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts_mut(&self) -> RwLockWriteGuard<'_, Parts> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, Vec<Arc<Table>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest version of a key that is not newer than `at`. Its value is appended to `into`.
    fn newest(
        &self,
        key: &[u8],
        at: Timestamp,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Option<Version>>, Error> {
        let parts = self.parts().clone();
        if let Some(version) = parts.memtables().find_map(|table| table.find(key, at, into)) {
            return Ok(Poll::Ready(Some(version)));
        }
        for run in parts.levels.runs() {
            let table = run.get(run.partition_point(|table| table.summary.last_key.as_slice() < key));
            let Some(table) = table.filter(|table| table.covers(key)) else { continue };
            if may == May::NotWait {
                return Ok(Poll::Pending);
            }
            if let Some(found) = table.find(key, at)? {
                into.extend_from_slice(found.value());
                return Ok(Poll::Ready(Some(found.version)));
            }
        }
        Ok(Poll::Ready(None))
    }

    /// Freezes the active memtable.
    fn freeze(&self) {
        self.parts_mut().replace(Memtable::none());
    }

    /// Freezes a full memtable, unless somebody else has.
    fn replace(&self, full: &Arc<Memtable>) {
        let next = Memtable::new(&self.shared.pool, self.options.memtable_bytes);
        let mut parts = self.parts_mut();
        if Arc::ptr_eq(&parts.active, full) {
            parts.replace(next);
        }
    }

    /// Writes the frozen memtables, the oldest first.
    fn flush(&self, turn: &Turn<'_>) -> Result<(), Error> {
        loop {
            let parts = self.parts().clone();
            let Some(oldest) = parts.frozen.last() else { return Ok(()) };
            let cursor = MemtableCursor::new(oldest, Direction::Forward, Bound::Unbounded);
            let merged = Merged::new(vec![Box::new(cursor)], Direction::Forward);
            let older: Vec<Run> = parts.levels.runs().cloned().collect();
            let (made, gone) = self.merge(merged, &older)?;
            self.install(turn, made, Vec::new(), Target::NewRun(0), true)?;
            self.give_up(&gone);
        }
    }

    /// Merges runs as long as the policy says so.
    fn compact(&self, turn: &Turn<'_>) -> Result<(), Error> {
        loop {
            let levels = Arc::clone(&self.parts().levels);
            let Some(Job { inputs, to }) = self.options.policy.pick(&levels) else { return Ok(()) };
            let removed: Vec<Arc<Table>> = inputs.iter().flatten().cloned().collect();
            let is_input = |table: &Arc<Table>| removed.iter().any(|other| Arc::ptr_eq(table, other));
            // What is in the order behind the first input, and no input, may be older than some.
            let behind = levels.runs().skip_while(|run| !run.iter().any(is_input));
            let older: Vec<Run> =
                behind.map(|run| run.iter().filter(|table| !is_input(table)).cloned().collect()).collect();
            let sources = inputs.iter().map(|run| {
                let cursor = RunCursor::new(run.clone(), Direction::Forward, Bound::Unbounded)?;
                Ok(Box::new(cursor) as Box<dyn Cursor>)
            });
            let merged = Merged::new(sources.collect::<Result<_, Error>>()?, Direction::Forward);
            let (made, gone) = self.merge(merged, &older)?;
            self.install(turn, made, removed, to, false)?;
            self.give_up(&gone);
        }
    }

    /// Writes what is merged as tables, without the versions that nobody will see. `older` are the runs with
    /// versions that may be older. Also returns the overflow values among those that were left out.
    fn merge(&self, mut merged: Merged, older: &[Run]) -> Result<(Vec<Made>, Vec<OwnVersion>), Error> {
        let (mut made, mut gone, mut keys) = (Vec::new(), Vec::new(), 0_usize);
        let mut writer = TableWriter::new(&self.shared.segments.owned, self.options.table);
        while let Some(mut versions) = next_key(&mut merged)? {
            self.leave_out(&mut versions, older, &mut gone);
            for own in &versions {
                writer.push(&own.key, own.version, &own.value)?;
            }
            // Between keys: the versions of one are in one table.
            if writer.bytes() >= self.options.table_bytes {
                let next = TableWriter::new(&self.shared.segments.owned, self.options.table);
                made.extend(std::mem::replace(&mut writer, next).finish()?);
            }
            keys += 1;
            if keys.is_multiple_of(KEYS_PER_PAUSE) {
                yield_now();
            }
        }
        made.extend(writer.finish()?);
        Ok((made, gone))
    }

    /// Takes out of a key's versions those that nobody will see.
    fn leave_out(&self, versions: &mut Vec<OwnVersion>, older: &[Run], gone: &mut Vec<OwnVersion>) {
        let Some(horizon) = self.shared.horizon.get().and_then(Weak::upgrade) else { return };
        let Some(first) = versions.first() else { return };
        let covers = |run: &Run| run.iter().any(|table| table.covers(&first.key));
        let is_oldest = !older.iter().any(covers);
        // The timestamp first: see `Retention`.
        let visible = horizon.visible();
        let retention = Retention { snapshots: horizon.snapshots(), visible };
        let unneeded = retention.take_unneeded(versions, is_oldest);
        gone.extend(unneeded.into_iter().filter(|own| own.version.is_overflow()));
    }

    fn give_up(&self, gone: &[OwnVersion]) {
        if let Some(horizon) = self.shared.horizon.get().and_then(Weak::upgrade) {
            gone.iter().for_each(|own| horizon.overflow_is_gone(&own.value));
        }
    }

    /// Makes new tables part of the tree in place of others; `is_flush`: they have all of the oldest memtable.
    fn install(
        &self,
        _turn: &Turn<'_>,
        made: Vec<Made>,
        removed: Vec<Arc<Table>>,
        to: Target,
        is_flush: bool,
    ) -> Result<(), Error> {
        let before = Arc::clone(&self.parts().levels);
        let with = |numbers: &[Vec<PageId>]| {
            let table = |(made, numbers): (&Made, &Vec<PageId>)| {
                Arc::new(Table::new(made.segments.clone(), numbers.clone(), made.top, made.summary.clone()))
            };
            let added = made.iter().zip(numbers).map(table).collect();
            before.with(&Edit { removed: removed.clone(), added, to })
        };
        let levels = self.manifest.store(&made, with)?;
        let mut parts = self.parts_mut();
        parts.levels = Arc::new(levels);
        if is_flush {
            parts.frozen.pop();
        }
        drop(parts);
        self.left().extend(removed);
        Ok(())
    }

    /// Gives back the segments of tables that have left the levels and that nobody reads any more.
    fn sweep(&self) {
        let unread: Vec<Arc<Table>> = {
            let mut left = self.left();
            left.extract_if(.., |table| Arc::strong_count(table) == 1).collect()
        };
        for table in unread {
            if table.pages.iter().try_for_each(|page| self.shared.pool.free_unread(*page)).is_err() {
                // Nobody refers to what is left of it.
                return;
            }
        }
    }

    /// Flushes and compacts in the background.
    fn send_out(&self) {
        if self.is_sent_out.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        self.shared.executor.spawn(move || {
            let turn = own.turns.take();
            own.is_sent_out.store(false, Ordering::SeqCst);
            if own.is_cleared.load(Ordering::SeqCst) {
                return;
            }
            // What could not be written stays where it is, in memory and in the log, and is tried again.
            let _tried = own.work(&turn);
        });
    }

    fn work(&self, turn: &Turn<'_>) -> Result<(), Error> {
        self.flush(turn)?;
        self.compact(turn)?;
        self.sweep();
        Ok(())
    }

    fn put(&self, key: &[u8], write: Write<'_>, record: LogRecord) {
        let (version, value) = write.version(record.timestamp);
        loop {
            let full = {
                // What is frozen is complete: it is frozen with no reader of this lock.
                let parts = self.parts();
                match parts.active.put(key, version, value, record) {
                    Ok(()) => return,
                    Err(Full) => Arc::clone(&parts.active),
                }
            };
            self.replace(&full);
            self.send_out();
        }
    }
}

/// The versions of the next key, the newest first.
fn next_key(merged: &mut Merged) -> Result<Option<Vec<OwnVersion>>, Error> {
    let mut versions: Vec<OwnVersion> = Vec::new();
    while let Some((key, version, value)) = merged.get() {
        if versions.first().is_some_and(|first| first.key != key) {
            break;
        }
        versions.push(OwnVersion { key: key.to_vec(), version, value: value.to_vec() });
        merged.advance()?;
    }
    Ok((!versions.is_empty()).then_some(versions))
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

impl Index for Lsm {
    fn read(
        &self,
        key: &[u8],
        at: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error> {
        let start = into.len();
        let Poll::Ready(found) = self.newest(key, at.unwrap_or(Timestamp(u64::MAX)), may, into)? else {
            return Ok(Poll::Pending);
        };
        let newest = found.map(Version::timestamp);
        let version = found.filter(|version| !version.is_tombstone());
        if version.is_none() {
            into.truncate(start);
        }
        Ok(Poll::Ready(Found { version, newest }))
    }

    fn newest_since(&self, key: &[u8], since: Timestamp, may: May) -> Result<Poll<Newest>, Error> {
        let found = self.newest(key, Timestamp(u64::MAX), may, &mut Vec::new())?;
        Ok(found.map(|found| Newest::of(found.map(Version::timestamp), since)))
    }

    fn apply(
        &self,
        writes: &[Written<'_>],
        _priors: &[Prior],
        _values: &[u8],
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        for written in writes {
            self.put(written.key, written.write, commit.record);
            preempt!();
        }
        Ok(())
    }

    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error> {
        let newest_at = |at| -> Result<Option<Timestamp>, Error> {
            Ok(match self.newest(key, at, May::Wait, &mut Vec::new())? {
                Poll::Ready(found) => found.map(Version::timestamp),
                Poll::Pending => None,
            })
        };
        // A version that is there is given up when its table is merged, and its overflow value with it.
        if newest_at(record.timestamp)? == Some(record.timestamp) {
            return Ok(Reapplied::default());
        }
        if newest_at(Timestamp(u64::MAX))? > Some(record.timestamp) {
            // It was given up before the checkpoint.
            return Ok(Reapplied { is_outdated: true, replaced: None });
        }
        self.put(key, write, record);
        Ok(Reapplied::default())
    }

    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        _ahead: u32,
        at: Timestamp,
    ) -> Box<dyn Steps> {
        let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        Box::new(LsmScan { tree: self, direction, lower, upper, at, has_ended: false })
    }

    fn limits(&self) -> Limits {
        let quarter = class_bytes(0) as usize / 4;
        Limits { key_bytes: quarter, value_bytes: quarter, node_bytes: self.options.table.block_bytes }
    }

    fn dirtied_bytes(&self) -> u64 {
        0
    }

    fn replay_from(&self) -> Option<LogRecord> {
        self.parts().memtables().filter_map(|table| table.first()).min()
    }

    fn before_cut(&self, may: May) -> Result<(), Error> {
        let turn = match (self.turns.try_take(), may) {
            (Some(turn), _) => turn,
            (None, May::Wait) => self.turns.take(),
            // A flush that is under way may wait for this checkpoint. What is not flushed stays in the log.
            (None, May::NotWait) => return Ok(()),
        };
        if self.is_cleared.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A memtable that has hardly begun to fill is not worth a table. It stays in the log, but not for two
        // checkpoints.
        let first = self.parts().active.first();
        let is_old = first.is_some_and(|first| first.timestamp <= self.last_cut());
        self.note_cut();
        if is_old || may == May::Wait {
            self.freeze();
        }
        let is_hopeless = self.is_stuck.load(Ordering::Relaxed) && !self.shared.segments.owned.has_room();
        if is_hopeless && may == May::NotWait {
            let why = "there is no segment for a table, and the log keeps what would be in it".into();
            return Err(Error::Full { why });
        }
        let flushed = self.flush(&turn);
        self.is_stuck.store(matches!(flushed, Err(Error::Full { .. })), Ordering::Relaxed);
        flushed
    }

    fn debt(&self) -> f64 {
        let parts = self.parts();
        let of_memory = (parts.frozen.len() as f64 - 1.0) / (FROZEN_MAX - 1.0);
        of_memory.max(self.options.policy.debt(&parts.levels))
    }

    fn settle(
        &self,
        _snapshots: &Snapshots,
        _visible: Timestamp,
        _overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        self.sweep();
        Ok(())
    }

    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error> {
        let _turn = self.turns.take();
        let parts = self.parts().clone();
        self.manifest.pages()?.into_iter().for_each(&mut *page);
        let left = self.left().clone();
        parts.levels.tables().chain(&left).flat_map(|table| &table.pages).for_each(|number| page(*number));
        let mut census = Census { levels: parts.levels.0.len() as u32, ..Census::default() };
        for table in parts.levels.tables() {
            census.leaves += 1;
            census.used_bytes += table.summary.bytes;
            census.page_bytes += table.summary.bytes;
        }
        let mut merged = parts.merged(Direction::Forward, Bound::Unbounded)?;
        while let Some(versions) = next_key(&mut merged)? {
            census.records += versions.len() as u64;
            versions.iter().for_each(|own| record(&own.key, own.version, &own.value));
        }
        Ok(census)
    }

    fn clear(&self, free_overflow: &dyn Fn(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let turn = self.turns.take();
        self.is_cleared.store(true, Ordering::SeqCst);
        let in_memory: Vec<_> = {
            let mut parts = self.parts_mut();
            parts.replace(Memtable::none());
            parts.frozen.drain(..).collect()
        };
        for table in in_memory {
            let cursor = MemtableCursor::new(&table, Direction::Forward, Bound::Unbounded);
            free_all(Merged::new(vec![Box::new(cursor)], Direction::Forward), free_overflow)?;
        }
        loop {
            let table = self.parts().levels.tables().next().cloned();
            let Some(table) = table else { break };
            // The tree forgets the table before its values' pages may be others'.
            let references = overflow_values(&table)?;
            self.install(&turn, Vec::new(), vec![table], Target::NewRun(0), false)?;
            references.iter().try_for_each(|reference| free_overflow(reference))?;
        }
        self.sweep();
        Ok(())
    }

    fn destroy(&self) -> Result<(), Error> {
        self.sweep();
        self.manifest.destroy()
    }
}

/// The references of the overflow values of a table.
fn overflow_values(table: &Arc<Table>) -> Result<Vec<Vec<u8>>, Error> {
    let mut references = Vec::new();
    let mut cursor = RunCursor::new(vec![Arc::clone(table)], Direction::Forward, Bound::Unbounded)?;
    while let Some((_, version, value)) = cursor.get() {
        if version.is_overflow() {
            references.push(value.to_vec());
        }
        cursor.advance()?;
    }
    Ok(references)
}

fn free_all(mut merged: Merged, free_overflow: &dyn Fn(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    while let Some((_, version, value)) = merged.get() {
        if version.is_overflow() {
            free_overflow(value)?;
        }
        merged.advance()?;
    }
    Ok(())
}

/// A scan over memtables and tables.
struct LsmScan {
    tree: Arc<Lsm>,
    direction: Direction,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    at: Timestamp,
    has_ended: bool,
}

impl LsmScan {
    fn is_within(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => self.upper.as_deref().is_none_or(|upper| key < upper),
            Direction::Backward => key >= self.lower.as_slice(),
        }
    }

    /// The version of a key that the scan sees, of all of them in the scan's direction.
    fn seen(&self, versions: Vec<OwnVersion>) -> Option<OwnVersion> {
        let mut seen = versions.into_iter().filter(|own| own.version.timestamp() <= self.at);
        let newest = match self.direction {
            Direction::Forward => seen.next(),
            Direction::Backward => seen.next_back(),
        };
        newest.filter(|own| !own.version.is_tombstone())
    }
}

impl Steps for LsmScan {
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        piece.clear();
        if self.upper.as_ref().is_some_and(|upper| *upper <= self.lower) {
            self.has_ended = true;
        }
        if self.has_ended {
            return Ok(false);
        }
        let start = match (self.direction, &self.upper) {
            (Direction::Forward, _) => Bound::Included(self.lower.as_slice()),
            (Direction::Backward, Some(upper)) => Bound::Excluded(upper.as_slice()),
            (Direction::Backward, None) => Bound::Unbounded,
        };
        let parts = self.tree.parts().clone();
        let mut merged = parts.merged(self.direction, start)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut last = None;
        while bytes < STEP_BYTES {
            let Some(versions) = next_key(&mut merged)? else {
                self.has_ended = true;
                break;
            };
            let key = versions.first().map(|first| first.key.clone()).unwrap_or_default();
            if !self.is_within(&key) {
                self.has_ended = true;
                break;
            }
            if let Some(own) = self.seen(versions) {
                bytes += own.key.len() + own.value.len();
                found.push(own);
            }
            last = Some(key);
        }
        match (self.direction, last) {
            (Direction::Forward, Some(last)) => self.lower = [last.as_slice(), &[0]].concat(),
            (Direction::Backward, Some(last)) => self.upper = Some(last),
            _ => {}
        }
        if self.direction == Direction::Backward {
            found.reverse();
        }
        for own in &found {
            piece.push_by(
                |bytes| bytes.extend_from_slice(&own.key),
                |bytes| {
                    bytes.extend_from_slice(&own.version.bits().to_le_bytes());
                    bytes.extend_from_slice(&own.value);
                },
            );
        }
        Ok(!piece.is_empty())
    }
}
