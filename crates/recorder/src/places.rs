//! Where files are on drives.
//!
//! A file may be gone at the end of a recording, or another one may have its name by then. So its place is
//! looked up whenever it was flushed, when its bytes have a place for sure. A request is to the file whose
//! flush comes next under that name, or to the last one.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use flashgrain_device::{Extent, extents};

use crate::drives::{Drive, Part, part_of};

/// The most files that are kept in mind.
const FILES_MAX: usize = 50_000;

/// Where a file is.
#[derive(Clone, Debug)]
pub struct Place {
    inode: u64,
    size_bytes: u64,
    part: Part,
    /// In the order of their offsets; `None` of a block device, which is where it is.
    extents: Option<Vec<Extent>>,
}

/// The places of files by their names.
#[derive(Debug, Default)]
pub struct Places {
    /// For each name, the files that have had it, each with the number of requests until it was last seen.
    by_name: HashMap<String, Vec<(u64, Place)>>,
    files: usize,
}

impl Places {
    /// Looks where a file is, after `requests` requests.
    pub fn look(&mut self, name: &str, requests: u64) {
        let path = Path::new(name);
        let Ok(metadata) = std::fs::metadata(path) else { return };
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.to_owned(), Vec::new());
        }
        let Some(seen) = self.by_name.get_mut(name) else { return };
        if let Some((last, place)) = seen.last_mut().filter(|(_, place)| place.inode == metadata.ino()) {
            *last = requests;
            if place.size_bytes != metadata.len()
                && let Some(newer) = Place::of(path)
            {
                *place = newer;
            }
        } else if self.files < FILES_MAX
            && let Some(place) = Place::of(path)
        {
            self.files += 1;
            seen.push((requests, place));
        }
    }

    /// The place of the file that had a name when the request of this number was made.
    pub fn of(&self, name: &str, request: u64) -> Option<&Place> {
        let seen = self.by_name.get(name)?;
        let later = seen.iter().find(|(last, _)| *last >= request);
        later.or(seen.last()).map(|(_, place)| place)
    }
}

/// The file and offset of each address of a drive.
#[derive(Debug, Default)]
pub struct Owners {
    /// By drive, and by where the extent begins there.
    extents: BTreeMap<(Drive, u64), Owned>,
}

#[derive(Debug)]
struct Owned {
    name: String,
    file_offset_bytes: u64,
    length_bytes: u64,
}

impl Owners {
    /// The owners of all extents of `places`. Of an extent that several files have had, it is one of them.
    pub fn of(places: &Places) -> Self {
        let mut extents = BTreeMap::new();
        for (name, seen) in &places.by_name {
            for (_, place) in seen {
                for extent in place.extents.iter().flatten() {
                    let begin = place.part.begin_bytes.saturating_add(extent.device_offset_bytes);
                    let owned = Owned {
                        name: name.clone(),
                        file_offset_bytes: extent.file_offset_bytes,
                        length_bytes: extent.length_bytes,
                    };
                    extents.insert((place.part.drive, begin), owned);
                }
            }
        }
        Self { extents }
    }

    /// The file at an address, and the offset in it.
    pub fn at(&self, drive: Drive, offset_bytes: u64) -> Option<(&str, u64)> {
        let before = self.extents.range((drive, 0)..=(drive, offset_bytes));
        let (&(_, begin), owned) = before.last()?;
        let within = offset_bytes - begin;
        (within < owned.length_bytes)
            .then(|| (owned.name.as_str(), owned.file_offset_bytes.saturating_add(within)))
    }
}

impl Place {
    /// Where a file is now; `None` if it is gone, or on no drive.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let (inode, size_bytes) = (metadata.ino(), metadata.len());
        if metadata.file_type().is_block_device() {
            return Some(Self { inode, size_bytes, part: part_of(metadata.rdev())?, extents: None });
        }
        if !metadata.is_file() {
            return None;
        }
        let part = part_of(metadata.dev())?;
        let extents = extents(&File::open(path).ok()?).ok()?;
        Some(Self { inode, size_bytes, part, extents: Some(extents) })
    }

    /// The drive.
    pub fn drive(&self) -> Drive {
        self.part.drive
    }

    /// The address on the drive of a byte of the file.
    pub fn address(&self, offset_bytes: u64) -> Option<u64> {
        let Some(extents) = &self.extents else { return self.part.begin_bytes.checked_add(offset_bytes) };
        let after = extents.partition_point(|extent| extent.file_offset_bytes <= offset_bytes);
        let extent = extents.get(after.checked_sub(1)?)?;
        let within = offset_bytes - extent.file_offset_bytes;
        let begin = self.part.begin_bytes.checked_add(extent.device_offset_bytes)?;
        if within < extent.length_bytes { begin.checked_add(within) } else { None }
    }

    /// Whether a range of the drive begins in the file.
    pub fn holds(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let Some(offset) = offset_bytes.checked_sub(self.part.begin_bytes) else { return false };
        let mut extents = self.extents.iter().flatten();
        length_bytes > 0
            && extents.any(|extent| {
                let end = extent.device_offset_bytes.saturating_add(extent.length_bytes);
                (extent.device_offset_bytes..end).contains(&offset)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(inode: u64, extents: &[(u64, u64, u64)]) -> Place {
        let extents = extents.iter().map(|&(file_offset_bytes, device_offset_bytes, length_bytes)| Extent {
            file_offset_bytes,
            device_offset_bytes,
            length_bytes,
        });
        let part = Part { drive: Drive { major: 254, minor: 0 }, begin_bytes: 1 << 20 };
        Place { inode, size_bytes: 0, part, extents: Some(extents.collect()) }
    }

    #[test]
    fn addresses_are_those_of_the_drive_and_holes_have_none() {
        let place = place(1, &[(0, 8192, 4096), (8192, 100_000, 4096)]);
        assert_eq!(place.address(5), Some((1 << 20) + 8197));
        assert_eq!(place.address(4096), None);
        assert_eq!(place.address(12287), Some((1 << 20) + 104_095));
        assert_eq!(place.address(12288), None);
        assert!(
            place.holds((1 << 20) + 8192, 1) && !place.holds(8192, 1) && !place.holds((1 << 20) + 12288, 1)
        );
    }

    #[test]
    fn addresses_have_owners() {
        let seen = vec![(10, place(1, &[(0, 8192, 4096), (8192, 100_000, 4096)]))];
        let places = Places { by_name: HashMap::from([("f".to_owned(), seen)]), files: 1 };
        let owners = Owners::of(&places);
        let drive = Drive { major: 254, minor: 0 };
        assert_eq!(owners.at(drive, (1 << 20) + 100_005), Some(("f", 8197)));
        assert_eq!(owners.at(drive, (1 << 20) + 12288), None);
        assert_eq!(owners.at(drive, 0), None);
        assert_eq!(owners.at(Drive { minor: 1, ..drive }, (1 << 20) + 8192), None);
    }

    #[test]
    fn a_request_is_to_the_file_that_is_seen_next() {
        let seen = vec![(10, place(1, &[(0, 0, 1)])), (20, place(2, &[(0, 0, 1)]))];
        let places = Places { by_name: HashMap::from([("f".to_owned(), seen)]), files: 2 };
        let inode = |request| places.of("f", request).map(|place| place.inode);
        assert_eq!([3, 10, 11, 99].map(inode), [Some(1), Some(1), Some(2), Some(2)]);
        assert!(places.of("g", 1).is_none());
    }

    #[test]
    fn a_file_that_is_gone_stays_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, [1; 8192]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let name = path.to_str().unwrap();
        let mut places = Places::default();
        places.look(name, 7);
        std::fs::remove_file(&path).unwrap();
        places.look(name, 9);
        // A folder in memory is on no drive.
        if let Some(place) = places.of(name, 9) {
            assert_eq!(place.address(8191).map(|last| last - 8191), place.address(0));
        }
    }
}
