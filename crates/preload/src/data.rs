//! Private descriptors: records are read and written with them, and the program does not know them.

use std::ffi::{CString, c_char, c_int};
use std::fs::File;
use std::io::{Error, Result};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{PoisonError, RwLock};

use flashgrain_record_files::lock;
use libc::mode_t;

use super::descriptor_set::DescriptorSet;
use super::process;
use super::real::real;

/// Private descriptors begin here, where a program that counts its own does not come by.
const FIRST_NUMBER: u64 = 768;

/// Private descriptors.
pub static PRIVATE: DescriptorSet = DescriptorSet::new();

/// A file, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// The kernel's information on a descriptor's file.
pub struct Found {
    pub identity: Identity,
    pub is_file: bool,
    pub file_bytes: u64,
    /// Whether a name refers to it.
    pub is_named: bool,
}

impl Found {
    /// # Errors
    /// Those of the kernel.
    pub fn of(descriptor: c_int) -> Result<Self> {
        // SAFETY: it is plain data.
        let mut found: libc::statx = unsafe { std::mem::zeroed() };
        let mask = libc::STATX_BASIC_STATS;
        checked(real!(statx(
            descriptor => c_int, c"".as_ptr() => *const c_char, libc::AT_EMPTY_PATH => c_int,
            mask => u32, &raw mut found => *mut libc::statx) -> c_int))?;
        let device = libc::makedev(found.stx_dev_major, found.stx_dev_minor);
        Ok(Self {
            identity: Identity { device, inode: found.stx_ino },
            is_file: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG,
            file_bytes: found.stx_size,
            is_named: found.stx_nlink > 0,
        })
    }
}

impl Identity {
    /// # Errors
    /// Those of the kernel.
    pub fn of(descriptor: c_int) -> Result<Self> {
        Found::of(descriptor).map(|found| found.identity)
    }
}

/// The file of a descriptor, which stays open when this goes.
pub fn borrowed(descriptor: c_int) -> ManuallyDrop<File> {
    // SAFETY: the file is not closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}

/// The return value of a call of the C library; its error if that is negative.
pub fn checked(returned: c_int) -> Result<c_int> {
    if returned < 0 { Err(Error::last_os_error()) } else { Ok(returned) }
}

pub fn close(descriptor: c_int) {
    // A failure of closing concerns nothing that was not synchronised.
    real!(close(descriptor => c_int) -> c_int);
}

/// A private descriptor.
pub struct Data {
    number: AtomicI32,
    /// Shared while the descriptor is used, exclusive while it gets another number.
    moving: RwLock<()>,
    identity: Identity,
    /// The flags that another descriptor of the same kind is opened with.
    flags: c_int,
    /// The process that has opened it: locks belong to open file descriptions, which a fork shares.
    process: AtomicI32,
}

impl Data {
    /// Takes over a descriptor that was opened with these flags. It moves out of the program's way, unless
    /// the process may have locks on the file, which the kernel drops with any descriptor of it.
    ///
    /// # Errors
    /// Those of the kernel; the descriptor is closed then.
    pub fn new(number: c_int, flags: c_int, may_be_locked: impl FnOnce(Identity) -> bool) -> Result<Self> {
        let identity = Identity::of(number).inspect_err(|_| close(number))?;
        let number = if may_be_locked(identity) { number } else { moved(number) };
        PRIVATE.insert(number);
        Ok(Self {
            number: AtomicI32::new(number),
            moving: RwLock::new(()),
            identity,
            flags: flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC),
            process: AtomicI32::new(process::current()),
        })
    }

    /// The same descriptor in a process that was forked, where no thread but this one exists.
    pub fn inherited(&self) -> Self {
        Self {
            number: AtomicI32::new(self.number.load(Ordering::Relaxed)),
            moving: RwLock::new(()),
            process: AtomicI32::new(self.process.load(Ordering::Relaxed)),
            ..*self
        }
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    pub fn number(&self) -> c_int {
        self.number.load(Ordering::Relaxed)
    }

    /// Whether this process has opened it.
    pub fn is_own(&self) -> bool {
        self.process.load(Ordering::Relaxed) == process::current()
    }

    /// Does something with the file.
    ///
    /// # Errors
    /// `EBADF` if the program has closed or replaced a descriptor that it does not know; those of `act`.
    pub fn with<T>(&self, act: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        self.adopt()?;
        let _stays = self.moving.read().unwrap_or_else(PoisonError::into_inner);
        if Identity::of(self.number())? != self.identity {
            return Err(Error::from_raw_os_error(libc::EBADF));
        }
        act(&borrowed(self.number()))
    }

    /// In a process that was forked, an open file description of its own takes the place of the shared one:
    /// else a lock of the parent would be the child's, too.
    fn adopt(&self) -> Result<()> {
        let process = process::current();
        if self.process.load(Ordering::Relaxed) == process {
            return Ok(());
        }
        if !process::is_own_memory() {
            return Err(Error::from_raw_os_error(libc::EBADF));
        }
        let _moves = self.moving.write().unwrap_or_else(PoisonError::into_inner);
        let number = self.number();
        let path = CString::new(format!("/proc/self/fd/{number}"))?;
        let flags = (self.flags & !libc::O_NOFOLLOW) | libc::O_CLOEXEC;
        let own =
            checked(real!(open64(path.as_ptr() => *const c_char, flags => c_int, 0 => mode_t) -> c_int))?;
        let file = borrowed(own);
        let taken = match Identity::of(own) {
            Ok(identity) if identity == self.identity => lock::note_use(&file).and_then(|()| {
                checked(real!(dup3(own => c_int, number => c_int, libc::O_CLOEXEC => c_int) -> c_int))
            }),
            Ok(_) => Err(Error::from_raw_os_error(libc::EBADF)),
            Err(error) => Err(error),
        };
        close(own);
        taken?;
        self.process.store(process, Ordering::Relaxed);
        Ok(())
    }

    /// Makes this number free for the program.
    ///
    /// # Errors
    /// If there is no other.
    pub fn give_way(&self, number: c_int) -> Result<()> {
        let _moves = self.moving.write().unwrap_or_else(PoisonError::into_inner);
        if self.number() != number {
            return Ok(());
        }
        let other = checked(duplicate_from(number, number.saturating_add(1)))
            .or_else(|_full| checked(duplicate_from(number, 3)))?;
        PRIVATE.insert(other);
        self.number.store(other, Ordering::Relaxed);
        PRIVATE.remove(number);
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let number = self.number();
        let is_own = Identity::of(number).is_ok_and(|identity| identity == self.identity);
        PRIVATE.remove(number);
        if is_own {
            close(number);
        }
    }
}

fn duplicate_from(number: c_int, first: c_int) -> c_int {
    real!(fcntl(number => c_int, libc::F_DUPFD_CLOEXEC => c_int, first.into() => libc::c_long) -> c_int)
}

/// The descriptor at a higher number, if one is free.
fn moved(number: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit may be written to.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let first = if known { FIRST_NUMBER.min(limit.rlim_cur / 4 * 3) } else { FIRST_NUMBER };
    let high = duplicate_from(number, first as c_int);
    if high < 0 {
        return number;
    }
    close(number);
    high
}
