//! How files are opened and created.

use std::ffi::{CStr, c_char, c_int};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flashgrain_record_files::{Kind, lock};
use libc::mode_t;

use super::data::{Data, checked, close};
use super::descriptor_set::DESCRIPTORS_MAX;
use super::failure::{fail, refuse};
use super::opened::{Begun, Opened};
use super::probe::{ANOTHER, Probe, is_ours};
use super::real::{instead, real};
use super::table;

/// Number of files that were refused; the first one is named on standard error.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// How often a file is looked for anew where its name goes from file to file meanwhile.
const ATTEMPTS: u32 = 16;

/// Flags that say how a file is found or made, and nothing of how it is read and written afterwards.
const MAKING: c_int = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;

/// Flags that concern a descriptor which the program does not have.
const NOT_PRIVATE: c_int =
    libc::O_ACCMODE | libc::O_APPEND | libc::O_ASYNC | libc::O_DIRECT | libc::O_NONBLOCK;

/// A call that opens a file.
#[derive(Clone, Copy)]
struct Call {
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
}

enum Attempt {
    Opened(c_int),
    /// The C library opens it, by the call that the program made.
    AsAsked,
    /// Another process was faster.
    Again,
}

/// Opens a file by `real`, unless it has records or is to get them.
///
/// # Safety
/// See the crate.
pub unsafe fn opened_by(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
    real: impl Fn() -> c_int,
) -> c_int {
    let follows = flags & libc::O_NOFOLLOW == 0;
    // SAFETY: as the caller promises.
    if flags & (libc::O_PATH | libc::O_DIRECTORY) != 0 || !unsafe { is_ours(folder, path, follows) } {
        return real();
    }
    let mut call = Call { folder, path, flags, mode };
    for _ in 0..ATTEMPTS {
        // SAFETY: as the caller promises.
        match unsafe { call.attempt() } {
            Ok(Attempt::Opened(descriptor)) => return descriptor,
            Ok(Attempt::AsAsked) => return real(),
            Ok(Attempt::Again) => {}
            Err(error) if error.raw_os_error() == Some(ANOTHER) => {}
            Err(error) => {
                // SAFETY: as the caller promises.
                say(unsafe { CStr::from_ptr(path) }, &error);
                return fail(&error);
            }
        }
    }
    refuse(libc::EBUSY)
}

/// Says why a file is not opened.
fn say(path: &CStr, error: &Error) {
    if REFUSED.fetch_add(1, Ordering::Relaxed) == 0 {
        eprintln!("flashgrain: {}: {error}", path.to_string_lossy());
    }
}

impl Call {
    fn writes(&self) -> bool {
        self.flags & (libc::O_ACCMODE | libc::O_TRUNC) != libc::O_RDONLY
    }

    /// Flags of the private descriptor. Heads are read where records are written.
    fn private_flags(&self) -> c_int {
        let access = if self.writes() { libc::O_RDWR } else { libc::O_RDONLY };
        self.flags & !(NOT_PRIVATE | MAKING) | access | libc::O_CLOEXEC
    }

    fn flags_of_placeholder(&self) -> c_int {
        self.flags & (libc::O_CLOEXEC | libc::O_NOFOLLOW)
    }

    /// # Safety
    /// See the crate.
    unsafe fn open(&self, flags: c_int) -> Result<c_int> {
        checked(real!(openat64(
            self.folder => c_int, self.path => *const c_char, flags => c_int, self.mode => mode_t) -> c_int))
    }

    /// # Safety
    /// See the crate.
    unsafe fn attempt(&mut self) -> Result<Attempt> {
        let creates = self.flags & libc::O_CREAT != 0;
        // SAFETY: as the caller promises.
        let probe = unsafe { Probe::open(self.folder, self.path, self.flags_of_placeholder()) };
        let probe = match probe {
            Ok(probe) => probe,
            // SAFETY: as the caller promises.
            Err(error) if error.kind() == ErrorKind::NotFound && creates => return unsafe { self.create() },
            Err(_) => return Ok(Attempt::AsAsked),
        };
        if creates && self.flags & libc::O_EXCL != 0 {
            return Ok(Attempt::AsAsked);
        }
        // SAFETY: as the caller promises.
        match unsafe { probe.kind(self.folder, self.path) }? {
            None => return Ok(Attempt::AsAsked),
            Some(Kind::Plain) => {
                if self.writes() {
                    table::note_plain(probe.found.identity);
                }
                return Ok(Attempt::AsAsked);
            }
            Some(Kind::Empty) if table::is_plain(probe.found.identity) => return Ok(Attempt::AsAsked),
            Some(Kind::Empty | Kind::Records) => {}
        }
        let flags = self.private_flags();
        // SAFETY: as the caller promises.
        let number = unsafe { self.open(flags) }?;
        self.take_in(probe, Data::new(number, flags, table::is_open)?)
    }

    /// Creates a file that no other process has open unless it was faster.
    ///
    /// # Safety
    /// See the crate.
    unsafe fn create(&mut self) -> Result<Attempt> {
        let making = self.flags & (libc::O_CREAT | libc::O_EXCL);
        if !self.writes() {
            // It stays empty, but the program must not have a descriptor of it when others write to it.
            // SAFETY: as the caller promises.
            close(unsafe { self.open(self.private_flags() | making) }?);
            self.flags &= !making;
            return Ok(Attempt::Again);
        }
        let flags = self.private_flags();
        // SAFETY: as the caller promises.
        let number = unsafe { self.open(flags | making) }?;
        let data = Data::new(number, flags, |_| false)?;
        table::note_new(data.identity());
        // The file is made, and another attempt finds it.
        self.flags &= !libc::O_EXCL;
        // SAFETY: as the caller promises.
        let probe = unsafe { Probe::open(self.folder, self.path, self.flags_of_placeholder()) }?;
        self.take_in(probe, data)
    }

    fn take_in(&self, probe: Probe, data: Data) -> Result<Attempt> {
        if probe.found.identity != data.identity() {
            return Ok(Attempt::Again);
        }
        data.with(lock::note_use)?;
        let has_name = |probe: &Probe| {
            // SAFETY: see the crate.
            unsafe { Probe::open(self.folder, self.path, libc::O_CLOEXEC) }
                .is_ok_and(|now| now.found.identity == probe.found.identity)
        };
        // It may have been made a plain file before its use was noted; another one has its name then.
        if probe.found.is_named && !has_name(&probe) {
            return Ok(Attempt::Again);
        }
        if probe.descriptor() as usize >= DESCRIPTORS_MAX {
            return Err(Error::from_raw_os_error(libc::EMFILE));
        }
        let shared = table::shared(data.identity());
        match Opened::begin(data, shared, self.flags)? {
            Begun::Plain => Ok(Attempt::AsAsked),
            Begun::Opened(opened) => {
                let descriptor = probe.into_descriptor();
                table::insert(descriptor, Arc::new(opened));
                Ok(Attempt::Opened(descriptor))
            }
        }
    }
}

instead! { [open, open64, __open, __open64](path: *const c_char, flags: c_int, mode: mode_t) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { opened_by(libc::AT_FDCWD, path, flags, mode, real) }
}}

instead! { [openat, openat64](folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { opened_by(folder, path, flags, mode, real) }
}}

// Programs that are built with checks call these instead, where they give no mode.
instead! { [__open_2, __open64_2](path: *const c_char, flags: c_int) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { opened_by(libc::AT_FDCWD, path, flags, 0, real) }
}}

instead! { [__openat_2, __openat64_2](folder: c_int, path: *const c_char, flags: c_int) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { opened_by(folder, path, flags, 0, real) }
}}

instead! { [creat, creat64](path: *const c_char, mode: mode_t) -> c_int, real => {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    // SAFETY: see the crate.
    unsafe { opened_by(libc::AT_FDCWD, path, flags, mode, real) }
}}

/// The return value of a call that has made a file with a name of its own: that may be one of ours by chance.
///
/// # Safety
/// See the crate.
unsafe fn made(descriptor: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: as the caller promises.
    if descriptor < 0 || !unsafe { is_ours(libc::AT_FDCWD, path, false) } {
        return descriptor;
    }
    close(descriptor);
    // SAFETY: as the caller promises.
    unsafe { open64(path, flags | libc::O_RDWR, 0) }
}

instead! { [mkstemp, mkstemp64](path: *mut c_char) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { made(real(), path, 0) }
}}

instead! { [mkostemp, mkostemp64](path: *mut c_char, flags: c_int) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { made(real(), path, flags) }
}}

instead! { [mkstemps, mkstemps64](path: *mut c_char, suffix_bytes: c_int) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { made(real(), path, 0) }
}}

instead! { [mkostemps, mkostemps64](path: *mut c_char, suffix_bytes: c_int, flags: c_int) -> c_int, real => {
    // SAFETY: see the crate.
    unsafe { made(real(), path, flags) }
}}
