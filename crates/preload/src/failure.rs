//! How a call fails: it returns -1, and `errno` says why.

use std::ffi::c_int;
use std::io::{Error, ErrorKind, Result};

use libc::ssize_t;

/// The call fails with this number.
pub fn refuse<T: From<i8>>(number: c_int) -> T {
    // SAFETY: it is this thread's.
    unsafe { *libc::__errno_location() = number };
    T::from(-1)
}

/// The call fails with this error.
pub fn fail<T: From<i8>>(error: &Error) -> T {
    let by_kind = || match error.kind() {
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::FileTooLarge => libc::EFBIG,
        ErrorKind::ResourceBusy => libc::EBUSY,
        _ => libc::EIO,
    };
    refuse(error.raw_os_error().unwrap_or_else(by_kind))
}

/// The return value of a call that has transferred this number of bytes, or has failed.
pub fn count(done: Result<usize>) -> ssize_t {
    done.map_or_else(|error| fail::<i64>(&error) as ssize_t, |bytes| bytes as ssize_t)
}
