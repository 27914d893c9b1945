//! A device without room.

use std::sync::Arc;

use super::world::{TREES, config, create, open, options, values, world};
use crate::Durability;
use crate::engine::{Engine, Given};
use crate::error::ErrorKind;
use crate::index::{Write, Written};
use crate::io_context::Devices;
use crate::layout::SyncMethod;
use crate::options::Options;
use crate::segment::tests::crowded::Crowded;
use crate::worker::Harness;
use flashgrain_ssdsim::{SimConfig, SimDevice};

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Writes or removes one key of the first tree.
fn change(engine: &Engine, number: u32, value: Option<&[u8]>) -> Result<(), crate::Error> {
    change_as(engine, number, value, Durability::Buffered)
}

fn change_as(
    engine: &Engine,
    number: u32,
    value: Option<&[u8]>,
    durability: Durability,
) -> Result<(), crate::Error> {
    let known = engine.trees().named(TREES[0]).unwrap();
    let write = value.map_or(Write::Remove, Write::Put);
    let written = Written { tree: &known.tree, key: &key(number), write };
    engine.transactions().write(written, durability).map(drop)
}

/// Writers get an error, readers go on, nothing is lost, and removals make room again.
#[test]
fn a_full_store_refuses_what_grows_and_takes_it_again_when_there_is_room() {
    let mut config = config();
    config.capacity_bytes = 8 << 20;
    config.medium = SimConfig::named("905p").unwrap().medium;
    let device = Arc::new(SimDevice::new(&config, "sim:tiny", 1).unwrap());
    let options = || Options { recovery_log_bytes: 32 << 10, ..options() };
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let value = [b'v'; 500];
    let filled = Arc::clone(&engine);
    let (count, error) = harness.run(move || {
        let mut count = 0;
        loop {
            match change(&filled, count, Some(&value)) {
                Ok(()) => count += 1,
                Err(error) => return (count, error),
            }
            assert!(count < 20_000, "more than the device holds");
        }
    });
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    let live_bytes = u64::from(count) * 500;
    assert!(live_bytes > 3 << 20, "full after {live_bytes} bytes");
    let looked = Arc::clone(&engine);
    assert_eq!(harness.run(move || values(&looked)).len(), count as usize);
    harness.run_until_idle();
    // Durable also for the next opening.
    let log = engine.parts().log.clone();
    harness.run(move || log.wait(log.end(), Durability::Sync)).unwrap();
    drop((engine, harness));
    let (mut harness, given) = world(&device, 1, options());
    let engine = open(&mut harness, given).unwrap();
    let emptied = Arc::clone(&engine);
    harness.run(move || {
        assert_eq!(values(&emptied).len(), count as usize);
        for number in 0..count / 2 {
            change(&emptied, number, None).unwrap_or_else(|error| panic!("remove {number}: {error}"));
        }
        emptied.checkpoint().unwrap();
        for number in 0..count / 4 {
            change(&emptied, number, Some(&value)).unwrap_or_else(|error| panic!("put {number}: {error}"));
        }
        assert_eq!(values(&emptied).len(), (count - count / 2 + count / 4) as usize);
    });
}

/// An opening with little memory writes all changed pages while the log is replayed, and finds room for them,
/// as there was room when they were committed.
#[test]
fn a_store_with_little_room_is_recovered_with_little_memory() {
    let mut config = config();
    config.capacity_bytes = 8 << 20;
    config.medium = SimConfig::named("905p").unwrap().medium;
    for count in [12_000, 15_000, 17_000] {
        let device = Arc::new(SimDevice::new(&config, "sim:tiny", 1).unwrap());
        let options = |cache_bytes| Options { recovery_log_bytes: 256 << 10, cache_bytes, ..options() };
        let (mut harness, given) = world(&device, 2, options(4 << 20));
        let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
        let worked = Arc::clone(&engine);
        let before = harness.run(move || {
            for number in 0..count {
                change_as(&worked, number, Some(&[b'v'; 200]), Durability::None).unwrap();
            }
            worked.checkpoint().unwrap();
            // Scattered, so that every change needs another leaf.
            for number in 0..380 {
                change_as(&worked, number * 7919 % count, Some(&[b'w'; 200]), Durability::None).unwrap();
            }
            let log = &worked.parts().log;
            log.wait(log.end(), Durability::Sync).unwrap();
            values(&worked)
        });
        drop((engine, harness));
        let (mut harness, given) = world(&device, 2, options(192 << 10));
        let engine = open(&mut harness, given).unwrap_or_else(|error| panic!("{count}: {error}"));
        assert!(engine.recovery().records > 20, "{count}: {:?}", engine.recovery());
        let looked = Arc::clone(&engine);
        assert!(harness.run(move || values(&looked)) == before);
    }
}

/// The pages that it had gathered already are not gathered again: the next checkpoint must know where they
/// are.
#[test]
fn what_a_checkpoint_that_found_no_room_has_written_belongs_to_the_next_one() {
    let device = super::world::drive(1);
    let options = || Options { cache_bytes: 8 << 20, recovery_log_bytes: 8 << 20, ..options() };
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let used = Arc::clone(&engine);
    let expected = harness.run(move || {
        let put = |number, value| change_as(&used, number, Some(value), Durability::None).unwrap();
        (0..4000).for_each(|number| put(number, &[b'a'; 500]));
        used.checkpoint().unwrap();
        // More pages than the open segments have room for, though the log has room.
        (0..4000).step_by(12).for_each(|number| put(number, &[b'b'; 500]));
        // Nothing is free: everything counts as needed by a record that is going to be replayed. Nothing is
        // cleaned.
        let segments = &used.parts().segments;
        let layout = used.superblock().layout;
        segments.upkeep.stop();
        for number in 0..segments.usage().segments {
            let place = layout.segments_start_bytes + number * layout.segment_bytes;
            segments.opening.hold(crate::segment::Location::new(place, 4096, 0)).unwrap();
        }
        assert_eq!(used.checkpoint().unwrap_err().kind(), ErrorKind::Full);
        segments.opening.let_go();
        segments.reclaim.free_pending(crate::epoch::Epoch(u32::MAX));
        segments.upkeep.resume();
        used.checkpoint().unwrap();
        values(&used)
    });
    drop((engine, harness));
    let (mut harness, given) = world(&device, 1, options());
    let engine = open(&mut harness, given).unwrap();
    assert!(harness.run(move || values(&engine)) == expected);
}

/// While the store tries to grow, no more pages must become dirty than it has room for: otherwise no
/// checkpoint could be made, and nothing would ever go on.
#[test]
fn a_store_that_grows_until_its_disk_is_full_says_so_and_goes_on() {
    for room_bytes in [3 << 20, 5 << 20, 9 << 20] {
        let device = Crowded::new(2 << 20, 64 << 20);
        device.make_room_until(room_bytes);
        let devices = Devices::new(Arc::clone(&device) as _, None);
        let mut harness = Harness::new(&devices, 2);
        let options = Options { cache_bytes: 1 << 20, recovery_log_bytes: 128 << 10, ..options() };
        let executor = harness.executor().clone();
        let (unfinished, read_only) = (false, false);
        let given = Given { devices, executor, options, growth_segments: Some(4), unfinished, read_only };
        let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let filled = Arc::clone(&engine);
                harness.spawn(task % 2, move || {
                    let put = |number| change(&filled, number, Some(&[b'v'; 500]));
                    (task as u32..).step_by(8).take(40_000).find_map(|number| put(number).err())
                })
            })
            .collect();
        let looked = Arc::clone(&engine);
        let kept = harness.run(move || {
            for task in tasks {
                let error = task.join().unwrap().expect("more than the device holds");
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            }
            values(&looked).len()
        });
        assert!(kept as u64 * 500 > (room_bytes - (1 << 20)) / 3, "full after {kept} records");
        let emptied = Arc::clone(&engine);
        harness.run(move || {
            for (_, key) in values(&emptied).into_keys().take(kept / 2) {
                let number = std::str::from_utf8(&key).unwrap().parse().unwrap();
                change(&emptied, number, None).unwrap_or_else(|error| panic!("remove {number}: {error}"));
            }
            emptied.checkpoint().unwrap();
            for number in 1_000_000..1_000_000 + kept as u32 / 4 {
                change(&emptied, number, Some(&[b'w'; 500])).unwrap();
            }
            assert_eq!(values(&emptied).len(), kept - kept / 2 + kept / 4);
        });
    }
}
