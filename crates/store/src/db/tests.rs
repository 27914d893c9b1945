use std::cell::{Cell, RefCell};

#[cfg(feature = "testing")]
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::*;
use crate::index::Clearing;
#[cfg(feature = "testing")]
use crate::index::May;
#[cfg(feature = "testing")]
use crate::testing::{Small, Trouble};
#[cfg(feature = "testing")]
use crate::{BeTreeOptions, CpuCosts};
use crate::{IndexKind, LsmLayout, LsmOptions};

/// Values of each tree; some are in nodes or tables, and some in memory.
const VALUES: usize = 90;

/// The event that ends the clearing of a tree.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It is stopped when it asks for the nth time.
    Asked(usize),
    /// The nth overflow value cannot be freed.
    NotFreed(usize),
}

/// How a tree is cleared until this: the overflow values that were freed by then, or were to be, and those
/// that it still has.
fn cleared_until(kind: IndexKind, end: End) -> [Vec<Vec<u8>>; 2] {
    let db = Db::in_memory(8 << 20).unwrap();
    let lsm = LsmOptions::new().layout(LsmLayout::Tiered).table_bytes(1);
    let tree = db.tree_with("t", &TreeOptions::new().kind(kind).lsm(lsm)).unwrap();
    for number in 0..VALUES {
        tree.insert((number * 31 % VALUES).to_be_bytes(), vec![number as u8; 20_000]).unwrap();
        if number % 20 == 19 {
            db.checkpoint().unwrap();
        }
    }
    let index = &db.core.engine().trees().named("t").unwrap().tree.index;
    let (freed, asked) = (RefCell::new(Vec::new()), Cell::new(0));
    let free_overflow = |reference: &[u8]| {
        freed.borrow_mut().push(reference.to_vec());
        let is_last = matches!(end, End::NotFreed(nth) if nth == freed.borrow().len());
        if is_last { Err(Error::Closed) } else { Ok(()) }
    };
    let go_on = || {
        asked.set(asked.get() + 1);
        let is_last = matches!(end, End::Asked(nth) if nth == asked.get());
        if is_last { Err(Error::Closed) } else { Ok(()) }
    };
    let ended = index.clear(&Clearing { free_overflow: &free_overflow, go_on: &go_on });
    assert!(matches!(ended, Err(Error::Closed)), "{kind:?} {end:?}: {ended:?}");
    let mut left = Vec::new();
    index
        .walk(&mut |_| (), &mut |_, version, reference| {
            if version.is_overflow() {
                left.push(reference.to_vec());
            }
        })
        .unwrap();
    [freed.into_inner(), left]
}

/// Nothing would refer to the rest after the store is closed, if a tree were stopped between the two.
#[test]
fn a_dropped_tree_is_stopped_only_where_all_that_has_left_it_is_free() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        for end in (1..4).map(End::Asked).chain([1, 2, VALUES / 2, VALUES].map(End::NotFreed)) {
            let mut all = cleared_until(kind, end).concat();
            assert_eq!(all.len(), VALUES, "{kind:?} {end:?}");
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), VALUES, "{kind:?} {end:?}: a value is freed that the tree still has");
        }
    }
}

/// Records of a Bε-tree, all in memory: short ones and overflow values. A part of them was written twice, or
/// is in a range that was removed.
#[cfg(feature = "testing")]
fn fill_memtable(db: &Db) -> Result<(), Error> {
    let be_tree = BeTreeOptions::new().node_bytes(64 << 10).fanout(8).memtable_bytes(1 << 20);
    let tree = db.tree_with("t", &TreeOptions::new().kind(IndexKind::BeTree).be_tree(be_tree))?;
    let key = |number: u32| number.to_be_bytes();
    for round in 0..2 {
        for number in 0..120 {
            let length = if number % 4 == round { 5000 } else { 300 };
            tree.insert(key(number), vec![number as u8; length])?;
        }
        // Of the last keys all goes, and removals take as much room as records.
        for number in (20..60).chain(100..120) {
            tree.clear_range(&key(number)[..]..&[&key(number)[..], &[7; 100]].concat()[..])?;
        }
    }
    Ok(())
}

/// Fails the flush of a memtable at the `nth` page that it reads, and checks the store: no value is without a
/// reference, and no reference is to a value that is gone, which the check reads. Returns whether the flush
/// has failed.
#[cfg(feature = "testing")]
fn flush_that_fails(nth: u64, drops: bool) -> bool {
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    let device = Arc::new(SimDevice::new(&config, "sim:left-out", 1).unwrap());
    let small = Small { log_bytes: 8 << 20, cache_bytes: 8 << 20, ..Small::default() };
    let small = Small { recovery_log_bytes: 8 << 20, ..small };
    let mut simulated =
        Simulated::create(Db::builder().device(device).small(&small), CpuCosts::default()).unwrap();
    let failed = simulated.run(move |db| {
        fill_memtable(db).unwrap();
        let known = db.core.engine().trees().named("t").unwrap();
        let troubled = Trouble::Page.at(nth);
        let flushed = known.tree.index.before_cut(May::Wait);
        drop(troubled);
        flushed.is_err()
    });
    simulated.run_until_idle();
    simulated.run(move |db| {
        db.check().unwrap_or_else(|error| panic!("page {nth}: {error}"));
        assert_eq!(db.reclaim().unwrap(), Some(0), "page {nth}, after the flush");
        match drops {
            true => db.drop_tree("t").unwrap(),
            false => db.checkpoint().unwrap(),
        }
    });
    simulated.run_until_idle();
    simulated.run(move |db| {
        db.check().unwrap_or_else(|error| panic!("page {nth}, later: {error}"));
        assert_eq!(db.reclaim().unwrap(), Some(0), "page {nth}, drops {drops}");
    });
    failed
}

/// A flush that ended early forgot values that it had left out of the records flushed before; others were
/// given up, and again by the next flush.
#[cfg(feature = "testing")]
#[test]
fn regression_a_flush_that_ends_early_gives_up_what_it_has_left_out_once() {
    for drops in [false, true] {
        let failures = (1..).take_while(|nth| flush_that_fails(*nth, drops)).count();
        assert!(failures > 20, "{failures}");
    }
}
