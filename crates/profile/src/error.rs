//! Errors of profiling.

use std::path::PathBuf;

/// An error of the profiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device layer failed.
    #[error(transparent)]
    Device(#[from] flashgrain_device::Error),
    /// A model could not be fitted or read.
    #[error(transparent)]
    Model(#[from] flashgrain_model::Error),
    /// A request failed on the device.
    #[error("{doing}: {source}")]
    Io {
        /// The action that failed, with the offset or path.
        doing: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// An argument makes no sense; the text names a sensible one.
    #[error("{0}")]
    Argument(String),
    /// A profile file cannot be read.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// Description of the problem, and a remedy.
        problem: String,
    },
    /// A file cannot be written.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Stopped by the user; nothing remains on the target.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A request that failed on the device.
    pub(crate) fn request(op: flashgrain_device::Op, offset_bytes: u64, errno: i32) -> Self {
        let source = std::io::Error::from_raw_os_error(errno);
        Self::Io { doing: format!("{op:?} at offset {offset_bytes}"), source }
    }
}
