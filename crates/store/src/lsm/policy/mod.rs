//! Policies: which tables are merged next.
//!
//! A policy is four decisions (Sarkar et al., "Constructing and Analyzing the LSM Compaction Design Space",
//! 2021): the *trigger* of a compaction, the *layout* of the levels, the *granularity* of a merge, and which
//! *data* it takes. Policies read no table, only [`Levels`].
//!
//! Several jobs may run at the same time and end in any order. The order of runs stays right because
//!
//! 1. no table is the input of two jobs;
//! 2. a job that merges into an existing run has all tables of that run which it overlaps, and no other job
//!    writes to these keys of the level meanwhile;
//! 3. a job that makes a new run takes all runs of its level, and is the only one from that level, so that
//!    runs arrive in the order of their creation;
//! 4. from level 0 a job takes every table that is older than, and overlaps, one that it takes.
//!
//! ```text
//! options   the layout and its numbers      busy       what running jobs read and write
//! job       what is merged, and how         overlap    the tables whose merge rewrites least
//! leveled   one run per level               tiered     up to F runs per level
//! lazy      tiered, but for the last level  single     one run below level 0
//! small     small runs and tables           behind    tables at the end of a device that becomes shorter
//! ```

mod behind;
mod busy;
mod job;
mod lazy;
mod leveled;
mod options;
mod overlap;
mod single;
mod small;
#[cfg(test)]
mod tests;
mod tiered;

pub(super) use behind::pick_behind;
pub(super) use busy::{Busy, Ticket};
pub(super) use job::Job;
pub use options::LsmLayout;
pub(super) use options::{PolicyOptions, SMALL_RUNS};
pub(super) use small::{ForRoom, MergeRoom, pick};

use super::levels::Levels;

/// See the module.
pub(super) trait Policy: Send + Sync {
    /// The most urgent job that can run together with those that are running, if any is due.
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job>;

    /// The level for `bytes` bytes of new tables, if no table there or above has keys between theirs.
    fn level_of_load(&self, levels: &Levels, bytes: u64) -> usize;

    /// The merging that is deferred.
    fn debt(&self, levels: &Levels) -> Debt;

    /// Bytes that the largest of the next jobs writes, besides those of level 0: as long as there is room for
    /// them, all jobs can run, one after the other.
    fn largest_job_bytes(&self, levels: &Levels) -> u64;
}

/// The last level of those below level 0.
fn last_of(levels: &Levels) -> usize {
    levels.depth().saturating_sub(1).max(1)
}

/// Merging that is due and was not done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Debt {
    /// Bytes that merges have to write until none is due: an estimate, as RocksDB's pending compaction bytes.
    pub bytes: u64,
    /// The part of its upper bound: above 0 writers are slowed down, at 1 they are stopped.
    pub fraction: f64,
}

/// Runs, in multiples of the trigger's, that slow writers, and that stop them, unless they are given for
/// level 0.
pub(in crate::lsm) const SLOW_FROM: f64 = 2.0;
pub(in crate::lsm) const STOP_AT: f64 = 5.0;

/// How much writers are slowed down for a level below level 0 that has `fill` times its trigger's runs.
fn graded(fill: f64) -> f64 {
    (fill - SLOW_FROM) / (STOP_AT - SLOW_FROM)
}
