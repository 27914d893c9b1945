//! Atomic batches.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use super::core::Core;
use super::tree::Tree;
use super::writes::Writes;
use crate::{Durability, Error};

/// Writes to any number of trees, applied atomically: all of them, or after a crash perhaps none. Made by
/// [`Db::batch`](crate::Db::batch).
///
/// ```
/// # use flashgrain::{Db, Durability};
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let db = Db::in_memory(64 << 20)?;
/// let (fruit, colours) = (db.tree("fruit")?, db.tree("colours")?);
/// let mut batch = db.batch().durability(Durability::Buffered);
/// batch.insert(&fruit, "cherry", "red")?;
/// batch.insert(&colours, "red", "cherry")?;
/// batch.commit()?;
/// assert_eq!(fruit.get("cherry")?.unwrap(), "red");
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    // Dropped before the store, which may be closed with its last handle.
    writes: Writes,
    core: Arc<Core>,
    durability: Durability,
}

impl Batch {
    pub(super) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core), writes: Writes::default(), durability: core.durability() }
    }

    /// How durable it is to be when [`Batch::commit`] returns.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Gives `key` this value. Of several writes to a key in the batch, the last one counts.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`]; [`Error::BatchLength`] if all writes together are
    /// more than a commit takes; [`Error::OtherStore`], [`Error::OtherOpening`] and [`Error::TreeDropped`]
    /// for a handle that belongs to no tree of the store as it is open now. The batch stays as it was.
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.core.gather(&mut self.writes, tree, key.as_ref(), Some(value.as_ref()))
    }

    /// As [`Batch::insert`], with a value that is read from `source`, to its end. Returns the value's length
    /// in bytes. About one MiB of it is in memory at a time. The rest is in the store already: no reader sees
    /// it, and a crash leaves nothing of it. It is freed if it is not committed.
    ///
    /// # Errors
    /// As [`Batch::insert`], as soon as it is longer than a value or a commit may be; [`Error::Source`] if
    /// the source fails; [`Error::Full`]; [`Error::Poisoned`]; [`Error::Closed`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// # use std::io::Read;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// # let films = db.tree("films")?;
    /// let mut batch = db.batch();
    /// batch.insert_from(&films, "sevens", std::io::repeat(7).take(3 << 20))?;
    /// batch.insert(&films, "length", "3 MiB")?;
    /// batch.commit()?;
    /// let reader = db.reader(&films, "sevens")?.unwrap();
    /// assert_eq!(reader.length(), 3 << 20);
    /// # Ok(())
    /// # }
    /// ```
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
    /// # Errors
    /// As [`Batch::insert`]; [`Error::NoOperator`], [`Error::OperatorMissing`],
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
    /// As [`Batch::insert`].
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.core.gather(&mut self.writes, tree, key.as_ref(), None)
    }

    /// Keys that it writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Does it all.
    ///
    /// # Errors
    /// As [`Tree::insert`], and [`Error::BatchLength`] if operands have become values that are more than a
    /// commit takes; then nothing of it is done. After [`Error::Poisoned`] or [`Error::Io`] it is not
    /// known whether it survives a restart.
    pub fn commit(self) -> Result<(), Error> {
        if self.writes.is_empty() {
            return Ok(());
        }
        self.core.commit_batch(&self.writes, self.durability)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Batch")
            .field("keys", &self.writes.len())
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
