//! The drives of the system by number, and the kernel's counters of them (Linux,
//! Documentation/block/stat.rst).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

const SECTOR_BYTES: u64 = 512;

/// A whole drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Drive {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl std::fmt::Display for Drive {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

/// A block device: a part of a drive, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The drive.
    pub drive: Drive,
    /// Where the part begins on it.
    pub begin_bytes: u64,
}

/// The kernel's counters of a drive since it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads and writes that were completed.
    pub requests: [u64; 2],
    /// Bytes that they moved.
    pub bytes: [u64; 2],
}

impl Counters {
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: [u64; 2], before: [u64; 2]| {
            [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
        };
        Self { requests: less(self.requests, earlier.requests), bytes: less(self.bytes, earlier.bytes) }
    }
}

impl Drive {
    fn folder(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{self}"))
    }

    /// Its name in /dev, such as `nvme0n1`; its number if it is gone.
    pub fn name(self) -> String {
        let folder = fs::canonicalize(self.folder()).ok();
        let name =
            folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| self.to_string())
    }

    /// The kernel's counters; `None` if the drive is gone.
    pub fn counters(self) -> Option<Counters> {
        counters(&fs::read_to_string(self.folder().join("stat")).ok()?)
    }

    /// The number in a filter of trace events: that of the kernel's `dev_t`.
    pub fn kernel_number(self) -> u64 {
        u64::from(self.major) << 20 | u64::from(self.minor)
    }
}

fn counters(text: &str) -> Option<Counters> {
    let columns: Vec<u64> = text.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    let sectors = |at: usize| columns.get(at)?.checked_mul(SECTOR_BYTES);
    Some(Counters { requests: [*columns.first()?, *columns.get(4)?], bytes: [sectors(2)?, sectors(6)?] })
}

/// The kernel's counters of all drives.
pub fn all_counters() -> BTreeMap<Drive, Counters> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let number = fs::read_to_string(entry.path().join("dev")).ok()?;
        let drive: Drive = number.trim().parse().ok()?;
        Some((drive, drive.counters()?))
    };
    entries.filter_map(of).collect()
}

impl FromStr for Drive {
    type Err = ();

    /// As it is displayed.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

/// The part of a drive with a device number; `None` if it is not of a block device.
pub fn part_of(device_number: u64) -> Option<Part> {
    let number = Drive { major: libc::major(device_number), minor: libc::minor(device_number) };
    let folder = fs::canonicalize(number.folder()).ok()?;
    if !folder.join("partition").exists() {
        return Some(Part { drive: number, begin_bytes: 0 });
    }
    let begin: u64 = fs::read_to_string(folder.join("start")).ok()?.trim().parse().ok()?;
    let drive = fs::read_to_string(folder.parent()?.join("dev")).ok()?;
    Some(Part { drive: drive.trim().parse().ok()?, begin_bytes: begin.checked_mul(SECTOR_BYTES)? })
}

/// The drive of a block device, or of the file system that a file or folder is on.
///
/// # Errors
/// [`Error::Drive`] if there is none.
pub fn drive_of(path: &Path) -> Result<Drive, Error> {
    let problem = |problem: String| Error::Drive { path: path.to_owned(), problem };
    let metadata =
        fs::metadata(path).map_err(|error| problem(format!("{error}: name a block device of /dev")))?;
    let is_device = metadata.file_type().is_block_device();
    let number = if is_device { metadata.rdev() } else { metadata.dev() };
    let part = part_of(number).ok_or_else(|| {
        problem("the kernel shows no block device of it in /sys/dev/block: name one of /dev".into())
    })?;
    Ok(part.drive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_completed_requests() {
        let text = "   10  1  80  5  20 2 160 7 0 9 12 0 0 0 0 3 1\n";
        let found = counters(text).unwrap();
        assert_eq!(found, Counters { requests: [10, 20], bytes: [80 * 512, 160 * 512] });
        assert_eq!(counters("1 2 x"), None);
        assert_eq!(found.since(&found), Counters::default());
    }

    #[test]
    fn numbers_are_those_of_filters() {
        assert_eq!("259:3".parse(), Ok(Drive { major: 259, minor: 3 }));
        assert_eq!(Drive { major: 259, minor: 3 }.kernel_number(), 259 << 20 | 3);
        assert!(drive_of(Path::new("/dev/no-such-drive")).is_err());
        assert!(drive_of(Path::new("/proc")).is_err());
    }
}
