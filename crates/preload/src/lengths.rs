//! How long a file is, becomes, and where in it a program is.

use std::ffi::{c_char, c_int};
use std::io::Result;

use flashgrain_record_files::lock::TransferLock;
use flashgrain_record_files::{Kind, Records};
use libc::{mode_t, off64_t, stat64 as Stat, statx as Statx};

use super::data::{Identity, borrowed, checked, close};
use super::failure::{count, fail};
use super::probe::{is_ours, kind_at, kind_of};
use super::real::{instead, real};
use super::table;

instead! { [lseek, lseek64, __lseek](descriptor: c_int, offset: off64_t, whence: c_int) -> off64_t, real => {
    match table::get(descriptor) {
        Some(own) => count(own.seek(offset, whence).map(|at| at as usize)) as off64_t,
        None => real(),
    }
}}

instead! { [ftruncate, ftruncate64](descriptor: c_int, length: off64_t) -> c_int, real => {
    match (table::get(descriptor), u64::try_from(length)) {
        (Some(own), Ok(length)) => count(own.set_length(length).map(|()| 0)) as c_int,
        // The kernel refuses a negative length, and a placeholder.
        _ => real(),
    }
}}

instead! { [truncate, truncate64](path: *const c_char, length: off64_t) -> c_int, real => {
    // SAFETY: see the crate.
    match unsafe { is_ours(libc::AT_FDCWD, path, true).then(|| kind_at(libc::AT_FDCWD, path)) } {
        Some(Ok(Some(Kind::Records | Kind::Empty))) => {}
        Some(Err(error)) => return fail(&error),
        _ => return real(),
    }
    // SAFETY: see the crate.
    let descriptor = unsafe { super::opening::open64(path, libc::O_WRONLY | libc::O_CLOEXEC, 0) };
    if descriptor < 0 {
        return -1;
    }
    // SAFETY: the descriptor is this function's.
    let set = unsafe { ftruncate64(descriptor, length) };
    let error = std::io::Error::last_os_error();
    // SAFETY: the same.
    unsafe { super::descriptors::close(descriptor) };
    if set == 0 { 0 } else { fail(&error) }
}}

/// The length that a program finds in a file of records with a path; `None` if it is none.
///
/// # Safety
/// See the crate.
unsafe fn length_of_named(
    folder: c_int,
    path: *const c_char,
    identity: Identity,
    file_bytes: u64,
) -> Result<Option<u64>> {
    // SAFETY: as the caller promises.
    if unsafe { kind_of(folder, path, identity, file_bytes) }? != Kind::Records {
        return Ok(None);
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let descriptor = checked(real!(openat64(
        folder => c_int, path => *const c_char, flags => c_int, 0 => mode_t) -> c_int))?;
    let file = borrowed(descriptor);
    let locked = TransferLock::shared(&file);
    let records = locked.and_then(|_locked| Records::open(&*file));
    close(descriptor);
    Ok(records?.map(|records| records.length_bytes()))
}

/// The length of a regular file that the kernel has found by a folder and a path, or by its descriptor
/// alone, as a program sees it. Where it cannot be known, it is the kernel's: a later call says why.
///
/// # Safety
/// See the crate.
unsafe fn length_at(
    (folder, path): (c_int, *const c_char),
    follows: bool,
    identity: Identity,
    file_bytes: u64,
) -> u64 {
    // SAFETY: as the caller promises.
    let is_descriptor = path.is_null() || unsafe { *path } == 0;
    let own = match is_descriptor {
        true => table::get(folder),
        // SAFETY: as the caller promises.
        false if !unsafe { is_ours(folder, path, follows) } => return file_bytes,
        false => table::find(identity),
    };
    let length = match own {
        Some(own) => own.length().map(Some),
        None if is_descriptor => return file_bytes,
        // SAFETY: as the caller promises.
        None => unsafe { length_of_named(folder, path, identity, file_bytes) },
    };
    length.ok().flatten().unwrap_or(file_bytes)
}

/// Puts the length of a file with something in it into the result of a `stat` that has worked.
///
/// # Safety
/// The result may be written to. See the crate.
unsafe fn corrected(done: c_int, result: *mut Stat, at: (c_int, *const c_char), follows: bool) -> c_int {
    if done != 0 {
        return done;
    }
    // SAFETY: as the caller promises; the C library has written it.
    let result = unsafe { &mut *result };
    if result.st_mode & libc::S_IFMT == libc::S_IFREG && result.st_size > 0 {
        let identity = Identity { device: result.st_dev, inode: result.st_ino };
        // SAFETY: as the caller promises.
        result.st_size = unsafe { length_at(at, follows, identity, result.st_size as u64) } as off64_t;
    }
    done
}

instead! { [stat, stat64](path: *const c_char, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (libc::AT_FDCWD, path), true) }
}}

instead! { [lstat, lstat64](path: *const c_char, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (libc::AT_FDCWD, path), false) }
}}

instead! { [fstat, fstat64](descriptor: c_int, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (descriptor, std::ptr::null()), false) }
}}

instead! { [fstatat, fstatat64](
    folder: c_int, path: *const c_char, result: *mut Stat, flags: c_int
) -> c_int, real => {
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (folder, path), follows) }
}}

// Programs that were built with a C library before 2.33 call these, with the version of the result.
instead! { [__xstat, __xstat64](version: c_int, path: *const c_char, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (libc::AT_FDCWD, path), true) }
}}

instead! { [__lxstat, __lxstat64](version: c_int, path: *const c_char, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (libc::AT_FDCWD, path), false) }
}}

instead! { [__fxstat, __fxstat64](version: c_int, descriptor: c_int, result: *mut Stat) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (descriptor, std::ptr::null()), false) }
}}

instead! { [__fxstatat, __fxstatat64](
    version: c_int, folder: c_int, path: *const c_char, result: *mut Stat, flags: c_int
) -> c_int, real => {
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    // SAFETY: see the crate.
    unsafe { corrected(real(), result, (folder, path), follows) }
}}

instead! { [statx](
    folder: c_int, path: *const c_char, flags: c_int, mask: u32, result: *mut Statx
) -> c_int, real => {
    let done = real();
    if done != 0 {
        return done;
    }
    // SAFETY: see the crate; the C library has written it.
    let result = unsafe { &mut *result };
    if u32::from(result.stx_mode) & libc::S_IFMT == libc::S_IFREG && result.stx_size > 0 {
        let device = libc::makedev(result.stx_dev_major, result.stx_dev_minor);
        let identity = Identity { device, inode: result.stx_ino };
        let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
        // SAFETY: see the crate.
        result.stx_size = unsafe { length_at((folder, path), follows, identity, result.stx_size) };
    }
    done
}}
