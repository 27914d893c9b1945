//! The records of a range, to be iterated any number of times.

use std::ops::Bound::{Excluded, Included, Unbounded};

use pyo3::prelude::*;

use crate::byte_string::ByteString;
use crate::reads::Bounds;
use crate::records::{BothEnds, Part, Records};
use crate::scope::Scoped;

/// Keys, values or pairs of a range of a tree: `tree.keys()`, `tree.values()`, `tree.items()`,
/// `tree.range(start, stop)`, `tree.prefix(prefix)`.
///
/// Each iteration sees the state at its beginning, however long it takes.
#[pyclass(frozen, module = "flashgrain")]
pub struct Range {
    tree: Scoped,
    bounds: Bounds,
    part: Part,
    backward: bool,
}

/// Bounds from `start` on, and before `stop`.
pub fn half_open(start: Option<ByteString>, stop: Option<ByteString>) -> Bounds {
    let start = start.map_or(Unbounded, |key| Included(key.to_vec()));
    (start, stop.map_or(Unbounded, |key| Excluded(key.to_vec())))
}

/// Bounds of the keys that begin with `prefix`.
pub fn of_prefix(prefix: &[u8]) -> Bounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let stop = match end.last_mut() {
        None => Unbounded,
        Some(last) => {
            *last += 1;
            Excluded(end)
        }
    };
    (Included(prefix.to_vec()), stop)
}

impl Range {
    /// A range of a tree.
    pub fn new(tree: Scoped, bounds: Bounds, part: Part, backward: bool) -> Self {
        Self { tree, bounds, part, backward }
    }

    fn records(&self, py: Python<'_>, backward: bool) -> PyResult<Records> {
        let bounds = self.bounds.clone();
        let iter = self.tree.read(py, |from, tree| from.range(tree, bounds))?;
        Ok(Records::new(self.tree.tree.sibling(BothEnds::new(iter)), self.part, backward))
    }
}

#[pymethods]
impl Range {
    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, self.backward)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, !self.backward)
    }

    /// The number of records: all of them are read for it.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let bounds = self.bounds.clone();
        self.tree.read(py, |from, tree| {
            from.range(tree, bounds)?.try_fold(0, |count, record| record.map(|_| count + 1))
        })
    }

    fn __contains__(&self, py: Python<'_>, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let is_within = |key: &[u8]| {
            let (start, stop) = &self.bounds;
            let is_after = match start {
                Included(start) => key >= start.as_slice(),
                Excluded(start) => key > start.as_slice(),
                Unbounded => true,
            };
            is_after && !matches!(stop, Excluded(stop) if key >= stop.as_slice())
        };
        match self.part {
            Part::Key => {
                let Ok(key) = member.extract::<ByteString>() else { return Ok(false) };
                Ok(is_within(&key) && self.tree.read(py, |from, tree| from.contains(tree, &key))?)
            }
            Part::Both => {
                let Ok((key, value)) = member.extract::<(ByteString, ByteString)>() else { return Ok(false) };
                let found = self.tree.read(py, |from, tree| from.get(tree, &key))?;
                Ok(is_within(&key) && found.is_some_and(|found| *found == *value))
            }
            // As values of other mappings: all records are read, up to the first with this value.
            Part::Value => {
                let Ok(wanted) = member.extract::<ByteString>() else { return Ok(false) };
                let bounds = self.bounds.clone();
                self.tree.read(py, |from, tree| {
                    for record in from.range(tree, bounds)? {
                        if *record?.1 == *wanted {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                })
            }
        }
    }
}
