//! How cursors read tables.

use crate::pool::Pool;
use crate::sync::Arc;
use crate::task::Executor;

/// How blocks that are read are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// They stay in memory for others.
    Kept,
    /// For this reader only: whole partitions are read by few requests, the next one while this one is used.
    Once,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Reader {
    pub pool: Arc<Pool>,
    pub executor: Executor,
    pub reading: Reading,
}
