//! The handles that a program holds.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{Batch, Db, Durability, Snapshot, Transaction, Tree};

use crate::status::{Failure, Status};
use crate::walk::Walk;

/// A store that was opened. Any number of threads may use it.
pub struct StoreHandle {
    db: Db,
    is_closed: AtomicBool,
}

/// A tree of a store. Any number of threads may use it.
pub struct TreeHandle {
    pub db: Db,
    pub tree: Tree,
}

/// All trees as they were at one moment. Any number of threads may use it.
pub struct SnapshotHandle(pub Snapshot);

/// Reads and writes that are done as one. One thread at a time uses it.
pub struct TransactionHandle(Option<Transaction>);

/// Writes that are done as one. One thread at a time uses it.
pub struct BatchHandle(Option<Batch>);

/// A position in the records of a tree. One thread at a time uses it.
pub struct IteratorHandle(pub Walk);

impl StoreHandle {
    pub fn new(db: Db) -> Self {
        Self { db, is_closed: AtomicBool::new(false) }
    }

    /// The store, if it was not closed.
    pub fn open(&self) -> Result<&Db, Failure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Failure::new(Status::Closed, "the store is closed"));
        }
        Ok(&self.db)
    }

    /// Closes it once.
    pub fn close(&self) -> Result<(), Failure> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Err(Failure::new(Status::Closed, "the store is closed already"));
        }
        Ok(self.db.clone().close()?)
    }
}

fn finished(handle: &str) -> Failure {
    let message = format!("the {handle} has been committed: free it, and begin another one");
    Failure::new(Status::Finished, message)
}

impl TransactionHandle {
    pub fn new(transaction: Transaction) -> Self {
        Self(Some(transaction))
    }

    pub fn get(&self) -> Result<&Transaction, Failure> {
        self.0.as_ref().ok_or_else(|| finished("transaction"))
    }

    pub fn get_mut(&mut self) -> Result<&mut Transaction, Failure> {
        self.0.as_mut().ok_or_else(|| finished("transaction"))
    }

    /// Commits it, whether that succeeds or not.
    pub fn commit(&mut self) -> Result<(), Failure> {
        let transaction = self.0.take().ok_or_else(|| finished("transaction"))?;
        Ok(transaction.commit()?)
    }
}

impl BatchHandle {
    pub fn new(batch: Batch) -> Self {
        Self(Some(batch))
    }

    pub fn get(&self) -> Result<&Batch, Failure> {
        self.0.as_ref().ok_or_else(|| finished("batch"))
    }

    pub fn get_mut(&mut self) -> Result<&mut Batch, Failure> {
        self.0.as_mut().ok_or_else(|| finished("batch"))
    }

    pub fn set_durability(&mut self, durability: Durability) -> Result<(), Failure> {
        let batch = self.0.take().ok_or_else(|| finished("batch"))?;
        self.0 = Some(batch.durability(durability));
        Ok(())
    }

    /// Commits it, whether that succeeds or not.
    pub fn commit(&mut self) -> Result<(), Failure> {
        let batch = self.0.take().ok_or_else(|| finished("batch"))?;
        Ok(batch.commit()?)
    }
}
