//! A task that uses a store in all ways that its run has.

use std::collections::VecDeque;
use std::ops::RangeBounds;
use std::sync::Arc;

use flashgrain::testing::commit_of;
use flashgrain::{Db, Durability, Error, Iter, Readable, Snapshot};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::draw::{log_uniform, one_of};
use super::feature::{Feature, Features};
use super::reads::{Expected as ExpectedErrors, Reads, Records, compare, forgive, within};
use super::slots::{Maker, Slot};
use crate::world::{APPENDS, Change, Content, Counts, GROWS, MixedOperator, REMOVES, Shared, Stop};

/// Snapshots and iterators that a task holds at a time.
const HELD_MAX: usize = 4;

/// Values of more bytes are not in the log, only where they are.
pub const LOGGED_VALUE_BYTES: usize = 4096;

/// Bytes of a batch: a store takes none of more than an eighth of its log.
const BATCH_BYTES: usize = 5000;

/// Most keys side by side that are changed together.
const NEIGHBOURS_MAX: u64 = 200;

/// Most commits of a burst.
const BURST_MAX: u64 = 60;

/// The records that an iterator has still to show.
type Expected = VecDeque<(Vec<u8>, Vec<u8>)>;

/// A snapshot, and an iterator of a tree as it was then.
struct Held {
    snapshot: Snapshot,
    content: Arc<Content>,
    iter: Option<(Iter, Expected)>,
}

/// See the module.
pub struct Work {
    pub(super) db: Db,
    pub(super) maker: Maker,
    pub(super) operator: MixedOperator,
    pub(super) random: Pcg64,
    /// How durable commits are that do not say.
    pub(super) durability: Durability,
    pub(super) counts: Counts,
    task: u64,
    /// Whether no other task of the run uses the store.
    pub(super) is_alone: bool,
    values: u32,
    held: Vec<Held>,
}

/// An operation, and its frequency relative to others.
type Operation = (Feature, f64, fn(&mut Work) -> Result<(), Stop>);

const OPERATIONS: &[Operation] = &[
    (Feature::Batches, 8.0, Work::batch),
    (Feature::Transactions, 4.0, Work::transaction),
    (Feature::Swaps, 3.0, Work::swap),
    (Feature::Merges, 8.0, Work::merge),
    (Feature::Removals, 3.0, Work::remove),
    (Feature::Ranges, 1.5, Work::clear),
    (Feature::Ranges, 0.5, Work::remove_range),
    (Feature::WholeRanges, 0.2, Work::clear_all),
    (Feature::Neighbours, 2.0, Work::neighbours),
    (Feature::Scans, 4.0, Work::read),
    (Feature::HeldSnapshots, 2.0, Work::hold),
    (Feature::HeldSnapshots, 4.0, Work::look_back),
    (Feature::Loads, 0.3, Work::load),
    (Feature::Conversion, 0.2, Work::convert),
    (Feature::Renames, 0.2, Work::rename),
    (Feature::Drops, 0.2, Work::drop_tree),
    (Feature::Checkpoints, 0.5, Work::checkpoint),
    (Feature::Compaction, 0.2, Work::compact),
    (Feature::Backups, 0.1, Work::back_up),
    (Feature::Checks, 0.3, Work::check),
    (Feature::FailingOperator, 0.5, Work::toggle_operator),
];

/// Single inserts, in addition to the operations.
const INSERTS: f64 = 10.0;

/// An operation that is frequent in a run.
const FREQUENT: f64 = 5.0;

impl Work {
    /// The work of a task.
    pub fn new(
        db: &Db,
        maker: &Maker,
        operator: &MixedOperator,
        durability: Durability,
        (seed, is_alone): (u64, bool),
    ) -> Self {
        Self {
            db: db.clone(),
            maker: maker.clone(),
            operator: operator.clone(),
            random: Pcg64::seed_from_u64(seed),
            durability,
            counts: Counts::default(),
            task: seed % 1000,
            is_alone,
            values: 0,
            held: Vec::new(),
        }
    }

    pub(super) fn features(&self) -> Features {
        self.maker.features
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.maker.shared
    }

    /// Does `steps` operations.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn run(mut self, steps: u64) -> Result<Counts, Stop> {
        let operations: Vec<Operation> = OPERATIONS
            .iter()
            .filter(|(feature, ..)| self.features().has(*feature))
            .map(|&(feature, weight, act)| {
                let is_frequent = self.features().is_frequent(feature);
                (feature, if is_frequent { FREQUENT } else { weight }, act)
            })
            .collect();
        let sum: f64 = INSERTS + operations.iter().map(|(_, weight, _)| weight).sum::<f64>();
        for _ in 0..steps {
            let mut choice = self.random.random_range(0.0..sum);
            let chosen = operations.iter().find(|(_, weight, _)| {
                choice -= weight;
                choice < 0.0
            });
            let (what, done) = match chosen {
                Some((feature, _, act)) => (feature.name(), act(&mut self)),
                None => ("inserts", self.insert()),
            };
            let expected = ExpectedErrors {
                of_operator: self.features().has(Feature::FailingOperator),
                of_snapshots: self.features().has(Feature::HeldSnapshots),
                any: self.features().has(Feature::ReadErrors),
            };
            let is_done =
                forgive(done, expected).map_err(|stop| Stop::Wrong(format!("{what}: {stop}")))?.is_some();
            self.counts.add(if is_done { what } else { "refused" }, 1);
        }
        Ok(self.counts)
    }

    /// A tree, which is made if there is none.
    fn slot(&mut self) -> Result<Option<Slot>, Error> {
        let (index, slot) = self.maker.slots.clone().any(&mut self.random);
        match slot {
            Some(slot) => Ok(Some(slot)),
            None => self.make(index),
        }
    }

    /// Makes the tree of a slot, unless another task does.
    pub(super) fn make(&mut self, index: usize) -> Result<Option<Slot>, Error> {
        let maker = self.maker.clone();
        let Some(defining) = maker.slots.define(index) else { return Ok(None) };
        let name = defining.other_name(&mut self.random);
        let slot = maker.make(&self.db, &mut self.random, &name, None)?;
        defining.set(slot.clone());
        Ok(slot)
    }

    pub(super) fn value(&mut self, slot: &Slot) -> Vec<u8> {
        self.values += 1;
        let mut value = format!("{}/{}:", self.task, self.values).into_bytes();
        let length = log_uniform(&mut self.random, 0, slot.data.value_bytes_max) as usize;
        value.resize(length, b'a' + (self.values % 26) as u8);
        value
    }

    /// Many writes one after the other; none waits to be durable.
    pub(super) fn burst(&mut self, slot: &Slot) -> Result<(), Stop> {
        for _ in 0..log_uniform(&mut self.random, 1, BURST_MAX) {
            let mut batch = self.db.batch().durability(Durability::None);
            let mut changes = Vec::new();
            for _ in 0..self.random.random_range(1..6) {
                let (key, value) = (slot.data.keys.any(&mut self.random), self.value(slot));
                batch.insert(&slot.tree, &key, value.clone())?;
                changes.push(Change::Write(slot.identity.clone(), key, Some(value)));
            }
            self.shared().commit(changes, false, || batch.commit())?;
        }
        Ok(())
    }

    fn operand(&mut self, slot: &Slot) -> Vec<u8> {
        self.values += 1;
        let mixed = slot.data.operator == MixedOperator::NAME;
        match self.random.random_range(0..12) {
            0 if mixed => vec![REMOVES],
            1 if mixed => {
                let length = log_uniform(&mut self.random, 1, slot.data.value_bytes_max) as u32;
                [&[GROWS][..], &length.to_le_bytes()].concat()
            }
            _ => {
                let mut operand = vec![APPENDS];
                operand.extend_from_slice(format!("{}/{}", self.task, self.values).as_bytes());
                let longest = slot.data.value_bytes_max.min(3000);
                operand.resize(log_uniform(&mut self.random, 1, longest) as usize, b'.');
                operand
            }
        }
    }

    pub(super) fn draw_durability(&mut self) -> Durability {
        match self.features().has(Feature::Buffered) {
            true => one_of(&mut self.random, &[Durability::None, Durability::Buffered, Durability::Sync]),
            false => Durability::Sync,
        }
    }

    fn is_durable(&self) -> bool {
        self.durability == Durability::Sync
    }

    fn insert(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let (key, value) = (slot.data.keys.any(&mut self.random), self.value(&slot));
        let change = Change::Write(slot.identity.clone(), key.clone(), Some(value.clone()));
        let durable = self.is_durable();
        let streams = value.len() > LOGGED_VALUE_BYTES && self.random.random();
        Ok(self.shared().commit(vec![change], durable, || match streams {
            true => slot.tree.insert_from(&key, value.as_slice()).map(drop),
            false => slot.tree.insert(&key, &value),
        })?)
    }

    fn remove(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let key = slot.data.keys.any(&mut self.random);
        let change = Change::Write(slot.identity.clone(), key.clone(), None);
        Ok(self.shared().commit(vec![change], self.is_durable(), || slot.tree.remove(&key))?)
    }

    /// Neighbours are removed or written as one, so that scans come to many keys without records.
    fn neighbours(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let keys = slot.data.keys.clone();
        let run = keys.run(&mut self.random, NEIGHBOURS_MAX);
        let (removes, durability) = (self.random.random_bool(0.6), self.draw_durability());
        let mut batch = self.db.batch().durability(durability);
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for key in run {
            if bytes > BATCH_BYTES {
                break;
            }
            let value = (!removes).then(|| self.value(&slot));
            match &value {
                Some(value) => batch.insert(&slot.tree, key, value.clone())?,
                None => batch.remove(&slot.tree, key)?,
            }
            bytes += key.len() + value.as_ref().map_or(0, |value| value.len().min(LOGGED_VALUE_BYTES));
            changes.push(Change::Write(slot.identity.clone(), key.clone(), value));
        }
        self.shared().commit(changes, durability == Durability::Sync, || batch.commit())?;
        let near = |key: &Vec<u8>| std::ops::Bound::Included(key.clone());
        slot.data.keys.remember(&(near(&run[0]), near(&run[run.len() - 1])));
        if self.random.random() { self.read_of(&slot) } else { Ok(()) }
    }

    fn swap(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let (key, durable) = (slot.data.keys.any(&mut self.random), self.is_durable());
        let (shared, identity) = (self.shared().clone(), slot.identity.clone());
        match self.random.random_range(0..3) {
            0 => {
                let value = self.value(&slot);
                let change = Change::Write(identity, key.clone(), Some(value.clone()));
                shared.commit(vec![change], durable, || slot.tree.replace(&key, &value).map(drop))?;
            }
            1 => {
                let change = Change::Write(identity, key.clone(), None);
                shared.commit(vec![change], durable, || slot.tree.take(&key).map(drop))?;
            }
            _ => {
                let more = [&[APPENDS][..], format!("{}", self.values).as_bytes()].concat();
                let change = Change::Merge(identity, key.clone(), more.clone());
                shared.commit(vec![change], durable, || {
                    slot.tree.update(&key, |old| Some([old.unwrap_or_default(), &more].concat())).map(drop)
                })?;
            }
        }
        Ok(())
    }

    fn batch(&mut self) -> Result<(), Stop> {
        let durability = self.draw_durability();
        let mut batch = self.db.batch().durability(durability);
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for _ in 0..log_uniform(&mut self.random, 1, 40) {
            let Some(slot) = self.slot()? else { continue };
            let (key, value) = (slot.data.keys.any(&mut self.random), self.value(&slot));
            let merges = self.features().has(Feature::Merges) && self.random.random_bool(0.3);
            let change = match self.random.random_bool(0.75) {
                true if merges => {
                    let operand = self.operand(&slot);
                    batch.merge(&slot.tree, &key, &operand)?;
                    Change::Merge(slot.identity, key.clone(), operand)
                }
                true => {
                    batch.insert(&slot.tree, &key, value.clone())?;
                    Change::Write(slot.identity, key.clone(), Some(value.clone()))
                }
                false => {
                    batch.remove(&slot.tree, &key)?;
                    Change::Write(slot.identity, key.clone(), None)
                }
            };
            changes.push(change);
            bytes += key.len() + value.len().min(LOGGED_VALUE_BYTES);
            if bytes > BATCH_BYTES {
                break;
            }
        }
        Ok(self.shared().commit(changes, durability == Durability::Sync, || batch.commit())?)
    }

    fn transaction(&mut self) -> Result<(), Stop> {
        let mut transaction = self.db.begin()?;
        let durability = self.draw_durability();
        transaction.set_durability(durability);
        let mut changes = Vec::new();
        for _ in 0..log_uniform(&mut self.random, 1, 8) {
            let Some(slot) = self.slot()? else { continue };
            let key = slot.data.keys.any(&mut self.random);
            if self.random.random() {
                let _seen = transaction.get(&slot.tree, &key)?;
            }
            let value = self.random.random_bool(0.8).then(|| self.value(&slot));
            match &value {
                Some(value) => transaction.insert(&slot.tree, &key, value.clone())?,
                None => transaction.remove(&slot.tree, &key)?,
            }
            let found = transaction.get(&slot.tree, &key)?;
            let [found, expected] =
                [found.as_deref(), value.as_deref()].map(|value| value.map(|value| (&key[..], value)));
            compare("a transaction's own write", found, expected)?;
            changes.push(Change::Write(slot.identity.clone(), key, value));
        }
        if self.random.random_bool(0.1) {
            return Ok(());
        }
        Ok(self.shared().commit(changes, durability == Durability::Sync, || transaction.commit())?)
    }

    fn merge(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let key = slot.data.keys.any(&mut self.random);
        // Now and then many of one key.
        let count = if self.random.random_bool(0.1) { log_uniform(&mut self.random, 1, 60) } else { 1 };
        for _ in 0..count {
            let operand = self.operand(&slot);
            let change = Change::Merge(slot.identity.clone(), key.clone(), operand.clone());
            self.shared().commit(vec![change], self.is_durable(), || slot.tree.merge(&key, &operand))?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let range = slot.data.keys.range(&mut self.random);
        self.clear_range(&slot, range)
    }

    fn clear_all(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        use std::ops::Bound::Unbounded;
        self.clear_range(&slot, (Unbounded, Unbounded))
    }

    fn clear_range(&mut self, slot: &Slot, range: crate::world::KeyRange) -> Result<(), Stop> {
        use flashgrain::IndexKind::{BeTree, Lsm};
        slot.data.keys.remember(&range);
        if !matches!(slot.tree.options().index_kind(), Lsm | BeTree) {
            // In these it is done in several commits.
            return self.remove_range_of(slot, range);
        }
        let change = Change::Clear(slot.identity.clone(), range.clone());
        self.shared().commit(vec![change], self.is_durable(), || slot.tree.clear_range(range))?;
        Ok(())
    }

    fn remove_range(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        let range = slot.data.keys.range(&mut self.random);
        slot.data.keys.remember(&range);
        self.remove_range_of(&slot, range)
    }

    /// All that a transaction sees of a range.
    fn remove_range_of(&mut self, slot: &Slot, range: crate::world::KeyRange) -> Result<(), Stop> {
        let mut transaction = self.db.begin()?;
        let mut changes = Vec::new();
        for record in transaction.range(&slot.tree, range.clone())? {
            let (key, _) = record?;
            if !range.contains(&key.to_vec()) {
                return Err(Stop::Wrong("a scan shows a key outside of its range".into()));
            }
            changes.push(Change::Write(slot.identity.clone(), key.to_vec(), None));
        }
        transaction.remove_range(&slot.tree, range)?;
        Ok(self.shared().commit(changes, self.is_durable(), || transaction.commit())?)
    }

    fn read(&mut self) -> Result<(), Stop> {
        let Some(slot) = self.slot()? else { return Ok(()) };
        self.read_of(&slot)
    }

    fn read_of(&mut self, slot: &Slot) -> Result<(), Stop> {
        let snapshot = self.db.snapshot()?;
        let content = self.shared().get().content(commit_of(&snapshot));
        self.look(&snapshot, slot, &content)
    }

    fn look(&mut self, snapshot: &Snapshot, slot: &Slot, content: &Content) -> Result<(), Stop> {
        let none = Records::new();
        let expected = content.get(&slot.identity).unwrap_or(&none);
        let reads = Reads { source: snapshot, tree: &slot.tree, keys: &slot.data.keys, expected };
        reads.some(&mut self.random).map_err(|stop| match stop {
            Stop::Wrong(problem) => {
                let (commit, kind) = (commit_of(snapshot), slot.tree.options().index_kind());
                Stop::Wrong(format!("{} ({kind:?}) as of commit {commit}, {problem}", slot.tree.name()))
            }
            stop => stop,
        })
    }

    fn hold(&mut self) -> Result<(), Stop> {
        if self.held.len() == HELD_MAX {
            let place = self.random.random_range(0..HELD_MAX);
            self.held.swap_remove(place);
        }
        let snapshot = self.db.snapshot()?;
        let content = self.shared().get().content(commit_of(&snapshot));
        let mut iter = None;
        if self.random.random()
            && let Some(slot) = self.slot()?
        {
            let range = slot.data.keys.range(&mut self.random);
            let records = content.get(&slot.identity);
            let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let expected =
                records.map_or_else(VecDeque::new, |records| within(records, &range).map(own).collect());
            iter = Some((snapshot.range(&slot.tree, range)?, expected));
        }
        self.held.push(Held { snapshot, content, iter });
        Ok(())
    }

    /// Looks again at the snapshots and iterators that are held.
    fn look_back(&mut self) -> Result<(), Stop> {
        if self.held.is_empty() {
            return Ok(());
        }
        let place = self.random.random_range(0..self.held.len());
        if let Some((iter, expected)) = &mut self.held[place].iter {
            for _ in 0..log_uniform(&mut self.random, 1, 30) {
                let forwards = self.random.random_bool(0.8);
                let found = if forwards { iter.next() } else { iter.next_back() };
                // After an error it has ended.
                let found = found.transpose().inspect_err(|_| expected.clear())?;
                let expected = if forwards { expected.pop_front() } else { expected.pop_back() };
                let found = found.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice()));
                let expected = expected.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice()));
                compare("an iterator that was held", found, expected)?;
            }
            return Ok(());
        }
        let (snapshot, content) = (self.held[place].snapshot.clone(), Arc::clone(&self.held[place].content));
        let Some(slot) = self.slot()? else { return Ok(()) };
        self.look(&snapshot, &slot, &content)
    }

    fn toggle_operator(&mut self) -> Result<(), Stop> {
        self.operator.set_failing(self.random.random_bool(0.3));
        Ok(())
    }
}
