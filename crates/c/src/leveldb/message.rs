//! Errors as texts of `malloc`, with LevelDB's words for their kinds in front.

use std::ffi::{c_char, c_void};

use flashgrain::{Error, ErrorKind};

use crate::call::catching;
use crate::memory;
use crate::status::Failure;

/// The place of an error, which is null or has a text of an earlier one.
pub type ErrorText<'a> = Option<&'a mut *mut c_char>;

/// The text of an error.
#[derive(Clone, Debug)]
pub struct Message(String);

impl Message {
    /// A request that cannot be met.
    pub fn invalid(why: impl std::fmt::Display) -> Self {
        Self(format!("Invalid argument: {why}"))
    }

    /// The device, or the system, failed.
    pub fn io(why: impl std::fmt::Display) -> Self {
        Self(format!("IO error: {why}"))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<Error> for Message {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Version => Self(format!("Corruption: {error}")),
            ErrorKind::NotFound => Self(format!("NotFound: {error}")),
            ErrorKind::Argument | ErrorKind::Exists => Self::invalid(error),
            _ => Self::io(error),
        }
    }
}

impl From<Failure> for Message {
    fn from(failure: Failure) -> Self {
        Self::invalid(failure.message.to_string_lossy())
    }
}

/// Runs the body of a function. An error goes to its place, whose earlier text is freed; a success leaves the
/// place as it is.
pub fn report<T>(place: ErrorText<'_>, body: impl FnOnce() -> Result<T, Message>) -> Option<T> {
    let outcome = catching(body).unwrap_or_else(|panic| Err(Message::io(panic.message.to_string_lossy())));
    let message = match outcome {
        Ok(result) => return Some(result),
        Err(message) => message,
    };
    if let Some(place) = place {
        memory::free(place.cast::<c_void>());
        *place = memory::copy_text(message.text().replace('\0', "\u{fffd}").as_bytes())
            .unwrap_or(std::ptr::null_mut());
    }
    None
}

/// Frees memory that this library has returned; nothing at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_free(memory: *mut c_void) {
    memory::free(memory);
}
