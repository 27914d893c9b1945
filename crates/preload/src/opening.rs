//! How files are opened, closed and duplicated.

use std::ffi::{CStr, c_char, c_int, c_long};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::mode_t;

use super::failure::{fail, refuse};
use super::opened;
use super::real::{instead, real};
use super::settings::named;

/// Files that were refused, of which the first is named on standard error.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Opens a file by `open`, which gets the flags to open it with, and takes it in if it is to have records.
fn opened_by(named: Option<&CStr>, flags: c_int, open: impl FnOnce(c_int) -> c_int) -> c_int {
    let Some(path) = named.filter(|_| flags & (libc::O_PATH | libc::O_DIRECTORY) == 0) else {
        return open(flags);
    };
    // Heads are read where records are written, and the position is kept here.
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let access = if writes { libc::O_RDWR } else { libc::O_RDONLY };
    // Another program would find the bytes of the drive, and write over them.
    let access = access | libc::O_CLOEXEC;
    let descriptor = open(flags & !(libc::O_ACCMODE | libc::O_APPEND | libc::O_DIRECT) | access);
    if descriptor < 0 {
        return descriptor;
    }
    match opened::add(descriptor, writes, flags & libc::O_APPEND != 0) {
        Ok(()) => descriptor,
        Err(error) => {
            if REFUSED.fetch_add(1, Ordering::Relaxed) == 0 {
                eprintln!("flashgrain: {}: {error}", path.to_string_lossy());
            }
            real!(close(descriptor => c_int) -> c_int);
            fail(&error)
        }
    }
}

instead! { [open, open64](path: *const c_char, flags: c_int, mode: mode_t) -> c_int, _real => {
    // SAFETY: see the crate.
    let named = unsafe { named(path) };
    opened_by(named, flags, |flags| {
        real!(open64(path => *const c_char, flags => c_int, mode => mode_t) -> c_int)
    })
}}

instead! { [openat, openat64](folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, _real => {
    // SAFETY: see the crate.
    let named = unsafe { named(path) };
    opened_by(named, flags, |flags| {
        real!(openat64(folder => c_int, path => *const c_char, flags => c_int, mode => mode_t) -> c_int)
    })
}}

// Programs that are built with checks call these instead, where they give no mode.
instead! { [__open_2, __open64_2](path: *const c_char, flags: c_int) -> c_int, _real => {
    // SAFETY: see the crate.
    unsafe { open64(path, flags, 0) }
}}

instead! { [__openat_2, __openat64_2](folder: c_int, path: *const c_char, flags: c_int) -> c_int, _real => {
    // SAFETY: see the crate.
    unsafe { openat64(folder, path, flags, 0) }
}}

instead! { [creat, creat64](path: *const c_char, mode: mode_t) -> c_int, _real => {
    // SAFETY: see the crate.
    unsafe { open64(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
}}

instead! { [close](descriptor: c_int) -> c_int, real => {
    opened::remove(descriptor);
    real()
}}

/// Whether a file of records would become one of the three streams of a process, or of one that is begun.
fn is_for_streams(descriptor: c_int, other: c_int) -> bool {
    (0..=2).contains(&other) && descriptor != other && opened::get(descriptor).is_some()
}

/// The second descriptor is the first one's duplicate, if that has worked.
fn duplicated(descriptor: c_int, other: c_int) -> c_int {
    if other >= 0 && other != descriptor {
        opened::duplicate(descriptor, other);
    }
    other
}

instead! { [dup](descriptor: c_int) -> c_int, real => duplicated(descriptor, real()) }

instead! { [dup2](descriptor: c_int, other: c_int) -> c_int, real => match is_for_streams(descriptor, other) {
    true => refuse(libc::EINVAL),
    false => duplicated(descriptor, real()),
}}

instead! { [dup3](descriptor: c_int, other: c_int, flags: c_int) -> c_int, real => {
    match is_for_streams(descriptor, other) {
        true => refuse(libc::EINVAL),
        false => duplicated(descriptor, real()),
    }
}}

instead! { [fcntl, fcntl64](descriptor: c_int, command: c_int, argument: c_long) -> c_int, real => match command {
    libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(descriptor, real()),
    _ => real(),
}}
