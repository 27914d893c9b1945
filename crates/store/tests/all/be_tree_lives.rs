//! Drawn lives of Bε-trees: each draws which features it has, then the shape of nodes, keys, values, ranges,
//! snapshots and caches up to the documented limits, and compares the tree with a map by every way to read.
//!
//! `FLASHGRAIN_BE_TREE_LIVES=300` makes this number of lives, `FLASHGRAIN_BE_TREE_SEED=7` begins with that
//! seed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use flashgrain::{
    AppendOperator, BeTreeOptions, Builder, Db, Durability, ErrorKind, IndexKind, Readable as _, Snapshot,
    Tree, TreeOptions, Value,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Bytes of keys and values that a life writes, more or less.
const WRITTEN_BYTES: u64 = 6 << 20;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keys {
    Longest,
    AnyLength,
    ThreeBytes,
    SharedPrefix,
    Short,
}

/// The features of a life, and their numbers.
#[derive(Clone, Debug)]
struct Shape {
    node_bytes: u64,
    fanout: u32,
    basement_bytes: u32,
    unit_bytes: u32,
    cache_bytes: u64,
    trees: usize,
    keys: Keys,
    count: usize,
    value_bytes: usize,
    overflows: bool,
    clears: Option<usize>,
    snapshots: usize,
    merges: bool,
    removals: u32,
    reopens: u32,
}

struct Life {
    random: Pcg64,
    shape: Shape,
    db: Db,
    trees: Vec<Lived>,
    snapshots: Vec<Snapshot>,
}

/// A tree, what it must have, and what each snapshot must see of it.
struct Lived {
    tree: Tree,
    keys: Vec<Vec<u8>>,
    map: Map,
    seen: Vec<Map>,
}

/// A number from a log-uniform distribution.
fn drawn(random: &mut Pcg64, from: u64, to: u64) -> u64 {
    let exponent = random.random_range((from as f64).ln()..=(to as f64).ln());
    (exponent.exp().round() as u64).clamp(from, to)
}

fn one_of<T: Copy>(random: &mut Pcg64, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

impl Shape {
    fn draw(random: &mut Pcg64) -> Self {
        let keys = [Keys::Longest, Keys::AnyLength, Keys::ThreeBytes, Keys::SharedPrefix, Keys::Short];
        let clears = one_of(random, &[None, Some(3), Some(30), Some(usize::MAX)]);
        Self {
            node_bytes: drawn(random, 8 << 10, 1 << 20),
            fanout: drawn(random, 2, 16) as u32,
            basement_bytes: one_of(random, &[4, 8, 16, 32, 64]) << 10,
            unit_bytes: one_of(random, &[64, 256]) << 10,
            cache_bytes: one_of(random, &[1, 2, 4, 16]) << 20,
            trees: random.random_range(1..3),
            keys: one_of(random, &keys),
            count: drawn(random, 1, 600) as usize,
            value_bytes: drawn(random, 1, 4000) as usize,
            overflows: random.random_bool(0.3),
            clears,
            snapshots: one_of(random, &[0, 0, 1, 5]),
            merges: random.random_bool(0.3),
            removals: one_of(random, &[0, 5, 30]),
            reopens: random.random_range(0..3),
        }
    }

    fn open(&self, path: &Path) -> Builder {
        Db::builder()
            .path(path)
            .cache_bytes(self.cache_bytes)
            .write_unit_bytes(self.unit_bytes)
            .segment_bytes(u64::from(self.unit_bytes) * 4)
            .durability(Durability::None)
            .workers(2)
    }

    fn options(&self) -> TreeOptions {
        TreeOptions::new()
            .kind(IndexKind::BeTree)
            .node_bytes(self.basement_bytes)
            .merge_operator(AppendOperator::NAME)
            .be_tree(BeTreeOptions::new().node_bytes(self.node_bytes).fanout(self.fanout))
    }

    fn key(&self, random: &mut Pcg64, longest: usize) -> Vec<u8> {
        let length = random.random_range(1..=longest);
        let mut bytes = |length: usize, of: &[u8]| -> Vec<u8> {
            (0..length).map(|_| if of.is_empty() { random.random() } else { one_of(random, of) }).collect()
        };
        match self.keys {
            Keys::Longest => bytes(longest, &[]),
            Keys::AnyLength => bytes(length, &[]),
            Keys::ThreeBytes => bytes(length, &[0, b'a', 0xff]),
            Keys::SharedPrefix => [vec![b'p'; longest - 4], bytes(4, &[0, 1, 0xff])].concat(),
            Keys::Short => bytes(length.min(12), &[]),
        }
    }
}

impl Life {
    fn begin(seed: u64, path: &Path) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let shape = Shape::draw(&mut random);
        println!("FLASHGRAIN_BE_TREE_SEED={seed}: {shape:?}");
        let db = shape.open(path).create().unwrap();
        let mut trees = Vec::new();
        for number in 0..shape.trees {
            let tree = db.tree_with(&format!("tree {number}"), &shape.options()).unwrap();
            let longest = tree.key_bytes_max();
            let mut keys: Vec<_> = (0..shape.count).map(|_| shape.key(&mut random, longest)).collect();
            keys.sort();
            keys.dedup();
            let too_long = tree.insert(vec![1; longest + 1], "value").unwrap_err();
            assert_eq!(too_long.kind(), ErrorKind::Argument);
            trees.push(Lived { tree, keys, map: Map::new(), seen: Vec::new() });
        }
        Self { random, shape, db, trees, snapshots: Vec::new() }
    }

    fn run(&mut self, path: &Path) {
        for round in 0..=self.shape.reopens {
            let mut bytes = 0;
            while bytes < WRITTEN_BYTES / u64::from(self.shape.reopens + 1) {
                bytes += self.step() as u64 + 200;
            }
            self.compare();
            if round < self.shape.reopens {
                self.reopen(path);
                self.compare();
            }
        }
    }

    /// Another opening, with another cache, if that has room for the trees' parts.
    fn reopen(&mut self, path: &Path) {
        self.snapshots.clear();
        let names: Vec<_> = self.trees.iter().map(|own| own.tree.name().to_owned()).collect();
        let lived: Vec<_> = self.trees.drain(..).map(|Lived { keys, map, .. }| (keys, map)).collect();
        std::mem::replace(&mut self.db, Db::in_memory(1 << 20).unwrap()).close().unwrap();
        let cache_bytes = one_of(&mut self.random, &[1, 2, 4, 16]) << 20;
        self.db = match self.shape.open(path).cache_bytes(cache_bytes).open() {
            Err(error) if error.kind() == ErrorKind::Argument => self.shape.open(path).open().unwrap(),
            opened => opened.unwrap(),
        };
        for (name, (keys, map)) in names.iter().zip(lived) {
            let tree = self.db.existing_tree(name).unwrap();
            self.trees.push(Lived { tree, keys, map, seen: Vec::new() });
        }
    }

    /// One operation; the bytes that it writes.
    fn step(&mut self) -> usize {
        let Self { random, shape, trees, .. } = self;
        let number = random.random_range(0..trees.len());
        let own = &mut trees[number];
        let key = own.keys[random.random_range(0..own.keys.len())].clone();
        let what = random.random_range(0..100);
        match what {
            0 | 1 if shape.clears.is_some() => own.clear(random, shape.clears.unwrap_or_default()),
            2 if shape.snapshots > 0 => self.snapshot(),
            3..=9 if shape.merges => {
                let operand = vec![b'm'; random.random_range(1..20)];
                own.tree.merge(&key, &operand).unwrap();
                own.map.entry(key).or_default().extend_from_slice(&operand);
                operand.len()
            }
            what if what >= 100 - shape.removals => {
                own.tree.remove(&key).unwrap();
                own.map.remove(&key);
                key.len()
            }
            _ => {
                let most =
                    if shape.overflows && random.random_bool(0.05) { 40_000 } else { shape.value_bytes };
                let value = vec![random.random(); random.random_range(0..=most)];
                own.tree.insert(&key, &value).unwrap();
                let bytes = key.len() + value.len();
                own.map.insert(key, value);
                bytes
            }
        }
    }

    /// Takes a snapshot, or ends one if there are enough.
    fn snapshot(&mut self) -> usize {
        if self.snapshots.len() < self.shape.snapshots {
            self.snapshots.push(self.db.snapshot().unwrap());
            self.trees.iter_mut().for_each(|own| own.seen.push(own.map.clone()));
        } else {
            let gone = self.random.random_range(0..self.snapshots.len());
            self.snapshots.remove(gone);
            self.trees.iter_mut().for_each(|own| drop(own.seen.remove(gone)));
        }
        0
    }

    fn compare(&mut self) {
        let Self { random, trees, snapshots, db, .. } = self;
        for own in &*trees {
            for key in &own.keys {
                assert!(
                    own.tree.get(key).unwrap().as_deref() == own.map.get(key).map(Vec::as_slice),
                    "{key:02x?}"
                );
            }
            same("forward", own.tree.iter().unwrap(), own.map.iter());
            same("backward", own.tree.iter().unwrap().rev(), own.map.iter().rev());
            for _ in 0..5 {
                let range = bounds(random, &own.keys, own.tree.key_bytes_max());
                if let Some(expected) = within(&own.map, &range) {
                    same("a range", own.tree.range(range.clone()).unwrap(), expected.iter());
                    same("a range backward", own.tree.range(range).unwrap().rev(), expected.iter().rev());
                }
            }
            for (snapshot, seen) in snapshots.iter().zip(&own.seen) {
                same("a snapshot", snapshot.iter(&own.tree).unwrap(), seen.iter());
            }
        }
        db.check().unwrap();
    }
}

impl Lived {
    /// Removes the keys of a range, if they are not more than the life has removed at a time.
    fn clear(&mut self, random: &mut Pcg64, most: usize) -> usize {
        let range = bounds(random, &self.keys, self.tree.key_bytes_max());
        let Some(gone) = within(&self.map, &range).filter(|gone| gone.len() <= most) else { return 0 };
        self.tree.clear_range(range).unwrap();
        gone.keys().for_each(|key| drop(self.map.remove(key)));
        100
    }
}

/// A bound of a range: a key, what lies just behind it, its predecessor, one that is longer than keys may be,
/// or none.
fn bound(random: &mut Pcg64, keys: &[Vec<u8>], longest: usize) -> Bound<Vec<u8>> {
    let mut key = keys[random.random_range(0..keys.len())].clone();
    match random.random_range(0..12) {
        0 => return Bound::Unbounded,
        1 => key.push(0),
        2 => drop(key.pop()),
        3 => key.resize(longest + random.random_range(1..4000), random.random()),
        _ => {}
    }
    if random.random_bool(0.8) { Bound::Included(key) } else { Bound::Excluded(key) }
}

fn bounds(random: &mut Pcg64, keys: &[Vec<u8>], longest: usize) -> Range {
    let lower = bound(random, keys, longest);
    let near = random.random_bool(0.5);
    let upper = match (&lower, near) {
        (Bound::Included(key) | Bound::Excluded(key), true) => {
            let next = keys.partition_point(|other| other <= key) + random.random_range(0..4);
            keys.get(next).map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()))
        }
        _ => bound(random, keys, longest),
    };
    (lower, upper)
}

/// What a map has in a range; `None` if its bounds are in the wrong order.
fn within(map: &Map, range: &Range) -> Option<Map> {
    use Bound::{Excluded, Included};
    match range {
        (Included(lower) | Excluded(lower), Included(upper) | Excluded(upper)) if lower >= upper => None,
        _ => Some(map.range(range.clone()).map(|(key, value)| (key.clone(), value.clone())).collect()),
    }
}

fn same<'m>(
    what: &str,
    found: impl Iterator<Item = Result<(Value, Value), flashgrain::Error>>,
    mut expected: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>,
) {
    for record in found {
        let (key, value) = record.unwrap();
        let (expected_key, expected) =
            expected.next().unwrap_or_else(|| panic!("{what}: more than there is: {key:02x?}"));
        assert!(*expected_key == *key, "{key:02x?} in the place of {expected_key:02x?}");
        let (got, wanted) = (value.len(), expected.len());
        assert!(*expected == *value, "{what}: {got} bytes for {wanted} of {key:02x?}");
    }
    assert!(expected.next().is_none(), "{what}: less than there is");
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn trees_of_any_shape_are_sorted_maps() {
    let first = number("FLASHGRAIN_BE_TREE_SEED", 1);
    for seed in first..first + number("FLASHGRAIN_BE_TREE_LIVES", 6) {
        let folder = tempfile::tempdir().unwrap();
        let mut life = Life::begin(seed, folder.path());
        life.run(folder.path());
    }
}
