//! The store as users see it: handles over the engine.
//!
//! Synchronization: until it commits, a handle changes only its own state, such as the writes of a batch or
//! transaction; it asks the engine for everything else. [`Core`] closes the store, once.

mod backup;
mod batch;
mod builder;
mod bulk;
mod check;
mod compacted;
mod content;
mod core;
mod cursor;
mod gather;
mod iter;
mod lookup;
mod merging;
mod overlay;
mod parts;
mod prepared;
mod range;
mod readable;
mod reader;
mod scan;
mod simulated;
mod site;
mod snapshot;
mod source;
mod stats;
mod store_files;
mod swap;
#[cfg(test)]
mod tests;
mod transaction;
mod tree;
mod tree_options;
mod tree_reads;
mod value;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use backup::Backup;
pub use batch::Batch;
pub use builder::Builder;
pub use bulk::LoadError;
pub use check::Check;
pub use compacted::Compacted;
pub use cursor::Cursor;
pub use iter::Iter;
pub use readable::Readable;
pub use reader::ValueReader;
pub use simulated::Simulated;
pub use snapshot::Snapshot;
pub use stats::{
    CacheStats, CheckpointStats, ConflictStats, HistoryStats, LogStats, RecoveryStats, SpaceStats, Stats,
    ThrottleStats, WrittenStats,
};
pub use store_files::{DATA_FILE, LOG_FILE};
pub use swap::CompareAndSwapError;
pub use transaction::Transaction;
pub use tree::Tree;
pub use tree_options::TreeOptions;
pub use value::Value;

pub(crate) use self::core::Core;
use self::lookup::Lookup;
use self::source::{Source, View};
use crate::task::JoinHandle;
use crate::{Decision, Error};

/// A store. Cheap to clone, and usable from any number of threads; the store is closed with its last handle,
/// as by [`Db::close`].
///
/// Reading and writing work from any thread. Data in memory is found by the calling thread; other data it
/// reads from the device, which blocks the thread. To have many such reads at a time without as many threads,
/// run the code as tasks: [`Db::spawn`].
///
/// ```
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// use flashgrain::Db;
///
/// let db = Db::create(&path)?;
/// let fruit = db.tree("fruit")?;
/// fruit.insert("apple", "red")?; // durable when it returns
/// drop((db, fruit));
///
/// let db = Db::open(&path)?;
/// assert_eq!(db.tree("fruit")?.get("apple")?.unwrap(), "red");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) core: Arc<Core>,
}

impl Db {
    /// Opens the store in the directory `path`, with default options.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().path(path).open()
    }

    /// Makes a new store in the directory `path`, which is made too or is empty, with default options.
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().path(path).create()
    }

    /// Opens the store in the directory `path`, or makes it if it does not exist, with default options.
    ///
    /// # Errors
    /// As [`Builder::open_or_create`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().path(path).open_or_create()
    }

    /// A new store in memory, with a cache of `cache_bytes`; gone when it is closed. For tests.
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn in_memory(cache_bytes: u64) -> Result<Self, Error> {
        Builder::in_memory()?.cache_bytes(cache_bytes).create()
    }

    /// A builder, to open or create a store with other options.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The tree of that name; made, with default options, if it does not exist.
    ///
    /// # Errors
    /// [`Error::Options`] if the name is empty or longer than 256 bytes; otherwise as [`Tree::insert`].
    pub fn tree(&self, name: &str) -> Result<Tree, Error> {
        self.tree_with(name, &TreeOptions::new())
    }

    /// The tree of that name; made with `options` if it does not exist. An existing tree keeps the options it
    /// has.
    ///
    /// # Errors
    /// As [`Db::tree`], and [`Error::Options`] for options that cannot be.
    ///
    /// ```
    /// # use flashgrain::{Db, TreeOptions};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let scans = db.tree_with("scans", &TreeOptions::new().node_bytes(64 << 10))?;
    /// assert_eq!(scans.options(), TreeOptions::new().node_bytes(64 << 10));
    /// # Ok(())
    /// # }
    /// ```
    pub fn tree_with(&self, name: &str, options: &TreeOptions) -> Result<Tree, Error> {
        let made = self.trees_with([name], options)?.pop();
        made.ok_or_else(|| Error::NoTree { name: name.to_owned() })
    }

    /// The trees of these names, in their order. Missing ones are made, with default options, all of them or
    /// none, and with one wait for the device.
    ///
    /// # Errors
    /// As [`Db::tree`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let trees = db.trees(["fruit", "colours"])?;
    /// trees[0].insert("apple", "red")?;
    /// drop(trees);
    /// db.drop_trees(["fruit", "colours"])?;
    /// assert!(db.tree_names().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn trees<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<Vec<Tree>, Error> {
        self.trees_with(names, &TreeOptions::new())
    }

    /// As [`Db::trees`]; new trees are made with `options`.
    ///
    /// # Errors
    /// As [`Db::tree_with`].
    pub fn trees_with<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
        options: &TreeOptions,
    ) -> Result<Vec<Tree>, Error> {
        options.check()?;
        self.core.check_operator(options)?;
        let names: Vec<_> = names.into_iter().collect();
        let states = self.core.trees(&names.iter().map(AsRef::as_ref).collect::<Vec<_>>(), options)?;
        Ok(states.into_iter().map(|state| Tree { db: self.clone(), state }).collect())
    }

    /// The tree of that name, if it exists.
    ///
    /// # Errors
    /// [`Error::NoTree`].
    pub fn existing_tree(&self, name: &str) -> Result<Tree, Error> {
        let state = self.core.existing_tree(name).ok_or_else(|| Error::NoTree { name: name.to_owned() })?;
        Ok(Tree { db: self.clone(), state })
    }

    /// The names of all trees, in order.
    pub fn tree_names(&self) -> Vec<String> {
        self.core.tree_names()
    }

    /// Removes a tree with all its records. Its space is freed in the background; the space that is not free
    /// when the store is closed is freed after the next opening. Calls with handles of it are refused with
    /// [`Error::TreeDropped`]; existing iterators and cursors go on.
    ///
    /// # Errors
    /// [`Error::NoTree`]; otherwise as [`Tree::insert`].
    pub fn drop_tree(&self, name: &str) -> Result<(), Error> {
        self.drop_trees([name])
    }

    /// Removes trees as [`Db::drop_tree`] does, all of them or none, and with one wait for the device.
    ///
    /// # Errors
    /// [`Error::NoTree`] if one of them is not there, or is named twice; otherwise as [`Tree::insert`].
    pub fn drop_trees<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<(), Error> {
        let names: Vec<_> = names.into_iter().collect();
        self.core.drop_trees(&names.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    /// Gives a tree another name, durably; its records stay where they are. Handles that were taken by the
    /// old name are refused as those of a dropped tree are, iterators go on: take one by the new name.
    ///
    /// # Errors
    /// [`Error::NoTree`]; [`Error::Exists`] if a tree of the new name exists; [`Error::Options`] for a name
    /// that no tree has; otherwise as [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// db.tree("fruit")?.insert("apple", "red")?;
    /// db.rename_tree("fruit", "food")?;
    /// assert_eq!(db.existing_tree("food")?.get("apple")?.unwrap(), "red");
    /// assert_eq!(db.tree_names(), ["food"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rename_tree(&self, name: &str, new_name: &str) -> Result<(), Error> {
        self.core.rename_tree(name, new_name)
    }

    /// Drops the tree `name`, and gives the tree `by` its name, as one commit: whatever happens, there is a
    /// tree of that name. Handles of both are refused from then on, as by [`Db::rename_tree`].
    ///
    /// # Errors
    /// [`Error::NoTree`]; [`Error::Exists`] if both names are the same; [`Error::Full`], [`Error::ReadOnly`],
    /// [`Error::Poisoned`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// db.tree("fruit")?.insert("apple", "red")?;
    /// db.tree("new")?.insert("apple", "green")?;
    /// db.replace_tree("fruit", "new")?;
    /// assert_eq!(db.existing_tree("fruit")?.get("apple")?.unwrap(), "green");
    /// assert_eq!(db.tree_names(), ["fruit"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace_tree(&self, name: &str, by: &str) -> Result<(), Error> {
        self.core.replace_tree(name, by)
    }

    /// Limits of the system, such as that on locked memory, that keep the store from reaching its devices by
    /// the best way, in words that advise a remedy. Empty where nothing is short.
    pub fn shortages(&self) -> Vec<String> {
        self.core.shortages()
    }

    /// The longest batch or transaction, in bytes of the log: a share of it. A write takes its key, its value
    /// and a few bytes more there; a value that is too long for a node takes less.
    ///
    /// ```
    /// # use flashgrain::{Db, Error};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let (tree, value) = (db.tree("t")?, [0; 500]);
    /// let mut batch = db.batch();
    /// let mut inserted = (0..u64::MAX).map(|number| batch.insert(&tree, number.to_be_bytes(), value));
    /// let refused = inserted.find_map(Result::err);
    /// assert!(matches!(refused, Some(Error::BatchLength { limit, .. }) if limit == db.batch_bytes_max()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch_bytes_max(&self) -> u64 {
        self.core.batch_limit_bytes()
    }

    /// A batch of writes that are done as one.
    pub fn batch(&self) -> Batch {
        Batch::new(&self.core)
    }

    /// Takes a snapshot of everything that is committed now. It can be read as long as it lives.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::Poisoned`] after a commit that failed half-way.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Ok(Snapshot { core: Arc::clone(&self.core), at: self.core.pin()? })
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::Poisoned`] after a commit that failed half-way.
    pub fn begin(&self) -> Result<Transaction, Error> {
        Transaction::new(&self.core)
    }

    /// Runs `body` in a transaction and commits it; again from the beginning, with the then present records,
    /// for as long as it loses to other transactions. `body` may thus run several times.
    ///
    /// # Errors
    /// The error of `body`, and then nothing of it is done; and as [`Transaction::commit`], but for
    /// [`Error::Conflict`].
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let counters = db.tree("counters")?;
    /// let next = db.transaction(|tx| {
    ///     let last = tx.get(&counters, "ticket")?;
    ///     let last = last.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
    ///     tx.insert(&counters, "ticket", (last + 1).to_le_bytes())?;
    ///     Ok(last + 1)
    /// })?;
    /// assert_eq!(next, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T>(&self, body: impl FnMut(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
        self.try_transaction(body)
    }

    /// As [`Db::transaction`], with an error type of the caller's own. It is a call of its own as the
    /// compiler cannot know the error type of a closure that says nothing about it.
    ///
    /// # Errors
    /// The error of `body`, and then nothing of it is done; and those of [`Db::transaction`], converted.
    ///
    /// ```
    /// # use flashgrain::{Db, Readable};
    /// #[derive(Debug)]
    /// enum Refusal {
    ///     SoldOut,
    ///     Store(flashgrain::Error),
    /// }
    ///
    /// impl From<flashgrain::Error> for Refusal {
    ///     fn from(error: flashgrain::Error) -> Self {
    ///         Self::Store(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Refusal> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let stock = db.tree("stock")?;
    /// let sold = db.try_transaction(|tx| {
    ///     let left = tx.get(&stock, "apple")?.map_or(0, |value| value[0]);
    ///     tx.insert(&stock, "apple", [left.checked_sub(1).ok_or(Refusal::SoldOut)?])?;
    ///     Ok(())
    /// });
    /// assert!(matches!(sold, Err(Refusal::SoldOut)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_transaction<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            let mut transaction = self.begin()?;
            let result = body(&mut transaction)?;
            match transaction.commit() {
                Err(Error::Conflict) => {}
                done => return done.map(|()| result).map_err(E::from),
            }
        }
    }

    /// Runs `work` as a task of one of the store's workers. Thousands of tasks may wait for pages, locks and
    /// commits at a time, on few threads. The handle is for joining from any thread or task, or for `.await`
    /// in any async runtime.
    ///
    /// A task should wait only for the store: whatever else blocks it blocks its worker, and all tasks on it.
    /// It has a stack of 64 KiB.
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let tree = db.tree("squares")?;
    /// let tasks: Vec<_> = (0..100_u64)
    ///     .map(|number| {
    ///         let tree = tree.clone();
    ///         db.spawn(move || tree.insert(number.to_be_bytes(), (number * number).to_be_bytes()))
    ///     })
    ///     .collect();
    /// for task in tasks {
    ///     task.join().unwrap()?;
    /// }
    /// assert_eq!(tree.iter()?.count(), 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.core.spawn(work)
    }

    /// Makes everything that is committed durable, however it was committed.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`].
    pub fn sync(&self) -> Result<(), Error> {
        self.core.sync()
    }

    /// Requests a checkpoint and waits for it: afterwards opening the store has no log to replay, and space
    /// that was freed before is free. Checkpoints also come by themselves.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.core.checkpoint()
    }

    /// Statistics of all parts of the store.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Frees pages of overflow values, and of lists of tables, that a crash has left allocated. Returns the
    /// number of pages. All trees are read for that, and commits wait meanwhile. `None`, and nothing is
    /// freed, if the store is in use: no snapshot, iterator or commit may be under way.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] if a tree cannot be read as a whole, and then nothing is freed.
    pub fn reclaim(&self) -> Result<Option<u64>, Error> {
        self.core.reclaim()
    }

    /// Makes the store's files as short as its records allow: live data moves to their beginning, and the
    /// rest is given back to the file system. Others may go on reading and writing. Free segments that
    /// removals need on a full disk stay. The store is about as long as a backup of it (one of a few MiB is
    /// up to twice as long), and never longer than before unless others write meanwhile. A store in block
    /// devices keeps its size, as does one whose pages are placed in place; removed records make room within.
    ///
    /// Checkpoints cut files by themselves when most of them is free at the end. After many removals, live
    /// pages lie everywhere, and this moves them.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room for a checkpoint, [`Error::Poisoned`], [`Error::ReadOnly`].
    ///
    /// ```
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = flashgrain::Db::create(folder.path().join("store"))?;
    /// let logs = db.tree("logs")?;
    /// logs.insert("monday", vec![7; 40 << 20])?;
    /// logs.remove("monday")?;
    /// let compacted = db.compact()?;
    /// assert!(compacted.after_bytes < 16 << 20, "{compacted:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact(&self) -> Result<Compacted, Error> {
        self.compact_while(|_| true)
    }

    /// As [`Db::compact`], in rounds. Each leaves the store whole. `goes_on` is told the result so far, and
    /// decides whether another round begins.
    ///
    /// # Errors
    /// As [`Db::compact`].
    pub fn compact_while(&self, goes_on: impl FnMut(Compacted) -> bool) -> Result<Compacted, Error> {
        self.core.compact(goes_on)
    }

    /// Reads and verifies everything: every page of every tree, and the entries of the page table and the
    /// space accounts about them. Others may go on reading and writing; where their commits change a tree too
    /// fast for that, they wait until it has been checked.
    ///
    /// # Errors
    /// The first damage, as [`Error::Corrupt`], or [`Error::Io`].
    pub fn check(&self) -> Result<Check, Error> {
        self.core.check()
    }

    /// Copies all trees, as they are at one moment, to a new store at another place, while others go on
    /// reading and writing. The copy is a store like any other: it is durable and closed when this returns,
    /// and restoring it is opening it, or copying its files or backing it up to where it is wanted.
    ///
    /// `target` says where, and how the copy is laid out; [`Builder::cache_bytes`] may be small. Everything
    /// that is read of this store is verified. The copy takes the space of its records, not that of this
    /// store's files. Old versions that others replace meanwhile are kept until it is done.
    ///
    /// # Errors
    /// As [`Builder::create`] and [`Readable::get`]; [`Error::Full`], [`Error::Poisoned`] and [`Error::Io`]
    /// of the target. This store is as before then; the incomplete copy is removed if it is in files. After a
    /// crash, or on a device, an incomplete copy cannot be opened: [`Error::NotAStore`].
    ///
    /// ```
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # use flashgrain::Db;
    /// let db = Db::in_memory(64 << 20)?;
    /// db.tree("fruit")?.insert("apple", "red")?;
    /// let path = folder.path().join("copy");
    /// assert_eq!(db.backup(Db::builder().path(&path).cache_bytes(8 << 20))?.records, 1);
    /// assert_eq!(Db::open(&path)?.tree("fruit")?.get("apple")?.unwrap(), "red");
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self, target: Builder) -> Result<Backup, Error> {
        self.core.backup(target, None)
    }

    /// As [`Db::backup`], of these trees alone. It rescues the other trees of a store with a tree that cannot
    /// be read.
    ///
    /// # Errors
    /// As [`Db::backup`]; [`Error::OtherStore`], [`Error::OtherOpening`] or [`Error::TreeDropped`] if one is
    /// not a tree of this store.
    ///
    /// ```
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # use flashgrain::Db;
    /// let db = Db::in_memory(64 << 20)?;
    /// let (fruit, letters) = (db.tree("fruit")?, db.tree("letters")?);
    /// let path = folder.path().join("copy");
    /// db.backup_trees(&[&fruit], Db::builder().path(&path).cache_bytes(8 << 20))?;
    /// assert_eq!(Db::open(&path)?.tree_names(), ["fruit"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup_trees(&self, trees: &[&Tree], target: Builder) -> Result<Backup, Error> {
        let named = trees.iter().map(|tree| self.core.named_tree(tree)).collect::<Result<Vec<_>, _>>()?;
        self.core.backup(target, Some(&named))
    }

    /// The time on the store's device: virtual on a simulated one. For benchmarks.
    pub fn now(&self) -> Duration {
        self.core.now()
    }

    /// Waits until the clock of [`Db::now`] shows `until`: a task lets others run meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] if the clock's device cannot wait.
    pub fn sleep_until(&self, until: Duration) -> Result<(), Error> {
        self.core.sleep_until(until)
    }

    /// How the layout was decided when the store was created; of a store that was opened, its settings
    /// without the numbers that led to them.
    pub fn layout(&self) -> &[Decision] {
        self.core.decisions()
    }

    /// How a tree with these options would be kept if it were made now, as [`Tree::layout`] reports it of an
    /// existing tree.
    ///
    /// # Errors
    /// [`Error::Options`] for options that cannot be.
    pub fn layout_of(&self, options: &TreeOptions) -> Result<Vec<Decision>, Error> {
        options.check()?;
        self.core.layout_of(options)
    }

    /// Closes the store: waits for operations that are under way, takes a last checkpoint and marks the store
    /// as closed. Other handles, snapshots and iterators then return [`Error::Closed`]; its files stay locked
    /// until the last of them is gone.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`]: the store then opens as after a crash.
    pub fn close(self) -> Result<(), Error> {
        self.core.close()
    }
}

impl Source for Db {
    #[inline]
    fn lookup<'a>(&'a self, tree: &'a Tree) -> Result<Lookup<'a>, Error> {
        let tree = self.core.named_tree(tree)?;
        Ok(Lookup { core: &self.core, tree, at: None, overlay: None })
    }

    fn view(&self, tree: &Tree) -> Result<View, Error> {
        let tree = self.core.named_tree(tree)?;
        let at = self.core.pin()?;
        Ok(View { core: Arc::clone(&self.core), tree: Arc::clone(tree), at, overlay: None })
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Db").field("trees", &self.tree_names()).finish_non_exhaustive()
    }
}

/// Part of the public interface: these move between threads, and threads share them.
const _: () = {
    const fn shared<T: Send + Sync + 'static>() {}
    shared::<Db>();
    shared::<Tree>();
    shared::<Snapshot>();
    shared::<Iter>();
    shared::<Cursor>();
    shared::<Batch>();
    shared::<Transaction>();
    shared::<ValueReader>();
    shared::<Value>();
    shared::<Builder>();
    shared::<Error>();
};
