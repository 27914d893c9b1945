//! A B+-tree that changes its pages in place, with values of more than a quarter of a page in pages of their
//! own. Inner pages are always in memory.

use std::collections::BTreeMap;

use super::draws::Draws;
use super::lru::Lru;

/// Bytes of a key, of what a leaf has beside each record, and of a reference to a value elsewhere.
pub const KEY_BYTES: f64 = 16.0;
const SLOT_BYTES: f64 = 8.0;
const REFERENCE_BYTES: f64 = 16.0;

const LEAF: u8 = 0;
const VALUE: u8 = 1;

/// What is done to a tree.
#[derive(Clone, Copy)]
pub struct Run {
    pub records: usize,
    pub value_bytes: f64,
    pub page_bytes: f64,
    pub cache_bytes: f64,
    /// Exponent of Zipf's law.
    pub skew: f64,
    /// Changes between two checkpoints.
    pub checkpoint: usize,
    pub operations: usize,
}

/// What the drive did for an operation, on average, and how much of it the tree takes.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub reads: f64,
    pub read_bytes: f64,
    pub writes: f64,
    pub written_bytes: f64,
    pub space_bytes: f64,
}

struct Tree {
    /// Leaves by their first key.
    leaves: BTreeMap<usize, (usize, Vec<usize>)>,
    run: Run,
    is_long: bool,
}

impl Tree {
    /// The records, inserted in random order.
    fn grown(run: Run) -> Self {
        let is_long = KEY_BYTES + run.value_bytes > run.page_bytes / 4.0;
        let mut tree = Self { leaves: BTreeMap::from([(0, (0, Vec::new()))]), run, is_long };
        Draws::permutation(run.records, 1).for_each(|key| tree.insert(key));
        tree
    }

    fn insert(&mut self, key: usize) {
        let value = if self.is_long { REFERENCE_BYTES } else { self.run.value_bytes };
        let record = KEY_BYTES + SLOT_BYTES + value;
        let count = self.leaves.len();
        let (_, (_, records)) = self.leaves.range_mut(..=key).next_back().unwrap();
        records.insert(records.partition_point(|own| *own < key), key);
        if records.len() as f64 * record > self.run.page_bytes {
            let right = records.split_off(records.len() / 2);
            self.leaves.insert(right[0], (count, right));
        }
    }

    /// Goes to a record; `change` gives it another value.
    fn visit(&self, key: usize, change: bool, memory: &mut Lru) {
        let (_, (leaf, _)) = self.leaves.range(..=key).next_back().unwrap();
        memory.touch((LEAF, *leaf), self.run.page_bytes, change, false);
        if self.is_long {
            memory.touch((VALUE, key), self.value_pages_bytes(), change, change);
        }
    }

    fn value_pages_bytes(&self) -> f64 {
        (self.run.value_bytes / self.run.page_bytes).ceil() * self.run.page_bytes
    }
}

/// Runs look-ups, or updates, from the state on that as many of them have left.
pub fn run(run: Run, change: bool) -> Counts {
    let tree = Tree::grown(run);
    let mut memory = Lru::new(run.cache_bytes);
    let mut draws = Draws::new(run.records, run.skew, 2);
    for operation in 0..2 * run.operations {
        if operation == run.operations {
            memory.reset();
        }
        tree.visit(draws.draw(), change, &mut memory);
        if (operation + 1) % run.checkpoint == 0 {
            memory.checkpoint();
        }
    }
    let each = |count: f64| count / run.operations as f64;
    let values = if tree.is_long { run.records as f64 * tree.value_pages_bytes() } else { 0.0 };
    Counts {
        reads: each(memory.reads),
        read_bytes: each(memory.read_bytes),
        writes: each(memory.writes),
        written_bytes: each(memory.written_bytes),
        space_bytes: tree.leaves.len() as f64 * run.page_bytes + values,
    }
}
