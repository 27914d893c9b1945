//! The methods of the VFS: opening files, and their names.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use flashgrain_layout::Layout;

use super::abi::{
    ACCESS_EXISTS, AnyFunction, CANTOPEN, ERROR, File, Functions, LOCK_NONE, OK, OPEN_MAIN_DB,
    OPEN_MAIN_JOURNAL, OPEN_READONLY, OPEN_SUPER_JOURNAL, OPEN_WAL, Vfs,
};
use super::file::{Kind, RealName, ShimFile, State, install, lower_place};
use super::log_file::{self, LogState};
use super::lower::{Lower, call};
use crate::log_shape::LogShape;
use crate::mounts;
use crate::names::{self, Database, Name, Names};
use crate::page_sums::PageSums;
use crate::shape::Shape;
use crate::split::Split;

/// Before SQLite's default VFS.
const NAME: &CStr = c"flashgrain";

/// Before volumes.
const DEVICE_NAME: &CStr = c"flashgrain-device";

/// The parameter of a URI that names the layout of a new database.
const PARAMETER: &CStr = c"layout";

/// The parameter that has writes of a database split at stripes of this number of bytes.
const SPLIT: &CStr = c"split";

/// The variable of the environment that does it for databases opened without one.
const VARIABLE: &str = "FLASHGRAIN_LAYOUT";

/// The variable that names volumes to be mounted.
const VOLUMES_VARIABLE: &str = "FLASHGRAIN_VOLUMES";

/// The state of our VFS.
struct Shim {
    base: *mut Vfs,
    functions: Functions,
    names: Names,
    /// Layout of new databases that ask for none.
    layout: Option<Layout>,
}

/// Registers both VFSes, which stay until the process ends; a second time, nothing happens.
pub(super) fn register(functions: Functions) -> Result<(), String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a C string.
    if !unsafe { (functions.vfs_find)(NAME.as_ptr()) }.is_null() {
        return Ok(());
    }
    let layout = match std::env::var(VARIABLE) {
        Ok(text) => layout_of(&text).map_err(|error| format!("{VARIABLE}: {error}"))?,
        Err(_) => None,
    };
    if let Ok(text) = std::env::var(VOLUMES_VARIABLE) {
        mounts::mount_all(&text).map_err(|error| format!("{VOLUMES_VARIABLE}: {error}"))?;
    }
    // SAFETY: null asks for the default.
    let base = unsafe { (functions.vfs_find)(null()) };
    if base.is_null() {
        return Err("SQLite has no default VFS to stand in front of".into());
    }
    // SAFETY: a registered VFS stays where it is.
    let volumes = unsafe { super::device::make(base, functions) };
    for (name, base) in [(NAME, base), (DEVICE_NAME, volumes)] {
        let shim = Box::leak(Box::new(Shim { base, functions, names: Names::default(), layout }));
        // SAFETY: as above; that of volumes is never freed.
        let vfs = Box::leak(Box::new(unsafe { table(name, base, shim) }));
        // SAFETY: all methods are set, and the table is never freed.
        match unsafe { (functions.vfs_register)(vfs, 0) } {
            OK => {}
            code => {
                let name = name.to_string_lossy();
                return Err(format!("SQLite refuses to register the VFS `{name}` with code {code}"));
            }
        }
    }
    Ok(())
}

/// # Safety
/// `base` is a registered VFS.
unsafe fn table(name: &'static CStr, base: *mut Vfs, shim: &'static mut Shim) -> Vfs {
    // SAFETY: as the caller promises.
    let (version, file_bytes, path_bytes_max) =
        unsafe { ((*base).version, (*base).file_bytes, (*base).path_bytes_max) };
    Vfs {
        version: version.min(3),
        file_bytes: size_of::<ShimFile>() as c_int + file_bytes,
        // Names of ours are longer than SQLite's, but no buffer of SQLite's ever holds one.
        path_bytes_max,
        next: null_mut(),
        name: name.as_ptr(),
        app_data: std::ptr::from_mut(shim).cast(),
        open: Some(open),
        delete: Some(delete),
        access: Some(access),
        full_pathname: Some(full_pathname),
        dl_open: Some(dl_open),
        dl_error: Some(dl_error),
        dl_sym: Some(dl_sym),
        dl_close: Some(dl_close),
        randomness: Some(randomness),
        sleep: Some(sleep),
        current_time: Some(current_time),
        get_last_error: Some(get_last_error),
        current_time_int64: Some(current_time_int64),
        set_system_call: Some(set_system_call),
        get_system_call: Some(get_system_call),
        next_system_call: Some(next_system_call),
    }
}

/// # Safety
/// `vfs` is ours.
unsafe fn shim_of(vfs: *mut Vfs) -> &'static Shim {
    // SAFETY: `register` has leaked it.
    unsafe { &*(*vfs).app_data.cast::<Shim>() }
}

/// Calls a method of the underlying VFS, or returns `$otherwise` if it has none.
macro_rules! call_base {
    ($vfs:expr, $otherwise:expr, $method:ident $(, $argument:expr)*) => {{
        // SAFETY: our VFS, and an underlying one that is registered and has at least our version.
        let base = unsafe { shim_of($vfs) }.base;
        // SAFETY: as above.
        match unsafe { (*base).$method } {
            // SAFETY: the arguments are those that we got from SQLite for the same method.
            Some(method) => unsafe { method(base $(, $argument)*) },
            None => $otherwise,
        }
    }};
}

unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's memory for the file. Without methods, it is not closed if this fails.
    unsafe { (*file).methods = null() };
    if name.is_null() {
        return call_base!(vfs, CANTOPEN, open, name, file, flags, flags_out);
    }
    // SAFETY: a C string.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    if flags & OPEN_MAIN_DB != 0 {
        // SAFETY: the arguments of this method.
        return unsafe { open_database(vfs, name, path, file, flags, flags_out) };
    }
    let may_be_renamed = flags & (OPEN_MAIN_JOURNAL | OPEN_WAL) != 0
        // That of another database, which a rollback looks at.
        || flags & OPEN_SUPER_JOURNAL != 0 && flags & OPEN_READONLY != 0;
    // SAFETY: our VFS.
    if let Some(real) = may_be_renamed.then(|| unsafe { real_name(vfs, path) }).flatten() {
        // SAFETY: the arguments of this method.
        return unsafe { open_beside(vfs, path, real, file, flags, flags_out) };
    }
    call_base!(vfs, CANTOPEN, open, name, file, flags, flags_out)
}

/// Opens a database in the underlying VFS and finds out its layout.
///
/// # Safety
/// The arguments are those of `open`, and `path` is the name.
unsafe fn open_database(
    vfs: *mut Vfs,
    name: *const c_char,
    path: &[u8],
    file: *mut File,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: our VFS.
    let shim = unsafe { shim_of(vfs) };
    // SAFETY: SQLite's name of a database.
    let wish = match unsafe { wish(shim, name) } {
        Ok(wish) => wish,
        Err(error) => {
            shim.functions.tell(CANTOPEN, &error);
            return CANTOPEN;
        }
    };
    // SAFETY: the arguments of `open`.
    let lower = match unsafe { open_lower(vfs, name, file, flags, flags_out) } {
        Ok(lower) => lower,
        Err(code) => return code,
    };
    let database = Database { path: path.to_vec(), identity: lower.identity(path) };
    let shape = match lower.shape(wish, &shim.functions) {
        Ok(shape) => shim.names.open(&database, shape),
        Err(code) => {
            call!(lower, close);
            return code;
        }
    };
    // SAFETY: SQLite's name of a database.
    let split = match unsafe { split(shim, name) } {
        Ok(split) => split,
        Err(why) => {
            call!(lower, close);
            shim.names.close(&database);
            shim.functions.tell(CANTOPEN, &why);
            return CANTOPEN;
        }
    };
    let kind = Kind::Database(database);
    let state = State {
        shape,
        kind,
        functions: shim.functions,
        names: &shim.names,
        split,
        sums: PageSums::default(),
        level: LOCK_NONE,
    };
    // SAFETY: the lower file is open.
    unsafe { install(file, lower, state) };
    OK
}

/// Opens a journal or a log under its real name.
///
/// # Safety
/// The arguments are those of `open`.
unsafe fn open_beside(
    vfs: *mut Vfs,
    path: &[u8],
    real: CString,
    file: *mut File,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: our VFS.
    let shim = unsafe { shim_of(vfs) };
    let real = RealName::new(real.to_bytes());
    // SAFETY: the arguments of `open`; the name lives as long as the file.
    let lower = match unsafe { open_lower(vfs, real.as_ptr(), file, flags, flags_out) } {
        Ok(lower) => lower,
        Err(code) => return code,
    };
    let (functions, names) = (shim.functions, &shim.names);
    if let Some(database) = stated_log(shim, path) {
        let state = LogState {
            shape: LogShape::Undecided,
            database,
            _name: real,
            functions,
            names,
            waiting: None,
            frame: Vec::new(),
        };
        // SAFETY: the lower file is open.
        unsafe { log_file::install(file, state) };
        return OK;
    }
    let state = State {
        shape: Shape::Plain,
        kind: Kind::Beside { _name: real },
        functions,
        names,
        split: None,
        sums: PageSums::default(),
        level: LOCK_NONE,
    };
    // SAFETY: the lower file is open.
    unsafe { install(file, lower, state) };
    OK
}

/// The database whose log this is, if such logs have statements.
fn stated_log(shim: &Shim, path: &[u8]) -> Option<Vec<u8>> {
    let database = names::database_of_log(path)?;
    shim.names.log(database).map(|_| database.to_vec())
}

/// # Safety
/// The arguments are those of `open`, and the name lives as long as the file.
unsafe fn open_lower(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    flags_out: *mut c_int,
) -> Result<Lower, c_int> {
    let place = lower_place(file);
    // SAFETY: the second part of the file's memory.
    unsafe { (*place).methods = null() };
    let code = call_base!(vfs, CANTOPEN, open, name, place, flags, flags_out);
    // SAFETY: as above.
    let has_methods = unsafe { !(*place).methods.is_null() };
    // SAFETY: it has methods.
    let lower = unsafe { Lower::new(place) };
    match code {
        OK if has_methods => Ok(lower),
        OK => Err(CANTOPEN),
        code => {
            // A file that got methods is closed even if it could not be opened.
            if has_methods {
                call!(lower, close);
            }
            Err(code)
        }
    }
}

/// The layout that a new database is to get.
///
/// # Safety
/// `name` is SQLite's name of a database.
unsafe fn wish(shim: &Shim, name: *const c_char) -> Result<Option<Layout>, String> {
    // SAFETY: such a name is followed by its parameters.
    let text = unsafe { (shim.functions.uri_parameter)(name, PARAMETER.as_ptr()) };
    if text.is_null() {
        return Ok(shim.layout);
    }
    // SAFETY: a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    layout_of(&text).map_err(|error| error.to_string())
}

/// How writes of a database are to be split.
///
/// # Safety
/// `name` is SQLite's name of a database.
unsafe fn split(shim: &Shim, name: *const c_char) -> Result<Option<Split>, String> {
    // SAFETY: such a name is followed by its parameters.
    let text = unsafe { (shim.functions.uri_parameter)(name, SPLIT.as_ptr()) };
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    match text.parse::<u64>() {
        Ok(bytes) if bytes >= 512 && bytes.is_power_of_two() => Ok(Some(Split::new(bytes))),
        _ => Err(format!("split={text}: write bytes of a stripe, a power of two from 512 on")),
    }
}

/// Reads the text of a layout, or of none.
fn layout_of(text: &str) -> Result<Option<Layout>, flashgrain_layout::Error> {
    if text == "plain" { Ok(None) } else { text.parse().map(Some) }
}

/// The name of a file, if it differs from SQLite's.
///
/// # Safety
/// `vfs` is ours.
unsafe fn real_name(vfs: *mut Vfs, path: &[u8]) -> Option<CString> {
    // SAFETY: as the caller promises.
    match unsafe { shim_of(vfs) }.names.of(path) {
        Name::Same => None,
        Name::Ours(name) => CString::new(name).ok(),
        Name::Unknown(name) => {
            let (theirs, ours) = (CString::new(path).ok()?, CString::new(name).ok()?);
            (!exists(vfs, &theirs) && exists(vfs, &ours)).then_some(ours)
        }
    }
}

fn exists(vfs: *mut Vfs, name: &CStr) -> bool {
    let mut found: c_int = 0;
    let found_at: *mut c_int = &mut found;
    call_base!(vfs, ERROR, access, name.as_ptr(), ACCESS_EXISTS, found_at) == OK && found != 0
}

unsafe extern "C" fn delete(vfs: *mut Vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: our VFS and a C string.
    match unsafe { real_name(vfs, CStr::from_ptr(name).to_bytes()) } {
        Some(real) => call_base!(vfs, ERROR, delete, real.as_ptr(), sync),
        None => call_base!(vfs, ERROR, delete, name, sync),
    }
}

unsafe extern "C" fn access(vfs: *mut Vfs, name: *const c_char, flags: c_int, result: *mut c_int) -> c_int {
    // SAFETY: our VFS and a C string.
    match unsafe { real_name(vfs, CStr::from_ptr(name).to_bytes()) } {
        Some(real) => {
            let code = call_base!(vfs, ERROR, access, real.as_ptr(), flags, result);
            // SAFETY: our VFS, a C string, and the result of a call that has succeeded.
            unsafe {
                if code == OK && flags == ACCESS_EXISTS && *result != 0 && is_empty_log(vfs, name, &real) {
                    *result = 0;
                }
            }
            code
        }
        None => call_base!(vfs, ERROR, access, name, flags, result),
    }
}

/// Whether a log that is there has a statement and nothing else. SQLite's default VFS calls an empty file
/// none, and SQLite takes a log that is there for a part of the database, in any journal mode.
///
/// # Safety
/// `vfs` is ours, and `name` a C string.
unsafe fn is_empty_log(vfs: *mut Vfs, name: *const c_char, real: &CStr) -> bool {
    // SAFETY: our VFS.
    let shim = unsafe { shim_of(vfs) };
    // SAFETY: a C string.
    if stated_log(shim, unsafe { CStr::from_ptr(name) }.to_bytes()).is_none() {
        return false;
    }
    // SAFETY: the underlying VFS is registered.
    let bytes = usize::try_from(unsafe { (*shim.base).file_bytes }).unwrap_or(0);
    // As aligned as any type.
    let mut memory = vec![0_u128; bytes.div_ceil(size_of::<u128>()) + 1];
    let file: *mut File = memory.as_mut_ptr().cast();
    let real = RealName::new(real.to_bytes());
    let mut flags_out: c_int = 0;
    let flags_at: *mut c_int = &mut flags_out;
    let code = call_base!(vfs, CANTOPEN, open, real.as_ptr(), file, OPEN_WAL | OPEN_READONLY, flags_at);
    // SAFETY: SQLite's rule: a file has methods if it is to be closed.
    if unsafe { (*file).methods.is_null() } {
        return false;
    }
    // SAFETY: the file is open until the end of this function.
    let lower = unsafe { Lower::new(file) };
    let is_empty = code == OK && matches!(log_file::content(lower, shim.functions), Ok((_, 0)));
    call!(lower, close);
    is_empty
}

/// Methods that go to the underlying VFS unchanged.
macro_rules! hand_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty, $otherwise:expr;)*) => { $(
        unsafe extern "C" fn $method(vfs: *mut Vfs $(, $argument: $type)*) -> $result {
            call_base!(vfs, $otherwise, $method $(, $argument)*)
        }
    )* };
}

hand_on! {
    full_pathname(name: *const c_char, bytes: c_int, full: *mut c_char) -> c_int, ERROR;
    dl_open(name: *const c_char) -> *mut c_void, null_mut();
    dl_error(bytes: c_int, text: *mut c_char) -> (), ();
    dl_sym(library: *mut c_void, symbol: *const c_char) -> AnyFunction, None;
    dl_close(library: *mut c_void) -> (), ();
    randomness(bytes: c_int, buffer: *mut c_char) -> c_int, 0;
    sleep(microseconds: c_int) -> c_int, 0;
    current_time(days: *mut c_double) -> c_int, ERROR;
    get_last_error(bytes: c_int, text: *mut c_char) -> c_int, 0;
    current_time_int64(milliseconds: *mut i64) -> c_int, ERROR;
    set_system_call(name: *const c_char, function: AnyFunction) -> c_int, ERROR;
    get_system_call(name: *const c_char) -> AnyFunction, None;
    next_system_call(name: *const c_char) -> *const c_char, null();
}
