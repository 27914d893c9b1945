//! Snapshots.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
    fn __getitem__(&self, tree: &Tree) -> Tree {
        tree.within(Scope::Snapshot(self.snapshot.clone()))
    }

    /// Ends the snapshot. Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.snapshot.has_ended(py) {
            true => Ok(()),
            false => self.snapshot.take(py, |snapshot| {
                drop(snapshot);
                Ok(())
            }),
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
