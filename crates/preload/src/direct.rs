//! System calls that a program makes by their number, with the C library's `syscall`. Those that open or
//! shorten a file by its path do as their functions; all that get a descriptor find a placeholder.

use std::ffi::{c_char, c_int, c_long};
use std::sync::atomic::Ordering;

use flashgrain_record_files::Kind;
use libc::mode_t;

use super::failure::refuse;
use super::lengths::truncate64;
use super::opening::{open64, openat64, opened_by};
use super::probe::{HAS_LOCKED, is_ours, kind_at};
use super::real::instead;

/// The first members of the kernel's `open_how`.
#[repr(C)]
struct How {
    flags: u64,
    mode: u64,
    resolve: u64,
}

instead! { [syscall](
    number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long
) -> c_long, real => {
    // SAFETY: see the crate; the kernel documents the arguments.
    unsafe {
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open if is_path(libc::AT_FDCWD, a) => {
                open64(a as *const c_char, b as c_int, c as mode_t).into()
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat if is_path(libc::AT_FDCWD, a) => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                open64(a as *const c_char, flags, b as mode_t).into()
            }
            libc::SYS_openat if is_path(a as c_int, b) => {
                openat64(a as c_int, b as *const c_char, c as c_int, d as mode_t).into()
            }
            libc::SYS_openat2 if is_path(a as c_int, b) => open_as(a as c_int, b as *const c_char, c, d, real),
            libc::SYS_fcntl => {
                HAS_LOCKED.store(true, Ordering::Relaxed);
                real()
            }
            libc::SYS_truncate if is_path(libc::AT_FDCWD, a) => truncate64(a as *const c_char, b).into(),
            _ => real(),
        }
    }
}}

/// Whether the path is a matter of this library.
///
/// # Safety
/// It is a C string, or null.
unsafe fn is_path(folder: c_int, path: c_long) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_ours(folder, path as *const c_char, true) }
}

/// `openat2`, whose ways of resolving a path no other call has.
///
/// # Safety
/// See the crate.
unsafe fn open_as(
    folder: c_int,
    path: *const c_char,
    how: c_long,
    how_bytes: c_long,
    real: impl Fn() -> c_long,
) -> c_long {
    if how == 0 || how_bytes < size_of::<How>() as c_long {
        return real();
    }
    // SAFETY: the caller promises that the argument is as long as it says.
    let how = unsafe { &*(how as *const How) };
    // SAFETY: as the caller promises.
    let may_be_records = || unsafe { !matches!(kind_at(folder, path), Ok(Some(Kind::Plain))) };
    if how.resolve != 0 && how.flags as c_int & libc::O_PATH == 0 && may_be_records() {
        return refuse(libc::EOPNOTSUPP);
    }
    let real = || c_int::try_from(real()).unwrap_or(-1);
    // SAFETY: as the caller promises.
    unsafe { opened_by(folder, path, how.flags as c_int, how.mode as mode_t, real) }.into()
}
