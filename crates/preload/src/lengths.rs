//! How long a file is, becomes, and where in it a program is.

use std::ffi::{c_char, c_int};

use libc::{mode_t, off64_t, stat64 as Stat, statx as Statx};

use super::failure::count;
use super::opened;
use super::real::{instead, real};
use super::settings::named;

instead! { [lseek, lseek64](descriptor: c_int, offset: off64_t, whence: c_int) -> off64_t, real => {
    match opened::get(descriptor) {
        Some(own) => count(own.seek(descriptor, offset, whence).map(|at| at as usize)) as off64_t,
        None => real(),
    }
}}

instead! { [ftruncate, ftruncate64](descriptor: c_int, length: off64_t) -> c_int, real => {
    match (opened::get(descriptor), u64::try_from(length)) {
        (Some(own), Ok(length)) => count(own.set_length(descriptor, length).map(|()| 0)) as c_int,
        _ => real(),
    }
}}

instead! { [truncate, truncate64](path: *const c_char, length: off64_t) -> c_int, real => {
    // SAFETY: see the crate.
    match (unsafe { named(path) }, u64::try_from(length)) {
        (Some(_), Ok(length)) => {
            let set = |descriptor| opened::set_length_of(descriptor, length).map(|()| 0);
            // SAFETY: see the crate.
            unsafe { with_file(libc::AT_FDCWD, path, libc::O_RDWR, set) }.map_or(-1, |set| count(set) as c_int)
        }
        _ => real(),
    }
}}

/// Opens a file for as long as `act` takes; `None`, and `errno` says why, if that fails.
///
/// # Safety
/// The path is a C string.
unsafe fn with_file<T>(
    folder: c_int,
    path: *const c_char,
    access: c_int,
    act: impl FnOnce(c_int) -> T,
) -> Option<T> {
    let flags = access | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let descriptor = real!(openat64(
        folder => c_int, path => *const c_char, flags => c_int, 0 => mode_t) -> c_int);
    if descriptor < 0 {
        return None;
    }
    let done = act(descriptor);
    real!(close(descriptor => c_int) -> c_int);
    Some(done)
}

/// The length that a program would find in an open file.
fn length_of_open(descriptor: c_int) -> Option<u64> {
    opened::get(descriptor).and_then(|own| own.length(descriptor).ok())
}

/// The same of a file that is named by a folder and a path, or by its descriptor alone.
///
/// # Safety
/// As [`named`].
unsafe fn length_at(folder: c_int, path: *const c_char) -> Option<u64> {
    // SAFETY: as the caller promises.
    if path.is_null() || unsafe { *path } == 0 {
        return length_of_open(folder);
    }
    // SAFETY: as the caller promises.
    unsafe {
        named(path)?;
        with_file(folder, path, libc::O_RDONLY, |descriptor| opened::length_of(descriptor).ok().flatten())?
    }
}

/// Puts the length of a file with something in it into the result of a `stat` that has worked.
///
/// # Safety
/// The result may be written to.
unsafe fn corrected(done: c_int, result: *mut Stat, length: impl FnOnce() -> Option<u64>) -> c_int {
    if done != 0 {
        return done;
    }
    // SAFETY: as the caller promises; the C library has written it.
    let result = unsafe { &mut *result };
    if result.st_mode & libc::S_IFMT == libc::S_IFREG
        && result.st_size > 0
        && let Some(length) = length()
    {
        result.st_size = length as off64_t;
    }
    done
}

instead! { [stat, stat64, lstat, lstat64](path: *const c_char, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, || length_at(libc::AT_FDCWD, path)) }
}}

instead! { [fstat, fstat64](descriptor: c_int, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, || length_of_open(descriptor)) }
}}

instead! { [fstatat, fstatat64](
    folder: c_int, path: *const c_char, result: *mut Stat, flags: c_int
) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, || length_at(folder, path)) }
}}

instead! { [statx](
    folder: c_int, path: *const c_char, flags: c_int, mask: u32, result: *mut Statx
) -> c_int, real => {
    let done = real();
    // SAFETY: see the crate.
    unsafe {
        if done == 0
            && u32::from((*result).stx_mode) & libc::S_IFMT == libc::S_IFREG
            && (*result).stx_size > 0
            && let Some(length) = length_at(folder, path)
        {
            (*result).stx_size = length;
        }
    }
    done
}}
