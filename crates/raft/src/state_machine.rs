//! A group's replicated state.
//!
//! `GROUP.state` has the application's records under a byte [`OWN_KEYS`](crate::application::OWN_KEYS) and
//! their keys, and under [`APPLIED_KEY`] the id of the last entry that they have, and the membership. So one
//! commit changes both, one scan copies both, and one exchange of trees replaces both.
//!
//! Life of an installation: the snapshot is received whole and made durable → its records are loaded into
//! `GROUP.installing` → the checksum is verified → the file becomes `GROUP.snapshot`: from here on the
//! group has the new state → the tree takes the place of `GROUP.state`, in one commit → the
//! [held purge](crate::held_purge) of the log is made. A crash before the fourth step leaves the old state;
//! after it [`StateMachine::open`] finds a snapshot that is ahead of the state, and installs it.

use std::io::Seek;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, RwLock};

use flashgrain::{Db, Durability, Iter, Readable, Tree, Value};
use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{
    EntryPayload, LogId, OptionalSend, RaftSnapshotBuilder, SnapshotMeta, StorageError, StorageIOError,
    StoredMembership,
};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::application::{APPLIED_KEY, Application, Records, State, own_key, own_range};
use crate::blocking::blocking;
use crate::config::GroupConfig;
use crate::encoding::{decode, encode};
use crate::error::Error;
use crate::open_groups::OpenGroup;
use crate::shared_store::SharedStore;
use crate::snapshot_files::SnapshotFiles;
use crate::snapshot_format::{self, SnapshotReader};

/// Entries that are applied in one commit, at most.
const ENTRIES_IN_COMMIT: usize = 256;

/// The last applied entry, and the membership that is in force there.
type Applied<C> = (
    Option<LogId<<C as openraft::RaftTypeConfig>::NodeId>>,
    StoredMembership<<C as openraft::RaftTypeConfig>::NodeId, <C as openraft::RaftTypeConfig>::Node>,
);

type Meta<C> = SnapshotMeta<<C as openraft::RaftTypeConfig>::NodeId, <C as openraft::RaftTypeConfig>::Node>;

/// The state of a group, made by [`RaftStore::group`](crate::RaftStore::group).
pub struct StateMachine<C, A> {
    replica: Arc<Replica>,
    application: Arc<A>,
    types: PhantomData<fn() -> C>,
}

struct Replica {
    store: SharedStore,
    /// Another one after each installation.
    state: RwLock<Tree>,
    files: SnapshotFiles,
    /// Whether all of the current snapshot was seen to be whole by this process.
    is_verified: AtomicBool,
    group: Arc<OpenGroup>,
}

/// Reads a group's state, as far as this node has applied the log. Clones are cheap.
///
/// Reads are linearizable only after `Raft::ensure_linearizable`, on the leader. They may wait for the
/// device: call them on a blocking thread where the state is larger than the store's cache.
#[derive(Clone)]
pub struct StateReader {
    replica: Arc<Replica>,
}

impl StateReader {
    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Readable::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, flashgrain::Error> {
        let state = self.replica.state.read().unwrap_or_else(PoisonError::into_inner);
        self.replica.store.db().get(&state, own_key(key.as_ref()))
    }

    /// The records in `range`, in key order, as they are now.
    ///
    /// # Errors
    /// As [`Readable::range`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Records, flashgrain::Error> {
        let state = self.replica.state.read().unwrap_or_else(PoisonError::into_inner);
        Ok(Records::new(self.replica.store.db().range(&state, own_range(&range))?))
    }
}

impl<C: GroupConfig, A: Application<C>> StateMachine<C, A> {
    /// The state of `group`, which is made if there is none, with `files` for its snapshots. The log was
    /// purged through `purged`.
    ///
    /// # Errors
    /// As [`RaftStore::group`](crate::RaftStore::group).
    pub(crate) fn open(
        store: SharedStore,
        group: Arc<OpenGroup>,
        files: SnapshotFiles,
        application: A,
        purged: Option<&LogId<C::NodeId>>,
    ) -> Result<Self, Error> {
        let state = RwLock::new(store.db().tree(&state_name(group.name()))?);
        let is_verified = AtomicBool::new(false);
        let replica = Arc::new(Replica { store, state, files, is_verified, group });
        replica.drop_installing()?;
        replica.finish_installing::<C>(purged)?;
        Ok(Self { replica, application: Arc::new(application), types: PhantomData })
    }

    /// A reader of the state.
    pub fn reader(&self) -> StateReader {
        StateReader { replica: Arc::clone(&self.replica) }
    }

    /// The id of the last applied entry.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Undecodable`].
    pub(crate) fn applied(&self) -> Result<Option<LogId<C::NodeId>>, Error> {
        Ok(self.replica.applied::<C>()?.0)
    }

    async fn with_replica<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Replica) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let replica = Arc::clone(&self.replica);
        blocking(move || work(&replica)).await
    }
}

fn state_name(group: &str) -> String {
    format!("{group}.state")
}

impl Replica {
    fn state(&self) -> Tree {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn installing_name(&self) -> String {
        format!("{}.installing", self.group.name())
    }

    fn applied<C: GroupConfig>(&self) -> Result<Applied<C>, Error> {
        applied_in::<C>(self.store.db(), &self.state())
    }

    /// Applies entries in as few commits as they fit into.
    fn apply<C: GroupConfig>(
        &self,
        application: &impl Application<C>,
        entries: &[C::Entry],
        answers: &mut Vec<C::R>,
    ) -> Result<(), Error> {
        for chunk in entries.chunks(ENTRIES_IN_COMMIT) {
            match self.apply_as_one(application, chunk) {
                Err(Error::Store(flashgrain::Error::BatchLength { .. })) if chunk.len() > 1 => {
                    let (first, second) = chunk.split_at(chunk.len() / 2);
                    self.apply(application, first, answers)?;
                    self.apply(application, second, answers)?;
                }
                done => answers.extend(done?),
            }
        }
        Ok(())
    }

    fn apply_as_one<C: GroupConfig>(
        &self,
        application: &impl Application<C>,
        entries: &[C::Entry],
    ) -> Result<Vec<C::R>, Error> {
        let tree = self.state();
        self.store.db().try_transaction(|transaction| {
            transaction.set_durability(Durability::None);
            let (mut last, mut membership) = applied_in::<C>(transaction, &tree)?;
            let mut answers = Vec::with_capacity(entries.len());
            for entry in entries {
                last = Some(entry.log_id.clone());
                answers.push(match &entry.payload {
                    EntryPayload::Blank => application.answer_to_none(),
                    EntryPayload::Normal(request) => {
                        application.apply(&mut State::new(transaction, &tree), request)?
                    }
                    EntryPayload::Membership(new) => {
                        membership = StoredMembership::new(last.clone(), new.clone());
                        application.answer_to_none()
                    }
                });
            }
            transaction.insert(&tree, APPLIED_KEY, encode(&(last, membership))?)?;
            Ok(answers)
        })
    }

    fn build<C: GroupConfig>(&self, records: Iter, applied: Applied<C>) -> Result<Snapshot<C>, Error> {
        let (last_log_id, last_membership) = applied;
        // The same for all replicas, as the state is: a transfer that another node goes on with finds the
        // bytes that it expects.
        let snapshot_id = last_log_id.as_ref().map_or_else(|| "empty".to_owned(), LogId::to_string);
        let meta: Meta<C> = SnapshotMeta { last_log_id, last_membership, snapshot_id };
        let (path, file) = self.files.build()?;
        let mut file = snapshot_format::write(&path, file, &meta, records)?;
        file.rewind().map_err(|source| Error::File { action: "read", path: path.clone(), source })?;
        let publishing = self.files.publishing();
        let is_newest =
            self.current::<C>()?.is_none_or(|(current, _)| current.last_log_id <= meta.last_log_id);
        if is_newest {
            self.publish(&publishing, &path)?;
        }
        Ok(Snapshot { meta, snapshot: Box::new(File::from_std(file)) })
    }

    fn current<C: GroupConfig>(&self) -> Result<Option<(Meta<C>, std::fs::File)>, Error> {
        let Some(file) = self.files.current()? else { return Ok(None) };
        let path = self.files.current_path();
        let failed = |source| Error::File { action: "read", path: path.clone(), source };
        let mut whole = file.try_clone().map_err(failed)?;
        let (_, meta) = SnapshotReader::open(&path, file)?;
        // Clones share their place.
        whole.rewind().map_err(failed)?;
        Ok(Some((meta, whole)))
    }

    /// The current snapshot, all of it verified once in a process. A damaged one is removed: the state has
    /// all that it had, so that another one can be built.
    fn whole<C: GroupConfig>(&self) -> Result<Option<Snapshot<C>>, Error> {
        let publishing = self.files.publishing();
        let found = self.current::<C>().and_then(|found| {
            if found.is_some() && !self.is_verified.load(Ordering::Relaxed) {
                let path = self.files.current_path();
                let file = std::fs::File::open(&path);
                let file =
                    file.map_err(|source| Error::File { action: "open", path: path.clone(), source })?;
                SnapshotReader::open::<Meta<C>>(&path, file)?.0.verify()?;
                self.is_verified.store(true, Ordering::Relaxed);
            }
            Ok(found)
        });
        match found {
            Err(Error::DamagedSnapshot { .. } | Error::Undecodable { .. }) => {
                self.files.discard(&self.files.current_path())?;
                drop(publishing);
                Ok(None)
            }
            found => {
                Ok(found?.map(|(meta, file)| Snapshot { meta, snapshot: Box::new(File::from_std(file)) }))
            }
        }
    }

    fn install<C: GroupConfig>(&self, meta: &Meta<C>, file: std::fs::File) -> Result<(), Error> {
        let path = self.files.adopt(file)?;
        let installed = self.install_from::<C>(meta, &path);
        let held_purge = self.group.held_purge();
        if let Err(error) = &installed {
            held_purge.failed(error);
            // A failure leaves no more than the next opening would remove; the first error counts.
            let _ = (self.files.discard(&path), self.drop_installing());
            return installed;
        }
        held_purge.installed(self.applied::<C>()?.0.map(|id| id.index), &self.store)
    }

    fn install_from<C: GroupConfig>(&self, meta: &Meta<C>, path: &Path) -> Result<(), Error> {
        let loaded = self.load::<C>(path)?;
        if loaded != *meta {
            let (expected, got) = (format!("{meta:?}"), format!("{loaded:?}"));
            return Err(Error::DamagedSnapshot { path: path.to_owned(), expected, got });
        }
        self.publish(&self.files.publishing(), path)?;
        self.exchange()
    }

    /// Makes a file the current snapshot. Whatever it has, and whatever was truncated to make room for that,
    /// is durable first: otherwise a crash could bring back entries that are in conflict with the snapshot,
    /// some of them after its last one.
    fn publish(&self, publishing: &MutexGuard<'_, ()>, path: &Path) -> Result<(), Error> {
        self.store.db().sync()?;
        self.files.publish(publishing, path)?;
        self.is_verified.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Loads a snapshot into a tree of its own, durably, and verifies it.
    fn load<C: GroupConfig>(&self, path: &Path) -> Result<Meta<C>, Error> {
        self.drop_installing()?;
        let file = std::fs::File::open(path);
        let file = file.map_err(|source| Error::File { action: "open", path: path.to_owned(), source })?;
        let (mut reader, meta) = SnapshotReader::open(path, file)?;
        let loaded = self.store.db().tree(&self.installing_name())?.load(reader.by_ref());
        if let Err(error @ flashgrain::Error::Order { .. }) = &loaded {
            let (expected, got) = ("records in the order of their keys".into(), error.to_string());
            return Err(Error::DamagedSnapshot { path: path.to_owned(), expected, got });
        }
        loaded?;
        reader.verify()?;
        Ok(meta)
    }

    /// The loaded tree becomes the state.
    fn exchange(&self) -> Result<(), Error> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let (db, name) = (self.store.db(), state_name(self.group.name()));
        db.replace_tree(&name, &self.installing_name())?;
        *state = db.existing_tree(&name)?;
        Ok(())
    }

    /// Brings the state up to the current snapshot, if that is ahead. A damaged one is removed if the state
    /// and the log, which was purged through `purged`, are whole without it.
    fn finish_installing<C: GroupConfig>(&self, purged: Option<&LogId<C::NodeId>>) -> Result<(), Error> {
        let applied = self.applied::<C>()?.0;
        let finished = self.current::<C>().and_then(|current| {
            if current.is_some_and(|(meta, _)| meta.last_log_id > applied) {
                self.load::<C>(&self.files.current_path())?;
                self.exchange()?;
            }
            Ok(())
        });
        match finished {
            Err(Error::DamagedSnapshot { .. }) if purged <= applied.as_ref() => {
                self.drop_installing()?;
                self.files.discard(&self.files.current_path())
            }
            finished => finished,
        }
    }

    fn drop_installing(&self) -> Result<(), Error> {
        match self.store.db().drop_tree(&self.installing_name()) {
            Err(flashgrain::Error::NoTree { .. }) => Ok(()),
            dropped => Ok(dropped?),
        }
    }
}

/// The id of the last entry that is applied to the state of `group`.
///
/// # Errors
/// [`Error::Store`], [`Error::Undecodable`].
pub(crate) fn applied_of<C: GroupConfig>(db: &Db, group: &str) -> Result<Option<LogId<C::NodeId>>, Error> {
    Ok(applied_in::<C>(db, &db.existing_tree(&state_name(group))?)?.0)
}

fn applied_in<C: GroupConfig>(from: &impl Readable, state: &Tree) -> Result<Applied<C>, Error> {
    let bytes = from.get(state, APPLIED_KEY)?;
    Ok(bytes.map(|bytes| decode(state.name(), &bytes)).transpose()?.unwrap_or_default())
}

impl<C: GroupConfig, A: Application<C>> RaftStateMachine<C> for StateMachine<C, A> {
    type SnapshotBuilder = SnapshotBuilder<C>;

    async fn applied_state(&mut self) -> Result<Applied<C>, StorageError<C::NodeId>> {
        let applied = self.with_replica(Replica::applied::<C>).await;
        Ok(applied.map_err(|error| StorageIOError::read_state_machine(&error))?)
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<C::R>, StorageError<C::NodeId>>
    where
        I: IntoIterator<Item = C::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        let application = Arc::clone(&self.application);
        let applied = self.with_replica(move |replica| {
            let mut answers = Vec::with_capacity(entries.len());
            replica.apply::<C>(&*application, &entries, &mut answers)?;
            Ok(answers)
        });
        Ok(applied.await.map_err(|error| StorageIOError::write_state_machine(&error))?)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<C> {
        let view = self.with_replica(View::of).await;
        SnapshotBuilder { replica: Arc::clone(&self.replica), view: Some(view), types: PhantomData }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<File>, StorageError<C::NodeId>> {
        let file = self.with_replica(|replica| {
            replica.group.held_purge().begin_receiving();
            replica.files.receive()
        });
        let file = file.await;
        let file = file.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        Ok(Box::new(File::from_std(file)))
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta<C>,
        mut snapshot: Box<File>,
    ) -> Result<(), StorageError<C::NodeId>> {
        let signature = Some(meta.signature());
        // Dropped files of tokio lose their last write otherwise.
        let flushed = snapshot.flush().await;
        flushed.map_err(|error| StorageIOError::write_snapshot(signature.clone(), &error))?;
        let (meta, file) = (meta.clone(), snapshot.into_std().await);
        let installed = self.with_replica(move |replica| replica.install::<C>(&meta, file)).await;
        Ok(installed.map_err(|error| StorageIOError::write_snapshot(signature, &error))?)
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<C>>, StorageError<C::NodeId>> {
        let current = self.with_replica(Replica::whole::<C>).await;
        Ok(current.map_err(|error| StorageIOError::read_snapshot(None, &error))?)
    }
}

/// The state at one moment: an iterator has a snapshot of the store, and goes on if its tree is replaced.
struct View {
    records: Iter,
    /// Of [`APPLIED_KEY`] then.
    applied: Option<Value>,
    tree: String,
}

impl View {
    fn of(replica: &Replica) -> Result<Self, Error> {
        // Held, so that the tree is not replaced before it is read.
        let tree = replica.state.read().unwrap_or_else(PoisonError::into_inner);
        let at = replica.store.db().snapshot()?;
        let applied = at.get(&tree, APPLIED_KEY)?;
        Ok(Self { records: at.iter(&tree)?, applied, tree: tree.name().to_owned() })
    }
}

/// Builds a snapshot of the state at the moment when it was made, while entries are applied.
pub struct SnapshotBuilder<C> {
    replica: Arc<Replica>,
    /// Taken by the first build.
    view: Option<Result<View, Error>>,
    types: PhantomData<fn() -> C>,
}

impl<C: GroupConfig> RaftSnapshotBuilder<C> for SnapshotBuilder<C> {
    async fn build_snapshot(&mut self) -> Result<Snapshot<C>, StorageError<C::NodeId>> {
        let (replica, view) = (Arc::clone(&self.replica), self.view.take());
        let built = blocking(move || {
            let view = view.unwrap_or_else(|| View::of(&replica))?;
            let applied = view.applied.map(|bytes| decode(&view.tree, &bytes)).transpose()?;
            replica.build::<C>(view.records, applied.unwrap_or_default())
        });
        Ok(built.await.map_err(|error| StorageIOError::write_snapshot(None, &error))?)
    }
}
