//! The contents of a directory slot: names, lengths and extents of all files.
//!
//! ```text
//!  0 ┌───────────────────────────────────┐
//!    │ magic "Flashgrain vol.\0"         │
//! 16 ├───────────────────────────────────┤
//!    │ version, u32: 3                   │
//! 20 ├───────────────────────────────────┤
//!    │ files, u32                        │
//! 24 ├───────────────────────────────────┤
//!    │ generation, u64                   │
//! 32 ├───────────────────────────────────┤
//!    │ bytes of all, checksum too, u64   │
//! 40 ├───────────────────────────────────┤
//!    │ extents of the device, u32        │
//! 44 ├───────────────────────────────────┤
//!    │ identity of the volume            │ not in version 2, whose extents begin at 1 MiB
//! 60 ├───────────────────────────────────┤
//!    │ of each file: bytes of its name,  │
//!    │ u32; runs, u32; length, u64; name;│
//!    │ of each run: first extent, u32,   │
//!    │ and how many, u32                 │
//!    ├───────────────────────────────────┤
//!    │ CRC32C of all before, u32         │
//!    └───────────────────────────────────┘
//! ```
//!
//! Numbers are little-endian.

use super::volume_id::VolumeId;
use super::{EXTENT_BYTES, SLOT_BYTES};

const MAGIC: &[u8; 16] = b"Flashgrain vol.\0";
const VERSION: u32 = 3;

/// The version of volumes without an identity, which remain without one.
const VERSION_WITHOUT_IDENTITY: u32 = 2;

/// Bytes of a name at most.
pub(super) const NAME_BYTES_MAX: usize = 200;

/// Extents in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub first: u32,
    pub count: u32,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub length_bytes: u64,
    pub runs: Vec<Run>,
}

impl Entry {
    /// Bytes of its extents.
    pub fn room_bytes(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.count) * EXTENT_BYTES).sum()
    }
}

/// All files at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    pub generation: u64,
    /// The volume's identity; volumes of version 2 have none.
    pub volume: Option<VolumeId>,
    pub entries: Vec<Entry>,
}

impl Directory {
    /// The slot's bytes on a device with `extents` extents; `None` if they are too many.
    pub fn encode(&self, extents: u32) -> Option<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        let version = if self.volume.is_some() { VERSION } else { VERSION_WITHOUT_IDENTITY };
        bytes.extend(version.to_le_bytes());
        bytes.extend((self.entries.len() as u32).to_le_bytes());
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(extents.to_le_bytes());
        bytes.extend(self.volume.iter().flat_map(|volume| volume.0));
        for entry in &self.entries {
            bytes.extend((entry.name.len() as u32).to_le_bytes());
            bytes.extend((entry.runs.len() as u32).to_le_bytes());
            bytes.extend(entry.length_bytes.to_le_bytes());
            bytes.extend(entry.name.as_bytes());
            for run in &entry.runs {
                bytes.extend(run.first.to_le_bytes());
                bytes.extend(run.count.to_le_bytes());
            }
        }
        let all = bytes.len() as u64 + 4;
        bytes[32..40].copy_from_slice(&all.to_le_bytes());
        let checksum = crc_fast::crc32_iscsi(&bytes);
        bytes.extend(checksum.to_le_bytes());
        (all <= SLOT_BYTES).then_some(bytes)
    }

    /// The directory in a slot of this volume, on a device with `extents` extents; `None` if it is none,
    /// damaged, that of another volume, or that of a device with more or less: drives that are striped over
    /// were left out then, or added.
    pub fn decode(slot: &[u8], volume: Option<VolumeId>, extents: u32) -> Option<Self> {
        let all = u64::from_le_bytes(part(slot, 32)?);
        let bytes = slot.get(..usize::try_from(all).ok()?)?;
        let (content, checksum) = bytes.split_last_chunk::<4>()?;
        if !content.starts_with(MAGIC)
            || crc_fast::crc32_iscsi(content) != u32::from_le_bytes(*checksum)
            || u32::from_le_bytes(part(content, 40)?) != extents
        {
            return None;
        }
        let (found, mut at) = match u32::from_le_bytes(part(content, 16)?) {
            VERSION => (Some(VolumeId(part(content, 44)?)), 60),
            VERSION_WITHOUT_IDENTITY => (None, 44),
            _ => return None,
        };
        if found != volume {
            return None;
        }
        let files = u32::from_le_bytes(part(content, 20)?);
        let generation = u64::from_le_bytes(part(content, 24)?);
        let mut directory = Self { generation, volume, entries: Vec::new() };
        let mut used = vec![false; extents as usize];
        for _ in 0..files {
            directory.entries.push(entry(content, &mut at, &mut used)?);
        }
        (at == content.len()).then_some(directory)
    }
}

/// The next entry; `None` unless its extents exist and belong to no other file.
fn entry(content: &[u8], at: &mut usize, used: &mut [bool]) -> Option<Entry> {
    let name_bytes = u32::from_le_bytes(part(content, *at)?) as usize;
    let runs = u32::from_le_bytes(part(content, *at + 4)?);
    let length_bytes = u64::from_le_bytes(part(content, *at + 8)?);
    *at += 16;
    let name = content.get(*at..at.checked_add(name_bytes)?)?;
    let mut entry = Entry { name: str::from_utf8(name).ok()?.to_owned(), length_bytes, runs: Vec::new() };
    *at += name_bytes;
    for _ in 0..runs {
        let first = u32::from_le_bytes(part(content, *at)?);
        let count = u32::from_le_bytes(part(content, *at + 4)?);
        for extent in used.get_mut(first as usize..first.checked_add(count)? as usize)? {
            if std::mem::replace(extent, true) {
                return None;
            }
        }
        entry.runs.push(Run { first, count });
        *at += 8;
    }
    (length_bytes <= entry.room_bytes()).then_some(entry)
}

pub(super) fn part<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<[u8; BYTES]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: VolumeId = VolumeId([7; 16]);

    fn decode(bytes: &[u8], extents: u32) -> Option<Directory> {
        Directory::decode(bytes, Some(ID), extents)
    }

    fn directory() -> Directory {
        let entry = |name: &str, length_bytes, runs: &[(u32, u32)]| Entry {
            name: name.into(),
            length_bytes,
            runs: runs.iter().map(|(first, count)| Run { first: *first, count: *count }).collect(),
        };
        Directory {
            generation: 7,
            volume: Some(ID),
            entries: vec![entry("a", 3 << 20, &[(0, 2), (9, 1)]), entry("a-journal", 0, &[])],
        }
    }

    #[test]
    fn a_directory_reads_back() {
        let bytes = directory().encode(10).unwrap();
        assert_eq!(decode(&bytes, 10), Some(directory()));
        for other in [9, 11] {
            assert_eq!(decode(&bytes, other), None, "the directory of another device");
        }
        for other in [None, Some(VolumeId([8; 16]))] {
            assert_eq!(Directory::decode(&bytes, other, 10), None, "the directory of another volume");
        }
        let older = Directory { volume: None, ..directory() };
        let bytes = older.encode(10).unwrap();
        assert_eq!(bytes[16], 2);
        assert_eq!(Directory::decode(&bytes, None, 10), Some(older), "version 2 is read as before");
    }

    #[test]
    fn files_share_no_extent_and_are_no_longer_than_theirs() {
        for spoil in [
            |all: &mut Directory| all.entries[0].runs[1].first = 1,
            |all: &mut Directory| all.entries[0].length_bytes += 1,
        ] {
            let mut spoilt = directory();
            spoil(&mut spoilt);
            assert_eq!(decode(&spoilt.encode(10).unwrap(), 10), None);
        }
    }

    #[test]
    fn too_many_pieces_are_refused() {
        let runs = vec![Run { first: 0, count: 1 }; 1 << 16];
        let entry = Entry { runs, ..Entry::default() };
        assert_eq!(Directory { entries: vec![entry], ..Directory::default() }.encode(10), None);
    }

    proptest! {
        #[test]
        fn every_flipped_bit_shows(bit in 0_usize..135 * 8) {
            let mut bytes = directory().encode(10).unwrap();
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&bytes, 10), None);
        }

        #[test]
        fn nothing_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, 10);
            if bytes.len() > 68 {
                // With everything right but the content.
                bytes[..16].copy_from_slice(MAGIC);
                bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
                bytes[40..44].copy_from_slice(&10_u32.to_le_bytes());
                bytes[44..60].copy_from_slice(&ID.0);
                let all = bytes.len();
                bytes[32..40].copy_from_slice(&(all as u64).to_le_bytes());
                let checksum = crc_fast::crc32_iscsi(&bytes[..all - 4]);
                bytes[all - 4..].copy_from_slice(&checksum.to_le_bytes());
                let _ = decode(&bytes, 10);
            }
        }
    }
}
