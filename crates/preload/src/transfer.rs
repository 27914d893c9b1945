//! How bytes are read and written.

use std::ffi::{c_int, c_void};
use std::io::{Error, Result};
use std::slice;

use libc::{iovec, off64_t, size_t, ssize_t};

use super::failure::count;
use super::opened::{self, Opened};
use super::real::instead;

/// Reads into a buffer of the program.
///
/// # Safety
/// See the crate.
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
/// See the crate.
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

/// Reads into several buffers of the program, until one is not filled.
///
/// # Safety
/// See the crate.
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
/// See the crate.
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

fn place(offset: off64_t) -> Result<Option<u64>> {
    u64::try_from(offset).map(Some).map_err(|_negative| Error::from_raw_os_error(libc::EINVAL))
}

/// What `transfer` has transferred, at a place or at the position, if the descriptor has records; else what
/// the C library has.
fn transferred(
    descriptor: c_int,
    offset: Option<off64_t>,
    real: impl FnOnce() -> ssize_t,
    transfer: impl FnOnce(&Opened, Option<u64>) -> Result<usize>,
) -> ssize_t {
    match opened::get(descriptor) {
        Some(own) => count(offset.map_or(Ok(None), place).and_then(|offset| transfer(&own, offset))),
        None => real(),
    }
}

instead! { [read](descriptor: c_int, buffer: *mut c_void, length: size_t) -> ssize_t, real => {
    // SAFETY: see the crate.
    transferred(descriptor, None, real, |own, at| unsafe { read_into(own, descriptor, (buffer, length), at) })
}}

instead! { [write](descriptor: c_int, buffer: *const c_void, length: size_t) -> ssize_t, real => {
    // SAFETY: see the crate.
    transferred(descriptor, None, real, |own, at| unsafe { write_from(own, descriptor, (buffer, length), at) })
}}

instead! { [pread, pread64](
    descriptor: c_int, buffer: *mut c_void, length: size_t, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_into(own, descriptor, (buffer, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [pwrite, pwrite64](
    descriptor: c_int, buffer: *const c_void, length: size_t, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_from(own, descriptor, (buffer, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [readv](descriptor: c_int, vectors: *const iovec, length: c_int) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_vectors(own, descriptor, (vectors, length), at) };
    transferred(descriptor, None, real, transfer)
}}

instead! { [writev](descriptor: c_int, vectors: *const iovec, length: c_int) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_vectors(own, descriptor, (vectors, length), at) };
    transferred(descriptor, None, real, transfer)
}}

instead! { [preadv, preadv64](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { read_vectors(own, descriptor, (vectors, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}

instead! { [pwritev, pwritev64](
    descriptor: c_int, vectors: *const iovec, length: c_int, offset: off64_t
) -> ssize_t, real => {
    // SAFETY: see the crate.
    let transfer = |own: &_, at| unsafe { write_vectors(own, descriptor, (vectors, length), at) };
    transferred(descriptor, Some(offset), real, transfer)
}}
