//! Transactions.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::opening::Handle;
use crate::scope::Scope;
use crate::tree::Tree;

/// Reads a snapshot and its own writes; of two transactions that write one key, the later commit raises
/// ConflictError. `transaction[tree]` is the tree within it.
///
/// A with block commits it at its end, and rolls it back at an exception.
#[pyclass(frozen, module = "flashgrain")]
pub struct Transaction {
    transaction: Handle<flashgrain::Transaction>,
    /// Committed or rolled back, rather than ended by the end of its store.
    is_done: AtomicBool,
}

impl Transaction {
    /// A transaction that has just begun.
    pub fn new(transaction: Handle<flashgrain::Transaction>) -> Self {
        Self { transaction, is_done: AtomicBool::new(false) }
    }
}

#[pymethods]
impl Transaction {
    fn __getitem__(&self, tree: &Tree) -> Tree {
        tree.within(Scope::Transaction(self.transaction.clone()))
    }

    /// Commits all writes, or none: raises ConflictError if another commit has changed one of the keys. The
    /// transaction has ended in any case.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.is_done.store(true, Ordering::Relaxed);
        self.transaction.take(py, flashgrain::Transaction::commit)
    }

    /// Ends the transaction without its writes. Does nothing if it has ended.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_done.swap(true, Ordering::Relaxed) || self.transaction.has_ended(py) {
            return Ok(());
        }
        self.transaction.take(py, |transaction| {
            drop(transaction);
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (exception_type = None, _exception = None, _traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if exception_type.is_some() || self.is_done.load(Ordering::Relaxed) {
            return self.rollback(py);
        }
        // Raises ClosedError if the store was closed within the block: the writes are lost.
        self.commit(py)
    }
}
