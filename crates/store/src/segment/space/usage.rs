//! The use of the segments.

use super::{SegmentState, Space};

/// Fullest use of the device by live images. Beyond it the cleaner would move too many bytes for each byte
/// won; besides, packs have gaps.
const FULLEST_PERCENT: u64 = 85;

/// Numbers of segments and bytes, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub segments: u64,
    /// Ready to be taken.
    pub free: u64,
    /// Free as soon as a checkpoint is complete.
    pub pending: u64,
    /// Of the page table.
    pub map: u64,
    /// Segments with unreadable parts.
    pub damaged: u64,
    /// Of all segments but the log's and the owned ones.
    pub bytes: u64,
    pub free_bytes: u64,
    pub pending_bytes: u64,
    pub map_bytes: u64,
    pub damaged_bytes: u64,
    /// Of the log's segments.
    pub log_bytes: u64,
    /// Of segments that are owned whole.
    pub owned_bytes: u64,
    /// Those that are kept for the cleaner and for checkpoints.
    pub reserved_bytes: u64,
    /// Bytes of images that pages refer to.
    pub live_bytes: u64,
}

impl Usage {
    /// Bytes of images that certainly have room besides the live ones, once garbage is cleaned. Admission
    /// keeps this above the dirty bytes in memory, as dirty pages without room would stay in memory for ever.
    pub fn available_bytes(&self) -> u64 {
        self.fillable_bytes().saturating_sub(self.live_bytes)
    }

    /// Bytes of images that there may be.
    fn fillable_bytes(&self) -> u64 {
        let usable = self.bytes.saturating_sub(self.reserved_bytes + self.map_bytes + self.damaged_bytes);
        usable / 100 * FULLEST_PERCENT
    }

    /// Whether the live images and `more_bytes` would have room with `less_bytes` of segments less.
    pub fn has_room_for(mut self, more_bytes: u64, less_bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_sub(less_bytes);
        self.fillable_bytes() >= self.live_bytes + more_bytes
    }
}

impl Space {
    pub fn usage(&self) -> Usage {
        let inner = self.lock();
        let tally = inner.ledger.tally();
        let mut usage = Usage {
            segments: inner.ledger.len() as u64,
            free: inner.ledger.free_count() as u64,
            bytes: inner.ledger.bytes_of_pages(),
            free_bytes: tally.free,
            pending_bytes: tally.pending + tally.freed,
            map_bytes: tally.map,
            damaged_bytes: tally.damaged,
            log_bytes: tally.log,
            owned_bytes: tally.owned,
            reserved_bytes: inner.reserve().reserved(),
            live_bytes: self.live_bytes(),
            ..Usage::default()
        };
        for (_, segment) in inner.ledger.iter() {
            match segment.state {
                SegmentState::Pending(_) | SegmentState::Freed => usage.pending += 1,
                SegmentState::Map => usage.map += 1,
                SegmentState::Free
                | SegmentState::Open
                | SegmentState::Full
                | SegmentState::Log
                | SegmentState::Owned => {}
            }
            usage.damaged += u64::from(segment.damaged);
        }
        usage
    }
}
