//! Pages that are not in memory: how often they are read, and how errors are returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Repeat};

use super::world::{World, fill, seed_of};
use crate::ErrorKind;
use crate::btree::{BTree, Change};
use crate::header::{PageId, PageKind};
use crate::pool::{Access, BUDGET_BYTES_MIN, Pool};

const BUDGET_BYTES: u64 = 1 << 20;

/// Makes pages of 4 KiB.
fn create(pool: &Pool, count: u32) -> Vec<PageId> {
    let one = |seed| {
        let memory = pool.reserve(0).unwrap();
        let section = pool.section();
        let page = section.create(memory, PageKind::Node, false);
        fill(page.page(), page.id(), seed);
        page.id()
    };
    (0..count).map(one).collect()
}

/// Reads pages and looks at them; how often the device was read.
fn read_all(world: &mut World, ids: &[PageId], access: Access) -> u64 {
    let before = world.reads();
    let (pool, ids) = (Arc::clone(&world.pool), ids.to_vec());
    world.harness.run(move || {
        for id in ids {
            let guard = pool.read(id, access).unwrap();
            assert!(seed_of(guard.page(), id).is_some() && guard.is_valid());
        }
    });
    world.reads() - before
}

/// A world with `count` pages. The first are on the device alone.
fn world_with(count: u32) -> (World, Vec<PageId>) {
    let mut world = World::new(BUDGET_BYTES, 2);
    let pool = Arc::clone(&world.pool);
    let ids = world.harness.run(move || create(&pool, count));
    (world, ids)
}

#[test]
fn many_tasks_that_miss_the_same_page_cause_one_read() {
    let (mut world, ids) = world_with(2000);
    let before = world.reads();
    let handles: Vec<_> = (0..20)
        .map(|task| {
            let (pool, id) = (Arc::clone(&world.pool), ids[7]);
            world.harness.spawn(task % 2, move || seed_of(pool.read(id, Access::Normal).unwrap().page(), id))
        })
        .collect();
    world.harness.run_until_idle();
    handles.into_iter().for_each(|handle| assert_eq!(handle.join().unwrap(), Some(7)));
    assert_eq!(world.reads() - before, 1);
}

#[test]
fn a_read_that_fails_leaves_the_page_where_it_was() {
    let (mut world, ids) = world_with(2000);
    world.device.inject(Fault::new(FaultKind::ReadError { done_bytes: 100 }));
    let failed = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..10)
        .map(|task| {
            let (pool, id, failed) = (Arc::clone(&world.pool), ids[7], Arc::clone(&failed));
            world.harness.spawn(task % 2, move || match pool.read(id, Access::Normal) {
                Ok(guard) => assert_eq!(seed_of(guard.page(), id), Some(7)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    world.harness.run_until_idle();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    // The tasks that waited have tried again themselves.
    assert_eq!(failed.load(Ordering::Relaxed), 1);
    // The frame was not lost with it.
    assert!(read_all(&mut world, &ids, Access::Normal) > 1700);
}

#[test]
fn a_page_that_does_not_exist_is_an_error() {
    let (mut world, ids) = world_with(10);
    let pool = Arc::clone(&world.pool);
    world.harness.run(move || {
        for id in [0, ids.len() as u64 + 1, PageId::FIRST_VOLATILE, u64::MAX] {
            assert_eq!(
                pool.read(PageId(id), Access::Normal).err().unwrap().kind(),
                ErrorKind::Corrupt,
                "{id}"
            );
        }
    });
}

#[test]
fn a_scan_does_not_flush_what_is_in_use() {
    let flushed_by = |access: Access| {
        let (mut world, ids) = world_with(3000);
        let (in_use, others) = ids.split_at(150);
        read_all(&mut world, in_use, Access::Normal);
        assert!(read_all(&mut world, others, access) > 2500);
        read_all(&mut world, in_use, Access::Normal)
    };
    // A scan takes a sixteenth of the cache, 16 pages.
    let flushed = (flushed_by(Access::Scan), flushed_by(Access::Normal));
    assert!(flushed.0 <= 16 && flushed.1 == 150, "{flushed:?}");
}

#[test]
fn what_is_used_stays_in_memory() {
    let (mut world, ids) = world_with(3000);
    let (in_use, others) = ids.split_at(50);
    let mut again = Vec::new();
    for some in others.chunks(50) {
        again.push(read_all(&mut world, in_use, Access::Normal));
        read_all(&mut world, some, Access::Normal);
    }
    // The first turn of the clock does not know yet which pages are used.
    assert!(again[0] == 50 && again[10..].iter().all(|reads| *reads == 0), "{again:?}");
}

#[test]
fn when_writes_fail_changes_stop_and_nothing_waits_for_ever() {
    let (mut world, ids) = world_with(1000);
    world.device.inject(
        Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write).repeat(Repeat::Sticky),
    );
    let pool = Arc::clone(&world.pool);
    world.harness.run(move || {
        let error = loop {
            match pool.reserve(0) {
                Ok(memory) => drop(pool.section().create(memory, PageKind::Node, false)),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        // Pages in memory can be read.
        let newest = PageId(pool.pages.next_page().0 - 1);
        assert!(pool.read(newest, Access::Normal).is_ok());
        assert_eq!(pool.read(ids[0], Access::Normal).err().unwrap().kind(), ErrorKind::Poisoned);
    });
}

#[test]
fn when_writes_fail_pages_that_did_not_change_make_room() {
    let (mut world, ids) = world_with(1000);
    let (pool, segments) = (Arc::clone(&world.pool), Arc::clone(&world.segments));
    world.harness.run(move || {
        pool.checkpoints().flush_epoch(pool.epoch()).unwrap();
        segments.gatherer.write_all().unwrap();
    });
    world.device.inject(
        Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write).repeat(Repeat::Sticky),
    );
    let pool = Arc::clone(&world.pool);
    world.harness.run(move || create(&pool, 100));
    assert!(read_all(&mut world, &ids, Access::Normal) > 500);
}

#[test]
fn a_checkpoint_that_waits_for_buffers_is_told_that_writes_fail() {
    // More than all buffers take.
    let mut world = World::new(96 << 20, 1);
    let pool = Arc::clone(&world.pool);
    world.harness.run(move || create(&pool, 12_000));
    world.device.inject(
        Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write).repeat(Repeat::Sticky),
    );
    let pool = Arc::clone(&world.pool);
    let refused = world.harness.run(move || pool.checkpoints().flush_epoch(pool.epoch()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn a_page_that_a_checkpoint_needs_as_it_is_stays_so_when_nothing_is_written_any_more() {
    let (mut world, ids) = world_with(1);
    let pool = Arc::clone(&world.pool);
    pool.checkpoints().cut(|| ());
    pool.images.store().give_up("a write that failed");
    let refused = world.harness.run(move || {
        let guard = pool.read(ids[0], Access::Normal).unwrap();
        let section = pool.section();
        let refused = section.lock(&guard).err();
        drop(section);
        (refused.map(|denied| pool.images.recover(denied).unwrap_err().kind()), seed_of(guard.page(), ids[0]))
    });
    assert_eq!(refused, (Some(ErrorKind::Poisoned), Some(0)));
}

/// With memory full of changed pages that would not be written, a split took the memory for its new node from
/// the nodes on its way, found them gone, and began again, for ever.
#[test]
fn regression_nothing_is_split_when_nothing_is_written_any_more() {
    let mut world = World::new(BUDGET_BYTES_MIN, 1);
    world.pool.images.store().give_up("a write that failed");
    let pool = Arc::clone(&world.pool);
    let refused = world.harness.run(move || pool.reserve(0).map(drop));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
}

/// With memory full, but for one frame, of changed pages that would not be written, a node took it from the
/// one above, and the look-up began again, for ever.
#[test]
fn regression_a_look_up_ends_when_the_way_to_its_leaf_does_not_fit_into_memory() {
    let mut world = World::new(BUDGET_BYTES_MIN, 1);
    let key = |number: u32| [&number.to_be_bytes()[..], &[b'.'; 900]].concat();
    let (pool, segments) = (Arc::clone(&world.pool), Arc::clone(&world.segments));
    let root = world.harness.run(move || {
        let tree = BTree::create(&pool, 0, false).unwrap();
        for number in 0..100 {
            tree.update(&key(number), &mut |_| Change::Put(b"value")).unwrap();
        }
        pool.checkpoints().flush_epoch(pool.epoch()).unwrap();
        segments.gatherer.write_all().unwrap();
        tree.root()
    });
    world.device.inject(
        Fault::new(FaultKind::WriteError { done_bytes: 0 }).on(Operation::Write).repeat(Repeat::Sticky),
    );
    let pool = Arc::clone(&world.pool);
    let mut made = world.harness.run(move || {
        let mut made = Vec::new();
        while let Ok(memory) = pool.reserve(0) {
            made.push(pool.section().create(memory, PageKind::Node, false).id());
        }
        made
    });
    let mut look_up = || {
        let tree = BTree::open(&world.pool, root, 0);
        let found = world.harness.spawn(0, move || tree.get(&key(70), &mut Vec::new(), &mut None));
        (0..100_000).for_each(|_| _ = world.harness.turn());
        assert!(found.is_finished(), "it goes on for ever");
        found.join().unwrap()
    };
    let mut refused = 0;
    loop {
        match look_up() {
            Ok(found) => break assert!(found),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}"),
        }
        refused += 1;
        // Memory for one more.
        let newest = world.pool.read(made.pop().unwrap(), Access::Normal).unwrap();
        let section = world.pool.section();
        section.free(section.lock(&newest).unwrap());
    }
    // With no frame, and with one.
    assert!(refused == 2, "{refused}");
}

#[test]
fn prefetched_pages_are_there() {
    let (mut world, ids) = world_with(2000);
    ids[10..20].iter().for_each(|id| world.pool.prefetch(*id));
    world.harness.run_until_idle();
    assert_eq!(read_all(&mut world, &ids[10..20], Access::Normal), 0);
}

/// Loads pages together in a task; how often the device was read.
fn load_together(world: &mut World, ids: &[PageId]) -> u64 {
    let before = world.reads();
    let (pool, ids) = (Arc::clone(&world.pool), ids.to_vec());
    world.harness.run(move || pool.loader().load_together(&ids, Access::Normal));
    world.reads() - before
}

#[test]
fn pages_side_by_side_are_loaded_by_one_request() {
    let (mut world, ids) = world_with(2000);
    assert_eq!(load_together(&mut world, &ids[10..14]), 1);
    assert_eq!(read_all(&mut world, &ids[10..14], Access::Normal), 0);
    // One of them is in memory, and a page far away is not for the same request.
    assert_eq!(load_together(&mut world, &[ids[9], ids[10], ids[8], ids[400]]), 1);
    assert_eq!(read_all(&mut world, &ids[8..10], Access::Normal), 0);
    assert_eq!(read_all(&mut world, &ids[400..401], Access::Normal), 1);
    // A page without neighbours is loaded by the task that needs it.
    for ids in [&ids[10..12], &ids[50..51], &[ids[60], ids[700]], &[]] {
        assert_eq!(load_together(&mut world, ids), 0);
    }
    world.pool.prefetch_all(&ids[100..104]);
    world.pool.prefetch_all(&[ids[150], ids[300], ids[151], ids[301]]);
    let before = world.reads();
    world.harness.run_until_idle();
    assert_eq!(world.reads() - before, 1 + 4);
    assert_eq!(read_all(&mut world, &ids[100..104], Access::Normal), 0);
}

/// A scan asked for the next leaves and began to read the first of them: the others were left out.
#[test]
fn regression_pages_are_loaded_ahead_though_others_load_some_of_them() {
    let (mut world, ids) = world_with(2000);
    let mut load_ahead = |there: &[PageId], ids: &[PageId]| {
        read_all(&mut world, there, Access::Normal);
        let (pool, ahead) = (Arc::clone(&world.pool), ids.to_vec());
        world.harness.run(move || pool.loader().load_all_ahead(&ahead));
        read_all(&mut world, ids, Access::Normal)
    };
    assert_eq!(load_ahead(&ids[100..101], &ids[100..104]), 0);
    assert_eq!(load_ahead(&ids[200..203], &ids[200..204]), 0);
}

/// Scans of a small cache asked for ever more pages, each with a task that waited for memory, until the
/// system gave no stack any more: not even to the tasks that were to write pages and so make room.
#[test]
fn regression_few_tasks_load_ahead_in_a_small_cache() {
    let (mut world, ids) = world_with(2000);
    // When they have ended, others may begin.
    for _ in 0..2 {
        ids.iter().for_each(|id| world.pool.prefetch(*id));
        world.harness.turn();
        // One for sixteen pages that fit.
        assert_eq!(world.harness.unfinished(), 16);
        world.harness.run_until_idle();
        assert_eq!(world.harness.unfinished(), 0);
    }
}

#[test]
fn what_is_loaded_ahead_waits_for_no_memory() {
    let (mut world, ids) = world_with(2000);
    let pool = Arc::clone(&world.pool);
    let _takes_all = world.harness.spawn(0, move || {
        let mut all = Vec::new();
        loop {
            all.push(pool.reserve(0).unwrap());
        }
    });
    world.harness.run_until_idle();
    let (before, unfinished) = (world.reads(), world.harness.unfinished());
    ids[10..20].iter().for_each(|id| world.pool.prefetch(*id));
    world.pool.prefetch_all(&ids[100..104]);
    world.harness.run_until_idle();
    assert_eq!((world.reads() - before, world.harness.unfinished()), (0, unfinished));
}

#[test]
fn pages_that_cannot_be_loaded_together_are_loaded_alone() {
    let (mut world, ids) = world_with(2000);
    let run_from = |world: &World, start: usize| {
        (start..).find(|start| world.pool.loader().side_by_side(&ids[*start..start + 4]).len() == 4).unwrap()
    };
    let first = run_from(&world, 0);
    world.device.inject(Fault::new(FaultKind::ReadError { done_bytes: 5000 }).on(Operation::Read));
    // Failed reads are not counted.
    assert_eq!(load_together(&mut world, &ids[first..first + 4]), 0);
    assert_eq!(read_all(&mut world, &ids[first..first + 4], Access::Normal), 4);
    // One of them is damaged on its way.
    let second = run_from(&world, first + 4);
    world.device.inject(Fault::new(FaultKind::FlipInFlight { bit: Some(8 * 5000) }).on(Operation::Read));
    assert_eq!(load_together(&mut world, &ids[second..second + 4]), 1);
    assert_eq!(read_all(&mut world, &ids[second..second + 4], Access::Normal), 1);
}

/// More tasks than frames. Each task needs several at a time.
#[test]
fn tasks_that_want_more_memory_than_there_is_take_turns() {
    let mut world = World::new(BUDGET_BYTES_MIN, 2);
    let handles: Vec<_> = (0..100)
        .map(|task| {
            let pool = Arc::clone(&world.pool);
            world.harness.spawn(task % 2, move || create(&pool, 20).len())
        })
        .collect();
    world.harness.run_until_idle();
    assert_eq!(handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>(), 2000);
}
