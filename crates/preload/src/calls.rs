//! What programs call, instead of the C library's functions of the same names.
//!
//! The safety comments of all of them rest on one promise: programs call them as the C library's, with
//! strings that end, buffers that are as long as they say, and results that may be written to.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::io::{Error, Result};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{iovec, mode_t, off64_t, size_t, ssize_t, stat64 as Stat, statx as Statx};

use super::opened::{self, Opened};
use super::real::real;
use super::settings::Settings;

/// Files that were refused, of which the first is named on standard error.
static REFUSED: AtomicU32 = AtomicU32::new(0);

fn fail<T: From<i8>>(error: &Error) -> T {
    // SAFETY: it is this thread's.
    unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
    T::from(-1)
}

fn refuse<T: From<i8>>(number: c_int) -> T {
    fail(&Error::from_raw_os_error(number))
}

fn count(done: Result<usize>) -> ssize_t {
    match done {
        Ok(count) => count as ssize_t,
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            refuse::<i64>(libc::EINVAL) as ssize_t
        }
        Err(error) => fail::<i64>(&error) as ssize_t,
    }
}

/// The path, if it names a file of records.
///
/// # Safety
/// It is a C string, or null, and lives as long as the result.
unsafe fn named<'a>(path: *const c_char) -> Option<&'a CStr> {
    if path.is_null() || opened::is_inside() {
        return None;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) };
    Settings::get().has(path).then_some(path)
}

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

macro_rules! opens {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: see the module.
            let named = unsafe { named(path) };
            opened_by(named, flags, |flags| {
                real!($name(path => *const c_char, flags => c_int, mode => mode_t) -> c_int)
            })
        }
    )*};
}
opens!(open, open64);

macro_rules! opens_at {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: see the module.
            let named = unsafe { named(path) };
            opened_by(named, flags, |flags| {
                real!($name(folder => c_int, path => *const c_char, flags => c_int, mode => mode_t) -> c_int)
            })
        }
    )*};
}
opens_at!(openat, openat64);

/// What programs that are built with checks call instead of `open` without a mode.
macro_rules! opens_checked {
    ($($name:ident as $plain:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: see the module.
            unsafe { $plain(path, flags, 0) }
        }
    )*};
}
opens_checked!(__open_2 as open, __open64_2 as open64);

/// The same of `openat`.
macro_rules! opens_checked_at {
    ($($name:ident as $plain:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: see the module.
            unsafe { $plain(folder, path, flags, 0) }
        }
    )*};
}
opens_checked_at!(__openat_2 as openat, __openat64_2 as openat64);

/// Streams would go past this library: files of records have none.
macro_rules! streams {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut c_void {
            // SAFETY: see the module.
            if unsafe { named(path) }.is_some() {
                refuse::<i64>(libc::ENOTSUP);
                return std::ptr::null_mut();
            }
            real!($name(path => *const c_char, mode => *const c_char) -> *mut c_void)
        }
    )*};
}
streams!(fopen, fopen64);

/// As `fopen`.
macro_rules! streams_again {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void {
            // SAFETY: see the module.
            if unsafe { named(path) }.is_some() {
                refuse::<i64>(libc::ENOTSUP);
                return std::ptr::null_mut();
            }
            real!($name(path => *const c_char, mode => *const c_char, stream => *mut c_void) -> *mut c_void)
        }
    )*};
}
streams_again!(freopen, freopen64);

macro_rules! truncates_named {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, length: off64_t) -> c_int {
            // SAFETY: see the module.
            let (true, Ok(length_bytes)) = (unsafe { named(path) }.is_some(), u64::try_from(length)) else {
                return real!($name(path => *const c_char, length => off64_t) -> c_int);
            };
            let flags = libc::O_RDWR | libc::O_CLOEXEC;
            let descriptor = real!(open64(path => *const c_char, flags => c_int, 0 => mode_t) -> c_int);
            if descriptor < 0 {
                return descriptor;
            }
            let done = opened::set_length_of(descriptor, length_bytes);
            real!(close(descriptor => c_int) -> c_int);
            count(done.map(|()| 0)) as c_int
        }
    )*};
}
truncates_named!(truncate, truncate64);

macro_rules! creates {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: mode_t) -> c_int {
            // SAFETY: see the module.
            unsafe { open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
        }
    )*};
}
creates!(creat, creat64);

#[unsafe(no_mangle)]
unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    opened::remove(descriptor);
    real!(close(descriptor => c_int) -> c_int)
}

/// Reads into a buffer of the program.
///
/// # Safety
/// See the module.
unsafe fn read_into(
    own: &Opened,
    descriptor: c_int,
    (buffer, length): (*mut c_void, size_t),
    offset: Option<u64>,
) -> Result<usize> {
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    own.read(descriptor, bytes, offset)
}

/// Writes a buffer of the program.
///
/// # Safety
/// See the module.
unsafe fn write_from(
    own: &Opened,
    descriptor: c_int,
    (buffer, length): (*const c_void, size_t),
    offset: Option<u64>,
) -> Result<usize> {
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: as the caller promises.
    own.write(descriptor, unsafe { slice::from_raw_parts(buffer.cast::<u8>(), length) }, offset)
}

fn place(offset: off64_t) -> Result<Option<u64>> {
    u64::try_from(offset).map(Some).map_err(|_negative| Error::from_raw_os_error(libc::EINVAL))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(descriptor: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    match opened::get(descriptor) {
        // SAFETY: see the module.
        Some(own) => count(unsafe { read_into(&own, descriptor, (buffer, length), None) }),
        None => real!(read(descriptor => c_int, buffer => *mut c_void, length => size_t) -> ssize_t),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    match opened::get(descriptor) {
        // SAFETY: see the module.
        Some(own) => count(unsafe { write_from(&own, descriptor, (buffer, length), None) }),
        None => real!(write(descriptor => c_int, buffer => *const c_void, length => size_t) -> ssize_t),
    }
}

macro_rules! reads_at {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, buffer: *mut c_void, length: size_t, offset: off64_t) -> ssize_t {
            match opened::get(descriptor) {
                // SAFETY: see the module.
                Some(own) => count(place(offset).and_then(|offset| unsafe { read_into(&own, descriptor, (buffer, length), offset) })),
                None => real!($name(descriptor => c_int, buffer => *mut c_void, length => size_t, offset => off64_t) -> ssize_t),
            }
        }
    )*};
}
reads_at!(pread, pread64);

macro_rules! writes_at {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, buffer: *const c_void, length: size_t, offset: off64_t) -> ssize_t {
            match opened::get(descriptor) {
                // SAFETY: see the module.
                Some(own) => count(place(offset).and_then(|offset| unsafe { write_from(&own, descriptor, (buffer, length), offset) })),
                None => real!($name(descriptor => c_int, buffer => *const c_void, length => size_t, offset => off64_t) -> ssize_t),
            }
        }
    )*};
}
writes_at!(pwrite, pwrite64);

/// Reads into several buffers of the program, until one is not filled.
///
/// # Safety
/// See the module.
unsafe fn read_vectors(
    own: &Opened,
    descriptor: c_int,
    (vectors, length): (*const iovec, c_int),
    offset: Option<u64>,
) -> Result<usize> {
    let mut read = 0;
    for vector in 0..usize::try_from(length).unwrap_or(0) {
        // SAFETY: as the caller promises.
        let iovec { iov_base, iov_len } = unsafe { *vectors.add(vector) };
        let at = offset.map(|offset| offset + read as u64);
        // SAFETY: as the caller promises.
        let part = unsafe { read_into(own, descriptor, (iov_base, iov_len), at) }?;
        read += part;
        if part < iov_len {
            break;
        }
    }
    Ok(read)
}

/// Writes several buffers of the program as one record.
///
/// # Safety
/// See the module.
unsafe fn write_vectors(
    own: &Opened,
    descriptor: c_int,
    (vectors, length): (*const iovec, c_int),
    offset: Option<u64>,
) -> Result<usize> {
    let mut record = Vec::new();
    for vector in 0..usize::try_from(length).unwrap_or(0) {
        // SAFETY: as the caller promises.
        let iovec { iov_base, iov_len } = unsafe { *vectors.add(vector) };
        if iov_len > 0 {
            // SAFETY: as the caller promises.
            record.extend_from_slice(unsafe { slice::from_raw_parts(iov_base.cast::<u8>(), iov_len) });
        }
    }
    if record.is_empty() { Ok(0) } else { own.write(descriptor, &record, offset) }
}

macro_rules! vectors {
    ($($name:ident by $by:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, vectors: *const iovec, length: c_int) -> ssize_t {
            match opened::get(descriptor) {
                // SAFETY: see the module.
                Some(own) => count(unsafe { $by(&own, descriptor, (vectors, length), None) }),
                None => real!($name(descriptor => c_int, vectors => *const iovec, length => c_int) -> ssize_t),
            }
        }
    )*};
}
vectors!(readv by read_vectors, writev by write_vectors);

macro_rules! vectors_at {
    ($($name:ident by $by:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t) -> ssize_t {
            match opened::get(descriptor) {
                // SAFETY: see the module.
                Some(own) => count(place(offset).and_then(|offset| unsafe { $by(&own, descriptor, (vectors, length), offset) })),
                None => real!($name(descriptor => c_int, vectors => *const iovec, length => c_int, offset => off64_t) -> ssize_t),
            }
        }
    )*};
}
vectors_at!(preadv by read_vectors, preadv64 by read_vectors, pwritev by write_vectors, pwritev64 by write_vectors);

macro_rules! seeks {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, offset: off64_t, whence: c_int) -> off64_t {
            match opened::get(descriptor) {
                Some(own) => count(own.seek(descriptor, offset, whence).map(|at| at as usize)) as off64_t,
                None => real!($name(descriptor => c_int, offset => off64_t, whence => c_int) -> off64_t),
            }
        }
    )*};
}
seeks!(lseek, lseek64);

macro_rules! truncates {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, length: off64_t) -> c_int {
            match (opened::get(descriptor), u64::try_from(length)) {
                (Some(own), Ok(length)) => {
                    count(own.set_length(descriptor, length).map(|()| 0)) as c_int
                }
                _ => real!($name(descriptor => c_int, length => off64_t) -> c_int),
            }
        }
    )*};
}
truncates!(ftruncate, ftruncate64);

/// The length that a program would find in an open file.
fn length_of_open(descriptor: c_int) -> Option<u64> {
    opened::get(descriptor).and_then(|own| own.length(descriptor).ok())
}

/// The length that a program would find in a file with this path.
///
/// # Safety
/// As [`named`].
unsafe fn length_of_named(folder: c_int, path: *const c_char) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe { named(path) }?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let descriptor = real!(openat64(
        folder => c_int, path => *const c_char, flags => c_int, 0 => mode_t) -> c_int);
    if descriptor < 0 {
        return None;
    }
    let length = opened::length_of(descriptor).ok().flatten();
    real!(close(descriptor => c_int) -> c_int);
    length
}

/// Whether a result of `stat` is of a file with something in it.
///
/// # Safety
/// The result was written.
unsafe fn has_bytes(result: *const Stat) -> bool {
    // SAFETY: as the caller promises.
    let result = unsafe { &*result };
    result.st_mode & libc::S_IFMT == libc::S_IFREG && result.st_size > 0
}

macro_rules! stats {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, result: *mut Stat) -> c_int {
            let done = real!($name(path => *const c_char, result => *mut Stat) -> c_int);
            // SAFETY: see the module.
            unsafe {
                if done == 0 && has_bytes(result) && let Some(length) = length_of_named(libc::AT_FDCWD, path) {
                    (*result).st_size = length as off64_t;
                }
            }
            done
        }
    )*};
}
stats!(stat, stat64, lstat, lstat64);

macro_rules! stats_of_open {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, result: *mut Stat) -> c_int {
            let done = real!($name(descriptor => c_int, result => *mut Stat) -> c_int);
            if done == 0 && let Some(length) = length_of_open(descriptor) {
                // SAFETY: see the module.
                unsafe { (*result).st_size = length as off64_t };
            }
            done
        }
    )*};
}
stats_of_open!(fstat, fstat64);

/// The length of a file that is named by a folder and a path, or by its descriptor alone.
///
/// # Safety
/// As [`named`].
unsafe fn length_at(folder: c_int, path: *const c_char) -> Option<u64> {
    // SAFETY: as the caller promises.
    match path.is_null() || unsafe { *path } == 0 {
        true => length_of_open(folder),
        // SAFETY: as the caller promises.
        false => unsafe { length_of_named(folder, path) },
    }
}

macro_rules! stats_at {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: c_int, path: *const c_char, result: *mut Stat, flags: c_int) -> c_int {
            let done = real!($name(folder => c_int, path => *const c_char, result => *mut Stat, flags => c_int) -> c_int);
            // SAFETY: see the module.
            unsafe {
                if done == 0 && has_bytes(result) && let Some(length) = length_at(folder, path) {
                    (*result).st_size = length as off64_t;
                }
            }
            done
        }
    )*};
}
stats_at!(fstatat, fstatat64);

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: u32,
    result: *mut Statx,
) -> c_int {
    let done = real!(statx(
        folder => c_int, path => *const c_char, flags => c_int, mask => u32, result => *mut Statx) -> c_int);
    // SAFETY: see the module.
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
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(descriptor: c_int) -> c_int {
    let other = real!(dup(descriptor => c_int) -> c_int);
    if other >= 0 {
        opened::duplicate(descriptor, other);
    }
    other
}

/// Whether a file of records would become one of the three streams of a process, or of one that is begun.
fn is_for_streams(descriptor: c_int, other: c_int) -> bool {
    (0..=2).contains(&other) && descriptor != other && opened::get(descriptor).is_some()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(descriptor: c_int, other: c_int) -> c_int {
    if is_for_streams(descriptor, other) {
        return refuse(libc::EINVAL);
    }
    let done = real!(dup2(descriptor => c_int, other => c_int) -> c_int);
    if done >= 0 && done != descriptor {
        opened::duplicate(descriptor, done);
    }
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(descriptor: c_int, other: c_int, flags: c_int) -> c_int {
    if is_for_streams(descriptor, other) {
        return refuse(libc::EINVAL);
    }
    let done = real!(dup3(descriptor => c_int, other => c_int, flags => c_int) -> c_int);
    if done >= 0 {
        opened::duplicate(descriptor, done);
    }
    done
}

macro_rules! controls {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, command: c_int, argument: c_long) -> c_int {
            let done = real!($name(descriptor => c_int, command => c_int, argument => c_long) -> c_int);
            if done >= 0 && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                opened::duplicate(descriptor, done);
            }
            done
        }
    )*};
}
controls!(fcntl, fcntl64);

/// Bytes in memory would be those of the drive.
macro_rules! maps {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            address: *mut c_void, length: size_t, protection: c_int, flags: c_int, descriptor: c_int, offset: off64_t,
        ) -> *mut c_void {
            if flags & libc::MAP_ANONYMOUS == 0 && opened::get(descriptor).is_some() {
                refuse::<i64>(libc::ENODEV);
                return libc::MAP_FAILED;
            }
            real!($name(
                address => *mut c_void, length => size_t, protection => c_int, flags => c_int,
                descriptor => c_int, offset => off64_t) -> *mut c_void)
        }
    )*};
}
maps!(mmap, mmap64);

/// Programs read and write instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_offset: *mut off64_t,
    to: c_int,
    to_offset: *mut off64_t,
    length: size_t,
    flags: u32,
) -> ssize_t {
    if opened::get(from).is_some() || opened::get(to).is_some() {
        return refuse::<i64>(libc::EXDEV) as ssize_t;
    }
    real!(copy_file_range(
        from => c_int, from_offset => *mut off64_t, to => c_int, to_offset => *mut off64_t,
        length => size_t, flags => u32) -> ssize_t)
}

/// Programs read and write instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut off64_t,
    to: c_int,
    to_offset: *mut off64_t,
    length: size_t,
    flags: u32,
) -> ssize_t {
    if opened::get(from).is_some() || opened::get(to).is_some() {
        return refuse::<i64>(libc::EINVAL) as ssize_t;
    }
    real!(splice(
        from => c_int, from_offset => *mut off64_t, to => c_int, to_offset => *mut off64_t,
        length => size_t, flags => u32) -> ssize_t)
}

/// Programs read and write instead.
macro_rules! sends {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(to: c_int, from: c_int, offset: *mut off64_t, length: size_t) -> ssize_t {
            if opened::get(from).is_some() || opened::get(to).is_some() {
                return refuse::<i64>(libc::EINVAL) as ssize_t;
            }
            real!($name(to => c_int, from => c_int, offset => *mut off64_t, length => size_t) -> ssize_t)
        }
    )*};
}
sends!(sendfile, sendfile64);

/// Room is not set aside in a file that says itself how much of it is used.
macro_rules! allocates {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, mode: c_int, offset: off64_t, length: off64_t) -> c_int {
            if opened::get(descriptor).is_some() {
                return refuse(libc::EOPNOTSUPP);
            }
            real!($name(descriptor => c_int, mode => c_int, offset => off64_t, length => off64_t) -> c_int)
        }
    )*};
}
allocates!(fallocate, fallocate64);

/// As `fallocate`; the error is what it returns.
macro_rules! allocates_by_posix {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, offset: off64_t, length: off64_t) -> c_int {
            if opened::get(descriptor).is_some() {
                return libc::EOPNOTSUPP;
            }
            real!($name(descriptor => c_int, offset => off64_t, length => off64_t) -> c_int)
        }
    )*};
}
allocates_by_posix!(posix_fallocate, posix_fallocate64);
