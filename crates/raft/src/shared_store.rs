//! The store of all groups, and the thread that flushes it for them.

use std::io;
use std::sync::Arc;

use flashgrain::Db;
use tokio::sync::oneshot;

use crate::flusher::Flusher;

/// A store and its flusher. Clones share them; the thread ends with the last one.
#[derive(Clone)]
pub struct SharedStore {
    db: Db,
    flusher: Arc<Flusher>,
}

impl SharedStore {
    /// Starts the flusher.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn new(db: Db) -> Result<Self, io::Error> {
        let flushed = db.clone();
        let flusher = Flusher::start(Box::new(move || flushed.sync()))?;
        Ok(Self { db, flusher: Arc::new(flusher) })
    }

    /// Calls `told` once all that is committed now is durable, or with the reason why it is not.
    pub fn when_durable(&self, told: impl FnOnce(Result<(), io::Error>) + Send + 'static) {
        self.flusher.when_durable(told);
    }

    /// Waits until all that is committed now is durable.
    ///
    /// # Errors
    /// Those of the store, and of the system if the flusher has ended.
    pub async fn flushed(&self) -> Result<(), io::Error> {
        let (told, answer) = oneshot::channel();
        // A caller that has gone needs no answer.
        self.when_durable(|flushed| drop(told.send(flushed)));
        answer.await.unwrap_or_else(|_| Err(io::Error::other("the thread that flushes the log has ended")))
    }

    /// The longest entry, in bytes: half of a commit.
    pub fn entry_bytes_max(&self) -> u64 {
        self.db.batch_bytes_max() / 2
    }

    pub fn db(&self) -> &Db {
        &self.db
    }
}
