//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Failures of the storage of a Raft group. openraft gets them within its `StorageError`, and stops the node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] flashgrain::Error),
    /// A file of snapshots could not be read or written.
    #[error("{action} {path}: {source}", path = path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A snapshot is not one, or was changed on its way.
    #[error("{} is no whole snapshot: expected {expected}, got {got}; have it sent again", path.display())]
    DamagedSnapshot {
        /// Its file.
        path: PathBuf,
        /// The content that a whole one has.
        expected: String,
        /// The content that is there.
        got: String,
    },
    /// A record of a group's trees cannot be decoded: it was written by other types, or by other software.
    #[error("a record of the tree `{tree}` cannot be decoded as {expected}: {reason}")]
    Undecodable {
        /// The tree.
        tree: String,
        /// Its type.
        expected: &'static str,
        /// The decoder's reason.
        reason: String,
    },
    /// Something cannot be encoded, such as a map whose length is unknown.
    #[error("{what} cannot be encoded: {reason}")]
    Unencodable {
        /// Its type.
        what: &'static str,
        /// The encoder's reason.
        reason: String,
    },
    /// A group's name is part of names of trees and files.
    #[error("`{name}` names no group: use 1 to 100 letters, digits, `-` and `_`")]
    GroupName {
        /// The name.
        name: String,
    },
    /// A group is opened once at a time.
    #[error("the group `{name}` is open: drop its log store, state machine, readers and builders first")]
    GroupOpen {
        /// The name.
        name: String,
    },
    /// An entry over [`RaftStore::entry_bytes_max`](crate::RaftStore::entry_bytes_max).
    #[error(
        "an entry of {got} bytes: the limit is {limit} bytes, a share of the store's log; refuse such requests"
    )]
    EntryLength {
        /// Its length, encoded.
        got: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// The work was given up as the runtime shut down.
    #[error("the runtime ended before the storage was done")]
    Cancelled,
}
