//! Arguments of C: bytes and text at pointers.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::status::{Failure, Status};

/// The bytes of an argument; a null pointer stands for no bytes if the length is zero.
///
/// # Errors
/// [`Status::Argument`] for a null pointer with a length, and for a length that no memory has.
///
/// # Safety
/// A pointer that is not null has `length` bytes, which do not change while the result is used.
pub unsafe fn bytes<'a>(start: *const c_void, length: usize, name: &str) -> Result<&'a [u8], Failure> {
    if length > isize::MAX as usize {
        let message = format!("`{name}` has a length of {length} bytes, which no memory has");
        return Err(Failure::new(Status::Argument, message));
    }
    match (start.is_null(), length) {
        (true, 0) => Ok(&[]),
        (true, _) => Err(Failure::null(name)),
        // SAFETY: the caller's, and the length was checked.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) }),
    }
}

/// A bound of a range; `None` at a null pointer.
///
/// # Errors
/// As [`bytes`].
///
/// # Safety
/// As [`bytes`].
pub unsafe fn bound<'a>(
    start: *const c_void,
    length: usize,
    name: &str,
) -> Result<Option<&'a [u8]>, Failure> {
    if start.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's.
    unsafe { bytes(start, length, name) }.map(Some)
}

/// A text with a null byte at its end.
///
/// # Errors
/// [`Status::Argument`] for a null pointer.
///
/// # Safety
/// A pointer that is not null leads to such a text, which does not change while the result is used.
pub unsafe fn text<'a>(start: *const c_char, name: &str) -> Result<&'a CStr, Failure> {
    if start.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(start) })
}

/// The same in UTF-8.
///
/// # Errors
/// As [`text`], and for other encodings.
///
/// # Safety
/// As [`text`].
pub unsafe fn utf8<'a>(start: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's.
    let text = unsafe { text(start, name) }?;
    text.to_str().map_err(|error| Failure::new(Status::Argument, format!("`{name}` is not UTF-8: {error}")))
}

/// A handle that must not be null.
///
/// # Errors
/// [`Status::Argument`].
pub fn given<T>(handle: Option<T>, name: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(name))
}

/// The path of a text: on Linux any bytes are one.
pub fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

/// The program's memory for a value.
///
/// # Errors
/// As [`bytes`].
///
/// # Safety
/// A pointer that is not null has `length` bytes, which nothing else uses while the result is used.
pub unsafe fn room<'a>(
    start: *mut c_void,
    length: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<u8>], Failure> {
    match (start.is_null(), length) {
        (true, 0) => Ok(&mut []),
        (true, _) => Err(Failure::null(name)),
        (false, _) => {
            // More than any memory has is as much as it can have.
            let length = length.min(isize::MAX as usize);
            // SAFETY: the caller's; no byte of it is read.
            Ok(unsafe { std::slice::from_raw_parts_mut(start.cast(), length) })
        }
    }
}
