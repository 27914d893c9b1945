//! Locks on a file of records, between open file descriptions of any process. They lie on bytes that no file
//! has, so that they meet no lock of a program.
//!
//! ```text
//! transfer   shared while records are looked at, exclusive while they change
//! use        shared while a program has the file open, exclusive while it becomes a plain file
//! ```

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;

/// The first byte with a lock of this module: locks of programs end before it.
pub const FIRST_LOCKED_BYTE: i64 = 1 << 62;

const TRANSFER_BYTE: i64 = FIRST_LOCKED_BYTE;
const USE_BYTE: i64 = FIRST_LOCKED_BYTE + 1;

/// A lock for one transfer, until it is dropped.
#[derive(Debug)]
pub struct TransferLock<'a>(&'a File);

impl<'a> TransferLock<'a> {
    /// Waits until no other open file description changes the records.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn shared(file: &'a File) -> Result<Self> {
        set(file, libc::F_OFD_SETLKW, libc::F_RDLCK, TRANSFER_BYTE)?;
        Ok(Self(file))
    }

    /// Waits until no other open file description looks at the records or changes them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn exclusive(file: &'a File) -> Result<Self> {
        set(file, libc::F_OFD_SETLKW, libc::F_WRLCK, TRANSFER_BYTE)?;
        Ok(Self(file))
    }
}

impl Drop for TransferLock<'_> {
    fn drop(&mut self) {
        // The lock goes with the open file description at the latest.
        let _unlocked = set(self.0, libc::F_OFD_SETLK, libc::F_UNLCK, TRANSFER_BYTE);
    }
}

/// Notes that the file is in use, for as long as its open file description exists.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`] while another process makes it a plain file; those of the file system.
pub fn note_use(file: &File) -> Result<()> {
    hold(file, libc::F_RDLCK, "it is being made a plain file")
}

/// Has the file alone, for as long as its open file description exists.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`] while a program has it open; those of the file system.
pub fn have_alone(file: &File) -> Result<()> {
    hold(file, libc::F_WRLCK, "a program has it open; end that program first")
}

fn hold(file: &File, kind: libc::c_int, busy: &'static str) -> Result<()> {
    set(file, libc::F_OFD_SETLK, kind, USE_BYTE).map_err(|error| match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Error::new(ErrorKind::ResourceBusy, busy),
        _ => error,
    })
}

fn set(file: &File, command: libc::c_int, kind: libc::c_int, byte: i64) -> Result<()> {
    let lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    };
    loop {
        // SAFETY: the lock's description lives longer than the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
