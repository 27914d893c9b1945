//! The implementation of `Index` by LSM-trees.

use std::ops::Bound;
use std::task::Poll;

use flashgrain_device::Nanos;
use flashgrain_settings::layout::Decision;

use super::cursor::RunCursor;
use super::levels::Target;
use super::merge::Output;
use super::reader::Reading;
use super::scan::LsmScan;
use super::table::{KEY_DIVISOR, Table, VALUE_DIVISOR};
use super::tree::Lsm;
use crate::Error;
use crate::buffered::{
    Cursor, Held, KeyVersions, Memtable, MemtableCursor, Retention, StagedMemtables, made_before,
};
use crate::header::PageId;
use crate::index::{
    Census, Clearing, Commit, Direction, Found, Index, Limits, Loads, LsmStats, May, Newest, Prior,
    Reapplied, RemovesRanges, SeeVersion, Snapshots, Staged, Steps, TreeOperations, Version, Write, Written,
    behind,
};
use crate::log::{LogRecord, Timestamp};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::task::yield_now;

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
        self.counters.operations.look_up();
        let newest = found.map(Version::timestamp);
        if found.is_some_and(Version::is_operands) {
            into.truncate(start);
            let found = self.read_merged(key, at.unwrap_or(Timestamp(u64::MAX)), into)?;
            return Ok(Poll::Ready(found));
        }
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
        self.counters.operations.writes(writes.len());
        for written in writes {
            self.put(written.key, written.write, commit.record);
            preempt!();
        }
        Ok(())
    }

    fn stage<'a>(&'a self, writes: &[Written<'_>]) -> Option<Box<dyn Staged + 'a>> {
        let bytes = (self.options.memtable_bytes, self.options.record_bytes_max());
        let memtables = StagedMemtables::of(writes, &self.shared.pool, bytes)?;
        Some(Box::new(StagedWrites { tree: self, memtables, count: writes.len() }))
    }

    fn takes_operands(&self) -> bool {
        true
    }

    fn removes_ranges(&self) -> Option<&dyn RemovesRanges> {
        Some(self)
    }

    fn loads(&self) -> Option<&dyn Loads> {
        Some(self)
    }

    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error> {
        let newest_at = |at| {
            let found = self.newest(key, at, May::Wait, &mut Vec::new())?;
            Ok(if let Poll::Ready(found) = found { found.map(Version::timestamp) } else { None })
        };
        let looked = self.trouble.replayed(record, || made_before(record, newest_at))?;
        if let Some(reapplied) = looked {
            return Ok(reapplied);
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
        self.counters.operations.scan();
        let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        Box::new(LsmScan::new(self, direction, (lower, upper), at))
    }

    fn scan_unmerged(self: Arc<Self>, _ahead: u32, at: Timestamp) -> Box<dyn Steps> {
        Box::new(LsmScan::new(self, Direction::Forward, (Vec::new(), None), at).unmerged())
    }

    fn limits(&self) -> Limits {
        let block_bytes = self.options.block_bytes();
        let (key_bytes, value_bytes) = (block_bytes / KEY_DIVISOR, block_bytes / VALUE_DIVISOR);
        Limits { key_bytes, value_bytes, node_bytes: block_bytes }
    }

    fn dirtied_bytes(&self) -> u64 {
        0
    }

    fn admit(&self) -> Result<(), Error> {
        self.trouble.check(self.id).inspect_err(|_| self.send_flush())?;
        self.job_trouble.check(self.id).inspect_err(|_| self.send_jobs())
    }

    fn replay_from(&self) -> Option<LogRecord> {
        let parts = self.parts();
        if !parts.memtables.frozen.is_empty() && planted!(FrozenMemtableNotReplayed) {
            return parts.memtables.active.first();
        }
        parts.memtables.first().into_iter().chain(self.trouble.lacks_from()).min()
    }

    fn before_cut(&self, may: May) -> Result<(), Error> {
        let permits = match (self.flushes.try_acquire_all(), may) {
            (Some(permits), _) => permits,
            (None, May::Wait) => self.flushes.acquire_all(),
            // A flush that is under way may wait for this checkpoint. Records that are not flushed stay in
            // the log.
            (None, May::NotWait) => return Ok(()),
        };
        if self.is_cleared.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A memtable that has hardly begun to fill is not worth a table. It stays in the log, but not for two
        // checkpoints.
        let first = self.parts().memtables.active.first();
        let is_old = self.cuts.pass(first, &self.shared);
        if is_old || may == May::Wait {
            self.freeze();
        }
        let is_hopeless = self.is_stuck.load(Ordering::Relaxed) && !self.shared.segments.owned.has_room();
        if is_hopeless && may == May::NotWait {
            let why = "there is no segment for a table, and the log keeps its records".into();
            return Err(Error::Full { why });
        }
        let flushed = self.flush(&permits);
        let is_stuck = matches!(flushed, Err(Error::Full { .. }));
        let was_stuck = self.is_stuck.swap(is_stuck, Ordering::Relaxed);
        if was_stuck || is_stuck || self.shared.segments.owned.lacks_room() {
            // Merges that found no room may have some by now.
            self.send_jobs();
        }
        flushed
    }

    fn make_room(&self) {
        let Some(own) = self.this.upgrade() else { return };
        if self.is_making_room.swap(true, Ordering::Relaxed) {
            return;
        }
        let at_work = self.shared.segments.owned.at_work();
        self.shared.executor.spawn(move || {
            own.win_room();
            own.is_making_room.store(false, Ordering::Relaxed);
            drop(at_work);
        });
    }

    fn withdraw(&self, end_bytes: u64) -> Result<(), Error> {
        self.this.upgrade().map_or(Ok(()), |own| Self::withdraw(&own, end_bytes))
    }

    fn stop(&self) -> Result<(), Error> {
        if self.is_cleared.load(Ordering::SeqCst) {
            // A dropped tree that is being freed.
            return Ok(());
        }
        let permits = self.flushes.acquire_all();
        if self.is_cleared.load(Ordering::SeqCst) || planted!(MergesGoOnWhenClosed) {
            return Ok(());
        }
        self.freeze();
        let flushed = self.flush(&permits);
        // Segments that merges give up from now on would not be freed before the last checkpoint.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.jobs.wait_for_rest();
        self.sweep();
        // Tables that cannot be given up now are given up at the next opening.
        let _tried = self.withdraw_orphans();
        let _tried = self.leave_to_next_opening();
        // Counts that cannot be kept are no reason not to close.
        let _tried = self.keep_counts();
        flushed
    }

    fn in_memory_bytes(&self) -> u64 {
        self.parts().memtables.used_bytes()
    }

    fn debt(&self) -> f64 {
        if self.trouble.is_there() || self.job_trouble.is_there() {
            // A tree that takes no writes slows no others down.
            return 0.0;
        }
        let parts = self.parts();
        let of_memory = parts.memtables.debt(self.flush_batch.wanted());
        let of_merges = self.options.policy.debt(&parts.levels).fraction;
        of_memory.max(self.controller.left_to_others(of_merges))
    }

    fn pace(&self, bytes: u64, now: &dyn Fn() -> Nanos) -> Nanos {
        self.controller.pace(bytes, now)
    }

    fn settle(
        &self,
        _snapshots: &Snapshots,
        _visible: Timestamp,
        _overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        self.withdraw_orphans()?;
        self.sweep();
        Ok(())
    }

    fn decisions(&self) -> Vec<Decision> {
        self.explained()
    }

    fn operations(&self) -> TreeOperations {
        self.counters.operations.all()
    }

    fn lsm_stats(&self) -> Option<LsmStats> {
        let parts = self.parts().clone();
        let debt = self.options.policy.debt(&parts.levels);
        let memtables = parts.memtables.filled() as usize;
        Some(self.counters.stats(memtables, &parts.levels, debt))
    }

    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error> {
        self.trouble.check_whole(self.id)?;
        // No table comes or goes meanwhile.
        let _permits = self.changes.acquire_all();
        let parts = self.parts().clone();
        self.manifest.pages()?.into_iter().for_each(&mut *page);
        let left = self.left().clone();
        let tables = parts.levels.tables().chain(parts.levels.loaded_tables()).chain(&left);
        tables.flat_map(|table| &table.pages).for_each(|number| page(*number));
        let mut census = Census { levels: parts.levels.depth() as u32, ..Census::default() };
        for table in parts.levels.tables() {
            census.leaves += 1;
            table.range_tombstones()?;
            census.used_bytes += table.summary.bytes;
            census.page_bytes += table.summary.bytes;
        }
        let reader = self.shared.reader(Reading::Once);
        let mut merged = parts.all(&reader)?;
        let mut versions = KeyVersions::default();
        while merged.next_key(&mut versions)? {
            census.records += versions.all.len() as u64;
            versions.all.iter().for_each(|held| record(versions.key(), held.version, versions.value(held)));
        }
        Ok(census)
    }

    fn clear(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        // From then on no other task writes the references in memory into tables.
        (clearing.go_on)()?;
        self.is_cleared.store(true, Ordering::SeqCst);
        // From now on no task flushes or compacts, or has tables that leave the levels: nothing would give
        // their segments back once the tree is forgotten.
        let _flushes = self.flushes.acquire_all();
        self.jobs.wait_for_rest();
        self.update_reservation();
        let in_memory: Vec<_> = {
            let mut parts = self.parts_mut();
            parts.memtables.freeze(Memtable::none());
            parts.memtables.frozen.drain(..).collect()
        };
        let mut references = Vec::new();
        for table in in_memory.into_iter().filter(|_| !planted!(DroppedMemtableLeaks)) {
            let cursor = MemtableCursor::new(&table, Direction::Forward, Bound::Unbounded);
            references.extend(overflow_values(Box::new(cursor))?);
        }
        clearing.free_all(references)?;
        let emptied = self.clear_levels(clearing).and_then(|()| self.withdraw_loads());
        // Statistics hold tables for a moment, without waiting meanwhile. No table leaves the levels now.
        let mut left = self.left().len();
        while left > 0 {
            self.sweep();
            yield_now();
            let still_left = self.left().len();
            debug_assert!(still_left <= left, "{still_left} tables are left of {left}");
            left = still_left;
        }
        emptied
    }

    fn destroy(&self) -> Result<(), Error> {
        debug_assert!(self.left().is_empty(), "tables have segments that nothing gives back after this");
        self.manifest.destroy()
    }
}

impl Lsm {
    /// Takes the tables out of the levels, one after the other, and frees the overflow values of each.
    fn clear_levels(&self, clearing: &Clearing<'_>) -> Result<(), Error> {
        loop {
            (clearing.go_on)()?;
            let table = self.parts().levels.tables().next().cloned();
            let Some(table) = table else { return Ok(()) };
            // The tree forgets the table before its values' pages may be others'.
            let reader = self.shared.reader(Reading::Once);
            let run = vec![Arc::clone(&table)];
            let cursor = RunCursor::new(run, &reader, Direction::Forward, Bound::Unbounded)?;
            let references = overflow_values(Box::new(cursor))?;
            self.install(Output::default(), vec![table], Target::NewRun(0), &[])?;
            clearing.free_all(references)?;
        }
    }
}

/// Writes of a commit that are in memtables of their own.
struct StagedWrites<'a> {
    tree: &'a Lsm,
    memtables: StagedMemtables,
    count: usize,
}

impl Staged for StagedWrites<'_> {
    fn apply(self: Box<Self>, record: LogRecord) {
        let Self { tree, memtables, count } = *self;
        tree.counters.operations.writes(count);
        memtables.stamp(record);
        memtables.freeze(&mut tree.parts_mut().memtables);
        tree.dead.all_written();
        tree.update_reservation();
        tree.send_flush();
    }
}

impl RemovesRanges for Lsm {
    fn remove_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) {
        let upper = if planted!(RangeEndRemoved) { &behind(upper) } else { upper };
        let horizon = self.shared.horizon();
        let retention = horizon.as_deref().map(Retention::new);
        self.change(|memtable| memtable.remove_range(lower, upper, record, retention.as_ref()));
    }

    fn reapply_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) -> Result<(), Error> {
        // No other commit is under way during a removal of a range. So tables with a commit that is not older
        // already include this one, and in memory it would hide newer records in them.
        let is_there = |table: &Arc<Table>| table.summary.newest >= record.timestamp.0;
        let mut parts = self.parts().clone();
        if !parts.levels.tables().any(is_there) {
            self.remove_range(lower, upper, record);
            return Ok(());
        }
        // Versions that were replayed before, and were left out of the tables with it, are in memory, unless
        // the replay has flushed some.
        if self.counters.flushes.load(Ordering::Relaxed) == 0 || planted!(ReplayedRangeLeftInTables) {
            parts.levels = Arc::default();
        }
        let at = Timestamp::MAX;
        let hidden = parts.hidden(lower, Some(upper), at)?;
        let reader = self.shared.reader(Reading::Once);
        let mut merged =
            parts.merged(&reader, Direction::Forward, Bound::Included(lower), (at, hidden.as_ref()))?;
        let mut versions = KeyVersions::default();
        while merged.next_key(&mut versions)? && versions.key() < upper {
            let is_there = |newest: &Held| {
                let is_removed =
                    hidden.as_ref().is_some_and(|hidden| hidden.has(versions.key(), newest.version));
                !newest.version.is_tombstone() && !is_removed
            };
            if versions.all.first().is_some_and(is_there) {
                // It takes memory, and cursors may hold all of it as their shares.
                merged.let_go();
                self.reapply(versions.key(), Write::Remove, record)?;
            }
        }
        Ok(())
    }
}

/// The references of the overflow values of a source.
fn overflow_values(mut cursor: Box<dyn Cursor>) -> Result<Vec<Vec<u8>>, Error> {
    let mut references = Vec::new();
    while let Some((_, version, value)) = cursor.get() {
        if version.is_overflow() {
            references.push(value.to_vec());
        }
        cursor.advance()?;
    }
    Ok(references)
}
