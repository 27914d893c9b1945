//! A tree as the store, a snapshot or a transaction sees it.

use flashgrain::{Db, Error, Snapshot, Transaction};
use pyo3::prelude::*;

use crate::ended::Failure;
use crate::opening::Handle;
use crate::reads::Reads;

/// A tree with the store that it is of.
pub struct OfStore {
    /// The store.
    pub db: Db,
    /// The tree.
    pub tree: flashgrain::Tree,
}

/// The state of the tree that is read, and the place that writes go to.
#[derive(Clone)]
pub enum Scope {
    /// All commits so far; each write is a commit.
    Store,
    /// The commits before the snapshot.
    Snapshot(Handle<Snapshot>),
    /// The commits before the transaction began, and its own writes.
    Transaction(Handle<Transaction>),
}

/// A tree in a scope.
#[derive(Clone)]
pub struct Scoped {
    /// The tree.
    pub tree: Handle<OfStore>,
    /// The scope.
    pub scope: Scope,
}

impl Scoped {
    /// Reads the tree.
    ///
    /// # Errors
    /// `ForkedError`, `ClosedError`, and those of `work`.
    pub fn read<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Reads, &flashgrain::Tree) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        match &self.scope {
            Scope::Store => self.tree.read(py, |of| work(&of.db, &of.tree)),
            Scope::Snapshot(snapshot) => {
                snapshot.read_within(py, |from| self.tree.borrowed(|of| work(from, &of.tree)))
            }
            Scope::Transaction(transaction) => {
                transaction.read_within(py, |from| self.tree.borrowed(|of| work(from, &of.tree)))
            }
        }
    }

    /// Reads and writes the tree in one transaction: in the own one, or in one that is run again until it
    /// wins.
    ///
    /// # Errors
    /// `ReadOnlyError` for snapshots; otherwise as [`Scoped::read`].
    pub fn change<R: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&mut Transaction, &flashgrain::Tree) -> Result<R, Error> + Send + Sync,
    ) -> PyResult<R> {
        match &self.scope {
            Scope::Store => self.tree.read(py, |of| of.db.transaction(|tx| work(tx, &of.tree))),
            Scope::Snapshot(snapshot) => snapshot.read_within(py, |_| Err(Failure::WriteToSnapshot)),
            Scope::Transaction(transaction) => {
                transaction.write(py, |tx| self.tree.borrowed(|of| work(tx, &of.tree)))
            }
        }
    }

    /// Writes to the tree alone: a commit that loses to no other.
    ///
    /// # Errors
    /// As [`Scoped::change`].
    pub fn write<R: Send>(
        &self,
        py: Python<'_>,
        alone: impl FnOnce(&flashgrain::Tree) -> Result<R, Error> + Send,
        within: impl FnOnce(&mut Transaction, &flashgrain::Tree) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        match &self.scope {
            Scope::Store => self.tree.read(py, |of| alone(&of.tree)),
            Scope::Snapshot(snapshot) => snapshot.read_within(py, |_| Err(Failure::WriteToSnapshot)),
            Scope::Transaction(transaction) => {
                transaction.write(py, |tx| self.tree.borrowed(|of| within(tx, &of.tree)))
            }
        }
    }
}
