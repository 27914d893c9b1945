//! Transactions.

use std::fmt;
use std::io::Read;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::content::Content;
use super::core::Core;
use super::lookup::Lookup;
use super::range::Range;
use super::source::{Source, View};
use super::tree::Tree;
use super::writes::Writes;
use crate::catalog::NamedTree;
use crate::index::waiting;
use crate::txn::Snapshot;
use crate::{Durability, Error};

/// Reads a snapshot and its own writes; at its commit, the first to write a key since its beginning wins
/// (snapshot isolation). Made by [`Db::begin`](crate::Db::begin), read through [`Readable`](crate::Readable).
/// Dropped without a commit, it never was.
///
/// ```
/// # use flashgrain::{Db, ErrorKind, Readable};
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let db = Db::in_memory(64 << 20)?;
/// # let tree = db.tree("t")?;
/// tree.insert("stock", "5")?;
/// let (mut one, mut other) = (db.begin()?, db.begin()?);
/// one.insert(&tree, "stock", "4")?;
/// other.insert(&tree, "stock", "3")?;
/// one.commit()?;
/// assert_eq!(other.commit().unwrap_err().kind(), ErrorKind::Conflict);
/// # Ok(())
/// # }
/// ```
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    // Dropped before the store, which may be closed with its last handle.
    writes: Writes,
    core: Arc<Core>,
    at: Arc<Snapshot>,
    durability: Durability,
}

impl Transaction {
    pub(super) fn new(core: &Arc<Core>) -> Result<Self, Error> {
        let (at, durability) = (core.pin()?, core.durability());
        Ok(Self { core: Arc::clone(core), at, writes: Writes::default(), durability })
    }

    /// How durable it is to be when [`Transaction::commit`] returns.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Gives `key` this value.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`]; [`Error::BatchLength`] if all writes together are
    /// more than a commit takes; [`Error::OtherStore`], [`Error::OtherOpening`] and [`Error::TreeDropped`]
    /// for a handle that belongs to no tree of the store as it is open now. The transaction stays as it was.
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.core.gather(&mut self.writes, tree, key.as_ref(), Some(value.as_ref()))
    }

    /// As [`Transaction::insert`], with a value that is read from `source`, to its end. Returns the value's
    /// length in bytes. About one MiB of it is in memory at a time. The rest is in the store already: no
    /// reader sees it, and a crash leaves nothing of it. It is freed if it is not committed.
    ///
    /// # Errors
    /// As [`Transaction::insert`], as soon as it is longer than a value or a commit may be; [`Error::Source`]
    /// if the source fails; [`Error::Full`]; [`Error::Poisoned`]; [`Error::Closed`].
    pub fn insert_from(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        mut source: impl Read,
    ) -> Result<u64, Error> {
        self.core.gather_from(&mut self.writes, tree, key.as_ref(), &mut source)
    }

    /// Writes `operand` over the value of `key`: see [`Tree::merge`]. Over an own write of the key it becomes
    /// a value at once.
    ///
    /// It counts as a write of the key: if another commit has written the key since the transaction began, be
    /// it by a merge, this one is refused. Merges that need no transaction, of [`Tree::merge`] and of
    /// batches, are never refused.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; [`Error::NoOperator`], [`Error::OperatorMissing`],
    /// [`Error::OperatorFailed`].
    pub fn merge(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.core.gather_merge(&mut self.writes, tree, key.as_ref(), operand.as_ref())
    }

    /// Removes `key`, whether it is there or not.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.core.gather(&mut self.writes, tree, key.as_ref(), None)
    }

    /// Removes all records in `range` that the transaction sees, its own writes among them, and returns their
    /// number. All of them go with its commit, however many they are.
    ///
    /// As always, only keys are validated: records that others add to the range before the commit stay.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if they are more than a commit takes: see [`Tree::remove_range`]. As
    /// [`Readable::get`](crate::Readable::get). The transaction stays as it was.
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        range: impl RangeBounds<K>,
    ) -> Result<u64, Error> {
        let (tree, range) = (self.core.named_tree(tree)?, Range::of(&range));
        let written: Vec<_> = self.writes.of(tree).map(|own| range.written(own)).unwrap_or_default();
        let found = self.core.keys_within(tree, &self.at, &range)?;
        let is_written = |key: &Vec<u8>| self.writes.get(tree, key).is_some();
        let others = found.into_iter().filter(|key| !is_written(key));
        let keys: Vec<_> = written.into_iter().chain(others).collect();
        let removals = keys.iter().map(|key| (key.as_slice(), self.core.logged_bytes(tree, key, None)));
        let seen = self.seen_of(tree, &keys)?;
        self.writes.admit(self.core.engine(), tree, removals)?;
        keys.iter().for_each(|key| self.writes.put(tree, key, None));
        Ok(seen)
    }

    /// The number of these keys that the transaction sees a record of: all but those that its own operands
    /// have removed. A record that the operator fails at is there.
    fn seen_of(&self, tree: &Arc<NamedTree>, keys: &[Vec<u8>]) -> Result<u64, Error> {
        let own = self.writes.of(tree);
        let lookup = Lookup { core: &self.core, tree, at: Some(&self.at), overlay: own };
        let mut seen = 0;
        for key in keys {
            let is_merged =
                matches!(own.and_then(|own| own.get(key.as_slice())), Some(Some(Content::Operands(_))));
            let is_seen = match is_merged.then(|| waiting(|may| lookup.contains(key, may))) {
                None | Some(Err(Error::OperatorFailed { .. })) => true,
                Some(is_seen) => is_seen?,
            };
            seen += u64::from(is_seen);
        }
        Ok(seen)
    }

    /// Forgets all writes so far. The snapshot stays.
    pub fn rollback(&mut self) {
        self.writes.clear();
    }

    /// Does all its writes as one.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another commit has written one of the same keys since this transaction began:
    /// nothing of it was done, begin again ([`Db::transaction`](crate::Db::transaction) does that by itself).
    /// [`Error::BatchLength`] if operands have become values that are more than a commit takes. Otherwise as
    /// [`Batch::commit`](crate::Batch::commit).
    pub fn commit(self) -> Result<(), Error> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let made = self.core.with_values(&self.writes, &self.at)?;
        let writes = made.as_ref().unwrap_or(&self.writes);
        self.core.commit(writes, Some(self.at.timestamp()), self.durability)
    }
}

impl Source for Transaction {
    #[inline]
    fn lookup<'a>(&'a self, tree: &'a Tree) -> Result<Lookup<'a>, Error> {
        let tree = self.core.named_tree(tree)?;
        Ok(Lookup { core: &self.core, tree, at: Some(&self.at), overlay: self.writes.of(tree) })
    }

    fn view(&self, tree: &Tree) -> Result<View, Error> {
        let tree = self.core.named_tree(tree)?;
        let overlay = self.writes.of(tree).filter(|writes| !writes.is_empty()).cloned().map(Arc::new);
        let (core, tree, at) = (Arc::clone(&self.core), Arc::clone(tree), Arc::clone(&self.at));
        Ok(View { core, tree, at, overlay })
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transaction")
            .field("keys", &self.writes.len())
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
