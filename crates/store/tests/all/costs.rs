//! What an operation costs does not depend on what was done before it: counted in versions that are looked
//! at.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use flashgrain::testing::{observe, steps};
use flashgrain::{AddOperator, Db, ErrorKind, IndexKind, Readable, Snapshot, Tree, TreeOptions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const KINDS: [IndexKind; 2] = [IndexKind::Lsm, IndexKind::BeTree];

fn tree(kind: IndexKind) -> (Db, Tree) {
    let db = Db::in_memory(64 << 20).unwrap();
    let options = TreeOptions::new().kind(kind).merge_operator(AddOperator::NAME);
    let tree = db.tree_with("t", &options).unwrap();
    (db, tree)
}

fn steps_of<T>(act: impl FnOnce() -> T) -> (u64, T) {
    let before = steps();
    let made = act();
    (steps() - before, made)
}

#[test]
fn a_counter_is_read_in_few_steps_however_often_it_was_raised() {
    for kind in KINDS {
        let (db, tree) = tree(kind);
        let mut snapshots: Vec<(u64, Snapshot)> = Vec::new();
        let mut all_steps = 0;
        for raised in 1..=4_000_u64 {
            tree.merge("hits", 1_u64.to_le_bytes()).unwrap();
            if raised % 37 == 0 {
                snapshots.push((raised, db.snapshot().unwrap()));
            }
            let (taken, value) = steps_of(|| tree.get("hits").unwrap());
            assert_eq!(value.unwrap(), raised.to_le_bytes());
            all_steps += taken;
            let (taken, first) = steps_of(|| tree.iter().unwrap().next().unwrap().unwrap());
            assert_eq!(first.1, raised.to_le_bytes());
            all_steps += taken;
        }
        // A memtable may be on its way to a table, or to pages, at any time.
        assert!(all_steps < 4_000 * 100, "{kind:?}: {all_steps} steps");
        for (raised, snapshot) in &snapshots {
            assert_eq!(snapshot.get(&tree, "hits").unwrap().unwrap(), raised.to_le_bytes());
            let mut all = snapshot.iter(&tree).unwrap();
            assert_eq!(all.next_back().unwrap().unwrap().1, raised.to_le_bytes());
        }
    }
}

#[test]
fn a_scan_passes_a_key_in_few_steps_however_often_it_was_written() {
    for kind in KINDS {
        let (_db, tree) = tree(kind);
        for number in 0..2_000_u32 {
            tree.insert("a", number.to_be_bytes()).unwrap();
        }
        tree.insert("b", "x").unwrap();
        let (forward, all) = steps_of(|| tree.iter().unwrap().count());
        let (backward, same) = steps_of(|| tree.iter().unwrap().rev().count());
        assert_eq!((all, same), (2, 2));
        assert!(forward + backward < 20, "{kind:?}: {forward} and {backward} steps");
    }
}

#[test]
fn the_first_record_takes_few_steps_however_many_there_are() {
    for kind in KINDS {
        let (_db, tree) = tree(kind);
        for number in 0..5_000_u32 {
            tree.insert(number.to_be_bytes(), [7; 100]).unwrap();
        }
        let (first, found) = steps_of(|| tree.iter().unwrap().next().unwrap().unwrap());
        assert_eq!(found.0, 0_u32.to_be_bytes());
        let (last, found) = steps_of(|| tree.iter().unwrap().next_back().unwrap().unwrap());
        assert_eq!(found.0, 4_999_u32.to_be_bytes());
        assert!(first + last < 200, "{kind:?}: {first} and {last} steps");
    }
}

/// Each of them takes the first record, or the last one, in front of or behind records that stay.
#[test]
fn a_queue_takes_as_many_steps_for_the_last_record_as_for_the_first() {
    let number = |prefix: &str, number: u32| [prefix.as_bytes(), &number.to_be_bytes()].concat();
    for kind in KINDS {
        for takes_last in [false, true] {
            let (_db, tree) = tree(kind);
            for prefix in ["a", "b", "c"] {
                (0..1_500).for_each(|own| tree.insert(number(prefix, own), [7; 100]).unwrap());
            }
            let mut all_steps = 0;
            for taken in 0..1_500 {
                let (steps, found) = steps_of(|| {
                    let mut all = tree.prefix("b").unwrap();
                    if takes_last { all.next_back() } else { all.next() }.unwrap().unwrap().0
                });
                let expected = if takes_last { 1_499 - taken } else { taken };
                assert_eq!(found, number("b", expected), "{kind:?}");
                tree.remove(&found).unwrap();
                all_steps += steps;
            }
            assert!(tree.prefix("b").unwrap().next().is_none());
            assert_eq!(tree.iter().unwrap().count(), 3_000);
            assert!(all_steps < 1_500 * 250, "{kind:?}, last {takes_last}: {all_steps} steps");
        }
    }
}

fn expect(db: &impl Readable, tree: &Tree, model: &BTreeMap<u8, u32>, (from, to): (u8, u8)) {
    let within =
        || model.range(from..to.max(from)).map(|(key, value)| (vec![*key], value.to_be_bytes().to_vec()));
    let found = |found: Result<(flashgrain::Value, flashgrain::Value), flashgrain::Error>| {
        let (key, value) = found.unwrap();
        (key.to_vec(), value.to_vec())
    };
    let scan = || db.range(tree, [from]..[to]).unwrap();
    assert!(scan().map(found).eq(within()));
    assert!(scan().rev().map(found).eq(within().rev()));
    assert_eq!(scan().next().map(found), within().next());
    assert_eq!(scan().next_back().map(found), within().next_back());
}

/// Scans as of now and as of snapshots, over long stretches without records that are written to again.
#[test]
fn what_is_written_where_nothing_was_is_found() {
    for (kind, seed) in KINDS.into_iter().zip([3, 4]).cycle().take(6) {
        let mut random = Pcg64::seed_from_u64(seed);
        let (db, tree) = tree(kind);
        let mut model = BTreeMap::new();
        let mut snapshots: Vec<(Snapshot, BTreeMap<u8, u32>)> = Vec::new();
        for written in 0..6_000_u32 {
            let key: u8 = random.random();
            match random.random_range(0..100) {
                0..45 => {
                    tree.insert([key], written.to_be_bytes()).unwrap();
                    model.insert(key, written);
                }
                45..47 => {
                    let to = key.saturating_add(random.random_range(0..200));
                    (key..to).for_each(|key| {
                        tree.remove([key]).unwrap();
                        model.remove(&key);
                    });
                }
                47..48 => {
                    let to = key.saturating_add(random.random());
                    tree.clear_range([key]..[to]).unwrap();
                    model.retain(|own, _| *own < key || *own >= to);
                }
                48..52 => snapshots.push((db.snapshot().unwrap(), model.clone())),
                52..56 if !snapshots.is_empty() => {
                    snapshots.swap_remove(random.random_range(0..snapshots.len()));
                }
                56..80 => {
                    tree.remove([key]).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let bounds = (key, random.random());
                    expect(&db, &tree, &model, bounds);
                    if let Some((snapshot, model)) = snapshots.get(usize::from(key) % 8) {
                        expect(snapshot, &tree, model, bounds);
                    }
                }
            }
        }
    }
}

/// Nobody waits for a large batch while its versions are made, one after the other: that is done before it is
/// logged.
#[test]
fn a_large_batch_makes_no_version_after_it_is_logged() {
    let folder = super::bad_input::folder();
    let builder = || Db::builder().path(folder.path()).cache_bytes(32 << 20).workers(1);
    let options = |kind| TreeOptions::new().kind(kind).merge_operator(AddOperator::NAME);
    let number = |number: u32| number.to_be_bytes();
    let one = 1_u64.to_le_bytes();
    {
        let db = builder().create().unwrap();
        let trees = KINDS.map(|kind| db.tree_with(&format!("{kind:?}"), &options(kind)).unwrap());
        let small = db.tree("small").unwrap();
        for tree in &trees {
            (0..3_000).for_each(|own| tree.insert(number(own), one).unwrap());
        }
        let before = db.snapshot().unwrap();
        let mut batch = db.batch();
        for tree in &trees {
            (0..1_000).for_each(|own| batch.remove(tree, number(own)).unwrap());
            (1_000..2_000).for_each(|own| batch.merge(tree, number(own), one).unwrap());
            (2_000..9_000).for_each(|own| batch.insert(tree, number(own), [7; 8]).unwrap());
        }
        batch.insert(&small, "one", "more").unwrap();
        let logged_at = Rc::new(Cell::new(0));
        let own = Rc::clone(&logged_at);
        observe(Some(Box::new(move |_, _| own.set(steps()))));
        batch.commit().unwrap();
        observe(None);
        assert!(logged_at.get() > 18_000, "{} steps", logged_at.get());
        assert!(steps() - logged_at.get() < 10, "{} steps behind", steps() - logged_at.get());
        for tree in &trees {
            assert_eq!(before.iter(tree).unwrap().count(), 3_000);
            assert_eq!(before.get(tree, number(1_500)).unwrap().unwrap(), one);
            tree.insert(number(5), "again").unwrap();
            // A transaction that has lost leaves nothing of what it had prepared.
            let mut lost = db.begin().unwrap();
            (0..5_000).for_each(|own| lost.insert(tree, number(own), "lost").unwrap());
            tree.insert(number(4_000), [8; 8]).unwrap();
            assert_eq!(lost.commit().unwrap_err().kind(), ErrorKind::Conflict);
        }
        for tree in trees {
            check_batch(&tree);
        }
        assert_eq!(small.get("one").unwrap().unwrap(), "more");
    }
    let db = builder().open().unwrap();
    for kind in KINDS {
        check_batch(&db.tree_with(&format!("{kind:?}"), &options(kind)).unwrap());
    }
}

fn check_batch(tree: &Tree) {
    let number = |number: u32| number.to_be_bytes();
    assert_eq!(tree.iter().unwrap().count(), 8_001);
    assert_eq!(tree.get(number(5)).unwrap().unwrap(), "again");
    assert_eq!(tree.get(number(6)).unwrap(), None);
    assert_eq!(tree.get(number(1_500)).unwrap().unwrap(), 2_u64.to_le_bytes());
    assert_eq!(tree.get(number(2_500)).unwrap().unwrap(), [7; 8]);
    assert_eq!(tree.get(number(4_000)).unwrap().unwrap(), [8; 8]);
    assert_eq!(tree.range(number(1_990)..number(2_010)).unwrap().rev().count(), 20);
}
