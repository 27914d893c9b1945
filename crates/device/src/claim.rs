//! Claims: a store's directories and block devices belong to one opener at a time, from before anything in
//! them is looked at until the last device over them is gone.
//!
//! 1. The opener locks every place: the directory itself, or the block device. Neither is ever replaced by
//!    making a store, unlike the files in a directory. Openers lock in the order of the inodes, so that of
//!    several openers that name the same members in different orders one gets all of them.
//! 2. After locking, the opener checks that the name still leads to the inode that it has locked: a directory
//!    may have been removed and made anew meanwhile, which begins again at 1.
//! 3. Whatever is looked at, made or removed in the places happens under the claim.
//! 4. The claim ends when its last owner is gone, or the process. A forked child shares the lock but neither
//!    holds nor ends it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::fork::Origin;
use crate::nvme::node::BlockNode;

/// So often a name may lead elsewhere before the opener gives up: another process is making and removing the
/// place all the time.
const TRIES_MAX: usize = 100;

/// See the module.
#[derive(Debug, Default)]
pub struct Claim {
    locks: Vec<Lock>,
    made: Vec<PathBuf>,
}

/// The file or block device that a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inode {
    is_block_device: bool,
    device: u64,
    number: u64,
}

/// The file, directory or device to lock for a place: the block device for a namespace that is opened past
/// it, so that both are the same place.
fn lockable(place: &Path) -> PathBuf {
    BlockNode::of(place).map_or_else(|| place.to_owned(), |node| node.path)
}

impl Inode {
    fn at(place: &Path) -> io::Result<Self> {
        std::fs::metadata(lockable(place)).map(|metadata| Self::of(&metadata))
    }

    fn of(metadata: &std::fs::Metadata) -> Self {
        if metadata.file_type().is_block_device() {
            // Two nodes for the same drive are the same place.
            return Self { is_block_device: true, device: metadata.rdev(), number: 0 };
        }
        Self { is_block_device: false, device: metadata.dev(), number: metadata.ino() }
    }
}

/// A locked file, directory or block device; unlocked when it is dropped by the process that has locked it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    inode: Inode,
    origin: Origin,
}

/// Locks that this process holds, so that a second opening by this process can be told from one by another
/// process.
static HELD: Mutex<Vec<(Inode, Origin)>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<(Inode, Origin)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A forked child has the same lock, and keeps it alive for as long as it has the descriptor.
        if self.origin.is_here() {
            // SAFETY: `flock` takes no memory of ours. Its result changes nothing: the descriptor is closed
            // next.
            unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
            let mut held = held();
            if let Some(index) = held.iter().position(|held| *held == (self.inode, self.origin)) {
                held.swap_remove(index);
            }
        }
    }
}

impl Claim {
    /// Claims all `places`, directories and block devices, for this opener alone. With `making`, missing
    /// directories are made, as durable as their future content.
    ///
    /// # Errors
    /// [`Error::Locked`] if another opener, of this process or another, has one of them; [`Error::Os`] if one
    /// is missing or cannot be opened.
    pub fn take(places: &[PathBuf], making: bool) -> Result<Arc<Self>, Error> {
        Self::of(places, making, true)
    }

    /// Claims all `places` for reading, shared with other readers.
    ///
    /// # Errors
    /// As [`Claim::take`]; [`Error::Locked`] only for an opener that has one of them for itself.
    pub fn share(places: &[PathBuf]) -> Result<Arc<Self>, Error> {
        Self::of(places, false, false)
    }

    fn of(places: &[PathBuf], making: bool, alone: bool) -> Result<Arc<Self>, Error> {
        let mut claim = Self::default();
        let mut wanted = Vec::new();
        for place in places {
            if making {
                make_directory(place, &mut claim.made)?;
            }
            let inode = Inode::at(place).map_err(|source| os("open", place, source))?;
            wanted.push((inode, place));
        }
        wanted.sort();
        wanted.dedup_by_key(|(inode, _)| *inode);
        for (_, place) in wanted {
            let lock = Lock::take_at(place, making, alone, &mut claim.made)?;
            claim.locks.push(lock);
        }
        Ok(Arc::new(claim))
    }

    /// Whether `path` is a place of this claim, so that it is locked already.
    pub(crate) fn has(&self, path: &Path) -> bool {
        Inode::at(path).is_ok_and(|inode| self.locks.iter().any(|lock| lock.inode == inode))
    }

    /// How many different places it has: fewer than were named if some lead to the same one.
    pub fn places(&self) -> usize {
        self.locks.len()
    }
}

impl Drop for Claim {
    /// Directories that were made for it and have stayed empty go again, while they are still its own.
    fn drop(&mut self) {
        let is_own =
            |made: &&PathBuf| self.locks.iter().any(|lock| lock.origin.is_here() && lock.is_of(made));
        // A directory that cannot be removed has a store in it, or does no harm.
        self.made.iter().filter(is_own).for_each(|made| drop(std::fs::remove_dir(made)));
    }
}

impl Lock {
    /// Locks the directory or block device at `place`, also if it is replaced meanwhile.
    fn take_at(place: &Path, making: bool, alone: bool, made: &mut Vec<PathBuf>) -> Result<Self, Error> {
        for _ in 0..TRIES_MAX {
            let lock = Self::take(place, alone)?;
            if lock.is_of(place) {
                return Ok(lock);
            }
            if making {
                make_directory(place, made)?;
            }
        }
        Err(Error::Locked { path: place.into() })
    }

    /// Locks the present target of `path`, exclusively if `alone`, otherwise shared.
    pub fn take(path: &Path, alone: bool) -> Result<Self, Error> {
        let locked = || Error::Locked { path: path.into() };
        // On a block device this also keeps file systems away.
        let flags = if alone && is_block_device(path) { libc::O_EXCL } else { 0 };
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(lockable(path));
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => locked(),
            _ => os("open", path, source),
        })?;
        let inode = Inode::of(&file.metadata().map_err(|source| os("look at", path, source))?);
        let kind = if alone { libc::LOCK_EX } else { libc::LOCK_SH };
        // SAFETY: `flock` takes no memory of ours.
        if unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) } == 0 {
            let origin = Origin::here();
            held().push((inode, origin));
            return Ok(Self { file, inode, origin });
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EWOULDBLOCK) => {
                let is_own = held().iter().any(|(held, origin)| *held == inode && origin.is_here());
                Err(if is_own { Error::OpenHere { path: path.into() } } else { locked() })
            }
            error => Err(os("lock", path, error)),
        }
    }

    /// Whether `path` still leads to the locked inode.
    pub fn is_of(&self, path: &Path) -> bool {
        Inode::at(path).is_ok_and(|inode| inode == self.inode)
    }
}

/// Whether `path` is a drive, which is used as it is: a block device, or the character device of an NVMe
/// namespace.
pub fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(lockable(path)).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Makes a directory and those above it that are missing, and has their names survive a power cut. `made`
/// gets this one only: directories above it may be in use by others.
fn make_directory(path: &Path, made: &mut Vec<PathBuf>) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let missing: Vec<&Path> =
        path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists()).collect();
    std::fs::create_dir_all(path).map_err(|source| os("make the directory", path, source))?;
    for directory in missing {
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_directory(parent.unwrap_or(Path::new(".")))?;
    }
    made.push(path.to_owned());
    Ok(())
}

/// The names in a directory survive a power cut.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|source| os("make durable", path, source))
}

fn os(doing: &str, path: &Path, source: io::Error) -> Error {
    Error::Os { doing: format!("{doing} {}", path.display()), source }
}
