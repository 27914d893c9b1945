//! Transactions: private write sets, snapshots, first-committer-wins, old versions kept while a snapshot needs them.
//!
//! A transaction sees the store as of its [snapshot](snapshots) and its own writes, which nobody else sees before it [commits](commit). Every record in a tree begins with the
//! [version](version) that says which commit made it; [older versions](history) are elsewhere.

mod commit;
mod history;
mod locks;
mod read;
mod recent;
mod record;
mod replay;
mod snapshots;
#[cfg(test)]
mod tests;
mod throttle;
mod version;
mod visible;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, OnceLock};

use crate::Error;
use crate::catalog::TreeId;
use crate::index::Index;
use crate::lane::Devices;
use crate::log::{Log, Lsn, Timestamp};
use crate::poison::Poison;
use crate::task::Crew;
#[cfg(test)]
use commit::Read;
pub(crate) use commit::{Write, Written};
use history::History;
pub(crate) use history::{HistoryStats, MakeIndex};
use locks::{Locks, Stripe};
pub(crate) use read::{Cursor, Snapshot};
pub(crate) use record::{Operation, Operations};
pub(crate) use replay::Replayer;
use snapshots::Snapshots;
use throttle::Throttle;
pub use throttle::ThrottleReason;
pub(crate) use throttle::{Load, Space, ThrottleStats};
pub(crate) use version::{VERSION_BYTES, Version};
use visible::Visible;

/// A tree that transactions read and write.
#[derive(Clone)]
pub(crate) struct Tree {
    pub id: TreeId,
    pub index: Arc<dyn Index>,
}

/// Told of the reference to a large value that nobody sees any more. Who reads without a snapshot may just have seen it, and finds another version when he looks again.
pub(crate) type GiveBackLarge = Box<dyn Fn(&[u8]) + Send + Sync>;

/// What all transactions of a store share.
pub(crate) struct Transactions {
    log: Log,
    poison: Poison,
    crew: Crew,
    /// The last commit of earlier runs of the store.
    opened_at: Timestamp,
    locks: Locks,
    visible: Arc<Visible>,
    snapshots: Snapshots,
    history: History,
    throttle: Throttle,
    /// Gives the pages of large values back.
    large: OnceLock<GiveBackLarge>,
    /// Whether what no snapshot needs is being given up.
    collecting: AtomicBool,
}

impl Transactions {
    /// After recovery: everything in the log is applied. Old versions take up to `recent_bytes` of plain memory; `make` makes indexes for more of them, whose keys must hold an eighth and 20 bytes
    /// more than any tree's, their values eight bytes more than any tree's.
    pub fn new(log: Log, poison: Poison, crew: Crew, make: MakeIndex, recent_bytes: u64) -> Self {
        let visible = Arc::new(Visible::new(log.last()));
        let waiting = Arc::downgrade(&visible);
        poison.when_failed(move || {
            if let Some(visible) = waiting.upgrade() {
                visible.wake(true);
            }
        });
        Self {
            opened_at: log.last(),
            log,
            poison,
            crew,
            locks: Locks::new(),
            visible,
            snapshots: Snapshots::default(),
            history: History::new(make, recent_bytes),
            throttle: Throttle::default(),
            large: OnceLock::new(),
            collecting: AtomicBool::new(false),
        }
    }

    /// From where on the log must be replayed if all that is applied now is on the device, and the last timestamp before that. For the checkpoint's cut.
    pub fn replay_start(&self) -> (Lsn, Timestamp) {
        self.visible.replay_start(&self.log)
    }

    /// Gives old versions up that no snapshot needs, in the background.
    fn collect_soon(this: &Arc<Self>) {
        if this.collecting.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = Arc::clone(this);
        this.crew.spawn(move || {
            let _in_turn = own.locks.lock(Stripe::COLLECTING);
            own.collecting.store(false, Ordering::Release);
            // What could not be given back is no worse than before.
            let _tried = own.collect(false);
        });
    }

    /// Called with [`Stripe::COLLECTING`].
    fn collect(&self, idle: bool) -> Result<(), Error> {
        let give_back = |reference: &[u8]| self.give_back_large(reference);
        self.history.collect(&self.snapshots, self.visible.get(), idle, &give_back)
    }

    /// Has `give_back` told of large values that are replaced or removed and that no snapshot sees. It may wait. Only the first one counts.
    pub fn when_large_is_gone(&self, give_back: GiveBackLarge) {
        let _first_stays = self.large.set(give_back);
    }

    fn give_back_large(&self, reference: &[u8]) {
        if let Some(give_back) = self.large.get() {
            give_back(reference);
        }
    }

    /// A tree is dropped, by [`Transactions::define`].
    pub fn forget(&self, tree: TreeId) {
        self.history.forget(tree);
    }

    /// To be called when the store has been idle for a moment: gives up all old versions and tombstones that no snapshot needs.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn settle(&self) -> Result<(), Error> {
        let _in_turn = self.locks.lock(Stripe::COLLECTING);
        self.collect(true)
    }

    /// From now on commits are admitted at the pace that this load allows; `gauges` gets the bytes that commits under way may make dirty.
    pub fn watch(&self, devices: Devices, gauges: impl Fn(u64) -> Load + Send + Sync + 'static) {
        self.throttle.watch(devices, Box::new(gauges));
    }

    /// Waits until there is room for the large values that the segments have been told of.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none, and will be none; [`Error::Poisoned`].
    pub fn admit_large(&self) -> Result<(), Error> {
        self.throttle.admit_large(&self.poison)
    }

    /// Whether commits are being slowed, and why.
    pub fn throttle_stats(&self) -> ThrottleStats {
        self.throttle.stats()
    }

    /// Calls `act` while no commit is under way and none can begin; `None` if there are snapshots, or old versions for those that were.
    ///
    /// # Errors
    /// Those of `act`, and of giving old versions up.
    pub fn alone<T>(&self, act: impl FnOnce() -> Result<Option<T>, Error>) -> Result<Option<T>, Error> {
        self.still(|| {
            if !self.snapshots.any() {
                self.collect(true)?;
            }
            let is_empty = !self.snapshots.any() && self.history.stats().records == 0;
            if is_empty { act() } else { Ok(None) }
        })
    }

    /// Calls `act` while no commit is under way, none can begin, and nobody gives old versions up.
    pub fn still<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.locks.lock_all();
        act()
    }

    /// What old versions take up.
    pub fn history_stats(&self) -> HistoryStats {
        self.history.stats()
    }
}
