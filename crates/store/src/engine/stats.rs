//! Statistics of all parts of the engine.

use super::{Engine, Recovery};
use crate::checkpoint::CheckpointStats;
use crate::log::LogStats;
use crate::pool::Hits;
use crate::segment::{Usage, Written};

/// Statistics at one moment. Counters begin at zero when the store is opened.
#[derive(Clone, Debug)]
pub(crate) struct EngineStats {
    pub recovery: Recovery,
    pub checkpoints: CheckpointStats,
    pub log: LogStats,
    /// Share of the log's ring that is in use.
    pub log_fill: f64,
    /// Bytes of pages in memory that have changed since they were written.
    pub dirty_bytes: u64,
    pub cache_bytes: u64,
    /// The part of `cache_bytes` that holds records without their pages.
    pub record_bytes: u64,
    pub pages: u64,
    pub hits: Hits,
    pub segments: Usage,
    pub written: Written,
}

impl Engine {
    /// See [`EngineStats`].
    pub fn stats(&self) -> EngineStats {
        let parts = self.parts();
        EngineStats {
            recovery: self.recovery(),
            checkpoints: self.checkpointer.stats(),
            log: parts.log.stats(),
            log_fill: parts.log.fill(),
            dirty_bytes: parts.pool.images.dirty_bytes(),
            cache_bytes: parts.pool.pages.budget_bytes(),
            record_bytes: parts.pool.records_bytes(),
            pages: parts.pool.pages.count(),
            hits: parts.pool.hits(),
            segments: parts.segments.usage(),
            written: parts.segments.written(),
        }
    }
}
