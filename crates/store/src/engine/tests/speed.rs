//! Measures the time of opening and recovering; prints figures, judges nothing.
//! `cargo test --release -p flashgrain --lib engine::tests::speed -- --ignored --nocapture`;
//! FLASHGRAIN_SPEED_RECORDS is the number of records.

use std::sync::Arc;

use flashgrain_device::MemoryDevice;

use super::world::layout;
use crate::Durability;
use crate::engine::{Engine, Given, NewTree};
use crate::factory::TreePlan;
use crate::index::{Write, Written};
use crate::io_context::Devices;
use crate::layout::{Layout, LogExtent, SyncMethod};
use crate::options::Options;
use crate::store_id::StoreId;
use crate::worker::{Bounds, Workers};

const VALUE: [u8; 120] = [7; 120];

fn put(engine: &Engine, number: u64, durability: Durability) {
    let known = engine.trees().named("t").unwrap();
    let key = number.to_be_bytes();
    let written = Written { tree: &known.tree, key: &key, write: Write::Put(&VALUE) };
    engine.transactions().write(written, durability).unwrap();
}

#[test]
#[ignore = "prints figures"]
fn opening_and_recovery() {
    let records: u64 =
        std::env::var("FLASHGRAIN_SPEED_RECORDS").map_or(1_000_000, |text| text.parse().unwrap());
    let device = Arc::new(MemoryDevice::new(records * 300 + (600 << 20), 0).unwrap());
    let devices = Devices::new(device, None);
    let large = Layout {
        unit_bytes: 1 << 20,
        segment_bytes: 8 << 20,
        segments_start_bytes: 513 << 20,
        log: LogExtent { start_bytes: 1 << 20, bytes: 512 << 20 },
        log_at_creation: LogExtent { start_bytes: 1 << 20, bytes: 512 << 20 },
        log_bytes_max: 512 << 20,
        log_block_bytes: 16 << 10,
        ..layout(SyncMethod::Dsync)
    };
    let options = Options {
        cache_bytes: 2 << 30,
        recovery_log_bytes: 1 << 30,
        dirty_bytes_max: Some(4 << 30),
        ..Options::default()
    };
    let start = || {
        let workers = Workers::start(&devices, 2, Bounds::default(), false).unwrap();
        let given = Given {
            devices: devices.clone(),
            executor: workers.executor().clone(),
            options: options.clone(),
            growth_segments: None,
            unfinished: false,
            read_only: false,
        };
        (workers, given)
    };
    let (workers, given) = start();
    let engine = Engine::create(given, large, StoreId([1; 16])).unwrap();
    engine
        .create_trees(&[NewTree {
            name: "t",
            plan: TreePlan { class: 0, ..TreePlan::default() },
            operator: None,
        }])
        .unwrap();
    (0..records).for_each(|number| put(&engine, number, Durability::None));
    engine.close().unwrap();
    println!(
        "{} records, {} pages, {:?}",
        records,
        engine.parts().pool.pages.count(),
        engine.stats().checkpoints
    );
    drop((engine, workers));
    let (workers, given) = start();
    let engine = Engine::open(given).unwrap();
    println!("opened closed: {:?}", engine.recovery());
    let updates = records.min(1_000_000);
    (0..updates).for_each(|number| {
        put(&engine, number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % records, Durability::None)
    });
    put(&engine, 0, Durability::Sync);
    println!("{:?}", engine.stats().checkpoints);
    drop((engine, workers));
    let (_workers, given) = start();
    let engine = Engine::open(given).unwrap();
    let recovery = engine.recovery();
    println!("recovered: {recovery:?}");
    println!("{:.0} records per second", recovery.records as f64 / (recovery.replay.0 as f64 / 1e9));
}
