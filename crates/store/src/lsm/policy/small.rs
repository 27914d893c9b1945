//! Runs and tables that are small: a checkpoint and a closing store flush what there is, and the last table of
//! each part of a merge has what is left. Each takes whole segments.

use super::{Busy, Job, PolicyOptions};
use crate::lsm::levels::{KeyInterval, Levels, Run, Target, bytes_of};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// Level 0 is merged into itself rather than into the next level with less than this part of what it has with
/// full memtables.
const SMALL_FRACTION: f64 = 0.25;

/// What is merged for the sake of room is expected to fill this part of its segments.
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

/// The merge that makes most of little: of runs of level 0, or of neighbours in a level that is one run, whose
/// tables take fewer segments afterwards. For a store that has no room for others.
pub(in crate::lsm) fn pick_for_room(
    levels: &Levels,
    busy: &Busy,
    (table_bytes, segment_bytes): (u64, u64),
) -> Option<Job> {
    let level_zero = levels.level(0);
    if level_zero.len() > 1 && won(level_zero.iter().flatten(), segment_bytes).is_some() {
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
        .filter(|(_, tables)| bytes_of(*tables) <= FULL_TABLES_MAX * table_bytes)
        .filter(|(level, tables)| is_free(busy, *level, tables))
        .filter_map(|(level, tables)| Some((won(tables, segment_bytes)?, level, tables)))
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

/// Segments that these tables take when they are merged, and how many fewer that is than before, if it is.
fn won<'a>(
    tables: impl IntoIterator<Item = &'a Arc<Table>> + Clone,
    segment_bytes: u64,
) -> Option<(u64, u64)> {
    let before: u64 = tables.clone().into_iter().map(|table| table.pages.len() as u64).sum();
    let written = (bytes_of(tables) * 100).div_ceil(segment_bytes.max(1) * FILLED_PERCENT);
    let won = before.checked_sub(written)?;
    (won > 0).then_some((written, won))
}

/// Whether no running job is at these tables, or writes to their keys.
fn is_free(busy: &Busy, level: usize, tables: &[Arc<Table>]) -> bool {
    !tables.iter().any(|table| busy.has(table))
        && KeyInterval::over(tables).is_some_and(|range| !busy.writes(level, range))
}
