//! A file's statement of its own layout: 64 bytes at its begin, in a block that holds nothing else.
//!
//! ```text
//!  0 ┌──────────────────────────────┐
//!    │ magic "Flashgrain file\0"    │ no program takes this for a file of its own
//! 16 ├──────────────────────────────┤
//!    │ technique, u32               │ 1: use-hot-locations, 2: write-aligned-stripes,
//!    │                              │ 3: contain-write-in-flash-page, pages begin with counts,
//!    │                              │ 4: the same, pages begin with heads
//! 20 ├──────────────────────────────┤
//!    │ zero                         │
//! 24 ├──────────────────────────────┤
//!    │ chunk, or page, bytes, u64   │
//! 32 ├──────────────────────────────┤
//!    │ hot offset, bytes, u64       │ of a log: zero
//! 40 ├──────────────────────────────┤
//!    │ stripe of the log, bytes, u64│ of a database without one: zero
//! 48 ├──────────────────────────────┤
//!    │ checksums, u32               │ 1: pages of the database have some; else zero
//! 52 ├──────────────────────────────┤
//!    │ zero                         │
//! 60 ├──────────────────────────────┤
//!    │ CRC32C of bytes 0 to 60, u32 │
//! 64 └──────────────────────────────┘
//! ```
//!
//! Numbers are little-endian. The header is written once, before the first byte of content, and never
//! changes.

use crate::{AlignedFrames, Error, FlashPages, HotLocations, Layout};

/// The part of a file that belongs to the header; all but the first [`ENCODED_BYTES`] are zero.
pub const HEADER_BYTES: u64 = 4096;

/// Bytes that say something.
pub const ENCODED_BYTES: usize = 64;

const MAGIC: &[u8; 16] = b"Flashgrain file\0";
const CHECKED_BYTES: usize = 60;
const USE_HOT_LOCATIONS: u32 = 1;
const WRITE_ALIGNED_STRIPES: u32 = 2;
const PAGES_WITH_COUNTS: u32 = 3;
const PAGES_WITH_HEADS: u32 = 4;

/// The header of a database with this layout.
pub fn encode(layout: Layout) -> [u8; ENCODED_BYTES] {
    let hot = layout.hot();
    let numbers = [hot.chunk_bytes(), hot.hot_offset_bytes(), layout.log_stripe_bytes().unwrap_or(0)];
    encode_numbers(USE_HOT_LOCATIONS, numbers, layout.has_checksums())
}

/// A log's statement at its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Its frames are like this.
    Aligned(AlignedFrames),
    /// Pages have no room for the headers of frames: from [`HEADER_BYTES`] on, the log is as SQLite says.
    Unaligned,
}

/// The statement of a log.
pub fn encode_log(statement: Statement) -> [u8; ENCODED_BYTES] {
    let numbers = match statement {
        Statement::Aligned(frames) => [frames.page_bytes(), 0, frames.stripe_bytes()],
        Statement::Unaligned => [0; 3],
    };
    encode_numbers(WRITE_ALIGNED_STRIPES, numbers, false)
}

/// The header of a file of records in flash pages of `page_bytes` bytes, which begin with heads.
pub fn encode_records(page_bytes: u64) -> [u8; ENCODED_BYTES] {
    encode_numbers(PAGES_WITH_HEADS, [page_bytes, 0, 0], false)
}

fn encode_numbers(technique: u32, numbers: [u64; 3], has_checksums: bool) -> [u8; ENCODED_BYTES] {
    let mut bytes = [0; ENCODED_BYTES];
    bytes[..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&technique.to_le_bytes());
    for (place, number) in bytes[24..48].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes[48..52].copy_from_slice(&u32::from(has_checksums).to_le_bytes());
    let checksum = crc_fast::crc32_iscsi(&bytes[..CHECKED_BYTES]);
    bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The layout of a database that begins with these bytes; `None` if it is not one of ours.
///
/// # Errors
/// [`Error::Checksum`], [`Error::Newer`] or [`Error::Size`] if the file is one of ours, but damaged or of
/// a later version.
pub fn decode(beginning: &[u8]) -> Result<Option<Layout>, Error> {
    let Some((numbers, has_checksums)) = decode_numbers(beginning, USE_HOT_LOCATIONS)? else {
        return Ok(None);
    };
    let [chunk_bytes, hot_offset_bytes, stripe_bytes] = numbers;
    let hot = HotLocations::new(chunk_bytes, hot_offset_bytes)?;
    let layout = Layout::new(hot, Some(stripe_bytes).filter(|bytes| *bytes > 0))?;
    Ok(Some(if has_checksums { layout.with_checksums() } else { layout }))
}

/// The statement of a log that begins with these bytes; `None` if it has none.
///
/// # Errors
/// As [`decode`].
pub fn decode_log(beginning: &[u8]) -> Result<Option<Statement>, Error> {
    match decode_numbers(beginning, WRITE_ALIGNED_STRIPES)? {
        Some(([0, 0, 0], false)) => Ok(Some(Statement::Unaligned)),
        Some(([page_bytes, 0, stripe_bytes], false)) => {
            AlignedFrames::new(page_bytes, stripe_bytes).map(|frames| Some(Statement::Aligned(frames)))
        }
        Some(_) => Err(Error::Newer),
        None => Ok(None),
    }
}

/// The empty mapping of a file of records that begins with these bytes; `None` if it is not one of ours.
///
/// # Errors
/// As [`decode`].
pub fn decode_records(beginning: &[u8]) -> Result<Option<FlashPages>, Error> {
    let of_technique = |technique| match decode_numbers(beginning, technique)? {
        Some(([page_bytes, 0, 0], false)) => Ok(Some(page_bytes)),
        Some(_) => Err(Error::Newer),
        None => Ok(None),
    };
    match of_technique(PAGES_WITH_HEADS) {
        Err(Error::Newer) => of_technique(PAGES_WITH_COUNTS)?.map(FlashPages::with_counts).transpose(),
        page_bytes => page_bytes?.map(FlashPages::new).transpose(),
    }
}

/// The numbers of a header, and whether pages have checksums.
fn decode_numbers(beginning: &[u8], technique: u32) -> Result<Option<([u64; 3], bool)>, Error> {
    let Some(bytes) = beginning.first_chunk::<ENCODED_BYTES>().filter(|bytes| bytes.starts_with(MAGIC))
    else {
        return Ok(None);
    };
    let expected = u32::from_le_bytes(part(bytes, CHECKED_BYTES));
    let got = crc_fast::crc32_iscsi(&bytes[..CHECKED_BYTES]);
    if expected != got {
        return Err(Error::Checksum { expected, got });
    }
    let is_zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|byte| *byte == 0);
    let checksums = u32::from_le_bytes(part(bytes, 48));
    if u32::from_le_bytes(part(bytes, 16)) != technique
        || !is_zero(20..24)
        || checksums > 1
        || !is_zero(52..CHECKED_BYTES)
    {
        return Err(Error::Newer);
    }
    let numbers = std::array::from_fn(|number| u64::from_le_bytes(part(bytes, 24 + number * 8)));
    Ok(Some((numbers, checksums == 1)))
}

fn part<const BYTES: usize>(bytes: &[u8; ENCODED_BYTES], at: usize) -> [u8; BYTES] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout() -> Layout {
        HotLocations::new(64 << 10, 32 << 10).unwrap().into()
    }

    #[test]
    fn a_header_reads_back() {
        let bytes = encode(layout());
        assert_eq!(decode(&bytes), Ok(Some(layout())));
        assert!(HEADER_BYTES as usize >= bytes.len());
        let with_log = Layout::new(layout().hot(), Some(64 << 10)).unwrap();
        for layout in [with_log, with_log.with_checksums(), layout().with_checksums()] {
            assert_eq!(decode(&encode(layout)), Ok(Some(layout)));
        }
        let aligned = Statement::Aligned(AlignedFrames::new(4096, 64 << 10).unwrap());
        for statement in [aligned, Statement::Unaligned] {
            assert_eq!(decode_log(&encode_log(statement)), Ok(Some(statement)));
        }
    }

    #[test]
    fn a_log_is_no_database() {
        assert_eq!(decode(&encode_log(Statement::Unaligned)), Err(Error::Newer));
        assert_eq!(decode_log(&encode(layout())), Err(Error::Newer));
    }

    #[test]
    fn files_of_others_have_none() {
        for beginning in [&b""[..], b"SQLite format 3\0 and more", &[0; 4096], &MAGIC[..]] {
            assert_eq!(decode(beginning), Ok(None));
        }
    }

    #[test]
    fn later_versions_are_refused() {
        for at in [16, 20, 55] {
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
