//! A store's files.

use crate::Error;

/// The store's file in a directory.
pub const DATA_FILE: &str = "data.flashgrain";
/// The log's file in a directory.
pub const LOG_FILE: &str = "log.flashgrain";

pub(super) fn io(doing: String, error: &std::io::Error) -> Error {
    Error::io(doing, error.raw_os_error().unwrap_or(libc::EIO))
}
