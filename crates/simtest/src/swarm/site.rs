//! The layout of a store, and its devices.

use std::fmt;

use flashgrain::testing::Small;
use flashgrain::{Builder, Db, SyncMethod};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::draw::{log_uniform, one_of, power_of_two};
use super::feature::{Feature, Features};

/// The least memory of a store with a layout that users may give.
const PUBLIC_CACHE_BYTES_MIN: u64 = 1 << 20;

/// Segments of a device, at least.
const SEGMENTS_MIN: u64 = 24;

/// Superblocks and labels lie before the log.
const FRONT_BYTES: u64 = 512 << 10;

/// The longest block of a small layout's log, and the least number of such blocks.
pub const LOG_BLOCK_BYTES_MAX: u64 = 4 << 10;
pub const LOG_BLOCKS_MIN: u64 = 21;

/// The id of the stores whose commits the history hears of.
pub const OWN_ID: [u8; 16] = [5; 16];

const SYNC_METHODS: [SyncMethod; 3] = [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync];

/// A layout that users may give.
#[derive(Clone, Debug)]
struct Public {
    unit_bytes: u32,
    segment_bytes: u64,
    pack_bytes: Option<u32>,
    log_bytes: Option<u64>,
    log_block_bytes: Option<u32>,
    node_bytes: Option<u32>,
    sync_method: SyncMethod,
}

#[derive(Clone, Debug)]
enum Layout {
    Small(Small),
    Public(Public),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Site {
    layout: Layout,
    /// Of the data device, in the end.
    pub bytes: u64,
    /// Of a device that grows, at first.
    pub first_bytes: u64,
    /// Bytes of keys and values that the trees may have together.
    pub data_bytes: u64,
    /// Of a log device, if there is one.
    pub log_device_bytes: Option<u64>,
}

impl Site {
    /// Drawn; the store may refuse it.
    pub fn draw(random: &mut Pcg64, features: Features) -> Self {
        let is_public = features.has(Feature::PublicLayout);
        let mut site = if is_public { Self::public(random, features) } else { Self::small(random, features) };
        if features.has(Feature::OwnLog) {
            site.log_device_bytes = Some(site.bytes);
        }
        site
    }

    fn small(random: &mut Pcg64, features: Features) -> Self {
        let usual = Small::default();
        let segment_bytes = power_of_two(random, 32 << 10, 128 << 10);
        let grows = features.has(Feature::Grows);
        let log_bytes = log_uniform(random, LOG_BLOCKS_MIN, 64) * LOG_BLOCK_BYTES_MAX;
        let small = Small {
            segment_bytes,
            first_segment_bytes: (grows && random.random()).then_some(usual.unit_bytes.into()),
            sync_method: one_of(random, &SYNC_METHODS),
            flash_page_bytes: power_of_two(random, 4 << 10, 16 << 10) as u32,
            log_block_bytes: one_of(random, &[512, 4096]),
            log_bytes,
            // A log device has one log, of one length.
            log_bytes_max: (grows && random.random() && !features.has(Feature::OwnLog)).then_some(256 << 10),
            recovery_log_bytes: log_bytes / 2,
            id: OWN_ID,
            ..usual
        };
        let few = if features.has(Feature::LsmTrees) { 100 } else { 48 };
        let times = if features.has(Feature::LittleRoom) { 1 } else { 4 };
        // As many bytes whatever a segment has.
        let segments = log_uniform(random, few, 2 * few) * times * usual.segment_bytes / segment_bytes;
        let bytes = small.bytes(segments);
        let room = bytes - small.bytes(0);
        let first_bytes = if grows { small.bytes(Small::GROWTH_SEGMENTS) } else { bytes };
        let data_bytes = room / if features.has(Feature::LittleRoom) { 5 } else { 16 };
        Self { layout: Layout::Small(small), bytes, first_bytes, data_bytes, log_device_bytes: None }
    }

    fn public(random: &mut Pcg64, features: Features) -> Self {
        // Larger units only make larger devices of the same number of units.
        let unit_bytes =
            if random.random_bool(0.8) { 64 << 10 } else { power_of_two(random, 64 << 10, 1 << 20) };
        let segment_bytes = unit_bytes * log_uniform(random, 4, 12);
        let least = SEGMENTS_MIN * segment_bytes * 8 / 7 + FRONT_BYTES;
        let times = if features.has(Feature::LittleRoom) { 2.0 } else { 8.0 };
        let bytes = (least as f64 * random.random_range(1.5..2.0) * times) as u64 / (4 << 10) * (4 << 10);
        let maybe = |random: &mut Pcg64, drawn: u64| random.random::<bool>().then_some(drawn);
        let log_block = power_of_two(random, 4 << 10, 64 << 10);
        let log = log_uniform(random, 1 << 20, bytes / 8) / (64 << 10) * (64 << 10);
        let pack = power_of_two(random, 4 << 10, unit_bytes.min(64 << 10));
        let node = power_of_two(random, 4 << 10, 64 << 10);
        let public = Public {
            unit_bytes: unit_bytes as u32,
            segment_bytes,
            pack_bytes: maybe(random, pack).map(|bytes| bytes as u32),
            log_bytes: maybe(random, log),
            log_block_bytes: maybe(random, log_block).map(|bytes| bytes as u32),
            node_bytes: maybe(random, node).map(|bytes| bytes as u32),
            sync_method: one_of(random, &SYNC_METHODS),
        };
        let first_bytes = if features.has(Feature::Grows) { 1 << 20 } else { bytes };
        let data_bytes = (bytes / if features.has(Feature::LittleRoom) { 4 } else { 16 }).min(4 << 20);
        Self { layout: Layout::Public(public), bytes, first_bytes, data_bytes, log_device_bytes: None }
    }

    /// A builder with this layout, for new stores and for those that are there.
    pub fn builder(&self) -> Builder {
        let builder = Db::builder();
        match &self.layout {
            Layout::Small(small) => builder.small(small),
            Layout::Public(public) => {
                let builder = builder
                    .store_id(OWN_ID)
                    .write_unit_bytes(public.unit_bytes)
                    .segment_bytes(public.segment_bytes)
                    .sync_method(public.sync_method);
                let builder = public.pack_bytes.into_iter().fold(builder, Builder::flash_page_bytes);
                let builder = public.log_bytes.into_iter().fold(builder, Builder::log_bytes);
                let builder = public.log_block_bytes.into_iter().fold(builder, Builder::log_block_bytes);
                public.node_bytes.into_iter().fold(builder, Builder::node_bytes)
            }
        }
    }

    /// The least memory that a store may have.
    pub fn cache_bytes_min(&self) -> u64 {
        match self.layout {
            Layout::Small(_) => Small::default().cache_bytes,
            Layout::Public(_) => PUBLIC_CACHE_BYTES_MIN,
        }
    }

    /// The largest nodes.
    pub fn node_bytes_max(&self) -> u64 {
        match self.layout {
            // A unit has room for one of the next size, and the least memory for some.
            Layout::Small(_) => 8 << 10,
            Layout::Public(_) => 64 << 10,
        }
    }

    /// The most blocks of a node.
    pub fn blocks_max(&self) -> u64 {
        match self.layout {
            Layout::Small(_) => 4,
            Layout::Public(_) => 16,
        }
    }

    /// The largest B of a Bε-tree: all of a store may be a few nodes.
    pub fn be_node_bytes_max(&self) -> u64 {
        match self.layout {
            Layout::Small(_) => 64 << 10,
            Layout::Public(_) => self.bytes / 16,
        }
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        match &self.layout {
            Layout::Small(small) => small.segment_bytes,
            Layout::Public(public) => public.segment_bytes,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layout, bytes, first_bytes, .. } = self;
        write!(formatter, "{bytes} bytes, {first_bytes} at first, {layout:?}")
    }
}
