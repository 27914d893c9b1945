//! SQLite's C interface as far as a VFS needs it: structures of `sqlite3.h`, and functions out of the table
//! of `sqlite3ext.h`, whose order never changes.

use std::ffi::{CString, c_char, c_double, c_int, c_void};

pub(super) const OK: c_int = 0;
pub(super) const ERROR: c_int = 1;
pub(super) const BUSY: c_int = 5;
pub(super) const NOMEM: c_int = 7;
pub(super) const IOERR: c_int = 10;
pub(super) const NOTFOUND: c_int = 12;
pub(super) const CANTOPEN: c_int = 14;
pub(super) const NOTADB: c_int = 26;
pub(super) const IOERR_READ: c_int = IOERR | (1 << 8);
pub(super) const IOERR_SHORT_READ: c_int = IOERR | (2 << 8);
pub(super) const IOERR_WRITE: c_int = IOERR | (3 << 8);
pub(super) const IOERR_FSYNC: c_int = IOERR | (4 << 8);
pub(super) const IOERR_TRUNCATE: c_int = IOERR | (6 << 8);
pub(super) const IOERR_DELETE: c_int = IOERR | (10 << 8);
pub(super) const IOERR_DELETE_NOENT: c_int = IOERR | (23 << 8);
pub(super) const IOERR_DATA: c_int = IOERR | (32 << 8);
pub(super) const OK_LOAD_PERMANENTLY: c_int = 1 << 8;

pub(super) const OPEN_READONLY: c_int = 0x1;
pub(super) const OPEN_CREATE: c_int = 0x4;
pub(super) const OPEN_EXCLUSIVE: c_int = 0x10;
pub(super) const OPEN_MAIN_DB: c_int = 0x100;
pub(super) const OPEN_MAIN_JOURNAL: c_int = 0x800;
pub(super) const OPEN_SUPER_JOURNAL: c_int = 0x4000;
pub(super) const OPEN_WAL: c_int = 0x8_0000;

pub(super) const ACCESS_EXISTS: c_int = 0;
pub(super) const ACCESS_READWRITE: c_int = 1;
pub(super) const ACCESS_READ: c_int = 2;
pub(super) const SHM_LOCK: c_int = 2;
pub(super) const SHM_EXCLUSIVE: c_int = 8;
pub(super) const LOCK_NONE: c_int = 0;
pub(super) const LOCK_EXCLUSIVE: c_int = 4;
pub(super) const SYNC_NORMAL: c_int = 2;

pub(super) const FCNTL_SIZE_HINT: c_int = 5;
pub(super) const FCNTL_FILE_POINTER: c_int = 7;
pub(super) const FCNTL_VFSNAME: c_int = 12;
pub(super) const FCNTL_PRAGMA: c_int = 14;
pub(super) const FCNTL_HAS_MOVED: c_int = 20;
pub(super) const FCNTL_SYNC: c_int = 21;
pub(super) const FCNTL_CKPT_DONE: c_int = 37;
pub(super) const FCNTL_RESERVE_BYTES: c_int = 38;

/// An operation of ours, which files of volumes know: two numbers that no other file has. SQLite leaves those
/// from 100 on to others.
pub(super) const FCNTL_IDENTITY: c_int = 0x464c_4752;

/// Promises that a write of an aligned block is atomic, and that several writes are.
pub(super) const IOCAP_ATOMIC: c_int = 0x1ff | 0x4000;

/// Promises that parts of pages may be read.
pub(super) const IOCAP_SUBPAGE_READ: c_int = 0x8000;

/// Promises that bytes around those that are written stay as they are if power fails.
pub(super) const IOCAP_POWERSAFE_OVERWRITE: c_int = 0x1000;

/// `sqlite3_file`.
#[repr(C)]
pub(super) struct File {
    pub methods: *const IoMethods,
}

/// A method of a file, or none.
macro_rules! method {
    ($($argument:ty),*) => { Option<unsafe extern "C" fn(*mut File $(, $argument)*) -> c_int> };
}

/// `sqlite3_io_methods`. Of version 1, it ends before `shm_map`, and of version 2 before `fetch`.
#[repr(C)]
pub(super) struct IoMethods {
    pub version: c_int,
    pub close: method!(),
    pub read: method!(*mut c_void, c_int, i64),
    pub write: method!(*const c_void, c_int, i64),
    pub truncate: method!(i64),
    pub sync: method!(c_int),
    pub file_size: method!(*mut i64),
    pub lock: method!(c_int),
    pub unlock: method!(c_int),
    pub check_reserved_lock: method!(*mut c_int),
    pub file_control: method!(c_int, *mut c_void),
    pub sector_size: method!(),
    pub device_characteristics: method!(),
    pub shm_map: method!(c_int, c_int, c_int, *mut *mut c_void),
    pub shm_lock: method!(c_int, c_int, c_int),
    pub shm_barrier: Option<unsafe extern "C" fn(*mut File)>,
    pub shm_unmap: method!(c_int),
    pub fetch: method!(i64, c_int, *mut *mut c_void),
    pub unfetch: method!(i64, *mut c_void),
}

/// A function whose type SQLite does not say.
pub(super) type AnyFunction = Option<unsafe extern "C" fn()>;

/// A method of a VFS that takes these and returns that, or none.
macro_rules! vfs_method {
    ($($argument:ty),* => $result:ty) => {
        Option<unsafe extern "C" fn(*mut Vfs $(, $argument)*) -> $result>
    };
}

/// `sqlite3_vfs`. Of version 1, it ends before `current_time_int64`, and of version 2 before
/// `set_system_call`.
#[repr(C)]
pub(super) struct Vfs {
    pub version: c_int,
    pub file_bytes: c_int,
    pub path_bytes_max: c_int,
    pub next: *mut Vfs,
    pub name: *const c_char,
    pub app_data: *mut c_void,
    pub open: vfs_method!(*const c_char, *mut File, c_int, *mut c_int => c_int),
    pub delete: vfs_method!(*const c_char, c_int => c_int),
    pub access: vfs_method!(*const c_char, c_int, *mut c_int => c_int),
    pub full_pathname: vfs_method!(*const c_char, c_int, *mut c_char => c_int),
    pub dl_open: vfs_method!(*const c_char => *mut c_void),
    pub dl_error: vfs_method!(c_int, *mut c_char => ()),
    pub dl_sym: vfs_method!(*mut c_void, *const c_char => AnyFunction),
    pub dl_close: vfs_method!(*mut c_void => ()),
    pub randomness: vfs_method!(c_int, *mut c_char => c_int),
    pub sleep: vfs_method!(c_int => c_int),
    pub current_time: vfs_method!(*mut c_double => c_int),
    pub get_last_error: vfs_method!(c_int, *mut c_char => c_int),
    pub current_time_int64: vfs_method!(*mut i64 => c_int),
    pub set_system_call: vfs_method!(*const c_char, AnyFunction => c_int),
    pub get_system_call: vfs_method!(*const c_char => AnyFunction),
    pub next_system_call: vfs_method!(*const c_char => *const c_char),
}

/// Functions of SQLite.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub mprintf: unsafe extern "C" fn(*const c_char, ...) -> *mut c_char,
    pub file_control: unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *mut c_void) -> c_int,
    pub vfs_find: unsafe extern "C" fn(*const c_char) -> *mut Vfs,
    pub vfs_register: unsafe extern "C" fn(*mut Vfs, c_int) -> c_int,
    pub log: unsafe extern "C" fn(c_int, *const c_char, ...),
    pub uri_parameter: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
    pub auto_extension: unsafe extern "C" fn(AnyFunction) -> c_int,
}

/// Places in `sqlite3_api_routines`, counted in functions.
mod place {
    pub const MPRINTF: usize = 69;
    pub const FILE_CONTROL: usize = 127;
    pub const VFS_FIND: usize = 141;
    pub const VFS_REGISTER: usize = 142;
    pub const LOG: usize = 167;
    pub const URI_PARAMETER: usize = 189;
    pub const AUTO_EXTENSION: usize = 192;
}

/// The function at a place of the table.
///
/// # Safety
/// There is a function of this type.
unsafe fn at<F: Copy>(table: *const *const c_void, place: usize) -> F {
    // SAFETY: as the caller promises; a pointer to a function is as large as one to data.
    unsafe { table.add(place).cast::<F>().read() }
}

impl Functions {
    /// # Safety
    /// `table` is the table that SQLite hands to an extension, of version 3.8 or later.
    pub unsafe fn of(table: *const *const c_void) -> Self {
        // SAFETY: the table has functions of these types there, and none is null.
        unsafe {
            Self {
                mprintf: at(table, place::MPRINTF),
                file_control: at(table, place::FILE_CONTROL),
                vfs_find: at(table, place::VFS_FIND),
                vfs_register: at(table, place::VFS_REGISTER),
                log: at(table, place::LOG),
                uri_parameter: at(table, place::URI_PARAMETER),
                auto_extension: at(table, place::AUTO_EXTENSION),
            }
        }
    }

    /// A copy of a text that SQLite frees; null if there is no memory for it.
    pub fn text(&self, text: &str) -> *mut c_char {
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the format takes one C string.
        unsafe { (self.mprintf)(c"%s".as_ptr(), text.as_ptr()) }
    }

    /// Tells the program's log of errors why `code` is returned.
    pub fn tell(&self, code: c_int, reason: &str) {
        let text = CString::new(reason).unwrap_or_default();
        // SAFETY: the format takes one C string.
        unsafe { (self.log)(code, c"flashgrain: %s".as_ptr(), text.as_ptr()) }
    }
}
