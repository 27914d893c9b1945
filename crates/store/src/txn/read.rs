//! Reading: the newest version of a record, or the one that a snapshot sees.

use std::sync::Arc;
use std::task::Poll;

use flashgrain_device::Origin;

use super::version::{VERSION_BYTES, Version};
use super::{Transactions, Tree};
use crate::Error;
use crate::btree::Fate;
use crate::index::{Change, Direction, May, Piece, Steps};
use crate::log::Timestamp;

/// A moment of the store, which stays readable while this lives.
pub(crate) struct Snapshot {
    transactions: Arc<Transactions>,
    timestamp: Timestamp,
    origin: Origin,
}

impl Snapshot {
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // Another thread of the parent may have held the lock when this process was forked.
            return;
        }
        let transactions = &self.transactions;
        let ended = transactions.snapshots.give_back(self.timestamp);
        if ended && transactions.history.is_due(&transactions.snapshots, transactions.visible.get()) {
            Transactions::collect_soon(transactions);
        }
    }
}

impl Transactions {
    /// The store as it is now: everything that is committed, and nothing that comes later.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a commit failed while it was applied.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot, Error> {
        let timestamp = self.snapshots.take(&self.visible, &self.poison)?;
        Ok(Snapshot { transactions: Arc::clone(self), timestamp, origin: Origin::here() })
    }

    /// Appends the value of a key to `into`: the newest one, or the one that a snapshot sees. Its version; `None` if there is no such record. If this may not wait, it begins to load what the newest
    /// value takes that is not in memory.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`]; without a snapshot [`Error::Poisoned`] if a commit that failed while it was applied may have changed the record.
    pub fn look_up(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Option<Version>>, Error> {
        let start = into.len();
        let split = |into: &[u8]| into.get(start..).and_then(Version::split).map(|(version, _)| version);
        let newest = match may.read(&*tree.index, key, into)? {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(is_there) => split(into).filter(|_| is_there),
        };
        preempt!();
        let mut version = newest;
        if let (Some(newest), Some(snapshot)) = (newest, snapshot)
            && newest.timestamp() > snapshot
            && !planted!(SnapshotReadsNewest)
        {
            into.truncate(start);
            let found = self.history.find(tree.id, key, snapshot, into)?;
            version = if found { split(into) } else { None };
        }
        let version = version.filter(|version| !version.is_tombstone());
        if snapshot.is_none() && !planted!(ReadDoesNotWaitForVisible) {
            self.wait_until_visible(newest)?;
        }
        match version {
            Some(_) => drop(into.drain(start..start + VERSION_BYTES)),
            None => into.truncate(start),
        }
        Ok(Poll::Ready(version))
    }

    /// As [`Transactions::look_up`], and waits.
    #[cfg(test)]
    pub fn get(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Option<Timestamp>,
        into: &mut Vec<u8>,
    ) -> Result<Option<Version>, Error> {
        crate::index::waiting(|may| self.look_up(tree, key, snapshot, may, into))
    }

    /// Who reads without a snapshot may find what a commit has applied and that cannot be seen yet, or miss what it has removed. He waits until it can be seen: else the next record that he reads could be
    /// one that the same commit, or an earlier one, is going to change.
    fn wait_until_visible(&self, found: Option<Version>) -> Result<(), Error> {
        if found.is_none() && planted!(AbsenceNotAwaited) {
            return Ok(());
        }
        // A removed record leaves no tombstone, so its removal time is unknown.
        let given = self.visible.given();
        // Nobody is going to make visible what nobody was given: nonsense on the device.
        let needed = found.map_or(given, |version| version.timestamp().min(given));
        match self.visible.get() < needed {
            true => self.visible.wait(needed, &self.poison),
            false => Ok(()),
        }
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
        let steps = Arc::clone(&tree.index).scan(direction, lower, upper, ahead);
        Cursor { tree: tree.clone(), steps, leftovers: Vec::new() }
    }
}

/// A scan that is under way.
pub(crate) struct Cursor {
    tree: Tree,
    steps: Box<dyn Steps>,
    /// Keys of tombstones that an earlier run of the store has left.
    leftovers: Vec<(Vec<u8>, Version)>,
}

impl Cursor {
    /// Puts the next records that the snapshot sees into `piece`, in key order whatever the scan's direction; their values begin with their version. `false` if there are no more;
    /// otherwise there is at least one.
    ///
    /// # Errors
    /// As [`Transactions::look_up`].
    pub fn step(
        &mut self,
        transactions: &Transactions,
        snapshot: Timestamp,
        piece: &mut Piece,
    ) -> Result<bool, Error> {
        while self.steps.step(piece)? {
            piece.decide(|key, value| self.fate(transactions, snapshot, key, value))?;
            self.sweep(transactions);
            if !piece.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What becomes of a record of the tree.
    fn fate(
        &mut self,
        transactions: &Transactions,
        snapshot: Timestamp,
        key: &[u8],
        value: &[u8],
    ) -> Result<Fate, Error> {
        let Some((version, _)) = Version::split(value) else { return Ok(Fate::Goes) };
        if version.timestamp() <= snapshot || planted!(ScanIgnoresSnapshot) {
            if version.is_tombstone() && version.timestamp() <= transactions.opened_at {
                self.leftovers.push((key.to_vec(), version));
            }
            return Ok(if version.is_tombstone() { Fate::Goes } else { Fate::Stays });
        }
        preempt!();
        let mut older = Vec::new();
        let found = transactions.history.find(self.tree.id, key, snapshot, &mut older)?;
        let is_there = found && Version::split(&older).is_some_and(|(version, _)| !version.is_tombstone());
        Ok(if is_there { Fate::Becomes(older) } else { Fate::Goes })
    }

    /// Takes leftover tombstones out of the tree: their history ended with the run of the store that made them.
    fn sweep(&mut self, transactions: &Transactions) {
        for (key, tombstone) in self.leftovers.drain(..) {
            if transactions.poison.check().is_err() {
                return;
            }
            // They are no worse than before if that fails.
            let _tried = self.tree.index.update(&key, &mut |value| match value.and_then(Version::split) {
                Some((version, _)) if version == tombstone => Change::Remove,
                _ => Change::Keep,
            });
        }
    }
}
