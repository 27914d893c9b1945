//! Errors, and memory that the library has given away.

use std::ffi::{CStr, c_char, c_void};

use crate::call::{ErrorHandle, quietly};
use crate::memory;
use crate::status::Status;

/// The message of an error, in English and with advice. It is the error's: it lives as long as that. Empty at
/// a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_error_message(error: Option<&ErrorHandle>) -> *const c_char {
    error.map_or(c"", |error| &error.0.message).as_ptr()
}

/// The status that the function returned with this error; FG_STATUS_OK at a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fg_error_status(error: Option<&ErrorHandle>) -> Status {
    error.map_or(Status::Ok, |error| error.0.status)
}

/// Frees an error. A null pointer is none.
#[unsafe(no_mangle)]
pub extern "C" fn fg_error_free(error: Option<Box<ErrorHandle>>) {
    quietly(|| drop(error));
}

/// The name of a status, such as "conflict"; "unknown" for a number that is none. The text is the library's
/// own.
#[unsafe(no_mangle)]
pub extern "C" fn fg_status_name(status: i32) -> *const c_char {
    let known = Status::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"unknown", name).as_ptr()
}

fn name(status: Status) -> &'static CStr {
    match status {
        Status::Ok => c"ok",
        Status::Argument => c"argument",
        Status::NotFound => c"not found",
        Status::Exists => c"exists",
        Status::Locked => c"locked",
        Status::Version => c"version",
        Status::OtherStore => c"other store",
        Status::OtherOpening => c"other opening",
        Status::Dropped => c"dropped",
        Status::Conflict => c"conflict",
        Status::Full => c"full",
        Status::NotDurable => c"not durable",
        Status::TreeFailed => c"tree failed",
        Status::Poisoned => c"poisoned",
        Status::Corrupt => c"corrupt",
        Status::Io => c"I/O",
        Status::Operator => c"operator",
        Status::ReadOnly => c"read only",
        Status::Closed => c"closed",
        Status::Forked => c"forked",
        Status::Finished => c"finished",
        Status::OutOfMemory => c"out of memory",
        Status::Internal => c"internal",
    }
}

/// Frees a value, text or list that a function returned; nothing at a null pointer. It is the C library's
/// `free`.
#[unsafe(no_mangle)]
pub extern "C" fn fg_free(memory: *mut c_void) {
    memory::free(memory);
}
