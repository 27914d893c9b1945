//! Reading: the newest version of a record, or the one that a snapshot sees.

use std::sync::Arc;
use std::task::Poll;

use flashgrain_device::Origin;

use super::Transactions;
use crate::Error;
use crate::index::{Found, May, Tree, Version};
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
        if ended && transactions.indexes.is_due(&transactions.snapshots, transactions.visible.get()) {
            Transactions::settle_soon(transactions);
        }
    }
}

impl Transactions {
    /// The store as it is now: everything that is committed, and nothing that comes later.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a commit failed while it was applied.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot, Error> {
        let timestamp = self.snapshots.take(self.visible.get(), |unkept| {
            self.visible.wait(unkept, &self.poison)?;
            Ok(self.visible.get())
        })?;
        Ok(Snapshot { transactions: Arc::clone(self), timestamp, origin: Origin::here() })
    }

    /// Appends the value of a key to `into`: the newest one, or the one that a snapshot sees. Returns its
    /// version; `None` if the record does not exist. If this may not wait, it begins to load the pages of the
    /// newest value that are not in memory.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`]; without a snapshot [`Error::Poisoned`] if a commit that failed
    /// while it was applied may have changed the record.
    #[inline]
    pub fn look_up(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Option<Timestamp>,
        may: May,
        into: &mut Vec<u8>,
    ) -> Result<Poll<Option<Version>>, Error> {
        let Poll::Ready(Found { version, newest }) = tree.index.read(key, snapshot, may, into)? else {
            return Ok(Poll::Pending);
        };
        if snapshot.is_none() && !planted!(ReadDoesNotWaitForVisible) {
            self.wait_until_visible(newest)?;
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

    /// A read without a snapshot may find a record that a commit has applied and that is not visible yet, or
    /// miss a record that such a commit has removed. It waits until that commit is visible: otherwise the
    /// next record that it reads could be one that the same commit, or an earlier one, has yet to change.
    #[inline]
    fn wait_until_visible(&self, newest: Option<Timestamp>) -> Result<(), Error> {
        if newest.is_none() && planted!(AbsenceNotAwaited) {
            return Ok(());
        }
        // A removed record may leave no tombstone, so its removal time is unknown; all commits so far are
        // awaited.
        let given = self.visible.given();
        // A version beyond the last timestamp given out is damage on the device; waiting for it would never
        // end.
        let needed = newest.map_or(given, |newest| newest.min(given));
        match self.visible.get() < needed {
            true => self.visible.wait(needed, &self.poison),
            false => Ok(()),
        }
    }
}
