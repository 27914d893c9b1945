//! Settings that follow from the learned properties of a drive: the decisions of its profile.

use std::time::Duration;

use flashgrain_device::BackendKind;
use serde::{Deserialize, Serialize};

use crate::declare::settings;
use crate::value::{DEPTHS, FRACTIONS, SIZES, WAITS_US};
use crate::{Bytes, Count, Fraction, PagePlacement, SegmentShape, SyncMethod};

settings! {
    /// A setting that follows from the learned properties of a drive, with its value.
    pub enum Setting {
        /// Page size with the cheapest random reads.
        LeafSize(Bytes), leaf_size, "leaf size", SIZES;
        /// Bytes that a store gathers for one write.
        WriteUnit(Bytes), write_unit, "write unit", SIZES;
        /// Bytes that a store writes in sequence and cleans as a whole, and their alignment.
        Segment(SegmentShape), segment, "segment size and alignment", SIZES;
        /// Consecutive bytes on one drive of a set.
        StripeUnit(Bytes), stripe_unit, "stripe unit of a drive set", SIZES;
        /// Node size with the cheapest scans by one reader.
        ScanNode(Bytes), scan_node, "node size for scans at depth 1", SIZES;
        /// Places of pages with the cheapest reads.
        PagePlacement(PagePlacement), page_placement, "page placement in a write unit";
        /// Smallest write of a log that the drive does not pad.
        LogBlock(Bytes), log_block, "log block size", SIZES;
        /// Cheapest way to make a write durable.
        SyncMethod(SyncMethod), sync_method, "sync method";
        /// Time that commits wait to share one durable write.
        GroupCommitWindow(Duration), group_commit_window, "group-commit window", WAITS_US;
        /// Requests that saturate the drive.
        RequestsInFlight(Count), requests_in_flight, "requests in flight", DEPTHS;
        /// Bytes that a busy drive transfers in the time of a setup of its random reads: 1/α of the affine
        /// model for as many readers as gain anything.
        BusyHalfBandwidth(Bytes), busy_half_bandwidth, "half-bandwidth size of a busy drive", SIZES;
        /// Bytes that a scan reads ahead.
        ReadAhead(Bytes), read_ahead, "read-ahead", SIZES;
        /// Largest fraction of writes that leaves reads about as fast as alone.
        BackgroundWrites(Fraction), background_writes, "background writes beside reads", FRACTIONS;
        /// Fastest interface of the kernel.
        Interface(BackendKind), interface, "I/O interface";
    }
}

/// A setting that was decided, and the number that it follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The setting and its value.
    #[serde(flatten)]
    pub setting: Setting,
    /// The number that led to it, in words.
    pub because: String,
    /// Whether it was learned or is a default because its number is undetermined.
    pub from_default: bool,
    /// Whether it is a default because the noise of the measurements hides which alternative is better; false
    /// in older files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden_by_noise: bool,
}

/// The value of a setting, such as [`Setting::write_unit`], and how it was decided; `None` if it was not.
pub fn decided<T>(decisions: &[Decision], setting: fn(&Setting) -> Option<T>) -> Option<(T, &Decision)> {
    decisions.iter().find_map(|decision| Some((setting(&decision.setting)?, decision)))
}
