//! Decides which memtables a checkpoint flushes: one that has hardly begun to fill stays in the log, but not
//! for two checkpoints.

use super::TreeResources;
use crate::log::LogRecord;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The last commit that could be seen before the last checkpoint.
#[derive(Default)]
pub(crate) struct Cuts(AtomicU64);

impl Cuts {
    /// Called at a checkpoint. Whether a memtable with this first commit has existed since the last one.
    pub fn pass(&self, first: Option<LogRecord>, shared: &TreeResources) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        if let Some(horizon) = shared.horizon() {
            self.0.store(horizon.visible().0, Ordering::Relaxed);
        }
        first.is_some_and(|first| first.timestamp.0 <= last)
    }
}
