//! The data movement of levels that are one run: the table is merged whose merge rewrites the fewest bytes
//! for those that it brings down.

use super::job::into_run;
use super::{Busy, Job, PolicyOptions};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Levels, bytes_of, overlapping};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// Bytes that are rewritten for each one that is brought down.
pub(super) fn cost(leaving_bytes: u64, below: &[Arc<Table>]) -> f64 {
    bytes_of(below) as f64 / leaving_bytes.max(1) as f64
}

/// Bytes that the merge of a table of a level writes which rewrites least.
pub(super) fn least_bytes(levels: &Levels, level: usize) -> u64 {
    let [run] = levels.level(level) else { return 0 };
    let next = levels.level(level + 1).last().map_or(&[][..], Vec::as_slice);
    let written = |table: &Arc<Table>| {
        let below = overlapping(next, KeyInterval::of(table));
        (cost(table.summary.bytes, below), table.summary.bytes + bytes_of(below))
    };
    let least = run.iter().map(written).min_by(|one, other| one.0.total_cmp(&other.0));
    least.map_or(0, |(_, bytes)| bytes)
}

/// Merges a table of a level, of those that are `wanted`, into the next one. `None` if a level has several
/// runs, or no table is free.
pub(super) fn least_overlap(
    options: &PolicyOptions,
    levels: &Levels,
    busy: &Busy,
    level: usize,
    wanted: &dyn Fn(&Table) -> bool,
) -> Option<Job> {
    let [run] = levels.level(level) else { return None };
    let next = levels.level(level + 1).last().map_or(&[][..], Vec::as_slice);
    let mut best: Option<(f64, &Arc<Table>)> = None;
    for table in run.iter().filter(|table| wanted(table)) {
        let below = overlapping(next, KeyInterval::of(table));
        let cost = cost(table.summary.bytes, below);
        if best.is_none_or(|(least, _)| cost < least) && is_free(busy, level + 1, table, below) {
            best = Some((cost, table));
        }
    }
    let (_, table) = best?;
    into_run(options, levels, busy, level, vec![vec![Arc::clone(table)]], level + 1)
}

/// Whether no running job has a table, or a table that it is merged with.
fn is_free(busy: &Busy, to: usize, table: &Arc<Table>, below: &[Arc<Table>]) -> bool {
    let whole = KeyInterval::over(std::iter::once(table).chain(below));
    !busy.has(table)
        && !below.iter().any(|table| busy.has(table))
        && whole.is_some_and(|whole| !busy.writes(to, whole))
}
