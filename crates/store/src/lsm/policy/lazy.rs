//! Lazy leveling (Dayan and Idreos, "Dostoevsky", 2018): levels collect runs, but for the last, which is one
//! run and has most of the data.
//!
//! - Trigger: as if [tiered](super::tiered).
//! - Granularity and movement: all runs of a level become one of the next. Those of the level above the last
//!   are merged into the last level's run.
//! - When the last level is full, its run becomes that of a level below it without being rewritten.

use super::job::{deeper, into_run, unify};
use super::small::merge_small_runs;
use super::tiered::{self, down, due};
use super::{Busy, Debt, Job, Policy, PolicyOptions, last_of};
use crate::lsm::levels::Levels;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct LazyLeveled(pub PolicyOptions);

impl Policy for LazyLeveled {
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let last = last_of(levels);
        let of_last = match levels.level(last).len() {
            2.. => unify(levels, busy, last),
            1 if levels.bytes(last) as f64 >= self.0.capacity(last + 1) => deeper(levels, busy, last),
            _ => None,
        };
        let into_last = || {
            let leaving = levels.level(last - 1).to_vec();
            into_run(&self.0, levels, busy, last - 1, leaving, last)
        };
        let job_from = |level: usize| match level {
            0 if last == 1 => merge_small_runs(&self.0, levels, busy).or_else(into_last),
            _ if level + 1 == last => into_last(),
            _ => down(&self.0, levels, busy, level),
        };
        of_last.or_else(|| due(&self.0, levels, busy, 0..last).into_iter().find_map(job_from))
    }

    fn largest_job_bytes(&self, levels: &Levels) -> u64 {
        let last = last_of(levels);
        let into_last = if last > 1 { levels.bytes(last - 1) } else { 0 };
        levels.bytes(last) + into_last
    }

    fn level_of_load(&self, levels: &Levels, bytes: u64) -> usize {
        self.0.level_with_room(levels, last_of(levels), bytes)
    }

    fn debt(&self, levels: &Levels) -> Debt {
        let last = last_of(levels);
        let mut debt = tiered::debt(&self.0, levels, 0..last);
        if self.0.fill(levels, last - 1) >= 1.0 {
            debt.bytes += levels.bytes(last);
        }
        debt
    }
}
