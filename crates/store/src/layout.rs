//! The numbers of a store's layout, fixed when it is created.

mod decide;
mod node_blocks;
pub(crate) mod sizes;

pub(crate) use decide::{Ground, NODE_BYTES, Overrides, check_node_bytes, decide};
pub(crate) use flashgrain_settings::{Placement, SyncMethod};
pub use node_blocks::NodeBlocks;

use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::{Bytes, Count};

/// Positions and sizes of everything on the data device, and the learned properties of the drive that opening
/// the store again needs. The superblock contains all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Smallest unit of the devices' offsets and of page images: 512 or 4096.
    pub sector_bytes: u32,
    /// A write unit: the profile's desirable write size. A power of two.
    pub unit_bytes: u32,
    /// A segment; a multiple of the unit.
    pub segment_bytes: u64,
    /// Bytes of the smallest segments of a store that grows, its first ones: see [`crate::layout::sizes`].
    pub first_segment_bytes: u64,
    /// First byte of segment 0; a multiple of the unit.
    pub segments_start_bytes: u64,
    /// Page images do not cross multiples of this unless they are larger: the flash page, or the unit if that
    /// is not known.
    pub pack_bytes: u32,
    /// The log's present position.
    pub log: LogExtent,
    /// The log's first position. Nothing but the log is ever written there.
    pub log_at_creation: LogExtent,
    /// The log does not grow beyond this length.
    pub log_bytes_max: u64,
    /// A log block; the flash page, a multiple of the log device's alignment.
    pub log_block_bytes: u32,
    /// How pages are placed.
    pub placement: Placement,
    /// The cheapest way to make a write of the log durable.
    pub sync_method: SyncMethod,
    /// Bytes that a scan reads ahead at most.
    pub read_ahead_bytes: u32,
    /// Requests in flight that saturate the drive.
    pub in_flight: u32,
    /// Bytes that the busy drive transfers in the time of a setup of its reads; 0: its profile does not say.
    pub half_bandwidth_bytes: u32,
    /// Node size of trees whose creator names none. A power of two, 4 to 64 KiB.
    pub node_bytes: u32,
}

/// The log's position on its device: a ring with one block on either side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogExtent {
    pub start_bytes: u64,
    /// A multiple of the log's block.
    pub bytes: u64,
}

impl LogExtent {
    /// The first byte after it.
    pub fn end_bytes(self) -> u64 {
        self.start_bytes.saturating_add(self.bytes)
    }
}

impl Layout {
    /// Whether the log moves to other places as the store grows.
    pub fn log_grows(&self) -> bool {
        self.log_bytes_max > self.log_at_creation.bytes
    }

    /// Settings of a store that was made before. The reasons are not kept.
    pub fn decisions(&self) -> Vec<Decision> {
        let settings = [
            Setting::WriteUnit(Bytes(self.unit_bytes.into())),
            Setting::Segment(Bytes(self.segment_bytes)),
            Setting::ImageBorder(Bytes(self.pack_bytes.into())),
            Setting::LogBlock(Bytes(self.log_block_bytes.into())),
            Setting::Placement(self.placement),
            Setting::Log(Bytes(self.log_bytes_max)),
            Setting::SyncMethod(self.sync_method),
            Setting::ReadAhead(Bytes(self.read_ahead_bytes.into())),
            Setting::RequestsInFlight(Count(self.in_flight.into())),
            Setting::Node(Bytes(self.node_bytes.into())),
        ];
        let half_bandwidth = (self.half_bandwidth_bytes > 0)
            .then(|| Setting::BusyHalfBandwidth(Bytes(self.half_bandwidth_bytes.into())));
        let settings = settings.into_iter().chain(half_bandwidth);
        let because = || "decided when the store was made".to_owned();
        settings.map(|setting| Decision { setting, because: because() }).collect()
    }
}
