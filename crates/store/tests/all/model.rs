//! Long random histories of every operation, against sorted maps: on a disk, on a device of fixed size, and
//! by several tasks at once on a simulated drive. A failure names the seed, which replays it;
//! `FLASHGRAIN_HISTORIES` runs more.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashgrain::{
    AppendOperator, Builder, CpuCosts, Db, Durability, Error, ErrorKind, Readable, Simulated, Snapshot, Tree,
    TreeOptions, Value,
};
use flashgrain_device::{Device, MemoryDevice};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// To which tree, a key, and its value or none.
type Write = (usize, Vec<u8>, Option<Vec<u8>>);

/// Trees of a history.
const TREES: usize = 2;

/// A part of a store that nobody else writes to, and what is in it.
struct History {
    /// Tells its trees from others'.
    name: String,
    random: Pcg64,
    trees: Vec<Tree>,
    model: [Model; TREES],
    snapshots: Vec<(Snapshot, Vec<Tree>, [Model; TREES])>,
}

impl History {
    fn new(db: &Db, name: &str, seed: u64) -> Self {
        let random = Pcg64::seed_from_u64(seed);
        let (trees, model) = (Vec::new(), Default::default());
        let mut history = Self { name: name.to_owned(), random, trees, model, snapshots: Vec::new() };
        history.find_trees(db);
        history
    }

    fn tree_name(&self, index: usize) -> String {
        format!("{} {index}", self.name)
    }

    /// After the store was opened, or a tree dropped.
    fn find_trees(&mut self, db: &Db) {
        let tree = |index: usize| {
            let options = TreeOptions::new().node_bytes(4096 << (2 * index));
            db.tree_with(&self.tree_name(index), &options.merge_operator(AppendOperator::NAME)).unwrap()
        };
        self.trees = (0..TREES).map(tree).collect();
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn tree(&mut self) -> usize {
        self.below(TREES as u64) as usize
    }

    /// Few distinct keys, some with long common prefixes.
    fn key(&mut self) -> Vec<u8> {
        let number = self.below(1500);
        match number % 5 {
            0 => format!("{}{number}", "prefix".repeat(40)).into_bytes(),
            1 => (number as u16).to_be_bytes().to_vec(),
            _ => format!("key{number:05}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(60) {
            0 => 2000 + self.below(20_000),
            1..10 => self.below(1000),
            _ => self.below(60),
        };
        (0..length).map(|_| self.random.next_u64() as u8).collect()
    }

    fn durability(&mut self) -> Durability {
        [Durability::None, Durability::None, Durability::Buffered, Durability::Sync][self.below(4) as usize]
    }

    /// Keys and values, removals among them.
    fn writes(&mut self) -> Vec<Write> {
        (0..=self.below(20))
            .map(|_| (self.tree(), self.key(), (self.below(4) > 0).then(|| self.value())))
            .collect()
    }

    fn note(&mut self, writes: Vec<Write>) {
        for (tree, key, value) in writes {
            match value {
                Some(value) => drop(self.model[tree].insert(key, value)),
                None => drop(self.model[tree].remove(&key)),
            }
        }
    }

    fn write_batch(&mut self, db: &Db) {
        let writes = self.writes();
        let mut batch = db.batch().durability(self.durability());
        for (tree, key, value) in &writes {
            match value {
                Some(value) => batch.insert(&self.trees[*tree], key, value.clone()).unwrap(),
                None => batch.remove(&self.trees[*tree], key).unwrap(),
            }
        }
        batch.commit().unwrap();
        self.note(writes);
    }

    /// Appends to values, alone, in a batch, or in a transaction that reads what it makes.
    fn merge(&mut self, db: &Db) {
        let choice = self.below(3);
        let (before, count) = (if choice == 0 { Vec::new() } else { self.writes() }, self.below(8) + 1);
        let mut operands: Vec<_> = (0..count).map(|_| (self.tree(), self.key(), self.value())).collect();
        // Some are over a write of the same commit, or over each other.
        for place in 0..operands.len() {
            if self.below(3) == 0 {
                let source = before.first().map(|(tree, key, _)| (*tree, key.clone()));
                let (tree, key) = source.unwrap_or_else(|| (operands[0].0, operands[0].1.clone()));
                (operands[place].0, operands[place].1) = (tree, key);
            }
        }
        let trees = self.trees.clone();
        self.note(before.clone());
        for (tree, key, operand) in &operands {
            self.model[*tree].entry(key.clone()).or_default().extend_from_slice(operand);
        }
        if choice == 0 {
            operands.iter().for_each(|(tree, key, operand)| trees[*tree].merge(key, operand).unwrap());
        } else if choice == 1 {
            let mut batch = db.batch().durability(self.durability());
            for (tree, key, value) in &before {
                match value {
                    Some(value) => batch.insert(&trees[*tree], key, value).unwrap(),
                    None => batch.remove(&trees[*tree], key).unwrap(),
                }
            }
            operands
                .iter()
                .for_each(|(tree, key, operand)| batch.merge(&trees[*tree], key, operand).unwrap());
            batch.commit().unwrap();
        } else {
            let mut transaction = db.begin().unwrap();
            for (tree, key, value) in &before {
                match value {
                    Some(value) => transaction.insert(&trees[*tree], key, value).unwrap(),
                    None => transaction.remove(&trees[*tree], key).unwrap(),
                }
            }
            for (tree, key, operand) in &operands {
                transaction.merge(&trees[*tree], key, operand).unwrap();
            }
            let (tree, key, _) = &operands[0];
            let found = transaction.get(&trees[*tree], key).unwrap().map(Vec::from);
            assert_eq!(found.as_ref(), self.model[*tree].get(key));
            same(&transaction, &trees[*tree], &self.model[*tree]);
            transaction.commit().unwrap();
        }
    }

    fn write_one(&mut self) {
        let (index, key) = (self.tree(), self.key());
        let value = (self.below(3) > 0).then(|| self.value());
        match &value {
            Some(value) => self.trees[index].insert(&key, value).unwrap(),
            None => self.trees[index].remove(&key).unwrap(),
        }
        self.note(vec![(index, key, value)]);
    }

    /// Reads its own writes; is committed, forgotten, or loses to a write that comes in between.
    fn transact(&mut self, db: &Db) {
        let writes = self.writes();
        let mut transaction = db.begin().unwrap();
        transaction.set_durability(self.durability());
        let mut own = self.model.clone();
        for (tree, key, value) in &writes {
            match value {
                Some(value) => transaction.insert(&self.trees[*tree], key, value.clone()).unwrap(),
                None => transaction.remove(&self.trees[*tree], key).unwrap(),
            }
            match value {
                Some(value) => drop(own[*tree].insert(key.clone(), value.clone())),
                None => drop(own[*tree].remove(key)),
            }
        }
        let index = self.tree();
        if self.below(4) == 0 {
            same(&transaction, &self.trees[index], &own[index]);
        } else {
            let (_, key, _) = &writes[0];
            let found = transaction.get(&self.trees[index], key).unwrap();
            assert_eq!(found.map(Vec::from), own[index].get(key).cloned());
        }
        match self.below(4) {
            0 => drop(transaction),
            1 => {
                let (tree, key, _) = writes[0].clone();
                let value = self.value();
                self.trees[tree].insert(&key, &value).unwrap();
                assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
                self.note(vec![(tree, key, Some(value))]);
            }
            _ => {
                transaction.commit().unwrap();
                self.note(writes);
            }
        }
    }

    fn read_some(&mut self, db: &Db) {
        let (index, key) = (self.tree(), self.key());
        let tree = self.trees[index].clone();
        assert_eq!(tree.get(&key).unwrap().map(Vec::from), self.model[index].get(&key).cloned());
        let (low, high) = self.two_keys();
        let mut ends = self.random.clone();
        self.random.next_u64();
        let expected: Vec<_> = self.model[index].range(low.clone()..high.clone()).collect();
        let mut found = db.range(&tree, low..high).unwrap();
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

    /// Some keys at once, as they are now and as they were.
    fn read_many(&mut self, db: &Db) {
        let index = self.tree();
        let keys: Vec<_> = (0..self.below(200)).map(|_| self.key()).collect();
        let expected =
            |models: &[Model]| -> Vec<_> { keys.iter().map(|key| models[index].get(key).cloned()).collect() };
        let found = |from: &dyn Fn() -> Result<Vec<Option<Value>>, Error>| -> Vec<_> {
            from().unwrap().into_iter().map(|value| value.map(Vec::from)).collect()
        };
        let tree = self.trees[index].clone();
        assert_eq!(found(&|| tree.get_many(&keys)), expected(&self.model));
        let mut transaction = db.begin().unwrap();
        let mut changed = self.model.clone();
        if let Some(key) = keys.first() {
            transaction.insert(&tree, key, "own").unwrap();
            changed[index].insert(key.clone(), b"own".to_vec());
        }
        assert_eq!(found(&|| transaction.get_many(&tree, &keys)), expected(&changed));
        if let Some((snapshot, trees, model)) = self.snapshots.first()
            && let Some(tree) = trees.get(index)
        {
            assert_eq!(found(&|| snapshot.get_many(tree, &keys)), expected(model));
        }
    }

    fn two_keys(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (one, other) = (self.key(), self.key());
        (one.clone().min(other.clone()), one.max(other))
    }

    /// A range, which seldom is a large one, alone or in a transaction with other writes.
    fn remove_range(&mut self, db: &Db) {
        let (index, (low, mut high)) = (self.tree(), self.two_keys());
        if self.below(5) > 0 {
            high = self.model[index].range(low.clone()..).nth(20).map_or(high, |(key, _)| key.clone());
        }
        let choice = self.below(3);
        if choice < 2 {
            let range = low.clone()..high.clone();
            if choice == 0 {
                let removed = self.trees[index].remove_range(range.clone()).unwrap();
                assert_eq!(removed, self.model[index].range(range).count() as u64);
            } else {
                self.trees[index].clear_range(range).unwrap();
            }
            self.model[index].retain(|key, _| !(&low..&high).contains(&key));
            return;
        }
        let (before, after) = (self.writes(), self.writes());
        let mut transaction = db.begin().unwrap();
        transaction.set_durability(self.durability());
        let write = |transaction: &mut flashgrain::Transaction, trees: &[Tree], writes: &[Write]| {
            for (tree, key, value) in writes {
                match value {
                    Some(value) => transaction.insert(&trees[*tree], key, value.clone()).unwrap(),
                    None => transaction.remove(&trees[*tree], key).unwrap(),
                }
            }
        };
        write(&mut transaction, &self.trees, &before);
        self.note(before);
        let removed = transaction.remove_range(&self.trees[index], low.clone()..high.clone()).unwrap();
        assert_eq!(removed, self.model[index].range(low.clone()..high.clone()).count() as u64);
        self.model[index].retain(|key, _| !(&low..&high).contains(&key));
        write(&mut transaction, &self.trees, &after);
        self.note(after);
        same(&transaction, &self.trees[index], &self.model[index]);
        transaction.commit().unwrap();
    }

    /// Sorted records over what is there; sometimes a key comes twice, and what was before it stays or not by
    /// whole steps.
    fn load(&mut self) {
        let index = self.tree();
        let count = if self.below(10) == 0 { 1500 } else { 30 };
        let records: Model = (0..count).map(|_| (self.key(), self.value())).collect();
        if self.below(5) == 0 {
            let last = records.last_key_value();
            let error = self.trees[index].load(records.iter().chain(last)).unwrap_err();
            assert!(matches!(error, Error::Order { record } if record == records.len() as u64), "{error}");
        }
        // What was loaded before the error is loaded again.
        assert_eq!(self.trees[index].load(&records).unwrap(), records.len() as u64);
        self.model[index].extend(records);
    }

    /// A cursor that goes to and fro, and the ends of a tree.
    fn walk(&mut self) {
        let (index, key) = (self.tree(), self.key());
        let tree = self.trees[index].clone();
        let mut cursor = tree.cursor().unwrap();
        cursor.seek(&key);
        let mut ahead = self.model[index].range(key.clone()..);
        for _ in 0..5 {
            let found = cursor.next().unwrap().map(|(key, _)| key.to_vec());
            assert_eq!(found.as_ref(), ahead.next().map(|(key, _)| key));
        }
        cursor.seek(&key);
        let mut behind = self.model[index].range(..key).rev();
        for _ in 0..5 {
            let found = cursor.prev().unwrap().map(|(key, _)| key.to_vec());
            assert_eq!(found.as_ref(), behind.next().map(|(key, _)| key));
        }
        let keys =
            |record: Option<(flashgrain::Value, flashgrain::Value)>| record.map(|(key, _)| key.to_vec());
        let model = &self.model[index];
        assert_eq!(keys(tree.first_key_value().unwrap()).as_ref(), model.keys().next());
        assert_eq!(keys(tree.last_key_value().unwrap()).as_ref(), model.keys().next_back());
    }

    fn look_back(&mut self) {
        let choice = self.below(self.snapshots.len().max(1) as u64) as usize;
        if let Some((snapshot, trees, model)) = self.snapshots.get(choice) {
            for (tree, model) in trees.iter().zip(model) {
                same(snapshot, tree, model);
            }
        }
    }

    fn drop_tree(&mut self, db: &Db) {
        // Who has a snapshot must not look for what was in it.
        self.snapshots.clear();
        let index = self.tree();
        db.drop_tree(&self.tree_name(index)).unwrap();
        assert_eq!(self.trees[index].insert("k", "v").unwrap_err().kind(), ErrorKind::Dropped);
        self.model[index].clear();
        self.find_trees(db);
    }

    fn step(&mut self, db: &Db) {
        match self.below(100) {
            0 => make_checkpoint(db),
            // Old versions take room on the device, too.
            1..4 if self.snapshots.len() < 4 => {
                let snapshot = db.snapshot().unwrap();
                self.snapshots.push((snapshot, self.trees.clone(), self.model.clone()));
            }
            4..7 => self.look_back(),
            7..10 if self.snapshots.len() > 2 => drop(self.snapshots.remove(0)),
            10 if self.below(4) == 0 => self.drop_tree(db),
            11..13 => self.remove_range(db),
            13..15 => self.load(),
            15..23 => self.merge(db),
            23..45 => self.write_batch(db),
            45..55 => self.write_one(),
            55..65 => self.transact(db),
            65..75 => self.walk(),
            75..79 => self.read_many(db),
            _ => self.read_some(db),
        }
    }

    fn compare(&self, db: &Db) {
        for (tree, model) in self.trees.iter().zip(&self.model) {
            same(db, tree, model);
        }
    }
}

fn make_checkpoint(db: &Db) {
    match db.checkpoint() {
        Ok(()) | Err(Error::Full { .. }) => {}
        Err(error) => panic!("{error}"),
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
    assert_eq!(from.iter(tree).unwrap().rev().count(), model.len());
}

/// A history in several lives.
fn play(seed: u64, steps: u32, create: impl Fn() -> Builder) {
    println!("seed {seed}");
    let mut db = create().create().unwrap();
    let mut history = History::new(&db, "tree", seed);
    for _ in 0..steps {
        if history.below(60) == 0 {
            history.snapshots.clear();
            history.trees.clear();
            db.close().unwrap();
            db = create().open().unwrap();
            history.find_trees(&db);
        }
        history.step(&db);
    }
    history.compare(&db);
    db.check().unwrap();
}

fn histories() -> u64 {
    std::env::var("FLASHGRAIN_HISTORIES").map_or(2, |count| count.parse().unwrap())
}

fn small() -> Builder {
    Db::builder().cache_bytes(1 << 20).workers(2).recovery_log_bytes(1 << 20)
}

/// With `FLASHGRAIN_MODEL_DEVICE` on that block device or NVMe namespace, whose contents are lost.
#[test]
fn a_store_on_a_disk_is_sorted_maps() {
    let device = std::env::var_os("FLASHGRAIN_MODEL_DEVICE").map(std::path::PathBuf::from);
    for seed in 0..histories() {
        if let Some(device) = &device {
            play(seed, 2500, || small().path(device).destroy_contents_of(device));
            continue;
        }
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        play(seed, 2500, || small().path(folder.path()));
    }
}

fn play_on_a_device_of(bytes: u64) {
    for seed in 0..histories() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(bytes, 0).unwrap());
        play(1000 + seed, 4000, || small().device(Arc::clone(&device)));
    }
}

#[test]
fn a_store_on_a_device_of_fixed_size_is_sorted_maps() {
    play_on_a_device_of(32 << 20);
}

/// Histories of several tasks on several workers, each on trees of its own, in virtual time; when all have
/// ended.
fn play_together(seed: u64) -> (std::time::Duration, u64) {
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    let drive = SimDevice::new(&config, "sim:905p", seed).unwrap();
    let store = small().workers(3).device(Arc::new(drive));
    let mut simulated =
        Simulated::create(store, CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE }).unwrap();
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            simulated.spawn(move |db| {
                let mut history = History::new(db, &format!("task {task}"), seed << 8 | task);
                (0..400).for_each(|_| history.step(db));
                history.compare(db);
            })
        })
        .collect();
    simulated.run_until_idle();
    for task in tasks {
        assert!(task.is_finished(), "seed {seed}: tasks wait for each other");
        task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    simulated.run(|db| db.check().unwrap());
    (simulated.now(), simulated.stats().device.writes)
}

#[test]
fn tasks_of_several_workers_have_sorted_maps_each_and_the_same_every_time() {
    for seed in 0..histories() {
        assert_eq!(play_together(seed), play_together(seed), "seed {seed}");
    }
}

/// The same histories with LSM-trees.
#[cfg(feature = "testing")]
mod lsm {
    use flashgrain::IndexKind;
    use flashgrain::testing::trees_of;

    use super::*;

    #[test]
    fn lsm_trees_on_a_disk_are_sorted_maps() {
        let _kind = trees_of(IndexKind::Lsm);
        a_store_on_a_disk_is_sorted_maps();
    }

    #[test]
    fn lsm_trees_on_a_device_of_fixed_size_are_sorted_maps() {
        let _kind = trees_of(IndexKind::Lsm);
        // Each run of each tree takes whole segments.
        play_on_a_device_of(64 << 20);
    }

    #[test]
    fn lsm_trees_of_several_workers_are_sorted_maps() {
        let _kind = trees_of(IndexKind::Lsm);
        tasks_of_several_workers_have_sorted_maps_each_and_the_same_every_time();
    }
}

/// The same histories with Bε-trees.
#[cfg(feature = "testing")]
mod be_tree {
    use flashgrain::IndexKind;
    use flashgrain::testing::trees_of;

    use super::*;

    #[test]
    fn be_trees_on_a_disk_are_sorted_maps() {
        let _kind = trees_of(IndexKind::BeTree);
        a_store_on_a_disk_is_sorted_maps();
    }

    #[test]
    fn be_trees_on_a_device_of_fixed_size_are_sorted_maps() {
        let _kind = trees_of(IndexKind::BeTree);
        a_store_on_a_device_of_fixed_size_is_sorted_maps();
    }

    #[test]
    fn be_trees_of_several_workers_are_sorted_maps() {
        let _kind = trees_of(IndexKind::BeTree);
        tasks_of_several_workers_have_sorted_maps_each_and_the_same_every_time();
    }
}
