//! The boundary between transactions and the structures that keep the records of trees.
//!
//! An index maps a key to its *versions*. A commit makes one version of each key that it writes; a
//! [`Version`] has the number of that commit. A reader sees the newest version whose commit is not newer than
//! its snapshot. Each index decides how many versions it keeps, and where: it must keep those that a
//! [snapshot](Snapshots) may still see, and may drop all others.
//!
//! The life of a change. Transactions call each step:
//!
//! 1. [`Index::prepare`] brings the pages for the change into memory, and may be called before the key is
//!    locked. An index that changes records in place reads the record here; one that only adds versions does
//!    nothing.
//! 2. [`Index::newest_since`] is called if transactions cannot tell by themselves whether the key has been
//!    committed since the writer's snapshot.
//! 3. The commit is logged. From here on only a device may keep it from being done.
//! 4. [`Index::apply`] makes the new version. If two commits write a key, the older one is applied first.
//! 5. After a crash, [`Index::reapply`] makes it again, from [`Index::replay_from`] on.
//!
//! All types of the boundary are in this folder, so that none comes from an implementation.
//!
//! Only the commit that holds a key's lock changes the key's versions, with [`Index::apply`]; during
//! recovery, only the replay. Only [`Snapshots`] changes the list of snapshots, when they are taken and
//! ended.

mod be_tree_stats;
mod census;
mod changes;
mod eager;
mod hint;
mod horizon;
mod kind;
mod load;
mod lsm_stats;
pub(crate) mod operands;
mod operations;
mod operator;
mod overlap;
mod own_operators;
mod piece;
mod prior;
mod snapshots;
mod unmerged;
mod version;

use std::sync::Arc;
use std::task::Poll;

use flashgrain_device::Nanos;
use flashgrain_settings::layout::Decision;

use crate::Error;
use crate::header::PageId;
use crate::log::{LogRecord, Timestamp};
pub use be_tree_stats::{BeTreeLevelStats, BeTreeStats};
pub(crate) use census::Census;
pub(crate) use changes::{Tree, TreeId, Write, Written};
pub(crate) use eager::{is_eager, is_full_early, staged_from};
pub(crate) use hint::{KeySlot, LeafHint};
#[cfg(test)]
pub(crate) use horizon::FixedHorizon;
pub(crate) use horizon::{Horizon, ReplayHorizon};
pub use kind::IndexKind;
pub(crate) use kind::Parameters;
pub(crate) use load::{Load, LoadId, Loads};
pub use lsm_stats::{LsmLevelStats, LsmStats};
pub(crate) use operations::OperationCounts;
pub use operations::TreeOperations;
pub use operator::{MergeOperator, OperatorError};
pub(crate) use operator::{OPERATOR_NAME_BYTES_MAX, Operators, TreeOperator};
pub(crate) use overlap::{May, each_brought, waiting};
pub(crate) use own_operators::own_operators;
pub use own_operators::{AddOperator, AppendOperator};
pub(crate) use piece::{Direction, Fate, Piece, behind, separator};
pub(crate) use prior::Prior;
pub(crate) use snapshots::{ActiveSnapshots, Snapshots};
pub(crate) use unmerged::{Base, Unmerged};
pub(crate) use version::{VERSION_BYTES, Version};

/// Result of a read: the version under a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The version that the reader sees. Its value, or the reference of an overflow value, was appended to
    /// the caller's buffer.
    pub version: Option<Version>,
    /// The commit of the newest version that the index still knows of, be it a removal.
    pub newest: Option<Timestamp>,
}

/// Answer of [`Index::newest_since`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newest {
    /// No commit has changed it since.
    Older,
    /// A commit has.
    Newer,
    /// The answer would take more reads than it is worth.
    CannotTell,
}

impl Newest {
    /// The answer for a key whose last known commit is `newest`, and a snapshot of `since`.
    pub fn of(newest: Option<Timestamp>, since: Timestamp) -> Self {
        if newest.is_some_and(|newest| newest > since) { Self::Newer } else { Self::Older }
    }
}

/// Result of [`Index::reapply`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reapplied {
    /// The index had a later version, so that no reader will ever see this one.
    pub is_outdated: bool,
    /// The reference of an overflow value that no reader will see any more.
    pub replaced: Option<Vec<u8>>,
}

/// Called with a version of a record: its key, the version, its value.
pub(crate) type SeeVersion<'a> = &'a mut dyn FnMut(&[u8], Version, &[u8]);

/// A commit that is being applied.
pub(crate) struct Commit<'a> {
    /// Its record in the log.
    pub record: LogRecord,
    /// The snapshots whose versions must stay.
    pub snapshots: &'a Snapshots,
    /// Called by an index that has found no free frames, to wait until pages of others have been written.
    /// Enough were free when the commit was admitted, so enough will be free again.
    pub wait_for_room: &'a dyn Fn() -> Result<(), Error>,
    /// Called with the reference of an overflow value that no reader sees any more.
    pub overflow_is_gone: &'a dyn Fn(&[u8]),
}

/// The sizes of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub key_bytes: usize,
    /// Longer values are overflow values.
    pub value_bytes: usize,
    /// Bytes that a scan loads at a time.
    pub node_bytes: usize,
}

/// The records of a tree, in key order. See the module for the order of calls.
pub(crate) trait Index: Send + Sync {
    /// Appends the value that a reader as of `at` sees to `into`, or without `at` the newest one. If it may
    /// not wait, it begins to load the missing pages, and leaves `into` as it was.
    ///
    /// # Errors
    /// The pool's: [`Error::Io`], [`Error::Corrupt`].
    fn read(
        &self,
        key: &[u8],
        at: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Found>, Error>;

    /// Whether the key has been committed after `since`, which is the timestamp of a snapshot in use.
    ///
    /// # Errors
    /// As [`Index::read`].
    fn newest_since(&self, key: &[u8], since: Timestamp, may: May) -> Result<Poll<Newest>, Error>;

    /// Hints that these keys are about to be read or prepared one after another. An index may find all of
    /// them together, which is faster.
    fn find_together(&self, _keys: &mut dyn Iterator<Item = &[u8]>) {}

    /// Brings the pages for a change of the key into memory, and notes the key's state in `prior`, which an
    /// earlier call may have filled. With `values`, the record that it reads is appended there, so that
    /// [`Index::apply`] need not read it again. The key may be in the leaf where a `neighbour` was found.
    ///
    /// # Errors
    /// As [`Index::read`].
    fn prepare(
        &self,
        _key: &[u8],
        _may: May,
        _neighbour: Option<LeafHint>,
        _prior: &mut Prior,
        _values: Option<&mut Vec<u8>>,
    ) -> Result<Poll<()>, Error> {
        Ok(Poll::Ready(()))
    }

    /// Refuses writes if background work that they need has failed, and starts it again.
    ///
    /// # Errors
    /// [`Error::TreeFailed`].
    fn admit(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the versions of a logged commit; `writes` are all of this tree, `priors` those that
    /// [`Index::prepare`] has filled with the keys' locks held, `values` the buffer that it has appended to.
    ///
    /// # Errors
    /// As [`Index::read`]; some of the versions may have been made by then.
    fn apply(
        &self,
        writes: &[Written<'_>],
        priors: &[Prior],
        values: &[u8],
        commit: &Commit<'_>,
    ) -> Result<(), Error>;

    /// Prepares the versions of a commit with many writes, all to different keys of this tree, before its
    /// keys are locked and it is logged. No reader sees them. `None`: they are [applied](Index::apply) when
    /// it is logged.
    fn stage<'a>(&'a self, _writes: &[Written<'_>]) -> Option<Box<dyn Staged + 'a>> {
        None
    }

    /// Whether it keeps [operands](operands) as versions of their own. For one that does not, transactions
    /// make a value of them first.
    fn takes_operands(&self) -> bool {
        false
    }

    /// How it removes ranges of keys, if it can without looking at them.
    fn removes_ranges(&self) -> Option<&dyn RemovesRanges> {
        None
    }

    /// How it takes loads, if it writes them in another way than commits.
    fn loads(&self) -> Option<&dyn Loads> {
        None
    }

    /// Makes a version that the log has, unless the index has it or a later one. No snapshot is in use.
    ///
    /// # Errors
    /// As [`Index::read`], and [`Error::Full`].
    fn reapply(&self, key: &[u8], write: Write<'_>, record: LogRecord) -> Result<Reapplied, Error>;

    /// Begins to go through the records that a snapshot of `at` sees, with keys from `lower` up to but
    /// without `upper`. It loads at most `ahead` nodes before they are asked for.
    fn scan(
        self: Arc<Self>,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
        at: Timestamp,
    ) -> Box<dyn Steps>;

    /// As a scan forward over all keys that does not merge operands: a version of operands has an
    /// [`Unmerged`] record.
    fn scan_unmerged(self: Arc<Self>, ahead: u32, at: Timestamp) -> Box<dyn Steps> {
        self.scan(Direction::Forward, &[], None, ahead, at)
    }

    /// Its sizes.
    fn limits(&self) -> Limits;

    /// About how many bytes of pages a change of one record makes dirty, at most.
    fn dirtied_bytes(&self) -> u64;

    /// The first commit that is in no page of the next checkpoint and has to be replayed; `None` if all are.
    /// It is called in a checkpoint's cut, and must not wait.
    fn replay_from(&self) -> Option<LogRecord> {
        None
    }

    /// Called before a checkpoint's cut. An index that keeps changes outside of pages writes them into pages
    /// here, so that the checkpoint contains them. If it may not wait, it leaves this to tasks that do so
    /// already; it may wait when the store is closed, and then all changes have to be in pages.
    ///
    /// # Errors
    /// As [`Index::read`], and [`Error::Full`]; the checkpoint is made nevertheless.
    fn before_cut(&self, _may: May) -> Result<(), Error> {
        Ok(())
    }

    /// Called when a commit is about to be refused as the device is full: begins background work that may
    /// make room, and reports it by [`OwnedSegments::at_work`](crate::segment::OwnedSegments::at_work).
    fn make_room(&self) {}

    /// Called while the store is compacted: an index that owns segments after this byte of the device moves
    /// to free ones before it, as far as there are any. Parks.
    ///
    /// # Errors
    /// As [`Index::read`].
    fn withdraw(&self, _end_bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Called when the store is closed, before it waits for overflow values that are being freed. An index
    /// that works in the background puts its changes into pages, ends that work, and gives back the space
    /// that it has given up: afterwards only [`Index::before_cut`] changes pages.
    ///
    /// # Errors
    /// As [`Index::before_cut`].
    fn stop(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Bytes of records that are in memory and in no page or table.
    fn in_memory_bytes(&self) -> u64 {
        0
    }

    /// Deferred work as a fraction of its upper bound: above 0 writers are slowed down, at 1 as much as
    /// possible.
    fn debt(&self) -> f64 {
        0.0
    }

    /// Time that a writer of `bytes` of keys and values waits before its write, so that deferred work does
    /// not grow too fast.
    fn pace(&self, _bytes: u64, _now: &dyn Fn() -> Nanos) -> Nanos {
        Nanos(0)
    }

    /// Gives up versions that no snapshot needs, and tells `overflow_is_gone` of the overflow values among
    /// them. All commits up to `visible` can be seen, and the store is idle.
    ///
    /// # Errors
    /// As [`Index::read`]; versions that were not given up are as before.
    fn settle(
        &self,
        _snapshots: &Snapshots,
        _visible: Timestamp,
        _overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        Ok(())
    }

    /// The settings that are its own, and why they are so.
    fn decisions(&self) -> Vec<Decision> {
        Vec::new()
    }

    /// Its operations since it was made, or since the store was opened if it does not keep the counts.
    fn operations(&self) -> TreeOperations {
        TreeOperations::default()
    }

    /// Its state, if it is an LSM-tree.
    fn lsm_stats(&self) -> Option<LsmStats> {
        None
    }

    /// Its state, if it is a Bε-tree.
    fn be_tree_stats(&self) -> Option<BeTreeStats> {
        None
    }

    /// Walks all of it: calls `page` with the number of each page, and `record` with every version of a
    /// record.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first invalid part; as [`Index::read`].
    fn walk(&self, page: &mut dyn FnMut(PageId), record: SeeVersion<'_>) -> Result<Census, Error>;

    /// Removes all records and frees all pages but those that identify the index, a few at a time, while
    /// other tasks run. An interrupted call can be repeated. The caller is the index's only user.
    ///
    /// # Errors
    /// As [`Index::read`]; those of `clearing`.
    fn clear(&self, clearing: &Clearing<'_>) -> Result<(), Error>;

    /// Frees the pages that [`Index::clear`] leaves. It must be called only once, as the numbers of these
    /// pages may be given to other pages afterwards.
    ///
    /// # Errors
    /// As [`Index::read`].
    fn destroy(&self) -> Result<(), Error>;
}

/// The outside of [`Index::clear`].
pub(crate) struct Clearing<'a> {
    /// Frees the pages of an overflow value.
    pub free_overflow: &'a dyn Fn(&[u8]) -> Result<(), Error>,
    /// Fails once the store is being closed. An index calls it when all that it has given up is free, and
    /// stops if it fails: otherwise the last checkpoint would fall in between, and nothing would refer to the
    /// rest.
    pub go_on: &'a dyn Fn() -> Result<(), Error>,
}

impl Clearing<'_> {
    /// Frees the pages of overflow values that nothing refers to any more, also of those after one that
    /// cannot be freed.
    ///
    /// # Errors
    /// The first one of [`Clearing::free_overflow`].
    pub fn free_all<R: AsRef<[u8]>>(&self, references: impl IntoIterator<Item = R>) -> Result<(), Error> {
        let mut freed = Ok(());
        for reference in references {
            freed = freed.and((self.free_overflow)(reference.as_ref()));
        }
        freed
    }
}

/// Versions that are prepared and have no commit yet. If this is dropped, they are discarded.
pub(crate) trait Staged {
    /// Assigns the versions to a logged commit that holds their keys' locks.
    fn apply(self: Box<Self>, record: LogRecord);
}

/// An index that removes all keys of a range without looking at them.
pub(crate) trait RemovesRanges {
    /// Removes the keys from `lower` on up to, and without, `upper`, by a commit that is logged, while no
    /// other commit is applied.
    fn remove_range(&self, lower: &[u8], upper: &[u8], record: LogRecord);

    /// Replays a removal, unless the index has it.
    ///
    /// # Errors
    /// As [`Index::reapply`].
    fn reapply_range(&self, lower: &[u8], upper: &[u8], record: LogRecord) -> Result<(), Error>;
}

/// A scan that is under way. It holds nothing between its steps but keys.
pub(crate) trait Steps: Send {
    /// Puts the next records into `piece`, in key order whatever the scan's direction; their values begin
    /// with their version. At least one; `false` at the end.
    ///
    /// # Errors
    /// As [`Index::read`].
    fn step(&mut self, piece: &mut Piece) -> Result<bool, Error>;
}

/// Memory and work taken up by versions that are kept outside of the trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OldVersions {
    /// Groups of versions that are given up together.
    pub generations: usize,
    /// Versions, and removals that will have to be taken out of trees.
    pub records: u64,
}

/// Operations on all indexes of a store together.
pub(crate) trait Indexes: Send + Sync {
    /// Whether it is worth while to call [`Indexes::settle`], now that a snapshot has ended. All commits up
    /// to `visible` can be seen.
    fn is_due(&self, snapshots: &Snapshots, visible: Timestamp) -> bool;

    /// Gives up versions that no snapshot needs: all of them if the store is `idle`, else only if they are
    /// many. It calls `overflow_is_gone` for the overflow values among them. One caller at a time.
    ///
    /// # Errors
    /// As [`Index::read`]; versions that were not given up are as before.
    fn settle(
        &self,
        snapshots: &Snapshots,
        visible: Timestamp,
        idle: bool,
        overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error>;

    /// Called when a tree is dropped, before its page numbers are reused.
    fn forget(&self, tree: TreeId);

    /// Versions that are kept outside of the trees.
    fn old_versions(&self) -> OldVersions;

    /// The first [`Index::replay_from`] of all.
    fn replay_from(&self) -> Option<LogRecord>;

    /// [`Index::before_cut`] of all.
    ///
    /// # Errors
    /// The first one's.
    fn before_cut(&self, may: May) -> Result<(), Error>;

    /// [`Index::make_room`] of all.
    fn make_room(&self);

    /// [`Index::withdraw`] of all.
    ///
    /// # Errors
    /// The first one's.
    fn withdraw(&self, end_bytes: u64) -> Result<(), Error>;

    /// [`Index::stop`] of all.
    ///
    /// # Errors
    /// The first one's.
    fn stop(&self) -> Result<(), Error>;

    /// The sum of all [`Index::in_memory_bytes`].
    fn in_memory_bytes(&self) -> u64;

    /// The largest [`Index::debt`].
    fn debt(&self) -> f64;
}
