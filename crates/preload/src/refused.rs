//! Calls that would go past the layout: of files of records they fail, and programs do without.

use std::ffi::{c_char, c_int, c_void};

use libc::{off64_t, size_t, ssize_t};

use super::failure::refuse;
use super::opened;
use super::real::instead;
use super::settings::named;

/// What the C library returns for a call on this file by name, unless it has records: those have no streams.
///
/// # Safety
/// As [`named`].
unsafe fn stream(path: *const c_char, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    if unsafe { named(path) }.is_none() {
        return real();
    }
    refuse::<i64>(libc::ENOTSUP);
    std::ptr::null_mut()
}

instead! { [fopen, fopen64](path: *const c_char, mode: *const c_char) -> *mut c_void, real => {
    // SAFETY: see the crate.
    unsafe { stream(path, real) }
}}

instead! { [freopen, freopen64](
    path: *const c_char, mode: *const c_char, before: *mut c_void
) -> *mut c_void, real => {
    // SAFETY: see the crate.
    unsafe { stream(path, real) }
}}

// Bytes in memory would be those of the drive.
instead! { [mmap, mmap64](
    address: *mut c_void, length: size_t, protection: c_int, flags: c_int, descriptor: c_int, offset: off64_t
) -> *mut c_void, real => {
    if flags & libc::MAP_ANONYMOUS != 0 || opened::get(descriptor).is_none() {
        return real();
    }
    refuse::<i64>(libc::ENODEV);
    libc::MAP_FAILED
}}

/// What the C library returns for a call on these files, unless one of them has records.
fn copied(files: [c_int; 2], number: c_int, real: impl FnOnce() -> ssize_t) -> ssize_t {
    match files.into_iter().any(|descriptor| opened::get(descriptor).is_some()) {
        true => refuse::<i64>(number) as ssize_t,
        false => real(),
    }
}

// Programs read and write instead of these.
instead! { [copy_file_range](
    from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, length: size_t, flags: u32
) -> ssize_t, real => copied([from, to], libc::EXDEV, real) }

instead! { [splice](
    from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, length: size_t, flags: u32
) -> ssize_t, real => copied([from, to], libc::EINVAL, real) }

instead! { [sendfile, sendfile64](
    to: c_int, from: c_int, offset: *mut off64_t, length: size_t
) -> ssize_t, real => copied([from, to], libc::EINVAL, real) }

// A file that says itself how much of it is in use has no room set aside.
instead! { [fallocate, fallocate64](
    descriptor: c_int, mode: c_int, offset: off64_t, length: off64_t
) -> c_int, real => match opened::get(descriptor) {
    Some(_) => refuse(libc::EOPNOTSUPP),
    None => real(),
}}

instead! { [posix_fallocate, posix_fallocate64](
    descriptor: c_int, offset: off64_t, length: off64_t
) -> c_int, real => match opened::get(descriptor) {
    // It returns its error.
    Some(_) => libc::EOPNOTSUPP,
    None => real(),
}}
