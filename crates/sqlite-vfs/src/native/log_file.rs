//! The methods of logs with a statement: bytes go to where it says.
//!
//! SQLite writes the header of a frame and then its page. In an aligned frame the page comes first, so that
//! the header waits for the page, and both are one write. Any other method finds it in the file.

use std::ffi::{c_int, c_void};

use flashgrain_layout::header::{self, Statement};
use flashgrain_layout::{AlignedFrames, FRAME_HEADER_BYTES};

use super::abi::{FCNTL_SIZE_HINT, File, Functions, IOERR, IOERR_SHORT_READ, IOERR_WRITE, IoMethods, OK};
use super::file::{RealName, lower_place};
use super::lower::{Lower, call};
use crate::log_shape::{self, LogShape};
use crate::names::Names;

/// A log of ours, as SQLite allocates it. The file of the underlying VFS follows it in the same memory.
#[repr(C)]
pub(super) struct LogFile {
    file: File,
    state: *mut LogState,
}

/// The state of an open log.
pub(super) struct LogState {
    pub shape: LogShape,
    /// The database's full path.
    pub database: Vec<u8>,
    /// The real name, which the underlying VFS continues to use.
    pub _name: RealName,
    pub functions: Functions,
    pub names: &'static Names,
    /// The header of an aligned frame that waits for its page.
    pub waiting: Option<FrameHeader>,
    /// Room for an aligned frame, used again for each.
    pub frame: Vec<u8>,
}

/// The header of a frame.
#[derive(Clone, Copy)]
pub(super) struct FrameHeader {
    /// Its logical offset.
    offset: u64,
    bytes: [u8; FRAME_HEADER_BYTES as usize],
}

/// Makes an opened log ours.
///
/// # Safety
/// `file` is the argument of `xOpen`, and the file of the underlying VFS is open at its [`lower_place`].
pub(super) unsafe fn install(file: *mut File, state: LogState) {
    let state = Box::into_raw(Box::new(state));
    // SAFETY: the memory is SQLite's for this file, large enough and aligned.
    unsafe { file.cast::<LogFile>().write(LogFile { file: File { methods: &METHODS }, state }) };
}

/// The two halves of an open log.
///
/// # Safety
/// `file` is open and ours, and no other call on it is under way.
unsafe fn halves<'a>(file: *mut File) -> (&'a mut LogState, Lower) {
    // SAFETY: `install` has put both there, and they stay until `close`.
    unsafe { (&mut *(*file.cast::<LogFile>()).state, Lower::new(lower_place(file))) }
}

impl LogState {
    /// The statement of a log that has content, after another look if it had none so far. An empty log may
    /// get another statement: pages may have another size since.
    fn looked(&mut self, lower: Lower) -> Result<Option<Statement>, c_int> {
        if let LogShape::Stated(statement) = self.shape {
            return Ok(Some(statement));
        }
        let (statement, logical_bytes) = content(lower, self.functions)?;
        let statement = statement.filter(|_| logical_bytes > 0);
        if let Some(statement) = statement {
            self.shape = LogShape::Stated(statement);
        }
        Ok(statement)
    }

    /// Writes the header of a frame that waits for its page.
    fn settle(&mut self, lower: Lower) -> Result<(), c_int> {
        let Some(FrameHeader { offset, bytes }) = self.waiting.take() else { return Ok(()) };
        let statement = self.looked(lower)?.ok_or(IOERR)?;
        write_parts(lower, statement, offset, &bytes)
    }

    /// Takes the header of an aligned frame, or writes the frame with its page; whether it did either.
    fn write_frame(
        &mut self,
        lower: Lower,
        frames: AlignedFrames,
        offset: u64,
        content: &[u8],
    ) -> Result<bool, c_int> {
        let waiting = self.waiting.filter(|waiting| waiting.offset + FRAME_HEADER_BYTES == offset);
        if let (Some(waiting), true) = (waiting, content.len() as u64 == frames.page_bytes()) {
            self.waiting = None;
            let place = frames.frame_at(waiting.offset).ok_or(IOERR)?;
            let (stored, reserved) = content.split_at(frames.stored_bytes() as usize);
            self.check_reserved(reserved)?;
            self.frame.clear();
            self.frame.extend_from_slice(stored);
            self.frame.extend_from_slice(&waiting.bytes);
            write_at(lower, place, &self.frame)?;
            return Ok(true);
        }
        self.settle(lower)?;
        if let (Ok(bytes), Some(_)) = (content.try_into(), frames.frame_at(offset)) {
            self.waiting = Some(FrameHeader { offset, bytes });
        }
        Ok(self.waiting.is_some())
    }

    /// Refuses content where the log has no place for it.
    fn check_reserved(&self, reserved: &[u8]) -> Result<(), c_int> {
        if reserved.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let reason = "a page has content in the bytes that the database reserves, which its log has no place for; leave the mode of the log to write such pages";
        self.functions.tell(IOERR_WRITE, reason);
        Err(IOERR_WRITE)
    }

    /// The statement of a log before something is written to it.
    fn stated(&mut self, lower: Lower, offset: u64, bytes: &[u8]) -> Result<Statement, c_int> {
        if let Some(statement) = self.looked(lower)? {
            return Ok(statement);
        }
        let is_header = log_shape::is_header(offset, bytes.len());
        let (left, _) = content(lower, self.functions)?;
        let kept = left.filter(|left| !is_header || log_shape::is_for(*left, bytes));
        let statement = match (kept, self.names.log(&self.database).filter(|_| is_header)) {
            (Some(kept), _) => kept,
            (None, Some((stripe_bytes, has_room))) => log_shape::statement(bytes, stripe_bytes, has_room),
            (None, None) => Statement::Unaligned,
        };
        if kept.is_none() {
            let encoded = header::encode_log(statement);
            let buffer: *const c_void = encoded.as_ptr().cast();
            match call!(lower, write, buffer, encoded.len() as c_int, 0) {
                OK => {}
                code => return Err(code),
            }
        }
        self.shape = LogShape::Stated(statement);
        Ok(statement)
    }
}

/// The statement of a log, if it has one, and its logical length.
pub(super) fn content(lower: Lower, functions: Functions) -> Result<(Option<Statement>, u64), c_int> {
    let (size, beginning) = lower.beginning::<{ header::ENCODED_BYTES }>()?;
    match LogShape::of_file(size, &beginning) {
        Ok(LogShape::Undecided) => Ok((None, 0)),
        Ok(LogShape::Stated(statement)) => Ok((Some(statement), log_shape::logical_length(statement, size))),
        Err(error) => {
            functions.tell(IOERR, &error.to_string());
            Err(IOERR)
        }
    }
}

/// The value, or the end of this method with its code.
macro_rules! check {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(code) => return code,
        }
    };
}

/// Writes bytes to a place in the file.
fn write_at(lower: Lower, place: u64, bytes: &[u8]) -> Result<(), c_int> {
    let buffer: *const c_void = bytes.as_ptr().cast();
    match call!(lower, write, buffer, bytes.len() as c_int, offset_of(place)?) {
        OK => Ok(()),
        code => Err(code),
    }
}

/// Writes a logical range; its reserved bytes have no place.
fn write_parts(lower: Lower, statement: Statement, offset: u64, content: &[u8]) -> Result<(), c_int> {
    let mut at = 0;
    for (place, part_bytes) in log_shape::parts(statement, offset, content.len() as u64) {
        let part = &content[at..at + part_bytes as usize];
        at += part.len();
        if let Some(place) = place {
            write_at(lower, place, part)?;
        }
    }
    Ok(())
}

fn number(of: i64) -> Result<u64, c_int> {
    u64::try_from(of).map_err(|_| IOERR)
}

fn offset_of(place: u64) -> Result<i64, c_int> {
    i64::try_from(place).map_err(|_| IOERR)
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    let settled = state.settle(lower);
    let code = settled.err().unwrap_or(OK).max(call!(lower, close));
    // SAFETY: `install` has made this box, and the file is no longer used.
    drop(unsafe { Box::from_raw(std::ptr::from_mut(state)) });
    code
}

unsafe extern "C" fn read(file: *mut File, buffer: *mut c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    let buffer = buffer.cast::<u8>();
    let length = check!(number(bytes.into()));
    check!(state.settle(lower));
    let (mut at, mut result) = (0, OK);
    let parts = match check!(state.looked(lower)) {
        Some(statement) => log_shape::parts(statement, check!(number(offset)), length),
        None => {
            result = IOERR_SHORT_READ;
            vec![(None, length)]
        }
    };
    for (place, part_bytes) in parts {
        let part = buffer.wrapping_add(at);
        match place {
            Some(place) => {
                match call!(lower, read, part.cast(), part_bytes as c_int, check!(offset_of(place))) {
                    OK => {}
                    // The underlying VFS has filled the rest with zeros.
                    IOERR_SHORT_READ => result = IOERR_SHORT_READ,
                    code => return code,
                }
            }
            // SAFETY: the buffer has `length` bytes, and parts are disjoint ranges of it.
            None => unsafe { part.write_bytes(0, part_bytes as usize) },
        }
        at += part_bytes as usize;
    }
    result
}

unsafe extern "C" fn write(file: *mut File, buffer: *const c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    let length = check!(number(bytes.into()));
    // SAFETY: the buffer has `length` bytes.
    let content = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length as usize) };
    let offset = check!(number(offset));
    let statement = check!(state.stated(lower, offset, content));
    if let Statement::Aligned(frames) = statement
        && check!(state.write_frame(lower, frames, offset, content))
    {
        return OK;
    }
    let mut at = 0;
    for (place, part_bytes) in log_shape::parts(statement, offset, length) {
        let part = &content[at..at + part_bytes as usize];
        at += part.len();
        if place.is_none() {
            check!(state.check_reserved(part));
        }
    }
    check!(write_parts(lower, statement, offset, content));
    OK
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle(lower));
    match check!(state.looked(lower)) {
        Some(statement) => {
            let length = log_shape::physical_length(statement, check!(number(size)));
            call!(lower, truncate, check!(offset_of(length)))
        }
        None => OK,
    }
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle(lower));
    let logical = match check!(state.looked(lower)) {
        Some(statement) => log_shape::logical_length(statement, check!(lower.size().and_then(number))),
        None => 0,
    };
    // SAFETY: a place for the result.
    unsafe { *size = check!(offset_of(logical)) };
    OK
}

unsafe extern "C" fn file_control(file: *mut File, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: an open log of ours.
    let (_, lower) = unsafe { halves(file) };
    match operation {
        // It counts logical bytes, and is only a hint.
        FCNTL_SIZE_HINT => OK,
        _ => call!(lower, file_control, operation, argument),
    }
}

unsafe extern "C" fn sync(file: *mut File, flags: c_int) -> c_int {
    // SAFETY: an open log of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle(lower));
    call!(lower, sync, flags)
}

/// Methods that go to the underlying VFS unchanged.
macro_rules! hand_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => { $(
        unsafe extern "C" fn $method(file: *mut File $(, $argument: $type)*) -> c_int {
            // SAFETY: an open log of ours.
            let (_, lower) = unsafe { halves(file) };
            call!(lower, $method $(, $argument)*)
        }
    )* };
}

hand_on! {
    lock(level: c_int);
    unlock(level: c_int);
    check_reserved_lock(is_reserved: *mut c_int);
    sector_size();
    device_characteristics();
}

/// Shared memory and mapping are asked of databases alone.
static METHODS: IoMethods = IoMethods {
    version: 1,
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
    shm_map: None,
    shm_lock: None,
    shm_barrier: None,
    shm_unmap: None,
    fetch: None,
    unfetch: None,
};
