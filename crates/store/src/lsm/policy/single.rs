//! A single level: one run below level 0, into which all that is new is merged (C = 0 and F = ∞ of the MQSSD
//! paper, §5.2.2).
//!
//! - Trigger: level 0 has as many runs as are merged at once.
//! - Granularity: as many tables of the oldest run as level 0 has runs, with the tables above them in the
//!   newer runs. A run that is one table is taken whole; the merge of it runs in several parts.
//! - Movement: the tables that overlap least in proportion to their size.
//!
//! Where another layout left several levels, those above the last are emptied into it.

use super::job::{into_run, unify};
use super::overlap::{cost, least_overlap};
use super::small::merge_small_runs;
use super::{Busy, Debt, Job, Policy, PolicyOptions};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Levels, Run, bytes_of, overlapping};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct SingleLevel(pub PolicyOptions);

/// The level into which level 0 is merged: the first one with tables.
fn first_of(levels: &Levels) -> usize {
    (1..levels.depth()).find(|level| !levels.level(*level).is_empty()).unwrap_or(1)
}

/// Tables of the oldest run of level 0, and those of newer runs that overlap no older table but these. The
/// oldest run is the last one.
fn window(level_zero: &[Run], tables: std::ops::Range<usize>) -> Vec<Run> {
    let Some((oldest, newer)) = level_zero.split_last() else { return Vec::new() };
    // Tables that stay end before here, or begin after there.
    let mut after = tables.start.checked_sub(1).map(|left| oldest[left].summary.last_key.as_slice());
    let mut before = oldest.get(tables.end).map(|right| right.summary.first_key.as_slice());
    let mut leaving = vec![oldest[tables].to_vec()];
    for run in newer.iter().rev() {
        let start = run
            .partition_point(|table| after.is_some_and(|after| table.summary.first_key.as_slice() <= after));
        let end = run
            .partition_point(|table| before.is_none_or(|before| table.summary.last_key.as_slice() < before));
        if start > end {
            // A table reaches from the left to the right of all that may be taken.
            break;
        }
        leaving.insert(0, run[start..end].to_vec());
        let left = start.checked_sub(1).map(|left| run[left].summary.last_key.as_slice());
        let right = run.get(end).map(|right| right.summary.first_key.as_slice());
        after = after.max(left);
        before = match (before, right) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    leaving.retain(|run| !run.is_empty());
    leaving
}

impl SingleLevel {
    fn merge_level_zero(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let level_zero = levels.level(0);
        if self.0.fill(levels, 0) < 1.0 || busy.is_source(0) {
            return None;
        }
        let to = first_of(levels);
        let run = levels.level(to).last().map_or(&[][..], Vec::as_slice);
        let tables = level_zero.last()?.len();
        let width = level_zero.len().min(tables);
        let windows = (0..=tables - width).map(|start| window(level_zero, start..start + width));
        let cost = |leaving: &Vec<Run>| {
            let below = KeyInterval::over(leaving.iter().flatten()).map(|range| overlapping(run, range));
            cost(bytes_of(leaving.iter().flatten()), below.unwrap_or_default())
        };
        let mut windows: Vec<(f64, Vec<Run>)> = windows.map(|leaving| (cost(&leaving), leaving)).collect();
        windows.sort_by(|one, other| one.0.total_cmp(&other.0));
        windows.into_iter().find_map(|(_, leaving)| into_run(&self.0, levels, busy, 0, leaving, to))
    }
}

impl Policy for SingleLevel {
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let last = levels.depth().saturating_sub(1);
        let of_others = |level| match levels.level(level).len() {
            2.. => unify(levels, busy, level),
            1 if level < last => least_overlap(&self.0, levels, busy, level, &|_| true),
            _ => None,
        };
        (1..levels.depth())
            .find_map(of_others)
            .or_else(|| merge_small_runs(&self.0, levels, busy))
            .or_else(|| self.merge_level_zero(levels, busy))
    }

    fn largest_job_bytes(&self, levels: &Levels) -> u64 {
        (1..levels.depth()).map(|level| levels.bytes(level)).sum()
    }

    fn level_of_load(&self, levels: &Levels, _bytes: u64) -> usize {
        first_of(levels)
    }

    fn debt(&self, levels: &Levels) -> Debt {
        let is_due = self.0.fill(levels, 0) >= 1.0;
        let rewritten = if is_due { levels.bytes(0) + levels.bytes(first_of(levels)) } else { 0 };
        let above_last: u64 = (1..levels.depth().saturating_sub(1)).map(|level| levels.bytes(level)).sum();
        Debt { bytes: rewritten + above_last, fraction: self.0.graded(levels) }
    }
}
