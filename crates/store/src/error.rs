//! The store's errors, each with advice for the user.

use std::path::PathBuf;
use std::sync::Arc;

use flashgrain_device::Error as DeviceError;

/// An error of the store. [`Error::kind`] is stable; texts may change.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This process itself has the store open already.
    #[error(
        "{path}: this process has this store open already: use the handle that it has, or close it first"
    )]
    OpenHere {
        /// The store.
        path: PathBuf,
    },
    /// Another process has the store open.
    #[error(
        "{path}: another process has this store open; end it first; to read a store that stays in use, have that process back it up, and open the copy"
    )]
    Locked {
        /// The store.
        path: PathBuf,
    },
    /// The path to be opened has no store.
    #[error("{path}: not a Flashgrain store: {why}")]
    NotAStore {
        /// The path that was to be opened.
        path: PathBuf,
        /// The part of a store that is missing there, or the difference, and a remedy.
        why: String,
    },
    /// The path for a new store has a store, or something else, already.
    #[error("{path}: {why}")]
    Exists {
        /// The path for the new store.
        path: PathBuf,
        /// A description of the file or device that exists there.
        why: String,
    },
    /// The store was written in another format.
    #[error(
        "the store has format version {got}, this program knows {supported}: open it with the version of Flashgrain that wrote it"
    )]
    FormatVersion {
        /// The store's.
        got: u32,
        /// This program's.
        supported: u32,
    },
    /// A device of a striped store, or its log, is missing or belongs to another store.
    #[error("{path}: {why}")]
    Member {
        /// The path for the device.
        path: PathBuf,
        /// The reason why the device is not accepted.
        why: String,
    },
    /// A key that is empty or longer than the tree's limit.
    #[error("a key of {got} bytes: this tree takes 1 to {limit}")]
    KeyLength {
        /// Its length.
        got: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A value over the limit.
    #[error("a value of {got} bytes: the limit is {limit}; divide it over several keys")]
    ValueLength {
        /// Its length.
        got: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// A batch or transaction over the limit.
    #[error(
        "a batch of {got} bytes: the limit is {limit} bytes, a share of the log; divide it, or give the store a longer log"
    )]
    BatchLength {
        /// Its length as a record of the log.
        got: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// The source of a value that was to be inserted could not be read. Nothing was written.
    #[error("the value could not be read from its source: {0}")]
    Source(#[source] Arc<std::io::Error>),
    /// Records that were to be loaded are not in ascending order of their keys, each key once.
    #[error(
        "record {record}, counted from 0, is not in order: its key is not larger than the one before; sort the records by key, and give each key once"
    )]
    Order {
        /// Position of the record in the input, from 0 on.
        record: u64,
    },
    /// Options outside of their ranges, or that contradict each other.
    #[error("{0}")]
    Options(String),
    /// No tree has that name.
    #[error("there is no tree `{name}`: create it first")]
    NoTree {
        /// The name asked for.
        name: String,
    },
    /// A handle of a tree of another store. Nothing was read or written.
    #[error(
        "the tree `{tree}` belongs to another store: take a handle of it from the store that it is used with"
    )]
    OtherStore {
        /// The tree's name.
        tree: String,
    },
    /// A handle of a tree from another opening of this store, or of a copy of it. Nothing was read or
    /// written.
    #[error(
        "the handle of the tree `{tree}` is of another opening of this store: take one from the store as it is open now"
    )]
    OtherOpening {
        /// The tree's name.
        tree: String,
    },
    /// A handle of a tree that does not exist any more; a tree that was made later under the same name is
    /// another one. Nothing was read or written.
    #[error("the tree `{tree}` was dropped, or has another name now: take a handle of one that there is")]
    TreeDropped {
        /// The name that it had.
        tree: String,
    },
    /// A merge in a tree that names no merge operator. Nothing was written.
    #[error("the tree `{tree}` has no merge operator: name one in its options when it is created")]
    NoOperator {
        /// The tree's name.
        tree: String,
    },
    /// A tree names a merge operator that was not registered when the store was opened. Nothing was changed.
    #[error(
        "the tree `{tree}` needs the merge operator `{operator}`, which is not registered: give the operator when the store is opened"
    )]
    OperatorMissing {
        /// The operator's name.
        operator: String,
        /// The tree's.
        tree: String,
    },
    /// A merge operator has returned an error, or panicked. Nothing is lost: value and operands are kept as
    /// they are.
    #[error(
        "the merge operator `{operator}` failed on a record of the tree `{tree}`: {why}; nothing is lost: read the record again with an operator that does not fail, or write another value"
    )]
    OperatorFailed {
        /// The operator's name.
        operator: String,
        /// The tree's.
        tree: String,
        /// The operator's message.
        why: String,
    },
    /// A key that the transaction wrote, or removed, was written or removed by another commit since the
    /// transaction began: only keys that are written are compared, not those that were only read, nor ranges.
    /// Nothing of it was done: begin again. To compare a key that is only read as well, write its value back
    /// unchanged.
    #[error("another commit changed one of the keys that this transaction writes: run the transaction again")]
    Conflict,
    /// A write needs more space than the device has left. Reads go on; removing records, or a larger device,
    /// makes room.
    #[error("the store is full: {why}")]
    Full {
        /// The resource that ran out.
        why: String,
    },
    /// A commit of a store [without a log](crate::Builder::write_log) was made, and all readers see it, but
    /// the checkpoints that would have made it durable failed repeatedly. It becomes durable with the next
    /// checkpoint that is made.
    #[error(
        "the commit is made, but not durable: {why}; make room, or end the trouble of the tree, and make a checkpoint"
    )]
    NotDurable {
        /// The reason why no checkpoint could be made.
        why: String,
    },
    /// Background work of a tree failed, so that it takes no writes until that work is done. Nothing was
    /// written. The tree can still be read, as far as its pages can be, and other trees are not affected.
    #[error(
        "tree {tree} takes no writes, as its background work failed: {why}; read its records, end snapshots if they are the reason, or drop it; the next write tries that work again"
    )]
    TreeFailed {
        /// The tree's number.
        tree: u32,
        /// The failure.
        why: String,
    },
    /// An earlier write or flush failed, so that nothing more can be promised durable. Reads go on. Open the
    /// store again to go back to the durable state.
    #[error("the store takes no more writes since: {first}")]
    Poisoned {
        /// The first failure.
        first: String,
    },
    /// A device returned other bytes than were written there.
    #[error("{what} at byte {offset_bytes} is damaged: expected {expected}, got {got}")]
    Corrupt {
        /// The structure that was read, such as a page or a log block.
        what: String,
        /// Byte offset on the data device or on the log's.
        offset_bytes: u64,
        /// The expected content.
        expected: String,
        /// The content that was read.
        got: String,
    },
    /// A device refused a request.
    #[error(transparent)]
    Io(Arc<IoError>),
    /// A device could not be used at all.
    #[error(transparent)]
    Device(Arc<DeviceError>),
    /// The store was opened by the process that this one was forked from. Nothing was done, and that one's
    /// store is unharmed.
    #[error(
        "this store was opened by another process, which this one was forked from: open it after forking, in the process that uses it"
    )]
    Forked,
    /// The store was opened to be read only.
    #[error("the store was opened to be read only: open it for writing to change it")]
    ReadOnly,
    /// The store was closed while this was under way.
    #[error("the store is closed")]
    Closed,
}

/// A request that a device refused: [`Error::Io`].
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}")]
pub struct IoError {
    /// The request.
    pub doing: String,
    /// The answer of the device.
    pub source: std::io::Error,
}

/// Coarse kinds of [`Error`], for code that reacts to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// In use by another process or handle.
    Locked,
    /// Missing, or something else than was asked for.
    NotFound,
    /// Already there.
    Exists,
    /// A format of another version.
    Version,
    /// An argument out of its range.
    Argument,
    /// A handle of a tree of another store.
    OtherStore,
    /// A handle of a tree from another opening of the same store.
    OtherOpening,
    /// A handle of a tree that was dropped.
    Dropped,
    /// The source of a value, which is the caller's.
    Source,
    /// A lost race; trying again may win.
    Conflict,
    /// No room.
    Full,
    /// A commit was made, but is not durable yet.
    NotDurable,
    /// Background work of one tree failed.
    TreeFailed,
    /// No more writes since an earlier failure.
    Poisoned,
    /// Damaged bytes.
    Corrupt,
    /// A device's error.
    Io,
    /// A merge operator that is missing, or has failed.
    Operator,
    /// Opened to be read only.
    ReadOnly,
    /// Closed.
    Closed,
    /// Of another process.
    Forked,
}

impl Error {
    /// A request that a device refused with the error number `errno`.
    pub(crate) fn io(doing: impl Into<String>, errno: i32) -> Self {
        let source = std::io::Error::from_raw_os_error(errno);
        Self::Io(Arc::new(IoError { doing: doing.into(), source }))
    }

    /// The coarse kind of this error, which is stable.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } | Self::OpenHere { .. } => ErrorKind::Locked,
            Self::NotAStore { .. } | Self::Member { .. } | Self::NoTree { .. } => ErrorKind::NotFound,
            Self::Exists { .. } => ErrorKind::Exists,
            Self::FormatVersion { .. } => ErrorKind::Version,
            Self::KeyLength { .. }
            | Self::ValueLength { .. }
            | Self::BatchLength { .. }
            | Self::Order { .. }
            | Self::Options(_) => ErrorKind::Argument,
            Self::Source(_) => ErrorKind::Source,
            Self::OtherStore { .. } => ErrorKind::OtherStore,
            Self::OtherOpening { .. } => ErrorKind::OtherOpening,
            Self::TreeDropped { .. } => ErrorKind::Dropped,
            Self::Conflict => ErrorKind::Conflict,
            Self::Full { .. } => ErrorKind::Full,
            Self::NotDurable { .. } => ErrorKind::NotDurable,
            Self::TreeFailed { .. } => ErrorKind::TreeFailed,
            Self::Poisoned { .. } => ErrorKind::Poisoned,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Io { .. } | Self::Device(_) => ErrorKind::Io,
            Self::NoOperator { .. } | Self::OperatorMissing { .. } | Self::OperatorFailed { .. } => {
                ErrorKind::Operator
            }
            Self::ReadOnly => ErrorKind::ReadOnly,
            Self::Closed => ErrorKind::Closed,
            Self::Forked => ErrorKind::Forked,
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Self::Device(Arc::new(error))
    }
}
