//! Settings of a store's layout.

use serde::{Deserialize, Serialize};

use crate::declare::settings;
use crate::value::{DEPTHS, SIZES, SPACES};
use crate::{Bytes, Count, FilterBits, LsmLayout, LsmMetadata, Placement, SyncMethod};

settings! {
    /// A setting of a store's layout, or of a tree's, with its value.
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
        /// Bytes that the busy drive transfers in the time of a setup of its reads.
        BusyHalfBandwidth(Bytes), busy_half_bandwidth, "half-bandwidth size of the busy drive", SIZES;
        /// Node size of trees whose creator names none.
        Node(Bytes), node, "node", SIZES;
        /// Blocks of a node; a look-up reads single ones.
        NodeBlocks(Count), node_blocks, "blocks of a node", DEPTHS;
        /// Bytes of a store of fixed size.
        Space(Bytes), space, "space", SPACES;
        /// Bytes of a new store that grows.
        FirstSpace(Bytes), first_space, "space at first", SPACES;
        /// How the runs of an LSM-tree are arranged.
        LsmLayout(LsmLayout), lsm_layout, "layout of runs";
        /// F of an LSM-tree.
        Fanout(Count), fanout, "fanout", DEPTHS;
        /// C of an LSM-tree: runs of level 0 that are merged at once.
        LevelZeroRuns(Count), level_zero_runs, "runs of level 0", DEPTHS;
        /// B′ of an LSM-tree.
        Block(Bytes), block, "block", SIZES;
        /// T of an LSM-tree.
        Table(Bytes), table, "table", SIZES;
        /// Memory that an LSM-tree gathers for one run of level 0.
        Memtable(Bytes), memtable, "memtable", SIZES;
        /// Filters of an LSM-tree.
        FilterBits(FilterBits), filter_bits, "filter";
        /// Whether filters and fence pointers of an LSM-tree stay in memory.
        Metadata(LsmMetadata), metadata, "filters and fence pointers";
        /// Most jobs that merge tables of an LSM-tree at a time.
        Jobs(Count), jobs, "jobs", DEPTHS;
        /// Most ranges of keys into which one is cut.
        Parts(Count), parts, "parts of a job", DEPTHS;
        /// B/F of a Bε-tree: the bytes that a look-up reads on each level.
        NodePart(Bytes), node_part, "part of a node", SIZES;
        /// The pieces that leaves of a Bε-tree are read in.
        Basement(Bytes), basement, "basement node", SIZES;
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
