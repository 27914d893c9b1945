//! Opening one file or block device for I/O, without the page cache where that is possible.

use std::ffi::CString;
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::nvme::namespace::{Hold, Namespace};
use crate::nvme::node::is_namespace;
use crate::space::check_room;

/// Alignment for direct I/O where the file system does not say: enough for every common one.
const ALIGN_UNKNOWN_BYTES: u32 = 4096;

/// A file shorter than this may have no blocks of its own yet.
const HOLES_UP_TO_BYTES: u64 = 4096;

/// One opened file or block device.
#[derive(Debug)]
pub(crate) struct Target {
    pub file: File,
    pub path: PathBuf,
    /// A block device, or a namespace past it: neither grows, and none has a file system in between.
    pub is_block_device: bool,
    /// The namespace, if commands go to it past the kernel's block layer.
    pub namespace: Option<Namespace>,
    pub size_bytes: u64,
    /// Device number of the block device, or of the file system that holds the file.
    pub device_number: u64,
    /// `None`: the page cache is in the way.
    pub direct: Option<DirectAlign>,
    /// Remarks that the user should know.
    pub notes: Vec<String>,
}

/// Alignments for direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectAlign {
    pub offset_bytes: u32,
    pub memory_bytes: u32,
}

impl Target {
    /// A scratch file of `bytes` in `directory`, without a name: the kernel removes it when the process ends,
    /// however it ends.
    pub fn scratch(directory: &Path, bytes: u64, direct: bool) -> Result<Self, Error> {
        let metadata = std::fs::metadata(directory)
            .map_err(|source| os(format!("open {}", directory.display()), source))?;
        if !metadata.is_dir() {
            return Err(problem(directory, "not a directory: name a directory on the drive to be measured"));
        }
        let file = without_a_name(directory)?;
        check_room(directory, bytes)?;
        reserve(&file, directory, bytes)?;
        Self::finish(file, directory, false, bytes, direct)
    }

    /// An empty file without a name in `directory`, which takes up to `bytes` as they are written.
    pub fn growing(directory: &Path, bytes: u64, direct: bool) -> Result<Self, Error> {
        check_file_limit(directory, bytes)?;
        Self::finish(without_a_name(directory)?, directory, false, bytes, direct)
    }

    /// An existing file or block device. A block device opened for writing is opened exclusively: mounted
    /// ones are refused.
    pub fn existing(path: &Path, write: bool, direct: bool) -> Result<Self, Error> {
        if is_namespace(path) {
            let hold = if write { Hold::Exclusive } else { Hold::Shared };
            return Self::passthrough(path, hold, direct);
        }
        let doing = || format!("open {}", path.display());
        let metadata = std::fs::metadata(path).map_err(|source| os(doing(), source))?;
        Self::check_kind(path, metadata.file_type())?;
        let is_block_device = metadata.file_type().is_block_device();
        let flags = if is_block_device && write { libc::O_EXCL } else { 0 };
        let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
        let file = file.map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => {
                problem(path, "the block device is in use (mounted, or part of a volume): it is left alone")
            }
            _ => os(doing(), source),
        })?;
        let size_bytes = size_of(&file, is_block_device).map_err(|source| os(doing(), source))?;
        if size_bytes == 0 {
            return Err(problem(path, "it is empty: there is nothing to do I/O on"));
        }
        Self::finish(file, path, is_block_device, size_bytes, direct)
    }

    /// Refuses a file of a kind that no drive is read or written through.
    pub fn check_kind(path: &Path, kind: FileType) -> Result<(), Error> {
        if kind.is_block_device() || kind.is_file() || is_namespace(path) {
            return Ok(());
        }
        let why = "neither a file nor a block device, nor a namespace of an NVMe drive (/dev/ngXnY)";
        Err(problem(path, why))
    }

    /// An existing file or block device that its opener protects from others.
    pub fn shared(path: &Path, write: bool, direct: bool) -> Result<Self, Error> {
        if is_namespace(path) {
            let hold = if write { Hold::Claimed } else { Hold::Shared };
            return Self::passthrough(path, hold, direct);
        }
        let doing = || format!("open {}", path.display());
        let file =
            OpenOptions::new().read(true).write(write).open(path).map_err(|source| os(doing(), source))?;
        let kind = file.metadata().map_err(|source| os(doing(), source))?.file_type();
        let is_block_device = kind.is_block_device();
        if !is_block_device && !kind.is_file() {
            return Err(problem(path, "neither a file nor a block device"));
        }
        let size_bytes = size_of(&file, is_block_device).map_err(|source| os(doing(), source))?;
        if write && !is_block_device {
            check_file_limit(path, size_bytes)?;
        }
        Self::finish(file, path, is_block_device, size_bytes, direct)
    }

    /// The namespace of an NVMe drive by its character device. Since Linux 6.2 the kernel takes commands that
    /// write from users without privileges if the device was opened for writing.
    fn passthrough(path: &Path, hold: Hold, direct: bool) -> Result<Self, Error> {
        if !direct {
            let why =
                "passthrough knows no page cache: name the block device (/dev/nvme...) for buffered requests";
            return Err(problem(path, why));
        }
        let opened = OpenOptions::new().read(true).write(hold != Hold::Shared).open(path);
        let file = opened.map_err(|source| os(format!("open {}", path.display()), source))?;
        let namespace = Namespace::of(&file, path, hold)?;
        let align =
            DirectAlign { offset_bytes: namespace.block_bytes(), memory_bytes: namespace.memory_align_bytes };
        Ok(Self {
            file,
            path: path.into(),
            is_block_device: true,
            size_bytes: namespace.size_bytes(),
            device_number: namespace.device_number,
            namespace: Some(namespace),
            direct: Some(align),
            notes: Vec::new(),
        })
    }

    /// Its size, which may have grown since it was opened.
    pub fn size_now(&self) -> Result<u64, Error> {
        if let Some(namespace) = &self.namespace {
            return Ok(namespace.size_bytes());
        }
        size_of(&self.file, self.is_block_device)
            .map_err(|source| os(format!("look at {}", self.path.display()), source))
    }

    fn finish(
        file: File,
        path: &Path,
        is_block_device: bool,
        size_bytes: u64,
        direct: bool,
    ) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|source| os(format!("stat {}", path.display()), source))?;
        let device_number = if is_block_device { metadata.rdev() } else { metadata.dev() };
        let mut notes = Vec::new();
        // Newer kernels accept O_DIRECT on such a file system and ignore it.
        let in_memory = !is_block_device && lives_in_memory(&file);
        let align = if direct && !in_memory { enable_direct(&file) } else { None };
        if align.is_none() {
            let why = if in_memory {
                "O_DIRECT means nothing here: this file system lives in memory, so that memory is measured"
            } else if direct {
                "O_DIRECT is not possible here: the page cache is part of the measurement"
            } else {
                "buffered by request: the page cache is part of the measurement"
            };
            notes.push(format!("{}: {why}", path.display()));
        }
        Ok(Self {
            file,
            path: path.into(),
            is_block_device,
            namespace: None,
            size_bytes,
            device_number,
            direct: align,
            notes,
        })
    }

    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// A file that vanishes with the process.
fn without_a_name(directory: &Path) -> Result<File, Error> {
    let file = unnamed(directory).or_else(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT) => named_then_removed(directory),
        _ => Err(error),
    });
    file.map_err(|source| os(format!("create a scratch file in {}", directory.display()), source))
}

fn unnamed(directory: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(directory)
}

/// For file systems without `O_TMPFILE`: a named file that loses its name at once.
fn named_then_removed(directory: &Path) -> io::Result<File> {
    let mut template = CString::new(directory.join(".flashgrain-scratch-XXXXXX").as_os_str().as_bytes())?
        .into_bytes_with_nul();
    // SAFETY: `template` is a NUL-terminated buffer that mkostemp rewrites in place.
    let fd = unsafe { libc::mkostemp(template.as_mut_ptr().cast(), libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: `template` now holds the NUL-terminated name of the file.
    unsafe { libc::unlink(template.as_ptr().cast()) };
    Ok(file)
}

/// Gives the file its size and its blocks, so that a full file system is found out now and not in the middle.
/// Only blocks that the file does not have yet are asked for: XFS counts the whole range of a request against
/// the free space, whether its blocks exist or not.
pub(crate) fn reserve(file: &File, path: &Path, bytes: u64) -> Result<(), Error> {
    let doing = || format!("reserve {bytes} bytes in {}", path.display());
    let os = |source| os(doing(), source);
    check_file_limit(path, bytes)?;
    let no_file = |_| problem(path, "no file can be that large");
    let now = size_of(file, false).map_err(os)?;
    // A range below a file's end may be a hole, because a new file's mark is in a block of its own.
    let from = if now < HOLES_UP_TO_BYTES { 0 } else { now.min(bytes) };
    if bytes == from {
        return Ok(());
    }
    let offset = libc::off_t::try_from(from).map_err(no_file)?;
    let length = libc::off_t::try_from(bytes - from).map_err(no_file)?;
    // SAFETY: `fallocate` takes no memory of ours.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, length) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(bytes).map_err(os),
        source => Err(os(source)),
    }
}

/// Refuses a size beyond the process's limit: the kernel would send a signal that ends the program.
pub(crate) fn check_file_limit(path: &Path, bytes: u64) -> Result<(), Error> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if !known || limit.rlim_cur == libc::RLIM_INFINITY || bytes <= limit.rlim_cur {
        return Ok(());
    }
    let limit_bytes = limit.rlim_cur;
    let why = format!(
        "the limit on the size of files is {limit_bytes} bytes, {bytes} are needed: raise it (`ulimit -f`), or take another limit for the \
         program (`LimitFSIZE` of a systemd unit)"
    );
    Err(Error::FileLimit { path: path.into(), why })
}

fn size_of(file: &File, is_block_device: bool) -> io::Result<u64> {
    if !is_block_device {
        return Ok(file.metadata()?.len());
    }
    // SAFETY: `lseek` takes no memory of ours.
    let end = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) };
    u64::try_from(end).map_err(|_| io::Error::last_os_error())
}

/// Whether the file lies on tmpfs or ramfs.
fn lives_in_memory(file: &File) -> bool {
    file_system(file).is_some_and(|answer| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&magic(&answer)))
}

// Of linux/magic.h: the C libraries differ in the type of `f_type`.
const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;
const BTRFS_MAGIC: u32 = 0x9123_683e;

fn magic(answer: &libc::statfs) -> u32 {
    answer.f_type as u32
}

fn file_system(file: &File) -> Option<libc::statfs> {
    // SAFETY: all-zero bytes are a valid `statfs`.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `statfs` for our own descriptor.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut answer) };
    (result == 0).then_some(answer)
}

fn is_btrfs(file: &File) -> bool {
    file_system(file).is_some_and(|answer| magic(&answer) == BTRFS_MAGIC)
}

/// Has btrfs overwrite this file, which is still empty, in place: overwriting then needs no room, so that a
/// store can be opened on a full disk, and pages are not strewn over the disk a second time. Other file
/// systems do so anyway.
pub(crate) fn overwrite_in_place(file: &File) {
    const NO_COPY_ON_WRITE: libc::c_long = 0x0080_0000;
    let (fd, mut flags): (_, libc::c_long) = (file.as_raw_fd(), 0);
    // SAFETY: the kernel writes one number of the file's attributes.
    if !is_btrfs(file) || unsafe { libc::ioctl(fd, libc::FS_IOC_GETFLAGS, &raw mut flags) } != 0 {
        return;
    }
    flags |= NO_COPY_ON_WRITE;
    // SAFETY: the kernel reads one number. If the kernel refuses, the file is written as others are.
    unsafe { libc::ioctl(fd, libc::FS_IOC_SETFLAGS, &raw const flags) };
}

/// Bytes that growth leaves free if overwriting a file needs room: for superblocks, the log, and the file
/// system's metadata of them.
const LEFT_FREE_BYTES: u64 = 16 << 20;

/// Refuses growth that would take the room which overwriting may need.
pub(crate) fn check_left_free(file: &File, path: &Path, more_bytes: u64) -> Result<(), Error> {
    let Some(answer) = file_system(file).filter(|answer| magic(answer) == BTRFS_MAGIC) else {
        return Ok(());
    };
    let free_bytes = answer.f_bavail.saturating_mul(u64::try_from(answer.f_bsize).unwrap_or(1));
    if more_bytes.saturating_add(LEFT_FREE_BYTES) <= free_bytes {
        return Ok(());
    }
    let doing =
        format!("reserve {more_bytes} more bytes in {}, and leave {LEFT_FREE_BYTES} free", path.display());
    Err(os(doing, io::Error::from_raw_os_error(libc::ENOSPC)))
}

/// Turns on `O_DIRECT`, if the file system can do it.
fn enable_direct(file: &File) -> Option<DirectAlign> {
    let align = direct_align(file)?;
    let fd = file.as_raw_fd();
    // SAFETY: `fcntl` on our own descriptor, with integers only.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // SAFETY: as above.
    let set = unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_DIRECT) };
    (flags >= 0 && set == 0).then_some(align)
}

/// The alignments for direct I/O by statx; `None` if direct I/O is not possible.
fn direct_align(file: &File) -> Option<DirectAlign> {
    // SAFETY: all-zero bytes are a valid `statx`.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    let (fd, mask) = (file.as_raw_fd(), libc::STATX_DIOALIGN);
    // SAFETY: the path is a NUL-terminated empty string, and the kernel writes one `statx`.
    let result = unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut answer) };
    if result != 0 || answer.stx_mask & mask == 0 {
        return Some(DirectAlign { offset_bytes: ALIGN_UNKNOWN_BYTES, memory_bytes: ALIGN_UNKNOWN_BYTES });
    }
    (answer.stx_dio_offset_align > 0).then_some(DirectAlign {
        offset_bytes: answer.stx_dio_offset_align,
        memory_bytes: answer.stx_dio_mem_align.max(1),
    })
}

fn os(doing: String, source: io::Error) -> Error {
    Error::Os { doing, source }
}

fn problem(path: &Path, problem: &str) -> Error {
    Error::Target { path: path.into(), problem: problem.into() }
}
