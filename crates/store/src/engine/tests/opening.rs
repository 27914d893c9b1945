//! Closing and opening, and stores that are refused.

use std::sync::{Arc, Mutex};

use flashgrain_device::Device;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::world::{Oracle, config, create, drive, layout, open, options, values, work, world};
use crate::Error;
use crate::checkpoint::{Superblock, slots};
use crate::engine::{Engine, NewTree, OverflowValue};
use crate::error::ErrorKind;
use crate::factory::TreePlan;
use crate::layout::{Layout, Placement, SyncMethod};
use crate::task::yield_now;

#[test]
fn a_store_that_was_closed_has_nothing_to_replay_and_one_that_was_not_loses_nothing() {
    for closes in [true, false] {
        let device = drive(1);
        let oracle: Arc<Mutex<Oracle>> = Arc::default();
        let mut replayed = 0;
        for life in 1..=3 {
            let (mut harness, given) = world(&device, 1, options());
            let engine = match life {
                1 => create(&mut harness, given, SyncMethod::Dsync).unwrap(),
                _ => open(&mut harness, given).unwrap(),
            };
            if life > 1 {
                let (recovery, last) = (engine.recovery(), engine.parts().log.last().0);
                assert_eq!(recovery.closed, closes, "life {life}");
                // Nothing either if a checkpoint was the last thing that was done.
                replayed += recovery.records;
                assert_eq!(last, *oracle.lock().unwrap().commits.last_key_value().unwrap().0);
                let looked = Arc::clone(&engine);
                assert!(harness.run(move || values(&looked)) == oracle.lock().unwrap().content(last));
            }
            work(&mut harness, &engine, &oracle, life);
            harness.run(move || {
                let log = &engine.parts().log;
                log.wait(log.end(), crate::Durability::Sync).unwrap();
                if closes {
                    engine.close().unwrap();
                }
            });
        }
        assert_eq!(replayed == 0, closes);
    }
}

/// Once trees are gone, a checkpoint would lack the changes that are in the log alone: one that was requested
/// while the store was being closed is not made.
#[test]
fn no_checkpoint_is_made_after_a_close() {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    harness.run(move || {
        // One is asked for while the last one is made, and waits for its turn.
        let asking = Arc::clone(&engine);
        let asked = engine.executor().run_for(move || while asking.checkpoint().is_ok() {});
        engine.checkpointer.close().unwrap();
        // With threads, the other thread would run here.
        (0..1000).for_each(|_| yield_now());
        engine.close().unwrap_err();
        let last = engine.superblock();
        assert!(last.closed);
        asked.join().unwrap();
        assert_eq!(engine.checkpoint().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(engine.superblock().generation, last.generation);
    });
}

/// Units that an opening has written, and that no checkpoint has, must not be taken for those of the next
/// opening.
#[test]
fn each_opening_numbers_its_units_from_behind_those_of_the_one_before() {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    drop((create(&mut harness, given, SyncMethod::Dsync).unwrap(), harness));
    let mut last = None;
    for _ in 0..3 {
        let (mut harness, given) = world(&device, 1, options());
        let engine = open(&mut harness, given).unwrap();
        let (first, _) = engine.parts().segments.sequences();
        assert!(last < Some(first), "{first:?} after {last:?}");
        // No checkpoint follows, so nothing but the opening itself says which numbers it uses.
        last = Some(first);
    }
}

/// The error of opening a store with a changed superblock.
fn changed(change: impl FnOnce(&mut Superblock)) -> Error {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given.clone(), SyncMethod::Dsync).unwrap();
    let mut superblock = engine.superblock();
    superblock.generation += 1;
    change(&mut superblock);
    slots::save(&given.devices, &superblock).unwrap();
    drop((engine, harness));
    let (mut harness, given) = world(&device, 1, options());
    open(&mut harness, given).err().unwrap()
}

#[test]
fn devices_that_are_not_the_store_s_are_refused() {
    for (what, error) in [
        ("truncated", changed(|superblock| superblock.data_bytes *= 2)),
        ("striped over 3", changed(|superblock| superblock.data_shape.members = 3)),
        (
            "log is on a device of its own",
            changed(|superblock| superblock.log_shape = Some(superblock.data_shape)),
        ),
    ] {
        assert!(matches!(error, Error::Member { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let (mut harness, given) = world(&drive(1), 1, options());
    assert_eq!(open(&mut harness, given).err().unwrap().kind(), ErrorKind::NotFound);
}

#[test]
fn in_place_pages_are_opened_only_after_a_close() {
    let device = drive(1);
    let in_place = Layout { placement: Placement::InPlace, ..layout(SyncMethod::Dsync) };
    let (mut harness, given) = world(&device, 1, options());
    let store = crate::store_id::StoreId([1; 16]);
    let engine = harness.run(move || Engine::create(given, in_place, store).unwrap());
    harness.run(move || engine.close()).unwrap();
    let (mut harness, given) = world(&device, 1, options());
    let engine = open(&mut harness, given).unwrap();
    drop((engine, harness));
    let (mut harness, given) = world(&device, 1, options());
    assert_eq!(open(&mut harness, given).err().unwrap().kind(), ErrorKind::Corrupt);
}

#[test]
fn trees_come_and_go_and_their_names_are_used_again() {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    let first = engine.trees().named("apples").unwrap().entry.id;
    let worked = Arc::clone(&engine);
    harness.run(move || {
        worked.drop_trees(&["apples"]).unwrap();
        assert!(matches!(worked.drop_trees(&["apples"]), Err(Error::NoTree { .. })));
        worked
            .create_trees(&[NewTree {
                name: "apples",
                plan: TreePlan { class: 0, ..TreePlan::default() },
                operator: None,
            }])
            .unwrap();
        let again = worked.create_trees(&[NewTree {
            name: "apples",
            plan: TreePlan { class: 0, ..TreePlan::default() },
            operator: None,
        }]);
        assert!(matches!(again, Err(Error::Exists { .. })));
        worked
            .create_trees(&[NewTree {
                name: "plums",
                plan: TreePlan { class: 2, ..TreePlan::default() },
                operator: None,
            }])
            .unwrap();
    });
    let names = |engine: &Engine| -> Vec<_> {
        engine
            .trees()
            .all()
            .iter()
            .map(|known| (known.name.clone(), known.entry.id, known.tree.index.limits().node_bytes))
            .collect()
    };
    let before = names(&engine);
    assert_eq!(before.len(), 3);
    assert!(engine.trees().named("apples").unwrap().entry.id > first);
    // From the log, from a checkpoint, and with numbers that are not given again.
    drop((engine, harness));
    for _ in 0..2 {
        let (mut harness, given) = world(&device, 1, options());
        let engine = open(&mut harness, given).unwrap();
        assert_eq!(names(&engine), before);
        let next = engine.trees().next_id();
        assert!(before.iter().all(|(_, id, _)| *id < next));
        harness.run(move || engine.checkpoint()).unwrap();
    }
}

#[test]
fn pages_of_a_dropped_tree_are_free_once_nobody_uses_it_also_after_a_crash() {
    let device = drive(1);
    let oracle: Arc<Mutex<Oracle>> = Arc::default();
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    work(&mut harness, &engine, &oracle, 1);
    let pages = |engine: &Engine| engine.parts().pool.pages.count();
    let full = pages(&engine);
    let (used, dropping) = (engine.trees().named("pears"), Arc::clone(&engine));
    harness.run(move || dropping.drop_trees(&["pears"])).unwrap();
    harness.run_until_idle();
    assert_eq!(pages(&engine), full, "it is in use");
    drop(used);
    let dropping = Arc::clone(&engine);
    harness.run(move || dropping.drop_trees(&["apples"])).unwrap();
    // The power fails before, during and after.
    for turns in [0, 3, 1000] {
        (0..turns).for_each(|_| _ = harness.turn());
        let other = drive(1);
        other.restore(&device.image()).unwrap();
        let (mut harness, given) = world(&other, 1, options());
        let engine = open(&mut harness, given).unwrap();
        harness.run_until_idle();
        assert!(full > 20 && pages(&engine) <= 2, "{} of {full} pages are left", pages(&engine));
    }
}

/// Values that were written and never committed, or replaced under a snapshot, are found after the crash;
/// values in use are left alone.
#[test]
fn what_a_crash_leaves_of_overflow_values_is_found() {
    let device = drive(1);
    let oracle: Arc<Mutex<Oracle>> = Arc::default();
    let (mut harness, given) = world(&device, 2, options());
    let engine = create(&mut harness, given, SyncMethod::Dsync).unwrap();
    work(&mut harness, &engine, &oracle, 1);
    let busy = Arc::clone(&engine);
    harness.run(move || {
        let _snapshot = busy.transactions().snapshot().unwrap();
        assert_eq!(busy.reclaim().unwrap(), None, "somebody may see what is not in the trees");
    });
    let leaving = Arc::clone(&engine);
    let pages = harness.run(move || {
        assert_eq!(leaving.reclaim().unwrap(), Some(0), "all of it is referred to");
        let pages = leaving.parts().pool.pages.count();
        // One of several levels, too.
        for length in [5_000, 60_000, 300_000] {
            leaving.overflow_values().write(&[OverflowValue::Bytes(&vec![7; length])]).unwrap();
        }
        leaving.checkpoint().unwrap();
        pages
    });
    let left = engine.parts().pool.pages.count() - pages;
    let last = engine.parts().log.last().0;
    drop((engine, harness));
    let (mut harness, given) = world(&device, 2, options());
    let engine = open(&mut harness, given).unwrap();
    let found = Arc::clone(&engine);
    harness.run(move || {
        assert!(left > 20 && found.parts().pool.pages.count() == pages + left, "{left}");
        assert_eq!(found.reclaim().unwrap(), Some(left));
        assert_eq!((found.parts().pool.pages.count(), found.reclaim().unwrap()), (pages, Some(0)));
        found.checkpoint().unwrap();
    });
    let looked = Arc::clone(&engine);
    assert!(harness.run(move || values(&looked)) == oracle.lock().unwrap().content(last));
}

/// Pages' images lie across the larger sectors then; later writes are aligned to them.
#[test]
fn a_store_made_on_small_sectors_is_read_and_goes_on_on_large_ones() {
    let device = drive(1);
    let oracle: Arc<Mutex<Oracle>> = Arc::default();
    let (mut harness, given) = world(&device, 1, options());
    let engine = create(&mut harness, given, SyncMethod::Fdatasync).unwrap();
    work(&mut harness, &engine, &oracle, 1);
    let ending = Arc::clone(&engine);
    harness.run(move || ending.parts().log.wait(ending.parts().log.end(), crate::Durability::Sync)).unwrap();
    let config = SimConfig { sector_bytes: 4096, ..config() };
    let other = Arc::new(SimDevice::new(&config, "sim:large", 1).unwrap());
    other.restore(&device.image()).unwrap();
    assert_eq!(other.geometry().offset_align_bytes, 4096);
    for life in 2..=4 {
        let (mut harness, given) = world(&other, 1, options());
        let engine = open(&mut harness, given).unwrap();
        let (looked, last) = (Arc::clone(&engine), engine.parts().log.last().0);
        assert!(harness.run(move || values(&looked)) == oracle.lock().unwrap().content(last), "life {life}");
        work(&mut harness, &engine, &oracle, life);
        let ending = Arc::clone(&engine);
        harness.run(move || match life {
            2 => ending.close().unwrap(),
            _ => ending.parts().log.wait(ending.parts().log.end(), crate::Durability::Sync).unwrap(),
        });
    }
}

/// A log in smaller blocks than the drive takes cannot be gone on with.
#[test]
fn a_log_in_blocks_that_the_drive_does_not_take_is_refused_with_the_remedy() {
    let device = drive(1);
    let (mut harness, given) = world(&device, 1, options());
    let small = Layout { log_block_bytes: 512, ..layout(SyncMethod::Fdatasync) };
    let engine =
        harness.run(move || Engine::create(given, small, crate::store_id::StoreId([5; 16]))).unwrap();
    harness.run(move || engine.close()).unwrap();
    let config = SimConfig { sector_bytes: 4096, ..config() };
    let other = Arc::new(SimDevice::new(&config, "sim:large", 1).unwrap());
    other.restore(&device.image()).unwrap();
    let (mut harness, given) = world(&other, 1, options());
    let error = open(&mut harness, given).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Member { why, .. } if why.contains("backup")), "{error}");
}
