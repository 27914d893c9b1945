//! How descriptors are closed and duplicated, and the effects of `fcntl` and its like on them.

use std::ffi::{c_int, c_long, c_uint};
use std::io::{Error, Result};
use std::sync::atomic::Ordering;

use flashgrain_record_files::lock::FIRST_LOCKED_BYTE;
use libc::{flock as Lock, off64_t};

use super::data::{PRIVATE, checked, close as close_real};
use super::descriptor_set::DESCRIPTORS_MAX;
use super::failure::{count, fail, refuse};
use super::opened::Opened;
use super::probe::HAS_LOCKED;
use super::real::{instead, real};
use super::table;

instead! { [close, __close](descriptor: c_int) -> c_int, real => {
    if PRIVATE.has(descriptor) {
        // The program knows of none: it closes whatever it may have.
        return refuse(libc::EBADF);
    }
    table::remove(descriptor);
    real()
}}

const CLOSE_RANGE_CLOEXEC: c_int = 4;

instead! { [close_range](first: c_uint, last: c_uint, flags: c_int) -> c_int, real => {
    if flags & CLOSE_RANGE_CLOEXEC != 0 || first > last {
        return real();
    }
    let (from, to) = (signed(first), signed(last));
    table::listed(from, to).into_iter().for_each(table::remove);
    let mut first = first;
    for private in table::private(from, to) {
        let private = private as c_uint;
        if first < private && close_between(first, private - 1, flags) != 0 {
            return -1;
        }
        first = private + 1;
    }
    if first <= last { close_between(first, last, flags) } else { 0 }
}}

fn signed(descriptor: c_uint) -> c_int {
    c_int::try_from(descriptor).unwrap_or(c_int::MAX)
}

fn close_between(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    real!(close_range(first => c_uint, last => c_uint, flags => c_int) -> c_int)
}

instead! { [closefrom](first: c_int) -> (), real => {
    let first = c_uint::try_from(first).unwrap_or(0);
    // SAFETY: see the crate.
    if unsafe { close_range(first, c_uint::MAX, 0) } != 0 {
        real();
    }
}}

/// Whether a file of records would become one of the three streams of a process, or of one that is begun:
/// streams are written by the C library itself.
fn is_for_streams(descriptor: c_int, other: c_int) -> bool {
    (0..=2).contains(&other) && descriptor != other && table::get(descriptor).is_some()
}

/// The second descriptor is the first one's duplicate, if that has worked.
fn duplicated(descriptor: c_int, other: c_int) -> c_int {
    if other < 0 || other == descriptor {
        return other;
    }
    match table::get(descriptor) {
        None => table::remove(other),
        Some(_) if other <= 2 => {
            close_real(other);
            return refuse(libc::EINVAL);
        }
        Some(_) if other as usize >= DESCRIPTORS_MAX => {
            close_real(other);
            return refuse(libc::EMFILE);
        }
        Some(opened) => table::insert(other, opened),
    }
    other
}

/// The return value of a call that puts a duplicate at a place.
fn duplicated_to(descriptor: c_int, other: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if is_for_streams(descriptor, other) {
        return refuse(libc::EINVAL);
    }
    match table::make_free(other) {
        Ok(()) => duplicated(descriptor, real()),
        Err(error) => fail(&error),
    }
}

instead! { [dup](descriptor: c_int) -> c_int, real => duplicated(descriptor, real()) }

instead! { [dup2, __dup2](descriptor: c_int, other: c_int) -> c_int, real => {
    duplicated_to(descriptor, other, real)
}}

instead! { [dup3](descriptor: c_int, other: c_int, flags: c_int) -> c_int, real => {
    duplicated_to(descriptor, other, real)
}}

instead! { [fcntl, fcntl64, __fcntl](descriptor: c_int, command: c_int, argument: c_long) -> c_int, real => {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => return duplicated(descriptor, real()),
        libc::F_SETLK | libc::F_SETLKW => HAS_LOCKED.store(true, Ordering::Relaxed),
        _ => {}
    }
    let Some(own) = table::get(descriptor) else { return real() };
    match command {
        libc::F_GETFL => own.status(),
        libc::F_SETFL => {
            own.set_status(argument as c_int);
            0
        }
        libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW
        | libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            // SAFETY: see the crate.
            match unsafe { (argument as *mut Lock).as_mut() } {
                Some(lock) => count(locked(&own, command, lock).map(|()| 0)) as c_int,
                None => refuse(libc::EFAULT),
            }
        }
        // The kernel implements all other commands of a placeholder.
        _ => real(),
    }
}}

/// Sets or finds a lock of the program, on bytes as it counts them.
fn locked(own: &Opened, command: c_int, asked: &mut Lock) -> Result<()> {
    let invalid = || Error::from_raw_os_error(libc::EINVAL);
    let from = match c_int::from(asked.l_whence) {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => own.position(),
        libc::SEEK_END => own.length()?,
        _ => return Err(invalid()),
    };
    let start =
        i64::try_from(from).ok().and_then(|from| from.checked_add(asked.l_start)).ok_or_else(invalid)?;
    if !(0..FIRST_LOCKED_BYTE).contains(&start) {
        return Err(invalid());
    }
    let mut lock = *asked;
    (lock.l_whence, lock.l_start) = (libc::SEEK_SET as i16, start);
    // To the end of all files is to the first byte with a lock that the program does not know.
    if lock.l_len == 0 || lock.l_len > FIRST_LOCKED_BYTE - start {
        lock.l_len = FIRST_LOCKED_BYTE - start;
    }
    checked(own.handed_on(
        |data| real!(fcntl(data => c_int, command => c_int, &raw mut lock as c_long => c_long) -> c_int),
    ))?;
    if let libc::F_GETLK | libc::F_OFD_GETLK = command {
        if lock.l_start + lock.l_len == FIRST_LOCKED_BYTE {
            lock.l_len = 0;
        }
        *asked = lock;
    }
    Ok(())
}

instead! { [lockf, lockf64](descriptor: c_int, command: c_int, length: off64_t) -> c_int, real => {
    HAS_LOCKED.store(true, Ordering::Relaxed);
    let Some(own) = table::get(descriptor) else { return real() };
    // SAFETY: it is plain data.
    let mut lock: Lock = unsafe { std::mem::zeroed() };
    (lock.l_whence, lock.l_len) = (libc::SEEK_CUR as i16, length);
    let (command, kind) = match command {
        libc::F_LOCK => (libc::F_SETLKW, libc::F_WRLCK),
        libc::F_TLOCK => (libc::F_SETLK, libc::F_WRLCK),
        libc::F_ULOCK => (libc::F_SETLK, libc::F_UNLCK),
        libc::F_TEST => (libc::F_GETLK, libc::F_WRLCK),
        _ => return refuse(libc::EINVAL),
    };
    lock.l_type = kind as i16;
    match locked(&own, command, &mut lock) {
        Ok(()) if command == libc::F_GETLK && c_int::from(lock.l_type) != libc::F_UNLCK => refuse(libc::EACCES),
        done => count(done.map(|()| 0)) as c_int,
    }
}}
