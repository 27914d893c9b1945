//! Loads: records in key order become tables at once, at the level where they belong.
//!
//! 1. *Written*: the records go into tables as they come. Their versions have a timestamp that no record has,
//!    [`LOADED`], in place of that of the load's commit, which is not known yet.
//! 2. *Prepared*: the manifest has the tables, apart from the levels. They have no readers. If the commit
//!    never comes, they are given up, after a crash too.
//! 3. *Committed*: no other commit is under way, and the memtables are empty. So the load is newer than all
//!    other records. The tables come into the lowest level that is large enough and has no keys between
//!    theirs, neither itself nor above it. [`Table::version`] gives the versions the commit's timestamp.

use std::ops::Bound;

use super::levels::{Edit, Levels, Run, Target, bytes_of, overlapping};
use super::merge::recorded;
use super::policy::Busy;
use super::table::{LOADED, Made, TableWriter};
use super::tree::{Lsm, Parts};
use crate::Error;
use crate::buffered::{Cursor as _, KeyInterval, MemtableCursor, RangeTombstones};
use crate::index::{Direction, Load, LoadId, Loads, Version, is_eager};
use crate::log::{LogRecord, Timestamp};
use crate::sync::Arc;
use crate::task::yield_now;

/// Records that a load writes before others may go on.
const RECORDS_PER_PAUSE: u64 = 64;

/// A load that is not committed.
struct LsmLoad<'a> {
    tree: &'a Lsm,
    /// The first key after the load's own that the tree had when the load began.
    until: Option<Vec<u8>>,
    writer: TableWriter<'a>,
    made: Vec<Made>,
    records: u64,
    prepared: Option<LoadId>,
}

impl Loads for Lsm {
    fn load_from<'a>(&'a self, first: &[u8]) -> Option<Box<dyn Load + 'a>> {
        let until = match is_eager() {
            true => None,
            false => first_behind(&self.parts().clone(), first)?,
        };
        let (made, records, prepared) = (Vec::new(), 0, None);
        Some(Box::new(LsmLoad { tree: self, until, writer: self.load_writer(), made, records, prepared }))
    }

    fn commit_again(&self, load: LoadId, record: LogRecord) -> Result<(), Error> {
        // A load that was committed before has left the levels since, if it is listed.
        let is_prepared = |run: &Run| run.iter().all(|table| table.summary.newest == LOADED.0);
        if !self.parts().levels.load(load).is_some_and(is_prepared) {
            return Ok(());
        }
        self.flush_all()?;
        self.commit_load(load, record.timestamp)
    }
}

/// The first key of a tree that is not before this one, or `None` in it if there is none; `None` if a table
/// has keys on both sides.
fn first_behind(parts: &Parts, key: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut first: Option<Vec<u8>> = None;
    let mut note = |key: &[u8]| {
        if first.as_deref().is_none_or(|first| key < first) {
            first = Some(key.to_vec());
        }
    };
    for memtable in parts.memtables.iter() {
        let cursor = MemtableCursor::new(memtable, Direction::Forward, Bound::Included(key));
        cursor.get().into_iter().for_each(|(key, ..)| note(key));
    }
    for run in parts.levels.runs() {
        let table = run.get(run.partition_point(|table| table.summary.last_key.as_slice() < key));
        let Some(table) = table else { continue };
        if table.covers(key) {
            return None;
        }
        note(&table.summary.first_key);
    }
    Some(first)
}

impl Lsm {
    fn load_writer(&self) -> TableWriter<'_> {
        TableWriter::new(&self.shared.segments.owned, self.options.table_of(1, true))
    }

    /// Flushes all memtables.
    fn flush_all(&self) -> Result<(), Error> {
        let permits = self.flushes.acquire_all();
        self.freeze();
        self.flush(&permits)
    }

    /// Where tables of `bytes` bytes belong that are newer than all others.
    fn place(&self, levels: &Levels, busy: &Busy, range: KeyInterval<'_>, bytes: u64) -> Target {
        let is_taken = |level: usize| {
            levels.level(level).iter().any(|run| !overlapping(run, range).is_empty())
                || busy.writes(level, range)
        };
        let lowest = self.options.policy.level_of_load(levels, bytes);
        let free = (0..=lowest).take_while(|level| !is_taken(*level) || planted!(LoadPlacedBelowNewer));
        match free.last() {
            Some(level @ 1..) => Target::OldestRun(level),
            _ => Target::NewRun(0),
        }
    }

    /// Makes the prepared tables the writes of a commit. No other commit is under way.
    fn commit_load(&self, load: LoadId, at: Timestamp) -> Result<(), Error> {
        let _permits = self.changes.acquire_all();
        let before = Arc::clone(&self.parts().levels);
        let Some(run) = before.load(load) else { return Ok(()) };
        let added: Run = run.iter().map(|table| Arc::new(table.loaded_at(at))).collect();
        let Some(range) = KeyInterval::over(&added) else { return Ok(()) };
        let bytes = bytes_of(&added);
        let (to, ticket) = self.jobs.begin_load(range, |busy| self.place(&before, busy, range, bytes));
        let running = self.jobs.running(ticket);
        let edit = Edit { removed: Vec::new(), added: added.clone(), to };
        let levels = self.manifest.store(&[], |_| before.without_load(load).with(&edit))?;
        self.controller.note(self.options.policy.debt(&levels));
        self.parts_mut().levels = Arc::new(levels);
        self.dead.all_written();
        self.update_reservation();
        drop(running);
        self.counters.loaded(to.level(), bytes);
        self.send_jobs();
        Ok(())
    }

    fn withdraw_load(&self, load: LoadId) -> Result<(), Error> {
        {
            let _permits = self.changes.acquire_all();
            let before = Arc::clone(&self.parts().levels);
            let Some(run) = before.load(load) else { return Ok(()) };
            let levels = self.manifest.store(&[], |_| before.without_load(load))?;
            self.parts_mut().levels = Arc::new(levels);
            self.left().extend(run.iter().cloned());
        }
        self.sweep();
        Ok(())
    }

    /// Gives up all loads that are prepared: they will not be committed.
    pub(super) fn withdraw_loads(&self) -> Result<(), Error> {
        let prepared: Vec<LoadId> = self.parts().levels.loads().collect();
        prepared.into_iter().try_for_each(|load| self.withdraw_load(load))
    }

    /// Gives up the loads that an earlier opening prepared and did not commit. The log was replayed.
    pub(super) fn withdraw_orphans(&self) -> Result<(), Error> {
        let orphans = std::mem::take(&mut *self.orphans());
        orphans.into_iter().try_for_each(|load| self.withdraw_load(load))
    }
}

impl Load for LsmLoad<'_> {
    fn takes(&self, key: &[u8]) -> bool {
        self.until.as_deref().is_none_or(|until| key < until)
    }

    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if self.writer.is_full(self.tree.options.table_bytes) {
            // The remaining space is reserved for commits and merges.
            if self.tree.shared.segments.owned.lacks_room() {
                return Err(Error::Full { why: "the rest is needed for commits and merges".into() });
            }
            let full = std::mem::replace(&mut self.writer, self.tree.load_writer());
            self.made.extend(full.finish(&RangeTombstones::default())?);
        }
        self.writer.push(key, Version::put(LOADED), value)?;
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_PER_PAUSE) {
            yield_now();
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<LoadId, Error> {
        let last = std::mem::replace(&mut self.writer, self.tree.load_writer());
        self.made.extend(last.finish(&RangeTombstones::default())?);
        let made = std::mem::take(&mut self.made);
        let _permits = self.tree.changes.acquire_all();
        let before = Arc::clone(&self.tree.parts().levels);
        let levels = self.tree.manifest.store(&made, |numbers| before.with_load(recorded(&made, numbers)))?;
        let load = levels.loads().last().unwrap_or(LoadId(0));
        self.tree.parts_mut().levels = Arc::new(levels);
        self.prepared = Some(load);
        Ok(load)
    }

    fn make_way(&self) -> Result<(), Error> {
        self.tree.flush_all()
    }

    fn commit(&mut self, record: LogRecord) -> Result<(), Error> {
        let Some(load) = self.prepared else { return Ok(()) };
        self.tree.commit_load(load, record.timestamp)?;
        self.tree.counters.count_load();
        Ok(())
    }

    fn withdraw(&mut self) -> Result<(), Error> {
        match self.prepared.take() {
            Some(load) => self.tree.withdraw_load(load),
            None => Ok(()),
        }
    }
}
