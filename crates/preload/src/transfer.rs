//! How bytes are read and written.

use std::ffi::{c_int, c_void};
use std::io::{Error, Result};
use std::slice;

use libc::{iovec, off64_t, size_t, ssize_t};

use super::data::checked;
use super::failure::count;
use super::opened::Opened;
use super::real::{instead, real};
use super::table;

/// Vectors that one call may have.
const VECTORS_MAX: c_int = 1024;

/// Reads into a buffer of the program.
///
/// # Safety
/// See the crate.
unsafe fn read_into(
    own: &Opened,
    (buffer, length): (*mut c_void, size_t),
    offset: Option<u64>,
) -> Result<usize> {
    if length == 0 {
        return own.read(&mut [], offset);
    }
    // SAFETY: as the caller promises.
    own.read(unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), length) }, offset)
}

/// Writes a buffer of the program.
///
/// # Safety
/// See the crate.
unsafe fn write_from(
    own: &Opened,
    (buffer, length): (*const c_void, size_t),
    offset: Option<u64>,
) -> Result<usize> {
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: as the caller promises.
    own.write(unsafe { slice::from_raw_parts(buffer.cast::<u8>(), length) }, offset, false)
}

/// The buffers of a call.
///
/// # Safety
/// See the crate.
unsafe fn buffers<'a>(vectors: *const iovec, length: c_int) -> Result<&'a [iovec]> {
    match length {
        0 => Ok(&[]),
        // SAFETY: as the caller promises.
        1..=VECTORS_MAX => Ok(unsafe { slice::from_raw_parts(vectors, length as usize) }),
        _ => Err(Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// Reads into several buffers of the program, until one is not filled.
///
/// # Safety
/// See the crate.
unsafe fn read_vectors(
    own: &Opened,
    (vectors, length): (*const iovec, c_int),
    offset: Option<u64>,
) -> Result<usize> {
    let mut read = 0;
    // SAFETY: as the caller promises.
    for &iovec { iov_base, iov_len } in unsafe { buffers(vectors, length) }? {
        let at = offset.map(|offset| offset + read as u64);
        // SAFETY: as the caller promises.
        let part = unsafe { read_into(own, (iov_base, iov_len), at) }?;
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
/// See the crate.
unsafe fn write_vectors(
    own: &Opened,
    (vectors, length): (*const iovec, c_int),
    offset: Option<u64>,
    to_end: bool,
) -> Result<usize> {
    let mut record = Vec::new();
    // SAFETY: as the caller promises.
    for &iovec { iov_base, iov_len } in unsafe { buffers(vectors, length) }? {
        if iov_len > 0 {
            // SAFETY: as the caller promises.
            record.extend_from_slice(unsafe { slice::from_raw_parts(iov_base.cast::<u8>(), iov_len) });
        }
    }
    if record.is_empty() { Ok(0) } else { own.write(&record, offset, to_end) }
}

fn place(offset: off64_t) -> Result<Option<u64>> {
    u64::try_from(offset).map(Some).map_err(|_negative| Error::from_raw_os_error(libc::EINVAL))
}

/// The count of `transfer`, at a place or at the position, if the descriptor has records; else that of the C
/// library.
fn transferred(
    descriptor: c_int,
    offset: Option<off64_t>,
    real: impl FnOnce() -> ssize_t,
    transfer: impl FnOnce(&Opened, Option<u64>) -> Result<usize>,
) -> ssize_t {
    match table::get(descriptor) {
        Some(own) => count(offset.map_or(Ok(None), place).and_then(|offset| transfer(&own, offset))),
        None => real(),
    }
}

instead! { [read, __read](descriptor: c_int, buffer: *mut c_void, length: size_t) -> ssize_t, real => {
    // SAFETY: see the crate.
    transferred(descriptor, None, real, |own, at| unsafe { read_into(own, (buffer, length), at) })
}}

instead! { [write, __write](descriptor: c_int, buffer: *const c_void, length: size_t) -> ssize_t, real => {
    // SAFETY: see the crate.
    transferred(descriptor, None, real, |own, at| unsafe { write_from(own, (buffer, length), at) })
}}

instead! { [pread, pread64, __pread64](
    descriptor: c_int, buffer: *mut c_void, length: size_t, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_into(own, (buffer, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [pwrite, pwrite64, __pwrite64](
    descriptor: c_int, buffer: *const c_void, length: size_t, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_from(own, (buffer, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [readv](descriptor: c_int, vectors: *const iovec, length: c_int) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_vectors(own, (vectors, length), at) };
    transferred(descriptor, None, real, transfer)
}}

instead! { [writev](descriptor: c_int, vectors: *const iovec, length: c_int) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_vectors(own, (vectors, length), at, false) };
    transferred(descriptor, None, real, transfer)
}}

instead! { [preadv, preadv64](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_vectors(own, (vectors, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [pwritev, pwritev64](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_vectors(own, (vectors, length), at, false) };
    transferred(descriptor, Some(offset), real, transfer)
}}

// Programs that are built with checks call these instead. The C library ends them if a buffer is too short.
instead! { [__read_chk](
    descriptor: c_int, buffer: *mut c_void, length: size_t, room: size_t
) -> ssize_t, real => {
    if room < length {
        return real();
    }
    // SAFETY: see the crate.
    transferred(descriptor, None, real, |own, at| unsafe { read_into(own, (buffer, length), at) })
}}

instead! { [__pread_chk, __pread64_chk](
    descriptor: c_int, buffer: *mut c_void, length: size_t, offset: off64_t, room: size_t
) -> ssize_t, real => {
    if room < length {
        return real();
    }
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_into(own, (buffer, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

/// The place that `preadv2` and its like have: -1 is the position.
fn place_or_position(offset: off64_t) -> Option<off64_t> {
    Some(offset).filter(|offset| *offset != -1)
}

fn refuse_unless(is_known: bool) -> Result<()> {
    if is_known { Ok(()) } else { Err(Error::from_raw_os_error(libc::EOPNOTSUPP)) }
}

instead! { [preadv2, preadv64v2](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t, flags: c_int
) -> ssize_t, real => {
    transferred(descriptor, place_or_position(offset), real, |own, at| {
        refuse_unless(flags & !libc::RWF_HIPRI == 0)?;
        // SAFETY: see the crate.
        unsafe { read_vectors(own, (vectors, length), at) }
    })
}}

instead! { [pwritev2, pwritev64v2](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t, flags: c_int
) -> ssize_t, real => {
    transferred(descriptor, place_or_position(offset), real, |own, at| {
        let synchronises = libc::RWF_DSYNC | libc::RWF_SYNC;
        refuse_unless(flags & !(libc::RWF_HIPRI | libc::RWF_APPEND | synchronises) == 0)?;
        // SAFETY: see the crate.
        let written = unsafe { write_vectors(own, (vectors, length), at, flags & libc::RWF_APPEND != 0) }?;
        if flags & synchronises != 0 {
            checked(own.synchronised(|data| real!(fsync(data => c_int) -> c_int)))?;
        }
        Ok(written)
    })
}}
