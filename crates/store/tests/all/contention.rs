//! Threads that change neighbouring records all the time: their leaf is parted until each has its own, and nothing is lost meanwhile.

use std::sync::Barrier;

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
