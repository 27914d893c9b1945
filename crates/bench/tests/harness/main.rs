//! The driver and the loader, on stores in memory and in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod driving;
mod filling;

use std::sync::Arc;

use flashgrain::Durability;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::records::Records;
use flashgrain_bench::store::{Store, StoreLocation, StoreOptions};
use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::SimConfig;

/// A few records.
const RECORDS: Records = Records { count: 20_000, key_bytes: 8, value_bytes: 120 };

/// Processors that are not measured, so that a simulation repeats exactly.
const COSTS: ProcessorCosts = ProcessorCosts {
    look_up_ns: 600,
    write_ns: 2000,
    wait_ns: 500,
    request_ns: 1500,
    ..ProcessorCosts::NONE
};

fn options() -> StoreOptions {
    StoreOptions {
        backend: None,
        polled: false,
        cache_bytes: 2 << 20,
        workers: 2,
        pin: false,
        tasks: 16,
        durability: Durability::Buffered,
        in_place: false,
        log_bytes: None,
        recovery_log_bytes: None,
        node_bytes: None,
        profile: None,
    }
}

/// An empty store in memory.
fn in_memory() -> Store {
    let device = MemoryDevice::new(256 << 20, 256 << 20).unwrap();
    StoreLocation::on(Arc::new(device)).create(&options()).unwrap()
}

/// An empty store on a simulated drive.
fn simulated() -> Store {
    let config = SimConfig::named("sim:905p").unwrap().resized(256 << 20);
    StoreLocation::simulated(&config, "sim:905p", 1, COSTS).unwrap().create(&options()).unwrap()
}
