//! The deterministic part of a state machine, which an application brings.

use std::ops::{Bound, RangeBounds};

use flashgrain::{Iter, Readable, Transaction, Tree, Value};

use crate::config::GroupConfig;

/// The first byte of an application's keys in the state tree.
pub const OWN_KEYS: u8 = 1;

/// The key in the state tree of the last applied entry's id and the membership.
pub const APPLIED_KEY: [u8; 1] = [0];

/// Answers to requests, and changes of the state. The same requests in the same order must have the same
/// results on all replicas: no clock, no random number, nothing but the state and the request.
pub trait Application<C: GroupConfig>: Send + Sync + 'static {
    /// Does `request` on `state`. It may run again from the same state, so changes go to `state` alone.
    ///
    /// # Errors
    /// Those of the store, which stop the node, and again when it is started: the entry is committed. A
    /// request that is to be refused is answered, not failed. So check lengths of keys
    /// ([`Tree::key_bytes_max`], less one byte) and of changes
    /// ([`RaftStore::entry_bytes_max`](crate::RaftStore::entry_bytes_max)), by limits that are the same on
    /// all replicas.
    fn apply(&self, state: &mut State<'_>, request: &C::D) -> Result<C::R, flashgrain::Error>;

    /// The answer to entries that are no requests: changes of the membership, and blank ones.
    fn answer_to_none(&self) -> C::R;
}

/// The replicated state, within the commit that applies an entry.
pub struct State<'a> {
    transaction: &'a mut Transaction,
    tree: &'a Tree,
}

impl<'a> State<'a> {
    /// The state in `tree`, as `transaction` sees it.
    pub(crate) fn new(transaction: &'a mut Transaction, tree: &'a Tree) -> Self {
        Self { transaction, tree }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, flashgrain::Error> {
        self.transaction.get(self.tree, own_key(key.as_ref()))
    }

    /// Gives `key` this value.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), flashgrain::Error> {
        self.transaction.insert(self.tree, own_key(key.as_ref()), value)
    }

    /// Removes `key`, whether it is there or not.
    ///
    /// # Errors
    /// As [`Transaction::remove`].
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<(), flashgrain::Error> {
        self.transaction.remove(self.tree, own_key(key.as_ref()))
    }

    /// The records in `range`, in key order.
    ///
    /// # Errors
    /// As [`Readable::range`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Records, flashgrain::Error> {
        Ok(Records(self.transaction.range(self.tree, own_range(&range))?))
    }
}

/// Records of a state, in key order.
pub struct Records(Iter);

impl Records {
    pub(crate) fn new(records: Iter) -> Self {
        Self(records)
    }
}

impl Iterator for Records {
    type Item = Result<(Vec<u8>, Value), flashgrain::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.0.next()?;
        Some(record.map(|(key, value)| (key.get(1..).unwrap_or_default().to_vec(), value)))
    }
}

/// An application's key as the state tree has it.
pub fn own_key(key: &[u8]) -> Vec<u8> {
    [&[OWN_KEYS], key].concat()
}

/// An application's range of keys as the state tree has it.
pub fn own_range<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let own = |bound: Bound<&K>, unbounded| match bound {
        Bound::Included(key) => Bound::Included(own_key(key.as_ref())),
        Bound::Excluded(key) => Bound::Excluded(own_key(key.as_ref())),
        Bound::Unbounded => unbounded,
    };
    let start = own(range.start_bound(), Bound::Included(vec![OWN_KEYS]));
    (start, own(range.end_bound(), Bound::Excluded(vec![OWN_KEYS + 1])))
}
