//! Reasons why an object of a store cannot be used any more.

use std::fmt;

use flashgrain::Error;

/// The way in which an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With its store.
    Store,
    /// A transaction or batch: by a commit.
    Committed(&'static str),
    /// A transaction or batch: by a commit that failed.
    Failed(&'static str),
    /// A transaction or batch: without its writes.
    RolledBack(&'static str),
    /// A snapshot.
    Snapshot,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => Error::Closed.fmt(f),
            Self::Committed(kind) => write!(f, "the {kind} has been committed: begin another one"),
            Self::Failed(kind) => write!(f, "the {kind} has ended with a failed commit: begin another one"),
            Self::RolledBack(kind) => write!(f, "the {kind} has been rolled back: begin another one"),
            Self::Snapshot => f.write_str("the snapshot is closed: take another one"),
        }
    }
}

/// Why an operation on an object of a store failed.
pub enum Failure {
    /// The store's own error.
    Store(Error),
    /// The object has ended.
    Ended(Ended),
    /// A write to a tree of a snapshot.
    WriteToSnapshot,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}
