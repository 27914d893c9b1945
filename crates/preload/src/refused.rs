//! Calls that would pass the layout: of files of records they fail, and programs do without. Calls that are
//! not here, and that no other module has, fail on the placeholder.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};

use flashgrain_record_files::Kind;
use libc::{mode_t, off64_t, size_t, ssize_t};

use super::failure::{fail, refuse};
use super::probe::{Probe, is_ours};
use super::real::instead;
use super::table;

/// Why the C library must not open a file itself, if it must not: it would read and write in its own way.
///
/// # Safety
/// See the crate.
unsafe fn reason_against(path: *const c_char, creates: bool) -> Option<std::io::Error> {
    // SAFETY: as the caller promises.
    if !unsafe { is_ours(libc::AT_FDCWD, path, true) } {
        return None;
    }
    let not_supported = std::io::Error::from_raw_os_error(libc::ENOTSUP);
    // SAFETY: as the caller promises.
    let probe = match unsafe { Probe::open(libc::AT_FDCWD, path, libc::O_CLOEXEC) } {
        Ok(probe) => probe,
        // The error is the program's, unless a file would be made.
        Err(_) => return creates.then_some(not_supported),
    };
    let identity = probe.found.identity;
    // SAFETY: as the caller promises.
    match unsafe { probe.kind(libc::AT_FDCWD, path) } {
        Ok(Some(Kind::Empty)) if table::is_plain(identity) => None,
        Ok(Some(Kind::Records | Kind::Empty)) => Some(not_supported),
        Ok(Some(Kind::Plain)) => {
            table::note_plain(identity);
            None
        }
        // Folders and pipes are the program's.
        Ok(None) => None,
        Err(error) => Some(error),
    }
}

/// The C library's return value for a stream over a file, unless that has records: those have no streams.
///
/// # Safety
/// See the crate.
unsafe fn stream(
    path: *const c_char,
    mode: *const c_char,
    real: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let creates = !mode.is_null() && unsafe { *mode } as u8 != b'r';
    // SAFETY: as the caller promises.
    match unsafe { reason_against(path, creates) } {
        None => real(),
        Some(error) => {
            fail::<i64>(&error);
            std::ptr::null_mut()
        }
    }
}

instead! { [fopen, fopen64](path: *const c_char, mode: *const c_char) -> *mut c_void, real => {
    // SAFETY: see the crate.
    unsafe { stream(path, mode, real) }
}}

instead! { [freopen, freopen64](
    path: *const c_char, mode: *const c_char, before: *mut c_void
) -> *mut c_void, real => {
    // SAFETY: see the crate.
    unsafe { stream(path, mode, real) }
}}

instead! { [fdopen](descriptor: c_int, mode: *const c_char) -> *mut c_void, real => {
    if table::get(descriptor).is_none() {
        return real();
    }
    refuse::<i64>(libc::ENOTSUP);
    std::ptr::null_mut()
}}

// The C library opens the file itself, in the process that it begins.
instead! { [posix_spawn_file_actions_addopen](
    actions: *mut c_void, descriptor: c_int, path: *const c_char, flags: c_int, mode: mode_t
) -> c_int, real => {
    // SAFETY: see the crate. It returns its error.
    match unsafe { reason_against(path, flags & libc::O_CREAT != 0) } {
        None => real(),
        Some(error) => error.raw_os_error().unwrap_or(libc::ENOTSUP),
    }
}}

// Bytes in memory would be those of the drive.
instead! { [mmap, mmap64](
    address: *mut c_void, length: size_t, protection: c_int, flags: c_int, descriptor: c_int, offset: off64_t
) -> *mut c_void, real => {
    if flags & libc::MAP_ANONYMOUS != 0 || table::get(descriptor).is_none() {
        return real();
    }
    refuse::<i64>(libc::ENODEV);
    libc::MAP_FAILED
}}

/// The C library's return value for a call on these files, unless one of them has records.
fn copied(files: [c_int; 2], number: c_int, real: impl FnOnce() -> ssize_t) -> ssize_t {
    match files.into_iter().any(|descriptor| table::get(descriptor).is_some()) {
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

const FICLONE: c_ulong = 0x4004_9409;
const FICLONERANGE: c_ulong = 0x4020_940d;
const FIDEDUPERANGE: c_ulong = 0xc018_9436;

instead! { [ioctl](descriptor: c_int, request: c_ulong, argument: c_long) -> c_int, real => {
    // The source of a clone is its argument.
    let clones_ours = request == FICLONE && table::get(argument as c_int).is_some();
    match request {
        _ if table::get(descriptor).is_none() && !clones_ours => real(),
        FICLONE | FICLONERANGE | FIDEDUPERANGE => refuse(libc::EOPNOTSUPP),
        _ => refuse(libc::ENOTTY),
    }
}}

// A file that says itself how much of it is in use has no room set aside.
instead! { [fallocate, fallocate64](
    descriptor: c_int, mode: c_int, offset: off64_t, length: off64_t
) -> c_int, real => match table::get(descriptor) {
    Some(_) => refuse(libc::EOPNOTSUPP),
    None => real(),
}}

instead! { [posix_fallocate, posix_fallocate64](
    descriptor: c_int, offset: off64_t, length: off64_t
) -> c_int, real => match table::get(descriptor) {
    // It returns its error.
    Some(_) => libc::EOPNOTSUPP,
    None => real(),
}}
