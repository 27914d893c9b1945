//! How a request reaches the kernel: several backends with one small trait.
//!
//! A backend carries *parts*: a request to one member of the device, already cut at stripe boundaries. It
//! knows nothing of retries, stripes or timestamps; those live once, in [`crate::queue`].

pub(crate) mod file_encoding;
pub(crate) mod files;
pub(crate) mod libaio;
pub(crate) mod passthrough;
pub(crate) mod submission_thread;
pub(crate) mod sync;
pub(crate) mod uring;

use std::io;
use std::os::fd::RawFd;
use std::str::FromStr;

use crate::Nanos;

/// Queues of stores, and the deepest of most measurements, are this deep.
const AMPLE_DEPTH: u32 = 1_024;

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// `io_uring`: a pair of rings shared with the kernel.
    IoUring,
    /// `io_uring` with a thread of the kernel that takes submissions, so that these need no system call.
    IoUringSqpoll,
    /// `libaio`: the kernel's older asynchronous interface, `io_submit` and `io_getevents`.
    Libaio,
    /// `pread` and `pwrite`, one request at a time.
    Sync,
    /// NVMe commands by `io_uring`, past the kernel's block layer.
    NvmePassthrough,
}

impl BackendKind {
    /// All.
    pub const ALL: [Self; 5] =
        [Self::IoUring, Self::IoUringSqpoll, Self::Libaio, Self::Sync, Self::NvmePassthrough];

    /// Those for files and block devices.
    pub const FOR_FILES: [Self; 4] = [Self::IoUring, Self::IoUringSqpoll, Self::Libaio, Self::Sync];

    /// Those for files and block devices that are taken without being asked for, best first.
    /// [`Self::IoUringSqpoll`] is not among them: its thread keeps a processor busy, which only the user can
    /// spare.
    pub const AUTOMATIC: [Self; 3] = [Self::IoUring, Self::Libaio, Self::Sync];

    /// The name that the command line and the profile use.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::IoUringSqpoll => "io_uring-sqpoll",
            Self::Libaio => "libaio",
            Self::Sync => "sync",
            Self::NvmePassthrough => "nvme-passthrough",
        }
    }

    /// Whether the kernel lets this process use it for queues as deep as most work has; if not, the reason
    /// and a remedy. A ring that is longer than a limit allows is refused although a short one is not, so
    /// that [`BackendKind::available`] does not tell.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn ample(self) -> Result<(), String> {
        match self {
            Self::IoUring => uring::ample(AMPLE_DEPTH),
            _ => self.available(),
        }
    }

    /// The one that is used unless another is asked for, and why that one.
    pub(crate) fn automatic() -> (Self, String) {
        let mut refused = Vec::new();
        for backend in Self::AUTOMATIC {
            match backend.ample() {
                Ok(()) if refused.is_empty() => return (backend, "preferred, and available here".into()),
                Ok(()) => {
                    return (backend, format!("preferred among those that are left: {}", refused.join("; ")));
                }
                Err(why) => refused.push(format!("{} is not available ({why})", backend.name())),
            }
        }
        (Self::Sync, refused.join("; "))
    }

    /// The next best.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::IoUring | Self::IoUringSqpoll => Some(Self::Libaio),
            Self::Libaio => Some(Self::Sync),
            Self::Sync | Self::NvmePassthrough => None,
        }
    }

    /// Whether the kernel lets this process use it; if not, the reason and a remedy.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn available(self) -> Result<(), String> {
        match self {
            Self::IoUring => uring::available(),
            Self::IoUringSqpoll => uring::available().and_then(|()| submission_thread::available()),
            Self::Libaio => libaio::available(),
            Self::Sync => Ok(()),
            Self::NvmePassthrough => passthrough::available(),
        }
    }
}

impl FromStr for BackendKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown backend `{name}`: use one of {names}")
        })
    }
}

/// Operations of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartOp {
    Read,
    Write,
    WriteDsync,
    Flush,
    Discard,
}

/// A request, or a piece of one, to one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub op: PartOp,
    /// Index into the device's files.
    pub member: u32,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    pub memory: *mut u8,
    /// The next part pushed may start only when this one is wholly done.
    pub link: bool,
}

/// One way into the kernel. Tokens are the queue's part numbers, below the capacity that the backend was made
/// for.
pub(crate) trait Backend {
    /// Whether [`Part::link`] is honoured.
    const LINKS: bool;

    /// Whether parts may have to be shorter than requests.
    const CUTS: bool = false;

    /// The largest part that the backend takes; discards may be larger.
    fn part_bytes_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether `parts` more can be pushed before the next [`Backend::enter`].
    fn has_room(&self, parts: u32) -> bool;

    /// Stages a part. Call only with room.
    ///
    /// # Safety
    /// `part.memory` stays valid for `part.length_bytes` and unaliased until the token has come back from
    /// [`Backend::reap`].
    unsafe fn push(&mut self, token: u32, part: &Part);

    /// Hands staged parts to the kernel and waits until about `at_least` results are ready or `until` has
    /// passed; may return earlier. `EINTR`, full queues and temporary lack of resources are not errors: parts
    /// that were not taken stay staged.
    fn enter(&mut self, at_least: u32, until: Option<Nanos>) -> io::Result<()>;

    /// From now on, [`Backend::enter`] also stops waiting when `fd` can be read. `false` if it cannot.
    fn watch(&mut self, fd: RawFd) -> bool;

    /// Whether that has happened since this was last asked.
    fn alarmed(&mut self) -> bool;

    /// The next result, if one is ready: its token, and the return value of the system call (negative errno).
    fn reap(&mut self) -> Option<(u32, i32)>;
}

/// A blocking `fallocate` that punches the range out: the kernel discards it on the drive where that is
/// possible.
pub(crate) fn discard(fd: RawFd, part: &Part) -> i32 {
    let (offset, length) = (part.offset_bytes as libc::off_t, libc::off_t::from(part.length_bytes));
    // SAFETY: `fallocate` takes no memory of ours.
    or_errno(unsafe { libc::fallocate(fd, DISCARD_MODE, offset, length) } as isize)
}

/// `fallocate` mode of a discard.
pub(crate) const DISCARD_MODE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// A blocking `fdatasync`.
pub(crate) fn flush(fd: RawFd) -> i32 {
    // SAFETY: `fdatasync` takes no memory of ours.
    or_errno(unsafe { libc::fdatasync(fd) } as isize)
}

/// A C return value in the kernel's form: non-negative result or negative errno.
pub(crate) fn or_errno(result: isize) -> i32 {
    if result >= 0 {
        i32::try_from(result).unwrap_or(i32::MAX)
    } else {
        -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    }
}
