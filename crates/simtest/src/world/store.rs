//! Which store, on which drive.

use std::sync::Arc;

use flashgrain::testing::Small;
use flashgrain::{Builder, Db, SyncMethod};
use flashgrain_device::Device;
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::RngExt;
use rand_pcg::Pcg64;

/// A small store's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its layout and memory.
    pub small: Small,
    /// Segments of its device.
    pub segments: u64,
    /// Workers.
    pub workers: usize,
}

impl Shape {
    /// Drawn.
    pub fn draw(random: &mut Pcg64) -> Self {
        let sync_method =
            [SyncMethod::Dsync, SyncMethod::LinkedFlush, SyncMethod::Fdatasync][random.random_range(0..3)];
        let small = Small {
            sync_method,
            flash_page_bytes: [4096, 16 << 10][random.random_range(0..2)],
            ..Small::default()
        };
        Self { small, segments: random.random_range(24..33), workers: random.random_range(1..4) }
    }

    /// The store's device is so large.
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
    Db::builder().device(device).small(&shape.small).workers(shape.workers)
}
