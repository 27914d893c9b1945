//! Transactions: private write sets, snapshots, first-committer-wins.
//!
//! A transaction sees the store as of its [snapshot](read) and its own writes, which nobody else sees before
//! it [commits](commit). This folder keeps the log's record of a commit, the [locks](locks) of keys, the
//! [table of recent commits](commit_table), the order in which commits become [visible](visible), and
//! [admission](throttle). What becomes of a record, and of its older versions, is the business of the tree's
//! [index](crate::index).

mod commit;
mod commit_table;
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
use crate::index::{Indexes, OldVersions, Snapshots, TreeId};
use crate::io_context::Devices;
use crate::log::{Log, Lsn, Timestamp};
use crate::poison::Poison;
use crate::task::Executor;
#[cfg(test)]
use commit::Read;
use commit_table::CommitTable;
pub(crate) use commit_table::ConflictStats;
use locks::{Locks, Stripe};
pub(crate) use read::Snapshot;
pub(crate) use record::{Operation, Operations};
pub(crate) use replay::Replayer;
use throttle::Throttle;
pub use throttle::ThrottleReason;
pub(crate) use throttle::{Load, Space, ThrottleStats};
use visible::Visible;

/// Told of the reference to an overflow value that nobody sees any more. Who reads without a snapshot may
/// just have seen it, and finds another version when he looks again.
pub(crate) type FreeOverflow = Box<dyn Fn(&[u8]) + Send + Sync>;

/// What all transactions of a store share.
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
    /// Gives the pages of overflow values back.
    overflow: OnceLock<FreeOverflow>,
    /// Whether what no snapshot needs is being given up.
    collecting: AtomicBool,
}

impl Transactions {
    /// After recovery: everything in the log is applied.
    pub fn new(log: Log, poison: Poison, executor: Executor, indexes: Arc<dyn Indexes>) -> Self {
        let visible = Arc::new(Visible::new(log.last()));
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
            throttle: Throttle::default(),
            overflow: OnceLock::new(),
            collecting: AtomicBool::new(false),
        }
    }

    /// From where on the log must be replayed if all that is applied now is on the device, and the last
    /// timestamp before that. For the checkpoint's cut.
    pub fn replay_start(&self) -> (Lsn, Timestamp) {
        let applied = self.visible.replay_start(&self.log);
        match self.indexes.replay_from() {
            Some(first) if !planted!(IndexReplayIgnored) => {
                applied.min((first.start, Timestamp(first.timestamp.0.saturating_sub(1))))
            }
            _ => applied,
        }
    }

    /// A checkpoint is going to cut: indexes put into pages what they want to be in it.
    ///
    /// # Errors
    /// The indexes'.
    pub fn before_cut(&self) -> Result<(), Error> {
        self.indexes.before_cut()
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
            // What could not be given back is no worse than before.
            let _tried = own.collect(false);
        });
    }

    /// Called with [`Stripe::COLLECTING`].
    fn collect(&self, idle: bool) -> Result<(), Error> {
        let give_back = |reference: &[u8]| self.free_overflow(reference);
        self.indexes.settle(&self.snapshots, self.visible.get(), idle, &give_back)
    }

    /// Has `give_back` told of overflow values that are replaced or removed and that no snapshot sees. It may
    /// wait. Only the first one counts.
    pub fn when_overflow_is_gone(&self, give_back: FreeOverflow) {
        let _first_stays = self.overflow.set(give_back);
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

    /// To be called when the store has been idle for a moment: gives up all old versions and tombstones that
    /// no snapshot needs.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn settle(&self) -> Result<(), Error> {
        let _in_turn = self.locks.lock(Stripe::COLLECTING);
        self.collect(true)
    }

    /// From now on commits are admitted at the pace that this load allows; `gauges` gets the bytes that
    /// commits under way may make dirty.
    pub fn watch(&self, devices: Devices, gauges: impl Fn(u64) -> Load + Send + Sync + 'static) {
        let indexes = Arc::clone(&self.indexes);
        let load = move |charged_bytes| Load { index_debt: indexes.debt(), ..gauges(charged_bytes) };
        self.throttle.watch(devices, Box::new(load));
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

    /// Calls `act` while no commit is under way, none can begin, and nobody gives old versions up.
    pub fn still<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.locks.lock_all();
        act()
    }

    /// What old versions take up that are kept beside the trees.
    pub fn old_versions(&self) -> OldVersions {
        self.indexes.old_versions()
    }

    /// How commits were checked for others that were faster.
    pub fn conflict_stats(&self) -> ConflictStats {
        self.table.stats()
    }
}
