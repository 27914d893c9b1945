//! Levels that collect runs (universal compaction).
//!
//! - Trigger: a level has F runs, level 0 as many as are merged at once. The level with most in proportion is
//!   the first.
//! - Granularity and movement: all runs of the level become one run of the next. Runs that do not overlap are
//!   moved without being rewritten.

use super::job::into_new_run;
use super::small::merge_small_runs;
use super::{Busy, Debt, Job, Policy, PolicyOptions, graded};
use crate::lsm::levels::Levels;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiered(pub PolicyOptions);

/// Those of these levels that have as many runs as are merged at once, and no running job; the fullest first.
pub(super) fn due(
    options: &PolicyOptions,
    levels: &Levels,
    busy: &Busy,
    among: std::ops::Range<usize>,
) -> Vec<usize> {
    let mut due: Vec<(usize, f64)> = among
        .filter(|level| !busy.is_source(*level))
        .map(|level| (level, options.fill(levels, level)))
        .filter(|(_, fill)| *fill >= 1.0)
        .collect();
    due.sort_by(|one, other| other.1.total_cmp(&one.1));
    due.into_iter().map(|(level, _)| level).collect()
}

/// The merging that is deferred in these levels, whose runs are written once more in the next.
pub(super) fn debt(options: &PolicyOptions, levels: &Levels, among: std::ops::Range<usize>) -> Debt {
    let mut debt = Debt { bytes: 0, fraction: options.graded(levels) };
    for level in among {
        let fill = options.fill(levels, level);
        if level > 0 {
            debt.fraction = debt.fraction.max(graded(fill));
        }
        if fill >= 1.0 {
            debt.bytes += levels.bytes(level);
        }
    }
    debt
}

/// Brings the runs of a level that is due to the next one, unless they are small ones of level 0.
pub(super) fn down(options: &PolicyOptions, levels: &Levels, busy: &Busy, level: usize) -> Option<Job> {
    let small = if level == 0 { merge_small_runs(options, levels, busy) } else { None };
    small.or_else(|| into_new_run(options, levels, busy, level))
}

impl Policy for Tiered {
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let due = due(&self.0, levels, busy, 0..levels.depth());
        due.into_iter().find_map(|level| down(&self.0, levels, busy, level))
    }

    fn largest_job_bytes(&self, levels: &Levels) -> u64 {
        (1..levels.depth()).map(|level| levels.bytes(level)).max().unwrap_or(0)
    }

    fn level_of_load(&self, levels: &Levels, bytes: u64) -> usize {
        self.0.level_with_room(levels, 1, bytes)
    }

    fn debt(&self, levels: &Levels) -> Debt {
        debt(&self.0, levels, 0..levels.depth())
    }
}
