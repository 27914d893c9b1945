//! Tables that lie too far back on the device: they are written anew, as the cleaner moves no owned segment.

use super::job::unify;
use super::{Busy, Job};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Levels, Run, Target};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// Rewrites a table that has a segment after `end_bytes` of the device, if `before_bytes`, the room before
/// that, is enough for it. A level with several runs is merged into one first, if `room_bytes`, the room
/// anywhere, is enough: the tables of one run can be moved one by one.
pub(in crate::lsm) fn pick_behind(
    levels: &Levels,
    busy: &Busy,
    end_bytes: u64,
    (before_bytes, room_bytes): (u64, u64),
) -> Option<Job> {
    let is_behind = |table: &&Arc<Table>| table.end_bytes() > end_bytes;
    let of_level = |level: usize| match levels.level(level) {
        [run] => {
            let mut behind = run.iter().filter(is_behind);
            let fits = |table: &Arc<Table>| {
                table.segment_bytes() <= before_bytes
                    && !busy.has(table)
                    && !busy.writes(level, KeyInterval::of(table))
            };
            behind.find(|table| fits(table)).map(|table| again(level, table))
        }
        runs => {
            let tables = || runs.iter().flatten();
            let fits = tables().map(|table| table.segment_bytes()).sum::<u64>() <= room_bytes;
            let is_free = fits && !busy.is_source(level) && tables().any(|table| is_behind(&table));
            is_free.then(|| unify(levels, busy, level)).flatten()
        }
    };
    (0..levels.depth()).find_map(of_level)
}

/// Rewrites a table of a level that is one run.
fn again(level: usize, table: &Arc<Table>) -> Job {
    Job {
        leaving: vec![vec![Arc::clone(table)]],
        below: Run::new(),
        from: level,
        to: Target::OldestRun(level),
        moves: false,
        drops: false,
    }
}
