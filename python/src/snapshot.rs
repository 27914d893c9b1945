//! Snapshots.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::ended::Ended;
use crate::opening::Handle;
use crate::scope::Scope;
use crate::tree::Tree;

/// Everything that was committed at one moment: `snapshot[tree]` is the tree as it was then.
///
/// It keeps old versions of records for as long as it lives: close it, or use a with block.
#[pyclass(frozen, module = "flashgrain")]
pub struct Snapshot {
    snapshot: Handle<flashgrain::Snapshot>,
}

impl Snapshot {
    /// A snapshot that was just taken.
    pub fn new(snapshot: Handle<flashgrain::Snapshot>) -> Self {
        Self { snapshot }
    }
}

#[pymethods]
impl Snapshot {
    fn __getitem__(&self, py: Python<'_>, tree: &Tree) -> PyResult<Tree> {
        tree.within(py, Scope::Snapshot(self.snapshot.clone()))
    }

    /// Ends the snapshot. Closing it again does nothing.
    fn close(&self, py: Python<'_>) {
        self.snapshot.end(py, Ended::Snapshot);
    }

    fn __enter__<'py>(slf: PyRef<'py, Self>, py: Python<'_>) -> PyResult<PyRef<'py, Self>> {
        slf.snapshot.check(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
