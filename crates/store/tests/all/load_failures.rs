//! Loads that fail: which records are in the tree, of each kind of trees.

use std::sync::Arc;

use flashgrain::testing::trees_of;
use flashgrain::{Db, ErrorKind, IndexKind, LoadError, Simulated, Tree};
use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Trigger};

use super::bulk::{COSTS, drive, on};

const KINDS: [IndexKind; 3] = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];

type Record = ([u8; 4], Vec<u8>);

/// Odd ones with a value over 100 KiB, which takes pages of its own, at every 3,000th.
fn record(number: u32) -> Record {
    let length = if number.is_multiple_of(3000) { 100_000 } else { 60 + number as usize % 50 };
    (number.to_be_bytes(), vec![number as u8; length])
}

/// The keys of a tree.
fn keys(tree: &Tree) -> Vec<u32> {
    tree.iter().unwrap().map(|record| u32::from_be_bytes(record.unwrap().0[..].try_into().unwrap())).collect()
}

/// Asserts that the tree has exactly the first records that the failure says, of those from `first` on.
fn has_the_first(tree: &Tree, first: u32, failure: &LoadError) {
    assert_eq!(failure.loaded, failure.loaded_max, "{failure:?}");
    let found: Vec<u32> = keys(tree).into_iter().filter(|key| *key >= first).collect();
    assert_eq!(found, (first..first + failure.loaded as u32).collect::<Vec<_>>(), "{failure:?}");
}

#[test]
fn a_load_that_is_not_in_order_says_how_many_records_there_are() {
    for kind in KINDS {
        let _kind = trees_of(kind);
        let db = Db::in_memory(64 << 20).unwrap();
        let tree = db.tree("t").unwrap();
        let mut partial = false;
        for (round, count) in [0_u32, 1, 1023, 1024, 1025, 2048, 2999, 3001, 10_000].into_iter().enumerate() {
            let first = 20_000 * round as u32 + 1;
            let unsorted = (first..first + count).map(record).chain([record(0)]);
            let failure = tree.load_counted(unsorted).err();
            let Some(failure) = failure else {
                assert!(count == 0, "{kind:?}");
                continue;
            };
            assert_eq!(failure.source.kind(), ErrorKind::Argument);
            has_the_first(&tree, first, &failure);
            partial |= failure.loaded > 0 && failure.loaded < u64::from(count);
        }
        assert!(partial, "{kind:?}: no load ended in the middle");
    }
}

#[test]
fn a_load_into_a_full_store_says_how_many_records_there_are() {
    for kind in KINDS {
        let _kind = trees_of(kind);
        // With a record in between, a load of an LSM-tree goes on in steps.
        for between in [None, Some(20_001)] {
            let device = Arc::new(MemoryDevice::new(48 << 20, 0).unwrap());
            let db = Db::builder().device(device).cache_bytes(1 << 20).workers(2).create().unwrap();
            let tree = db.tree("t").unwrap();
            let is_new = |key: &u32| Some(*key) != between;
            between.into_iter().for_each(|key: u32| tree.insert(key.to_be_bytes(), "").unwrap());
            let failure = tree.load_counted((1..).filter(is_new).map(record)).unwrap_err();
            assert_eq!((failure.source.kind(), failure.loaded), (ErrorKind::Full, failure.loaded_max));
            let found: Vec<u32> = keys(&tree).into_iter().filter(is_new).collect();
            let expected: Vec<u32> = (1..).filter(is_new).take(failure.loaded as usize).collect();
            assert!(found == expected, "{kind:?}: {failure:?}, but there are {}", found.len());
            assert!(kind == IndexKind::Lsm || failure.loaded > 0, "{kind:?}");
        }
    }
}

/// After a failure that poisons the store, those are there that were promised, and others only as far as was
/// said.
#[test]
fn a_load_that_a_device_fails_says_within_what_bounds_records_are_there() {
    let (mut partial, mut unsure) = (false, false);
    for (seed, kind) in (0..12).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let _kind = trees_of(kind);
        let drive = drive(seed);
        let mut simulated = Simulated::create(on(&drive), COSTS).unwrap();
        simulated.run(|db| db.tree("t").unwrap().load((1..2000).map(record)).unwrap());
        let write = Fault::new(FaultKind::WriteError { done_bytes: 0 });
        drive.inject(write.at(Trigger::Nth(3 + 4 * seed)).on(Operation::Write));
        let failure =
            simulated.run(|db| db.tree("t").unwrap().load_counted((2000..12_000).map(record)).err());
        simulated.abandon();
        drive.disarm_faults();
        let mut simulated = Simulated::open(on(&drive), COSTS).unwrap();
        let found = simulated.run(|db| keys(&db.tree("t").unwrap()));
        let loaded = found.len() as u64 - 1999;
        assert_eq!(found, (1..2000 + loaded as u32).collect::<Vec<_>>(), "{kind:?} {seed}");
        match failure {
            None => assert_eq!(loaded, 10_000),
            Some(failure) => {
                let said = failure.loaded..=failure.loaded_max;
                assert!(said.contains(&loaded), "{kind:?} {seed}: {loaded} of {failure:?}");
                partial |= loaded > 0 && loaded < 10_000;
                unsure |= failure.loaded < failure.loaded_max;
            }
        }
    }
    assert!(partial && unsure, "no load ended in the middle");
}
