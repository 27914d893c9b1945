//! Errors below the store, worded so that a user can act on them.

use std::io;
use std::path::PathBuf;

/// An error of the device layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("{doing}: {source}")]
    Os {
        /// The action that failed, with the path, such as "create a scratch file in /data".
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A system call failed as the process, or its user, is given no more of something.
    #[error("{doing}: {source}: {remedy}")]
    Limit {
        /// The action that failed.
        doing: String,
        /// The system's answer.
        source: io::Error,
        /// The limit, and how to raise it.
        remedy: String,
    },
    /// The target does not suit the operation; the text names a remedy.
    #[error("{path}: {problem}")]
    Target {
        /// The target.
        path: PathBuf,
        /// Description of the problem, and a remedy.
        problem: String,
    },
    /// This process itself has the target open already.
    #[error("{path}: this process has this store open already; use that handle, or close it first")]
    OpenHere {
        /// The target.
        path: PathBuf,
    },
    /// Another opener has the target.
    #[error("{path}: in use by another store that is open; close that one first")]
    Locked {
        /// The target.
        path: PathBuf,
    },
    /// The process may not write files as large as this one has to be.
    #[error("{path}: {why}")]
    FileLimit {
        /// The file.
        path: PathBuf,
        /// The limit, the size needed, and a remedy.
        why: String,
    },
    /// As many requests are in flight as the channel was opened for.
    #[error("the channel's queue is full: reap completions before submitting more")]
    QueueFull,
    /// A request that the device cannot take.
    #[error("bad request: {0}")]
    Request(String),
    /// A backend was asked for by name and is not available.
    #[error("the {backend} backend is not available here: {why}")]
    Backend {
        /// The backend's name.
        backend: &'static str,
        /// The reason, and the backends that can be used.
        why: String,
    },
}

/// The stable kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Os,
    /// The device or file system is full.
    NoSpace,
    /// The target cannot be used.
    Target,
    /// Something that should be there is not.
    NotFound,
    /// Something that should not be there is.
    Exists,
    /// Another opener has it.
    Locked,
    /// The queue is full.
    QueueFull,
    /// The request is malformed.
    Request,
    /// The backend is not available.
    Backend,
}

impl Error {
    /// The stable kind, for programs.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Os { source, .. } if source.raw_os_error() == Some(libc::ENOSPC) => ErrorKind::NoSpace,
            Self::FileLimit { .. } => ErrorKind::NoSpace,
            Self::Os { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorKind::NotFound,
            Self::Os { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            Self::Os { .. } | Self::Limit { .. } => ErrorKind::Os,
            Self::Locked { .. } | Self::OpenHere { .. } => ErrorKind::Locked,
            Self::Target { .. } => ErrorKind::Target,
            Self::QueueFull => ErrorKind::QueueFull,
            Self::Request(_) => ErrorKind::Request,
            Self::Backend { .. } => ErrorKind::Backend,
        }
    }

    pub(crate) fn last_os(doing: impl Into<String>) -> Self {
        Self::Os { doing: doing.into(), source: io::Error::last_os_error() }
    }
}
