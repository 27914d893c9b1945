//! Names of files. Under a name that no pattern matches, a program would find the bytes of the drive: a file
//! of records gets no such name, as if that were on another file system. `mv` copies it then, and the copy
//! is plain.

use std::ffi::{c_char, c_int, c_uint, c_void};

use flashgrain_record_files::Kind;

use super::failure::refuse;
use super::probe::{is_ours, kind_at};
use super::real::instead;
use super::settings::{self, is_named};
use super::table;

/// A name: a path from a folder on.
type Name = (c_int, *const c_char);

/// Whether this name is one of a file of records.
///
/// # Safety
/// See the crate.
unsafe fn has_records((folder, path): Name, follows: bool) -> bool {
    // SAFETY: as the caller promises. A file that cannot be looked at may be one.
    unsafe {
        is_ours(folder, path, follows)
            && !matches!(kind_at(folder, path), Ok(None | Some(Kind::Plain | Kind::Empty)))
    }
}

/// Whether a file of records would get a name that no pattern matches.
///
/// # Safety
/// See the crate.
unsafe fn leaves(from: Name, to: *const c_char, follows: bool) -> bool {
    // SAFETY: as the caller promises.
    unsafe { !settings::is_unused() && !to.is_null() && !is_named(to) && has_records(from, follows) }
}

/// The C library's return value, unless a file of records would leave.
fn named(leaves: bool, real: impl FnOnce() -> c_int) -> c_int {
    if leaves { refuse(libc::EXDEV) } else { real() }
}

instead! { [rename](from: *const c_char, to: *const c_char) -> c_int, real => {
    // SAFETY: see the crate.
    named(unsafe { leaves((libc::AT_FDCWD, from), to, false) }, real)
}}

instead! { [renameat](
    from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char
) -> c_int, real => {
    // SAFETY: see the crate.
    named(unsafe { leaves((from_folder, from), to, false) }, real)
}}

instead! { [renameat2](
    from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char, flags: c_uint
) -> c_int, real => {
    let exchanges = flags & libc::RENAME_EXCHANGE != 0;
    // SAFETY: see the crate.
    let leaves = unsafe {
        leaves((from_folder, from), to, false) || exchanges && leaves((to_folder, to), from, false)
    };
    named(leaves, real)
}}

instead! { [link](from: *const c_char, to: *const c_char) -> c_int, real => {
    // SAFETY: see the crate.
    named(unsafe { leaves((libc::AT_FDCWD, from), to, false) }, real)
}}

instead! { [linkat](
    from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char, flags: c_int
) -> c_int, real => {
    // SAFETY: see the crate.
    let leaves = unsafe {
        let is_descriptor = !from.is_null() && *from == 0;
        leaves((from_folder, from), to, flags & libc::AT_SYMLINK_FOLLOW != 0)
            || is_descriptor && table::get(from_folder).is_some() && !is_named(to)
    };
    named(leaves, real)
}}

// A file that is opened by its handle has no name to be known by.
instead! { [name_to_handle_at](
    folder: c_int, path: *const c_char, handle: *mut c_void, mount: *mut c_int, flags: c_int
) -> c_int, real => {
    // SAFETY: see the crate.
    let has_records = unsafe {
        let is_descriptor = !path.is_null() && *path == 0;
        has_records((folder, path), flags & libc::AT_SYMLINK_FOLLOW != 0)
            || is_descriptor && table::get(folder).is_some()
    };
    if has_records { refuse(libc::EOPNOTSUPP) } else { real() }
}}
