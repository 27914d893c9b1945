//! Commits of a store, by the numbers that the log gave.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain::testing::{TaskKey, observe, task_key};

use super::operands::applied;
use crate::media::{Disk, Event, Tape};

/// A range of keys, from one bound to another.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A tree is made.
    Create(String),
    /// A tree is dropped.
    Drop(String),
    /// A tree gets a new name, which none had.
    Rename(String, String),
    /// A tree loses all keys of a range.
    Clear(String, KeyRange),
    /// An operand is written over the value of a key of a tree: see [`applied`].
    Merge(String, Vec<u8>, Vec<u8>),
    /// A key of a tree gets a value, or loses it.
    Write(String, Vec<u8>, Option<Vec<u8>>),
}

/// Every tree, with its records.
pub type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The store whose history it is; others are copies.
const OWN_STORE: u64 = u64::from_le_bytes([5; 8]);

/// The oracle of a store.
#[derive(Clone, Default)]
pub struct History {
    commits: BTreeMap<u64, Vec<Change>>,
    /// Changes that tasks are about to commit.
    begun: BTreeMap<TaskKey, Vec<Change>>,
    /// The last commit of each.
    last: BTreeMap<TaskKey, u64>,
    acknowledged: u64,
    /// The newest commit whose call has returned.
    returned: u64,
    /// The first commit whose changes no task had announced; the content after it is unknown.
    unannounced: Option<u64>,
    tape: Tape,
    /// Number of the commit before the first of `commits`, and the store's content after it.
    base: (u64, Arc<Content>),
    /// Content of the store after one of the commits, so that `content` need not begin with the first commit.
    known: Option<(u64, Arc<Content>)>,
    /// Backups, each of the state after one of some commits.
    pub copies: Vec<(Disk, RangeInclusive<u64>)>,
}

impl Change {
    fn apply(&self, content: &mut Content) {
        match self {
            Self::Create(tree) => drop(content.entry(tree.clone()).or_default()),
            Self::Drop(tree) => drop(content.remove(tree)),
            Self::Rename(tree, name) => {
                if let Some(records) = content.remove(tree) {
                    content.insert(name.clone(), records);
                }
            }
            Self::Clear(tree, range) => {
                if let Some(tree) = content.get_mut(tree) {
                    tree.retain(|key, _| !range.contains(key));
                }
            }
            Self::Merge(tree, key, operand) => {
                if let Some(tree) = content.get_mut(tree)
                    && let Some(value) = applied(tree.remove(key), operand)
                {
                    tree.insert(key.clone(), value);
                }
            }
            // A write to a tree that another task dropped meanwhile changes nothing.
            Self::Write(tree, key, value) => {
                if let Some(tree) = content.get_mut(tree) {
                    match value {
                        Some(value) => drop(tree.insert(key.clone(), value.clone())),
                        None => drop(tree.remove(key)),
                    }
                }
            }
        }
    }
}

impl History {
    /// Content of the store after all commits up to this one.
    pub fn content(&mut self, last: u64) -> Arc<Content> {
        let (from, mut content) = match self.known.take() {
            Some((from, content)) if from <= last => (from, content),
            _ => self.base.clone(),
        };
        let behind = (Bound::Excluded(from), Bound::Included(last.max(from + 1)));
        for changes in
            self.commits.range(behind).filter(|(number, _)| **number <= last).map(|(_, changes)| changes)
        {
            let content = Arc::make_mut(&mut content);
            changes.iter().for_each(|change| change.apply(content));
        }
        Arc::clone(&self.known.insert((last, content)).1)
    }

    /// All commits up to this one were acknowledged as durable.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Every snapshot from now on has all commits up to this one. A sync makes commits durable that their
    /// tasks have not applied yet, so this may be less than [`History::acknowledged`].
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// The first commit whose changes were not announced, such as the second one of an operation. A campaign
    /// that announces all must not have any, or its history is not the store's.
    pub fn unannounced(&self) -> Option<u64> {
        self.unannounced
    }

    /// The last that got a number.
    pub fn newest(&self) -> u64 {
        self.commits.last_key_value().map_or(self.base.0, |(number, _)| *number)
    }

    /// Forgets the commits after `last`, which recovery did not find.
    pub fn forget_after(&mut self, last: u64) {
        drop(self.commits.split_off(&(last + 1)));
        self.begun.clear();
        self.last.clear();
        (self.acknowledged, self.returned) = (last, last);
        self.known = self.known.take().filter(|(number, _)| *number <= last);
    }

    /// The commits after one, for people.
    pub fn between(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, &[Change])> {
        self.commits.range(first..=last).map(|(number, changes)| (*number, changes.as_slice()))
    }
}

/// A history that many tasks of a thread write to. A clone is the same.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<History>>);

impl Shared {
    /// A history of the stores of this thread from now on. Events of commits go onto the tape, too.
    pub fn listen(tape: &Tape) -> Self {
        let shared = Self(Arc::new(Mutex::new(History { tape: tape.clone(), ..History::default() })));
        let heard = shared.clone();
        observe(Some(Box::new(move |store, number| {
            if store == OWN_STORE {
                heard.hear(number);
            }
        })));
        shared
    }

    /// The same history so far, which goes on by itself.
    pub fn fork(&self) -> Self {
        let shared = Self(Arc::new(Mutex::new(self.get().clone())));
        let heard = shared.clone();
        observe(Some(Box::new(move |store, number| {
            if store == OWN_STORE {
                heard.hear(number);
            }
        })));
        shared
    }

    /// All commits up to the first were acknowledged as durable, none after the second was made.
    pub fn bounds(&self) -> (u64, u64) {
        let history = self.get();
        (history.acknowledged, history.newest())
    }

    /// The history of a store that goes on after the commit `last`, with this content.
    pub fn go_on(tape: &Tape, last: u64, content: Arc<Content>) -> Self {
        let shared = Self::listen(tape);
        let mut history = shared.get();
        history.base = (last, content);
        (history.acknowledged, history.returned) = (last, last);
        drop(history);
        shared
    }

    /// To look at it.
    pub fn get(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, number: u64) {
        let mut history = self.get();
        let (task, tape) = (task_key(), history.tape.clone());
        let announced = history.begun.remove(&task);
        if announced.is_none() {
            history.unannounced.get_or_insert(number);
        }
        history.commits.insert(number, announced.unwrap_or_default());
        history.last.insert(task, number);
        tape.note(Event::Given(number));
    }

    /// Calls `commit`, which commits `changes`, as the calling task. With `durable`, success means that they
    /// and all before them are.
    ///
    /// # Errors
    /// Errors of `commit`.
    pub fn commit<E>(
        &self,
        changes: Vec<Change>,
        durable: bool,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let task = task_key();
        {
            let mut history = self.get();
            history.last.remove(&task);
            history.begun.insert(task, changes);
        }
        let result = commit();
        let mut history = self.get();
        history.begun.remove(&task);
        if result.is_ok()
            && let Some(number) = history.last.get(&task).copied()
        {
            history.returned = history.returned.max(number);
            if durable {
                history.acknowledge(number);
            }
        }
        result
    }

    /// Whether the last call of [`Shared::commit`] by the calling task made a commit.
    pub fn has_committed(&self) -> bool {
        self.get().last.contains_key(&task_key())
    }

    /// Calls `make`, which makes all commits so far durable.
    ///
    /// # Errors
    /// Errors of `make`.
    pub fn durable<E>(&self, make: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let newest = self.get().newest();
        make()?;
        self.get().acknowledge(newest);
        Ok(())
    }
}

impl History {
    fn acknowledge(&mut self, number: u64) {
        self.acknowledged = self.acknowledged.max(number);
        self.tape.note(Event::Acknowledged(number));
    }
}
