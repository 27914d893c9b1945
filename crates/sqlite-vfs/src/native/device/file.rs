//! The methods of files in volumes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use crate::native::abi::{
    BUSY, ERROR, FCNTL_HAS_MOVED, FCNTL_IDENTITY, File, Functions, IOCAP_POWERSAFE_OVERWRITE, IOERR,
    IOERR_FSYNC, IOERR_READ, IOERR_SHORT_READ, IOERR_TRUNCATE, IOERR_WRITE, IoMethods, NOTFOUND, OK,
    SHM_EXCLUSIVE, SHM_LOCK,
};
use crate::volume::{Error, FileId, Level, SharedMemory, Volume};

/// As SQLite's default VFS says of every file.
const SECTOR_BYTES: c_int = 4096;

/// SQLite's code for a volume without room.
const FULL: c_int = 13;

/// A file of ours, as SQLite allocates it.
#[repr(C)]
pub(super) struct VolumeFile {
    file: File,
    state: *mut State,
}

/// The state of an open file.
pub(super) struct State {
    volume: Arc<Volume>,
    id: FileId,
    functions: Functions,
    shared: Arc<SharedMemory>,
    level: Level,
    /// Whether it uses the shared memory, and which of its locks it has, as bits.
    is_attached: bool,
    shared_locks: u32,
    own_locks: u32,
}

impl VolumeFile {
    /// The state of a file that is being opened.
    pub fn state(volume: Arc<Volume>, id: FileId, is_log: bool, functions: Functions) -> State {
        if is_log {
            volume.note_log(id);
        }
        let shared = volume.shared().open(id);
        State {
            volume,
            id,
            functions,
            shared,
            level: Level::None,
            is_attached: false,
            shared_locks: 0,
            own_locks: 0,
        }
    }
}

impl State {
    /// A code of SQLite's, after its reason went to the program's log.
    fn code(&self, result: Result<(), Error>, code: c_int) -> c_int {
        match result {
            Ok(()) => OK,
            Err(error) => {
                let code = if matches!(error, Error::Full) { FULL } else { code };
                self.functions.tell(code, &error.to_string());
                code
            }
        }
    }

    fn detach(&mut self) {
        if self.is_attached {
            for number in 0..u32::BITS as usize {
                if self.shared_locks >> number & 1 == 1 {
                    self.shared.give(number, false);
                }
                if self.own_locks >> number & 1 == 1 {
                    self.shared.give(number, true);
                }
            }
            (self.shared_locks, self.own_locks, self.is_attached) = (0, 0, false);
            self.shared.detach();
        }
    }
}

/// Makes an opened file ours.
///
/// # Safety
/// `file` is the argument of `xOpen`.
pub(super) unsafe fn install(file: *mut File, state: State) {
    let state = Box::into_raw(Box::new(state));
    // SAFETY: the memory is SQLite's for this file, large enough and aligned.
    unsafe { file.cast::<VolumeFile>().write(VolumeFile { file: File { methods: &METHODS }, state }) };
}

/// # Safety
/// `file` is open and ours, and no other call on it is under way.
unsafe fn state_of<'a>(file: *mut File) -> &'a mut State {
    // SAFETY: `install` has put it there, and it stays until `close`.
    unsafe { &mut *(*file.cast::<VolumeFile>()).state }
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: `install` has made this box, and the file is no longer used.
    let mut state = unsafe { Box::from_raw(state_of(file)) };
    state.detach();
    state.shared.lower(state.level, Level::None);
    let result = state.volume.write_out();
    state.code(result, IOERR_WRITE)
}

/// A number that SQLite counts bytes with.
fn bytes_of(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

unsafe extern "C" fn read(file: *mut File, buffer: *mut c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    // SAFETY: the buffer has `bytes` bytes, and no other code uses it now.
    let buffer = unsafe {
        buffer.cast::<u8>().write_bytes(0, usize::try_from(bytes).unwrap_or(0));
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), usize::try_from(bytes).unwrap_or(0))
    };
    match state.volume.read(state.id, bytes_of(offset), buffer) {
        Ok(true) => OK,
        Ok(false) => IOERR_SHORT_READ,
        Err(error) => state.code(Err(error), IOERR_READ),
    }
}

unsafe extern "C" fn write(file: *mut File, buffer: *const c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    // SAFETY: the buffer has `bytes` bytes.
    let buffer =
        unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), usize::try_from(bytes).unwrap_or(0)) };
    let result = state.volume.write(state.id, bytes_of(offset), buffer);
    state.code(result, IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    let result = state.volume.truncate(state.id, bytes_of(size));
    state.code(result, IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut File, _flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    let result = state.volume.sync(state.id);
    state.code(result, IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    match state.volume.length(state.id) {
        Ok(length) => {
            // SAFETY: a place for the result.
            unsafe { *size = i64::try_from(length).unwrap_or(i64::MAX) };
            OK
        }
        Err(error) => state.code(Err(error), IOERR),
    }
}

unsafe extern "C" fn lock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    let (has, is_wanted) = state.shared.raise(state.level, Level::of(level));
    state.level = has;
    if is_wanted { OK } else { BUSY }
}

unsafe extern "C" fn unlock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    // A transaction has ended: from here on, a kill loses nothing of it.
    let result = if state.level > Level::Shared { state.volume.write_out() } else { Ok(()) };
    state.level = state.shared.lower(state.level, Level::of(level));
    state.code(result, IOERR_WRITE)
}

unsafe extern "C" fn check_reserved_lock(file: *mut File, is_reserved: *mut c_int) -> c_int {
    // SAFETY: an open file of ours, and a place for the result.
    unsafe { *is_reserved = c_int::from(state_of(file).shared.is_reserved()) };
    OK
}

unsafe extern "C" fn file_control(file: *mut File, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    match operation {
        FCNTL_IDENTITY => {
            // SAFETY: the argument of this operation.
            unsafe { *argument.cast::<[u64; 2]>() = [state.volume.number(), state.id.number()] };
            OK
        }
        // A file that was removed is none of the volume's any more.
        FCNTL_HAS_MOVED => {
            // SAFETY: the argument of this operation.
            unsafe { *argument.cast::<c_int>() = c_int::from(state.volume.length(state.id).is_err()) };
            OK
        }
        _ => NOTFOUND,
    }
}

unsafe extern "C" fn sector_size(_file: *mut File) -> c_int {
    SECTOR_BYTES
}

unsafe extern "C" fn device_characteristics(_file: *mut File) -> c_int {
    IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut File,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    at: *mut *mut c_void,
) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    if !state.is_attached {
        state.shared.attach();
        state.is_attached = true;
    }
    let (Ok(region), Ok(bytes)) = (usize::try_from(region), usize::try_from(bytes)) else { return ERROR };
    let memory = state.shared.region(region, bytes, extend != 0);
    // SAFETY: a place for the result.
    unsafe { *at = memory.map_or(null_mut(), |memory| memory.cast()) };
    OK
}

unsafe extern "C" fn shm_lock(file: *mut File, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let state = unsafe { state_of(file) };
    let (Ok(first), Ok(count)) = (usize::try_from(first), usize::try_from(count)) else { return ERROR };
    if first + count > crate::volume::MEMORY_LOCKS {
        return ERROR;
    }
    let alone = flags & SHM_EXCLUSIVE != 0;
    let wanted = ((1_u32 << count) - 1) << first;
    let held = if alone { &mut state.own_locks } else { &mut state.shared_locks };
    if flags & SHM_LOCK != 0 {
        if !alone && *held & wanted == wanted {
            return OK;
        }
        if !state.shared.take(first, count, alone) {
            return BUSY;
        }
        *held |= wanted;
        return OK;
    }
    let leaving = *held & wanted;
    *held &= !wanted;
    // A transaction has ended, or a checkpoint: from here on, a kill loses nothing of it.
    let result = if alone { state.volume.write_out() } else { Ok(()) };
    for number in (first..first + count).filter(|number| leaving >> number & 1 == 1) {
        state.shared.give(number, alone);
    }
    state.code(result, IOERR_WRITE)
}

unsafe extern "C" fn shm_barrier(_file: *mut File) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut File, _remove: c_int) -> c_int {
    // SAFETY: an open file of ours.
    unsafe { state_of(file) }.detach();
    OK
}

static METHODS: IoMethods = IoMethods {
    version: 2,
    close: Some(close),
    read: Some(read),
    write: Some(write),
    truncate: Some(truncate),
    sync: Some(sync),
    file_size: Some(file_size),
    lock: Some(lock),
    unlock: Some(unlock),
    check_reserved_lock: Some(check_reserved_lock),
    file_control: Some(file_control),
    sector_size: Some(sector_size),
    device_characteristics: Some(device_characteristics),
    shm_map: Some(shm_map),
    shm_lock: Some(shm_lock),
    shm_barrier: Some(shm_barrier),
    shm_unmap: Some(shm_unmap),
    fetch: None,
    unfetch: None,
};
