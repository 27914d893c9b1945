//! What was done to trees is counted, and decides how one would be kept.

use std::sync::Arc;

use flashgrain::{Db, Decision, Durability, IndexKind, LsmOptions, LsmWorkload, Tree, TreeOptions};
use flashgrain_device::MemoryDevice;

const KEYS: u64 = 1000;

fn counts(tree: &Tree) -> (u64, u64, u64) {
    let operations = tree.operations();
    (operations.writes, operations.look_ups, operations.scans)
}

/// One write and two look-ups of each key, and a scan.
fn work(db: &Db, tree: &Tree) {
    for key in 0..KEYS {
        let mut batch = db.batch().durability(Durability::None);
        batch.insert(tree, key.to_be_bytes(), [7; 100]).unwrap();
        batch.commit().unwrap();
    }
    (0..2 * KEYS).for_each(|key| drop(tree.get((key / 2).to_be_bytes()).unwrap()));
    assert_eq!(tree.iter().unwrap().count() as u64, KEYS);
}

fn layout(decisions: &[Decision]) -> String {
    decisions[0].setting.value()
}

#[test]
fn counts_of_an_lsm_tree_survive_a_close_and_those_of_a_b_tree_do_not() {
    let device = Arc::new(MemoryDevice::new(64 << 20, 0).unwrap());
    // One worker, so that nothing is lost where threads share a place.
    let builder = || Db::builder().device(device.clone()).cache_bytes(4 << 20).workers(1);
    let lsm = TreeOptions::new().kind(IndexKind::Lsm);
    for opening in 1..4 {
        let db = if opening == 1 { builder().create().unwrap() } else { builder().open().unwrap() };
        let (kept, forgotten) = (db.tree_with("lsm", &lsm).unwrap(), db.tree("btree").unwrap());
        if opening == 1 {
            assert_eq!((counts(&kept), kept.observed_workload()), ((0, 0, 0), None));
        }
        work(&db, &kept);
        work(&db, &forgotten);
        assert_eq!(counts(&kept), (opening * KEYS, 2 * opening * KEYS, opening), "opening {opening}");
        assert_eq!(counts(&forgotten), (KEYS, 2 * KEYS, 1), "opening {opening}");
        drop((kept, forgotten));
        db.close().unwrap();
    }
}

#[test]
fn what_was_observed_decides_how_a_tree_would_be_kept() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db
        .tree_with(
            "t",
            &TreeOptions::new()
                .kind(IndexKind::Lsm)
                .lsm(LsmOptions::new().workload(LsmWorkload::new(1.0, 0.0, 0.0))),
        )
        .unwrap();
    work(&db, &tree);
    (0..KEYS).for_each(|_| assert!(tree.iter().unwrap().next().is_some()));
    let observed = tree.observed_workload().unwrap();
    assert_eq!(observed.percentages(), [25.0, 50.0, 25.0]);
    let options = TreeOptions::new().kind(IndexKind::Lsm).lsm(LsmOptions::new().workload(observed));
    let would = db.layout_of(&options).unwrap();
    let other = db.tree_with("other", &options).unwrap();
    assert_eq!(would, other.layout(), "what is said is what is made");
    assert_ne!(layout(&tree.layout()), layout(&would));
    assert!(would[0].because.starts_with("25 % writes, 50 % look-ups, 25 % scans"), "{would:?}");
    let b_tree = db.layout_of(&TreeOptions::new().node_bytes(16 << 10)).unwrap();
    assert_eq!(b_tree, db.tree_with("b", &TreeOptions::new().node_bytes(16 << 10)).unwrap().layout());
    assert!(db.layout_of(&options.lsm(LsmOptions::new().fanout(1))).is_err());
}
