//! Jobs: tables that are merged, or moved as they are.

use super::{Busy, PolicyOptions};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Edit, Levels, Run, Target, bytes_of, is_run, overlapping};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// See the module.
pub(in crate::lsm) struct Job {
    /// Tables that come down, in their runs, the newest first.
    pub leaving: Vec<Run>,
    /// Tables of the run they are merged into, which they overlap.
    pub below: Run,
    /// The level of the tables that come down.
    pub from: usize,
    pub to: Target,
    /// None of the tables overlaps another: they only change their level, and nothing is read or written.
    pub moves: bool,
    /// No reader sees any part of the tables: they are only dropped.
    pub drops: bool,
}

/// Tables with more tombstones than this part of their records are there to delete.
const TOMBSTONES_FRACTION: f64 = 0.5;

/// Tables that are smaller than this part of T on average are merged rather than moved, to be fewer.
const SMALL_FRACTION: f64 = 0.5;

impl Job {
    /// Runs that are merged, the newest first.
    pub fn inputs(&self) -> impl Iterator<Item = &Run> {
        self.leaving.iter().chain(Some(&self.below)).filter(|run| !run.is_empty())
    }

    /// All tables that are merged or moved.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.inputs().flatten()
    }

    /// The change that the job makes once it has written these tables.
    pub fn edit(&self, added: Vec<Arc<Table>>) -> Edit {
        Edit { removed: self.tables().cloned().collect(), added, to: self.to }
    }

    /// The change that a job makes that moves tables.
    pub fn moved(&self) -> Edit {
        self.edit(in_key_order(self.tables()))
    }
}

fn in_key_order<'a>(tables: impl Iterator<Item = &'a Arc<Table>>) -> Run {
    let mut tables: Run = tables.cloned().collect();
    tables.sort_by(|one, other| one.summary.first_key.cmp(&other.summary.first_key));
    tables
}

/// Whether tables are there to delete.
pub(super) fn are_tombstones<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> bool {
    let count = |(records, tombstones): (u64, u64), table: &Arc<Table>| {
        let ranges = table.summary.range_tombstones;
        (records + table.summary.records + ranges, tombstones + table.summary.tombstones + ranges)
    };
    let (records, tombstones) = tables.into_iter().fold((0, 0), count);
    tombstones as f64 > TOMBSTONES_FRACTION * records as f64
}

/// Whether tables can change their level without being merged.
fn may_move(options: &PolicyOptions, levels: &Levels, leaving: &[Run], to: usize) -> bool {
    let tables = in_key_order(leaving.iter().flatten());
    let small_bytes = SMALL_FRACTION * options.table_bytes as f64 * tables.len() as f64;
    let are_small = leaving.len() > 1 && (bytes_of(&tables) as f64) < small_bytes;
    // Tombstones with nothing below them go when they are merged.
    let is_covered = |range| {
        let deeper = (to..levels.depth()).flat_map(|level| levels.level(level));
        deeper.into_iter().any(|run| !overlapping(run, range).is_empty())
    };
    is_run(&tables)
        && !are_small
        && (!are_tombstones(&tables) || KeyInterval::over(&tables).is_some_and(is_covered))
}

/// Merges tables of level `from`, in their runs, the newest first, into the only run of another level. `None`
/// if it has several, or if running jobs are at some of it.
pub(super) fn into_run(
    options: &PolicyOptions,
    levels: &Levels,
    busy: &Busy,
    from: usize,
    leaving: Vec<Run>,
    to: usize,
) -> Option<Job> {
    let range = KeyInterval::over(leaving.iter().flatten())?;
    let below = match levels.level(to) {
        [] => &[],
        [run] => overlapping(run, range),
        _ => return None,
    };
    let whole = KeyInterval::over(leaving.iter().flatten().chain(below))?;
    let is_busy = leaving.iter().flatten().chain(below).any(|table| busy.has(table));
    if is_busy || busy.writes(to, whole) {
        return None;
    }
    let moves = below.is_empty() && may_move(options, levels, &leaving, to);
    Some(Job { below: below.to_vec(), leaving, from, to: Target::OldestRun(to), moves, drops: false })
}

/// Merges all runs of a level into a new run of the next level.
pub(super) fn into_new_run(
    options: &PolicyOptions,
    levels: &Levels,
    busy: &Busy,
    from: usize,
) -> Option<Job> {
    let leaving = levels.level(from).to_vec();
    let range = KeyInterval::over(leaving.iter().flatten())?;
    let is_busy = busy.is_source(from) || leaving.iter().flatten().any(|table| busy.has(table));
    let is_free = !is_busy && !busy.writes(from + 1, range);
    let moves = may_move(options, levels, &leaving, from + 1);
    let to = Target::NewRun(from + 1);
    is_free.then_some(Job { leaving, below: Run::new(), from, to, moves, drops: false })
}

/// Makes the run of the last level that of a new level below it, without rewriting it.
pub(super) fn deeper(levels: &Levels, busy: &Busy, last: usize) -> Option<Job> {
    let leaving = levels.level(last).to_vec();
    // A job that writes to the level was picked for this run, or brings one that is newer.
    let is_busy = busy.is_target(last) || leaving.iter().flatten().any(|table| busy.has(table));
    let to = Target::OldestRun(last + 1);
    (!is_busy).then_some(Job { leaving, below: Run::new(), from: last, to, moves: true, drops: false })
}

/// Makes one run of those of a level, where another layout left several.
pub(super) fn unify(levels: &Levels, busy: &Busy, level: usize) -> Option<Job> {
    let leaving = levels.level(level).to_vec();
    let is_busy = busy.is_target(level) || leaving.iter().flatten().any(|table| busy.has(table));
    let moves = is_run(&in_key_order(leaving.iter().flatten()));
    let to = Target::OldestRun(level);
    (!is_busy).then_some(Job { leaving, below: Run::new(), from: level, to, moves, drops: false })
}
