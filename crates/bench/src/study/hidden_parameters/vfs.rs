//! SQLite learns of the VFS.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Once;

use rusqlite::{Connection, ffi};

type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type SqlitesEntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

/// Registers the VFS with the SQLite that is linked into this program.
///
/// # Errors
/// If SQLite has no memory.
pub(super) fn register() -> rusqlite::Result<()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let entry: EntryPoint = flashgrain_sqlite_vfs::auto_extension;
        // SAFETY: it is an entry point of an extension; only the pointers' types have other names there.
        unsafe {
            let entry = std::mem::transmute::<EntryPoint, SqlitesEntryPoint>(entry);
            ffi::sqlite3_auto_extension(Some(entry));
        }
    });
    // Extensions run when a connection is opened.
    Connection::open_in_memory().map(drop)
}
