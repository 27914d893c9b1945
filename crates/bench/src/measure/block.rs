//! The kernel's counters of a block device: they include all users of the device, so that there must be no
//! other user meanwhile.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes of a sector in the kernel's counters, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

/// The device below a directory.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    statistics: PathBuf,
}

/// Since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounters {
    /// Requests that read.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
    /// Flushes of its cache.
    pub flushes: u64,
}

impl BlockDevice {
    /// The one that holds `directory`; `None` where the kernel has no single one: memory, overlays, networks.
    pub fn below(directory: &Path) -> Option<Self> {
        let number = directory.metadata().ok()?.dev();
        // Split as in `gnu_dev_major` and `gnu_dev_minor`.
        let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
        let minor = (number & 0xff) | (number >> 12 & !0xff);
        let statistics = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let device = Self { statistics };
        device.read().map(|_| device)
    }

    /// The counters now.
    pub fn read(&self) -> Option<BlockCounters> {
        BlockCounters::parse(&std::fs::read_to_string(&self.statistics).ok()?)
    }
}

impl BlockCounters {
    /// The columns of Linux' Documentation/block/stat.rst; flushes are there since 5.5.
    fn parse(text: &str) -> Option<Self> {
        let columns: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            reads: *columns.first()?,
            read_bytes: columns.get(2)? * SECTOR_BYTES,
            writes: *columns.get(4)?,
            written_bytes: columns.get(6)? * SECTOR_BYTES,
            flushes: columns.get(15).copied().unwrap_or(0),
        })
    }

    /// The difference to `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            flushes: self.flushes.saturating_sub(before.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_their_columns() {
        let text = " 10 2 80 7 5 1 48 9 0 16 20 0 0 0 0 3 4\n";
        let counters = BlockCounters::parse(text).unwrap();
        let expected =
            BlockCounters { reads: 10, read_bytes: 80 * 512, writes: 5, written_bytes: 48 * 512, flushes: 3 };
        assert_eq!(counters, expected);
        assert_eq!(counters.since(&expected), BlockCounters::default());
        assert_eq!(BlockCounters::parse("1 2 3"), None);
    }

    #[test]
    fn memory_has_no_block_device() {
        assert!(BlockDevice::below(Path::new("/proc")).is_none());
    }
}
