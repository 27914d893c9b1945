//! Trees as mutable mappings from bytes to bytes.

use std::ops::Bound::Unbounded;

use flashgrain::Readable;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::byte_string::ByteString;
use crate::ended::Failure;
use crate::input::{self, RecordsOf};
use crate::opening::Handle;
use crate::range::{Range, half_open, of_prefix};
use crate::records::{Part, Records, part_of};
use crate::scope::{OfStore, Scope, Scoped};
use crate::{errors, json, options};

/// An ordered map from keys to values, both bytes.
///
/// A tree of a store reads what is committed now, and each write is a commit. `transaction[tree]` and
/// `snapshot[tree]` are the same tree as the transaction or the snapshot sees it.
#[pyclass(frozen, mapping, module = "flashgrain")]
pub struct Tree {
    scoped: Scoped,
}

type Object<'py> = Bound<'py, PyAny>;

impl Tree {
    /// A tree of a store.
    pub fn of_store(tree: Handle<OfStore>) -> Self {
        Self { scoped: Scoped { tree, scope: Scope::Store } }
    }

    /// The handle of a tree of the store.
    ///
    /// # Errors
    /// `ArgumentError` for a tree of a snapshot or transaction, whose message begins with `asks`.
    fn handle(&self, py: Python<'_>, asks: &str) -> PyResult<&Handle<OfStore>> {
        match self.scoped.scope {
            Scope::Store => Ok(&self.scoped.tree),
            Scope::Snapshot(_) | Scope::Transaction(_) => {
                let text = format!(
                    "{asks} a tree of the store, not of a snapshot or transaction: give `tree` itself"
                );
                Err(errors::argument(py, text))
            }
        }
    }

    /// The same tree in another scope.
    ///
    /// # Errors
    /// `ArgumentError` for a tree that is in a scope already.
    pub fn within(&self, py: Python<'_>, scope: Scope) -> PyResult<Self> {
        let tree = self.handle(py, "the index is")?.clone();
        Ok(Self { scoped: Scoped { tree, scope } })
    }

    /// The handle for a write of a batch.
    ///
    /// # Errors
    /// `ArgumentError` for a tree of a snapshot or transaction.
    pub fn of_batch(&self, py: Python<'_>) -> PyResult<&Handle<OfStore>> {
        self.handle(py, "a batch writes to")
    }

    fn range_of(
        &self,
        start: Option<ByteString>,
        stop: Option<ByteString>,
        part: Part,
        reverse: bool,
    ) -> Range {
        Range::new(self.scoped.clone(), half_open(start, stop), part, reverse)
    }

    /// Removes a record and returns its value.
    fn removed(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<flashgrain::Value>> {
        self.scoped.write(
            py,
            |tree| tree.take(key),
            |tx, tree| {
                let found = tx.get(tree, key)?;
                if found.is_some() {
                    tx.remove(tree, key)?;
                }
                Ok(found)
            },
        )
    }

    fn outermost<'py>(&self, py: Python<'py>, last: bool) -> PyResult<Option<Object<'py>>> {
        let found = self.scoped.read(py, |from, tree| {
            let mut all = from.range(tree, (Unbounded, Unbounded))?;
            if last { all.next_back() } else { all.next() }.transpose()
        })?;
        found.map(|record| part_of(py, Part::Both, &record)).transpose()
    }
}

fn missing(py: Python<'_>, key: &[u8]) -> PyErr {
    PyKeyError::new_err(PyBytes::new(py, key).unbind())
}

#[pymethods]
impl Tree {
    /// The tree's name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.scoped.tree.read(py, |of| Ok(of.tree.name().to_owned()))
    }

    /// The structure: "btree", "lsm" or "be-tree".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.scoped.tree.read(py, |of| Ok(options::kind_name(of.tree.options().index_kind())))
    }

    /// The longest key that the tree takes, in bytes.
    #[getter]
    fn key_bytes_max(&self, py: Python<'_>) -> PyResult<usize> {
        self.scoped.tree.read(py, |of| Ok(of.tree.key_bytes_max()))
    }

    /// How the tree is kept: a dictionary for each setting, with the number that led to it.
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        json::object(py, &self.scoped.tree.read(py, |of| Ok(of.tree.layout()))?)
    }

    /// Levels, debt and work of an LSM-tree, or buffers and flushes of a Bε-tree; None for a B+-tree.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        let (lsm, be_tree) =
            self.scoped.tree.read(py, |of| Ok((of.tree.lsm_stats(), of.tree.be_tree_stats())))?;
        match (lsm, be_tree) {
            (Some(stats), _) => json::object(py, &stats).map(Some),
            (None, Some(stats)) => json::object(py, &stats).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: ByteString) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.scoped.read(py, |from, tree| from.get(tree, &key))?;
        found.map(|value| PyBytes::new(py, &value)).ok_or_else(|| missing(py, &key))
    }

    fn __setitem__(&self, py: Python<'_>, key: ByteString, value: ByteString) -> PyResult<()> {
        self.scoped.write(py, |tree| tree.insert(&key, &value), |tx, tree| tx.insert(tree, &key, &value))
    }

    fn __delitem__(&self, py: Python<'_>, key: ByteString) -> PyResult<()> {
        self.removed(py, &key)?.map(|_| ()).ok_or_else(|| missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: ByteString) -> PyResult<bool> {
        self.scoped.read(py, |from, tree| from.contains(tree, &key))
    }

    /// The number of records: all keys are read for it.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.scoped.read(py, |from, tree| {
            let mut all = from.range(tree, (Unbounded, Unbounded))?;
            all.try_fold(0, |count, record| record.map(|_| count + 1))
        })
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.outermost(py, false)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<Records>> {
        iterator(&Bound::new(py, self.keys(None, None, false))?, "__iter__")
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Py<Records>> {
        iterator(&Bound::new(py, self.keys(None, None, false))?, "__reversed__")
    }

    /// The value of `key`, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: ByteString,
        default: Option<Object<'py>>,
    ) -> PyResult<Option<Object<'py>>> {
        let found = self.scoped.read(py, |from, tree| from.get(tree, &key))?;
        Ok(found.map_or(default, |value| Some(PyBytes::new(py, &value).into_any())))
    }

    /// The values of several keys, in their order, with None for missing ones. Reads overlap, so this is
    /// faster than one `get` after the other.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<ByteString>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let found = self.scoped.read(py, |from, tree| from.get_many(tree, &keys))?;
        Ok(found.iter().map(|value| value.as_ref().map(|value| PyBytes::new(py, value))).collect())
    }

    /// Removes `key`, whether it is there or not. Unlike `del` it reads nothing first.
    fn discard(&self, py: Python<'_>, key: ByteString) -> PyResult<()> {
        self.scoped.write(py, |tree| tree.remove(&key), |tx, tree| tx.remove(tree, &key))
    }

    /// Removes `key` and returns its value, as one; without such a key, `default`, or KeyError.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: ByteString,
        default: &Bound<'py, pyo3::types::PyTuple>,
    ) -> PyResult<Object<'py>> {
        match self.removed(py, &key)? {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None => default.get_item(0).map_err(|_| missing(py, &key)),
        }
    }

    /// Removes the record with the largest key and returns it; KeyError if there is none.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let found = self.scoped.change(py, |tx, tree| {
            let found = tx.last_key_value(tree)?;
            if let Some((key, _)) = &found {
                tx.remove(tree, key)?;
            }
            Ok(found)
        })?;
        let record = found.ok_or_else(|| PyKeyError::new_err("the tree is empty"))?;
        part_of(py, Part::Both, &record)
    }

    /// The value of `key`, which becomes `default` if there is none, as one.
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: ByteString,
        default: ByteString,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.scoped.change(py, |tx, tree| {
            let found = tx.get(tree, &key)?;
            if found.is_none() {
                tx.insert(tree, &key, &default)?;
            }
            Ok(found)
        })?;
        Ok(PyBytes::new(py, found.as_deref().unwrap_or(&default)))
    }

    /// Gives `key` the value `new`, or removes it if that is None, if its value is `expected`, or it has none
    /// and that is None. Returns whether it did.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: ByteString,
        expected: Option<ByteString>,
        new: Option<ByteString>,
    ) -> PyResult<bool> {
        self.scoped.change(py, |tx, tree| {
            if tx.get(tree, &key)?.as_deref() != expected.as_deref() {
                return Ok(false);
            }
            match &new {
                Some(new) => tx.insert(tree, &key, new)?,
                None => tx.remove(tree, &key)?,
            }
            Ok(true)
        })
    }

    /// Writes `operand` over the value of `key`, by the tree's merge operator: nothing is read first.
    fn merge(&self, py: Python<'_>, key: ByteString, operand: ByteString) -> PyResult<()> {
        self.scoped.write(py, |tree| tree.merge(&key, &operand), |tx, tree| tx.merge(tree, &key, &operand))
    }

    /// Gives several keys their values, from a mapping or pairs, in commits of up to 1,024 records. In a
    /// transaction they are part of it.
    #[pyo3(signature = (records = None, /, **more))]
    fn update(
        &self,
        py: Python<'_>,
        records: Option<&Object<'_>>,
        more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        input::refuse_names(more)?;
        let Some(records) = records else { return Ok(()) };
        let mut records = RecordsOf::new(records)?;
        loop {
            let some = records.take(py)?;
            if some.is_empty() {
                return Ok(());
            }
            self.scoped.change(py, |tx, tree| {
                some.iter().try_for_each(|(key, value)| tx.insert(tree, key, value))
            })?;
        }
    }

    /// Gives many keys their values; the records come in ascending order of their keys, each key once. It
    /// waits for the device once, at its end, and fills leaves. Returns the number of records.
    ///
    /// Raises ArgumentError for records out of order: those before are in the tree. Not in transactions.
    fn load(&self, py: Python<'_>, records: &Object<'_>) -> PyResult<u64> {
        match &self.scoped.scope {
            Scope::Store => {}
            Scope::Snapshot(_) => return Err(errors::of_failure(py, &Failure::WriteToSnapshot)),
            Scope::Transaction(_) => {
                let text = "records are loaded into a tree of the store, not within a transaction";
                return Err(errors::argument(py, text));
            }
        }
        // A copy of the handle: the records' own code may close the store.
        let tree = self.scoped.tree.read(py, |of| Ok(of.tree.clone()))?;
        input::load(py, &tree, RecordsOf::new(records)?)
    }

    /// Removes all records from `start` on and before `stop`, and returns their number.
    #[pyo3(signature = (start = None, stop = None))]
    fn remove_range(
        &self,
        py: Python<'_>,
        start: Option<ByteString>,
        stop: Option<ByteString>,
    ) -> PyResult<u64> {
        let bounds = half_open(start, stop);
        self.scoped.write(
            py,
            |tree| tree.remove_range(bounds.clone()),
            |tx, tree| tx.remove_range(tree, bounds.clone()),
        )
    }

    /// Removes all records.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let all = || half_open(None, None);
        self.scoped.write(
            py,
            |tree| tree.clear_range(all()),
            |tx, tree| tx.remove_range(tree, all()).map(|_| ()),
        )
    }

    /// The keys in order; from `start` on and before `stop`, if they are given.
    #[pyo3(signature = (start = None, stop = None, *, reverse = false))]
    fn keys(&self, start: Option<ByteString>, stop: Option<ByteString>, reverse: bool) -> Range {
        self.range_of(start, stop, Part::Key, reverse)
    }

    /// The values in the order of their keys.
    #[pyo3(signature = (start = None, stop = None, *, reverse = false))]
    fn values(&self, start: Option<ByteString>, stop: Option<ByteString>, reverse: bool) -> Range {
        self.range_of(start, stop, Part::Value, reverse)
    }

    /// Pairs of key and value in the order of keys.
    #[pyo3(signature = (start = None, stop = None, *, reverse = false))]
    fn items(&self, start: Option<ByteString>, stop: Option<ByteString>, reverse: bool) -> Range {
        self.range_of(start, stop, Part::Both, reverse)
    }

    /// Pairs of key and value from `start` on and before `stop`.
    #[pyo3(signature = (start = None, stop = None, *, reverse = false))]
    fn range(&self, start: Option<ByteString>, stop: Option<ByteString>, reverse: bool) -> Range {
        self.range_of(start, stop, Part::Both, reverse)
    }

    /// Pairs of key and value whose keys begin with `prefix`.
    #[pyo3(signature = (prefix, *, reverse = false))]
    fn prefix(&self, prefix: ByteString, reverse: bool) -> Range {
        Range::new(self.scoped.clone(), of_prefix(&prefix), Part::Both, reverse)
    }

    /// The record with the smallest key, or None.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        self.outermost(py, false)
    }

    /// The record with the largest key, or None.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        self.outermost(py, true)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.name(py).map_or("<flashgrain.Tree, closed>".into(), |name| format!("<flashgrain.Tree {name:?}>"))
    }
}

fn iterator(range: &Bound<'_, Range>, method: &str) -> PyResult<Py<Records>> {
    Ok(range.call_method0(method)?.cast_into::<Records>()?.unbind())
}
