//! What makes checkpoints begin.

use std::sync::Arc;

use crate::checkpoint::{Keeper, Parts};
use crate::layout::Layout;
use crate::options::Options;
use crate::segment::Pressure;
use crate::txn::{Load, Space};

/// How much the log grows between checkpoints: what may have to be replayed is what has gathered since the last but one's cut, and a checkpoint must be complete before the ring is full.
pub(super) fn log_step_bytes(layout: &Layout, options: &Options) -> u64 {
    (options.recovery_log_bytes / 2).min(layout.log_bytes / 3).max(layout.log_block_bytes.into())
}

/// Commits are slowed when more than this share of the memory is dirty.
const DIRTY_FROM: f64 = 0.9;

/// Commits are slowed when more than this share of the log's ring is in use: more than two checkpoints' worth.
const LOG_FROM: f64 = 0.75;

/// How far a share has come from `from`, which is 0, to 1.
fn over(share: f64, from: f64) -> f64 {
    (share - from) / (1.0 - from)
}

/// Has checkpoints made when the log is long, and old versions given up when nothing is committed for a moment.
pub(super) fn connect(parts: &Parts, keeper: &Keeper) {
    parts.log.when_long(keeper.wanting());
    let (pool, segments, log) = (Arc::clone(&parts.pool), Arc::clone(&parts.segments), parts.log.clone());
    parts.transactions.watch(parts.devices.clone(), move || Load {
        dirty: over(pool.dirty_bytes() as f64 / pool.budget_bytes() as f64, DIRTY_FROM),
        log: over(log.fill(), LOG_FROM),
        space: match segments.pressure() {
            Pressure::None => Space::Enough,
            Pressure::Tight => Space::Tight,
            Pressure::Full => Space::Full,
        },
    });
    let transactions = Arc::downgrade(&parts.transactions);
    parts.log.when_idle(move || {
        // What could not be given back is no worse than before.
        let _tried = transactions.upgrade().map(|transactions| transactions.settle());
    });
}
