//! The write-ahead log: a ring of blocks with the committed logical operations.

use crate::Error;
use crate::lane::Devices;
use crate::layout::Layout;
use crate::poison::Poison;

/// A position in the log: bytes since the store was created. Its place is the position modulo the ring's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lsn(pub u64);

/// Which commit it is: they are numbered from 1 in the order in which they are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(pub u64);

/// How durable a commit is when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a power cut.
    #[default]
    Sync,
    /// It is on its way to the device: it survives the end of this process, not a power cut. Later `Sync` commits make it durable.
    Buffered,
    /// It is in memory only: it survives the end of this process if a later commit or the background writer has taken it along.
    None,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    /// Where the record begins.
    pub start: Lsn,
    /// Where it ends.
    pub end: Lsn,
    /// The commit's number.
    pub timestamp: Timestamp,
}

/// See the module.
pub(crate) struct Log {}

impl Log {
    /// The log from `tail` on, the replay start of the newest checkpoint. Calls `replay` with each record (its start, its timestamp, its bytes) and returns the log, ready to append behind the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a record that was durable is damaged, or what `replay` returns. A torn tail is not an error.
    pub fn open(
        _layout: &Layout,
        _devices: Devices,
        _poison: Poison,
        _tail: Lsn,
        _replay: &mut dyn FnMut(Lsn, Timestamp, &[u8]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        todo!()
    }

    /// Appends a record with the next timestamp. Parks while the ring is full.
    pub fn append(&self, _record: &[u8]) -> Result<Logged, Error> {
        todo!()
    }

    /// Returns when everything before `end` is as durable as asked. The first to come writes for all who wait.
    pub fn wait(&self, _end: Lsn, _durability: Durability) -> Result<(), Error> {
        todo!()
    }

    /// Everything before it survives a power cut.
    pub fn durable(&self) -> Lsn {
        todo!()
    }

    /// Where the next record will begin.
    pub fn end(&self) -> Lsn {
        todo!()
    }

    /// Nothing before `tail` is needed any longer.
    pub fn truncate(&self, _tail: Lsn) {
        todo!()
    }
}
