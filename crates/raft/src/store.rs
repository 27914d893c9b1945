//! A store that Raft groups share.

use std::path::PathBuf;

use flashgrain::Db;

use crate::application::Application;
use crate::config::GroupConfig;
use crate::error::Error;
use crate::log_store::LogStore;
use crate::open_groups::OpenGroups;
use crate::shared_store::SharedStore;
use crate::snapshot_files::SnapshotFiles;
use crate::state_machine::StateMachine;

const GROUP_NAME_BYTES_MAX: usize = 100;

/// A store with any number of Raft groups, which share its cache, its log and the flushes of the log. Cheap
/// to clone; make one for a store. The store's other trees are free for other uses.
///
/// Its thread ends, and the store is closed, with the last of it, of the log stores and state machines that
/// it made, and of the caller's handles of the store.
#[derive(Clone)]
pub struct RaftStore {
    shared: SharedStore,
    snapshots: PathBuf,
    open: OpenGroups,
}

impl RaftStore {
    /// Groups on `db`, with the files of their snapshots in the folder `snapshots`, which is made if there is
    /// none.
    ///
    /// # Errors
    /// [`Error::File`] if there is no such folder, or no thread.
    pub fn new(db: Db, snapshots: impl Into<PathBuf>) -> Result<Self, Error> {
        let snapshots = snapshots.into();
        let failed = |action| {
            let path = snapshots.clone();
            move |source| Error::File { action, path, source }
        };
        std::fs::create_dir_all(&snapshots).map_err(failed("make the folder"))?;
        let shared = SharedStore::new(db).map_err(failed("start the flusher of"))?;
        Ok(Self { shared, snapshots, open: OpenGroups::default() })
    }

    /// Log store and state machine of the group `name`, which is made if there is none. What a crash has left
    /// half done is finished or removed.
    ///
    /// A group is opened once at a time; it is open until all that was made for it is dropped, which openraft
    /// does soon after `Raft::shutdown`. This waits for the device: call it before the runtime's work, or
    /// on a blocking thread.
    ///
    /// # Errors
    /// [`Error::GroupName`]; [`Error::GroupOpen`]; [`Error::Store`]; [`Error::File`]; and
    /// [`Error::DamagedSnapshot`] if the log goes on from a snapshot that is damaged, and the state is older.
    pub fn group<C: GroupConfig, A: Application<C>>(
        &self,
        name: &str,
        application: A,
    ) -> Result<(LogStore<C>, StateMachine<C, A>), Error> {
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > GROUP_NAME_BYTES_MAX || !name.bytes().all(is_named) {
            return Err(Error::GroupName { name: name.to_owned() });
        }
        let group = self.open.open(name)?;
        let log = LogStore::open(self.shared.clone(), &group)?;
        let files = SnapshotFiles::open(&self.snapshots, name)?;
        let state =
            StateMachine::open(self.shared.clone(), group, files, application, log.purged()?.as_ref())?;
        log.recover(state.applied()?.as_ref())?;
        Ok((log, state))
    }

    /// The longest entry that a log takes: half of a commit. So an entry that was appended leaves room for
    /// the state's own records where its request is applied. A longer one stops the node: refuse such
    /// requests before they are written.
    pub fn entry_bytes_max(&self) -> u64 {
        self.shared.entry_bytes_max()
    }

    /// The store.
    pub fn db(&self) -> &Db {
        self.shared.db()
    }
}
