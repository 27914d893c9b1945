//! The shape of a store, and of its drive.

use std::sync::Arc;

use flashgrain::testing::{Small, blocks_of_trees, kind_of_trees};
use flashgrain::{Builder, Db, IndexKind, SyncMethod};
use flashgrain_device::Device;
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::lsm_trees::segment_bytes;
use crate::media::{Disk, FailPlan};

/// Start of the log in small stores.
const LOG_START_BYTES: u64 = Small::FRONT_BYTES;

/// Of a log that grows: blocks at first, the durable mark's included, and the most bytes.
const FIRST_LOG_BLOCKS: u64 = 10;
const LOG_BYTES_MAX: u64 = 256 << 10;

/// Segments for such a log, and in the place of those that are half as large.
const MORE_SEGMENTS: u64 = 14;

/// Segments more for trees that own whole ones, however few records are in them.
const SEGMENTS_OF_OWNERS: u64 = 64;

/// Segments for a store that takes `segments` usual ones where trees keep records in pages.
pub fn segments_for(segments: u64) -> u64 {
    let of_owners = match kind_of_trees() {
        IndexKind::Lsm => SEGMENTS_OF_OWNERS,
        _ => 0,
    };
    // Of large nodes a unit has room for one, and the rest of it stays empty.
    let factor = if blocks_of_trees() > 1 { 2 } else { 1 };
    (segments * factor + of_owners) * segments_per_usual_one()
}

fn segments_per_usual_one() -> u64 {
    Small::default().segment_bytes / segment_bytes()
}

/// A small store's numbers.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its layout and memory.
    pub small: Small,
    /// Segments of its device.
    pub segments: u64,
    /// Workers.
    pub workers: usize,
    /// Whether its device has fewer segments at first and grows.
    pub grows: bool,
    /// Requests to copies of the store that fail, if any do.
    pub fails: Option<Arc<FailPlan>>,
}

impl Shape {
    /// Drawn.
    pub fn draw(random: &mut Pcg64) -> Self {
        let sync_method =
            [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync][random.random_range(0..3)];
        // With short segments and much memory a memtable becomes several tables.
        let caches = if segment_bytes() < Small::default().segment_bytes { [1, 4, 4] } else { [1, 3, 4] };
        let small = Small {
            sync_method,
            flash_page_bytes: [4096, 16 << 10][random.random_range(0..2)],
            // In small blocks, most records go on in the next one.
            log_block_bytes: [512, 4096][random.random_range(0..2)],
            // With room for more dirty pages than a checkpoint writes at a time, others change them
            // meanwhile.
            cache_bytes: Small::default().cache_bytes * caches[random.random_range(0..3)],
            // In a small ring, the log catches up with the log blocks that the checkpoint under way replaces.
            log_bytes: [84 << 10, 128 << 10][random.random_range(0..2)],
            segment_bytes: segment_bytes(),
            ..Small::default()
        };
        let (segments, workers) = (random.random_range(24..33), random.random_range(1..4));
        Self { small, segments: segments_for(segments), workers, grows: false, fails: None }
    }

    /// Drawn, with many segments on a device of `bytes` bytes.
    pub fn of_bytes(bytes: u64, random: &mut Pcg64) -> Self {
        let drawn = Self::draw(random);
        let small = Small {
            segment_bytes: 32 << 10,
            log_bytes: 64 << 10,
            recovery_log_bytes: 32 << 10,
            ..drawn.small
        };
        let segments = (bytes - small.bytes(0)) / small.segment_bytes;
        Self { small, segments, ..drawn }
    }

    /// A new drive for a copy of the store.
    pub fn copy(&self) -> (Disk, Arc<dyn Device>) {
        let disk = Disk::new(vec![0; self.bytes() as usize]);
        let device = self.fails.as_ref().map_or_else(|| disk.clone(), |plan| disk.failing(plan));
        (disk, Arc::new(device))
    }

    /// The part of the store at this offset of the device, for people.
    pub fn place(&self, offset_bytes: u64) -> String {
        let log_end = LOG_START_BYTES + self.small.log_bytes;
        let segments_start = self.small.bytes(0);
        match offset_bytes {
            0..LOG_START_BYTES => format!("front at {offset_bytes}"),
            _ if offset_bytes < log_end => format!("log at {}", offset_bytes - LOG_START_BYTES),
            _ if offset_bytes < segments_start => format!("nothing at {offset_bytes}"),
            _ => {
                let index =
                    (0..).take_while(|index| self.small.bytes(index + 1) <= offset_bytes).count() as u64;
                format!("segment {index} at {}", offset_bytes - self.small.bytes(index))
            }
        }
    }

    /// The same with as little memory as a store can have: its set of changed pages no longer fits when it is
    /// recovered.
    #[must_use]
    pub fn frugal(&self) -> Self {
        let small = Small { cache_bytes: Small::default().cache_bytes, ..self.small.clone() };
        Self { small, ..self.clone() }
    }

    /// The same, on a device that grows.
    #[must_use]
    pub fn growing(self) -> Self {
        Self { grows: true, ..self }
    }

    /// The same with small segments at first, and a log that begins with a few blocks and moves as it grows.
    #[must_use]
    pub fn with_growing_log(self) -> Self {
        let log_bytes = FIRST_LOG_BLOCKS * u64::from(self.small.log_block_bytes);
        let small = Small {
            first_segment_bytes: Some((self.small.segment_bytes / 2).max(self.small.unit_bytes.into())),
            log_bytes,
            log_bytes_max: Some(LOG_BYTES_MAX),
            ..self.small
        };
        // With half of the size there are twice as many of the first ones.
        let segments = self.segments + MORE_SEGMENTS * segments_per_usual_one();
        Self { small, segments, ..self }
    }

    /// Its device is so large at first.
    pub fn first_bytes(&self) -> u64 {
        if self.grows { self.small.bytes(Small::GROWTH_SEGMENTS) } else { self.bytes() }
    }

    /// The store's device is so large, in the end.
    pub fn bytes(&self) -> u64 {
        self.small.bytes(self.segments)
    }
}

/// A simulated flash drive with a volatile write cache.
pub fn drive(bytes: u64, seed: u64) -> Arc<SimDevice> {
    let config = SimConfig::from_toml(include_str!("drive.toml"), "drive.toml")
        .map(|config| SimConfig { capacity_bytes: bytes, ..config });
    let drive = config.and_then(|config| SimDevice::new(&config, "sim:small", seed));
    Arc::new(drive.unwrap_or_else(|error| unreachable!("the drive of the campaigns: {error}")))
}

/// To create or open a store of this shape.
pub fn small(shape: &Shape, device: Arc<dyn Device>) -> Builder {
    Db::builder().device(device).small(&shape.small).workers(shape.workers).growable(shape.grows)
}
