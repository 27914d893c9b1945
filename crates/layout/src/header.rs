//! What a file says of its own layout: 64 bytes at its begin, in a block that holds nothing else.
//!
//! ```text
//!  0 ┌──────────────────────────────┐
//!    │ magic "Flashgrain file\0"    │ no program takes this for a file of its own
//! 16 ├──────────────────────────────┤
//!    │ technique, u32               │ 1: use-hot-locations
//! 20 ├──────────────────────────────┤
//!    │ zero                         │
//! 24 ├──────────────────────────────┤
//!    │ chunk, bytes, u64            │
//! 32 ├──────────────────────────────┤
//!    │ hot offset, bytes, u64       │
//! 40 ├──────────────────────────────┤
//!    │ zero                         │
//! 60 ├──────────────────────────────┤
//!    │ CRC32C of bytes 0 to 60, u32 │
//! 64 └──────────────────────────────┘
//! ```
//!
//! Numbers are little-endian. The header is written once, before the first byte of content, and never
//! changes.

use crate::{Error, HotLocations};

/// The part of a file that belongs to the header; all but the first [`ENCODED_BYTES`] are zero.
pub const HEADER_BYTES: u64 = 4096;

/// Bytes that say something.
pub const ENCODED_BYTES: usize = 64;

const MAGIC: &[u8; 16] = b"Flashgrain file\0";
const CHECKED_BYTES: usize = 60;
const USE_HOT_LOCATIONS: u32 = 1;

/// The header of a file with this layout.
pub fn encode(layout: HotLocations) -> [u8; ENCODED_BYTES] {
    let mut bytes = [0; ENCODED_BYTES];
    bytes[..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&USE_HOT_LOCATIONS.to_le_bytes());
    bytes[24..32].copy_from_slice(&layout.chunk_bytes().to_le_bytes());
    bytes[32..40].copy_from_slice(&layout.hot_offset_bytes().to_le_bytes());
    let checksum = crc_fast::crc32_iscsi(&bytes[..CHECKED_BYTES]);
    bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The layout of a file that begins with these bytes; `None` if it is not one of ours.
///
/// # Errors
/// [`Error::Checksum`], [`Error::Newer`] or [`Error::Size`] if the file is one of ours, but damaged or of
/// a later version.
pub fn decode(beginning: &[u8]) -> Result<Option<HotLocations>, Error> {
    let Some(bytes) = beginning.first_chunk::<ENCODED_BYTES>().filter(|bytes| bytes.starts_with(MAGIC))
    else {
        return Ok(None);
    };
    let expected = u32::from_le_bytes(part(bytes, CHECKED_BYTES));
    let got = crc_fast::crc32_iscsi(&bytes[..CHECKED_BYTES]);
    if expected != got {
        return Err(Error::Checksum { expected, got });
    }
    let technique = u32::from_le_bytes(part(bytes, 16));
    let is_zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|byte| *byte == 0);
    if technique != USE_HOT_LOCATIONS || !is_zero(20..24) || !is_zero(40..CHECKED_BYTES) {
        return Err(Error::Newer);
    }
    HotLocations::new(u64::from_le_bytes(part(bytes, 24)), u64::from_le_bytes(part(bytes, 32))).map(Some)
}

fn part<const BYTES: usize>(bytes: &[u8; ENCODED_BYTES], at: usize) -> [u8; BYTES] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout() -> HotLocations {
        HotLocations::new(64 << 10, 32 << 10).unwrap()
    }

    #[test]
    fn a_header_reads_back() {
        let bytes = encode(layout());
        assert_eq!(decode(&bytes), Ok(Some(layout())));
        assert!(HEADER_BYTES as usize >= bytes.len());
    }

    #[test]
    fn files_of_others_have_none() {
        for beginning in [&b""[..], b"SQLite format 3\0 and more", &[0; 4096], &MAGIC[..]] {
            assert_eq!(decode(beginning), Ok(None));
        }
    }

    #[test]
    fn later_versions_are_refused() {
        for at in [16, 20, 45] {
            let mut bytes = encode(layout());
            bytes[at] = 9;
            let checksum = crc_fast::crc32_iscsi(&bytes[..CHECKED_BYTES]);
            bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(decode(&bytes), Err(Error::Newer), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn every_flipped_bit_shows(bit in 0_usize..ENCODED_BYTES * 8) {
            let mut bytes = encode(layout());
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Without its magic, the file is not one of ours.
            let expected = if bit < 16 * 8 { "none" } else { "checksum" };
            let found = decode(&bytes).map_or_else(|error| error.kind(), |layout| {
                assert_eq!(layout, None);
                "none"
            });
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let _ = decode(&bytes);
            if bytes.len() >= 16 {
                bytes[..16].copy_from_slice(MAGIC);
                let _ = decode(&bytes);
            }
        }
    }
}
