//! Stores of few bytes.

use crate::layout::sizes::Sizes;
use crate::layout::{Layout, LogExtent, Placement, SyncMethod};
use crate::pool::BUDGET_BYTES_MIN;
use crate::store_id::StoreId;
use crate::{Builder, Durability};

/// A store that is smaller than users may make one, so that little work fills its units, segments and log,
/// and each of its bytes can be damaged in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Small {
    /// A write unit; a power of two.
    pub unit_bytes: u32,
    /// A segment; a multiple of the unit.
    pub segment_bytes: u64,
    /// Borders that images keep within; the unit or less.
    pub flash_page_bytes: u32,
    /// The first segments, if they are to be smaller; a multiple of the unit.
    pub first_segment_bytes: Option<u64>,
    /// The log's ring, at first.
    pub log_bytes: u64,
    /// The most that it may become, if the log is to move as the store grows.
    pub log_bytes_max: Option<u64>,
    /// The log's blocks.
    pub log_block_bytes: u32,
    /// How the log is made durable.
    pub sync_method: SyncMethod,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// The most log that is replayed.
    pub recovery_log_bytes: u64,
    /// The store's id, so that the same work leaves the same bytes.
    pub id: [u8; 16],
}

impl Default for Small {
    fn default() -> Self {
        Self {
            unit_bytes: 16 << 10,
            segment_bytes: 64 << 10,
            flash_page_bytes: 16 << 10,
            first_segment_bytes: None,
            log_bytes: 128 << 10,
            log_bytes_max: None,
            log_block_bytes: 4096,
            sync_method: SyncMethod::Fdatasync,
            cache_bytes: BUDGET_BYTES_MIN,
            recovery_log_bytes: 64 << 10,
            id: [5; 16],
        }
    }
}

impl Small {
    /// Segments that a growing store has at first.
    pub const GROWTH_SEGMENTS: u64 = 12;

    /// Superblocks and labels; the log follows them.
    pub const FRONT_BYTES: u64 = 96 << 10;

    /// Bytes of a store with this number of segments, whose log is on the same device.
    pub fn bytes(&self, segments: u64) -> u64 {
        Sizes::of(&self.layout()).device_bytes(segments as usize)
    }

    fn layout(&self) -> Layout {
        let unit = u64::from(self.unit_bytes);
        let log = LogExtent { start_bytes: Self::FRONT_BYTES, bytes: self.log_bytes };
        Layout {
            sector_bytes: 512,
            unit_bytes: self.unit_bytes,
            segment_bytes: self.segment_bytes,
            segments_start_bytes: (Self::FRONT_BYTES + self.log_bytes).next_multiple_of(unit),
            pack_bytes: self.flash_page_bytes,
            first_segment_bytes: self.first_segment_bytes.unwrap_or(self.segment_bytes),
            log,
            log_at_creation: log,
            log_bytes_max: self.log_bytes_max.unwrap_or(self.log_bytes),
            log_block_bytes: self.log_block_bytes,
            placement: Placement::OutOfPlace,
            sync_method: self.sync_method,
            read_ahead_bytes: 64 << 10,
            in_flight: 16,
            half_bandwidth_bytes: 0,
            node_bytes: 4096,
        }
    }
}

impl Builder {
    /// Creates or opens a store of this shape on its device, with one worker.
    pub fn small(mut self, small: &Small) -> Self {
        self = self.store_id(small.id);
        self.overrides.small = Some(small.layout());
        self.options.cache_bytes_min = BUDGET_BYTES_MIN;
        self.options.growth_segments = Small::GROWTH_SEGMENTS;
        self.cache_bytes(small.cache_bytes)
            .recovery_log_bytes(small.recovery_log_bytes)
            .workers(1)
            .durability(Durability::Sync)
    }

    /// The id of a new store, so that the same work leaves the same bytes.
    pub fn store_id(mut self, id: [u8; 16]) -> Self {
        self.overrides.id = Some(StoreId(id));
        self
    }

    /// Of a store under [`Simulated`](crate::Simulated): workers whose queue fails as a whole step again, as
    /// those with threads do, but panic after `retries` failures in a row. They panic at once unless this is
    /// called.
    pub fn step_retries(mut self, retries: u32) -> Self {
        self.options.step_retries = retries;
        self
    }
}
