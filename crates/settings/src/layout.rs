//! Settings of a store's layout.

use serde::{Deserialize, Serialize};

use crate::declare::settings;
use crate::value::{DEPTHS, SIZES, SPACES};
use crate::{Bytes, Count, Placement, SyncMethod};

settings! {
    /// A setting of a store's layout, with its value.
    pub enum Setting {
        /// Bytes that are gathered for one write.
        WriteUnit(Bytes), write_unit, "write unit", SIZES;
        /// Bytes that are written in sequence and cleaned as a whole.
        Segment(Bytes), segment, "segment", SIZES;
        /// No image of a page crosses a multiple of this unless it is larger.
        ImageBorder(Bytes), image_border, "borders that images keep within", SIZES;
        /// Smallest write of the log.
        LogBlock(Bytes), log_block, "log block", SIZES;
        /// Placement of pages.
        Placement(Placement), placement, "placement";
        /// Largest size of the log.
        Log(Bytes), log, "log", SPACES;
        /// Way to make the log durable.
        SyncMethod(SyncMethod), sync_method, "sync method";
        /// Most bytes that a scan reads ahead.
        ReadAhead(Bytes), read_ahead, "read-ahead", SIZES;
        /// Requests that saturate the drive.
        RequestsInFlight(Count), requests_in_flight, "requests in flight", DEPTHS;
        /// Node size of trees whose creator names none.
        Node(Bytes), node, "node", SIZES;
        /// Bytes of a store of fixed size.
        Space(Bytes), space, "space", SPACES;
        /// Bytes of a new store that grows.
        FirstSpace(Bytes), first_space, "space at first", SPACES;
    }
}

/// A setting of a layout, and why it is so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The setting and its value.
    #[serde(flatten)]
    pub setting: Setting,
    /// The number that led to it, in words.
    pub because: String,
}
