//! What makes checkpoints begin.

use std::sync::Arc;

use crate::checkpoint::{Keeper, Parts};
use crate::layout::Layout;
use crate::options::Options;

/// How much the log grows between checkpoints: what may have to be replayed is what has gathered since the last but one's cut, and a checkpoint must be complete before the ring is full.
pub(super) fn log_step_bytes(layout: &Layout, options: &Options) -> u64 {
    (options.recovery_log_bytes / 2).min(layout.log_bytes / 3).max(layout.log_block_bytes.into())
}

/// Has checkpoints made when the log is long, and old versions given up when nothing is committed for a moment.
pub(super) fn connect(parts: &Parts, keeper: &Keeper) {
    parts.log.when_long(keeper.wanting());
    let transactions = Arc::downgrade(&parts.transactions);
    parts.log.when_idle(move || {
        // What could not be given back is no worse than before.
        let _tried = transactions.upgrade().map(|transactions| transactions.settle());
    });
}
