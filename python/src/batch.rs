//! Batches.

use pyo3::prelude::*;

use crate::byte_string::ByteString;
use crate::ended::Ended;
use crate::opening::Handle;
use crate::tree::Tree;

const KIND: &str = "batch";

/// Writes to any trees of a store that are done as one, without reading: a batch loses to no other commit.
///
/// A with block commits it at its end, and drops it at an exception.
#[pyclass(frozen, module = "flashgrain")]
pub struct Batch {
    batch: Handle<flashgrain::Batch>,
}

impl Batch {
    /// An empty batch.
    pub fn new(batch: Handle<flashgrain::Batch>) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Batch {
    /// Gives `key` this value.
    fn put(&self, py: Python<'_>, tree: &Tree, key: ByteString, value: ByteString) -> PyResult<()> {
        let handle = tree.of_batch(py)?;
        self.batch.write(py, |batch| handle.borrowed(|of| batch.insert(&of.tree, &key, &value)))
    }

    /// Removes `key`, whether it is there or not.
    fn discard(&self, py: Python<'_>, tree: &Tree, key: ByteString) -> PyResult<()> {
        let handle = tree.of_batch(py)?;
        self.batch.write(py, |batch| handle.borrowed(|of| batch.remove(&of.tree, &key)))
    }

    /// Writes `operand` over the value of `key`, by the tree's merge operator.
    fn merge(&self, py: Python<'_>, tree: &Tree, key: ByteString, operand: ByteString) -> PyResult<()> {
        let handle = tree.of_batch(py)?;
        self.batch.write(py, |batch| handle.borrowed(|of| batch.merge(&of.tree, &key, &operand)))
    }

    /// The number of keys that are written.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.batch.read(py, |batch| Ok(batch.len()))
    }

    /// Commits all writes, or none. The batch has ended in any case.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let ends = (Ended::Committed(KIND), Ended::Failed(KIND));
        self.batch.take(py, ends, flashgrain::Batch::commit)
    }

    fn __enter__<'py>(slf: PyRef<'py, Self>, py: Python<'_>) -> PyResult<PyRef<'py, Self>> {
        slf.batch.check(py)?;
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
        if exception_type.is_some() || self.batch.has_ended_alone(py) {
            self.batch.end(py, Ended::RolledBack(KIND));
            return Ok(());
        }
        self.commit(py)
    }
}
