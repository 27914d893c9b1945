//! Statistics of a store, for users.

use serde::Serialize;

use crate::engine::Engine;
use crate::index::OldVersions;
use crate::io_context::{Role, Traffic};
use crate::layout::Layout;
use crate::segment::Stream;
use crate::txn::{self, ThrottleReason};

/// Statistics of a store. Counters begin at zero when the store is opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Requests to the devices.
    pub device: Traffic,
    /// The cache.
    pub cache: CacheStats,
    /// Writes of pages, by reason.
    pub written: WrittenStats,
    /// The room on the data device.
    pub space: SpaceStats,
    /// The log.
    pub log: LogStats,
    /// Whether commits are being slowed, and why.
    pub throttle: ThrottleStats,
    /// Checkpoints.
    pub checkpoints: CheckpointStats,
    /// Old versions that snapshots still need.
    pub history: HistoryStats,
    /// How transactions were checked for others that were faster.
    pub conflicts: ConflictStats,
    /// Times and counts of opening the store.
    pub recovery: RecoveryStats,
}

/// The cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// The budget.
    pub budget_bytes: u64,
    /// Of pages that have changed since they were written.
    pub dirty_bytes: u64,
    /// Existing pages, in memory or not.
    pub pages: u64,
    /// How often a page was in memory when it was needed.
    pub hits: u64,
    /// How often it had to be read from the device, be it ahead of its use.
    pub misses: u64,
    /// How often it was not needed, as the record that was looked for was known without its page.
    pub record_hits: u64,
    /// Bytes of the budget that such records take.
    pub record_bytes: u64,
}

impl CacheStats {
    /// Of all pages that were needed, those that were in memory. `None` if none was needed yet.
    pub fn hit_share(&self) -> Option<f64> {
        let needed = self.hits + self.misses;
        (needed > 0).then(|| self.hits as f64 / needed as f64)
    }
}

/// Writes of pages, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WrittenStats {
    /// Bytes written for pages that had changed.
    pub page_bytes: u64,
    /// Bytes written for pages that the cleaner moved.
    pub moved_bytes: u64,
    /// Bytes written for overflow values.
    pub overflow_bytes: u64,
    /// Bytes written for the page table.
    pub map_bytes: u64,
    /// Bytes in memory of the changed pages that were written.
    pub dirty_page_bytes: u64,
    /// Bytes written in whole, aligned write units.
    pub full_unit_bytes: u64,
    /// Bytes written otherwise.
    pub partial_unit_bytes: u64,
    /// Segments that were cleaned.
    pub cleaned_segments: u64,
    /// Bytes read for that.
    pub cleaner_read_bytes: u64,
}

impl WrittenStats {
    /// Bytes written for each byte of a changed page, cleaning included. `None` if no page was written.
    pub fn amplification(&self) -> Option<f64> {
        let written = self.page_bytes + self.moved_bytes;
        (self.dirty_page_bytes > 0).then(|| written as f64 / self.dirty_page_bytes as f64)
    }
}

/// The room on the data device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpaceStats {
    /// Bytes of the device.
    pub device_bytes: u64,
    /// Offset of the first segment.
    pub segments_start_bytes: u64,
    /// Of a segment; the first ones of a store that grows are smaller.
    pub segment_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Those that are free.
    pub free_segments: u64,
    /// Those that are free as soon as a checkpoint is complete.
    pub pending_segments: u64,
    /// Bytes of all segments but the log's and those of LSM-trees.
    pub segments_bytes: u64,
    /// Bytes of those that are free.
    pub free_bytes: u64,
    /// Bytes of the log's ring, wherever it is.
    pub log_bytes: u64,
    /// Bytes of the segments that the tables of LSM-trees have.
    pub owned_bytes: u64,
    /// Bytes of the images of all pages.
    pub live_bytes: u64,
}

/// The log.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogStats {
    /// Commits that were written.
    pub records: u64,
    /// Groups that they were written in.
    pub groups: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Times that they were made durable.
    pub syncs: u64,
    /// Seconds that all commits together waited for the write of another one: divided by the time that has
    /// passed, the number of commits that wait on average.
    pub queued_s: f64,
    /// Most commits that waited at the same time.
    pub queue_longest: u64,
    /// Share of the ring that is in use, 0 to 1.
    pub fill: f64,
}

/// Whether commits are being slowed, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThrottleStats {
    /// The resource that is short at present.
    pub reason: ThrottleReason,
    /// Present wait for each operation of a commit, in seconds; a committer alone does one in that time.
    pub delay_s: f64,
    /// Commits that have waited.
    pub delayed: u64,
    /// All their waits together.
    pub waited_s: f64,
    /// Operations a second that a committer alone may do at present; `None` if nothing slows it.
    pub operations_per_s: Option<f64>,
    /// Commits that were refused as the device was full.
    pub refused: u64,
}

/// Checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CheckpointStats {
    /// Those that were completed.
    pub completed: u64,
    /// Duration of the last one, in seconds.
    pub last_s: f64,
    /// Duration of the longest one, in seconds.
    pub longest_s: f64,
    /// The longest time that one kept changes waiting.
    pub longest_stall_s: f64,
}

/// Old versions that snapshots still need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryStats {
    /// Versions, and places of records that were removed.
    pub records: u64,
    /// Generations; the records of one are given up together.
    pub generations: u64,
}

/// How transactions were checked for others that had committed their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConflictStats {
    /// How often the table of recent commits was not enough, so that the tree of a key was asked: once or
    /// twice for a key, as commits look before they have their locks and with them.
    pub asked: u64,
    /// Transactions that were refused since the tree could not tell either: possibly without any conflict.
    pub refused_unsure: u64,
}

/// Times and counts of opening the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecoveryStats {
    /// Whether it had been closed, so that there was nothing to replay.
    pub was_closed: bool,
    /// Reading the page table.
    pub map_s: f64,
    /// Replaying the log.
    pub replay_s: f64,
    /// Commits that were replayed.
    pub records: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// Whether the log ended with commits that were never acknowledged, cut off by a crash.
    pub torn: bool,
    /// Copies of the superblock, of four, that were damaged. The next checkpoints write them anew.
    pub damaged_superblocks: u64,
}

impl From<OldVersions> for HistoryStats {
    fn from(kept: OldVersions) -> Self {
        Self { records: kept.records, generations: kept.generations as u64 }
    }
}

impl From<txn::ThrottleStats> for ThrottleStats {
    fn from(throttle: txn::ThrottleStats) -> Self {
        Self {
            reason: throttle.reason,
            delay_s: throttle.delay.seconds(),
            operations_per_s: (throttle.delay.0 > 0).then(|| 1.0 / throttle.delay.seconds()),
            delayed: throttle.delayed,
            waited_s: throttle.waited.seconds(),
            refused: throttle.refused,
        }
    }
}

impl From<txn::ConflictStats> for ConflictStats {
    fn from(checked: txn::ConflictStats) -> Self {
        Self { asked: checked.asked, refused_unsure: checked.refused_unsure }
    }
}

impl Stats {
    pub(crate) fn of(engine: &Engine, layout: &Layout) -> Self {
        let stats = engine.stats();
        let devices = &engine.parts().devices;
        let (written, usage) = (stats.written, stats.segments);
        let stream = |stream: Stream| written.by_stream_bytes[stream as usize];
        Self {
            device: devices.traffic(),
            cache: CacheStats {
                budget_bytes: stats.cache_bytes,
                dirty_bytes: stats.dirty_bytes,
                pages: stats.pages,
                hits: stats.hits.hits,
                misses: stats.hits.misses,
                record_hits: stats.hits.records,
                record_bytes: stats.record_bytes,
            },
            written: WrittenStats {
                page_bytes: stream(Stream::Fresh),
                moved_bytes: stream(Stream::Moved),
                overflow_bytes: stream(Stream::Overflow),
                map_bytes: stream(Stream::Map),
                dirty_page_bytes: written.dirty_page_bytes,
                full_unit_bytes: written.full_unit_bytes,
                partial_unit_bytes: written.partial_unit_bytes,
                cleaned_segments: written.cleaned_segments,
                cleaner_read_bytes: written.cleaner_read_bytes,
            },
            space: SpaceStats {
                device_bytes: devices.device(Role::Data).capacity_bytes(),
                segments_start_bytes: layout.segments_start_bytes,
                segment_bytes: layout.segment_bytes,
                segments: usage.segments,
                free_segments: usage.free,
                pending_segments: usage.pending,
                segments_bytes: usage.bytes,
                free_bytes: usage.free_bytes,
                log_bytes: engine.parts().log.place().bytes,
                owned_bytes: usage.owned_bytes,
                live_bytes: usage.live_bytes,
            },
            log: LogStats {
                records: stats.log.records,
                groups: stats.log.groups,
                written_bytes: stats.log.bytes,
                syncs: stats.log.flushes,
                queued_s: stats.log.queued.seconds(),
                queue_longest: stats.log.queue_longest,
                fill: stats.log_fill,
            },
            throttle: engine.transactions().throttle_stats().into(),
            checkpoints: CheckpointStats {
                completed: stats.checkpoints.completed,
                last_s: stats.checkpoints.last_duration.seconds(),
                longest_s: stats.checkpoints.longest_duration.seconds(),
                longest_stall_s: stats.checkpoints.longest_cut.seconds(),
            },
            history: engine.transactions().old_versions().into(),
            conflicts: engine.transactions().conflict_stats().into(),
            recovery: RecoveryStats {
                was_closed: stats.recovery.closed,
                map_s: stats.recovery.map.seconds(),
                replay_s: stats.recovery.replay.seconds(),
                records: stats.recovery.records,
                log_bytes: stats.recovery.log_bytes,
                torn: stats.recovery.torn,
                damaged_superblocks: stats.recovery.damaged_superblocks,
            },
        }
    }
}
