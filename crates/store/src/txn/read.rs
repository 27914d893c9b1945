//! Reading: the newest version of a record, or the one that a snapshot sees.

use std::sync::Arc;

use super::history::History;
use super::version::{VERSION_BYTES, Version};
use super::{Transactions, Tree};
use crate::Error;
use crate::btree::Fate;
use crate::catalog::TreeId;
use crate::index::{Direction, Piece, Steps};
use crate::log::Timestamp;

/// A moment of the store, which stays readable while this lives.
pub(crate) struct Snapshot {
    transactions: Arc<Transactions>,
    timestamp: Timestamp,
}

impl Snapshot {
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let transactions = &self.transactions;
        let ended = transactions.snapshots.give_back(self.timestamp);
        if ended && transactions.history.is_due(&transactions.snapshots, transactions.visible.get()) {
            Transactions::collect_soon(transactions);
        }
    }
}

impl Transactions {
    /// The store as it is now: everything that is committed, and nothing that comes later.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        let timestamp = self.snapshots.take(&self.visible, &self.poison);
        Snapshot { transactions: Arc::clone(self), timestamp }
    }

    /// Appends the value of a key to `into`: the newest one, or the one that a snapshot sees. Its version; `None` if there is no such record.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn get(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Option<Timestamp>,
        into: &mut Vec<u8>,
    ) -> Result<Option<Version>, Error> {
        let start = into.len();
        if !tree.index.get(key, into)? {
            return Ok(None);
        }
        let split = |into: &[u8]| into.get(start..).and_then(Version::split).map(|(version, _)| version);
        let mut version = split(into);
        if let (Some(newest), Some(snapshot)) = (version, snapshot)
            && newest.timestamp() > snapshot
        {
            into.truncate(start);
            let found = self.history.find(tree.id, key, snapshot, into)?;
            version = if found { split(into) } else { None };
        }
        let version = version.filter(|version| !version.is_tombstone());
        match version {
            Some(_) => drop(into.drain(start..start + VERSION_BYTES)),
            None => into.truncate(start),
        }
        Ok(version)
    }

    /// Begins to go through the records that a snapshot sees, with keys from `lower` up to but without `upper`.
    pub fn scan(
        &self,
        tree: &Tree,
        direction: Direction,
        lower: &[u8],
        upper: Option<&[u8]>,
        ahead: u32,
    ) -> Cursor {
        Cursor { tree: tree.id, steps: Arc::clone(&tree.index).scan(direction, lower, upper, ahead) }
    }
}

/// A scan that is under way.
pub(crate) struct Cursor {
    tree: TreeId,
    steps: Box<dyn Steps>,
}

impl Cursor {
    /// Puts the next records that the snapshot sees into `piece`, in key order whatever the scan's direction; their values begin with their version. `false` if there are no more;
    /// otherwise there is at least one.
    ///
    /// # Errors
    /// As [`Transactions::get`].
    pub fn step(
        &mut self,
        transactions: &Transactions,
        snapshot: Timestamp,
        piece: &mut Piece,
    ) -> Result<bool, Error> {
        while self.steps.step(piece)? {
            let (history, tree) = (&transactions.history, self.tree);
            piece.decide(|key, value| fate(history, tree, snapshot, key, value))?;
            if !piece.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What becomes of a record of a tree that a snapshot reads.
fn fate(
    history: &History,
    tree: TreeId,
    snapshot: Timestamp,
    key: &[u8],
    value: &[u8],
) -> Result<Fate, Error> {
    let Some((version, _)) = Version::split(value) else { return Ok(Fate::Goes) };
    if version.timestamp() <= snapshot {
        return Ok(if version.is_tombstone() { Fate::Goes } else { Fate::Stays });
    }
    let mut older = Vec::new();
    let found = history.find(tree, key, snapshot, &mut older)?;
    let is_there = found && Version::split(&older).is_some_and(|(version, _)| !version.is_tombstone());
    Ok(if is_there { Fate::Becomes(older) } else { Fate::Goes })
}
