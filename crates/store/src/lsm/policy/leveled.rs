//! One run per level, each level F times as large as the one above it, as in RocksDB.
//!
//! - Layout: capacities follow from the size of the last level, each an Fth of the level below (as with
//!   RocksDB's `level_compaction_dynamic_level_bytes`). So the levels above the last one have an (F-1)th of
//!   it together: the space that leveled trees waste, whatever the size of the data. A last level that would
//!   leave level 1 more than a batch of level 0 becomes that of a new level below it, without being
//!   rewritten. Levels with much less capacity than a batch stay empty: level 0 is merged into the first one
//!   below them, the *base*.
//! - Trigger: a level has more bytes than its capacity, level 0 as many runs as are merged at once. The level
//!   that is fullest in proportion is the first.
//! - Granularity: a table, with those of the next level that it overlaps; of level 0 all runs.
//! - Movement: the table that overlaps least in proportion to its size. One that overlaps nothing is moved
//!   without being rewritten.
//! - If nothing is due, tables of tombstones go down, so that the records that they delete go.

use super::job::{are_tombstones, deeper, into_run, unify};
use super::overlap::{least_bytes, least_overlap};
use super::small::merge_small_runs;
use super::{Busy, Debt, Job, Policy, PolicyOptions, last_of};
use crate::buffered::KeyInterval;
use crate::lsm::levels::{Levels, Run, overlapping};
use crate::lsm::table::Table;
use crate::sync::Arc;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leveled(pub PolicyOptions);

/// Deferred merging, in multiples of level 1's capacity, that slows writers, and that stops them: RocksDB's
/// limits of pending compaction bytes, 64 GB and 256 GB, in its default level 1 of 256 MB.
const PENDING_SLOW_FROM: f64 = 256.0;
const PENDING_STOP_AT: f64 = 1024.0;

/// Levels with less capacity than this part of a batch of level 0 stay empty.
const BASE_FRACTION: f64 = 0.5;

impl Leveled {
    /// The level that level 0 is merged into. It is not the last one if there are others: a merge with most
    /// of the data would need as much room again.
    fn base(&self, levels: &Levels) -> usize {
        let above_last = (last_of(levels) - 1).max(1);
        let is_worth = |level: &usize| self.capacity(levels, *level) >= BASE_FRACTION * self.0.batch_bytes();
        (1..above_last).find(is_worth).unwrap_or(above_last)
    }

    /// Bytes that make a level too large. The last one then becomes that of a deeper level.
    pub fn capacity(&self, levels: &Levels, level: usize) -> f64 {
        let (last, fanout) = (last_of(levels), f64::from(self.0.fanout));
        let most = self.0.capacity(level);
        if level >= last {
            return most;
        }
        let of_last = levels.bytes(last) as f64 / fanout.powi((last - level) as i32);
        of_last.min(most).max(self.0.capacity(0))
    }

    /// How full a level is without the tables that running jobs bring down.
    fn fill(&self, levels: &Levels, busy: &Busy, level: usize) -> f64 {
        let staying = levels.bytes(level).saturating_sub(busy.leaving_bytes(level));
        match (level, levels.level(level).len()) {
            (0, _) if busy.is_source(0) => 0.0,
            (0, _) => self.0.fill(levels, 0),
            // Another layout left them.
            (_, 2..) => f64::INFINITY,
            _ if level < self.base(levels) && staying > 0 => f64::INFINITY,
            _ => staying as f64 / self.capacity(levels, level),
        }
    }

    fn job_from(&self, levels: &Levels, busy: &Busy, level: usize) -> Option<Job> {
        match (level, levels.level(level).len()) {
            (0, _) => merge_small_runs(&self.0, levels, busy).or_else(|| self.merge_into_base(levels, busy)),
            (_, 2..) => unify(levels, busy, level),
            _ if level == last_of(levels) => deeper(levels, busy, level),
            _ => least_overlap(&self.0, levels, busy, level, &|_| true),
        }
    }

    /// Merges level 0 into the base, once the levels between them are empty: their records are older than
    /// level 0, and must not come to lie above it.
    fn merge_into_base(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let base = self.base(levels);
        let is_next = (1..base).all(|level| levels.level(level).is_empty());
        is_next.then(|| into_run(&self.0, levels, busy, 0, levels.level(0).to_vec(), base)).flatten()
    }

    /// Merges tables of tombstones into the next level, unless far more is rewritten there than they delete.
    /// In the last level they stay: the records that they hid are gone, and they go with the next merge.
    fn delete(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let pays = |tables: &Run, below: usize| {
            let count = |table: &Arc<Table>| table.summary.tombstones + table.summary.range_tombstones;
            let tombstones: u64 = tables.iter().map(count).sum();
            let rewritten: u64 = KeyInterval::over(tables).map_or(0, |range| {
                let below = levels.level(below).iter().flat_map(|run| overlapping(run, range));
                below.map(|table| table.summary.records).sum()
            });
            are_tombstones(tables) && rewritten <= tombstones.saturating_mul(self.0.fanout.into())
        };
        let last = levels.depth().checked_sub(1)?;
        if last > 0 && !busy.is_source(0) && pays(&levels.level(0).concat(), self.base(levels)) {
            let job = self.job_from(levels, busy, 0);
            if job.is_some() {
                return job;
            }
        }
        (1..last).find_map(|level| {
            let [run] = levels.level(level) else { return None };
            let tables = run.iter().map(|table| vec![Arc::clone(table)]);
            let mut tables = tables.filter(|table| pays(table, level + 1));
            tables.find_map(|table| into_run(&self.0, levels, busy, level, vec![table], level + 1))
        })
    }

    /// Bytes that are written until no level is above its capacity, as RocksDB estimates them.
    fn pending_bytes(&self, levels: &Levels) -> f64 {
        let bytes = |level| levels.bytes(level) as f64;
        let (mut pending, mut carried) = (0.0, 0.0);
        if self.0.fill(levels, 0) >= 1.0 {
            carried = bytes(0);
            pending = bytes(0) + bytes(self.base(levels));
        }
        // The last level grows deeper without being written.
        for level in 1..last_of(levels) {
            let reached = bytes(level) + carried;
            carried = (reached - self.capacity(levels, level)).max(0.0);
            if carried > 0.0 {
                pending += carried * (1.0 + bytes(level + 1) / reached);
            }
        }
        pending
    }
}

impl Policy for Leveled {
    fn pick(&self, levels: &Levels, busy: &Busy) -> Option<Job> {
        let fills = (0..levels.depth()).map(|level| (level, self.fill(levels, busy, level)));
        let mut due: Vec<(usize, f64)> = fills.filter(|(_, fill)| *fill >= 1.0).collect();
        due.sort_by(|one, other| other.1.total_cmp(&one.1));
        let (last, base) = (last_of(levels), self.base(levels));
        let (mut level_zero_waits, grows) = (false, due.iter().any(|(level, _)| *level == last));
        for (level, _) in &due {
            // The jobs that level 0 waits for must end: no further jobs of its target begin. Nor does
            // anything go into a last level that is to be another one's.
            if *level == base && level_zero_waits || grows && *level + 1 == last {
                continue;
            }
            let job = self.job_from(levels, busy, *level);
            if job.is_some() {
                return job;
            }
            level_zero_waits |= *level == 0;
        }
        if due.is_empty() { self.delete(levels, busy) } else { None }
    }

    fn largest_job_bytes(&self, levels: &Levels) -> u64 {
        let most_bytes = self.0.overlap_bytes_max(true) + self.0.table_bytes;
        let of_tables = (1..levels.depth().saturating_sub(1)).map(|level| least_bytes(levels, level));
        of_tables.fold(levels.bytes(self.base(levels)), |largest, bytes| largest.max(bytes.min(most_bytes)))
    }

    fn level_of_load(&self, levels: &Levels, bytes: u64) -> usize {
        self.0.level_with_room(levels, 1, bytes)
    }

    fn debt(&self, levels: &Levels) -> Debt {
        let pending = self.pending_bytes(levels);
        let graded_bytes =
            (pending / self.0.batch_bytes() - PENDING_SLOW_FROM) / (PENDING_STOP_AT - PENDING_SLOW_FROM);
        Debt { bytes: pending as u64, fraction: self.0.graded(levels).max(graded_bytes) }
    }
}
