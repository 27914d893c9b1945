//! The work of each task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flashgrain::{Db, Durability, Error, ErrorKind, Readable, Snapshot, Transaction, Tree};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::couples::Couples;
use super::durability::durability;
use super::fields::Field;
use super::ledger::{Ledger, TASKS_MAX};
use super::pairs::Pairs;
use super::token_keys::{Laid, PLACES, TOKENS, TokenKey, TokenTrees, complete, decode, encode};

use super::streams;
use crate::world::Stop;

/// The most places whose tokens are moved together.
const RANGE_PLACES: u32 = 8;

/// Snapshots that a task keeps to look at them again.
const KEPT_SNAPSHOTS: usize = 3;

/// Keys of other records, which push pages out of memory.
const OTHER_KEYS: u32 = 200;

/// Keys of ashes for a task: prime, and more than there ever are.
const ASHES: u64 = 1_000_003;

/// Steps of a task.
pub const STEPS: u32 = 30;

/// Kinds of steps that the tasks of a life take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Everything.
    All,
    /// Steps that need no transaction, and hardly ever a snapshot: removals then leave no tombstones, and no
    /// old version is kept.
    Blind,
}

/// The first of the steps that need no transaction.
const BLIND_FROM: u32 = 10;

/// The trees of a store.
#[derive(Clone, Debug)]
pub struct Trees {
    /// Places of tokens.
    pub places: TokenTrees,
    /// Trees of the pairs.
    pub pairs: Pairs,
    /// Trees of the couples.
    pub couples: Couples,
    /// Records that come one by one and go by ranges.
    pub ashes: Tree,
    /// Where each task removes ranges of its own records.
    pub fields: Tree,
    /// Others.
    pub others: Tree,
}

impl Trees {
    /// Those of a store, which are made if they are not there.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn of(db: &Db) -> Result<Self, Error> {
        Ok(Self {
            places: TokenTrees::of(db)?,
            pairs: Pairs::of(db)?,
            couples: Couples::of(db)?,
            ashes: db.tree("ashes")?,
            fields: Field::tree_of(db)?,
            others: db.tree("others")?,
        })
    }

    /// Lays all tokens and pairs in a new store.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn fill(&self, random: &mut Pcg64) -> Result<(), Error> {
        for (token, place) in (0..TOKENS).zip(TokenKey::all().step_by(2)) {
            self.places.tree(place).insert(place.key(), encode(token, random))?;
        }
        self.pairs.fill(random)
    }

    /// All, with everything in them.
    pub fn all(&self) -> impl Iterator<Item = &Tree> {
        let others = [self.pairs.tree(), self.couples.tree(), &self.ashes, &self.fields, &self.others];
        self.places.trees().iter().chain(others)
    }
}

/// One task's work.
pub struct Work {
    db: Db,
    trees: Trees,
    ledger: Arc<Ledger>,
    random: Pcg64,
    task: usize,
    kept: Vec<(Snapshot, Laid)>,
    field: Field,
}

impl Work {
    /// The work of a task, of those that are told apart by `task`.
    pub fn new(db: &Db, trees: &Trees, ledger: &Arc<Ledger>, seed: u64, task: usize) -> Self {
        let random = Pcg64::seed_from_u64(seed << 8 ^ task as u64);
        let (db, trees, ledger) = (db.clone(), trees.clone(), Arc::clone(ledger));
        let task = task % TASKS_MAX;
        let field = Field::new(&trees.fields, task);
        Self { db, trees, ledger, random, task, kept: Vec::new(), field }
    }

    /// Does it all.
    ///
    /// # Errors
    /// Why not.
    pub fn run(mut self, habit: Habit, steps: u32) -> Result<(), Stop> {
        for _ in 0..steps {
            let first = if habit == Habit::Blind { BLIND_FROM } else { 0 };
            match self.random.random_range(first..21) {
                0..5 => self.move_one()?,
                5..7 => self.move_range()?,
                7..9 => self.watch()?,
                9 => self.look_again()?,
                // Without a snapshot from here on, see `BLIND_FROM`.
                10..12 => self.trees.pairs.move_on(&self.db, &self.ledger, self.task, &mut self.random)?,
                12..14 => {
                    let pair = self.random.random_range(0..TASKS_MAX);
                    self.trees.pairs.read(&self.ledger, pair, &mut self.random)?;
                }
                14 => self.trees.couples.judge(&self.db, &mut self.random)?,
                15..17 => self.trees.couples.change(&self.db, &mut self.random)?,
                17 => self.burn()?,
                18 => self.disturb()?,
                19 => self.field.work(&self.db, &mut self.random)?,
                _ => self.rest()?,
            }
        }
        Ok(())
    }

    /// Moves the token of a place to another place; a token that lies there comes back.
    fn move_one(&mut self) -> Result<(), Stop> {
        let places = [TokenKey::draw(&mut self.random), TokenKey::draw(&mut self.random)];
        if places[0] == places[1] {
            return Ok(());
        }
        let mut transaction = self.db.begin()?;
        let mut tokens = [None; 2];
        for (token, place) in tokens.iter_mut().zip(places) {
            *token = self.token(&transaction, place)?;
        }
        tokens.swap(0, 1);
        for (token, place) in tokens.into_iter().zip(places) {
            let tree = self.trees.places.tree(place);
            match token {
                Some(token) => {
                    let value = encode(token, &mut self.random);
                    let to = (tree, place.key());
                    streams::insert(&self.db, &mut transaction, to, &value, &mut self.random)?;
                }
                None => transaction.remove(tree, place.key())?,
            }
        }
        self.commit(transaction)
    }

    fn token(&self, view: &impl Readable, place: TokenKey) -> Result<Option<u32>, Stop> {
        let Some(value) = view.get(self.trees.places.tree(place), place.key())? else { return Ok(None) };
        decode(&value).map(Some).ok_or_else(|| Stop::Wrong(format!("{place:?} has a torn value")))
    }

    /// Removes all records of a range at once and lays their tokens into other places.
    fn move_range(&mut self) -> Result<(), Stop> {
        let first = TokenKey::draw(&mut self.random);
        let last = first.number + self.random.random_range(1..=RANGE_PLACES);
        let others: Vec<_> = (0..PLACES)
            .map(|number| TokenKey { tree: 1 - first.tree, number: (number * 7 + last) % PLACES })
            .collect();
        let mut transaction = self.db.begin()?;
        let tree = self.trees.places.tree(first).clone();
        let range = first.key()..TokenKey { number: last, ..first }.key();
        let mut tokens = Vec::new();
        for record in transaction.range(&tree, range.clone())? {
            let (_, value) = record?;
            tokens.push(decode(&value).ok_or_else(|| Stop::Wrong("a range has a torn value".into()))?);
        }
        let removed = transaction.remove_range(&tree, range)?;
        if removed != tokens.len() as u64 {
            return Err(Stop::Wrong(format!("{removed} records removed of {} there were", tokens.len())));
        }
        for place in others {
            let Some(token) = tokens.last() else { break };
            if self.token(&transaction, place)?.is_none() {
                let value = encode(*token, &mut self.random);
                transaction.insert(self.trees.places.tree(place), place.key(), value)?;
                tokens.pop();
            }
        }
        // If there are not enough places, it never was.
        if tokens.is_empty() { self.commit(transaction) } else { Ok(()) }
    }

    fn commit(&mut self, mut transaction: Transaction) -> Result<(), Stop> {
        transaction.set_durability(durability(&mut self.random));
        match transaction.commit() {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            ended => Ok(ended?),
        }
    }

    /// Takes a snapshot, looks at it at once, and keeps it.
    fn watch(&mut self) -> Result<(), Stop> {
        let snapshot = self.db.snapshot()?;
        let laid = self.trees.places.laid(&snapshot, &mut self.random)?;
        complete(&laid)?;
        if self.kept.len() == KEPT_SNAPSHOTS {
            self.kept.remove(self.random.random_range(0..KEPT_SNAPSHOTS));
        }
        self.kept.push((snapshot, laid));
        Ok(())
    }

    /// A snapshot shows the same tokens as before.
    fn look_again(&mut self) -> Result<(), Stop> {
        for (snapshot, laid) in &self.kept {
            if self.trees.places.laid(snapshot, &mut self.random)? != *laid {
                return Err(Stop::Wrong("a snapshot shows something else than before".into()));
            }
        }
        Ok(())
    }

    /// Inserts a record into a random part, or removes a range of the task's own part: no other task removes
    /// records there.
    fn burn(&mut self) -> Result<(), Stop> {
        let ashes = &self.trees.ashes;
        let key =
            |task: usize, number: u64| [&[task as u8][..], &(number * 7919 % ASHES).to_be_bytes()].concat();
        if self.random.random_ratio(2, 3) {
            let number = self.ledger.inserted.fetch_add(1, Ordering::SeqCst);
            let length = if self.random.random_ratio(1, 10) { 3000 } else { 60 };
            ashes.insert(key(self.random.random_range(0..TASKS_MAX), number), vec![number as u8; length])?;
            return Ok(());
        }
        let from = self.random.random_range(0..ASHES);
        let [from, to] =
            [from, from + ASHES / 3].map(|number| [&[self.task as u8][..], &number.to_be_bytes()].concat());
        let removed = ashes.remove_range(from..to)?;
        self.ledger.removed.fetch_add(removed, Ordering::SeqCst);
        Ok(())
    }

    /// Changes other pages, so that those of the tokens leave memory.
    fn disturb(&mut self) -> Result<(), Stop> {
        let mut batch = self.db.batch().durability(Durability::None);
        for _ in 0..8 {
            let (key, length) = (self.random.random_range(0..OTHER_KEYS), self.random.random_range(0..700));
            batch.insert(&self.trees.others, key.to_be_bytes(), vec![7; length])?;
        }
        Ok(batch.commit()?)
    }

    /// A step of maintenance, or one that drops the snapshots.
    fn rest(&mut self) -> Result<(), Stop> {
        match self.random.random_range(0..6) {
            5 => streams::give_up(&self.db, &self.trees.others, &mut self.random)?,
            4 => self
                .db
                .sleep_until(self.db.now() + Duration::from_micros(self.random.random_range(1..40_000)))?,
            0 => self.kept.clear(),
            1 => self.db.checkpoint()?,
            2 => _ = self.db.check()?,
            _ => self.db.sync()?,
        }
        Ok(())
    }
}

/// Checks all invariants while no task works.
///
/// # Errors
/// The first broken invariant.
pub fn settle(db: &Db, trees: &Trees, ledger: &Ledger, random: &mut Pcg64) -> Result<(), Stop> {
    complete(&trees.places.laid(db, random)?)?;
    for pair in 0..TASKS_MAX {
        let (number, known) = (trees.pairs.number(pair)?, ledger.pairs[pair].begun());
        if number != known {
            return Err(Stop::Wrong(format!("pair {pair} is at {number}, not at {known}")));
        }
    }
    trees.couples.judge(db, random)?;
    let left = trees.ashes.iter()?.collect::<Result<Vec<_>, _>>()?.len() as u64;
    let [inserted, removed] = [&ledger.inserted, &ledger.removed].map(|count| count.load(Ordering::SeqCst));
    match inserted == removed + left {
        true => Ok(()),
        false => Err(Stop::Wrong(format!("of {inserted} ashes {removed} were removed and {left} are left"))),
    }
}
