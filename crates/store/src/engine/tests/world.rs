//! A small store on a small simulated drive, and a model of its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::Error;
use crate::btree::overflow::kept;
use crate::catalog::NamedTree;
use crate::engine::{Engine, Given, NewTree, OverflowValue};
use crate::factory::TreePlan;
use crate::index::{Write, Written};
use crate::io_context::Devices;
use crate::layout::{Layout, LogExtent, Placement, SyncMethod};
use crate::log::Durability;
use crate::options::Options;
use crate::store_id::StoreId;
use crate::worker::Harness;

/// Trees of every store here.
pub const TREES: [&str; 2] = ["apples", "pears"];

/// Keys of each.
pub const KEYS: u32 = 1200;

/// Longer values are kept in pages of their own.
const LARGE_BYTES: usize = 400;

/// Records of the store, or of writes to it, by tree and key.
pub type Content = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// Writes of a commit; `None` removes.
pub type Writes = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

pub fn config() -> SimConfig {
    SimConfig::from_toml(include_str!("drive.toml"), "drive.toml").unwrap()
}

pub fn drive(seed: u64) -> Arc<SimDevice> {
    Arc::new(SimDevice::new(&config(), "sim:small", seed).unwrap())
}

/// Few bytes everywhere, so that little work fills units, segments and the log's ring.
pub fn layout(sync_method: SyncMethod) -> Layout {
    Layout {
        sector_bytes: 512,
        unit_bytes: 16 << 10,
        segment_bytes: 64 << 10,
        segments_start_bytes: 1 << 20,
        pack_bytes: 8 << 10,
        first_segment_bytes: 0,
        log: LogExtent { start_bytes: 128 << 10, bytes: 256 << 10 },
        log_at_creation: LogExtent { start_bytes: 128 << 10, bytes: 256 << 10 },
        log_bytes_max: 256 << 10,
        log_block_bytes: 4096,
        placement: Placement::OutOfPlace,
        sync_method,
        read_ahead_bytes: 64 << 10,
        in_flight: 16,
        half_bandwidth_bytes: 0,
        node_bytes: 4096,
    }
}

pub fn options() -> Options {
    Options { cache_bytes: 192 << 10, recovery_log_bytes: 128 << 10, ..Options::default() }
}

/// Workers on the calling thread, and the input for a store on `device`.
pub fn world(device: &Arc<SimDevice>, workers: usize, options: Options) -> (Harness, Given) {
    let devices = Devices::new(Arc::clone(device) as _, None);
    let harness = Harness::new(&devices, workers);
    let executor = harness.executor().clone();
    (
        harness,
        Given { devices, executor, options, growth_segments: None, unfinished: false, read_only: false },
    )
}

/// A new store with both trees.
pub fn create(harness: &mut Harness, given: Given, sync_method: SyncMethod) -> Result<Arc<Engine>, Error> {
    harness.run(move || {
        let engine = Engine::create(given, layout(sync_method), StoreId([5; 16]))?;
        make_trees(&engine)?;
        Ok(engine)
    })
}

/// Makes the trees that do not exist yet.
pub fn make_trees(engine: &Engine) -> Result<(), Error> {
    for (name, class) in TREES.into_iter().zip([0, 1]) {
        if engine.trees().named(name).is_none() {
            engine.create_trees(&[NewTree {
                name,
                plan: TreePlan { class, ..TreePlan::default() },
                operator: None,
            }])?;
        }
    }
    Ok(())
}

pub fn open(harness: &mut Harness, given: Given) -> Result<Arc<Engine>, Error> {
    harness.run(move || Engine::open(given))
}

/// Commits by several tasks, until all are done or the store refuses.
pub fn work(harness: &mut Harness, engine: &Arc<Engine>, oracle: &Arc<Mutex<Oracle>>, life: u64) {
    for task in 0..8 {
        let work = Work {
            engine: Arc::clone(engine),
            oracle: Arc::clone(oracle),
            task,
            life,
            commits: 60,
            all_marked: true,
        };
        let _goes_on = harness.spawn(0, move || work.run());
    }
    harness.run_until_idle();
    assert_eq!(harness.unfinished(), 0, "tasks wait for each other");
}

/// The same without the commits.
pub fn values(engine: &Engine) -> Content {
    content(engine).into_iter().map(|(key, (_, value))| (key, value)).collect()
}

/// Everything that is in the trees, with the commits that put it there; panics if one of them is not whole.
pub fn content(engine: &Engine) -> BTreeMap<(usize, Vec<u8>), (u64, Vec<u8>)> {
    let mut content = BTreeMap::new();
    for (number, name) in TREES.into_iter().enumerate() {
        let Some(known) = engine.trees().named(name) else { continue };
        let mut overflow = Vec::new();
        let census = known.tree.index.walk(&mut |_| (), &mut |key, version, rest| {
            if version.is_overflow() {
                // Not now: nothing may be evicted while a node is looked at.
                overflow.push((key.to_vec(), version.timestamp().0, rest.to_vec()));
            } else if !version.is_tombstone() {
                content.insert((number, key.to_vec()), (version.timestamp().0, rest.to_vec()));
            }
        });
        census.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (key, timestamp, reference) in overflow {
            let mut value = Vec::new();
            let read = engine.overflow_values().read(&reference, &mut value);
            read.unwrap_or_else(|error| panic!("{name}: an overflow value: {error}"));
            content.insert((number, key), (timestamp, value));
        }
    }
    content
}

/// The results of the commits so far.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// By timestamp.
    pub commits: BTreeMap<u64, Writes>,
    /// Everything up to this commit was acknowledged as durable.
    pub durable: u64,
    /// By task: a commit that has not returned.
    pub unheard: BTreeMap<u64, Writes>,
}

impl Oracle {
    /// The content of the store after all commits up to `last`.
    pub fn content(&self, last: u64) -> Content {
        let mut content = Content::new();
        for writes in self.commits.range(..=last).map(|(_, writes)| writes) {
            for (tree, key, value) in writes {
                match value {
                    Some(value) => content.insert((*tree, key.clone()), value.clone()),
                    None => content.remove(&(*tree, key.clone())),
                };
            }
        }
        content
    }
}

/// One task's commits. Each also writes its number to a key of the task's own, so that a commit without a
/// result can be told from one that never happened.
#[derive(Clone)]
pub struct Work {
    pub engine: Arc<Engine>,
    pub oracle: Arc<Mutex<Oracle>>,
    pub task: u64,
    /// Tells this life from others.
    pub life: u64,
    pub commits: u32,
    /// Whether every commit leaves a mark.
    pub all_marked: bool,
}

/// The key that a task writes to with every commit, in the first tree.
pub fn own_key(task: u64) -> Vec<u8> {
    format!("task {task}").into_bytes()
}

impl Work {
    /// Commits until it is done or the store refuses. Now and then it makes a checkpoint.
    pub fn run(self) {
        let mut random = Pcg64::seed_from_u64(self.life << 8 | self.task);
        let trees: Vec<_> = TREES.iter().filter_map(|name| self.engine.trees().named(name)).collect();
        assert_eq!(trees.len(), TREES.len());
        for number in 0..self.commits {
            if self.commit(&mut random, &trees, number).is_err() {
                return;
            }
            if random.random_bool(0.01) && self.engine.checkpoint().is_err() {
                return;
            }
        }
    }

    fn writes(&self, random: &mut Pcg64, number: u32) -> Writes {
        let count = match random.random_range(0..20) {
            0..14 => 1,
            14..19 => random.random_range(2..6),
            // Several blocks of the log.
            _ => random.random_range(30..60),
        };
        let mut writes = Writes::new();
        for part in 0..count {
            let (tree, key) = (random.random_range(0..TREES.len()), random.random_range(0..KEYS));
            let key = format!("{}{key:05}", "k".repeat(key as usize % 40)).into_bytes();
            if writes.iter().any(|(other, same, _)| *other == tree && *same == key) {
                continue;
            }
            let value = random.random_bool(0.75).then(|| {
                let mut value = format!("{}/{}/{number}/{part}:", self.life, self.task).into_bytes();
                let most = if random.random_bool(0.03) { 30_000 } else { 300 };
                value.resize(random.random_range(10..most), b'.');
                value
            });
            writes.push((tree, key, value));
        }
        // Commits without a mark take the path for single writes.
        if self.all_marked || writes.len() > 1 || random.random_bool(0.5) {
            writes.push((0, own_key(self.task), Some(format!("{} {number}", self.life).into_bytes())));
        }
        writes
    }

    fn commit(&self, random: &mut Pcg64, trees: &[Arc<NamedTree>], number: u32) -> Result<(), Error> {
        let writes = self.writes(random, number);
        let durability = match random.random_range(0..10) {
            0 => Durability::None,
            1 | 2 => Durability::Buffered,
            _ => Durability::Sync,
        };
        let is_overflow =
            |value: &Option<Vec<u8>>| value.as_ref().is_some_and(|value| value.len() > LARGE_BYTES);
        let values: Vec<_> = writes
            .iter()
            .filter(|(_, _, value)| is_overflow(value))
            .filter_map(|(_, _, value)| value.as_deref().map(OverflowValue::Bytes))
            .collect();
        let logged = if values.is_empty() { Vec::new() } else { self.engine.write_overflow(&values)? };
        let mut references = logged.iter();
        let written: Vec<Written<'_>> = writes
            .iter()
            .map(|(tree, key, value)| Written {
                tree: &trees[*tree].tree,
                key,
                write: match value {
                    None => Write::Remove,
                    Some(_) if is_overflow(value) => {
                        let logged: &Vec<u8> = references.next().unwrap();
                        Write::PutOverflow { reference: kept(logged), logged }
                    }
                    Some(value) => Write::Put(value),
                },
            })
            .collect();
        self.oracle.lock().unwrap().unheard.insert(self.task, writes.clone());
        let transactions = self.engine.transactions();
        let timestamp = match written.as_slice() {
            [only] => transactions.write(*only, durability)?,
            several => transactions.commit(None, &[], several, durability)?.unwrap(),
        };
        drop(written);
        let mut oracle = self.oracle.lock().unwrap();
        oracle.unheard.remove(&self.task);
        oracle.commits.insert(timestamp.0, writes);
        if durability == Durability::Sync {
            oracle.durable = oracle.durable.max(timestamp.0);
        }
        Ok(())
    }
}
