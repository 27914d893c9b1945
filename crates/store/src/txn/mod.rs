//! Transactions: private write sets, snapshots, first-committer-wins.
//!
//! The life of a transaction:
//!
//! 1. It takes a [snapshot](read). From then on it sees everything that was committed before, and its own
//!    writes, which no other reader sees.
//! 2. It [commits](commit): admission, validation, locks, log, application. A transaction that conflicts with
//!    an earlier committer ends here.
//! 3. The commit becomes [visible](visible) when it and all commits before it in the log are applied.
//! 4. The snapshot is given back. Versions that no snapshot needs any more are given up in the background.
//!
//! After a crash, [`replay`] applies the log's commits again.
//!
//! Synchronization, by state and the party that alone may change it:
//! - The newest version of a key, and the entry of its group in the [commit table](commit_table): the commit
//!   that holds the [lock](locks) of the key's stripe, between logging and becoming visible.
//! - Versions that no snapshot needs, and their tombstones: the collector, which holds
//!   [`Stripe::COLLECTING`].
//! - The catalog: [`Transactions::define`], which holds all locks.
//! - The order of commits: the log alone, by giving out timestamps.
//!
//! This folder knows no node, tombstone or history: records and their versions are kept by the tree's
//! [index](crate::index).

mod commit;
mod commit_table;
mod compressed;
mod locks;
mod read;
mod record;
mod replay;
#[cfg(test)]
mod tests;
mod throttle;
mod visible;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, OnceLock};

use crate::Error;
use crate::compression::LsmCompression;
use crate::index::{Horizon, Indexes, May, OldVersions, Snapshots, TreeId};
use crate::io_context::Devices;
use crate::log::{Log, Lsn, Timestamp};
use crate::poison::Poison;
use crate::task::Executor;
#[cfg(test)]
use commit::Read;
pub(crate) use commit::dirtied_bytes_of_long;
use commit_table::CommitTable;
pub(crate) use commit_table::ConflictStats;
use compressed::RecordCompressor;
pub(crate) use compressed::unpack;
use locks::{Locks, Stripe};
pub(crate) use read::Snapshot;
pub(crate) use record::{Operation, Operations};
pub(crate) use replay::Replayer;
use throttle::Throttle;
pub use throttle::ThrottleReason;
pub(crate) use throttle::{Load, Space, ThrottleStats};
use visible::Visible;

/// Called with the reference of an overflow value that no snapshot sees any more. A read without a snapshot
/// may just have got that reference, and finds another version when it looks again.
pub(crate) type FreeOverflow = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Appends the overflow value with a reference to a buffer.
pub(crate) type ReadOverflow = Box<dyn Fn(&[u8], &mut Vec<u8>) -> Result<(), Error> + Send + Sync>;

impl Horizon for Transactions {
    fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    fn visible(&self) -> Timestamp {
        self.visible.get()
    }

    fn replayed_behind(&self) -> Timestamp {
        self.replay_start().1
    }

    fn overflow_is_gone(&self, reference: &[u8]) {
        self.free_overflow(reference);
    }

    fn read_overflow(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        self.read_overflow.get().ok_or(Error::Closed)?(reference, into)
    }
}

/// State shared by all transactions of a store.
pub(crate) struct Transactions {
    log: Log,
    poison: Poison,
    executor: Executor,
    locks: Locks,
    visible: Arc<Visible>,
    snapshots: Snapshots,
    table: CommitTable,
    indexes: Arc<dyn Indexes>,
    throttle: Throttle,
    compressor: RecordCompressor,
    /// Gives the pages of overflow values back.
    overflow: OnceLock<FreeOverflow>,
    read_overflow: OnceLock<ReadOverflow>,
    /// Whether a collection of old versions is scheduled.
    collecting: AtomicBool,
}

impl Transactions {
    /// After recovery: everything in the log is applied.
    pub fn new(
        log: Log,
        poison: Poison,
        executor: Executor,
        indexes: Arc<dyn Indexes>,
        log_compression: LsmCompression,
    ) -> Self {
        let visible = Arc::new(Visible::new(log.last()));
        let throttle = Throttle::new(log.is_written());
        let compression = if log.is_written() { log_compression } else { LsmCompression::None };
        let waiting = Arc::downgrade(&visible);
        poison.when_failed(move || {
            if let Some(visible) = waiting.upgrade() {
                visible.wake(true);
            }
        });
        Self {
            log,
            poison,
            executor,
            locks: Locks::new(),
            visible,
            snapshots: Snapshots::default(),
            table: CommitTable::new(),
            indexes,
            throttle,
            compressor: RecordCompressor::new(compression),
            overflow: OnceLock::new(),
            read_overflow: OnceLock::new(),
            collecting: AtomicBool::new(false),
        }
    }

    /// The position where replay of the log must begin if all changes applied by now are on the device, and
    /// the last timestamp before it. For the checkpoint's cut.
    pub fn replay_start(&self) -> (Lsn, Timestamp) {
        let applied = self.visible.replay_start(&self.log);
        match self.indexes.replay_from() {
            Some(first) if !planted!(IndexReplayIgnored) => {
                applied.min((first.start, Timestamp(first.timestamp.0.saturating_sub(1))))
            }
            _ => applied,
        }
    }

    /// Whether indexes have changes that are in no page.
    pub fn has_changes_outside_of_pages(&self) -> bool {
        self.indexes.replay_from().is_some()
    }

    /// Called before a checkpoint's cut: indexes put into pages the changes that they keep elsewhere.
    ///
    /// # Errors
    /// The indexes'.
    pub fn before_cut(&self, may: May) -> Result<(), Error> {
        self.indexes.before_cut(may)
    }

    /// Called while the store is compacted: indexes leave the segments that they own after this byte of the
    /// device, as far as there is room before it.
    ///
    /// # Errors
    /// The indexes'.
    pub fn withdraw(&self, end_bytes: u64) -> Result<(), Error> {
        self.indexes.withdraw(end_bytes)
    }

    /// Bytes of records that are in memory and in no page or table.
    pub fn in_memory_bytes(&self) -> u64 {
        self.indexes.in_memory_bytes()
    }

    /// Called when the store is closed: indexes end their background work.
    ///
    /// # Errors
    /// The indexes'.
    pub fn stop(&self) -> Result<(), Error> {
        self.indexes.stop()
    }

    /// Gives old versions up that no snapshot needs, in the background.
    fn settle_soon(this: &Arc<Self>) {
        if this.collecting.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = Arc::clone(this);
        this.executor.spawn(move || {
            let _in_turn = own.locks.lock(Stripe::COLLECTING);
            own.collecting.store(false, Ordering::Release);
            // An error only leaves old versions in place.
            let _tried = own.collect(false);
        });
    }

    /// Called with [`Stripe::COLLECTING`].
    fn collect(&self, idle: bool) -> Result<(), Error> {
        let give_back = |reference: &[u8]| self.free_overflow(reference);
        self.indexes.settle(&self.snapshots, self.visible.get(), idle, &give_back)
    }

    /// From now on calls `give_back` for each overflow value that was replaced or removed, once no snapshot
    /// sees it. It may wait. Only the first call of this has an effect.
    pub fn when_overflow_is_gone(&self, give_back: FreeOverflow) {
        let _first_stays = self.overflow.set(give_back);
    }

    /// From now on indexes read overflow values by this. Only the first call of this has an effect.
    pub fn read_overflow_by(&self, read: ReadOverflow) {
        let _first_stays = self.read_overflow.set(read);
    }

    fn free_overflow(&self, reference: &[u8]) {
        if let Some(give_back) = self.overflow.get() {
            give_back(reference);
        }
    }

    /// A tree is dropped, by [`Transactions::define`].
    pub fn forget(&self, tree: TreeId) {
        self.indexes.forget(tree);
    }

    /// To be called before the pages of a dropped tree are freed, once no commit can reach it: nothing goes
    /// into it any more. Commits that were under way when it was dropped may have noted tombstones since, and
    /// another task may be taking some out.
    pub fn forget_unused(&self, tree: TreeId) {
        let _in_turn = self.locks.lock(Stripe::COLLECTING);
        self.indexes.forget(tree);
    }

    /// To be called when the store has been idle for a moment: gives up all old versions and tombstones that
    /// no snapshot needs.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn settle(&self) -> Result<(), Error> {
        let _in_turn = self.locks.lock(Stripe::COLLECTING);
        self.collect(true)
    }

    /// The same when the store is closed: readers that are left are refused, and no snapshot needs anything.
    ///
    /// # Errors
    /// As [`Transactions::settle`].
    pub fn settle_for_good(&self) -> Result<(), Error> {
        self.snapshots.end_all();
        self.settle()
    }

    /// From now on commits are admitted at the pace that this load allows; `gauges` gets the bytes that
    /// commits under way may make dirty. While segments are few, every commit looks at it.
    pub fn watch(
        &self,
        devices: Devices,
        segments_are_few: Arc<AtomicBool>,
        gauges: impl Fn(u64) -> Load + Send + Sync + 'static,
    ) {
        let indexes = Arc::clone(&self.indexes);
        let load = move |charged_bytes| Load { index_debt: indexes.debt(), ..gauges(charged_bytes) };
        self.throttle.watch(devices, segments_are_few, Box::new(load));
        let indexes = Arc::clone(&self.indexes);
        let log = self.log.clone();
        self.throttle.before_refusing(Box::new(move || {
            indexes.make_room();
            log.ask_for_checkpoint();
        }));
    }

    /// Whether there is room by now for the overflow values that the segments have been told of.
    pub fn has_room_for_overflow(&self) -> bool {
        self.throttle.has_room_for_overflow()
    }

    /// Waits until there is room for the overflow values that the segments have been told of.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none, and will be none; [`Error::Poisoned`].
    pub fn admit_overflow(&self) -> Result<(), Error> {
        self.throttle.admit_overflow(&self.poison)
    }

    /// Whether commits are being slowed, and why.
    pub fn throttle_stats(&self) -> ThrottleStats {
        self.throttle.stats()
    }

    /// Calls `act` while no commit is under way and none can begin; `None` if there are snapshots, or old
    /// versions for those that were.
    ///
    /// # Errors
    /// Those of `act`, and of giving old versions up.
    pub fn alone<T>(&self, act: impl FnOnce() -> Result<Option<T>, Error>) -> Result<Option<T>, Error> {
        self.still(|| {
            if !self.snapshots.any() {
                self.collect(true)?;
            }
            let is_empty = !self.snapshots.any() && self.old_versions().records == 0;
            if is_empty { act() } else { Ok(None) }
        })
    }

    /// Calls `act` while no commit is under way, none can begin, and no old versions are given up.
    pub fn still<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.locks.lock_all();
        act()
    }

    /// Calls `act` while no commit is under way and none can begin.
    pub fn between_commits<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = (!planted!(CutAmidCommits)).then(|| self.locks.lock_keys());
        act()
    }

    /// Number and memory of the old versions that are kept outside the trees.
    pub fn old_versions(&self) -> OldVersions {
        self.indexes.old_versions()
    }

    /// Statistics of conflict checks.
    pub fn conflict_stats(&self) -> ConflictStats {
        self.table.stats()
    }
}
