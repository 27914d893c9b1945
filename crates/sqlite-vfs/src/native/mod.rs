//! The VFS as SQLite sees it: C functions in tables.
//!
//! Everything here rests on SQLite's promises about its callbacks, on which the safety comments call:
//!
//! 1. A file that `xOpen` gets has `szOsFile` bytes, aligned for any type, and stays in its place until
//!    `xClose`.
//! 2. A method gets a file on which `xOpen` has set the methods; of one file, no two calls run at a time.
//! 3. Names are C strings, and the name of a file lives from its opening until it is closed.
//! 4. Buffers have the lengths that come with them, and result pointers may be written to.
//!
//! The underlying VFS is expected to behave like any registered VFS.

mod abi;
mod device;
mod file;
mod log_file;
mod lower;
mod pragmas;
mod reserve;
mod sealing;
mod vfs;

use std::ffi::{c_char, c_int, c_void};

use abi::{ERROR, Functions, OK, OK_LOAD_PERMANENTLY};

/// SQLite's type for entry points.
type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

/// The entry point of the loadable extension, by the name that SQLite derives from the file's.
///
/// # Safety
/// Only SQLite calls it, and hands over its table of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_flashgrainsqlitevfs_init(
    connection: *mut c_void,
    message: *mut *mut c_char,
    table: *const c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { auto_extension(connection, message, table) } {
        OK => {
            // SAFETY: as the caller promises; SQLite calls entry points with these arguments.
            let code = unsafe {
                let entry = std::mem::transmute::<EntryPoint, unsafe extern "C" fn()>(auto_extension);
                (Functions::of(table.cast()).auto_extension)(Some(entry))
            };
            // The VFS outlives the connection that has loaded it.
            if code == OK { OK_LOAD_PERMANENTLY } else { code }
        }
        error => error,
    }
}

/// The same for programs into which SQLite and this crate are linked; they hand it to
/// `sqlite3_auto_extension`.
///
/// # Safety
/// Only SQLite calls it, and hands over its table of functions.
pub unsafe extern "C" fn auto_extension(
    connection: *mut c_void,
    message: *mut *mut c_char,
    table: *const c_void,
) -> c_int {
    if table.is_null() {
        return ERROR;
    }
    // SAFETY: SQLite hands its table to extensions.
    let functions = unsafe { Functions::of(table.cast()) };
    match vfs::register(functions) {
        Ok(()) => {
            // SAFETY: SQLite hands over a connection that is being opened.
            unsafe { reserve::reserve(connection, functions) };
            OK
        }
        Err(error) => {
            // SAFETY: `message`, where there is one, takes a text of SQLite's allocator.
            unsafe {
                if let Some(message) = message.as_mut() {
                    *message = functions.text(&error);
                }
            }
            ERROR
        }
    }
}
