//! Fields one after another in one sector, for data that is written rarely and read first: superblocks,
//! labels, and the log's durable mark.
//!
//! ```text
//! 0        8          12       16
//! | magic  | checksum | format | fields ... zeros to byte 512
//! | 8 bytes| crc32c   | u32    |
//! ```
//!
//! All numbers are little-endian. The checksum covers everything after it. 512 bytes are the unit that every
//! drive writes as a whole or not at all.

use crate::checksum::crc32c;

/// Bytes of it all.
pub(crate) const SECTOR_BYTES: usize = 512;

/// The version of the store's format, all of it: superblocks, labels, map, pages and log.
pub(crate) const FORMAT_VERSION: u32 = 13;

/// The earliest format version that can be read. Sectors are always written in [`FORMAT_VERSION`].
const EARLIEST_VERSION: u32 = 3;

const CHECKSUM: usize = 8;
const FORMAT: usize = 12;
const FIELDS: usize = 16;

/// The outcome of decoding a sector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// The expected magic, a known format version, and a right checksum.
    Whole(T),
    /// Something with another magic: never written, or not the store's.
    Foreign,
    /// Of another version of the format.
    Version(u32),
    /// The checksum is wrong, or a field is nonsense.
    Damaged,
}

/// Writes fields.
pub(crate) struct Fields {
    bytes: [u8; SECTOR_BYTES],
    at: usize,
}

impl Fields {
    pub fn new(magic: [u8; 8]) -> Self {
        let mut bytes = [0; SECTOR_BYTES];
        bytes[..CHECKSUM].copy_from_slice(&magic);
        bytes[FORMAT..FIELDS].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        Self { bytes, at: FIELDS }
    }

    pub fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&field);
        self.at += N;
    }

    pub fn long(&mut self, field: u64) {
        self.put(field.to_le_bytes());
    }

    pub fn word(&mut self, field: u32) {
        self.put(field.to_le_bytes());
    }

    pub fn byte(&mut self, field: u8) {
        self.put([field]);
    }

    /// With the checksum.
    pub fn seal(mut self) -> [u8; SECTOR_BYTES] {
        let checksum = crc32c(&self.bytes[FORMAT..]);
        self.bytes[CHECKSUM..FORMAT].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

/// Reads fields; zeros after the last one.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The fields of a sector, if it is whole.
    pub fn open(bytes: &'a [u8], magic: [u8; 8]) -> Found<Self> {
        let (Some(sector), true) = (bytes.get(..SECTOR_BYTES), bytes.starts_with(&magic)) else {
            return Found::Foreign;
        };
        let mut head = Self(&sector[CHECKSUM..]);
        if head.word() != crc32c(&sector[FORMAT..]) && !planted!(SuperblockChecksumIgnored) {
            return Found::Damaged;
        }
        match head.word() {
            EARLIEST_VERSION..=FORMAT_VERSION => Found::Whole(Self(&sector[FIELDS..])),
            other => Found::Version(other),
        }
    }

    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn byte(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }
}

/// With the checksum, and the version, that belong to it.
#[cfg(feature = "testing")]
pub(crate) fn sealed(mut sector: [u8; SECTOR_BYTES]) -> [u8; SECTOR_BYTES] {
    sector[FORMAT..FIELDS].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    Fields { bytes: sector, at: SECTOR_BYTES }.seal()
}
