//! Why nothing can be recorded.

use std::io;
use std::path::PathBuf;

/// A recording that cannot begin, or has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `strace` is not installed.
    #[error(
        "system calls are recorded through strace unless the kernel may be traced (as root), and strace is not installed: install the package strace, or record block requests alone with --no-calls"
    )]
    NoStrace,
    /// `strace` could not record.
    #[error("strace ended with {0} before it recorded anything; it says why above")]
    Strace(std::process::ExitStatus),
    /// The program has failed.
    #[error("the command ended with {0}")]
    Command(std::process::ExitStatus),
    /// The kernel's events of system calls cannot be had.
    #[error("system calls cannot be recorded by the kernel: {problem}")]
    Calls {
        /// The reason, and the remedy.
        problem: String,
    },
    /// The kernel's trace events cannot be had.
    #[error("block requests cannot be recorded: {problem}")]
    Blocks {
        /// The reason, and the remedy.
        problem: String,
    },
    /// No such drive.
    #[error("{}: {problem}", path.display())]
    Drive {
        /// The name that was given.
        path: PathBuf,
        /// The defect.
        problem: String,
    },
    /// The drive has vanished.
    #[error("the drive {0} is gone")]
    Gone(String),
    /// Reading or writing failed.
    #[error("{doing}: {source}")]
    Os {
        /// The failed operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The recorded requests cannot be read again.
    #[error("the recording: {0}")]
    Trace(#[from] flashgrain_trace::Error),
}

impl Error {
    pub(crate) fn os(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Os { doing, source }
    }

    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoStrace => "no_strace",
            Self::Strace(_) => "strace",
            Self::Command(_) => "command",
            Self::Calls { .. } => "calls",
            Self::Blocks { .. } => "blocks",
            Self::Drive { .. } => "drive",
            Self::Gone(_) => "gone",
            Self::Os { .. } => "os",
            Self::Trace(_) => "trace",
        }
    }
}
