//! Records that Python code yields.

use flashgrain::{Error, Tree};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

use crate::byte_string::ByteString;
use crate::errors;

/// Most records, and bytes of them, that are taken in one go.
const RECORDS_MAX: usize = 1024;
const BYTES_MAX: usize = 1 << 20;

type Record = (ByteString, ByteString);

/// Keyword arguments are no records.
///
/// # Errors
/// `TypeError`.
pub fn refuse_names(names: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    match names.is_some_and(|names| !names.is_empty()) {
        true => Err(PyTypeError::new_err("keys are bytes: give a mapping or pairs, not keyword arguments")),
        false => Ok(()),
    }
}

/// The pairs of a mapping or of an iterable.
pub struct RecordsOf(Py<PyIterator>);

impl RecordsOf {
    /// The pairs of `records.items()`, or of `records` itself.
    ///
    /// # Errors
    /// `TypeError` if it is neither.
    pub fn new(records: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pairs = if records.hasattr("items")? { records.call_method0("items")? } else { records.clone() };
        Ok(Self(pairs.try_iter()?.unbind()))
    }

    /// The next records; none at the end.
    ///
    /// # Errors
    /// Those of the iterable, and `TypeError` for what is no pair of bytes.
    pub fn take(&mut self, py: Python<'_>) -> PyResult<Vec<Record>> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        let mut pairs = self.0.bind(py).clone();
        while taken.len() < RECORDS_MAX && bytes < BYTES_MAX {
            let Some(pair) = pairs.next() else { break };
            let record: Record = pair?.extract()?;
            bytes += record.0.len() + record.1.len();
            taken.push(record);
        }
        Ok(taken)
    }
}

/// Yields records, for which it takes the interpreter lock from time to time.
struct Source<'a> {
    records: RecordsOf,
    taken: std::vec::IntoIter<Record>,
    failed: &'a mut Option<PyErr>,
}

impl Iterator for Source<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if let Some(record) = self.taken.next() {
            return Some(record);
        }
        if self.failed.is_some() {
            return None;
        }
        match Python::attach(|py| self.records.take(py)) {
            Ok(more) => self.taken = more.into_iter(),
            Err(error) => *self.failed = Some(error),
        }
        self.taken.next()
    }
}

/// Loads records in ascending order of their keys; their number.
///
/// # Errors
/// Those of [`Tree::load`], and those of the iterable: the records before are in the tree.
pub fn load(py: Python<'_>, tree: &Tree, records: RecordsOf) -> PyResult<u64> {
    let mut failed = None;
    let source = Source { records, taken: Vec::new().into_iter(), failed: &mut failed };
    let loaded: Result<u64, Error> = py.detach(|| tree.load(source));
    match failed {
        Some(error) => Err(error),
        None => loaded.map_err(|error| errors::of_store(py, &error)),
    }
}
