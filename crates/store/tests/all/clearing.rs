//! Removals of ranges beside readers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use flashgrain::{Db, IndexKind, Readable, TreeOptions};

const ROUNDS: u32 = 60;
const KEYS: u32 = 2000;

/// Ends readers, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn key(round: u32, number: u32) -> [u8; 8] {
    (u64::from(round) << 32 | u64::from(number)).to_be_bytes()
}

/// A merge that leaves out the removal leaves out what it removes, whatever snapshots come meanwhile.
#[test]
fn regression_what_was_removed_stays_so_while_snapshots_are_taken() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        let db = Db::in_memory(16 << 20).unwrap();
        let tree = db.tree_with("cleared", &TreeOptions::new().kind(kind)).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        drop(db.snapshot().unwrap());
                    }
                });
            }
            let _over = Over(&is_over);
            for round in 0..ROUNDS {
                let mut batch = db.batch();
                (0..KEYS).for_each(|number| batch.insert(&tree, key(round, number), "value").unwrap());
                batch.commit().unwrap();
                tree.clear_range(key(round, 0)..key(round, KEYS / 2)).unwrap();
                db.checkpoint().unwrap();
                let left = db.range(&tree, key(round, 0)..key(round + 1, 0)).unwrap();
                let first = left.map(|record| record.unwrap().0).next().unwrap();
                assert_eq!(first, key(round, KEYS / 2), "{kind:?}, round {round}");
            }
        });
    }
}
