//! Random transactions, and their reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain::{Db, Durability, Error, Readable, Tree};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::history::{History, Key, Operation, Outcome, Transaction};

/// Workload of the sessions.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sessions side by side.
    pub sessions: usize,
    /// Transactions of each, one after the other.
    pub transactions: usize,
    /// Lists that they all share: the fewer, the more they are in each other's way. Each session has two more
    /// that only it appends to.
    pub keys: Key,
    /// Bytes in addition to the numbers in every third list's value; in another third there are a tenth of
    /// them.
    pub padding_bytes: usize,
    /// Whether every commit is durable when it returns; otherwise some are.
    pub all_durable: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { sessions: 8, transactions: 25, keys: 6, padding_bytes: 3000, all_durable: false }
    }
}

impl Shape {
    /// Few lists, and few or many sessions: with many there is always a session that old versions are kept
    /// for.
    pub fn contended(seed: u64) -> Self {
        const TRANSACTIONS: usize = 200;
        let sessions = [3, 8, 16][seed as usize % 3];
        Self { keys: 2 + seed as u32 % 2, sessions, transactions: TRANSACTIONS / sessions, ..Self::default() }
    }
}

/// The trees of the lists, and a tree of other records.
#[derive(Clone, Debug)]
pub struct Trees {
    lists: Vec<Tree>,
    filler: Tree,
}

/// Records the operations of sessions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    shape: Shape,
}

#[derive(Debug, Default)]
struct Shared {
    clock: AtomicU64,
    sessions: AtomicU64,
    next_number: AtomicU64,
    transactions: Mutex<Vec<Transaction>>,
}

/// A transaction that is under way.
struct Open<'a> {
    recorder: &'a Recorder,
    index: usize,
}

impl Trees {
    /// Those of a store, which are made if they are not there.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn of(db: &Db) -> Result<Self, Error> {
        Ok(Self { lists: vec![db.tree("lists")?, db.tree("other lists")?], filler: db.tree("filler")? })
    }

    /// In a new store: puts other records between the lists, so that they are in different leaves, of trees
    /// with several levels.
    ///
    /// # Errors
    /// As [`Db::batch`].
    pub fn fill(&self, db: &Db) -> Result<(), Error> {
        for key in 0..FILLED {
            let mut batch = db.batch().durability(Durability::None);
            for number in 0..3 {
                batch.insert(self.of_key(key), [&name(key)[..], &[number]].concat(), [number; 600])?;
            }
            batch.commit()?;
        }
        db.sync()
    }

    fn of_key(&self, key: Key) -> &Tree {
        &self.lists[key as usize % self.lists.len()]
    }
}

/// Lists that other records follow.
const FILLED: Key = 40;

fn name(key: Key) -> [u8; 4] {
    key.to_be_bytes()
}

impl Recorder {
    /// A recorder of sessions of this shape.
    pub fn new(shape: Shape) -> Self {
        Self { shared: Arc::default(), shape }
    }

    /// All transactions recorded so far.
    pub fn history(&self) -> History {
        History { transactions: self.transactions().clone() }
    }

    fn transactions(&self) -> MutexGuard<'_, Vec<Transaction>> {
        self.shared.transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.shared.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn open(&self, session: usize) -> Open<'_> {
        let mut transactions = self.transactions();
        let index = transactions.len();
        let begun = self.tick();
        let outcome = Outcome::Unknown;
        transactions.push(Transaction { session, begun, ended: u64::MAX, operations: Vec::new(), outcome });
        Open { recorder: self, index }
    }

    fn encode(&self, key: Key, list: &[u64]) -> Vec<u8> {
        let padding = match key % 3 {
            0 => 0,
            1 => self.shape.padding_bytes / 10,
            _ => self.shape.padding_bytes,
        };
        let numbers = list.iter().flat_map(|number| number.to_le_bytes());
        let length = (list.len() as u32).to_le_bytes();
        length.into_iter().chain(numbers).chain((0..padding).map(|at| at as u8)).collect()
    }

    /// The numbers of a value; a number that no session writes, if the value is damaged.
    fn decode(&self, key: Key, value: Option<&[u8]>) -> Vec<u64> {
        let Some(value) = value else { return Vec::new() };
        let length = value.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
        let (words, _) = value.get(4..).unwrap_or_default().as_chunks::<8>();
        let list: Vec<u64> = words.iter().take(length).map(|word| u64::from_le_bytes(*word)).collect();
        if self.encode(key, &list) == value { list } else { vec![u64::MAX] }
    }

    /// One session: its transactions, one after the other. A conflict is part of the history.
    ///
    /// # Errors
    /// All others of the store.
    pub fn session(&self, db: &Db, trees: &Trees, seed: u64) -> Result<(), Error> {
        let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed) as usize;
        let mut random = Pcg64::seed_from_u64(seed ^ (session as u64) << 32);
        let mut own = [Vec::new(), Vec::new()];
        for _ in 0..self.shape.transactions {
            match random.random_range(0..20) {
                0..3 => self.read_snapshot(session, db, trees, &mut random)?,
                3..6 => self.read_one(session, trees, &mut random)?,
                6..8 => self.read_iterator(session, trees, &mut random)?,
                8 => self.disturb(db, trees, &mut random)?,
                9..11 => self.append_own(session, db, trees, &mut own, &mut random)?,
                _ => self.read_and_append(session, db, trees, &mut random)?,
            }
        }
        Ok(())
    }

    /// Reads all lists, so that the history shows their final state.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn read_all(&self, db: &Db, trees: &Trees) -> Result<(), Error> {
        let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed) as usize;
        let mut open = self.open(session);
        let snapshot = db.snapshot()?;
        for key in 0..self.keys() {
            open.read(key, snapshot.get(trees.of_key(key), name(key))?.as_deref());
        }
        open.end(Outcome::Committed);
        Ok(())
    }

    /// Number of the lists of all sessions so far.
    fn keys(&self) -> Key {
        self.shape.keys + 2 * self.shared.sessions.load(Ordering::Relaxed) as Key
    }

    /// A list that all share.
    fn any(&self, random: &mut Pcg64) -> Key {
        random.random_range(0..self.shape.keys)
    }

    /// Some that all share, or both of a session.
    fn some(&self, random: &mut Pcg64) -> Vec<Key> {
        if random.random() {
            return (0..random.random_range(1..4)).map(|_| self.any(random)).collect();
        }
        let first = self.shape.keys + random.random_range(0..self.keys() - self.shape.keys) / 2 * 2;
        if random.random() { vec![first, first + 1] } else { vec![first + 1, first] }
    }

    fn read_snapshot(&self, session: usize, db: &Db, trees: &Trees, random: &mut Pcg64) -> Result<(), Error> {
        let mut open = self.open(session);
        let snapshot = db.snapshot()?;
        for key in self.some(random) {
            open.read(key, snapshot.get(trees.of_key(key), name(key))?.as_deref());
        }
        open.read_from(&snapshot, trees, random)?;
        open.end(Outcome::Committed);
        Ok(())
    }

    /// Without a snapshot: each by itself.
    fn read_one(&self, session: usize, trees: &Trees, random: &mut Pcg64) -> Result<(), Error> {
        for key in self.some(random) {
            let mut open = self.open(session);
            open.read(key, trees.of_key(key).get(name(key))?.as_deref());
            open.end(Outcome::Committed);
        }
        Ok(())
    }

    fn read_iterator(&self, session: usize, trees: &Trees, random: &mut Pcg64) -> Result<(), Error> {
        let mut open = self.open(session);
        let tree = random.random_range(0..trees.lists.len());
        open.read_records(trees, tree, trees.lists[tree].iter()?)?;
        open.end(Outcome::Committed);
        Ok(())
    }

    /// Both lists of its own, at once and without a snapshot: their content is known.
    fn append_own(
        &self,
        session: usize,
        db: &Db,
        trees: &Trees,
        own: &mut [Vec<u64>; 2],
        random: &mut Pcg64,
    ) -> Result<(), Error> {
        let mut open = self.open(session);
        let mut batch = db.batch().durability(self.durability(random));
        for (key, list) in (self.shape.keys + 2 * session as Key..).zip(own) {
            let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
            list.push(number);
            batch.insert(trees.of_key(key), name(key), self.encode(key, list))?;
            open.note(Operation::Append(key, number));
        }
        batch.commit()?;
        open.end(Outcome::Committed);
        Ok(())
    }

    fn durability(&self, random: &mut Pcg64) -> Durability {
        match random.random_range(0..4) {
            _ if self.shape.all_durable => Durability::Sync,
            0 => Durability::Sync,
            1 => Durability::Buffered,
            _ => Durability::None,
        }
    }

    fn read_and_append(
        &self,
        session: usize,
        db: &Db,
        trees: &Trees,
        random: &mut Pcg64,
    ) -> Result<(), Error> {
        let mut open = self.open(session);
        let mut transaction = db.begin()?;
        for _ in 0..random.random_range(1..5) {
            if random.random_ratio(1, 3) {
                open.read_from(&transaction, trees, random)?;
                continue;
            }
            let key = self.any(random);
            let tree = trees.of_key(key);
            let mut list = open.read(key, transaction.get(tree, name(key))?.as_deref());
            let number = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
            list.push(number);
            transaction.insert(tree, name(key), self.encode(key, &list))?;
            open.note(Operation::Append(key, number));
        }
        if random.random_ratio(1, 20) {
            drop(transaction);
            open.end(Outcome::Aborted);
            return Ok(());
        }
        transaction.set_durability(self.durability(random));
        match transaction.commit() {
            Ok(()) => open.end(Outcome::Committed),
            Err(Error::Conflict) => open.end(Outcome::Aborted),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a checkpoint, or writes other records, so that pages move.
    fn disturb(&self, db: &Db, trees: &Trees, random: &mut Pcg64) -> Result<(), Error> {
        if random.random_ratio(1, 4) {
            return db.checkpoint();
        }
        let mut batch = db.batch().durability(Durability::None);
        for _ in 0..8 {
            let key = random.random_range(0..400_u32).to_be_bytes();
            batch.insert(&trees.filler, key, vec![7; random.random_range(0..700)])?;
        }
        batch.commit()
    }
}

impl Open<'_> {
    fn note(&mut self, operation: Operation) {
        self.recorder.transactions()[self.index].operations.push(operation);
    }

    fn read(&mut self, key: Key, value: Option<&[u8]>) -> Vec<u64> {
        let list = self.recorder.decode(key, value);
        self.note(Operation::Read(key, list.clone()));
        list
    }

    /// One list, or all of a tree.
    fn read_from(&mut self, from: &impl Readable, trees: &Trees, random: &mut Pcg64) -> Result<(), Error> {
        if random.random_ratio(1, 4) {
            let tree = random.random_range(0..trees.lists.len());
            return self.read_records(trees, tree, from.iter(&trees.lists[tree])?);
        }
        let key = random.random_range(0..self.recorder.keys());
        self.read(key, from.get(trees.of_key(key), name(key))?.as_deref());
        Ok(())
    }

    /// Lists that are not there are empty.
    fn read_records(&mut self, trees: &Trees, tree: usize, records: flashgrain::Iter) -> Result<(), Error> {
        let records: Vec<_> = records.collect::<Result<_, _>>()?;
        for key in (0..self.recorder.keys()).filter(|key| *key as usize % trees.lists.len() == tree) {
            let found = records.iter().find(|(found, _)| found.as_slice() == name(key));
            self.read(key, found.map(|(_, value)| value.as_slice()));
        }
        Ok(())
    }

    fn end(self, outcome: Outcome) {
        let mut transactions = self.recorder.transactions();
        let transaction = &mut transactions[self.index];
        (transaction.outcome, transaction.ended) = (outcome, self.recorder.tick());
    }
}
