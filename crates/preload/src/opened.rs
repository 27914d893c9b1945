//! An open file of records, as the program sees it.

use std::ffi::c_int;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use flashgrain_record_files::lock::TransferLock;
use flashgrain_record_files::{Kind, Records, SyncPoint};

use super::data::{Data, Identity};
use super::failure::fail;
use super::real::real;
use super::settings;

/// Status flags that a program may change.
const CHANGEABLE: c_int =
    libc::O_APPEND | libc::O_ASYNC | libc::O_DIRECT | libc::O_NOATIME | libc::O_NONBLOCK;

/// Flags that the kernel reports of an open file.
const REPORTED: c_int =
    CHANGEABLE | libc::O_ACCMODE | libc::O_SYNC | libc::O_DSYNC | libc::O_NOFOLLOW | O_LARGEFILE;

/// The kernel's flag, which the C library does not have where all files are large.
const O_LARGEFILE: c_int = 0o100_000;

/// The content of a file.
#[derive(Default)]
pub enum Content {
    /// Not read yet.
    #[default]
    Unknown,
    /// Nothing: it may get records, or content without a layout.
    Empty,
    /// Content without a layout, which has come to an empty file that was opened for reading.
    Plain,
    Records(Records),
}

/// The state that all open file descriptions of a file share.
pub type Shared = RwLock<Content>;

impl Content {
    /// Takes in the changes of other processes. The file is locked.
    fn refresh(&mut self, file: &File) -> Result<()> {
        if let Self::Records(records) = self
            && file.metadata()?.len() > 0
        {
            return records.refresh(file);
        }
        *self = match Records::kind_of(file)? {
            Kind::Empty => Self::Empty,
            Kind::Plain => Self::Plain,
            Kind::Records => Records::open(file)?.map_or(Self::Plain, Self::Records),
        };
        Ok(())
    }

    fn length(&self, file: &File) -> Result<u64> {
        match self {
            Self::Unknown | Self::Empty => Ok(0),
            Self::Plain => Ok(file.metadata()?.len()),
            Self::Records(records) => Ok(records.length_bytes()),
        }
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<usize> {
        match self {
            Self::Unknown | Self::Empty => Ok(0),
            Self::Plain => std::os::unix::fs::FileExt::read_at(file, bytes, offset),
            Self::Records(records) => records.read_at(file, bytes, offset),
        }
    }

    /// The records of a file that is written to; an empty file gets them. The file is locked.
    fn writable(&mut self, file: &File) -> Result<&mut Records> {
        self.refresh(file)?;
        if let Self::Empty = self {
            *self = Self::Records(Records::create(file, settings::page_bytes())?);
        }
        match self {
            Self::Records(records) => Ok(records),
            // It was written by a program without the library.
            _ => Err(Error::from_raw_os_error(libc::EIO)),
        }
    }
}

/// The kind of an opened file.
pub enum Begun {
    /// A file of records, or one that may become it.
    Opened(Opened),
    /// Content without a layout.
    Plain,
}

/// See the module. Descriptors that were duplicated share one.
pub struct Opened {
    shared: Arc<Shared>,
    data: Data,
    /// One call moves the position at a time.
    moving: Mutex<()>,
    /// Where the program reads or writes next.
    position: AtomicU64,
    status: AtomicI32,
}

impl Opened {
    /// A file that the program opens with these flags.
    ///
    /// # Errors
    /// If its layout is damaged, or cannot be read or written.
    pub fn begin(data: Data, shared: Arc<Shared>, flags: c_int) -> Result<Begun> {
        let opened = Self {
            shared,
            data,
            moving: Mutex::new(()),
            position: AtomicU64::new(0),
            status: AtomicI32::new((flags | O_LARGEFILE) & REPORTED),
        };
        let is_plain = opened.data.with(|file| {
            let mut content = opened.content_to_change();
            if !opened.writes() {
                let _locked = TransferLock::shared(file)?;
                content.refresh(file)?;
                return Ok(matches!(*content, Content::Plain));
            }
            let _locked = TransferLock::exclusive(file)?;
            content.refresh(file)?;
            if let Content::Plain = *content {
                return Ok(true);
            }
            let records = content.writable(file)?;
            if flags & libc::O_TRUNC != 0 && records.length_bytes() > 0 {
                records.set_length(file, 0)?;
            }
            Ok(false)
        })?;
        Ok(if is_plain { Begun::Plain } else { Begun::Opened(opened) })
    }

    /// The same file in a process that was forked.
    pub fn inherited(&self, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            data: self.data.inherited(),
            moving: Mutex::new(()),
            position: AtomicU64::new(self.position.load(Ordering::Relaxed)),
            status: AtomicI32::new(self.status()),
        }
    }

    pub fn identity(&self) -> Identity {
        self.data.identity()
    }

    pub fn private_number(&self) -> c_int {
        self.data.number()
    }

    pub fn give_way(&self, number: c_int) -> Result<()> {
        self.data.give_way(number)
    }

    /// Whether this descriptor is a placeholder of the file.
    pub fn has_placeholder(&self, descriptor: c_int) -> bool {
        let flags = real!(fcntl(descriptor => c_int, libc::F_GETFL => c_int, 0 => libc::c_long) -> c_int);
        flags >= 0
            && flags & libc::O_PATH != 0
            && Identity::of(descriptor).is_ok_and(|identity| identity == self.identity())
    }

    /// The flags that the kernel would report.
    pub fn status(&self) -> c_int {
        self.status.load(Ordering::Relaxed)
    }

    pub fn set_status(&self, flags: c_int) {
        let kept = self.status() & !CHANGEABLE;
        self.status.store(kept | flags & CHANGEABLE, Ordering::Relaxed);
    }

    fn writes(&self) -> bool {
        self.status() & libc::O_ACCMODE != libc::O_RDONLY
    }

    fn reads(&self) -> bool {
        self.status() & libc::O_ACCMODE != libc::O_WRONLY
    }

    fn content_to_change(&self) -> RwLockWriteGuard<'_, Content> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the program reads or writes next.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// If its layout is damaged, or cannot be read.
    pub fn length(&self) -> Result<u64> {
        self.data.with(|file| self.length_of(file))
    }

    fn length_of(&self, file: &File) -> Result<u64> {
        let mut content = self.content_to_change();
        let _locked = TransferLock::shared(file)?;
        content.refresh(file)?;
        content.length(file)
    }

    fn read_once(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<usize> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).read_at(file, bytes, offset)
    }

    /// Reads from an offset on, or from the position.
    pub fn read(&self, bytes: &mut [u8], offset: Option<u64>) -> Result<usize> {
        if !self.reads() {
            return Err(Error::from_raw_os_error(libc::EBADF));
        }
        self.data.with(|file| {
            let _moves = offset.is_none().then(|| self.moving.lock().unwrap_or_else(PoisonError::into_inner));
            let at = offset.unwrap_or_else(|| self.position());
            let mut read = self.read_once(file, bytes, at)?;
            if read == 0 && !bytes.is_empty() && self.length_of(file)? > at {
                // Another process has appended.
                read = self.read_once(file, bytes, at)?;
            }
            if offset.is_none() {
                self.position.store(at + read as u64, Ordering::Relaxed);
            }
            Ok(read)
        })
    }

    /// Writes from an offset on, or from the position, or to the end.
    pub fn write(&self, bytes: &[u8], offset: Option<u64>, to_end: bool) -> Result<usize> {
        if !self.writes() {
            return Err(Error::from_raw_os_error(libc::EBADF));
        }
        self.data.with(|file| {
            let _moves = offset.is_none().then(|| self.moving.lock().unwrap_or_else(PoisonError::into_inner));
            let mut content = self.content_to_change();
            let _locked = TransferLock::exclusive(file)?;
            let records = content.writable(file)?;
            let at = match offset {
                _ if to_end || self.status() & libc::O_APPEND != 0 => records.length_bytes(),
                Some(offset) => offset,
                None => self.position(),
            };
            records.write_at(file, bytes, at)?;
            if offset.is_none() {
                self.position.store(at + bytes.len() as u64, Ordering::Relaxed);
            }
            Ok(bytes.len())
        })
    }

    /// Moves the position, as `lseek` does; returns it.
    pub fn seek(&self, offset: i64, whence: c_int) -> Result<u64> {
        let _moves = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let to = match whence {
            libc::SEEK_SET => u64::try_from(offset).ok(),
            libc::SEEK_CUR => self.position().checked_add_signed(offset),
            libc::SEEK_END => self.length()?.checked_add_signed(offset),
            libc::SEEK_DATA | libc::SEEK_HOLE => Some(self.data_or_hole(offset, whence)?),
            _ => None,
        };
        let to = to.filter(|to| i64::try_from(*to).is_ok()).ok_or(ErrorKind::InvalidInput)?;
        self.position.store(to, Ordering::Relaxed);
        Ok(to)
    }

    /// All of the file is data: its holes are the layout's.
    fn data_or_hole(&self, offset: i64, whence: c_int) -> Result<u64> {
        let length = self.length()?;
        match u64::try_from(offset) {
            Ok(offset) if offset < length => Ok(if whence == libc::SEEK_DATA { offset } else { length }),
            _ => Err(Error::from_raw_os_error(libc::ENXIO)),
        }
    }

    /// As `ftruncate`.
    pub fn set_length(&self, length_bytes: u64) -> Result<()> {
        if !self.writes() {
            return Err(Error::from(ErrorKind::InvalidInput));
        }
        self.data.with(|file| {
            let mut content = self.content_to_change();
            let _locked = TransferLock::exclusive(file)?;
            content.writable(file)?.set_length(file, length_bytes)
        })
    }

    /// The return value of a call that synchronises the file: it gets the private descriptor.
    pub fn synchronised(&self, call: impl FnOnce(c_int) -> c_int) -> c_int {
        // A file that cannot be looked at is synchronised nevertheless.
        let point = self.data.with(|file| self.sync_point(file)).ok().flatten();
        let done = self.handed_on(call);
        let (0, Some(point), true) = (done, point, self.writes()) else { return done };
        let learned = self.data.with(|file| self.learn(file, point));
        learned.map_or_else(|error| fail(&error), |()| done)
    }

    fn learn(&self, file: &File, point: SyncPoint) -> Result<()> {
        let mut content = self.content_to_change();
        let Content::Records(records) = &mut *content else { return Ok(()) };
        let _locked = TransferLock::exclusive(file)?;
        records.synced(file, point)
    }

    fn sync_point(&self, file: &File) -> Result<Option<SyncPoint>> {
        let mut content = self.content_to_change();
        let Content::Records(records) = &mut *content else { return Ok(None) };
        let _locked = TransferLock::shared(file)?;
        records.refresh(file)?;
        Ok(Some(records.sync_point()))
    }

    /// The program closes the file.
    fn finish(&self) -> Result<()> {
        self.data.with(|file| {
            let mut content = self.content_to_change();
            let Content::Records(records) = &mut *content else { return Ok(()) };
            let _locked = TransferLock::exclusive(file)?;
            records.refresh(file)?;
            records.finish(file)
        })
    }

    /// The return value of a call that concerns the file and not its content: it gets the private descriptor.
    pub fn handed_on<T: From<i8>>(&self, call: impl FnOnce(c_int) -> T) -> T {
        let handed_on = self.data.with(|_| Ok(call(self.data.number())));
        handed_on.unwrap_or_else(|error| fail(&error))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.writes() && self.data.is_own() {
            // The last head's statement is known without it, unless the drive damages the last page.
            let _finished = self.finish();
        }
    }
}
