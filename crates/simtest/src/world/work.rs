//! Tasks that use a store as programs would, and compare its answers with the history.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use flashgrain::testing::{Small, blocks_of_trees, commit_of, kind_of_trees};
use flashgrain::{
    AppendOperator, Db, Durability, Error, ErrorKind, IndexKind, Readable, Snapshot, Tree, TreeOptions, Value,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::history::{Change, Shared};
use super::look::{same, text};
use super::store::{Shape, small};

/// Bytes of a batch that nothing more is added to: a store takes none of more than an eighth of its log, and
/// the smallest that [`Shape::draw`] makes has 84 KiB.
const BATCH_BYTES: usize = 5000;

/// Blocks of 4 KiB of a node, at most.
const BLOCKS_MAX: u32 = 4;

/// Values of more bytes are not in the log, only where they are.
const LOGGED_VALUE_BYTES: usize = 4096;

/// Records that a snapshot looks for one by one, and which part of all is ever looked for so.
const LOOKS: usize = 24;
const POPULAR_ONE_IN: usize = 8;

/// Frequencies of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habits {
    /// Tasks that work at the same time.
    pub tasks: u64,
    /// Steps of each.
    pub steps: u32,
    /// Keys of a tree.
    pub keys: u32,
    /// The most bytes of other values than the large ones.
    pub value_bytes: usize,
    /// Share of values that need pages of their own.
    pub overflow: f64,
    /// Share of those that need more pages than a record names.
    pub long: f64,
    /// Share of durable batches of one write that are made without a batch, as that takes another way through
    /// the store.
    pub single: f64,
    /// Share of steps that make a checkpoint.
    pub checkpoint: f64,
    /// Share of steps that take a snapshot, and look at it later.
    pub snapshot: f64,
    /// Commits between two such looks.
    pub behind: u32,
    /// Share of steps that drop the task's own tree and make another one; every third of them gives it
    /// another name instead.
    pub drop_tree: f64,
    /// Share of steps that remove a range of keys.
    pub remove_range: f64,
    /// Share of steps that append to values, where trees take operands.
    pub merge: f64,
    /// Share of steps that load sorted records.
    pub load: f64,
    /// Share of steps that back the store up.
    pub backup: f64,
    /// Share of steps that compact the store, of those whose device grows.
    pub compact: f64,
    /// Share of steps that check the store, reclaim pages or flush the log.
    pub upkeep: f64,
    /// Share of stores whose device grows.
    pub grows: f64,
    /// Share of these whose log grows, too, and moves.
    pub log_moves: f64,
    /// Share of drives on which now and then a read takes long.
    pub stalls: f64,
    /// Share of commits that wait until they are durable.
    pub sync: f64,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            tasks: 4,
            steps: 40,
            keys: 60,
            value_bytes: 200,
            overflow: 0.03,
            long: 0.0,
            single: 0.0,
            checkpoint: 0.02,
            snapshot: 0.05,
            behind: 1,
            drop_tree: 0.01,
            remove_range: 0.03,
            merge: if keeps_versions() { 0.2 } else { 0.0 },
            load: 0.01,
            backup: 0.002,
            compact: 0.004,
            upkeep: 0.0,
            grows: 0.2,
            log_moves: 0.5,
            stalls: 0.2,
            sync: 0.6,
        }
    }
}

/// Whether trees keep their versions themselves: they are made with a merge operator, and remove ranges
/// without looking at them. All others are as they were before there were operators.
fn keeps_versions() -> bool {
    matches!(kind_of_trees(), IndexKind::Lsm | IndexKind::BeTree)
}

impl Habits {
    /// So many records that LSM-trees have several levels, and several jobs at a time.
    pub fn many_records() -> Self {
        let usual = Self::default();
        let (overflow, checkpoint, sync) = (0.01, 0.01, 0.3);
        Self { steps: 150, keys: 600, value_bytes: 700, overflow, checkpoint, sync, ..usual }
    }

    /// Trees that come and go, and are given other names, all the time.
    pub fn many_trees() -> Self {
        Self { drop_tree: 0.3, checkpoint: 0.1, steps: 30, ..Self::default() }
    }

    /// One of several ways to use a store.
    pub fn draw(random: &mut Pcg64) -> Self {
        let usual = Self::default();
        let kinds = if keeps_versions() { 9 } else { 7 };
        match random.random_range(0..kinds) {
            // Long enough for the log's ring to go round and for the cleaner to work.
            0 => Self { steps: 250, keys: 250, overflow: 0.01, checkpoint: 0.01, ..usual },
            // Checkpoints all the time.
            1 => Self { steps: 60, checkpoint: 0.2, ..usual },
            // Many at the same time, few of them in a hurry.
            2 => Self { tasks: 12, steps: 25, sync: 0.2, ..usual },
            // Overflow values, enough of them to make a drive grow or fill it.
            3 => Self { overflow: 0.4, keys: 100, steps: 100, checkpoint: 0.1, grows: 0.7, ..usual },
            // Commits that wait for pages while others come, are replaced and become part of checkpoints.
            4 => Self {
                tasks: 12,
                keys: 400,
                steps: 40,
                overflow: 0.3,
                checkpoint: 0.15,
                stalls: 1.0,
                sync: 0.2,
                ..usual
            },
            7 | 8 => Self::many_records(),
            // Trees come and go.
            5 => Self { drop_tree: 0.1, backup: 0.02, steps: 30, ..usual },
            _ => usual,
        }
    }
}

/// The tree that all tasks write to.
const COMMON: &str = "common";

/// Names of a task's own trees, which are used again.
const OWN_NAMES: u32 = 4;

/// One task's work.
pub struct Work {
    db: Db,
    shape: Shape,
    shared: Shared,
    habits: Habits,
    random: Pcg64,
    task: u64,
    /// So many trees of its own were made so far.
    made: u32,
    /// So many values were made.
    values: u32,
}

/// Why a task ended before it was done.
#[derive(Debug)]
pub enum Stop {
    /// The store refused.
    Error(Error),
    /// It gave a wrong answer.
    Wrong(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => write!(formatter, "the store refused: {error}"),
            Self::Wrong(what) => formatter.write_str(what),
        }
    }
}

impl Work {
    /// The work of a task, of those that are told apart by `task`.
    pub fn new(db: &Db, shape: &Shape, shared: &Shared, habits: Habits, seed: u64, task: u64) -> Self {
        let random = Pcg64::seed_from_u64(seed << 8 ^ task);
        let (db, shape, shared) = (db.clone(), shape.clone(), shared.clone());
        Self { db, shape, shared, habits, random, task, made: 0, values: 0 }
    }

    /// Does it all.
    ///
    /// # Errors
    /// Why not.
    pub fn run(mut self) -> Result<(), Stop> {
        let common = self.tree(COMMON.into())?;
        let mut own = self.own_tree()?;
        for _ in 0..self.habits.steps {
            let habits = self.habits;
            let mut choice = self.random.random::<f64>();
            let mut is = |share: f64| {
                choice -= share;
                choice < 0.0
            };
            if is(habits.checkpoint) {
                self.checkpoint()?;
            } else if is(habits.snapshot) {
                self.look_back(&common)?;
            } else if is(habits.drop_tree) {
                own = self.drop_tree(&own)?;
            } else if is(habits.remove_range) {
                self.remove_range(&common)?;
            } else if is(habits.merge) {
                self.merge(&common, &own)?;
            } else if is(habits.load) {
                self.load(&own)?;
            } else if is(habits.backup) {
                self.back_up()?;
            } else if is(habits.compact) {
                self.compact()?;
            } else if is(habits.upkeep) {
                self.keep_up()?;
            } else if is(0.1) {
                self.transact(&common, &own)?;
            } else {
                self.batch(&common, &own)?;
            }
        }
        Ok(())
    }

    /// Commits once more, without waiting, and closes the store right then, with the log as it is.
    ///
    /// # Errors
    /// The store's.
    pub fn close(mut self) -> Result<(), Error> {
        let common = self.tree(COMMON.into())?;
        self.habits.sync = 0.0;
        match self.batch(&common, &common) {
            // There must be room to close it nevertheless.
            Err(Error::Full { .. }) => {}
            ended => ended?,
        }
        let Self { db, shared, .. } = self;
        shared.durable(|| db.close())
    }

    fn tree(&mut self, name: String) -> Result<Tree, Error> {
        let factor = [1, 2][self.random.random_range(0..2)];
        // The smallest cache has no room for larger nodes.
        let is_large = factor * blocks_of_trees() > BLOCKS_MAX || kind_of_trees() == IndexKind::BeTree;
        let factor = if is_large { 1 } else { factor };
        let options = TreeOptions::new().node_bytes(4096 * factor);
        let options = if keeps_versions() { options.merge_operator(AppendOperator::NAME) } else { options };
        if let Ok(tree) = self.db.existing_tree(&name) {
            return Ok(tree);
        }
        let mut made = None;
        self.shared.clone().commit(vec![Change::Create(name.clone())], true, || {
            made = Some(self.db.tree_with(&name, &options)?);
            Ok::<_, Error>(())
        })?;
        made.ok_or(Error::Closed)
    }

    fn own_tree(&mut self) -> Result<Tree, Error> {
        self.made += 1;
        self.tree(self.own_name(self.made))
    }

    fn own_name(&self, number: u32) -> String {
        format!("{} of {}", number % OWN_NAMES, self.task)
    }

    fn drop_tree(&mut self, own: &Tree) -> Result<Tree, Error> {
        let (db, name, new_name) = (self.db.clone(), own.name().to_owned(), self.own_name(self.made + 1));
        // An earlier life of the store may have left a tree of that name.
        if self.made.is_multiple_of(3) && db.existing_tree(&new_name).is_err() {
            self.made += 1;
            let change = Change::Rename(name.clone(), new_name.clone());
            self.shared.commit(vec![change], true, || db.rename_tree(&name, &new_name))?;
            return db.existing_tree(&new_name);
        }
        self.shared.commit(vec![Change::Drop(name.clone())], true, || db.drop_tree(&name))?;
        self.own_tree()
    }

    /// Many sorted records at once, few and small enough for one commit.
    fn load(&mut self, own: &Tree) -> Result<(), Error> {
        let mut records: Vec<_> = (0..20).map(|_| (self.key(), self.key())).collect();
        records.sort_unstable();
        records.dedup_by(|one, other| one.0 == other.0);
        let write = |(key, value): &(Vec<u8>, Vec<u8>)| (own.clone(), key.clone(), Some(value.clone()));
        let writes = records.iter().map(write).collect();
        self.shared.commit(changes(writes), true, || own.load(records).map(drop))
    }

    /// A copy while others go on.
    fn back_up(&mut self) -> Result<(), Error> {
        let (copy, device) = self.shape.copy();
        let from = self.shared.get().returned();
        let small_copy = Small { id: [6; 16], ..self.shape.small.clone() };
        let shape = Shape { small: small_copy, ..self.shape.clone() };
        self.db.backup(small(&shape, device))?;
        let mut history = self.shared.get();
        let to = history.newest();
        history.copies.push((copy, from..=to));
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Error> {
        match self.shared.durable(|| self.db.checkpoint()) {
            Err(Error::Full { .. }) => Ok(()),
            ended => ended,
        }
    }

    fn compact(&mut self) -> Result<(), Error> {
        if !self.shape.grows {
            return Ok(());
        }
        match self.db.compact().map(drop) {
            Err(Error::Full { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// A step of maintenance.
    fn keep_up(&mut self) -> Result<(), Error> {
        match self.random.random_range(0..3) {
            0 => self.db.check().map(drop),
            1 => self.db.reclaim().map(drop),
            _ => self.shared.durable(|| self.db.sync()),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let key = self.random.random_range(0..self.habits.keys);
        format!("{}{key:04}", "k".repeat(key as usize / 6 % 30)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.values += 1;
        let mut value = format!("{}/{}:", self.task, self.values).into_bytes();
        let length = match self.random.random::<f64>() < self.habits.overflow {
            true if self.happens(self.habits.long) => self.random.random_range(34_000..60_000),
            true => self.random.random_range(2000..12_000),
            false => self.random.random_range(8..self.habits.value_bytes),
        };
        let fill = b'a' + (self.values % 26) as u8;
        value.resize(length, fill);
        value
    }

    /// Whether an event of this probability happens now. It draws nothing for probability 0.
    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random::<f64>() < share
    }

    fn durability(&mut self) -> Durability {
        match self.random.random::<f64>() < self.habits.sync {
            true => Durability::Sync,
            false => [Durability::None, Durability::Buffered][self.random.random_range(0..2)],
        }
    }

    fn writes(&mut self, trees: [&Tree; 2]) -> Vec<(Tree, Vec<u8>, Option<Vec<u8>>)> {
        let count = [1, 1, 2, 5, 12][self.random.random_range(0..5)];
        let mut writes: Vec<(Tree, Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        let mut bytes = 0;
        for _ in 0..count {
            if bytes > BATCH_BYTES {
                break;
            }
            let (tree, key) = (trees[self.random.random_range(0..2)], self.key());
            if writes.iter().all(|(other, same, _)| other.name() != tree.name() || *same != key) {
                let value = self.random.random_bool(0.75).then(|| self.value());
                bytes += key.len() + value.as_ref().map_or(0, Vec::len).min(LOGGED_VALUE_BYTES);
                writes.push((tree.clone(), key, value));
            }
        }
        writes
    }

    fn batch(&mut self, common: &Tree, own: &Tree) -> Result<(), Error> {
        let (mut writes, durability) = (self.writes([common, own]), self.durability());
        if writes.len() == 1 && durability == Durability::Sync && self.happens(self.habits.single) {
            return writes.pop().map_or(Ok(()), |write| self.write(write));
        }
        let mut batch = self.db.batch().durability(durability);
        for (tree, key, value) in &writes {
            match value {
                Some(value) => batch.insert(tree, key, value.clone())?,
                None => batch.remove(tree, key)?,
            }
        }
        let changes = changes(writes);
        self.shared.commit(changes, durability == Durability::Sync, || batch.commit())
    }

    /// A write that is a commit of its own.
    fn write(&mut self, write: (Tree, Vec<u8>, Option<Vec<u8>>)) -> Result<(), Error> {
        let (tree, key, value) = write.clone();
        self.shared.commit(changes(vec![write]), true, || match value {
            Some(value) => tree.insert(&key, value),
            None => tree.remove(&key),
        })
    }

    /// Reads and writes; may lose to others, and is not repeated then.
    fn transact(&mut self, common: &Tree, own: &Tree) -> Result<(), Error> {
        let mut transaction = self.db.begin()?;
        let (writes, durability) = (self.writes([common, own]), self.durability());
        transaction.set_durability(durability);
        for (tree, key, value) in &writes {
            let _seen = transaction.get(tree, key)?;
            match value {
                Some(value) => transaction.insert(tree, key, value.clone())?,
                None => transaction.remove(tree, key)?,
            }
        }
        let ended =
            self.shared.commit(changes(writes), durability == Durability::Sync, || transaction.commit());
        forgive_conflict(ended)
    }

    /// Appends to values without reading them, perhaps over a write of the same commit; or in a transaction.
    fn merge(&mut self, common: &Tree, own: &Tree) -> Result<(), Error> {
        let (durability, in_transaction) = (self.durability(), self.random.random_bool(0.2));
        let (mut batch, mut transaction) = (self.db.batch().durability(durability), self.db.begin()?);
        transaction.set_durability(durability);
        let mut changes = Vec::new();
        for _ in 0..self.random.random_range(1..5) {
            let tree = if self.random.random_bool(0.7) { common } else { own };
            let (name, key) = (tree.name().to_owned(), self.key());
            if self.random.random_bool(0.1) {
                batch.remove(tree, &key)?;
                transaction.remove(tree, &key)?;
                changes.push(Change::Write(name.clone(), key.clone(), None));
            }
            let operand = self.operand();
            batch.merge(tree, &key, &operand)?;
            transaction.merge(tree, &key, &operand)?;
            changes.push(Change::Merge(name, key, operand));
        }
        let is_durable = durability == Durability::Sync;
        if in_transaction {
            drop(batch);
            return forgive_conflict(self.shared.commit(changes, is_durable, || transaction.commit()));
        }
        drop(transaction);
        self.shared.commit(changes, is_durable, || batch.commit())
    }

    /// Short, but for a few that become values at once.
    fn operand(&mut self) -> Vec<u8> {
        self.values += 1;
        let mut operand = format!("+{}/{}", self.task, self.values).into_bytes();
        let is_long = self.random.random_bool(0.01);
        let length = if is_long { 3000 } else { self.random.random_range(8..100) };
        operand.resize(length, b'.');
        operand
    }

    /// A range as of a snapshot, all or nothing; or without looking at it, where trees can do that.
    fn remove_range(&mut self, tree: &Tree) -> Result<(), Error> {
        let (one, other) = (self.key(), self.key());
        // Without drawing anything, so that the same seed does the same with either kind of trees.
        let clears = keeps_versions() && one < other;
        let range = one.clone().min(other.clone())..one.max(other);
        if clears {
            let cleared = (Bound::Included(range.start.clone()), Bound::Excluded(range.end.clone()));
            let change = Change::Clear(tree.name().to_owned(), cleared);
            return self.shared.commit(vec![change], true, || tree.clear_range(range));
        }
        let mut transaction = self.db.begin()?;
        let keys = transaction.range(tree, range.clone())?.map(|record| record.map(|(key, _)| key.to_vec()));
        let writes: Vec<_> = keys.map(|key| Ok((tree.clone(), key?, None))).collect::<Result<_, Error>>()?;
        transaction.remove_range(tree, range)?;
        let ended = self.shared.commit(changes(writes), true, || transaction.commit());
        forgive_conflict(ended)
    }

    /// A snapshot shows the commits from before it, now and after others have gone on.
    fn look_back(&mut self, tree: &Tree) -> Result<(), Stop> {
        let snapshot = self.db.snapshot()?;
        let expected = |shared: &Shared| {
            let mut history = shared.get();
            history.content(commit_of(&snapshot)).get(tree.name()).cloned().unwrap_or_default()
        };
        let expected = expected(&self.shared);
        for _ in 0..2 {
            self.look_at_some(&snapshot, tree, &expected)?;
            let mut records = expected.iter();
            for record in snapshot.iter(tree)? {
                let (key, value) = record?;
                let expected = records.next();
                if expected.is_none_or(|(other, same)| key != *other || value != *same) {
                    let expected = expected.map_or("nothing more".into(), |(key, value)| text(key, value));
                    let found = text(&key, &value);
                    let commit = commit_of(&snapshot);
                    return Err(Stop::Wrong(format!("a snapshot of {commit} sees {found}, not {expected}")));
                }
            }
            if let Some((key, _)) = records.next() {
                let key = String::from_utf8_lossy(key).into_owned();
                return Err(Stop::Wrong(format!("a snapshot of {} misses {key}", commit_of(&snapshot))));
            }
            let (one, other) = (self.key(), self.key());
            let range = one.clone().min(other.clone())..one.max(other);
            self.look_between(&snapshot, tree, &expected, range)?;
            for _ in 0..self.habits.behind {
                self.batch(tree, tree)?;
            }
        }
        Ok(())
    }

    /// Some records, again and again, while their pages may be in memory or not.
    fn look_at_some(
        &mut self,
        snapshot: &Snapshot,
        tree: &Tree,
        expected: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<(), Stop> {
        let popular: Vec<_> = expected.iter().step_by(POPULAR_ONE_IN).collect();
        for _ in 0..LOOKS.min(popular.len()) {
            let (key, value) = popular[self.random.random_range(0..popular.len())];
            let found = snapshot.get(tree, key)?;
            if found.as_deref() != Some(value.as_slice()) {
                let found = found.map_or("nothing".into(), |found| text(key, &found));
                let (commit, expected) = (commit_of(snapshot), text(key, value));
                return Err(Stop::Wrong(format!("a snapshot of {commit} finds {found}, not {expected}")));
            }
        }
        Ok(())
    }

    /// A part of it, too, in both directions, and key by key.
    fn look_between(
        &self,
        snapshot: &Snapshot,
        tree: &Tree,
        expected: &BTreeMap<Vec<u8>, Vec<u8>>,
        range: Range<Vec<u8>>,
    ) -> Result<(), Stop> {
        let own = |(key, value): (Value, Value)| (key.to_vec(), value.to_vec());
        let records = || snapshot.range(tree, range.clone());
        let forwards = records()?.map(|record| record.map(own)).collect::<Result<Vec<_>, _>>()?;
        let mut backwards = records()?.rev().map(|record| record.map(own)).collect::<Result<Vec<_>, _>>()?;
        backwards.reverse();
        let within = expected.range(range.clone()).map(|(key, value)| (key.clone(), value.clone()));
        // The one at the end may be there as well.
        let keys: Vec<_> = forwards.iter().map(|(key, _)| key).chain([&range.end]).collect();
        let values = snapshot.get_many(tree, &keys)?;
        let is_same = |(key, value): (&&Vec<u8>, &Option<Value>)| {
            expected.get(*key).map(Vec::as_slice) == value.as_deref()
        };
        if forwards == within.collect::<Vec<_>>()
            && backwards == forwards
            && keys.iter().zip(&values).all(is_same)
        {
            return Ok(());
        }
        let [from, to] = [&range.start, &range.end].map(|key| String::from_utf8_lossy(key));
        let commit = commit_of(snapshot);
        Err(Stop::Wrong(format!("from {from} to {to}, a snapshot of {commit} sees something else")))
    }
}

fn changes(writes: Vec<(Tree, Vec<u8>, Option<Vec<u8>>)>) -> Vec<Change> {
    let change = |(tree, key, value): (Tree, Vec<u8>, _)| Change::Write(tree.name().to_owned(), key, value);
    writes.into_iter().map(change).collect()
}

fn forgive_conflict(ended: Result<(), Error>) -> Result<(), Error> {
    match ended {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        ended => ended,
    }
}

/// Whether the store has exactly the commits up to now.
///
/// # Errors
/// Errors of the store.
pub fn check(db: &Db, shared: &Shared) -> Result<Option<String>, Error> {
    let last = flashgrain::testing::last_commit(db);
    let content = shared.get().content(last);
    same(db, &content)
}
