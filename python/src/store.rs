//! Stores.

use std::sync::Arc;

use flashgrain::{Builder, Db};
use flashgrain_device::MemoryDevice;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::batch::Batch;
use crate::opening::{Handle, Opening};
use crate::scope::OfStore;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::{json, options};

/// A store in memory begins with so many bytes, and may grow to so many, of which only those in use take memory.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
const MEMORY_BYTES_MAX: u64 = 64 << 30;

/// An embedded, ordered, transactional key-value store.
///
/// Made by Store.open, Store.create, Store.open_or_create and Store.in_memory; closed by close(), at the end
/// of a with block, or when the interpreter ends. Threads may share it.
#[pyclass(frozen, weakref, module = "flashgrain")]
pub struct Store {
    db: Handle<Db>,
}

impl Store {
    fn made<'py>(py: Python<'py>, builder: Builder, open: Opener) -> PyResult<Bound<'py, Self>> {
        let opened = py.detach(|| open(builder)).map_err(|error| crate::errors::of_store(py, &error))?;
        let store = Bound::new(py, Self { db: Opening::of(opened) })?;
        py.import("flashgrain._closing")?.call_method1("remember", (&store,))?;
        Ok(store)
    }
}

type Opener = fn(Builder) -> Result<Db, flashgrain::Error>;

#[pymethods]
impl Store {
    /// Opens the store in the directory, or on the block device, `path`; several are a stripe set.
    #[classmethod]
    #[pyo3(signature = (path, *, read_only = false, **options))]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        path: &Bound<'py, PyAny>,
        read_only: bool,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let open: Opener = if read_only { Builder::open_read_only } else { Builder::open };
        Self::made(class.py(), options::store(Db::builder(), Some(path), options)?, open)
    }

    /// Makes a new store in the directory `path`, which is made too or is empty.
    #[classmethod]
    #[pyo3(signature = (path, **options))]
    fn create<'py>(
        class: &Bound<'py, PyType>,
        path: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::made(class.py(), options::store(Db::builder(), Some(path), options)?, Builder::create)
    }

    /// Opens the store at `path`, or makes one if there is none.
    #[classmethod]
    #[pyo3(signature = (path, **options))]
    fn open_or_create<'py>(
        class: &Bound<'py, PyType>,
        path: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::made(class.py(), options::store(Db::builder(), Some(path), options)?, Builder::open_or_create)
    }

    /// A new store in memory, gone when it is closed.
    #[classmethod]
    #[pyo3(signature = (**options))]
    fn in_memory<'py>(
        class: &Bound<'py, PyType>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = class.py();
        let memory = MemoryDevice::new(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX)
            .map_err(|error| crate::errors::of_store(py, &error.into()))?;
        let builder = Db::builder().device(Arc::new(memory)).growable(true);
        Self::made(py, options::store(builder, None, options)?, Builder::create)
    }

    /// The tree `name`; made with these options if there is none.
    #[pyo3(signature = (name, kind = "btree", **options))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        kind: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        let options = options::tree(py, kind, options)?;
        let of =
            self.db.read(py, |db| Ok(OfStore { db: db.clone(), tree: db.tree_with(name, &options)? }))?;
        Ok(Tree::of_store(self.db.sibling(of)))
    }

    /// The tree `name`; raises NotFoundError if there is none.
    fn existing_tree(&self, py: Python<'_>, name: &str) -> PyResult<Tree> {
        let of = self.db.read(py, |db| Ok(OfStore { db: db.clone(), tree: db.existing_tree(name)? }))?;
        Ok(Tree::of_store(self.db.sibling(of)))
    }

    /// The names of all trees, in order.
    fn tree_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.db.read(py, |db| Ok(db.tree_names()))
    }

    /// Removes a tree with all its records.
    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.db.read(py, |db| db.drop_tree(name))
    }

    /// Gives a tree another name; its handles are refused from then on.
    fn rename_tree(&self, py: Python<'_>, name: &str, new_name: &str) -> PyResult<()> {
        self.db.read(py, |db| db.rename_tree(name, new_name))
    }

    /// Begins a transaction: a with block commits it at its end, or rolls it back at an exception.
    #[pyo3(signature = (*, durability = None))]
    fn transaction(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<Transaction> {
        let durability = durability.map(|name| options::durability(py, name)).transpose()?;
        let begun = self.db.read(py, |db| {
            let mut begun = db.begin()?;
            if let Some(durability) = durability {
                begun.set_durability(durability);
            }
            Ok(begun)
        })?;
        Ok(Transaction::new(self.db.sibling(begun)))
    }

    /// A batch of writes that are done as one: a with block commits it at its end.
    #[pyo3(signature = (*, durability = None))]
    fn batch(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<Batch> {
        let durability = durability.map(|name| options::durability(py, name)).transpose()?;
        let batch = self.db.read(py, |db| {
            let batch = db.batch();
            Ok(match durability {
                Some(durability) => batch.durability(durability),
                None => batch,
            })
        })?;
        Ok(Batch::new(self.db.sibling(batch)))
    }

    /// Takes a snapshot of everything that is committed now.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let taken = self.db.read(py, Db::snapshot)?;
        Ok(Snapshot::new(self.db.sibling(taken)))
    }

    /// Makes everything that is committed durable, however it was committed.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, Db::sync)
    }

    /// Makes a checkpoint, and waits for it.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.db.read(py, Db::checkpoint)
    }

    /// Makes the files as short as the records allow. Returns the bytes before and after.
    fn compact(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let compacted = self.db.read(py, Db::compact)?;
        Ok((compacted.before_bytes, compacted.after_bytes))
    }

    /// Reads and verifies everything, and counts it; raises CorruptError at the first damage.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.db.read(py, Db::check)?)
    }

    /// Copies all trees, as they are now, to a new store at `path`. Others may read and write meanwhile.
    #[pyo3(signature = (path, **options))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        path: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let target = options::store(Db::builder(), Some(path), options)?;
        json::object(py, &self.db.read(py, |db| db.backup(target))?)
    }

    /// Statistics of all parts of the store, since it was opened.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.db.read(py, |db| Ok(db.stats()))?)
    }

    /// The layout of the store: a dictionary for each setting, with the number that led to it.
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.db.read(py, |db| Ok(db.layout().to_vec()))?)
    }

    /// Closes the store: trees, iterators, snapshots and transactions of it raise ClosedError from then on.
    /// Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.db.close(py)
    }

    /// Whether the store is closed, or was opened by the process that this one was forked from.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.db.check(py).is_err()
    }

    fn __enter__<'py>(slf: PyRef<'py, Self>, py: Python<'_>) -> PyResult<PyRef<'py, Self>> {
        slf.db.check(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.db.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.db.read(py, |db| Ok(db.tree_names())) {
            Ok(names) => format!("<flashgrain.Store of {} trees>", names.len()),
            Err(_) => "<flashgrain.Store, closed>".to_owned(),
        }
    }
}
