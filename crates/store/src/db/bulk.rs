//! Bulk operations, in steps that are commits: each step is done as a whole or not at all, in key order, and
//! none takes much memory or many locks.
//!
//! The log keeps the order of commits, so a crash leaves the results of the steps up to some moment. Only the
//! end waits for the device. Records that an index [loads](crate::index::Loads) are one step, however many.

use std::sync::Arc;

use super::content::{Content, is_overflow};
use super::core::Core;
use super::range::Range;
use super::scan::TreeScan;
use super::value::Value;
use super::writes::Writes;
use crate::catalog::NamedTree;
use crate::index::{Direction, Load, Write, Written, behind, is_eager};
use crate::log::Timestamp;
use crate::txn::Snapshot;
use crate::{Durability, Error};

/// Records of a step: as many locks of 8,192 may be taken.
const STEP_RECORDS: usize = 1024;

/// Bytes of the keys that a step removes at most.
const REMOVED_KEY_BYTES: u64 = 256 << 10;

/// Bytes of the records that a step loads.
const LOADED_BYTES: u64 = 1 << 20;

/// Upper bound for the bytes that a record takes in the log in addition to its key and value.
const OVERHEAD_BYTES: u64 = 16;

/// Conflicts in a row after which a removal locks other commits out.
const LOST_MAX: u32 = 3;

/// The keys that a step removes, and the timestamp of the snapshot that it found them in.
struct Step {
    keys: Vec<Vec<u8>>,
    seen_at: Timestamp,
    /// Whether these are the last.
    is_last: bool,
}

impl Core {
    /// Removes the records in `range`, in steps, and returns their number.
    ///
    /// # Errors
    /// As [`Core::write`](Core::write).
    pub(super) fn remove_range(
        self: &Arc<Self>,
        tree: &Arc<NamedTree>,
        mut range: Range,
    ) -> Result<u64, Error> {
        let (mut removed, mut lost) = (0, 0);
        loop {
            let step = match self.remove_step(tree, &range, lost < LOST_MAX) {
                Err(Error::Conflict) => {
                    lost += 1;
                    continue;
                }
                result => result?,
            };
            lost = 0;
            removed += step.keys.len() as u64;
            if let Some(last) = step.keys.last() {
                range.take(Direction::Forward, last);
            }
            if step.is_last {
                break;
            }
        }
        if removed > 0 {
            self.wait(self.durability())?;
        }
        Ok(removed)
    }

    /// Removes all records in `range`: as one, without looking at them, if the tree's index can, else in
    /// steps.
    ///
    /// # Errors
    /// As [`Core::write`](Core::write).
    pub(super) fn clear_range(self: &Arc<Self>, tree: &Arc<NamedTree>, range: Range) -> Result<(), Error> {
        let Some(index) = tree.tree.index.removes_ranges() else {
            return self.remove_range(tree, range).map(drop);
        };
        let _writing = self.announce(tree)?;
        tree.tree.index.admit()?;
        let longest = self.key_bytes_max(tree);
        // Longer than any key, so that all are before it.
        let upper = range.upper.unwrap_or_else(|| vec![0xff; longest + 1]);
        let (lower, upper) = (cut_to_keys(range.lower, longest), cut_to_keys(upper, longest));
        if lower >= upper {
            return Ok(());
        }
        let bounds = (lower.as_slice(), upper.as_slice());
        self.engine().transactions().remove_range((tree.tree.id, index), bounds, self.durability()).map(drop)
    }

    /// Removes the first records in `range`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it `may_lose`, and one of them was written after they were looked at.
    fn remove_step(
        self: &Arc<Self>,
        tree: &Arc<NamedTree>,
        range: &Range,
        may_lose: bool,
    ) -> Result<Step, Error> {
        let _writing = self.announce(tree)?;
        let transactions = self.engine().transactions();
        if !may_lose {
            let look = || self.look(tree, range);
            return transactions.remove_alone(&tree.tree, look, |step| &step.keys, Durability::None);
        }
        let step = self.look(tree, range)?;
        preempt!();
        let written = |key| Written { tree: &tree.tree, key, write: Write::Remove };
        let writes: Vec<_> = step.keys.iter().map(|key| written(key.as_slice())).collect();
        let seen_at = (!planted!(RangeRemovalNotValidated)).then_some(step.seen_at);
        transactions.commit(seen_at, &[], &writes, Durability::None)?;
        Ok(step)
    }

    /// The first keys in `range`. The snapshot is given back before they are removed: the old versions are
    /// not needed.
    fn look(self: &Arc<Self>, tree: &Arc<NamedTree>, range: &Range) -> Result<Step, Error> {
        let at = self.pin()?;
        let mut scan = self.scan(tree, &at, range);
        let (mut keys, mut key_bytes, mut logged_bytes) = (Vec::new(), 0, 0);
        let seen_at = at.timestamp();
        let limit = self.batch_limit_bytes();
        while keys.len() < STEP_RECORDS {
            let Some(key) = scan.next_key()? else { return Ok(Step { keys, seen_at, is_last: true }) };
            key_bytes += key.len() as u64;
            logged_bytes += self.logged_bytes(tree, &key, None);
            // The next step begins with a key that would be too much.
            if !keys.is_empty() && (key_bytes > REMOVED_KEY_BYTES || logged_bytes > limit) {
                break;
            }
            keys.push(key);
        }
        Ok(Step { keys, seen_at, is_last: false })
    }

    /// All keys in `range` that a snapshot sees.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if they are more than fit into a commit.
    pub(super) fn keys_within(
        self: &Arc<Self>,
        tree: &Arc<NamedTree>,
        at: &Arc<Snapshot>,
        range: &Range,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut scan = self.scan(tree, at, range);
        let limit = self.batch_limit_bytes();
        let (mut keys, mut got) = (Vec::new(), 0);
        while let Some(key) = scan.next_key()? {
            got += self.logged_bytes(tree, &key, None);
            if got > limit {
                return Err(Error::BatchLength { got, limit });
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Bytes after which a step takes no more records: at most those that the log takes as one commit, with
    /// room for a last record.
    fn step_bytes(&self, bytes: u64) -> u64 {
        bytes.min(self.batch_limit_bytes() / 2)
    }

    /// To load records into a tree.
    ///
    /// # Errors
    /// As [`Core::write`](Core::write).
    pub(super) fn loader<'a>(self: &'a Arc<Self>, tree: &'a Arc<NamedTree>) -> Result<Loader<'a>, Error> {
        drop(self.announce(tree)?);
        let step_bytes = self.step_bytes(LOADED_BYTES);
        let (way, writes, last) = (Way::Open, Writes::default(), Vec::new());
        Ok(Loader {
            core: self,
            tree,
            step_bytes,
            way,
            writes,
            operands: Vec::new(),
            bytes: 0,
            records: 0,
            committed: 0,
            last,
        })
    }

    fn scan(self: &Arc<Self>, tree: &Arc<NamedTree>, at: &Arc<Snapshot>, range: &Range) -> TreeScan {
        TreeScan::new(self, tree, at, Direction::Forward, &range.lower, range.upper.as_deref())
    }
}

/// A bound that has the same keys of at most `longest` bytes on either side, and is hardly longer than they
/// are.
fn cut_to_keys(bound: Vec<u8>, longest: usize) -> Vec<u8> {
    let cut = bound.get(..longest).filter(|_| bound.len() > longest);
    match cut {
        Some(cut) if planted!(LongBoundCut) => cut.to_vec(),
        Some(cut) => behind(cut),
        None => bound,
    }
}

/// How records go into a tree.
enum Way<'a> {
    /// Those of the first step are being gathered.
    Open,
    /// In steps that are commits.
    Steps,
    /// As one commit, which the index writes in a way of its own.
    Load(Box<dyn Load + 'a>),
}

/// Records on their way into a tree, in ascending order.
pub(super) struct Loader<'a> {
    core: &'a Arc<Core>,
    tree: &'a Arc<NamedTree>,
    step_bytes: u64,
    way: Way<'a>,
    /// The step that is being gathered.
    writes: Writes,
    /// Of its keys, and of others: lists that are over their values.
    operands: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: u64,
    /// Records so far, and the key of the last one.
    records: u64,
    /// The first of them, those of commits that have succeeded.
    committed: u64,
    last: Vec<u8>,
}

impl Loader<'_> {
    /// The next record.
    ///
    /// # Errors
    /// [`Error::Order`] if its key does not follow; otherwise as [`Core::write`](Core::write). Nothing may
    /// follow then.
    pub fn push(&mut self, key: &[u8], value: Value) -> Result<(), Error> {
        if self.records > 0 && key <= self.last.as_slice() {
            return Err(Error::Order { record: self.records });
        }
        self.core.check_write(self.tree, key, Some(&value))?;
        self.last.clear();
        self.last.extend_from_slice(key);
        let bytes = (key.len() + value.len()) as u64 + OVERHEAD_BYTES;
        // Together they must not be more than the log takes as one.
        if self.bytes + bytes > self.step_bytes || self.writes.len() == STEP_RECORDS {
            self.step()?;
        }
        if let Way::Load(load) = &mut self.way {
            if load.takes(key) && !is_overflow(self.tree, value.len() as u64) {
                load.push(key, &value)?;
                self.records += 1;
                return Ok(());
            }
            self.end_load(Durability::None)?;
        }
        self.writes.put(self.tree, key, Some(Content::Bytes(value)));
        self.bytes += bytes;
        self.records += 1;
        Ok(())
    }

    /// The next record, with a list of operands over its value.
    ///
    /// # Errors
    /// As [`Loader::push`].
    pub fn push_unmerged(
        &mut self,
        key: &[u8],
        value: Option<Value>,
        operands: Vec<u8>,
    ) -> Result<(), Error> {
        match value {
            Some(value) => self.push(key, value)?,
            None => self.records += 1,
        }
        if !operands.is_empty() {
            // They come after the value that they are over, so that is in a commit before.
            self.end_load(Durability::None)?;
            self.bytes += operands.len() as u64;
            self.operands.push((key.to_vec(), operands));
        }
        if self.operands.len() >= STEP_RECORDS { self.step() } else { Ok(()) }
    }

    /// Writes the gathered records: into the load, or as a commit of their own.
    fn step(&mut self) -> Result<(), Error> {
        if matches!(self.way, Way::Open) && !self.writes.is_empty() {
            self.way = self.begin_load()?.map_or(Way::Steps, Way::Load);
        }
        if matches!(self.way, Way::Steps) && !self.writes.is_empty() {
            self.core.commit(&self.writes, None, Durability::None)?;
            self.committed = self.records;
        }
        for (key, list) in std::mem::take(&mut self.operands) {
            self.core.write_all_operands(self.tree, &key, &list, Durability::None)?;
        }
        self.writes.clear();
        self.bytes = 0;
        Ok(())
    }
}

impl<'a> Loader<'a> {
    /// Begins a load of the index with the gathered records, if it takes all of them.
    fn begin_load(&self) -> Result<Option<Box<dyn Load + 'a>>, Error> {
        let Some((_, first, _)) = self.writes.iter().next() else { return Ok(None) };
        let load = self.tree.tree.index.loads().and_then(|index| index.load_from(first));
        let Some(mut load) = load else { return Ok(None) };
        let mut records = self.writes.iter().filter_map(|(_, key, content)| Some((key, content?)));
        if !records.all(|(key, content)| load.takes(key) && !is_overflow(self.tree, content.length())) {
            return Ok(None);
        }
        self.writes.iter().try_for_each(|(_, key, content)| match content {
            Some(Content::Bytes(value)) => load.push(key, value),
            _ => Ok(()),
        })?;
        Ok(Some(load))
    }

    /// Commits the records that the index has loaded; those that follow go in steps.
    fn end_load(&mut self, durability: Durability) -> Result<(), Error> {
        let Way::Load(mut load) = std::mem::replace(&mut self.way, Way::Steps) else { return Ok(()) };
        let ended = self.commit_load(load.as_mut(), durability);
        match ended {
            Ok(()) => self.committed = self.records,
            // After a failure that ends everything, it is given up at the next opening.
            Err(_) => drop(load.withdraw()),
        }
        ended
    }

    fn commit_load(&self, load: &mut dyn Load, durability: Durability) -> Result<(), Error> {
        let _writing = self.core.announce(self.tree)?;
        let id = load.prepare()?;
        // The log must not have the commit before the records are durable.
        if !planted!(LoadLoggedBeforeDurable) {
            self.core.engine().checkpoint()?;
        }
        preempt!();
        self.core.engine().transactions().load(self.tree.tree.id, (load, id), durability).map(drop)
    }

    /// Waits until all records are as durable as asked, and returns their number.
    ///
    /// # Errors
    /// As [`Core::write`](Core::write). Nothing may follow then.
    pub fn finish(&mut self, durability: Durability) -> Result<u64, Error> {
        // For a single step a load is not worth its checkpoint.
        if matches!(self.way, Way::Open) && !is_eager() {
            self.way = Way::Steps;
        }
        self.step()?;
        self.end_load(durability)?;
        if self.records > 0 {
            self.core.wait(durability)?;
        }
        Ok(self.records)
    }

    /// Finds out which records are in the tree after `source` has ended the load, and makes these as durable
    /// as asked.
    pub fn failed(self, durability: Durability, source: Error) -> LoadError {
        // A commit that the log has becomes part of the tree, or poisons the store.
        let is_whole = self.core.engine().parts().poison.check().is_ok();
        let loaded_max = if is_whole { self.committed } else { self.records };
        let loaded = if self.core.wait(durability).is_ok() { self.committed } else { 0 };
        LoadError { loaded, loaded_max, source }
    }
}

/// Failure of a load, and the records that are in the tree in spite of it: always the first ones.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{source}")]
#[non_exhaustive]
pub struct LoadError {
    /// Number of the first records that are in the tree, as durable as the store's commits are.
    pub loaded: u64,
    /// Number of the first records that may be in the tree once the store was opened again. It is more than
    /// `loaded` only after a failure that poisoned the store.
    pub loaded_max: u64,
    /// The failure.
    pub source: Error,
}

impl From<Error> for LoadError {
    /// A failure before the first record.
    fn from(source: Error) -> Self {
        Self { loaded: 0, loaded_max: 0, source }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        error.source
    }
}
