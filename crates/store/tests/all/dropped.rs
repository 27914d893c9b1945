//! Trees that are dropped while something of them is still wanted.

use std::sync::Arc;
use std::time::Duration;

use flashgrain::testing::{Small, Trouble};
use flashgrain::{
    BeTreeOptions, Builder, CpuCosts, Db, Durability, ErrorKind, IndexKind, LsmLayout, LsmOptions, Readable,
    Simulated, Tree, TreeOptions,
};
use flashgrain_device::{Device, MemoryDevice};
use flashgrain_ssdsim::{SimConfig, SimDevice};

/// They were looked for in pages that were free, or another tree's: giving old versions up failed, and they
/// stayed.
#[test]
fn regression_tombstones_of_a_dropped_tree_are_not_looked_for_in_it() {
    let db = Db::in_memory(8 << 20).unwrap();
    let stays = db.tree("stays").unwrap();
    for round in 0..10u32 {
        let goes = db.tree("goes").unwrap();
        for key in 0..300u32 {
            goes.insert(key.to_be_bytes(), [round as u8; 100]).unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        for key in 0..300u32 {
            goes.remove(key.to_be_bytes()).unwrap();
        }
        assert_eq!(
            snapshot.get(&goes, 7u32.to_be_bytes()).unwrap().as_deref(),
            Some(&[round as u8; 100][..])
        );
        assert!(db.stats().history.records >= 300);
        drop(goes);
        db.drop_tree("goes").unwrap();
        drop(snapshot);
        // Where it was, others are by now.
        for key in 0..300u32 {
            stays.insert((round * 1000 + key).to_be_bytes(), [round as u8; 100]).unwrap();
        }
        db.reclaim().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(db.stats().history.records, 0, "round {round}");
    }
    db.check().unwrap();
    assert_eq!(stays.iter().unwrap().count(), 3000);
}

/// Each of them waited for the device.
#[test]
fn trees_that_are_made_and_dropped_together_wait_for_the_device_once() {
    const TREES: usize = 50;
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(64 << 20, 64 << 20).unwrap());
    let builder = || Db::builder().device(Arc::clone(&device)).cache_bytes(8 << 20).workers(1);
    let db = builder().create().unwrap();
    let names: Vec<String> = (0..TREES).map(|number| format!("tree {number}")).collect();
    let old = db.tree("tree 7").unwrap();
    let syncs = || db.stats().log.syncs;
    let before = syncs();
    let trees = db.trees(&names).unwrap();
    assert_eq!(syncs() - before, 1, "waits for {TREES} new trees");
    assert!(trees.iter().map(Tree::name).eq(&names));
    old.insert("key", "value").unwrap();
    assert_eq!(trees[7].get("key").unwrap().unwrap(), "value", "what was there stays");
    let before = syncs();
    assert_eq!(db.trees(["tree 1", "tree 1"]).unwrap().len(), 2);
    assert_eq!(syncs(), before, "they are there");
    for wrong in [&["tree 3", "none"][..], &["tree 3", "tree 3"]] {
        assert_eq!(db.drop_trees(wrong).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(db.tree_names().len(), TREES, "all or none");
    }
    assert_eq!(db.trees(["new", ""]).unwrap_err().kind(), ErrorKind::Argument);
    let before = syncs();
    db.drop_trees(&names[10..]).unwrap();
    assert_eq!(syncs() - before, 1, "waits for dropped trees");
    db.drop_trees::<&str>([]).unwrap();
    drop((old, trees, db));
    assert_eq!(builder().open().unwrap().tree_names(), names[..10]);
}

fn drive() -> Arc<SimDevice> {
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    Arc::new(SimDevice::new(&config, "sim:dropped", 1).unwrap())
}

/// Pages without an owner in a store that was closed.
fn orphans_of(store: Builder) -> u64 {
    let mut simulated = Simulated::open(store, CpuCosts::default()).unwrap();
    assert!(simulated.stats().recovery.was_closed);
    simulated.run_until_idle();
    simulated.run(|db| db.reclaim()).unwrap().unwrap_or(u64::MAX)
}

/// Pages without an owner in a store that was closed so soon after a tree was dropped, and opened again.
fn left_of_a_dropped_tree(kind: IndexKind, schedule: u32) -> u64 {
    let device = drive();
    let small = Small { segment_bytes: 16 << 10, ..Small::default() };
    let store = || Db::builder().device(device.clone()).small(&small);
    let costs = CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE };
    let mut simulated = Simulated::create(store(), costs).unwrap();
    simulated.set_schedule(schedule.into());
    simulated
        .run(move |db| {
            let lsm = LsmOptions::new().layout(LsmLayout::Tiered).table_bytes(1);
            let tree = db.tree_with("t", &TreeOptions::new().kind(kind).lsm(lsm))?;
            for number in 0..300_u64 {
                let length = if number % 3 == 0 { 3000 } else { 300 };
                let mut batch = db.batch().durability(Durability::None);
                batch.insert(&tree, (number * 7919 % 251).to_be_bytes(), vec![number as u8; length])?;
                batch.commit()?;
            }
            drop(tree);
            db.drop_tree("t")
        })
        .unwrap();
    simulated.run_for(schedule * Duration::from_micros(5));
    simulated.run(|db| db.clone().close()).unwrap();
    drop(simulated);
    orphans_of(store())
}

#[test]
fn regression_closing_in_the_middle_of_freeing_a_dropped_tree_leaks_nothing() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        let left: Vec<u64> = (0..20).map(|schedule| left_of_a_dropped_tree(kind, schedule)).collect();
        assert!(left.iter().all(|pages| *pages == 0), "{kind:?}: {left:?}");
    }
}

/// Pages without an owner after a tree was dropped, and its store closed at once, while others wrote to it.
fn left_of_late_writers(kind: IndexKind, schedule: u64) -> u64 {
    let device = drive();
    let store = || Db::builder().device(device.clone()).small(&Small::default());
    let costs = CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE };
    let mut simulated = Simulated::create(store(), costs).unwrap();
    simulated.set_schedule(schedule);
    let tree = simulated.run(move |db| db.tree_with("t", &TreeOptions::new().kind(kind))).unwrap();
    let writers = (0..3_u8).map(|writer| {
        let tree = tree.clone();
        simulated.spawn(move |_| {
            let written = (0..40_u64).map(|round| tree.insert([round as u8 % 4], vec![writer; 9000]));
            written.filter_map(Result::err).next().map(|error| error.kind())
        })
    });
    let writers: Vec<_> = writers.collect();
    drop(tree);
    simulated.run_for(Duration::from_micros(31 * schedule));
    simulated.run(|db| db.drop_tree("t").and_then(|()| db.clone().close())).unwrap();
    simulated.run_until_idle();
    assert!(writers.into_iter().all(|writer| writer.is_finished()));
    drop(simulated);
    orphans_of(store())
}

#[test]
fn regression_closing_beside_commits_of_a_dropped_tree_leaks_nothing() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        let left: Vec<u64> = (1..40).map(|schedule| left_of_late_writers(kind, schedule)).collect();
        assert!(left.iter().all(|pages| *pages == 0), "{kind:?}: {left:?}");
    }
}

/// Pages without an owner after a Bε-tree was dropped whose flush had ended at this look at a page; `None` if
/// it looks at fewer. Half of the values are replaced in memory, and removals of ranges with long bounds lie
/// between them, so that what enters the root does so in many pieces.
fn left_of_an_ended_flush(nth: u64) -> Option<u64> {
    let small =
        Small { cache_bytes: 2 << 20, log_bytes: 2 << 20, recovery_log_bytes: 1 << 20, ..Small::default() };
    let store = Db::builder().device(drive()).small(&small);
    let mut simulated = Simulated::create(store, CpuCosts::default()).unwrap();
    let key = |number: u32, last: u8| [&[number as u8; 400][..], &[last]].concat();
    let be_tree = BeTreeOptions::new().memtable_bytes(256 << 10);
    let options = TreeOptions::new().kind(IndexKind::BeTree).be_tree(be_tree);
    let is_over = simulated.run(move |db| {
        let tree = db.tree_with("t", &options).unwrap();
        for round in 0..2 {
            for number in 0..24 {
                tree.insert(key(number, 0), vec![round; 3000]).unwrap();
                tree.clear_range(key(number, 1)..key(number, 2)).unwrap();
            }
        }
        let troubled = Trouble::Page.at(nth);
        // What is in memory stays in the log for one checkpoint.
        let flushed = db.checkpoint().and_then(|()| db.checkpoint());
        let is_over = troubled.asked() < nth;
        assert!(flushed.is_ok() || !is_over);
        drop((troubled, tree));
        db.drop_tree("t").unwrap();
        is_over
    });
    simulated.run_until_idle();
    let left = simulated.run(|db| db.reclaim()).unwrap().unwrap_or(u64::MAX);
    (!is_over).then_some(left)
}

#[test]
fn regression_values_that_an_ended_flush_has_left_out_are_freed_with_their_tree() {
    let left: Vec<u64> = (1..).map_while(left_of_an_ended_flush).collect();
    assert!(left.len() > 20 && left.iter().all(|pages| *pages == 0), "{left:?}");
}
