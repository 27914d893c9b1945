//! *use-hot-locations* (hidden-parameters paper §3.3, Figure 9): the whole file is shifted, so that its pages
//! begin at the drive's hot locations.
//!
//! ```text
//! physical   0                 start               start + page        start + 2 pages
//!            ├ header ┬ unused ┼ page 1 ───────────┼ page 2 ───────────┼ …
//! chunks     ├──────────────────────────┼──────────────────────────┼ …
//!                              ↑ hot offset into a chunk
//! ```
//!
//! The header (see [`crate::header`]) lies in the gap before the first page, which costs nothing but the gap.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::header::HEADER_BYTES;

/// A unit of the drive's and the file system's that is never split.
const SECTOR_BYTES: u64 = 512;

/// Larger chunks than any drive has.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// A file whose logical byte 0 lies at a hot location. Order, neighbourhood and distances are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotLocations {
    chunk_bytes: u64,
    hot_offset_bytes: u64,
    /// Follows from both; each request asks for it.
    start_bytes: u64,
}

impl HotLocations {
    /// For chunks of `chunk_bytes` whose hot location is `hot_offset_bytes` from their begin.
    ///
    /// # Errors
    /// [`Error::Size`] if either is no number of sectors, or the offset is not within the chunk.
    pub fn new(chunk_bytes: u64, hot_offset_bytes: u64) -> Result<Self, Error> {
        if chunk_bytes == 0 || chunk_bytes > CHUNK_BYTES_MAX || !chunk_bytes.is_multiple_of(SECTOR_BYTES) {
            let allowed = "a multiple of 512, from 512 bytes to 64 MiB";
            return Err(Error::Size { what: "the chunk", bytes: chunk_bytes, allowed });
        }
        if hot_offset_bytes >= chunk_bytes || !hot_offset_bytes.is_multiple_of(SECTOR_BYTES) {
            let allowed = "a multiple of 512 and less than the chunk";
            return Err(Error::Size { what: "the hot offset", bytes: hot_offset_bytes, allowed });
        }
        let before = HEADER_BYTES.saturating_sub(hot_offset_bytes);
        let start_bytes = hot_offset_bytes + before.next_multiple_of(chunk_bytes);
        Ok(Self { chunk_bytes, hot_offset_bytes, start_bytes })
    }

    /// Contiguous bytes that the drive stores on one channel.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Distance of a hot location from the begin of its chunk.
    pub fn hot_offset_bytes(&self) -> u64 {
        self.hot_offset_bytes
    }

    /// The place of logical byte 0: the first hot location after the header.
    pub fn start_bytes(&self) -> u64 {
        self.start_bytes
    }

    /// Where a logical byte lies; `None` if no file can be so long.
    pub fn physical(&self, logical: u64) -> Option<u64> {
        logical.checked_add(self.start_bytes())
    }

    /// The logical byte at this place; `None` in the header and the gap after it.
    pub fn logical(&self, physical: u64) -> Option<u64> {
        physical.checked_sub(self.start_bytes())
    }

    /// Length of the file if `physical_bytes` of it are there: a file that ends before its first page has
    /// none.
    pub fn logical_length(&self, physical_bytes: u64) -> u64 {
        self.logical(physical_bytes).unwrap_or(0)
    }
}

impl fmt::Display for HotLocations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hot:{}:{}", self.chunk_bytes, self.hot_offset_bytes)
    }
}

impl FromStr for HotLocations {
    type Err = Error;

    /// Reads the output of `Display`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable = || Error::Text { text: text.chars().take(80).collect() };
        let (chunk, offset) =
            text.strip_prefix("hot:").and_then(|rest| rest.split_once(':')).ok_or_else(unreadable)?;
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| unreadable());
        Self::new(number(chunk)?, number(offset)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layouts() -> impl Strategy<Value = HotLocations> {
        (1_u64..300).prop_flat_map(|chunk| (Just(chunk), 0..chunk)).prop_map(|(chunk, offset)| {
            HotLocations::new(chunk * SECTOR_BYTES, offset * SECTOR_BYTES).unwrap()
        })
    }

    #[test]
    fn the_paper_s_drive_has_pages_32_kib_into_chunks() {
        // SSD-S, the Samsung 960 EVO.
        let layout = HotLocations::new(64 << 10, 32 << 10).unwrap();
        assert_eq!(layout.physical(0), Some(32 << 10));
        assert_eq!(layout.physical(64 << 10), Some(96 << 10));
        // All its other drives are hot where chunks begin: the header takes the first chunk.
        assert_eq!(HotLocations::new(4 << 10, 0).unwrap().start_bytes(), 4 << 10);
        assert_eq!(HotLocations::new(64 << 10, 0).unwrap().start_bytes(), 64 << 10);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for (chunk, offset) in [(0, 0), (4096, 4096), (4096, 100), (1000, 0), (u64::MAX, 0), (128 << 20, 0)] {
            assert_eq!(HotLocations::new(chunk, offset).unwrap_err().kind(), "size", "{chunk} {offset}");
        }
        for text in ["", "hot:", "hot:1", "hot:4096:x", "cold:4096:0", "hot:4096:0:0", "hot:-1:0"] {
            assert_eq!(text.parse::<HotLocations>().unwrap_err().kind(), "text", "{text}");
        }
        assert_eq!("hot:4096:4096".parse::<HotLocations>().unwrap_err().kind(), "size");
    }

    proptest! {
        #[test]
        fn text_reads_back(layout in layouts()) {
            prop_assert_eq!(layout.to_string().parse::<HotLocations>().unwrap(), layout);
        }

        #[test]
        fn mapping_has_an_inverse_and_keeps_order(layout in layouts(), a in 0_u64..1 << 40, b in 0_u64..1 << 40) {
            let (at_a, at_b) = (layout.physical(a).unwrap(), layout.physical(b).unwrap());
            prop_assert_eq!(layout.logical(at_a), Some(a));
            prop_assert_eq!(a.cmp(&b), at_a.cmp(&at_b));
            prop_assert!(at_a >= HEADER_BYTES, "the header is overwritten");
            prop_assert_eq!((at_a - a) % layout.chunk_bytes(), layout.hot_offset_bytes());
        }

        #[test]
        fn start_is_the_first_hot_location_behind_the_header(layout in layouts()) {
            let start = layout.start_bytes();
            prop_assert!(start >= HEADER_BYTES);
            prop_assert!(start < HEADER_BYTES + layout.chunk_bytes());
        }

        #[test]
        fn a_truncated_file_holds_a_prefix(layout in layouts(), whole in 0_u64..1 << 40, cut in 0_u64..1 << 41) {
            let file = layout.physical(whole).unwrap();
            prop_assert_eq!(layout.logical_length(file), whole);
            let cut = cut.min(file);
            let left = layout.logical_length(cut);
            prop_assert!(left <= whole);
            prop_assert!(left == 0 || layout.physical(left - 1).unwrap() < cut);
        }
    }
}
