//! When a device grows that may.

use std::sync::atomic::Ordering;

use flashgrain_device::{MemoryDevice, Nanos};

use super::crowded::Crowded;
use super::model::{Durable, Model};
use super::*;
use crate::io_context;

const SEGMENT_BYTES: u64 = 64 << 10;
const SEGMENTS: u64 = 64;

/// Every other segment is cheap to clean, and only as many are free as are kept.
#[test]
fn a_store_grows_when_segments_run_short_however_cheap_cleaning_is() {
    let layout =
        Layout { unit_bytes: 16 << 10, segment_bytes: SEGMENT_BYTES, ..layout(Placement::OutOfPlace) };
    let capacity_bytes = layout.segments_start_bytes + SEGMENTS * SEGMENT_BYTES;
    let devices =
        Devices::new(Arc::new(MemoryDevice::new(capacity_bytes, 2 * capacity_bytes).unwrap()), None);
    let harness = Harness::new(&devices, 2);
    let mut world = World { sim: None, devices, harness };
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    let kept = model.segments.usage().reserved_bytes / SEGMENT_BYTES + 1;
    world.harness.run(move || {
        (1..)
            .take_while(|_| own.segments.usage().free > kept)
            .for_each(|id| own.change(id, 0, 2000).unwrap());
        own.segments.gatherer.write_all().unwrap();
        own.free_some(|index, id| id % 10 < if index % 2 == 0 { 6 } else { 1 });
    });
    let before = model.segments.usage();
    assert!((before.free, before.segments) == (kept, SEGMENTS) && !model.segments.space.is_cleaning_dear());
    assert!(before.live_bytes < SEGMENTS * SEGMENT_BYTES * 65 / 100, "{before:?}");
    model.segments.growth.set(2 * capacity_bytes, SEGMENTS);
    model.dirty_bytes.store(SEGMENT_BYTES, Ordering::Relaxed);
    let own = Arc::clone(&model);
    world.harness.run(move || own.segments.upkeep.tend(true));
    world.harness.run_until_idle();
    assert!(model.segments.usage().segments > SEGMENTS, "{:?}", model.segments.usage());
}

#[test]
fn a_store_grows_when_a_disk_that_was_full_has_room_again() {
    let layout =
        Layout { unit_bytes: 16 << 10, segment_bytes: SEGMENT_BYTES, ..layout(Placement::OutOfPlace) };
    let capacity_bytes = layout.segments_start_bytes + SEGMENTS * SEGMENT_BYTES;
    let device = Crowded::new(capacity_bytes, 2 * capacity_bytes);
    let devices = Devices::new(Arc::clone(&device) as _, None);
    let harness = Harness::new(&devices, 2);
    let mut world = World { sim: None, devices, harness };
    let model = Model::new(&world, &layout, Durable::default());
    let own = Arc::clone(&model);
    model.segments.growth.set(2 * capacity_bytes, SEGMENTS);
    world.harness.run(move || {
        let keeps = own.segments.usage().reserved_bytes / SEGMENT_BYTES + 1;
        (1..)
            .take_while(|_| own.segments.usage().free > keeps)
            .for_each(|id| own.change(id, 0, 2000).unwrap());
    });
    world.harness.run_until_idle();
    assert_eq!(model.segments.usage().segments, SEGMENTS);
    device.make_room_until(2 * capacity_bytes);
    // It asks again after a while.
    let until = io_context::now(&world.devices) + Nanos(30_000_000_000);
    model.dirty_bytes.store(SEGMENT_BYTES, Ordering::Relaxed);
    while model.segments.usage().segments == SEGMENTS && io_context::now(&world.devices) < until {
        let own = Arc::clone(&model);
        world.harness.run(move || own.segments.upkeep.tend(true));
        world.harness.run_until_idle();
    }
    assert!(model.segments.usage().segments > SEGMENTS, "{:?}", model.segments.usage());
}

/// A log that is refused room several times in a row is told that the store is full.
#[test]
fn the_log_gets_room_after_growth_that_is_under_way() {
    let layout =
        Layout { unit_bytes: 16 << 10, segment_bytes: SEGMENT_BYTES, ..layout(Placement::OutOfPlace) };
    let capacity_bytes = layout.segments_start_bytes + SEGMENTS * SEGMENT_BYTES;
    let devices =
        Devices::new(Arc::new(MemoryDevice::new(capacity_bytes, 8 * capacity_bytes).unwrap()), None);
    let harness = Harness::new(&devices, 1);
    let mut world = World { sim: None, devices, harness };
    let model = Model::new(&world, &layout, Durable::default());
    model.segments.growth.set(8 * capacity_bytes, SEGMENTS);
    let own = Arc::clone(&model);
    world.harness.run(move || {
        assert!(own.segments.growth.begin());
        let place = own.segments.log_room.take(3 * capacity_bytes).unwrap();
        assert!(place.bytes >= 3 * capacity_bytes, "{place:?}");
    });
    assert!(model.segments.usage().segments > 4 * SEGMENTS, "{:?}", model.segments.usage());
}
