//! Policies: which tables are merged next.
//!
//! A policy is four decisions (Sarkar et al., "Constructing and Analyzing the LSM Compaction Design Space",
//! 2021): the *trigger* of a compaction, the *layout* of the levels, the *granularity* of what is merged at a
//! time, and which *data* that is.

use super::levels::{Levels, Run, Target};
use super::table::Table;
use crate::sync::Arc;

/// Tables that are to be merged.
pub(super) struct Job {
    /// Cursors over runs of tables, the newest first.
    pub inputs: Vec<Run>,
    pub to: Target,
}

/// See the module.
pub(super) trait Policy: Send + Sync {
    /// The most urgent compaction, if any is due.
    fn pick(&self, levels: &Levels) -> Option<Job>;

    /// Deferred merging as a fraction of its upper bound: above 0 writers are slowed down.
    fn debt(&self, levels: &Levels) -> f64;
}

/// One run per level, each level F times as large as the one above it, as in RocksDB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leveled {
    /// F.
    pub fanout: f64,
    /// Runs of level 0 that are merged at once.
    pub level_zero_runs: usize,
    /// Capacity of level 1.
    pub level_one_bytes: u64,
}

/// Writers are slowed from so many times the trigger's runs in level 0 on, and stopped at so many.
const SLOW_FROM: f64 = 2.0;
const STOP_AT: f64 = 5.0;

impl Leveled {
    fn capacity(&self, level: usize) -> f64 {
        self.level_one_bytes as f64 * self.fanout.powi(level as i32 - 1)
    }

    /// How full a level is.
    fn fill(&self, levels: &Levels, level: usize) -> f64 {
        match level {
            0 => levels.0.first().map_or(0.0, |runs| runs.len() as f64 / self.level_zero_runs as f64),
            _ => levels.bytes(level) as f64 / self.capacity(level),
        }
    }
}

/// Tables of a run whose keys lie between those of others.
fn overlapping(run: Option<&Run>, tables: &[Arc<Table>]) -> Run {
    let first = tables.iter().map(|table| &table.summary.first_key).min();
    let last = tables.iter().map(|table| &table.summary.last_key).max();
    let (Some(first), Some(last)) = (first, last) else { return Run::new() };
    let overlaps = |table: &&Arc<Table>| table.summary.last_key >= *first && table.summary.first_key <= *last;
    run.into_iter().flatten().filter(overlaps).cloned().collect()
}

fn bytes_of(run: &[Arc<Table>]) -> u64 {
    run.iter().map(|table| table.summary.bytes).sum()
}

impl Policy for Leveled {
    fn pick(&self, levels: &Levels) -> Option<Job> {
        let due = (0..levels.0.len()).map(|level| (level, self.fill(levels, level)));
        let (level, _) =
            due.filter(|(_, fill)| *fill >= 1.0).max_by(|one, other| one.1.total_cmp(&other.1))?;
        let to = Target::OldestRun(level + 1);
        let below = levels.0.get(level + 1).and_then(|runs| runs.last());
        if level == 0 {
            let mut inputs = levels.0[0].clone();
            inputs.push(overlapping(below, &inputs.concat()));
            return Some(Job { inputs, to });
        }
        // The table that overlaps least, in proportion to what it brings down.
        let cost = |table: &Arc<Table>| {
            bytes_of(&overlapping(below, std::slice::from_ref(table))) as f64
                / table.summary.bytes.max(1) as f64
        };
        let tables = levels.0[level].iter().flatten();
        let (table, _) =
            tables.map(|table| (table, cost(table))).min_by(|one, other| one.1.total_cmp(&other.1))?;
        let run = vec![Arc::clone(table)];
        let below = overlapping(below, &run);
        Some(Job { inputs: vec![run, below], to })
    }

    fn debt(&self, levels: &Levels) -> f64 {
        (self.fill(levels, 0) - SLOW_FROM) / (STOP_AT - SLOW_FROM)
    }
}
