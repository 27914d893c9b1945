//! Opening, removing and finding files of volumes. Temporary files, time and randomness are the business of
//! SQLite's default VFS.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use super::file::{VolumeFile, install};
use crate::mounts;
use crate::native::abi::{
    ACCESS_EXISTS, ACCESS_READ, ACCESS_READWRITE, AnyFunction, CANTOPEN, ERROR, File, Functions,
    IOERR_DELETE, IOERR_DELETE_NOENT, OK, OPEN_CREATE, OPEN_EXCLUSIVE, OPEN_MAIN_DB, OPEN_MAIN_JOURNAL,
    OPEN_SUPER_JOURNAL, OPEN_WAL, Vfs,
};
use crate::volume::Volume;

/// Bytes of a full name at most.
const PATH_BYTES_MAX: c_int = 512;

/// The state of this VFS.
struct Volumes {
    base: *mut Vfs,
    functions: Functions,
}

/// Makes the VFS, which is never freed.
///
/// # Safety
/// `base` is a registered VFS.
pub(in crate::native) unsafe fn make(base: *mut Vfs, functions: Functions) -> *mut Vfs {
    let volumes = Box::leak(Box::new(Volumes { base, functions }));
    // SAFETY: as the caller promises.
    let file_bytes = unsafe { (*base).file_bytes };
    Box::leak(Box::new(Vfs {
        version: 2,
        file_bytes: file_bytes.max(size_of::<VolumeFile>() as c_int),
        path_bytes_max: PATH_BYTES_MAX,
        next: null_mut(),
        name: c"flashgrain-volumes".as_ptr(),
        app_data: std::ptr::from_mut(volumes).cast(),
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
        set_system_call: None,
        get_system_call: None,
        next_system_call: None,
    }))
}

/// # Safety
/// `vfs` is one of [`make`].
unsafe fn volumes_of(vfs: *mut Vfs) -> &'static Volumes {
    // SAFETY: `make` has leaked it.
    unsafe { &*(*vfs).app_data.cast::<Volumes>() }
}

/// A volume and the name of a file in it, or why there is none.
///
/// # Safety
/// `name` is a C string.
unsafe fn place(name: *const c_char) -> Result<(Arc<Volume>, String), String> {
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| "the name is no UTF-8".to_owned())?;
    let (volume, file) =
        mounts::split(name).ok_or_else(|| format!("`{name}` names no volume: write VOLUME/NAME"))?;
    Ok((mounts::find(volume)?, file.to_owned()))
}

unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: our VFS.
    let volumes = unsafe { volumes_of(vfs) };
    // SAFETY: SQLite's memory for the file. Without methods, it is not closed if this fails.
    unsafe { (*file).methods = null() };
    let ours = OPEN_MAIN_DB | OPEN_MAIN_JOURNAL | OPEN_SUPER_JOURNAL | OPEN_WAL;
    if name.is_null() || flags & ours == 0 {
        // SAFETY: a registered VFS, and SQLite's arguments; it has set the method.
        return unsafe {
            (*volumes.base).open.map_or(CANTOPEN, |open| open(volumes.base, name, file, flags, flags_out))
        };
    }
    let opened = |name| {
        // SAFETY: a C string.
        let (volume, name) = unsafe { place(name) }?;
        let there = volume.file(&name, false).map_err(|error| error.to_string())?;
        if there.is_some() && flags & OPEN_EXCLUSIVE != 0 && flags & OPEN_CREATE != 0 {
            return Err(format!("{name} is there already"));
        }
        let id = match there {
            Some(id) => Some(id),
            None => volume.file(&name, flags & OPEN_CREATE != 0).map_err(|error| error.to_string())?,
        };
        let id = id.ok_or_else(|| format!("{} has no file {name}", volume.target()))?;
        Ok(VolumeFile::state(volume, id, flags & OPEN_WAL != 0, volumes.functions))
    };
    match opened(name) {
        Ok(state) => {
            // SAFETY: the memory is large enough, and the place for flags is SQLite's.
            unsafe {
                install(file, state);
                if let Some(out) = flags_out.as_mut() {
                    *out = flags;
                }
            }
            OK
        }
        Err(why) => {
            volumes.functions.tell(CANTOPEN, &why);
            CANTOPEN
        }
    }
}

unsafe extern "C" fn delete(vfs: *mut Vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: our VFS.
    let volumes = unsafe { volumes_of(vfs) };
    // SAFETY: a C string.
    let removed = unsafe { place(name) }
        .and_then(|(volume, name)| volume.remove(&name, sync != 0).map_err(|error| error.to_string()));
    match removed {
        Ok(true) => OK,
        Ok(false) => IOERR_DELETE_NOENT,
        Err(why) => {
            volumes.functions.tell(IOERR_DELETE, &why);
            IOERR_DELETE
        }
    }
}

unsafe extern "C" fn access(_vfs: *mut Vfs, name: *const c_char, flags: c_int, result: *mut c_int) -> c_int {
    // SAFETY: a C string.
    let place = unsafe { place(name) };
    let found = place.ok().and_then(|(volume, name)| Some((volume.file(&name, false).ok()??, volume)));
    let length = found.map(|(id, volume)| volume.length(id).unwrap_or(0));
    let is_so = match flags {
        // As for `unix`, an empty file is none: a journal that was made and never written.
        ACCESS_EXISTS => length.is_some_and(|length| length > 0),
        ACCESS_READ | ACCESS_READWRITE => length.is_some(),
        _ => false,
    };
    // SAFETY: a place for the result.
    unsafe { *result = c_int::from(is_so) };
    OK
}

unsafe extern "C" fn full_pathname(
    vfs: *mut Vfs,
    name: *const c_char,
    bytes: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let named = mounts::split(&name).map(|(volume, file)| format!("/{volume}/{file}"));
    let text = named.and_then(|text| CString::new(text).ok()).map(CString::into_bytes_with_nul);
    match text.filter(|text| text.len() <= usize::try_from(bytes).unwrap_or(0)) {
        Some(text) => {
            // SAFETY: the buffer has `bytes` bytes.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), full.cast(), text.len()) };
            OK
        }
        None => {
            // SAFETY: our VFS.
            let functions = unsafe { volumes_of(vfs) }.functions;
            functions.tell(CANTOPEN, &format!("`{name}` names no volume: write VOLUME/NAME"));
            CANTOPEN
        }
    }
}

/// Methods that are the business of the default VFS.
macro_rules! hand_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty, $otherwise:expr;)*) => { $(
        unsafe extern "C" fn $method(vfs: *mut Vfs $(, $argument: $type)*) -> $result {
            // SAFETY: our VFS, and the default one, which is registered.
            let base = unsafe { volumes_of(vfs) }.base;
            // SAFETY: as above.
            match unsafe { (*base).$method } {
                // SAFETY: SQLite's arguments for the same method.
                Some(method) => unsafe { method(base $(, $argument)*) },
                None => $otherwise,
            }
        }
    )* };
}

hand_on! {
    dl_open(name: *const c_char) -> *mut c_void, null_mut();
    dl_error(bytes: c_int, text: *mut c_char) -> (), ();
    dl_sym(library: *mut c_void, symbol: *const c_char) -> AnyFunction, None;
    dl_close(library: *mut c_void) -> (), ();
    randomness(bytes: c_int, buffer: *mut c_char) -> c_int, 0;
    sleep(microseconds: c_int) -> c_int, 0;
    current_time(days: *mut c_double) -> c_int, ERROR;
    get_last_error(bytes: c_int, text: *mut c_char) -> c_int, 0;
    current_time_int64(milliseconds: *mut i64) -> c_int, ERROR;
}
