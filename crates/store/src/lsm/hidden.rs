//! Tables that no reader sees any part of: a removal of a range that is visible to every snapshot covers all
//! of their keys and is newer than they are. They are dropped without being read, unless they have overflow
//! values, which have to be given up one by one.

use super::levels::{Levels, Run, Target, overlapping};
use super::policy::{Busy, Job};
use super::table::Table;
use crate::buffered::{Fragment, KeyInterval, RangeTombstones, Retention};
use crate::log::Timestamp;

/// Reads the range tombstones that [`pick`] looks at, and may wait for the device. Those that cannot be read
/// hide nothing until they can.
pub(super) fn prepare(levels: &Levels) {
    for table in levels.tables().filter(|table| table.summary.range_tombstones > 0) {
        let _tried = table.range_tombstones();
    }
}

/// The next job that only drops tables. It does not wait.
pub(super) fn pick(levels: &Levels, busy: &Busy, retention: &Retention) -> Option<Job> {
    levels.runs().enumerate().find_map(|(place, run)| {
        let ranges = run.iter().filter_map(|table| table.known_range_tombstones());
        ranges.flat_map(RangeTombstones::fragments).find_map(|range| {
            let removed_at = retention.known(range)?;
            tables_within(levels, busy, place + 1, range, removed_at)
        })
    })
}

/// Tables of the first run, from this one on, that has any within a range that was removed then.
fn tables_within(
    levels: &Levels,
    busy: &Busy,
    from_run: usize,
    range: &Fragment,
    removed_at: Timestamp,
) -> Option<Job> {
    let is_hidden = |table: &Table| {
        Timestamp(table.summary.newest) < removed_at
            && table.summary.overflows == 0
            && range.contains(KeyInterval::of(table))
    };
    let all = (0..levels.depth()).flat_map(|level| levels.level(level).iter().map(move |run| (level, run)));
    all.skip(from_run).find_map(|(level, run)| {
        let within = overlapping(run, range.interval()).iter();
        let hidden: Run = within.filter(|table| is_hidden(table) && !busy.has(table)).cloned().collect();
        let (leaving, below, to) = (vec![hidden], Run::new(), Target::OldestRun(level));
        let job = Job { leaving, below, from: level, to, moves: false, drops: true };
        let is_any = job.tables().next().is_some();
        is_any.then_some(job)
    })
}
