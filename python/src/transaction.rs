//! Transactions.

use pyo3::prelude::*;

use crate::ended::Ended;
use crate::opening::Handle;
use crate::scope::Scope;
use crate::tree::Tree;

const KIND: &str = "transaction";

/// Reads a snapshot and its own writes; of two transactions that write one key, the later commit raises
/// ConflictError. `transaction[tree]` is the tree within it.
///
/// A with block commits it at its end, and rolls it back at an exception.
#[pyclass(frozen, module = "flashgrain")]
pub struct Transaction {
    transaction: Handle<flashgrain::Transaction>,
}

impl Transaction {
    /// A transaction that has just begun.
    pub fn new(transaction: Handle<flashgrain::Transaction>) -> Self {
        Self { transaction }
    }
}

#[pymethods]
impl Transaction {
    fn __getitem__(&self, py: Python<'_>, tree: &Tree) -> PyResult<Tree> {
        tree.within(py, Scope::Transaction(self.transaction.clone()))
    }

    /// Commits all writes, or none: raises ConflictError if another commit has changed one of the keys. The
    /// transaction has ended in any case.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let ends = (Ended::Committed(KIND), Ended::Failed(KIND));
        self.transaction.take(py, ends, flashgrain::Transaction::commit)
    }

    /// Ends the transaction without its writes. Does nothing if it has ended.
    fn rollback(&self, py: Python<'_>) {
        self.transaction.end(py, Ended::RolledBack(KIND));
    }

    fn __enter__<'py>(slf: PyRef<'py, Self>, py: Python<'_>) -> PyResult<PyRef<'py, Self>> {
        slf.transaction.check(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (exception_type = None, _exception = None, _traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if exception_type.is_some() || self.transaction.has_ended_alone(py) {
            self.rollback(py);
            return Ok(());
        }
        // Raises ClosedError if the store was closed within the block: the writes are lost.
        self.commit(py)
    }
}
