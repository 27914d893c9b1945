//! The methods of our files: those that move bytes go to the places of the layout, all others to the
//! underlying VFS.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use flashgrain_layout::Layout;

use super::abi::{
    FCNTL_CKPT_DONE, FCNTL_PRAGMA, FCNTL_SIZE_HINT, FCNTL_SYNC, FCNTL_VFSNAME, File, Functions, IOCAP_ATOMIC,
    IOCAP_SUBPAGE_READ, IOERR, IOERR_SHORT_READ, IoMethods, LOCK_EXCLUSIVE, LOCK_NONE, NOMEM, OK,
    SYNC_NORMAL,
};
use super::lower::{Lower, call};
use crate::names::{Database, Names};
use crate::page_sums::PageSums;
use crate::shape::Shape;
use crate::split::Split;

/// Where SQLite's header says how many bytes of each page are reserved.
const RESERVED_AT: c_int = 20;

/// A file of ours, as SQLite allocates it. The file of the underlying VFS follows it in the same memory.
#[repr(C)]
pub(super) struct ShimFile {
    file: File,
    state: *mut State,
}

/// The state of an open file.
pub(super) struct State {
    pub shape: Shape,
    pub kind: Kind,
    pub functions: Functions,
    pub names: &'static Names,
    /// How its writes are split, if they are.
    pub split: Option<Split>,
    pub sums: PageSums,
    /// How far it is locked, as SQLite counts.
    pub level: c_int,
}

/// Which files are ours.
pub(super) enum Kind {
    /// A database.
    Database(Database),
    /// A file next to one, with its real name, which the underlying VFS continues to use.
    Beside { _name: RealName },
}

/// A name in the form that SQLite gives to names: between zeros, which end the list of its parameters.
pub(super) struct RealName(Box<[u8]>);

impl RealName {
    const ZEROS: usize = 4;

    pub fn new(name: &[u8]) -> Self {
        Self([&[0; Self::ZEROS], name, &[0; Self::ZEROS]].concat().into())
    }

    pub fn as_ptr(&self) -> *const c_char {
        self.0[Self::ZEROS..].as_ptr().cast()
    }
}

/// The place for the file of the underlying VFS.
pub(super) fn lower_place(file: *mut File) -> *mut File {
    // Its memory has room for both.
    file.cast::<ShimFile>().wrapping_add(1).cast()
}

/// Makes an opened file ours.
///
/// # Safety
/// `file` is the argument of `xOpen`, and `lower` is open at its [`lower_place`].
pub(super) unsafe fn install(file: *mut File, lower: Lower, state: State) {
    let methods = match lower.version() {
        ..=1 => &METHODS_1,
        2 => &METHODS_2,
        _ => &METHODS_3,
    };
    let state = Box::into_raw(Box::new(state));
    // SAFETY: the memory is SQLite's for this file, large enough and aligned.
    unsafe { file.cast::<ShimFile>().write(ShimFile { file: File { methods }, state }) };
}

/// The two halves of an open file.
///
/// # Safety
/// `file` is open and ours, and no other call on it is under way.
unsafe fn halves<'a>(file: *mut File) -> (&'a mut State, Lower) {
    // SAFETY: `install` has put both there, and they stay until `close`.
    unsafe { (&mut *(*file.cast::<ShimFile>()).state, Lower::new(lower_place(file))) }
}

impl State {
    /// The shape, after another look if the file was empty so far.
    pub(super) fn looked(&mut self, lower: Lower) -> Result<Shape, c_int> {
        if let Shape::Undecided(wish) = self.shape {
            let shape = lower.shape(wish, &self.functions)?;
            if !matches!(shape, Shape::Undecided(_)) {
                self.decide(shape);
            }
        }
        Ok(self.shape)
    }

    fn decide(&mut self, shape: Shape) {
        self.shape = shape;
        if let Kind::Database(database) = &self.kind {
            self.names.decide(database, shape.layout());
        }
    }

    /// The shape of a file that is about to be written to: if it is empty, it is laid out now.
    fn decided(&mut self, lower: Lower) -> Result<Shape, c_int> {
        match self.looked(lower)? {
            Shape::Undecided(Some(layout)) => match lower.lay_out(layout) {
                OK => self.decide(Shape::Laid(layout)),
                code => return Err(code),
            },
            Shape::Undecided(None) => self.decide(Shape::Plain),
            Shape::Plain | Shape::Laid(_) => {}
        }
        Ok(self.shape)
    }
}

impl State {
    /// Length of the database.
    pub(super) fn size(&mut self, lower: Lower) -> Result<i64, c_int> {
        let shape = self.looked(lower)?;
        if matches!(shape, Shape::Undecided(_)) {
            return Ok(0);
        }
        let waiting = self.split.as_ref().map_or(0, |split| split.end() as i64);
        Ok((lower.size()?.max(waiting) - shape.shift_bytes()).max(0))
    }

    /// Writes bytes to a place in the file.
    ///
    /// # Safety
    /// The buffer has `bytes` bytes.
    pub(super) unsafe fn write_at(
        &mut self,
        lower: Lower,
        buffer: *const c_void,
        bytes: c_int,
        at: i64,
    ) -> c_int {
        if self.split.is_some() && matches!(self.shape, Shape::Laid(_)) {
            // SAFETY: as the caller promises.
            return unsafe { self.write_split(lower, buffer, bytes, at) };
        }
        call!(lower, write, buffer, bytes, at)
    }

    /// Writes the waiting pieces of split writes, after a sync with `is_sync`.
    fn settle(&mut self, lower: Lower, is_sync: bool) -> Result<(), c_int> {
        let Some(split) = self.split.as_mut().filter(|split| !split.is_empty()) else { return Ok(()) };
        let ok = |code| if code == OK { Ok(()) } else { Err(code) };
        if is_sync {
            ok(call!(lower, sync, SYNC_NORMAL))?;
        }
        for (offset, piece) in split.take() {
            let bytes: *const c_void = piece.as_ptr().cast();
            let offset = i64::try_from(offset).map_err(|_| IOERR)?;
            ok(call!(lower, write, bytes, piece.len() as c_int, offset))?;
        }
        Ok(())
    }

    /// Writes the pieces of a split write that go now.
    ///
    /// # Safety
    /// The buffer has `bytes` bytes.
    unsafe fn write_split(&mut self, lower: Lower, buffer: *const c_void, bytes: c_int, at: i64) -> c_int {
        let (Some(split), Ok(at)) = (&mut self.split, u64::try_from(at)) else { return IOERR };
        // SAFETY: as the caller promises.
        let content =
            unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), usize::try_from(bytes).unwrap_or(0)) };
        for (offset, range) in split.write(at, content) {
            let piece = &content[range];
            let Ok(offset) = i64::try_from(offset) else { return IOERR };
            match call!(lower, write, piece.as_ptr().cast(), piece.len() as c_int, offset) {
                OK => {}
                code => return code,
            }
        }
        OK
    }

    /// Looks at SQLite's header as it passes: how many bytes of each page it reserves.
    ///
    /// # Safety
    /// The buffer has `bytes` bytes.
    unsafe fn note_reserved(&self, buffer: *const c_void, bytes: c_int, offset: i64) {
        if let Kind::Database(database) = &self.kind
            && offset == 0
            && bytes > RESERVED_AT
            && self.shape.layout().is_some_and(|layout| layout.log_stripe_bytes().is_some())
        {
            // SAFETY: as the caller promises.
            self.names.reserves(database, unsafe { *buffer.cast::<u8>().add(RESERVED_AT as usize) });
        }
    }
}

/// The layout of an open database, if the file is one of ours.
///
/// # Safety
/// `file` is open, and no other call on it is under way.
pub(super) unsafe fn layout(file: *mut File) -> Option<Layout> {
    // SAFETY: an open file has methods.
    let methods = unsafe { (*file).methods };
    let is_ours = [&METHODS_1, &METHODS_2, &METHODS_3].into_iter().any(|ours| std::ptr::eq(methods, ours));
    // SAFETY: an open file of ours.
    is_ours.then(|| unsafe { halves(file) }.0.shape.layout()).flatten()
}

/// The place of a logical offset.
pub(super) fn physical(shape: Shape, offset: i64) -> Result<i64, c_int> {
    offset.checked_add(shape.shift_bytes()).ok_or(IOERR)
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

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    // A page that cannot get its checksum belongs to a failed transaction, which has its journal.
    let _ = state.settle_pages(lower);
    let settled = state.settle(lower, false);
    let code = settled.err().unwrap_or(OK).max(call!(lower, close));
    // SAFETY: `install` has made this box, and the file is no longer used.
    let state = unsafe { Box::from_raw(std::ptr::from_mut(state)) };
    if let Kind::Database(database) = &state.kind {
        state.names.close(database);
    }
    code
}

unsafe extern "C" fn read(file: *mut File, buffer: *mut c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    let shape = check!(state.looked(lower));
    if matches!(shape, Shape::Undecided(_)) {
        // SAFETY: the buffer has `bytes` bytes.
        unsafe { buffer.cast::<u8>().write_bytes(0, usize::try_from(bytes).unwrap_or(0)) };
        return IOERR_SHORT_READ;
    }
    let at = check!(physical(shape, offset));
    // After the end of the file, the underlying VFS fills with zeros.
    let code = call!(lower, read, buffer, bytes, at);
    if code == OK {
        // SAFETY: the buffer has `bytes` bytes, which were just read.
        unsafe { state.note_reserved(buffer, bytes, offset) };
    }
    let code = match &state.split {
        // SAFETY: as above.
        Some(split) if !split.is_empty() => unsafe { overlay(split, buffer, bytes, at, code) },
        _ => code,
    };
    if matches!(code, OK | IOERR_SHORT_READ) && state.with_checksums().is_some() {
        // SAFETY: as above; the bytes after the end of the file are zero.
        check!(unsafe { state.open_page(lower, buffer, bytes, offset) });
    }
    code
}

/// Copies waiting pieces over the bytes that were read with `code`.
///
/// # Safety
/// The buffer has `bytes` bytes, which were read.
pub(super) unsafe fn overlay(
    split: &Split,
    buffer: *mut c_void,
    bytes: c_int,
    at: i64,
    code: c_int,
) -> c_int {
    if code != OK && code != IOERR_SHORT_READ {
        return code;
    }
    let (Ok(at), Ok(length)) = (u64::try_from(at), usize::try_from(bytes)) else { return IOERR };
    // SAFETY: as the caller promises.
    split.overlay(at, unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) });
    // Pages are written whole, so that a range is there up to where the last piece ends.
    if split.end() >= at + length as u64 { OK } else { code }
}

unsafe extern "C" fn write(file: *mut File, buffer: *const c_void, bytes: c_int, offset: i64) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    let shape = check!(state.decided(lower));
    // SAFETY: the buffer has `bytes` bytes.
    unsafe { state.note_reserved(buffer, bytes, offset) };
    let at = check!(physical(shape, offset));
    // SAFETY: as above.
    let buffer = check!(unsafe { state.seal_page(lower, buffer, bytes, offset) });
    // SAFETY: as above; a page with its checksum is as long.
    unsafe { state.write_at(lower, buffer, bytes, at) }
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle(lower, true));
    let shape = check!(if size > 0 { state.decided(lower) } else { state.looked(lower) });
    let code = call!(lower, truncate, check!(physical(shape, size)));
    if code == OK {
        state.sums.cut(u64::try_from(size).unwrap_or(0));
    }
    code
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    let logical = check!(state.size(lower));
    // SAFETY: a place for the result.
    unsafe { *size = logical };
    OK
}

unsafe extern "C" fn lock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    let code = call!(lower, lock, level);
    if code == OK && matches!(state.shape, Shape::Undecided(_)) {
        // From here on, no other connection decides the file's layout; next, SQLite looks for journals by
        // name.
        if let Err(code) = state.looked(lower) {
            // SQLite takes the lock for refused.
            call!(lower, unlock, LOCK_NONE);
            return code;
        }
    }
    if code == OK {
        state.level = state.level.max(level);
    }
    code
}

unsafe extern "C" fn file_control(file: *mut File, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    match operation {
        FCNTL_SIZE_HINT => {
            let shape = check!(state.looked(lower));
            if matches!(shape, Shape::Undecided(Some(_))) {
                // Nothing may be there before the header.
                return OK;
            }
            // SAFETY: the argument of this operation.
            let mut hint = check!(physical(shape, unsafe { *argument.cast::<i64>() }));
            call!(lower, file_control, operation, std::ptr::from_mut(&mut hint).cast())
        }
        // All of a transaction or checkpoint is written, and its journal or log is still there. With
        // `synchronous = off`, no sync follows.
        FCNTL_SYNC | FCNTL_CKPT_DONE => {
            check!(state.settle_pages(lower));
            call!(lower, file_control, operation, argument)
        }
        FCNTL_VFSNAME => {
            let code = call!(lower, file_control, operation, argument);
            let name: *mut *mut c_char = argument.cast();
            if code == OK {
                // SAFETY: the argument of this operation, with a text of SQLite's allocator, which the format
                // takes and frees.
                unsafe { *name = (state.functions.mprintf)(c"flashgrain/%z".as_ptr(), *name) };
            }
            code
        }
        FCNTL_PRAGMA => {
            // SAFETY: the argument of this operation.
            let Some(answer) = (unsafe { state.pragma(lower, argument.cast()) }) else {
                return call!(lower, file_control, operation, argument);
            };
            let text = state.functions.text(&check!(answer));
            // SAFETY: the first is the place for the answer.
            unsafe { *argument.cast::<*mut c_char>() = text };
            if text.is_null() { NOMEM } else { OK }
        }
        _ => call!(lower, file_control, operation, argument),
    }
}

unsafe extern "C" fn device_characteristics(file: *mut File) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    let promised = call!(lower, device_characteristics);
    // Blocks of the database are not those of the file any more, and checksums are those of whole pages.
    let withdrawn = match state.shape.layout() {
        Some(layout) if layout.has_checksums() => IOCAP_ATOMIC | IOCAP_SUBPAGE_READ,
        Some(_) => IOCAP_ATOMIC,
        None => 0,
    };
    promised & !withdrawn
}

unsafe extern "C" fn fetch(file: *mut File, offset: i64, bytes: c_int, page: *mut *mut c_void) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle(lower, true));
    let shape = check!(state.looked(lower));
    // A page that is mapped is compared with nothing.
    if matches!(shape, Shape::Undecided(_)) || state.with_checksums().is_some() {
        // SAFETY: a place for the result.
        unsafe { *page = null_mut() };
        return OK;
    }
    call!(lower, fetch, check!(physical(shape, offset)), bytes, page)
}

unsafe extern "C" fn unfetch(file: *mut File, offset: i64, page: *mut c_void) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    call!(lower, unfetch, check!(physical(state.shape, offset)), page)
}

unsafe extern "C" fn shm_barrier(file: *mut File) {
    // SAFETY: an open file of ours.
    let (_, lower) = unsafe { halves(file) };
    // SAFETY: SQLite calls it on files of version 2 on, and the underlying ones have the same version.
    if let Some(barrier) = unsafe { (*lower.methods()).shm_barrier } {
        // SAFETY: an open file.
        unsafe { barrier(lower.file()) };
    }
}

/// Methods that go to the underlying VFS unchanged.
macro_rules! hand_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => { $(
        unsafe extern "C" fn $method(file: *mut File $(, $argument: $type)*) -> c_int {
            // SAFETY: an open file of ours.
            let (_, lower) = unsafe { halves(file) };
            call!(lower, $method $(, $argument)*)
        }
    )* };
}

unsafe extern "C" fn sync(file: *mut File, flags: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    check!(state.settle_pages(lower));
    check!(state.settle(lower, true));
    call!(lower, sync, flags)
}

unsafe extern "C" fn unlock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: an open file of ours.
    let (state, lower) = unsafe { halves(file) };
    if state.level >= LOCK_EXCLUSIVE && level < LOCK_EXCLUSIVE && state.settle_pages(lower).is_err() {
        // The transaction has failed, and its journal brings back the pages of before. Without one, they are
        // told by their checksums.
        state.sums.settled();
    }
    check!(state.settle(lower, false));
    let code = call!(lower, unlock, level);
    if code == OK {
        state.level = state.level.min(level);
    }
    code
}

hand_on! {
    check_reserved_lock(is_reserved: *mut c_int);
    sector_size();
    shm_map(region: c_int, bytes: c_int, extend: c_int, at: *mut *mut c_void);
    shm_lock(first: c_int, count: c_int, flags: c_int);
    shm_unmap(remove: c_int);
}

const fn methods(version: c_int) -> IoMethods {
    IoMethods {
        version,
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
        fetch: Some(fetch),
        unfetch: Some(unfetch),
    }
}

static METHODS_1: IoMethods = methods(1);
static METHODS_2: IoMethods = methods(2);
static METHODS_3: IoMethods = methods(3);
