//! Atomic batches.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::tree::Tree;
use super::writes::Writes;
use crate::{Durability, Error};

/// Writes to any number of trees that are done as one: all of them, or after a crash perhaps none. Made by [`Db::batch`](crate::Db::batch).
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
    core: Arc<Core>,
    writes: Writes,
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

    /// Gives `key` this value. What comes later in the batch counts.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`]; [`Error::BatchLength`] if all writes together are more than a commit takes; [`Error::OtherStore`], [`Error::OtherOpening`] and [`Error::TreeDropped`] for a handle that is of no tree of the store as it is open now.
    /// The batch stays as it was.
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.core.gather(&mut self.writes, tree, key.as_ref(), Some(value.as_ref()))
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
    /// As [`Tree::insert`]; then nothing of it is done. After [`Error::Poisoned`] or [`Error::Io`] it is not known whether it survives a restart.
    pub fn commit(self) -> Result<(), Error> {
        if self.writes.is_empty() {
            return Ok(());
        }
        self.core.commit(&self.writes, None, self.durability)
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
