//! Loads: many records in key order, which an index writes to their last place before any reader sees them.
//!
//! A load is prepared, then committed: its records are durable, but not visible, before the log has the
//! commit; from that commit on all of them are visible. So a commit of any length takes a few bytes of the
//! log.

use crate::Error;
use crate::log::LogRecord;

/// Identifies a load among all loads that its index ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadId(pub u64);

/// An index that takes loads.
pub(crate) trait Loads {
    /// Begins to load records of keys from this one on. `None` if it has records among them, so that commits
    /// do as well.
    fn load_from<'a>(&'a self, first: &[u8]) -> Option<Box<dyn Load + 'a>>;

    /// Replays the commit of a load, unless the index has it.
    ///
    /// # Errors
    /// As [`Load::commit`].
    fn commit_again(&self, load: LoadId, record: LogRecord) -> Result<(), Error>;
}

/// Records on their way into an index. If it is dropped before it is prepared, nothing is left of them.
pub(crate) trait Load {
    /// Whether the index has no other records up to this key.
    fn takes(&self, key: &[u8]) -> bool;

    /// Appends a record. Parks.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`]. Nothing may follow then.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Writes the records to the device. The next checkpoint has them, but no reader sees them.
    ///
    /// # Errors
    /// As [`Load::push`].
    fn prepare(&mut self) -> Result<LoadId, Error>;

    /// Writes all changes that the index keeps elsewhere into pages. It is called with all other commits
    /// locked out, and once before, so that less is left to do then.
    ///
    /// # Errors
    /// As [`Load::push`]; the index is as before.
    fn make_way(&self) -> Result<(), Error>;

    /// Assigns the prepared records to a commit that is logged. All other commits are locked out, and the
    /// index has [made way](Load::make_way) since.
    ///
    /// # Errors
    /// [`Error::Full`]; the pool's.
    fn commit(&mut self, record: LogRecord) -> Result<(), Error>;

    /// Discards the prepared records. After an error nothing but room is lost, until the store is opened
    /// again.
    ///
    /// # Errors
    /// As [`Load::commit`].
    fn withdraw(&mut self) -> Result<(), Error>;
}
