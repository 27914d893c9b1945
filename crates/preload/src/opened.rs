//! The files of records that the process has open.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use flashgrain_record_files::Records;

use super::settings::Settings;

/// Of each descriptor; descriptors that were duplicated share one.
static OPENED: RwLock<BTreeMap<c_int, Arc<Opened>>> = RwLock::new(BTreeMap::new());

/// Records that all share who have their file open.
type Shared = RwLock<Records>;

/// The records of each file, by device and number.
static RECORDS: Mutex<BTreeMap<(u64, u64), Weak<Shared>>> = Mutex::new(BTreeMap::new());

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// This thread is reading and writing files as they are, until this is dropped: what it calls goes through.
struct Inside(());

impl Inside {
    fn begin() -> Self {
        IS_INSIDE.set(true);
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// An open file of records.
pub struct Opened {
    records: Arc<Shared>,
    /// Where the program reads or writes next.
    position: Mutex<u64>,
    /// Whatever is written goes to the end.
    appends: bool,
}

/// The file of a descriptor, which stays open when this goes.
fn file(descriptor: c_int) -> ManuallyDrop<File> {
    // SAFETY: the descriptor is the program's, and is not closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}

/// The records of a file, if it has some or is to get some.
fn records_of(descriptor: c_int, may_create: bool) -> Result<Option<Arc<Shared>>> {
    let file = file(descriptor);
    let _locked = if may_create { Locked::to_write(descriptor)? } else { Locked::to_read(descriptor)? };
    let metadata = file.metadata()?;
    let mut all = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, records| records.strong_count() > 0);
    let number = (metadata.dev(), metadata.ino());
    let known = all.get(&number).and_then(Weak::upgrade);
    if let Some(records) = known.filter(|_| metadata.len() > 0) {
        return Ok(Some(records));
    }
    let records = match metadata.len() {
        0 if may_create => Some(Records::create(&file, Settings::get().page_bytes)?),
        0 => None,
        _ => Records::open(&file)?,
    };
    let records = records.map(|records| Arc::new(RwLock::new(records)));
    if let Some(records) = &records {
        all.insert(number, Arc::downgrade(records));
    }
    Ok(records)
}

/// A file with a matching name was opened.
///
/// # Errors
/// If its layout is damaged, or cannot be read or written.
pub fn add(descriptor: c_int, may_create: bool, appends: bool) -> Result<()> {
    let _inside = Inside::begin();
    if !file(descriptor).metadata()?.is_file() {
        return Ok(());
    }
    if let Some(records) = records_of(descriptor, may_create)? {
        let opened = Opened { records, position: Mutex::new(0), appends };
        OPENED.write().unwrap_or_else(PoisonError::into_inner).insert(descriptor, Arc::new(opened));
    }
    Ok(())
}

/// Whether this thread is reading or writing such a file as it is.
pub fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// The file of records that this descriptor has, if it has one.
pub fn get(descriptor: c_int) -> Option<Arc<Opened>> {
    if is_inside() {
        return None;
    }
    OPENED.read().unwrap_or_else(PoisonError::into_inner).get(&descriptor).cloned()
}

/// The descriptor will be closed.
pub fn remove(descriptor: c_int) {
    if get(descriptor).is_some() {
        OPENED.write().unwrap_or_else(PoisonError::into_inner).remove(&descriptor);
    }
}

/// A descriptor was duplicated.
pub fn duplicate(from: c_int, to: c_int) {
    let opened = get(from);
    let mut all = OPENED.write().unwrap_or_else(PoisonError::into_inner);
    match opened {
        Some(opened) => all.insert(to, opened),
        None => all.remove(&to),
    };
}

/// The bytes that a program would find in the file of this descriptor; `None` if it is none of records.
///
/// # Errors
/// If its layout is damaged, or cannot be read.
pub fn length_of(descriptor: c_int) -> Result<Option<u64>> {
    let _inside = Inside::begin();
    let Some(records) = records_of(descriptor, false)? else { return Ok(None) };
    let mut records = records.write().unwrap_or_else(PoisonError::into_inner);
    let _locked = Locked::to_read(descriptor)?;
    records.refresh(&file(descriptor))?;
    Ok(Some(records.length_bytes()))
}

/// The byte of a file that whoever writes has locked. No file is so long, so no program locks it.
const LOCKED_BYTE: i64 = 1 << 62;

/// No other process writes to the file, or reads what is written, until this is dropped.
struct Locked(c_int);

impl Locked {
    fn to_read(descriptor: c_int) -> Result<Self> {
        lock(descriptor, libc::F_RDLCK)?;
        Ok(Self(descriptor))
    }

    fn to_write(descriptor: c_int) -> Result<Self> {
        lock(descriptor, libc::F_WRLCK)?;
        Ok(Self(descriptor))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock goes with the descriptor at the latest.
        let _unlocked = lock(self.0, libc::F_UNLCK);
    }
}

fn lock(descriptor: c_int, kind: c_int) -> Result<()> {
    let byte = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: LOCKED_BYTE,
        l_len: 1,
        l_pid: 0,
    };
    loop {
        // SAFETY: the lock's description lives longer than the call.
        if unsafe { libc::fcntl(descriptor, libc::F_OFD_SETLKW, &raw const byte) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Makes the file of records with this descriptor so long.
///
/// # Errors
/// As [`Opened::set_length`].
pub fn set_length_of(descriptor: c_int, length_bytes: u64) -> Result<()> {
    add(descriptor, true, false)?;
    let done = match get(descriptor) {
        Some(opened) => opened.set_length(descriptor, length_bytes),
        None => file(descriptor).set_len(length_bytes),
    };
    remove(descriptor);
    done
}

impl Opened {
    /// Bytes of the file.
    pub fn length(&self, descriptor: c_int) -> Result<u64> {
        let _inside = Inside::begin();
        self.length_inside(descriptor)
    }

    fn length_inside(&self, descriptor: c_int) -> Result<u64> {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let _locked = Locked::to_read(descriptor)?;
        records.refresh(&file(descriptor))?;
        Ok(records.length_bytes())
    }

    fn read_once(&self, descriptor: c_int, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.read_at(&file(descriptor), bytes, offset)
    }

    /// Reads from an offset on, or from the position.
    pub fn read(&self, descriptor: c_int, bytes: &mut [u8], offset: Option<u64>) -> Result<usize> {
        let _inside = Inside::begin();
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let at = offset.unwrap_or(*position);
        let mut read = self.read_once(descriptor, bytes, at)?;
        if read == 0 && !bytes.is_empty() && self.length_inside(descriptor)? > at {
            // Another process has appended.
            read = self.read_once(descriptor, bytes, at)?;
        }
        if offset.is_none() {
            *position = at + read as u64;
        }
        Ok(read)
    }

    /// Writes from an offset on, or from the position, or to the end.
    pub fn write(&self, descriptor: c_int, bytes: &[u8], offset: Option<u64>) -> Result<usize> {
        let _inside = Inside::begin();
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let file = file(descriptor);
        let _locked = Locked::to_write(descriptor)?;
        records.refresh(&file)?;
        let at = match offset {
            _ if self.appends => records.length_bytes(),
            Some(offset) => offset,
            None => *position,
        };
        records.write_at(&file, bytes, at)?;
        if offset.is_none() {
            *position = at + bytes.len() as u64;
        }
        Ok(bytes.len())
    }

    /// Moves the position, as `lseek` does; returns it.
    pub fn seek(&self, descriptor: c_int, offset: i64, whence: c_int) -> Result<u64> {
        let _inside = Inside::begin();
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let from = match whence {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => *position,
            libc::SEEK_END => self.length_inside(descriptor)?,
            // Holes are the layout's.
            _ => return Err(Error::from(ErrorKind::InvalidInput)),
        };
        *position = from.checked_add_signed(offset).ok_or(ErrorKind::InvalidInput)?;
        Ok(*position)
    }

    /// As `ftruncate`.
    pub fn set_length(&self, descriptor: c_int, length_bytes: u64) -> Result<()> {
        let _inside = Inside::begin();
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let file = file(descriptor);
        let _locked = Locked::to_write(descriptor)?;
        records.refresh(&file)?;
        records.set_length(&file, length_bytes)
    }
}
