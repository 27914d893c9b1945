//! Room in pages for the headers of a log's frames, and for checksums.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::abi::{FCNTL_FILE_POINTER, FCNTL_RESERVE_BYTES, File, Functions, OK};
use super::file::layout;

/// Has a connection that was just opened reserve the bytes in each page of a new database that its layout
/// takes. One that exists gets them at its next `VACUUM`.
///
/// # Safety
/// `connection` is a connection of SQLite's with the functions, or null.
pub(super) unsafe fn reserve(connection: *mut c_void, functions: Functions) {
    if connection.is_null() {
        return;
    }
    let (main, mut file) = (c"main".as_ptr(), null_mut::<File>());
    let control = |operation: c_int, argument: *mut c_void| {
        // SAFETY: as the caller promises; the arguments are those of the operations.
        unsafe { (functions.file_control)(connection, main, operation, argument) }
    };
    let is_found = control(FCNTL_FILE_POINTER, std::ptr::from_mut(&mut file).cast()) == OK;
    // SAFETY: the connection's file, if it is open.
    let is_open = is_found && !file.is_null() && unsafe { !(*file).methods.is_null() };
    // SAFETY: as above.
    let layout = if is_open { unsafe { layout(file) } } else { None };
    let wanted = layout.map_or(0, |layout| layout.reserved_bytes());
    if wanted > 0 {
        let mut bytes = wanted as c_int;
        control(FCNTL_RESERVE_BYTES, std::ptr::from_mut(&mut bytes).cast());
    }
}
