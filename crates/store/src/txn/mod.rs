//! Transactions: private write sets, snapshots, first-committer-wins, old versions kept while a snapshot needs them.
//!
//! A transaction sees the store as of its [snapshot](snapshots) and its own writes, which nobody else sees before it [commits](commit). Every record in a tree begins with the
//! [version](version) that says which commit made it; [older versions](history) are elsewhere.

mod commit;
mod locks;
mod record;
mod snapshots;
mod version;
mod visible;

use std::sync::Arc;

use crate::Error;
use crate::catalog::TreeId;
use crate::index::Index;
use crate::log::{Log, Lsn, Timestamp};
use crate::poison::Poison;
pub(crate) use commit::{Read, Write, Written};
use locks::Locks;
pub(crate) use record::{NoOperation, Operation, Operations};
use snapshots::Snapshots;
pub(crate) use version::{VERSION_BYTES, Version};
use visible::Visible;

/// A tree that transactions read and write.
#[derive(Clone)]
pub(crate) struct Tree {
    pub id: TreeId,
    pub index: Arc<dyn Index>,
}

/// What all transactions of a store share.
pub(crate) struct Transactions {
    log: Log,
    poison: Poison,
    locks: Locks,
    visible: Visible,
    snapshots: Snapshots,
}

impl Transactions {
    /// After recovery: everything in the log is applied.
    pub fn new(log: Log, poison: Poison) -> Self {
        let visible = Visible::new(log.last());
        Self { log, poison, locks: Locks::new(), visible, snapshots: Snapshots::default() }
    }

    /// Appends the newest value of a key to `into`; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn get(&self, tree: &Tree, key: &[u8], into: &mut Vec<u8>) -> Result<Option<Version>, Error> {
        let start = into.len();
        if !tree.index.get(key, into)? {
            return Ok(None);
        }
        let version = into.get(start..).and_then(Version::split).map(|(version, _)| version);
        into.drain(start..(start + VERSION_BYTES).min(into.len()));
        let version = version.filter(|version| !version.is_tombstone());
        if version.is_none() {
            into.truncate(start);
        }
        Ok(version)
    }

    /// From where on the log must be replayed if all that is applied now is on the device, and the last timestamp before that. For the checkpoint's cut.
    pub fn replay_start(&self) -> (Lsn, Timestamp) {
        self.visible.replay_start(&self.log)
    }

    fn keep(&self, _until: Timestamp, _written: &Written<'_>) -> Result<(), Error> {
        Ok(())
    }
}
