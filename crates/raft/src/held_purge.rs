//! A purge that waits for the installation that it relies on.
//!
//! openraft has a snapshot installed, and the log purged up to the snapshot's last entry, at the same time.
//! If the purge became durable first, a crash would leave neither the entries nor the snapshot. So a purge
//! beyond the applied entries is noted, while a snapshot is being received or installed, and made when that
//! is done. Entries appended meanwhile begin after the purged ones: they are not told as durable before the
//! purge is made.
//!
//! The note is durable before any such entry, so that opening after a crash knows of the gap in the log.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::shared_store::SharedStore;

type Told = Box<dyn FnOnce(Result<(), io::Error>) + Send>;
type Purge = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// The held purge of a group, if there is one.
#[derive(Default)]
pub struct HeldPurge(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    /// Snapshots that were begun to be received, and are not installed.
    receiving: u64,
    held: Option<Held>,
    /// Appends since.
    waiting: Vec<Told>,
}

struct Held {
    through: u64,
    /// The encoded id.
    id: Vec<u8>,
    purge: Purge,
}

impl HeldPurge {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot is going to be received.
    pub fn begin_receiving(&self) {
        self.inside().receiving += 1;
    }

    /// Holds a purge of the entries through the index `through`, with this encoded id, if an installation may
    /// be under way and `applied`, the index of the last applied entry, is smaller; whether it is held.
    /// `note` makes the note.
    ///
    /// # Errors
    /// Those of `applied` and `note`.
    pub fn hold(
        &self,
        (through, id): (u64, &[u8]),
        applied: impl FnOnce() -> Result<Option<u64>, Error>,
        note: impl FnOnce() -> Result<(), Error>,
        purge: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<bool, Error> {
        // An installation ends before the look at what is applied, or sees the purge.
        let mut inside = self.inside();
        if inside.receiving == 0 || applied()?.is_some_and(|applied| applied >= through) {
            return Ok(false);
        }
        if inside.held.as_ref().is_none_or(|held| held.through < through) {
            note()?;
            inside.held = Some(Held { through, id: id.to_vec(), purge: Box::new(purge) });
        }
        Ok(true)
    }

    /// The encoded id of the held purge.
    pub fn id(&self) -> Option<Vec<u8>> {
        self.inside().held.as_ref().map(|held| held.id.clone())
    }

    /// Calls `told` once all that is committed now is durable, and a held purge is made.
    pub fn when_durable(
        &self,
        store: &SharedStore,
        told: impl FnOnce(Result<(), io::Error>) + Send + 'static,
    ) {
        let mut inside = self.inside();
        match inside.held {
            Some(_) => inside.waiting.push(Box::new(told)),
            None => store.when_durable(told),
        }
    }

    /// A snapshot was installed, so that all through the index `applied` is in the state: makes the held
    /// purge if it goes no further.
    ///
    /// # Errors
    /// Those of the purge.
    pub fn installed(&self, applied: Option<u64>, store: &SharedStore) -> Result<(), Error> {
        let mut inside = self.inside();
        inside.receiving = inside.receiving.saturating_sub(1);
        let is_done = |held: &mut Held| applied.is_some_and(|applied| applied >= held.through);
        let Some(held) = inside.held.take_if(is_done) else { return Ok(()) };
        let made = (held.purge)();
        let failed = made.as_ref().err().map(ToString::to_string);
        for told in inside.waiting.drain(..) {
            match &failed {
                None => store.when_durable(told),
                Some(reason) => told(Err(io::Error::other(reason.clone()))),
            }
        }
        made
    }

    /// An installation has failed: entries that follow its snapshot never become durable.
    pub fn failed(&self, reason: &Error) {
        let mut inside = self.inside();
        inside.receiving = inside.receiving.saturating_sub(1);
        for told in inside.waiting.drain(..) {
            told(Err(io::Error::other(format!("the snapshot before it was not installed: {reason}"))));
        }
    }
}
