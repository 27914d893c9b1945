//! Long random histories of every operation, against sorted maps. A failure names the seed, which replays it; `FLASHGRAIN_HISTORIES` runs more.

use std::collections::BTreeMap;

use flashgrain::{Builder, Db, Durability, Readable, Snapshot, Tree};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

struct History {
    random: Pcg64,
    model: [Model; 2],
    snapshots: Vec<(Snapshot, [Model; 2])>,
}

impl History {
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    /// Few distinct keys, some with long common prefixes.
    fn key(&mut self) -> Vec<u8> {
        let number = self.below(2000);
        match number % 5 {
            0 => format!("{}{number}", "prefix".repeat(40)).into_bytes(),
            1 => (number as u16).to_be_bytes().to_vec(),
            _ => format!("key{number:05}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(50) {
            0 => 2000 + self.below(20_000),
            1..10 => self.below(1000),
            _ => self.below(60),
        };
        (0..length).map(|_| self.random.next_u64() as u8).collect()
    }

    fn write_some(&mut self, db: &Db, trees: &[Tree; 2]) {
        let mut batch = db.batch().durability(Durability::None);
        for _ in 0..=self.below(20) {
            let (index, key) = (self.below(2) as usize, self.key());
            if self.below(4) == 0 {
                batch.remove(&trees[index], &key).unwrap();
                self.model[index].remove(&key);
            } else {
                let value = self.value();
                batch.insert(&trees[index], &key, value.clone()).unwrap();
                self.model[index].insert(key, value);
            }
        }
        batch.commit().unwrap();
    }

    fn read_some(&mut self, db: &Db, trees: &[Tree; 2]) {
        let index = self.below(2) as usize;
        let (tree, key) = (&trees[index], self.key());
        assert_eq!(tree.get(&key).unwrap().map(Vec::from), self.model[index].get(&key).cloned());
        let (low, high) = (self.key(), self.key());
        let (low, high) = (low.clone().min(high.clone()), low.max(high));
        let mut ends = self.random.clone();
        self.random.next_u64();
        let expected: Vec<_> = self.model[index].range(low.clone()..high.clone()).collect();
        let mut found = db.range(tree, low..high).unwrap();
        let (mut front, mut back) = (0, expected.len());
        while front < back {
            let is_front = ends.next_u64().is_multiple_of(2);
            let record = if is_front { found.next() } else { found.next_back() }.unwrap().unwrap();
            let place = if is_front { front } else { back - 1 };
            assert_eq!((&record.0.to_vec(), &record.1.to_vec()), expected[place]);
            if is_front { front += 1 } else { back -= 1 }
        }
        assert!(found.next().is_none());
    }

    fn look_back(&mut self, trees: &[Tree; 2]) {
        let choice = self.below(self.snapshots.len().max(1) as u64) as usize;
        if let Some((snapshot, model)) = self.snapshots.get(choice) {
            for (tree, model) in trees.iter().zip(model) {
                same(snapshot, tree, model);
            }
        }
    }
}

fn same(from: &impl Readable, tree: &Tree, model: &Model) {
    let mut count = 0;
    for (record, expected) in from.iter(tree).unwrap().zip(model) {
        let (key, value) = record.unwrap();
        assert_eq!((&key.to_vec(), &value.to_vec()), expected);
        count += 1;
    }
    assert_eq!(count, model.len());
    assert_eq!(from.iter(tree).unwrap().count(), model.len());
}

fn trees(db: &Db) -> [Tree; 2] {
    [db.tree("one").unwrap(), db.tree("other").unwrap()]
}

fn play(seed: u64, steps: u32) {
    println!("seed {seed}");
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let small = || -> Builder {
        Db::builder().path(folder.path()).cache_bytes(1 << 20).workers(2).recovery_log_bytes(1 << 20)
    };
    let mut history =
        History { random: Pcg64::seed_from_u64(seed), model: Default::default(), snapshots: Vec::new() };
    let mut db = small().create().unwrap();
    let mut open = trees(&db);
    for _ in 0..steps {
        match history.below(40) {
            0 => db.checkpoint().unwrap(),
            1 => history.snapshots.push((db.snapshot().unwrap(), history.model.clone())),
            2 => history.look_back(&open),
            3 if history.snapshots.len() > 2 => drop(history.snapshots.remove(0)),
            4 => {
                history.snapshots.clear();
                drop(open);
                db.close().unwrap();
                db = small().open().unwrap();
                open = trees(&db);
            }
            5..25 => history.write_some(&db, &open),
            _ => history.read_some(&db, &open),
        }
    }
    for (tree, model) in open.iter().zip(&history.model) {
        same(&db, tree, model);
    }
    db.check().unwrap();
}

#[test]
fn a_store_is_two_sorted_maps() {
    let histories = std::env::var("FLASHGRAIN_HISTORIES").map_or(2, |count| count.parse().unwrap());
    (0..histories).for_each(|seed| play(seed, 1500));
}
