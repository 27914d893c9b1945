//! Replays the operations of the log.
//!
//! Every record of a tree has the number of its commit, so changes that a checkpoint contains are not made
//! again, and the replay may start anywhere before the missing ones, also twice.

use std::sync::Arc;

use super::OverflowValues;
use crate::Error;
use crate::btree::overflow::written_pages;
use crate::catalog::{Entry, Trees};
use crate::checkpoint::EPOCH_MAX;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::index::{LoadId, TreeId};
use crate::log::{LogRecord, Timestamp};
use crate::segment::Segments;
use crate::task::Executor;
use crate::txn::{Operation, Operations, Replayer, unpack};

/// Number of a record's operations that a planted bug replays: about those in a block of the log.
const OPERATIONS_OF_A_BLOCK: usize = 10;

/// See the module.
pub(super) struct Replay {
    trees: Arc<Trees>,
    overflow_values: Arc<OverflowValues>,
    /// The epoch of the checkpoint.
    cut: Epoch,
    /// The catalog has the changes of all commits up to this one. They are not done again: later ones may
    /// have used the same names, and a tree that is gone would come back.
    catalog_until: Timestamp,
    replayer: Replayer,
}

/// The overflow values of a record that is going to be replayed: their pages are on the device already, so no
/// write of the replay may take their places, and no new page their numbers. It returns the highest number,
/// which is below `limit`, and the latest epoch when one of them was made.
///
/// # Errors
/// [`Error::Corrupt`] for pages that no store ever had.
pub(super) fn foresee(record: &[u8], segments: &Segments, limit: PageId) -> Result<(PageId, Epoch), Error> {
    let mut highest = (PageId(0), Epoch(0));
    // A record that cannot be decoded is reported when it is replayed.
    for operation in Operations::of(&unpack(record).unwrap_or_default()) {
        let Ok(Operation::PutOverflow { reference, .. }) = operation else { continue };
        let (pages, epoch) = written_pages(reference)?;
        let last = pages.iter().map(|(page, _)| *page).max().unwrap_or(PageId(0));
        if last >= limit || epoch > EPOCH_MAX {
            return Err(Error::Corrupt {
                what: "an overflow value in the log".into(),
                offset_bytes: 0,
                expected: format!("pages below {}, made in epoch {} or before", limit.0, EPOCH_MAX.0),
                got: format!("page {} of epoch {}, under a right checksum", last.0, epoch.0),
            });
        }
        highest = (highest.0.max(last), highest.1.max(epoch));
        for (_, location) in pages {
            if !planted!(OverflowNotHeldForReplay) {
                segments.opening.hold(location)?;
            }
        }
    }
    Ok(highest)
}

#[cold]
fn cannot_be_done(logged: LogRecord, got: &str) -> Error {
    Error::Corrupt {
        what: format!("commit {} in the log", logged.timestamp.0),
        offset_bytes: 0,
        expected: "operations that its tree can do".into(),
        got: got.into(),
    }
}

impl Replay {
    pub fn new(
        trees: Arc<Trees>,
        overflow_values: Arc<OverflowValues>,
        cut: Epoch,
        (executor, pages_bytes): (Executor, u64),
    ) -> Self {
        let own = Arc::clone(&overflow_values);
        let give_back = Arc::new(move |reference: &[u8]| own.free(reference));
        let catalog_until = trees.last_change();
        let replayer = Replayer::new(executor, pages_bytes, give_back);
        Self { trees, overflow_values, cut, catalog_until, replayer }
    }

    /// Replays a commit. Commits come in the order of the log.
    pub fn record(&mut self, logged: LogRecord, record: &[u8]) -> Result<(), Error> {
        let most = if planted!(BatchReplayedInPart) { OPERATIONS_OF_A_BLOCK } else { usize::MAX };
        let mut changes_catalog = false;
        let unknown = |_| Error::Corrupt {
            what: format!("commit {} in the log", logged.timestamp.0),
            offset_bytes: 0,
            expected: "operations that this version knows".into(),
            got: "something else, under a right checksum".into(),
        };
        for operation in Operations::of(&unpack(record).map_err(unknown)?).take(most) {
            let operation = operation.map_err(unknown)?;
            let is_of_catalog = operation.is_of_catalog();
            if is_of_catalog && logged.timestamp <= self.catalog_until && !planted!(CatalogReplayedOverNewer)
            {
                continue;
            }
            changes_catalog |= is_of_catalog;
            self.operation(logged, operation)?;
        }
        if changes_catalog { self.trees.note_change(logged.timestamp) } else { Ok(()) }
    }

    fn operation(&mut self, logged: LogRecord, operation: Operation<'_>) -> Result<(), Error> {
        match operation {
            // A tree that was dropped later is not there any more.
            Operation::Put { tree, key, value } => match self.trees.numbered(tree) {
                Some(known) => self.replayer.put(&known.tree, key, logged, value),
                None => Ok(()),
            },
            Operation::PutOverflow { tree, key, reference } => {
                self.replayer.finish()?;
                match self.trees.numbered(tree) {
                    Some(known) => {
                        self.overflow_values.put_again(&known.tree, key, logged, reference, self.cut)
                    }
                    None => Ok(()),
                }
            }
            Operation::Remove { tree, key } => match self.trees.numbered(tree) {
                Some(known) => self.replayer.remove(&known.tree, key, logged),
                None => Ok(()),
            },
            Operation::Merge { tree, key, operands } => match self.trees.numbered(tree) {
                Some(known) if known.tree.index.takes_operands() => {
                    self.replayer.merge(&known.tree, key, logged, operands)
                }
                Some(_) => Err(cannot_be_done(logged, "a merge")),
                None => Ok(()),
            },
            Operation::RemoveRange { tree, lower, upper } => {
                self.replayer.finish()?;
                let Some(known) = self.trees.numbered(tree) else { return Ok(()) };
                let index = known.tree.index.removes_ranges();
                let index = index.ok_or_else(|| cannot_be_done(logged, "a removal of a range"))?;
                index.reapply_range(lower, upper, logged)
            }
            Operation::Load { tree, number } => {
                self.replayer.finish()?;
                self.load(logged, tree, number)
            }
            Operation::CreateTree { tree, name, entry } => {
                self.replayer.finish()?;
                self.create(tree, name, entry)
            }
            Operation::DropTree { tree, name } => {
                self.replayer.finish()?;
                self.trees.remove(&String::from_utf8_lossy(name), tree)
            }
            Operation::RenameTree { tree, name } => {
                self.replayer.finish()?;
                self.trees.rename(tree, &String::from_utf8_lossy(name))
            }
        }
    }

    fn load(&self, logged: LogRecord, tree: TreeId, number: &[u8]) -> Result<(), Error> {
        let Some(known) = self.trees.numbered(tree) else { return Ok(()) };
        let load = number.try_into().map(|number| LoadId(u64::from_le_bytes(number))).ok();
        let (index, load) = known.tree.index.loads().zip(load).ok_or_else(|| Error::Corrupt {
            what: format!("commit {} in the log", logged.timestamp.0),
            offset_bytes: 0,
            expected: "operations that its tree can do".into(),
            got: "a load".into(),
        })?;
        index.commit_again(load, logged)
    }

    /// The root that the log names may belong to another page by now: the tree gets a new one.
    fn create(&self, tree: TreeId, name: &[u8], entry: &[u8]) -> Result<(), Error> {
        let name = String::from_utf8_lossy(name);
        let logged = Entry::decode(&name, entry)?;
        // It may have another name by now.
        let is_there = self.trees.numbered(tree).is_some();
        if is_there || self.trees.named(&name).is_some_and(|known| known.entry.id >= tree) {
            return Ok(());
        }
        let parameters = self.trees.make_again(&logged)?;
        self.trees.add(&name, Entry { parameters, ..logged })
    }

    /// Everything is done.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.replayer.finish()
    }
}
