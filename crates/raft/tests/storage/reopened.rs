//! openraft's own tests again, with the store closed and opened between each write and the next read.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_raft::SnapshotBuilder;
use openraft::storage::{LogFlushed, RaftLogStorage, RaftLogStorageExt, RaftStateMachine, Snapshot};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{
    Entry, LogId, LogState, OptionalSend, RaftLogReader, SnapshotMeta, StorageError, StoredMembership, Vote,
};
use tempfile::TempDir;
use tokio::fs::File;
use tokio::sync::{Mutex, MutexGuard};

use crate::types::{Log, State, Types, group};

type Done<T> = Result<T, StorageError<u64>>;

static REOPENED: AtomicU64 = AtomicU64::new(0);

struct Shared {
    folder: PathBuf,
    open: Mutex<Option<Open>>,
}

struct Open {
    log: Log,
    state: State,
    is_written: bool,
}

impl Shared {
    async fn to_write(&self) -> MutexGuard<'_, Option<Open>> {
        let mut open = self.open.lock().await;
        open.as_mut().unwrap().is_written = true;
        open
    }

    /// Closes and opens the store first if anything was written since.
    async fn to_read(&self) -> MutexGuard<'_, Option<Open>> {
        let mut open = self.open.lock().await;
        if open.as_ref().unwrap().is_written {
            *open = None;
            let (log, state) = group(&self.folder);
            *open = Some(Open { log, state, is_written: false });
            REOPENED.fetch_add(1, Ordering::Relaxed);
        }
        open
    }
}

struct ReopenedLog(Arc<Shared>);
struct ReopenedState(Arc<Shared>);

impl RaftLogReader<Types> for ReopenedLog {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Done<Vec<Entry<Types>>> {
        self.0.to_read().await.as_mut().unwrap().log.try_get_log_entries(range).await
    }
}

impl RaftLogStorage<Types> for ReopenedLog {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Done<LogState<Types>> {
        self.0.to_read().await.as_mut().unwrap().log.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> Self {
        Self(Arc::clone(&self.0))
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Done<()> {
        self.0.to_write().await.as_mut().unwrap().log.save_vote(vote).await
    }

    async fn read_vote(&mut self) -> Done<Option<Vote<u64>>> {
        self.0.to_read().await.as_mut().unwrap().log.read_vote().await
    }

    async fn save_committed(&mut self, committed: Option<LogId<u64>>) -> Done<()> {
        self.0.to_write().await.as_mut().unwrap().log.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> Done<Option<LogId<u64>>> {
        self.0.to_read().await.as_mut().unwrap().log.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Done<()>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut open = self.0.to_write().await;
        open.as_mut().unwrap().log.blocking_append(entries).await?;
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<u64>) -> Done<()> {
        self.0.to_write().await.as_mut().unwrap().log.truncate(log_id).await
    }

    async fn purge(&mut self, log_id: LogId<u64>) -> Done<()> {
        self.0.to_write().await.as_mut().unwrap().log.purge(log_id).await
    }
}

impl RaftStateMachine<Types> for ReopenedState {
    type SnapshotBuilder = SnapshotBuilder<Types>;

    async fn applied_state(
        &mut self,
    ) -> Done<(Option<LogId<u64>>, StoredMembership<u64, openraft::BasicNode>)> {
        self.0.to_read().await.as_mut().unwrap().state.applied_state().await
    }

    async fn apply<I>(&mut self, entries: I) -> Done<Vec<flashgrain_raft::Answer>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.0.to_write().await.as_mut().unwrap().state.apply(entries).await
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<Types> {
        self.0.to_read().await.as_mut().unwrap().state.get_snapshot_builder().await
    }

    async fn begin_receiving_snapshot(&mut self) -> Done<Box<File>> {
        self.0.to_write().await.as_mut().unwrap().state.begin_receiving_snapshot().await
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, openraft::BasicNode>,
        snapshot: Box<File>,
    ) -> Done<()> {
        self.0.to_write().await.as_mut().unwrap().state.install_snapshot(meta, snapshot).await
    }

    async fn get_current_snapshot(&mut self) -> Done<Option<Snapshot<Types>>> {
        self.0.to_read().await.as_mut().unwrap().state.get_current_snapshot().await
    }
}

struct Reopened;

impl StoreBuilder<Types, ReopenedLog, ReopenedState, TempDir> for Reopened {
    async fn build(&self) -> Done<(TempDir, ReopenedLog, ReopenedState)> {
        let folder = tempfile::tempdir().unwrap();
        let (log, state) = group(folder.path());
        let open = Mutex::new(Some(Open { log, state, is_written: false }));
        let shared = Arc::new(Shared { folder: folder.path().to_owned(), open });
        Ok((folder, ReopenedLog(Arc::clone(&shared)), ReopenedState(shared)))
    }
}

#[test]
fn passes_openrafts_suite_with_the_store_reopened_before_reads() {
    Suite::test_all(Reopened).unwrap();
    let reopened = REOPENED.load(Ordering::Relaxed);
    assert!(reopened > 40, "the store was opened again only {reopened} times");
}
