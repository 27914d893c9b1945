//! Named trees.

use std::fmt;
use std::io::Read;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flashgrain_settings::layout::Decision;

use super::Db;
use super::bulk::LoadError;
use super::check::Check;
use super::core::Core;
use super::range::Range;
use super::tree_options::{TreeOptions, of_blocks, of_nodes};
use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::{BeTreeStats, LsmLevelStats, LsmStats, TreeOperations};
use crate::layout::NodeBlocks;
use crate::lsm::LsmWorkload;

/// A named tree: an ordered map from keys to values. Cheap to clone, and usable from any number of threads.
///
/// Each method reads the records that are committed now, or writes over them; writes are commits of their own
/// with the store's durability. For several writes as one, see [`Db::batch`] and [`Db::transaction`].
///
/// ```
/// # use flashgrain::Db;
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let db = Db::in_memory(64 << 20)?;
/// let fruit = db.tree("fruit")?;
/// fruit.insert("apple", "red")?;
/// fruit.insert("banana", "yellow")?;
/// assert_eq!(fruit.get("apple")?.unwrap(), "red");
/// assert_eq!(fruit.last_key_value()?.unwrap().0, "banana");
/// fruit.remove("apple")?;
/// assert!(!fruit.contains_key("apple")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tree {
    pub(super) db: Db,
    pub(crate) state: Arc<NamedTree>,
}

impl Tree {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The options in force, node size included.
    pub fn options(&self) -> TreeOptions {
        self.core().options_of(&self.state)
    }

    /// How the tree is kept: each of its settings, with the reason for it. Those that all trees of the store
    /// share are in [`Db::layout`](crate::Db::layout).
    pub fn layout(&self) -> Vec<Decision> {
        let own = self.state.tree.index.decisions();
        if !own.is_empty() {
            return own;
        }
        let options = self.options();
        let blocks = match options.blocks {
            Some(blocks @ NodeBlocks::Of(count)) => Some(of_blocks(count, blocks, self.core().layout())),
            _ => None,
        };
        std::iter::once(of_nodes(options.size_of_nodes().unwrap_or(0))).chain(blocks).collect()
    }

    /// Counts of its operations: of an LSM-tree since it was made, of a B+-tree since the store was opened. A
    /// crash loses the operations that an LSM-tree has counted since its tables changed last. A store opened
    /// to be read only counts for itself alone. Where many threads count, a few operations may be missing.
    ///
    /// ```
    /// # use flashgrain::{Db, LsmWorkload};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let fruit = db.tree("fruit")?;
    /// assert_eq!(fruit.observed_workload(), None);
    /// fruit.insert("apple", "red")?;
    /// fruit.get("apple")?;
    /// assert_eq!((fruit.operations().writes, fruit.operations().look_ups), (1, 1));
    /// assert_eq!(fruit.observed_workload(), Some(LsmWorkload::new(50.0, 50.0, 0.0)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn operations(&self) -> TreeOperations {
        self.state.tree.index.operations()
    }

    /// The [operations](Tree::operations) as shares, with the bytes of an LSM-tree and of its records; `None`
    /// if nothing was done. [`LsmOptions::workload`](crate::LsmOptions::workload) takes it, for the tree that
    /// is to replace this one; [`Db::layout_of`](crate::Db::layout_of) says how that would be kept.
    pub fn observed_workload(&self) -> Option<LsmWorkload> {
        let workload = self.operations().workload()?;
        let levels = self.lsm_stats().map_or(Vec::new(), |stats| stats.levels);
        let sum = |of: fn(&LsmLevelStats) -> u64| levels.iter().map(of).sum::<u64>();
        let (bytes, records) = (sum(|level| level.bytes), sum(|level| level.records));
        Some(match bytes.checked_div(records) {
            None => workload,
            Some(each) => workload.data_bytes(bytes).record_bytes(u32::try_from(each).unwrap_or(u32::MAX)),
        })
    }

    /// Levels, debt, and counts of flushes and merges since the store was opened, if it is an LSM-tree.
    pub fn lsm_stats(&self) -> Option<LsmStats> {
        self.state.tree.index.lsm_stats()
    }

    /// The contents of its buffers, and counts of flushes since the store was opened, if it is a Bε-tree.
    pub fn be_tree_stats(&self) -> Option<BeTreeStats> {
        self.state.tree.index.be_tree_stats()
    }

    /// The longest key that it takes: a quarter of a node, less a few bytes.
    pub fn key_bytes_max(&self) -> usize {
        self.core().key_bytes_max(&self.state)
    }

    /// Gives `key` this value, whether it has one or not.
    ///
    /// # Errors
    /// [`Error::KeyLength`] and [`Error::ValueLength`] if they are too long or the key is empty;
    /// [`Error::Full`]; [`Error::Poisoned`]; and as [`Readable::get`](crate::Readable::get).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), Some(value.as_ref()))
    }

    /// As [`Tree::insert`], with a value that is read from `source`, to its end. Returns the value's length
    /// in bytes. See [`Batch::insert_from`](crate::Batch::insert_from).
    ///
    /// # Errors
    /// As [`Batch::insert_from`](crate::Batch::insert_from).
    pub fn insert_from(&self, key: impl AsRef<[u8]>, source: impl Read) -> Result<u64, Error> {
        let mut batch = self.db.batch();
        let length = batch.insert_from(self, key, source)?;
        batch.commit().map(|()| length)
    }

    /// Removes `key`, whether it is there or not.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), None)
    }

    /// Removes all records in `range`, and returns their number.
    ///
    /// Up to 1,024 records whose keys take no more than 256 KiB are removed as one: after a crash all of them
    /// are gone or none, and no reader sees anything in between. Only a log that may never have 2.2 MiB
    /// ([`Builder::log_bytes`](crate::Builder::log_bytes), or a very small store) bounds a step further, to
    /// almost an eighth of that log, where a record takes its key and up to nine bytes. More records are
    /// removed in such steps, in key order, so that neither memory nor the log limits their number: after a
    /// crash, or an error, the records before some key are gone and those from there on are all there. For
    /// more as one, see [`Transaction::remove_range`](crate::Transaction::remove_range).
    ///
    /// A step is before or after every commit of others that writes to the same keys. Records that others
    /// write into the range after a step has passed stay.
    ///
    /// A record that the merge operator fails at is a record like any other: its value is not needed.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let days = db.tree("days")?;
    /// for day in ["2026-01-30", "2026-01-31", "2026-02-01"] {
    ///     days.insert(day, "cold")?;
    /// }
    /// assert_eq!(days.remove_range(.."2026-02")?, 2);
    /// assert_eq!(days.first_key_value()?.unwrap().0, "2026-02-01");
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64, Error> {
        let core = self.core();
        core.remove_range(core.named_tree(self)?, Range::of(&range))
    }

    /// Removes all records in `range`, without counting them.
    ///
    /// An LSM-tree notes the range, and looks at none of the records: it takes as long as removing one, and
    /// after a crash all of them are gone or none. The room is given back as tables are merged; tables that
    /// lie within the range go at once. All other commits wait for a moment, so it is for ranges, not for a
    /// few records. A B+-tree does as [`Tree::remove_range`].
    ///
    /// # Errors
    /// As [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::{Db, IndexKind, TreeOptions};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let days = db.tree_with("days", &TreeOptions::new().kind(IndexKind::Lsm))?;
    /// days.load([("2026-01-30", "cold"), ("2026-01-31", "cold"), ("2026-02-01", "mild")])?;
    /// days.clear_range(.."2026-02")?;
    /// assert_eq!(days.first_key_value()?.unwrap().0, "2026-02-01");
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<(), Error> {
        let core = self.core();
        core.clear_range(core.named_tree(self)?, Range::of(&range))
    }

    /// Gives many keys their values; the records come in ascending order of their keys, each key once.
    /// Returns their number. It waits for the device only once, at its end, so it is as fast as inserts that
    /// do not wait (a little slower, in fact), and durable nevertheless; where the tree has no records yet,
    /// or none after the ones before, its leaves become full.
    ///
    /// Records go in steps of up to 1,024, or 1 MiB; each is a commit. An LSM-tree writes more than that as
    /// tables at once, which are one commit, up to the first key that it has in between, or the first value
    /// that takes pages of its own; the rest goes in steps. After a crash, or an error, the first records are
    /// there up to one that ended a step, and none of those after it; [`Tree::load_counted`] says how many
    /// they are.
    ///
    /// # Errors
    /// [`Error::Order`] says which record is not in order. Otherwise as [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let squares = db.tree("squares")?;
    /// let records = (0..10_000_u64).map(|number| (number.to_be_bytes(), (number * number).to_le_bytes()));
    /// let loaded = squares.load(records)?;
    /// assert_eq!(loaded, 10_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        Ok(self.load_counted(records)?)
    }

    /// As [`Tree::load`], with an error that says how many of the first records are in the tree.
    ///
    /// # Errors
    /// As [`Tree::load`], in [`LoadError::source`].
    ///
    /// ```
    /// # use flashgrain::Db;
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let numbers = db.tree("numbers")?;
    /// let unsorted = (0..5_000_u32).chain([0]).map(|number| (number.to_be_bytes(), "n"));
    /// let failure = numbers.load_counted(unsorted).unwrap_err();
    /// let loaded = numbers.iter()?.count();
    /// assert_eq!(failure.loaded, loaded as u64);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load_counted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, LoadError> {
        let core = self.core();
        let mut loader = core.loader(core.named_tree(self)?)?;
        let push = |(key, value): (K, V)| loader.push(key.as_ref(), Value::from(value.as_ref()));
        let pushed = records.into_iter().try_for_each(push);
        match pushed.and_then(|()| loader.finish(core.durability())) {
            Ok(count) => Ok(count),
            Err(error) => Err(loader.failed(core.durability(), error)),
        }
    }

    /// Reads and verifies all of this tree, and counts its contents, as [`Db::check`] does for all.
    ///
    /// # Errors
    /// As [`Db::check`].
    pub fn check(&self) -> Result<Check, Error> {
        let core = self.core();
        core.check_one(core.named_tree(self)?)
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let core = self.core();
        core.write(core.named_tree(self)?, key, value, core.durability())
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.db.core
    }
}

impl Core {
    /// The tree of a handle, if the handle is of this opening of this store, and the tree was not dropped.
    /// Every call that gets a handle checks this before it does anything.
    pub(super) fn named_tree<'a>(self: &Arc<Self>, tree: &'a Tree) -> Result<&'a Arc<NamedTree>, Error> {
        if !Arc::ptr_eq(self, &tree.db.core) {
            return Err(self.foreign(tree));
        }
        if tree.state.dropped.load(Ordering::Relaxed) {
            return Err(Error::TreeDropped { tree: tree.state.name.clone() });
        }
        Ok(&tree.state)
    }

    /// Why a handle from elsewhere is refused.
    #[cold]
    fn foreign(&self, tree: &Tree) -> Error {
        let name = tree.state.name.clone();
        let is_same_store = self.engine().superblock().store == tree.db.core.engine().superblock().store;
        if is_same_store { Error::OtherOpening { tree: name } } else { Error::OtherStore { tree: name } }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tree")
            .field("name", &self.state.name)
            .field("options", &self.options())
            .finish_non_exhaustive()
    }
}
