//! A VFS whose files are in memory, one set of them for each thread, and that records what reaches them. It
//! is SQLite's default one here, so that `flashgrain` stands before it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use rusqlite::ffi;

use crate::tape::{Event, Image, Inode};

/// The files of a thread.
#[derive(Default)]
struct Files {
    image: Image,
    next: Inode,
    tape: Vec<Event>,
    memory: BTreeMap<Inode, Vec<Box<[u64]>>>,
    /// What was asked for, in words.
    calls: Vec<String>,
}

thread_local! {
    static FILES: RefCell<Files> = RefCell::default();
}

/// Replaces the calling thread's files, and forgets the tape.
pub fn load(image: Image) {
    let next = image.files.keys().max().map_or(1, |last| last + 1);
    FILES.set(Files { image, next, ..Files::default() });
}

/// What was recorded so far.
pub fn tape() -> Vec<Event> {
    FILES.with_borrow(|files| files.tape.clone())
}

/// What all databases hold.
pub fn databases() -> Vec<Vec<u8>> {
    FILES.with_borrow(|files| {
        let names = files.image.names.iter().filter(|(name, _)| !name.contains('-'));
        names.map(|(_, inode)| files.image.files[inode].clone()).collect()
    })
}

/// What was asked of the VFS so far, but for looks at a file's content and identity.
pub fn calls() -> Vec<String> {
    FILES.with_borrow(|files| files.calls.clone())
}

fn called(inode: Inode, what: &str, arguments: &[i64]) {
    FILES.with_borrow_mut(|files| files.calls.push(format!("{inode} {what} {arguments:?}")));
}

/// Notes something of the program's.
pub fn note(event: Event) {
    FILES.with_borrow_mut(|files| files.tape.push(event));
}

#[repr(C)]
struct Open {
    methods: *const ffi::sqlite3_io_methods,
    inode: Inode,
    is_temporary: bool,
}

unsafe fn inode<'a>(file: *mut ffi::sqlite3_file) -> &'a Open {
    // SAFETY: `open` has put it there.
    unsafe { &*file.cast::<Open>() }
}

fn bytes_of(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { inode(file) };
    called(open.inode, "close", &[]);
    if open.is_temporary {
        FILES.with_borrow_mut(|files| files.image.files.remove(&open.inode));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file, and a buffer of so many bytes.
    let (open, buffer) =
        unsafe { (inode(file), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes as usize)) };
    FILES.with_borrow(|files| {
        let content = &files.image.files[&open.inode];
        let there = content.get(bytes_of(offset)..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        buffer[count..].fill(0);
        if count == buffer.len() { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_SHORT_READ }
    })
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    bytes: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: an open file, and a buffer of so many bytes.
    let (open, buffer) =
        unsafe { (inode(file), std::slice::from_raw_parts(buffer.cast::<u8>(), bytes as usize)) };
    called(open.inode, "write", &[offset, bytes.into()]);
    FILES.with_borrow_mut(|files| {
        let content = files.image.files.get_mut(&open.inode).unwrap();
        let end = bytes_of(offset) + buffer.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[bytes_of(offset)..end].copy_from_slice(buffer);
        if !open.is_temporary {
            files.tape.push(Event::Write(open.inode, offset as u64, buffer.to_vec()));
        }
    });
    ffi::SQLITE_OK
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { inode(file) };
    called(open.inode, "truncate", &[length]);
    FILES.with_borrow_mut(|files| {
        files.image.files.get_mut(&open.inode).unwrap().resize(bytes_of(length), 0);
        if !open.is_temporary {
            files.tape.push(Event::Truncate(open.inode, length as u64));
        }
    });
    ffi::SQLITE_OK
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { inode(file) };
    called(open.inode, "sync", &[flags.into()]);
    if !open.is_temporary {
        note(Event::Sync(open.inode));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: an open file, and a place for the result.
    unsafe { *size = FILES.with_borrow(|files| files.image.files[&inode(file).inode].len()) as i64 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file.
    called(unsafe { inode(file) }.inode, "lock", &[level.into()]);
    ffi::SQLITE_OK
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file.
    called(unsafe { inode(file) }.inode, "unlock", &[level.into()]);
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_file: *mut ffi::sqlite3_file, is_reserved: *mut c_int) -> c_int {
    // SAFETY: a place for the result.
    unsafe { *is_reserved = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    // A question of the VFS itself, and the one with which it makes sure of the answer.
    if operation < 100 && operation != ffi::SQLITE_FCNTL_HAS_MOVED {
        // SAFETY: an open file.
        called(unsafe { inode(file) }.inode, "control", &[operation.into()]);
    }
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    at: *mut *mut c_void,
) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { inode(file) };
    FILES.with_borrow_mut(|files| {
        let regions = files.memory.entry(open.inode).or_default();
        while extend != 0 && regions.len() <= region as usize {
            regions.push(vec![0; bytes as usize / 8].into());
        }
        let place = regions.get_mut(region as usize).map_or(null_mut(), |region| region.as_mut_ptr().cast());
        // SAFETY: a place for the result.
        unsafe { *at = place };
    });
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: an open file.
    called(unsafe { inode(file) }.inode, "memory lock", &[first.into(), count.into(), flags.into()]);
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _remove: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { inode(file) };
    FILES.with_borrow_mut(|files| files.memory.remove(&open.inode));
    ffi::SQLITE_OK
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe fn text(name: *const c_char) -> String {
    // SAFETY: a C string.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let found = FILES.with_borrow_mut(|files| {
        // SAFETY: a C string if it is there.
        let name = (!name.is_null()).then(|| unsafe { text(name) });
        if let Some(inode) = name.as_ref().and_then(|name| files.image.names.get(name)) {
            return Some((*inode, false));
        }
        if flags & ffi::SQLITE_OPEN_CREATE == 0 {
            return None;
        }
        let inode = files.next;
        files.next += 1;
        files.image.files.insert(inode, Vec::new());
        let is_temporary = name.is_none();
        if let Some(name) = name {
            files.image.names.insert(name.clone(), inode);
            files.tape.push(Event::Create(inode, name));
        }
        Some((inode, is_temporary))
    });
    // SAFETY: SQLite's memory for the file, and a place for flags or null.
    unsafe {
        let Some((inode, is_temporary)) = found else {
            (*file).pMethods = null();
            return ffi::SQLITE_CANTOPEN;
        };
        called(inode, "open", &[flags.into()]);
        file.cast::<Open>().write(Open { methods: &METHODS, inode, is_temporary });
        if let Some(out) = flags_out.as_mut() {
            *out = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, is_durable: c_int) -> c_int {
    // SAFETY: a C string.
    let name = unsafe { text(name) };
    called(0, "delete", &[is_durable.into()]);
    FILES.with_borrow_mut(|files| {
        if files.image.names.remove(&name).is_none() {
            return ffi::SQLITE_IOERR_DELETE_NOENT;
        }
        files.tape.push(Event::Delete(name, is_durable != 0));
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn access(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: a C string, and a place for the result.
    unsafe {
        let name = text(name);
        *result = FILES.with_borrow(|files| {
            let inode = files.image.names.get(&name);
            // As SQLite's default VFS, which takes an empty file for none.
            inode.is_some_and(|inode| {
                flags != ffi::SQLITE_ACCESS_EXISTS || !files.image.files[inode].is_empty()
            })
        }) as c_int;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    bytes: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: a C string, and a buffer of so many bytes.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes_with_nul();
        assert!(name.len() <= bytes as usize);
        full.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, bytes: c_int, buffer: *mut c_char) -> c_int {
    // SAFETY: a buffer of so many bytes. SQLite draws a seed once, and nothing in these tests depends on it.
    unsafe { buffer.write_bytes(7, bytes as usize) };
    bytes
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, days: *mut f64) -> c_int {
    // SAFETY: a place for the result.
    unsafe { *days = 2_461_000.5 };
    ffi::SQLITE_OK
}

/// Makes it SQLite's default VFS.
pub fn register() {
    // SAFETY: all of it is an integer, a pointer or an `Option` of a function.
    let mut vfs: ffi::sqlite3_vfs = unsafe { std::mem::zeroed() };
    vfs.iVersion = 1;
    vfs.szOsFile = size_of::<Open>() as c_int;
    vfs.mxPathname = 256;
    vfs.zName = c"recorder".as_ptr();
    vfs.xOpen = Some(open);
    vfs.xDelete = Some(delete);
    vfs.xAccess = Some(access);
    vfs.xFullPathname = Some(full_pathname);
    vfs.xRandomness = Some(randomness);
    vfs.xSleep = Some(sleep);
    vfs.xCurrentTime = Some(current_time);
    // SAFETY: all methods that SQLite calls are set, and the table is never freed.
    assert_eq!(unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 1) }, ffi::SQLITE_OK);
}
