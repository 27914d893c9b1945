//! A namespace that is opened for commands past the kernel's block layer.
//!
//! The kernel's own checks are in the block layer. Two of them are made here instead:
//! - A namespace whose block device is mounted, part of a volume, or opened for one program alone is refused
//!   for writes: its block device is opened with `O_EXCL`, as a raw drive is, and held.
//! - Requests are no larger than the kernel can map and the drive takes.
//!
//! The page cache of the block device does not see the writes. Its pages are dropped when a namespace that
//! was opened for writing is closed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::command::{Blocks, Structure, identify, namespace_number};
use super::identify::{NamespaceFacts, transfer_bytes_max};
use super::node::BlockNode;
use super::status::meaning;
use crate::Error;

/// A page of memory: each may be a segment of its own.
const PAGE_BYTES: u64 = 4096;

/// A request this long is mapped by every kernel that has passthrough.
const TRANSFER_BYTES_UNKNOWN: u64 = 64 << 10;

/// `BLKFLSBUF` of linux/fs.h: writes the block device's page cache out and drops it.
const DROP_CACHE: libc::Ioctl = 0x1261_u32 as libc::Ioctl;

/// Protection of a namespace against others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is only read.
    Shared,
    /// Its block device belongs to this opening until it is closed.
    Exclusive,
    /// It is written, and the opener has the block device already.
    Claimed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// Its number on the drive.
    pub number: u32,
    pub facts: NamespaceFacts,
    /// Requests are cut to this: a power of two, and whole blocks.
    pub part_bytes_max: u32,
    /// Memory is aligned to this.
    pub memory_align_bytes: u32,
    /// Number of the block device.
    pub device_number: u64,
    /// The block device, held open.
    block: File,
    hold: Hold,
    path: PathBuf,
    /// Statuses that commands have failed with.
    failures: Mutex<BTreeSet<u16>>,
}

impl Namespace {
    /// The namespace of `file`, which was opened by `path`.
    ///
    /// # Errors
    /// [`Error::Target`] with a remedy, also if its block device is in use and it is to be held exclusively.
    pub fn of(file: &File, path: &Path, hold: Hold) -> Result<Self, Error> {
        let fd = file.as_raw_fd();
        let number =
            namespace_number(fd).map_err(|_| problem(path, "not a namespace of an NVMe drive".into()))?;
        let node = BlockNode::of(path).filter(|node| node.number("nsid") == Some(u64::from(number)));
        let Some(node) = node else {
            let why = "the block device of this namespace is not under /dev (as in a container): without it nothing shows \
                       whether the namespace is in use";
            return Err(problem(path, why.into()));
        };
        let block = open_block(&node, path, hold)?;
        let (facts, controller) = ask(fd, number, path)?;
        if node.fact("queue/zoned").is_some_and(|zoned| zoned != "none") {
            return Err(problem(path, "a zoned namespace takes writes in order only: not supported".into()));
        }
        if facts.write_protected && hold != Hold::Shared {
            return Err(problem(path, meaning(0x020).1.into()));
        }
        let metadata = block.metadata().map_err(|source| os(&node.path, source))?;
        let namespace = Self {
            number,
            facts,
            part_bytes_max: part_bytes_max(&node, &facts, transfer_bytes_max(&controller)),
            memory_align_bytes: memory_align(&node),
            device_number: metadata.rdev(),
            block,
            hold,
            path: path.to_owned(),
            failures: Mutex::default(),
        };
        if hold != Hold::Shared {
            // Writes of others that are only in the page cache would follow later, over those made here.
            namespace.drop_cache();
        }
        Ok(namespace)
    }

    /// Usable bytes.
    pub fn size_bytes(&self) -> u64 {
        self.facts.blocks << self.facts.block_shift
    }

    /// Bytes of a logical block.
    pub fn block_bytes(&self) -> u32 {
        1 << self.facts.block_shift
    }

    /// The blocks of a range of bytes, which is a multiple of them.
    pub fn blocks(&self, offset_bytes: u64, length_bytes: u32) -> Blocks {
        Blocks {
            first: offset_bytes >> self.facts.block_shift,
            count: length_bytes >> self.facts.block_shift,
        }
    }

    /// The result of a command, in the form of a system call's: the drive's status becomes an errno and is
    /// kept for [`Namespace::failures`].
    pub fn result(&self, result: i32, bytes: u32) -> i32 {
        match result {
            0 => i32::try_from(bytes).unwrap_or(i32::MAX),
            errno if errno < 0 => errno,
            status => {
                let status = status as u16;
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(status);
                -meaning(status).0
            }
        }
    }

    /// The answers of the drive to commands that it has refused, in words.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let words = |status: &u16| {
            let (code, kind) = (status & 0xff, status >> 8 & 7);
            let text = meaning(*status).1;
            format!("{}: {text} (status type {kind:#x}, code {code:#04x})", self.path.display())
        };
        failures.iter().map(words).collect()
    }

    fn drop_cache(&self) {
        drop_cache(self.block.as_raw_fd());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.hold != Hold::Shared {
            self.drop_cache();
        }
    }
}

/// The first bytes of a namespace, file or block device, at most `bytes`, as they are on the drive.
///
/// # Errors
/// Those of opening and reading it.
pub fn read_head(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let node = BlockNode::of(path);
    let file = File::open(node.as_ref().map_or(path, |node| &node.path))?;
    if node.is_some() {
        // Pages of before the last writes, which went around it.
        drop_cache(file.as_raw_fd());
    }
    let mut head = Vec::new();
    file.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}

fn drop_cache(fd: RawFd) {
    // SAFETY: this call takes no memory of ours. Without the right to do so the cache stays, and the data of
    // other writers suffer only if they still write.
    unsafe { libc::ioctl(fd, DROP_CACHE, 0) };
}

fn open_block(node: &BlockNode, path: &Path, hold: Hold) -> Result<File, Error> {
    let flags = if hold == Hold::Exclusive { libc::O_EXCL } else { 0 };
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&node.path);
    opened.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY) => {
            let block = node.path.display();
            problem(path, format!("{block} is in use (mounted, or part of a volume): it is left alone"))
        }
        _ => os(&node.path, source),
    })
}

/// The drive's descriptions of the namespace and of itself.
fn ask(fd: RawFd, number: u32, path: &Path) -> Result<(NamespaceFacts, Vec<u8>), Error> {
    let ask = |structure| {
        match identify(fd, number, structure) {
        Ok((0, answer)) => Ok(answer),
        Ok((status, _)) => Err(problem(path, format!("the drive does not describe itself: {}", meaning(status).1))),
        Err(source) if matches!(source.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => Err(problem(
            path,
            "commands to the drive are not allowed: run this as root (CAP_SYS_ADMIN), or since Linux 6.2 as a user with \
             write access to the device"
                .into(),
        )),
        Err(source) => Err(os(path, source)),
    }
    };
    let facts = NamespaceFacts::parse(&ask(Structure::Namespace)?).map_err(|why| problem(path, why))?;
    Ok((facts, ask(Structure::Controller)?))
}

/// The largest request that the drive takes and the kernel maps however its memory lies.
fn part_bytes_max(node: &BlockNode, facts: &NamespaceFacts, drive: Option<u64>) -> u32 {
    let kernel = node.number("queue/max_hw_sectors_kb").map(|kib| kib << 10);
    // Memory that does not begin on a page has one page more.
    let segments = node.number("queue/max_segments").map(|count| count.saturating_sub(1) * PAGE_BYTES);
    largest_part(&[drive, kernel, segments], facts.block_shift)
}

/// A power of two that is within all known limits, and at least a block.
fn largest_part(limits: &[Option<u64>], block_shift: u8) -> u32 {
    let least = limits.iter().flatten().min().copied().unwrap_or(TRANSFER_BYTES_UNKNOWN);
    // The count of blocks has 16 bits.
    let bytes = least.clamp(1, 1 << 24).min(1 << 16 << block_shift);
    (1u32 << bytes.ilog2()).max(1 << block_shift)
}

/// The kernel copies memory that is aligned to less than this.
fn memory_align(node: &BlockNode) -> u32 {
    let mask = node.number("queue/dma_alignment").filter(|mask| (mask + 1).is_power_of_two());
    mask.map_or(4, |mask| u32::try_from(mask + 1).unwrap_or(PAGE_BYTES as u32))
}

fn problem(path: &Path, problem: String) -> Error {
    Error::Target { path: path.into(), problem }
}

fn os(path: &Path, source: io::Error) -> Error {
    Error::Os { doing: format!("open {}", path.display()), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_to_the_least_limit() {
        assert_eq!(largest_part(&[Some(512 << 10), Some(4 << 20), Some(504 << 10)], 9), 256 << 10);
        assert_eq!(largest_part(&[None, Some(128 << 10), None], 12), 128 << 10);
        assert_eq!(largest_part(&[None, None, None], 12), 64 << 10);
        assert_eq!(largest_part(&[Some(1 << 40)], 9), 1 << 24);
        assert_eq!(largest_part(&[Some(0)], 16), 64 << 10);
    }

    #[test]
    fn the_head_of_a_file_is_cut_at_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [1, 2, 3]).unwrap();
        assert_eq!(read_head(file.path(), 2).unwrap(), [1, 2]);
        assert_eq!(read_head(file.path(), 9).unwrap(), [1, 2, 3]);
        assert!(read_head(Path::new("/nowhere"), 1).is_err());
    }
}
