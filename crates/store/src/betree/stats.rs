//! The counters of a Bε-tree.

use super::levels::LEVEL_MAX;
use crate::index::{BeTreeLevelStats, BeTreeStats, OperationCounts};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Levels with counters of their own; the others count as the last of these.
const LEVELS: usize = 8;

/// The pages, messages and bytes of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fill {
    pub pages: u64,
    pub page_bytes: u64,
    pub buffered_bytes: u64,
    pub pivot_bytes: u64,
}

#[derive(Default)]
struct OfLevel {
    visits: AtomicU64,
    flushes: AtomicU64,
    flushed_bytes: AtomicU64,
    rewritten_bytes: AtomicU64,
    rebuilds: AtomicU64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Counters {
    pub operations: OperationCounts,
    pub operator_failures: AtomicU64,
    pub memtables_flushed: AtomicU64,
    levels: [OfLevel; LEVELS],
}

impl Counters {
    fn of(&self, level: u16) -> &OfLevel {
        &self.levels[usize::from(level.min(LEVEL_MAX)).min(LEVELS - 1)]
    }

    /// Counts a look-up's visit to a page.
    pub fn visit(&self, level: u16) {
        self.of(level).visits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a flush of `bytes` of messages into pages of this level with `rewritten_bytes` in total.
    pub fn flushed(&self, level: u16, bytes: u64, rewritten_bytes: u64) {
        let of = self.of(level);
        of.flushes.fetch_add(1, Ordering::Relaxed);
        of.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        of.rewritten_bytes.fetch_add(rewritten_bytes, Ordering::Relaxed);
    }

    /// Counts a rebuilding of nodes of this level.
    pub fn rebuilt(&self, level: u16) {
        self.of(level).rebuilds.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts, with the present fill of each level.
    pub fn stats(&self, fills: &[Fill], memtables: u64) -> BeTreeStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let level = |(level, fill): (usize, &Fill)| {
            let of = self.of(level as u16);
            BeTreeLevelStats {
                pages: fill.pages,
                page_bytes: fill.page_bytes,
                buffered_bytes: fill.buffered_bytes,
                pivot_bytes: fill.pivot_bytes,
                look_ups: get(&of.visits),
                flushes: get(&of.flushes),
                flushed_bytes: get(&of.flushed_bytes),
                rewritten_bytes: get(&of.rewritten_bytes),
                rebuilds: get(&of.rebuilds),
            }
        };
        BeTreeStats {
            memtables,
            memtables_flushed: get(&self.memtables_flushed),
            operator_failures: get(&self.operator_failures),
            levels: fills.iter().enumerate().map(level).collect(),
        }
    }
}
