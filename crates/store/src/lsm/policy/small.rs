//! Runs and tables that are small: a checkpoint and a closing store flush memtables that are not full, and
//! the last table of each part of a merge has only the remaining records. Each takes whole segments.

use super::job::{into_new_run, into_run, unify};
use super::overlap::least_overlap;
use super::{Busy, Job, LsmLayout, Policy, PolicyOptions};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Levels, Run, Target, bytes_of, overlapping};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// The kinds of merges that are done for the sake of room.
#[derive(Clone, Copy, Debug)]
pub(in crate::lsm) struct ForRoom {
    /// Runs of level 0, and neighbours in a level that is one run, which become fewer tables.
    pub small: bool,
    /// Tombstones, with the records that they hide.
    pub tombstones: bool,
    /// In a shortage, the room that merges have.
    pub room: Option<MergeRoom>,
}

/// Room that merges have, if the device does not grow.
#[derive(Clone, Copy, Debug)]
pub(in crate::lsm) struct MergeRoom {
    pub bytes: u64,
    pub segment_bytes: u64,
}

/// Level 0 is merged into itself rather than into the next level while it has less than this part of its
/// bytes with full memtables.
const SMALL_FRACTION: f64 = 0.25;

/// Merges for the sake of room are expected to fill this part of their tables.
const FILLED_PERCENT: u64 = 90;

/// Tables of a run that are merged for the sake of room at a time, and their bytes, in tables of full size.
const TABLES_MAX: usize = 8;
const FULL_TABLES_MAX: u64 = 3;

/// Makes one run of those of level 0, if they are as many as are merged at once, but small ones.
pub(super) fn merge_small_runs(options: &PolicyOptions, levels: &Levels, busy: &Busy) -> Option<Job> {
    let is_small = (levels.bytes(0) as f64) < SMALL_FRACTION * options.batch_bytes();
    let is_due = levels.level(0).len() > 1 && options.fill(levels, 0) >= 1.0;
    if is_small && is_due { unify_level_zero(levels, busy) } else { None }
}

fn unify_level_zero(levels: &Levels, busy: &Busy) -> Option<Job> {
    let leaving = levels.level(0).to_vec();
    let is_busy = busy.is_source(0) || leaving.iter().flatten().any(|table| busy.has(table));
    (!is_busy).then_some(Job {
        leaving,
        below: Run::new(),
        from: 0,
        to: Target::OldestRun(0),
        moves: false,
        drops: false,
    })
}

/// The most urgent job. In a shortage it is one that the room is enough for: the one that is due, one for the
/// sake of room, or a part of either.
pub(in crate::lsm) fn pick(
    (policy, options): (&dyn Policy, &PolicyOptions),
    levels: &Levels,
    busy: &Busy,
    wanted: ForRoom,
) -> Option<Job> {
    let due = || policy.pick(levels, busy);
    let Some(room) = wanted.room else {
        return due().or_else(|| pick_for_room(options, levels, busy, wanted));
    };
    // Running jobs may yet write as many bytes as they read.
    let room_bytes = room.bytes.saturating_sub(busy.input_bytes());
    let needed_bytes = |job: &Job| needed_bytes(options, levels, job, room.segment_bytes);
    let mut too_large: Vec<Job> = Vec::new();
    let for_room = [ForRoom { tombstones: false, ..wanted }, ForRoom { small: false, ..wanted }];
    let whole = std::iter::once_with(due)
        .chain(for_room.into_iter().map(|wanted| pick_for_room(options, levels, busy, wanted)));
    for job in whole.flatten() {
        if needed_bytes(&job) <= room_bytes {
            return Some(job);
        }
        too_large.push(job);
    }
    if too_large.is_empty() || busy.len() > 0 {
        return None;
    }
    // Merges may write less than is expected of them.
    too_large.extend(bring_down_table(options, levels, busy));
    too_large.into_iter().min_by_key(needed_bytes)
}

/// Merges a table of the oldest run of a level into the next run below, in the first level that has such a
/// table. Only where levels are one run: new runs could come between others.
fn bring_down_table(options: &PolicyOptions, levels: &Levels, busy: &Busy) -> Option<Job> {
    if !matches!(options.layout, LsmLayout::Leveled | LsmLayout::SingleLevel) {
        return None;
    }
    let job_from = |level: usize| {
        let to = (level + 1..levels.depth()).find(|below| !levels.level(*below).is_empty())?;
        let ([.., oldest], [run]) = (levels.level(level), levels.level(to)) else { return None };
        let written =
            |table: &&Arc<Table>| table.summary.bytes + bytes_of(overlapping(run, KeyInterval::of(table)));
        let table = oldest.iter().min_by_key(written)?;
        into_run(options, levels, busy, level, vec![vec![Arc::clone(table)]], to)
    };
    (0..levels.depth()).find_map(job_from)
}

/// The most bytes of segments that a job takes for its output.
fn needed_bytes(options: &PolicyOptions, levels: &Levels, job: &Job, segment_bytes: u64) -> u64 {
    if job.moves || job.drops {
        return 0;
    }
    let written_bytes = bytes_of(job.tables()) * 100 / FILLED_PERCENT;
    let below = options.run_below(levels, job.to.level());
    let overlap_bytes =
        KeyInterval::over(job.tables()).map_or(0, |range| bytes_of(overlapping(&below, range)));
    // Tables that end early, and the last one.
    let small = overlap_bytes / options.overlap_bytes_max(true).max(1) + 1;
    written_bytes.next_multiple_of(segment_bytes.max(1)) + small * segment_bytes
}

/// A wanted merge that frees room: of small tables, or else of tombstones.
fn pick_for_room(options: &PolicyOptions, levels: &Levels, busy: &Busy, wanted: ForRoom) -> Option<Job> {
    let small = if wanted.small { unify_small(options, levels, busy) } else { None };
    let tombstones = || bring_down_tombstones(options, levels, busy);
    small.or_else(|| wanted.tombstones.then(tombstones).flatten())
}

fn unify_small(options: &PolicyOptions, levels: &Levels, busy: &Busy) -> Option<Job> {
    let level_zero = levels.level(0);
    if level_zero.len() > 1 && won(level_zero.iter().flatten(), options.table_bytes).is_some() {
        let job = unify_level_zero(levels, busy);
        if job.is_some() {
            return job;
        }
    }
    let levels_of_a_run = (1..levels.depth()).filter_map(|level| match levels.level(level) {
        [run] => Some((level, run)),
        _ => None,
    });
    let neighbours = levels_of_a_run.flat_map(|(level, run)| {
        let lengths = (0..run.len()).flat_map(|first| (2..=TABLES_MAX).map(move |count| (first, count)));
        lengths.filter_map(move |(first, count)| Some((level, run.get(first..first + count)?)))
    });
    let cheapest = neighbours
        .filter(|(_, tables)| bytes_of(*tables) <= FULL_TABLES_MAX * options.table_bytes)
        .filter(|(level, tables)| is_free(busy, *level, tables))
        .filter(|(level, tables)| would_be_one(options, levels, *level, tables))
        .filter_map(|(level, tables)| Some((won(tables, options.table_bytes)?, level, tables)))
        .min_by_key(|((written, won), ..)| (*written, u64::MAX - won));
    cheapest.map(|(_, level, tables)| Job {
        leaving: vec![tables.to_vec()],
        below: Run::new(),
        from: level,
        to: Target::OldestRun(level),
        moves: false,
        drops: false,
    })
}

/// Merges tombstones into the next level, as the layout has it: those with least to rewrite for each.
fn bring_down_tombstones(options: &PolicyOptions, levels: &Levels, busy: &Busy) -> Option<Job> {
    let last = levels.depth().checked_sub(1)?;
    let has_tombstones = |table: &Table| table.summary.tombstones + table.summary.range_tombstones > 0;
    let job_from = |level: usize| {
        let runs = levels.level(level);
        // No run is below the last level's oldest.
        let above = if level == last { runs.split_last().map_or(runs, |(_, newer)| newer) } else { runs };
        if !above.iter().flatten().any(|table| has_tombstones(table)) {
            return None;
        }
        match options.layout {
            _ if level == last => unify(levels, busy, level),
            LsmLayout::Tiered => into_new_run(options, levels, busy, level),
            LsmLayout::LazyLeveled if level + 1 < last => into_new_run(options, levels, busy, level),
            _ if level == 0 || runs.len() > 1 => {
                into_run(options, levels, busy, level, runs.to_vec(), level + 1)
            }
            _ => least_overlap(options, levels, busy, level, &has_tombstones),
        }
    };
    (0..=last).find_map(job_from)
}

/// Number of tables that a merge of these makes, and the number that it saves. `None` if it saves none.
fn won<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>> + Clone, table_bytes: u64) -> Option<(u64, u64)> {
    let before = tables.clone().into_iter().count() as u64;
    let written = (bytes_of(tables) * 100).div_ceil(table_bytes.max(1) * FILLED_PERCENT);
    let won = before.checked_sub(written)?;
    (won > 0).then_some((written, won))
}

/// Whether a merge does not end tables early, as they would overlap too much of the level below.
fn would_be_one(options: &PolicyOptions, levels: &Levels, level: usize, tables: &[Arc<Table>]) -> bool {
    let below = options.run_below(levels, level);
    KeyInterval::over(tables)
        .is_none_or(|range| bytes_of(overlapping(&below, range)) <= options.overlap_bytes_max(true))
}

/// Whether no running job is at these tables, or writes to their keys.
fn is_free(busy: &Busy, level: usize, tables: &[Arc<Table>]) -> bool {
    !tables.iter().any(|table| busy.has(table))
        && KeyInterval::over(tables).is_some_and(|range| !busy.writes(level, range))
}
