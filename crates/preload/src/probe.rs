//! The kind of file that a path names, found out without a trace.
//!
//! A descriptor that is opened with `O_PATH` changes nothing. When a process closes another descriptor of a
//! file, the kernel drops all locks that the process has on it. So a process that has ever locked a file
//! reads the content in another descriptor table.

use std::ffi::{c_char, c_int, c_void};
use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_record_files::Kind;
use libc::mode_t;

use super::data::{Found, Identity, checked, close};
use super::real::real;
use super::settings;
use super::table;

/// The error where a path names another file than a moment ago.
pub const ANOTHER: c_int = libc::ESTALE;

/// Whether the process has ever asked for a lock that the kernel drops with any descriptor of the file.
pub static HAS_LOCKED: AtomicBool = AtomicBool::new(false);

/// A file that was opened with `O_PATH`, and is closed with this.
pub struct Probe {
    descriptor: c_int,
    pub found: Found,
}

impl Probe {
    /// # Safety
    /// The path is a C string.
    ///
    /// # Errors
    /// Those of opening.
    pub unsafe fn open(folder: c_int, path: *const c_char, flags: c_int) -> Result<Self> {
        let flags = libc::O_PATH | flags;
        let descriptor = checked(real!(openat64(
            folder => c_int, path => *const c_char, flags => c_int, 0 => mode_t) -> c_int))?;
        let found = Found::of(descriptor).inspect_err(|_| close(descriptor))?;
        Ok(Self { descriptor, found })
    }

    /// The descriptor, which stays open.
    pub fn into_descriptor(self) -> c_int {
        let descriptor = self.descriptor;
        std::mem::forget(self);
        descriptor
    }

    pub fn descriptor(&self) -> c_int {
        self.descriptor
    }

    /// The kind of the file; `None` if it is a folder, a pipe or a device.
    ///
    /// # Safety
    /// The path is the one that it was opened by.
    ///
    /// # Errors
    /// Those of reading.
    pub unsafe fn kind(&self, folder: c_int, path: *const c_char) -> Result<Option<Kind>> {
        if !self.found.is_file {
            return Ok(None);
        }
        // SAFETY: as the caller promises.
        unsafe { kind_of(folder, path, self.found.identity, self.found.file_bytes) }.map(Some)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        close(self.descriptor);
    }
}

/// The kind of the file with this path, which has been found to be this one.
///
/// # Safety
/// The path is a C string.
///
/// # Errors
/// Those of reading.
pub unsafe fn kind_of(
    folder: c_int,
    path: *const c_char,
    identity: Identity,
    file_bytes: u64,
) -> Result<Kind> {
    // A shorter file has no header.
    if file_bytes < Kind::LOOKED_AT_BYTES as u64 {
        return Ok(Kind::of(&[], file_bytes));
    }
    if table::is_open(identity) {
        return Ok(Kind::Records);
    }
    let mut look = Look { folder, path, identity, beginning: [0; _], outcome: Err(libc::EIO) };
    match HAS_LOCKED.load(Ordering::Relaxed) {
        true => in_other_table(&mut look)?,
        false => look.outcome = look.look(),
    }
    match look.outcome {
        Ok(()) => Ok(Kind::of(&look.beginning, file_bytes)),
        Err(number) => Err(Error::from_raw_os_error(number)),
    }
}

/// The content of a path's file: `None` if it is absent, or no file.
///
/// # Safety
/// The path is a C string.
///
/// # Errors
/// Those of opening and reading.
pub unsafe fn kind_at(folder: c_int, path: *const c_char) -> Result<Option<Kind>> {
    // SAFETY: as the caller promises.
    unsafe {
        match Probe::open(folder, path, libc::O_CLOEXEC) {
            Ok(probe) => probe.kind(folder, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the file with this path is a matter of this library, by its own name or by that which a link
/// leads to.
///
/// # Safety
/// It is a C string, or null.
pub unsafe fn is_ours(folder: c_int, path: *const c_char, follows: bool) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if settings::is_unused() || path.is_null() {
            return false;
        }
        settings::is_named(path) || follows && leads_to_ours(folder, path)
    }
}

/// # Safety
/// The path is a C string.
unsafe fn leads_to_ours(folder: c_int, path: *const c_char) -> bool {
    let mut target = [0_u8; libc::PATH_MAX as usize];
    let is_link = real!(readlinkat(
        folder => c_int, path => *const c_char,
        target.as_mut_ptr().cast() => *mut c_char, target.len() - 1 => usize) -> isize)
        >= 0;
    if !is_link {
        return false;
    }
    // SAFETY: as the caller promises.
    let Ok(probe) = (unsafe { Probe::open(folder, path, libc::O_CLOEXEC) }) else { return false };
    if table::is_open(probe.found.identity) {
        return true;
    }
    let own = format!("/proc/self/fd/{}\0", probe.descriptor());
    target.fill(0);
    let length = real!(readlinkat(
        libc::AT_FDCWD => c_int, own.as_ptr().cast() => *const c_char,
        target.as_mut_ptr().cast() => *mut c_char, target.len() - 1 => usize) -> isize);
    // SAFETY: a zero follows the target.
    length > 0 && unsafe { settings::is_named(target.as_ptr().cast()) }
}

struct Look {
    folder: c_int,
    path: *const c_char,
    identity: Identity,
    beginning: [u8; Kind::LOOKED_AT_BYTES],
    outcome: std::result::Result<(), c_int>,
}

impl Look {
    fn look(&mut self) -> std::result::Result<(), c_int> {
        let open = |flags: c_int| {
            let flags = flags | libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
            real!(openat64(
                self.folder => c_int, self.path => *const c_char, flags => c_int, 0 => mode_t) -> c_int)
        };
        let mut descriptor = open(libc::O_NOATIME);
        if descriptor < 0 && errno() == libc::EPERM {
            // It is another user's.
            descriptor = open(0);
        }
        if descriptor < 0 {
            return Err(errno());
        }
        let looked = self.look_into(descriptor);
        close(descriptor);
        looked
    }

    fn look_into(&mut self, descriptor: c_int) -> std::result::Result<(), c_int> {
        if Identity::of(descriptor).map_err(|_| errno())? != self.identity {
            return Err(ANOTHER);
        }
        let read = real!(pread64(
            descriptor => c_int, self.beginning.as_mut_ptr().cast() => *mut c_void,
            self.beginning.len() => usize, 0 => i64) -> isize);
        if read < 0 { Err(errno()) } else { Ok(()) }
    }
}

fn errno() -> c_int {
    // SAFETY: it is this thread's.
    unsafe { *libc::__errno_location() }
}

/// Bytes of the stack of the task that looks.
const STACK_BYTES: usize = 128 << 10;

extern "C" fn look(argument: *mut c_void) -> c_int {
    // SAFETY: it is the `Look` of `in_other_table`, which waits.
    let look = unsafe { &mut *argument.cast::<Look>() };
    look.outcome = look.look();
    0
}

/// Looks in a task that has this memory and its own descriptor table, while this thread waits.
fn in_other_table(request: &mut Look) -> Result<()> {
    let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
    // SAFETY: signal sets are plain data; the stack and the request live until the task has ended, which
    // `CLONE_VFORK` waits for. No handler of the program runs in the task: all signals are blocked.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let argument = (&raw mut *request).cast::<c_void>();
        let task = libc::clone(look, top, libc::CLONE_VM | libc::CLONE_VFORK, argument);
        let begun = checked(task);
        if task > 0 {
            libc::waitpid(task, std::ptr::null_mut(), libc::__WALL);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        begun.map(drop)
    }
}
