//! How cursors read tables.

use crate::pool::Pool;
use crate::sync::Arc;
use crate::task::Executor;

/// What to do with blocks that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// They stay in memory for others.
    Kept,
    /// Nobody else wants them: whole partitions are read by few requests, the next one while this one is
    /// used.
    Once,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Reader {
    pub pool: Arc<Pool>,
    pub executor: Executor,
    pub reading: Reading,
}
