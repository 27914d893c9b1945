//! Iterators over records, from both ends.

use std::collections::VecDeque;

use flashgrain::{Error, Iter, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::opening::Handle;

/// Most records, and bytes of them, that are read in one go.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: usize = 256 << 10;

/// The part of a record that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
    /// Both, as a pair.
    Both,
}

type Record = (Value, Value);

/// Records that were read ahead at one end of an iterator.
#[derive(Default)]
struct End {
    read: VecDeque<Record>,
    /// Records of the last reading; the next one has twice that number, so that `next(iter(tree))` reads one.
    last: usize,
}

impl End {
    fn read_ahead(&mut self, mut next: impl FnMut() -> Option<Result<Record, Error>>) -> Result<(), Error> {
        let wanted = (2 * self.last).clamp(1, RECORDS_MAX);
        let mut bytes = 0;
        while self.read.len() < wanted && bytes < BYTES_MAX {
            match next() {
                None => break,
                // The records before come first; the iterator has ended and gives the error no second time.
                Some(Err(error)) => return Err(error),
                Some(Ok(record)) => {
                    bytes += record.0.len() + record.1.len();
                    self.read.push_back(record);
                }
            }
        }
        self.last = self.read.len();
        Ok(())
    }
}

/// An iterator with what it has read ahead at both ends.
pub struct BothEnds {
    iter: Iter,
    front: End,
    back: End,
    /// An error that comes after the records that were read before it.
    failed: Option<Error>,
}

impl BothEnds {
    /// Nothing is read yet.
    pub fn new(iter: Iter) -> Self {
        Self { iter, front: End::default(), back: End::default(), failed: None }
    }

    fn next(&mut self, backward: bool) -> Result<Option<Record>, Error> {
        let iter = &mut self.iter;
        let (near, far) =
            if backward { (&mut self.back, &mut self.front) } else { (&mut self.front, &mut self.back) };
        if near.read.is_empty() && self.failed.is_none() {
            let read =
                if backward { near.read_ahead(|| iter.next_back()) } else { near.read_ahead(|| iter.next()) };
            self.failed = read.err();
        }
        if let Some(record) = near.read.pop_front() {
            return Ok(Some(record));
        }
        match self.failed.take() {
            Some(error) => {
                far.read.clear();
                Err(error)
            }
            // Nothing is left between both ends but the records that the other one has read ahead.
            None => Ok(far.read.pop_back()),
        }
    }
}

/// An iterator over records in key order, or in reverse order; `next_back` takes from its other end.
///
/// It has a snapshot of its own, so it returns the state at the moment of its creation. After the store was
/// closed it raises ClosedError.
#[pyclass(frozen, module = "flashgrain")]
pub struct Records {
    iter: Handle<BothEnds>,
    part: Part,
    backward: bool,
}

impl Records {
    /// An iterator that returns this part of records.
    pub fn new(iter: Handle<BothEnds>, part: Part, backward: bool) -> Self {
        Self { iter, part, backward }
    }

    fn take<'py>(&self, py: Python<'py>, backward: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let record = self.iter.write(py, |ends| Ok(ends.next(backward)?))?;
        record.map(|record| part_of(py, self.part, &record)).transpose()
    }
}

/// The part of a record as a Python object.
///
/// # Errors
/// `MemoryError`.
pub fn part_of<'py>(py: Python<'py>, part: Part, record: &Record) -> PyResult<Bound<'py, PyAny>> {
    let (key, value) = record;
    Ok(match part {
        Part::Key => PyBytes::new(py, key).into_any(),
        Part::Value => PyBytes::new(py, value).into_any(),
        Part::Both => PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])?.into_any(),
    })
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.take(py, self.backward)
    }

    /// The next one from the other end, or None if there is none left.
    fn next_back<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.take(py, !self.backward)
    }
}
