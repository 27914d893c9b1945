//! The handles that a program holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{Batch, Db, Durability, Snapshot, Transaction, Tree};

use super::fork;
use crate::status::{Failure, Status};
use crate::walk::Walk;

/// One opening of a store, which all handles of it share: each call looks at it first.
pub struct Opening {
    is_closed: AtomicBool,
    /// The process that opened the store, by its generation.
    generation: u32,
}

impl Opening {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_closed: AtomicBool::new(false), generation: fork::generation() })
    }

    /// Refuses a store that is closed, and one of the process that this one was forked from.
    ///
    /// # Errors
    /// [`Status::Forked`], [`Status::Closed`].
    pub fn check(&self) -> Result<(), Failure> {
        if self.generation != fork::current() {
            return Err(flashgrain::Error::Forked.into());
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(flashgrain::Error::Closed.into());
        }
        Ok(())
    }
}

/// A store that was opened. Any number of threads may use it.
pub struct StoreHandle {
    pub db: Db,
    pub opening: Arc<Opening>,
}

/// A tree of a store. Any number of threads may use it.
pub struct TreeHandle {
    pub db: Db,
    pub tree: Tree,
    pub opening: Arc<Opening>,
}

/// All trees as they were at one moment. Any number of threads may use it.
pub struct SnapshotHandle {
    pub snapshot: Snapshot,
    pub opening: Arc<Opening>,
}

/// Reads and writes that are done as one. One thread at a time uses it.
pub struct TransactionHandle {
    transaction: Option<Transaction>,
    pub opening: Arc<Opening>,
}

/// Writes that are done as one. One thread at a time uses it.
pub struct BatchHandle {
    batch: Option<Batch>,
    pub opening: Arc<Opening>,
}

/// A position in the records of a tree. One thread at a time uses it.
pub struct IteratorHandle {
    pub walk: Walk,
    pub opening: Arc<Opening>,
}

impl StoreHandle {
    pub fn new(db: Db) -> Self {
        Self { db, opening: Opening::new() }
    }

    /// A handle of a tree of this store.
    pub fn tree(&self, tree: Tree) -> TreeHandle {
        TreeHandle { db: self.db.clone(), tree, opening: Arc::clone(&self.opening) }
    }

    /// Closes it once.
    pub fn close(&self) -> Result<(), Failure> {
        if self.opening.is_closed.swap(true, Ordering::AcqRel) {
            return Err(flashgrain::Error::Closed.into());
        }
        Ok(self.db.clone().close()?)
    }
}

fn finished(handle: &str) -> Failure {
    let message = format!("the commit of the {handle} has been called: free it, and begin another one");
    Failure::new(Status::Finished, message)
}

impl TransactionHandle {
    pub fn new(transaction: Transaction, store: &StoreHandle) -> Self {
        Self { transaction: Some(transaction), opening: Arc::clone(&store.opening) }
    }

    pub fn get(&self) -> Result<&Transaction, Failure> {
        self.transaction.as_ref().ok_or_else(|| finished("transaction"))
    }

    pub fn get_mut(&mut self) -> Result<&mut Transaction, Failure> {
        self.transaction.as_mut().ok_or_else(|| finished("transaction"))
    }

    /// Commits it, whether that succeeds or not.
    pub fn commit(&mut self) -> Result<(), Failure> {
        let transaction = self.transaction.take().ok_or_else(|| finished("transaction"))?;
        Ok(transaction.commit()?)
    }
}

impl BatchHandle {
    pub fn new(batch: Batch, store: &StoreHandle) -> Self {
        Self { batch: Some(batch), opening: Arc::clone(&store.opening) }
    }

    pub fn get(&self) -> Result<&Batch, Failure> {
        self.batch.as_ref().ok_or_else(|| finished("batch"))
    }

    pub fn get_mut(&mut self) -> Result<&mut Batch, Failure> {
        self.batch.as_mut().ok_or_else(|| finished("batch"))
    }

    pub fn set_durability(&mut self, durability: Durability) -> Result<(), Failure> {
        let batch = self.batch.take().ok_or_else(|| finished("batch"))?;
        self.batch = Some(batch.durability(durability));
        Ok(())
    }

    /// Commits it, whether that succeeds or not.
    pub fn commit(&mut self) -> Result<(), Failure> {
        let batch = self.batch.take().ok_or_else(|| finished("batch"))?;
        Ok(batch.commit()?)
    }
}
