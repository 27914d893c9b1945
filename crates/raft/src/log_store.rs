//! A group's log, vote and marks.
//!
//! `GROUP.log` has an entry under its index, in 8 bytes, most significant first. `GROUP.meta` has the vote,
//! the id of the last committed entry that openraft told us, that of the last purged one, and the note of a
//! [held purge](crate::held_purge).
//!
//! Who may change what: entries at the end, appends and truncations; entries at the beginning, purges.
//! Indexes have no hole, which holds after a crash too: longer truncations go from the end, longer purges and
//! appends from the beginning, a commit of at most [`STEP`] entries at a time.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use flashgrain::{Batch, Durability, Readable, Tree};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogId, LogState, OptionalSend, RaftLogId, RaftLogReader, StorageError, StorageIOError, Vote};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::blocking::blocking;
use crate::config::GroupConfig;
use crate::encoding::{decode, encode};
use crate::error::Error;
use crate::open_groups::OpenGroup;
use crate::shared_store::SharedStore;
use crate::state_machine::applied_of;

/// Entries that are removed in one commit.
const STEP: u64 = 1024;

/// The most bytes of entries that one message to another node gets, if it has more than one.
const MESSAGE_BYTES: usize = 1 << 20;

/// Keys of `GROUP.meta`.
const VOTE: &[u8] = b"vote";
const COMMITTED: &[u8] = b"committed";
const PURGED: &[u8] = b"purged";
const HELD: &[u8] = b"held";

/// The log of a group, made by [`RaftStore::group`](crate::RaftStore::group). Its clones are handles of the
/// same log.
pub struct LogStore<C> {
    trees: Arc<Trees>,
    types: PhantomData<fn() -> C>,
}

struct Trees {
    store: SharedStore,
    log: Tree,
    meta: Tree,
    group: Arc<OpenGroup>,
}

impl<C> LogStore<C> {
    /// The log of `group`, which is made if there is none.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn open(store: SharedStore, group: &Arc<OpenGroup>) -> Result<Self, Error> {
        let log = store.db().tree(&format!("{}.log", group.name()))?;
        let meta = store.db().tree(&format!("{}.meta", group.name()))?;
        let trees = Trees { store, log, meta, group: Arc::clone(group) };
        Ok(Self { trees: Arc::new(trees), types: PhantomData })
    }

    /// The id of the last purged entry.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Undecodable`].
    pub(crate) fn purged(&self) -> Result<Option<LogId<C::NodeId>>, Error>
    where
        C: GroupConfig,
    {
        self.trees.mark(PURGED)
    }

    /// After a crash: makes or forgets the purge that was held then, now that `applied` is the last applied
    /// entry.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Undecodable`].
    pub(crate) fn recover(&self, applied: Option<&LogId<C::NodeId>>) -> Result<(), Error>
    where
        C: GroupConfig,
    {
        let trees = &self.trees;
        let Some(held) = trees.mark::<LogId<C::NodeId>>(HELD)? else { return Ok(()) };
        if let Some(applied) = applied.filter(|applied| applied.index >= held.index) {
            return trees.purge(&encode(applied)?, applied.index);
        }
        // Without the entry that the purge ends with, those after it were appended since, and never told as
        // durable.
        if !trees.has_entry(held.index)? {
            trees.truncate(held.index.saturating_add(1))?;
        }
        match applied {
            Some(applied) if !trees.has_entry(applied.index)? => {
                trees.purge(&encode(applied)?, applied.index)
            }
            _ => trees.forget_held(),
        }
    }

    async fn with_trees<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Trees) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let trees = Arc::clone(&self.trees);
        blocking(move || work(&trees)).await
    }
}

impl<C> Clone for LogStore<C> {
    fn clone(&self) -> Self {
        Self { trees: Arc::clone(&self.trees), types: PhantomData }
    }
}

impl Trees {
    /// A batch whose commit is not waited for: see the crate's order of commits.
    fn batch(&self) -> Batch {
        self.store.db().batch().durability(Durability::None)
    }

    fn mark<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, Error> {
        let bytes = self.store.db().get(&self.meta, key)?;
        bytes.map(|bytes| decode(self.meta.name(), &bytes)).transpose()
    }

    fn set_mark<T: Serialize>(&self, key: &[u8], value: &T) -> Result<(), Error> {
        let mut batch = self.batch();
        batch.insert(&self.meta, key, encode(value)?)?;
        Ok(batch.commit()?)
    }

    fn has_entry(&self, index: u64) -> Result<bool, Error> {
        Ok(self.store.db().get(&self.log, index.to_be_bytes())?.is_some())
    }

    fn forget_held(&self) -> Result<(), Error> {
        let mut batch = self.batch();
        batch.remove(&self.meta, HELD)?;
        Ok(batch.commit()?)
    }

    /// The first entries of `range`: at least one if there is any, and no more than have `bytes_max` in all.
    fn entries<T: DeserializeOwned>(
        &self,
        range: impl RangeBounds<[u8; 8]>,
        bytes_max: usize,
    ) -> Result<Vec<T>, Error> {
        let mut entries = Vec::new();
        let mut left_bytes = bytes_max;
        for record in self.store.db().range(&self.log, range)? {
            let (_, entry) = record?;
            if entry.len() > left_bytes && !entries.is_empty() {
                break;
            }
            left_bytes = left_bytes.saturating_sub(entry.len());
            entries.push(decode(self.log.name(), &entry)?);
        }
        Ok(entries)
    }

    fn last<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let last = self.store.db().last_key_value(&self.log)?;
        last.map(|(_, entry)| decode(self.log.name(), &entry)).transpose()
    }

    /// Indexes of the entries that there are.
    fn indexes(&self) -> Result<Range<u64>, Error> {
        let index = |key: &[u8]| {
            let bytes = key.try_into().map_err(|_| Error::Undecodable {
                tree: self.log.name().to_owned(),
                expected: "an index",
                reason: format!("its key has {} bytes", key.len()),
            })?;
            Ok::<_, Error>(u64::from_be_bytes(bytes))
        };
        let (first, last) =
            (self.store.db().first_key_value(&self.log)?, self.store.db().last_key_value(&self.log)?);
        Ok(match first.zip(last) {
            Some((first, last)) => index(&first.0)?..index(&last.0)?.saturating_add(1),
            None => 0..0,
        })
    }

    /// Appends entries, of which only the first ones are there after a crash or an error.
    fn append(&self, entries: &[([u8; 8], Vec<u8>)]) -> Result<(), Error> {
        let limit = self.store.entry_bytes_max();
        let longest = entries.iter().map(|(_, entry)| entry.len() as u64).max();
        if let Some(got) = longest.filter(|got| *got > limit) {
            return Err(Error::EntryLength { got, limit });
        }
        let mut batch = self.batch();
        for (index, entry) in entries {
            let refused = batch.insert(&self.log, index, entry);
            let is_full = matches!(refused, Err(flashgrain::Error::BatchLength { .. }));
            if is_full && !batch.is_empty() {
                std::mem::replace(&mut batch, self.batch()).commit()?;
                batch.insert(&self.log, index, entry)?;
            } else {
                refused?;
            }
        }
        Ok(batch.commit()?)
    }

    fn truncate(&self, since: u64) -> Result<(), Error> {
        let there = self.indexes()?;
        let mut end = there.end;
        while end > since.max(there.start) {
            let start = end.saturating_sub(STEP).max(since).max(there.start);
            self.remove(self.batch(), start..end)?;
            end = start;
        }
        Ok(())
    }

    /// The id is in the first commit: entries that a crash leaves below it are removed by the next purge.
    fn purge(&self, id: &[u8], through: u64) -> Result<(), Error> {
        let there = self.indexes()?;
        let end = there.end.min(through.saturating_add(1));
        let mut batch = self.batch();
        batch.insert(&self.meta, PURGED, id)?;
        batch.remove(&self.meta, HELD)?;
        let mut start = there.start;
        loop {
            let next = start.saturating_add(STEP).min(end);
            self.remove(batch, start..next)?;
            if next >= end {
                return Ok(());
            }
            (start, batch) = (next, self.batch());
        }
    }

    fn remove(&self, mut batch: Batch, indexes: Range<u64>) -> Result<(), Error> {
        for index in indexes {
            batch.remove(&self.log, index.to_be_bytes())?;
        }
        Ok(batch.commit()?)
    }
}

fn key_bound(bound: Bound<&u64>) -> Bound<[u8; 8]> {
    bound.map(|index| index.to_be_bytes())
}

impl<C: GroupConfig> RaftLogReader<C> for LogStore<C> {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        let bounds = (key_bound(range.start_bound()), key_bound(range.end_bound()));
        let entries = self.with_trees(move |trees| trees.entries(bounds, usize::MAX)).await;
        Ok(entries.map_err(|error| StorageIOError::read_logs(&error))?)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        let range = start.to_be_bytes()..end.to_be_bytes();
        let entries = self.with_trees(move |trees| trees.entries(range, MESSAGE_BYTES)).await;
        Ok(entries.map_err(|error| StorageIOError::read_logs(&error))?)
    }
}

impl<C: GroupConfig> RaftLogStorage<C> for LogStore<C> {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<C>, StorageError<C::NodeId>> {
        let state = self.with_trees(|trees| {
            let held = trees.group.held_purge().id().map(|id| decode(trees.meta.name(), &id));
            let purged: Option<LogId<C::NodeId>> = held.transpose()?.or(trees.mark(PURGED)?);
            let last = trees.last::<C::Entry>()?.map(|entry| entry.get_log_id().clone());
            // A crash amid a purge leaves entries before the purged id.
            let last = last.filter(|last| purged.as_ref().is_none_or(|purged| purged.index < last.index));
            Ok(LogState { last_log_id: last.or_else(|| purged.clone()), last_purged_log_id: purged })
        });
        Ok(state.await.map_err(|error| StorageIOError::read_logs(&error))?)
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let vote = vote.clone();
        let saved = self.with_trees(move |trees| trees.set_mark(VOTE, &vote)).await;
        saved.map_err(|error| StorageIOError::write_vote(&error))?;
        let flushed = self.trees.store.flushed().await;
        Ok(flushed.map_err(|error| StorageIOError::write_vote(&error))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<C::NodeId>>, StorageError<C::NodeId>> {
        let vote = self.with_trees(|trees| trees.mark(VOTE)).await;
        Ok(vote.map_err(|error| StorageIOError::read_vote(&error))?)
    }

    async fn save_committed(
        &mut self,
        committed: Option<LogId<C::NodeId>>,
    ) -> Result<(), StorageError<C::NodeId>> {
        let saved = self.with_trees(move |trees| trees.set_mark(COMMITTED, &committed)).await;
        Ok(saved.map_err(|error| StorageIOError::write(&error))?)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId<C::NodeId>>, StorageError<C::NodeId>> {
        let committed = self.with_trees(|trees| trees.mark::<Option<_>>(COMMITTED)).await;
        Ok(committed.map_err(|error| StorageIOError::read(&error))?.flatten())
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<C>) -> Result<(), StorageError<C::NodeId>>
    where
        I: IntoIterator<Item = C::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let encoded = |entry: C::Entry| Ok((entry.get_log_id().index.to_be_bytes(), encode(&entry)?));
        let entries: Result<Vec<_>, Error> = entries.into_iter().map(encoded).collect();
        let entries = entries.map_err(|error| StorageIOError::write_logs(&error))?;
        let appended = self.with_trees(move |trees| trees.append(&entries)).await;
        appended.map_err(|error| StorageIOError::write_logs(&error))?;
        let Trees { store, group, .. } = &*self.trees;
        group.held_purge().when_durable(store, |flushed| callback.log_io_completed(flushed));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let since = log_id.index;
        let truncated = self.with_trees(move |trees| trees.truncate(since)).await;
        Ok(truncated.map_err(|error| StorageIOError::write_logs(&error))?)
    }

    async fn purge(&mut self, log_id: LogId<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let weak = Arc::downgrade(&self.trees);
        let purged = self.with_trees(move |trees| {
            let (id, through) = (encode(&log_id)?, log_id.index);
            let applied = || Ok(applied_of::<C>(trees.store.db(), trees.group.name())?.map(|id| id.index));
            let later = id.clone();
            // Weak: a held purge must not keep the group open.
            let purge = move || weak.upgrade().map_or(Ok(()), |trees| trees.purge(&later, through));
            let note = || trees.set_mark(HELD, &log_id);
            match trees.group.held_purge().hold((through, &id), applied, note, purge)? {
                true => Ok(()),
                false => trees.purge(&id, through),
            }
        });
        let purged = purged.await;
        Ok(purged.map_err(|error| StorageIOError::write_logs(&error))?)
    }
}
