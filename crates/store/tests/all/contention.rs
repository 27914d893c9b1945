//! Threads that change neighbouring records all the time: their leaf is parted until each has its own, and
//! nothing is lost meanwhile.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{Db, Durability};

const THREADS: u64 = 4;
const KEYS: u64 = 6;
const ROUNDS: u64 = 8000;

#[test]
fn hot_neighbours_lose_nothing() {
    let db = Db::in_memory(8 << 20).unwrap();
    let tree = db.tree("hot").unwrap();
    // Cold ones between and around, with values as long as they may be, so that leaves are divided unevenly.
    for key in 0..200_u64 {
        tree.insert((key * 10).to_be_bytes(), vec![1; (key * 37 % 900) as usize]).unwrap();
    }
    let together = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, tree, together) = (&db, &tree, &together);
            scope.spawn(move || {
                together.wait();
                for round in 1..=ROUNDS {
                    let mut batch = db.batch().durability(Durability::None);
                    let key = 1000 + thread + THREADS * (round % KEYS);
                    batch.insert(tree, key.to_be_bytes(), (thread << 32 | round).to_le_bytes()).unwrap();
                    batch.commit().unwrap();
                }
            });
        }
    });
    for thread in 0..THREADS {
        for place in 0..KEYS {
            let last = (ROUNDS - KEYS + 1..=ROUNDS).find(|round| round % KEYS == place).unwrap();
            let key = 1000 + thread + THREADS * place;
            assert_eq!(
                tree.get(key.to_be_bytes()).unwrap().unwrap(),
                (thread << 32 | last).to_le_bytes(),
                "{key}"
            );
        }
    }
    db.check().unwrap();
}

/// Nodes come and go under whoever looks at them.
#[test]
fn regression_a_check_finds_no_damage_in_a_tree_that_others_change() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("busy").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for key in 0..4000_u32 {
                    let mut batch = db.batch().durability(Durability::None);
                    batch.insert(&tree, key.to_be_bytes(), vec![7; 300]).unwrap();
                    batch.commit().unwrap();
                }
                tree.remove_range::<&[u8]>(..).unwrap();
            }
        });
        // Whatever it finds, the other thread has to end.
        let checks: Vec<_> = (0..200).map(|_| db.check().err()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(checks.into_iter().flatten().next().map(|error| error.to_string()), None);
    });
}
