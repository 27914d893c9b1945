//! Flushes and compactions.

use std::ops::Bound;
use std::panic::resume_unwind;

use flashgrain_settings::lsm_usual::TABLES_PER_PART;

use super::below::Below;
use super::cursor::RunCursor;
use super::hidden;
use super::levels::{Edit, Levels, Run, Target, bytes_of, overlapping};
use super::policy::{ForRoom, Job, MergeRoom, Ticket};
use super::reader::Reading;
use super::table::{Made, Table, TableOptions, TableWriter};
use super::tree::Lsm;
use crate::Error;
use crate::buffered::{
    Cursor, Folding, Fragment, KeyVersions, Memtable, MemtableCursor, Merged, Permits, RangeTombstones,
    Retention,
};
use crate::header::PageId;
use crate::index::{Direction, is_eager};
use crate::log::Timestamp;
use crate::segment::Purpose;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::task::yield_now;
use crate::worker::spend_merged;

/// Keys that a merge writes before others may go on.
const KEYS_PER_PAUSE: usize = 64;

/// An eager part of a compaction has at least this number of bytes to read.
const EAGER_PART_BYTES: u64 = 1 << 10;

/// The output of a merge: tables, and references of the overflow values that it left out.
#[derive(Default)]
pub(super) struct Output {
    made: Vec<Made>,
    gone: Vec<Vec<u8>>,
    /// Versions that were merged, those that it left out included.
    versions: u64,
}

/// How merged versions are written.
struct Making<'a> {
    /// The removals of ranges that come with them.
    ranges: &'a RangeTombstones,
    purpose: Purpose,
    /// The runs with versions that may be older.
    older: &'a [Run],
    /// Nothing after this key is merged.
    to: Option<&'a [u8]>,
    table: TableOptions,
    /// The run below the new tables, where these are to overlap little of it.
    below: &'a Run,
    /// Once this is false, the merge ends with an error.
    goes_on: &'a dyn Fn() -> bool,
}

/// The tables around the inputs of a merge, which it does not read.
struct Beside {
    /// The runs with versions that may be older.
    older: Vec<Run>,
    /// See [`Making::below`].
    below: Run,
}

/// Keys of a part of a merge: after the first, up to the second.
type KeyRange = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Lsm {
    /// Flushes in the background.
    pub(super) fn send_flush(&self) {
        if self.is_flush_sent.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        self.shared.executor.spawn(move || {
            let permits = own.flushes.acquire_all();
            own.is_flush_sent.store(false, Ordering::SeqCst);
            if own.is_cleared.load(Ordering::SeqCst) {
                return;
            }
            if !own.has_room_to_flush(1) {
                own.send_jobs();
                // The flush finds out whether there is room.
                own.jobs.wait();
            }
            // Memtables that could not be written stay in memory and in the log, and are tried again.
            let _tried = own.flush_due(&permits);
        });
    }

    /// Runs the due jobs in the background.
    pub(super) fn send_jobs(&self) {
        let _looking = self.jobs.look();
        if !self.runs_jobs() {
            return;
        }
        let levels = || Arc::clone(&self.parts().levels);
        hidden::prepare(&levels());
        while self.runs_jobs()
            && let Some((job, ticket, levels)) = self.begin_job(levels)
        {
            let Some(own) = self.this.upgrade() else { return };
            let at_work = self.shared.segments.owned.at_work();
            self.shared.executor.spawn(move || {
                let running = own.jobs.running(ticket);
                // Until its tables are swept.
                let _looking = own.jobs.look();
                let done = own.run(job, levels);
                own.job_trouble.note(&done);
                drop(running);
                own.sweep();
                drop(at_work);
                // A job that found no room, or could not read, is tried again after the next flush.
                if done.is_ok() {
                    own.send_jobs();
                }
            });
        }
    }

    /// Whether there is little room for others.
    fn lacks_room(&self) -> bool {
        let is_short = self.is_stuck.load(Ordering::Relaxed) || self.is_making_room.load(Ordering::Relaxed);
        is_short || self.shared.segments.owned.lacks_room()
    }

    fn begin_job(&self, levels: impl FnOnce() -> Arc<Levels>) -> Option<(Job, Ticket, Arc<Levels>)> {
        let (owned, lacks_room) = (&self.shared.segments.owned, self.lacks_room());
        let room = || MergeRoom { bytes: owned.room_to_come(), segment_bytes: self.options.segment_bytes };
        let wanted = ForRoom {
            small: lacks_room && !self.is_unified.load(Ordering::Relaxed),
            tombstones: self.is_making_room.load(Ordering::Relaxed),
            room: (lacks_room && !owned.may_grow()).then(room),
        };
        self.jobs.begin(&self.options, (self.shared.horizon().as_deref(), wanted), levels)
    }

    /// Flushes, as removals in memory hide nothing on the device yet, and has jobs run until none frees any
    /// room.
    pub(super) fn win_room(&self) {
        {
            let permits = self.flushes.acquire_all();
            if !self.runs_jobs() {
                return;
            }
            self.freeze();
            let flushed = self.flush(&permits);
            self.is_stuck.store(matches!(flushed, Err(Error::Full { .. })), Ordering::Relaxed);
        }
        let _looking = self.jobs.look();
        while self.runs_jobs() {
            let before = Arc::clone(&self.parts().levels);
            self.send_jobs();
            self.jobs.wait();
            let has_changed = !Arc::ptr_eq(&before, &self.parts().levels);
            // The tables of the levels before were read until now.
            drop(before);
            self.sweep();
            // One job leads to the next.
            if !has_changed {
                return;
            }
        }
    }

    /// Whether jobs may begin, and go on.
    pub(super) fn runs_jobs(&self) -> bool {
        !self.is_cleared.load(Ordering::SeqCst) && !self.is_stopped.load(Ordering::SeqCst)
    }

    /// Whether there would be room for the compaction that follows on a flush: without that there would never
    /// be any again.
    fn has_room_to_flush(&self, memtables: usize) -> bool {
        let levels = Arc::clone(&self.parts().levels);
        let newest_bytes = levels.bytes(0);
        let bytes = newest_bytes + memtables as u64 * self.options.memtable_bytes;
        newest_bytes == 0 || self.shared.segments.owned.will_have_room(bytes)
    }

    /// Writes the frozen memtables, the oldest first.
    pub(super) fn flush(&self, permits: &Permits<'_>) -> Result<(), Error> {
        self.flush_while(permits, || true)
    }

    /// The same as long as there are as many as a flush merges.
    fn flush_due(&self, permits: &Permits<'_>) -> Result<(), Error> {
        self.flush_while(permits, || self.is_flush_due())
    }

    fn flush_while(&self, permits: &Permits<'_>, goes_on: impl Fn() -> bool) -> Result<(), Error> {
        self.trouble.check_whole(self.id)?;
        let flushed = self.flush_frozen(permits, goes_on);
        self.trouble.note(&flushed);
        flushed
    }

    fn flush_frozen(&self, _permits: &Permits<'_>, goes_on: impl Fn() -> bool) -> Result<(), Error> {
        while goes_on() {
            let parts = self.current();
            let frozen = parts.memtables.frozen.as_slice();
            // The newest first, as readers look into them.
            let oldest = match frozen {
                [newest, _, ..] if planted!(NewestMemtableFlushedFirst) => std::slice::from_ref(newest),
                _ => &frozen[frozen.len().saturating_sub(self.flush_batch.wanted())..],
            };
            if oldest.is_empty() {
                return Ok(());
            }
            if !self.has_room_to_flush(oldest.len()) {
                self.send_jobs();
                return Err(Error::Full { why: "the rest is needed to merge tables".into() });
            }
            if planted!(MemtableForgottenEarly) {
                self.parts_mut().memtables.frozen.pop();
            }
            let all =
                |memtable| Box::new(MemtableCursor::new(memtable, Direction::Forward, Bound::Unbounded)) as _;
            let merged = Merged::new(oldest.iter().map(all).collect(), Direction::Forward);
            let mut ranges = RangeTombstones::default();
            oldest.iter().for_each(|memtable| ranges.extend(&memtable.range_tombstones()));
            let older: Vec<Run> = parts.levels.runs().cloned().collect();
            let making = Making {
                ranges: &ranges,
                purpose: Purpose::Flush,
                older: &older,
                to: None,
                table: self.options.table_of(0, false),
                below: &Run::new(),
                goes_on: &|| true,
            };
            let output = self.merge(merged, &making)?;
            self.counters.flushes.fetch_add(oldest.len() as u64, Ordering::Relaxed);
            let kept = output.made.iter().map(|made| made.summary.records).sum();
            self.flush_batch.note(oldest.len(), (output.versions, kept));
            self.is_unified.store(false, Ordering::Relaxed);
            self.counters.wrote(0, 0, written_bytes(&output.made));
            self.install(output, Vec::new(), Target::NewRun(0), oldest)?;
            self.send_jobs();
        }
        Ok(())
    }

    /// Runs a job that was picked with these levels.
    pub(super) fn run(self: &Arc<Self>, job: Job, levels: Arc<Levels>) -> Result<(), Error> {
        if !self.runs_jobs() {
            return Ok(());
        }
        if job.moves {
            return self.move_tables(&job);
        }
        if job.drops {
            let tables: Vec<_> = job.tables().cloned().collect();
            self.counters.dropped_tables.fetch_add(tables.len() as u64, Ordering::Relaxed);
            return self.install(Output::default(), tables, job.to, &[]);
        }
        let removed: Vec<Arc<Table>> = job.tables().cloned().collect();
        let is_input = |table: &Arc<Table>| removed.iter().any(|other| Arc::ptr_eq(table, other));
        // Tables that follow the first input in the order of search, and are no inputs, may be older than
        // some input. Other jobs only bring such versions further down meanwhile.
        let behind = levels.runs().skip_while(|run| !run.iter().any(is_input));
        let older: Vec<Run> =
            behind.map(|run| run.iter().filter(|table| !is_input(table)).cloned().collect()).collect();
        let level = job.to.level();
        let table = self.options.table_of(level, level + 1 >= levels.depth());
        let below = self.options.policy_options.run_below(&levels, level);
        drop(levels);
        let beside = Beside { older, below };
        let output = self.merge_in_parts(job.inputs().cloned().collect(), beside, table)?;
        if job.from == level && removed.len() > 1 && output.made.len() >= removed.len() {
            // The next one would win nothing either, until the next flush.
            self.is_unified.store(true, Ordering::Relaxed);
        }
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
        self.counters.wrote(job.to.level(), bytes_of(job.tables()), written_bytes(&output.made));
        self.install(output, removed, job.to, &[])
    }

    /// Merges runs of tables, several ranges of keys at a time.
    fn merge_in_parts(
        self: &Arc<Self>,
        inputs: Vec<Run>,
        beside: Beside,
        table: TableOptions,
    ) -> Result<Output, Error> {
        let ranges = self.ranges(&inputs);
        let (inputs, beside) = (Arc::new(inputs), Arc::new(beside));
        let part = |range: KeyRange| {
            let (own, inputs, beside) = (Arc::clone(self), Arc::clone(&inputs), Arc::clone(&beside));
            self.shared.executor.run_for(move || own.merge_range(&inputs, &beside, &range, table))
        };
        let parts: Vec<_> = ranges.into_iter().map(part).collect();
        // All of them end before any error is returned.
        let outputs: Vec<Result<Output, Error>> =
            parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect();
        let mut all = Output::default();
        for output in outputs {
            let Output { made, gone, versions } = output?;
            all.made.extend(made);
            all.gone.extend(gone);
            all.versions += versions;
        }
        Ok(all)
    }

    /// Number of parts that run concurrently in a merge of `bytes` bytes.
    pub(super) fn parts_of(&self, bytes: u64) -> u64 {
        let least_bytes =
            if is_eager() { EAGER_PART_BYTES } else { TABLES_PER_PART * self.options.table_bytes };
        (bytes / least_bytes.max(1)).clamp(1, self.options.parts.into())
    }

    /// Ranges of keys of about the same bytes. Their borders are those of tables.
    fn ranges(&self, inputs: &[Run]) -> Vec<KeyRange> {
        let mut ends: Vec<(&[u8], u64)> = inputs
            .iter()
            .flatten()
            .map(|table| (table.summary.last_key.as_slice(), table.summary.bytes))
            .collect();
        ends.sort_unstable();
        let bytes: u64 = ends.iter().map(|(_, bytes)| bytes).sum();
        // The last table of each part takes a segment, however small it is.
        let parts = if self.lacks_room() { 1 } else { self.parts_of(bytes) };
        let each = bytes / parts;
        let (mut ranges, mut from, mut sum) = (Vec::new(), None, 0);
        for (last_key, bytes) in ends {
            sum += bytes;
            if sum >= each && from.as_deref() != Some(last_key) {
                ranges.push((from.replace(last_key.to_vec()), Some(last_key.to_vec())));
                sum = 0;
            }
        }
        match ranges.last_mut() {
            // Nothing follows the last table's end.
            Some(last) if sum == 0 => last.1 = None,
            _ => ranges.push((from, None)),
        }
        ranges
    }

    fn merge_range(
        &self,
        inputs: &[Run],
        Beside { older, below }: &Beside,
        range: &KeyRange,
        table: TableOptions,
    ) -> Result<Output, Error> {
        let (from, to) = range;
        let start = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let reader = self.shared.reader(Reading::Once);
        let sources = inputs.iter().map(|run| {
            let cursor = RunCursor::new(run.clone(), &reader, Direction::Forward, start)?;
            Ok(Box::new(cursor) as Box<dyn Cursor>)
        });
        let merged = Merged::new(sources.collect::<Result<_, Error>>()?, Direction::Forward);
        let mut ranges = RangeTombstones::default();
        for table in inputs.iter().flatten().filter(|table| table.summary.range_tombstones > 0) {
            ranges.extend(&table.range_tombstones()?.within(from.as_deref(), to.as_deref()));
        }
        let goes_on = || self.runs_jobs();
        let purpose = Purpose::Merge;
        let making =
            Making { ranges: &ranges, purpose, older, to: to.as_deref(), table, below, goes_on: &goes_on };
        self.merge(merged, &making)
    }

    /// Writes the merged records as tables, without the versions that no reader will see.
    fn merge(&self, mut merged: Merged, making: &Making<'_>) -> Result<Output, Error> {
        let Making { ranges, purpose, older, to, table, below, goes_on } = *making;
        let (mut output, mut keys, mut unspent_bytes) = (Output::default(), 0_usize, 0);
        let horizon = self.shared.horizon();
        let retention = horizon.as_deref().map(Retention::new);
        // The records that they remove may go in any case. Each range is in the table with the key before its
        // cut.
        let mut left = ranges.clone();
        if let Some(retention) = &retention {
            left.retain(|range| needed(retention, range, older));
        }
        let new_writer = || match (TableWriter::new(&self.shared.segments.owned, table), purpose) {
            (writer, Purpose::Flush) => writer.of_flush(),
            (writer, Purpose::Merge) => writer,
        };
        let (mut writer, mut versions) = (new_writer(), KeyVersions::default());
        let mut below =
            Below::new(below.clone(), self.options.policy_options.overlap_bytes_max(self.lacks_room()));
        while merged.next_key(&mut versions)? {
            if to.is_some_and(|to| versions.key() > to || versions.key() == to && planted!(BorderKeyLost)) {
                break;
            }
            unspent_bytes += versions.bytes() as u64;
            output.versions += versions.all.len() as u64;
            preempt!();
            let again = horizon.as_deref().filter(|_| planted!(SnapshotsLookedAtAgain)).map(Retention::new);
            if let Some(retention) = again.as_ref().or(retention.as_ref()) {
                self.leave_out(retention, &mut versions, ranges, older, &mut output.gone);
            }
            // Between keys: the versions of one are in one table.
            let overlaps_much = below.ends_before(versions.key());
            if writer.records() == 0 {
                below.begin();
            } else if writer.is_full(self.options.table_bytes) || overlaps_much {
                below.begin();
                let own = left.take_up_to(Some(writer.last_key()));
                output.made.extend(std::mem::replace(&mut writer, new_writer()).finish(&own)?);
            }
            for held in &versions.all {
                if writer.is_full(self.options.table_bytes) && planted!(VersionsSplitOverTables) {
                    output.made.extend(
                        std::mem::replace(&mut writer, new_writer()).finish(&RangeTombstones::default())?,
                    );
                }
                writer.push(versions.key(), held.version, versions.value(held))?;
            }
            keys += 1;
            if keys.is_multiple_of(KEYS_PER_PAUSE) {
                spend_merged(std::mem::take(&mut unspent_bytes));
                yield_now();
                if !goes_on() {
                    return Err(Error::Closed);
                }
            }
        }
        spend_merged(unspent_bytes);
        output.made.extend(writer.finish(&left)?);
        Ok(output)
    }

    fn give_up(&self, gone: &[Vec<u8>]) {
        if let Some(horizon) = self.shared.horizon()
            && (gone.is_empty() || !planted!(LeftOutOverflowLeaks))
        {
            gone.iter().for_each(|reference| horizon.overflow_is_gone(reference));
        }
    }

    /// Makes new tables part of the tree in place of others and of the memtables that they contain, and gives
    /// up the overflow values that they left out.
    pub(super) fn install(
        &self,
        Output { made, gone, .. }: Output,
        removed: Vec<Arc<Table>>,
        to: Target,
        flushed: &[Arc<Memtable>],
    ) -> Result<(), Error> {
        let _permits = self.changes.acquire_all();
        let before = Arc::clone(&self.parts().levels);
        let with = |numbers: &[Vec<PageId>]| {
            before.with(&Edit { removed: removed.clone(), added: recorded(&made, numbers), to })
        };
        let levels = Arc::new(self.manifest.store(&made, with)?);
        self.controller.note(self.options.policy.debt(&levels));
        let mut parts = self.parts_mut();
        parts.levels = levels;
        for flushed in flushed {
            let is_newer =
                parts.memtables.frozen.first().is_some_and(|newest| newest.first() > flushed.first());
            match is_newer && planted!(FlushedMemtableStays) {
                true => parts.memtables.frozen.rotate_right(1),
                false => parts.memtables.remove(flushed),
            }
        }
        drop(parts);
        self.update_reservation();
        if removed.is_empty() || !planted!(MergedTablesLeak) {
            self.left().extend(removed);
        }
        // Still with the permit, so that a walk misses no value that is not being given up yet.
        self.give_up(&gone);
        Ok(())
    }

    /// Changes the level of tables that a job neither reads nor writes.
    fn move_tables(&self, job: &Job) -> Result<(), Error> {
        let _permits = self.changes.acquire_all();
        let before = Arc::clone(&self.parts().levels);
        let levels = self.manifest.store(&[], |_| before.with(&job.moved()))?;
        self.parts_mut().levels = Arc::new(levels);
        self.update_reservation();
        self.counters.moved_tables.fetch_add(job.tables().count() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Tables that were made, whose segments have these numbers.
pub(super) fn recorded(made: &[Made], numbers: &[Vec<PageId>]) -> Run {
    let table = |(made, numbers): (&Made, &Vec<PageId>)| {
        let Made { segments, places, summary, metadata } = made;
        let table = Table::new(segments.clone(), numbers.clone(), places.clone(), summary.clone());
        Arc::new(table.with_metadata(*metadata))
    };
    made.iter().zip(numbers).map(table).collect()
}

fn written_bytes(made: &[Made]) -> u64 {
    made.iter().map(|made| made.summary.bytes).sum()
}

/// The removals of a range that are still needed.
fn needed(retention: &Retention, range: &Fragment, older: &[Run]) -> Vec<Timestamp> {
    let is_oldest = !older.iter().any(|run| !overlapping(run, range.interval()).is_empty());
    retention.needed(range, is_oldest || planted!(RangeTombstoneDroppedOverOlder))
}

impl Lsm {
    /// Takes out of a key's versions those that no reader will see, and folds operands. The references of
    /// overflow values among them go into `gone`.
    fn leave_out(
        &self,
        retention: &Retention,
        versions: &mut KeyVersions,
        ranges: &RangeTombstones,
        older: &[Run],
        gone: &mut Vec<Vec<u8>>,
    ) {
        let is_alone = versions.all.len() == 1;
        let removed = ranges.of(versions.key());
        if is_alone && removed.is_none() && !versions.all.iter().any(|held| held.version.may_go_alone()) {
            return;
        }
        let covers = |run: &Run| {
            let first = run.partition_point(|table| table.summary.last_key.as_slice() < versions.key());
            run.get(first).is_some_and(|table| table.covers(versions.key()))
        };
        let is_oldest = !older.iter().any(covers) || planted!(TombstoneDroppedOverOlder);
        let mut take_unneeded = |versions: &mut KeyVersions| {
            for held in retention.take_unneeded(&mut versions.all, removed, is_oldest) {
                if held.version.is_overflow() {
                    gone.push(versions.value(&held).to_vec());
                }
            }
        };
        take_unneeded(versions);
        if versions.all.iter().any(|held| held.version.is_operands()) {
            let bytes_max = self.options.block_bytes() / 4;
            let operator = self.operator.as_deref();
            let folding =
                Folding { operator, retention, removed, is_removed_for_good: true, is_oldest, bytes_max };
            let failures = folding.fold(versions);
            self.counters.operator_failures.fetch_add(failures, Ordering::Relaxed);
            take_unneeded(versions);
        }
    }
}
