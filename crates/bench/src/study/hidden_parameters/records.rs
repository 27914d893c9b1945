//! *contain-write-in-flash-page* (§4.3): records of a binary log that lie across flash pages.

use flashgrain_layout::FlashPages;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use serde::Serialize;

/// Records, as in the paper.
const RECORDS: u64 = 1_000_000;

/// Bytes of a record: 275 on average.
const RECORD_BYTES: std::ops::RangeInclusive<u64> = 225..=325;

/// The flash page of the paper's SSD-T.
pub(super) const FLASH_PAGE_BYTES: u64 = 4096;

/// The counts.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub records: u64,
    /// The file's bytes, and records that lie across flash pages.
    pub original_bytes: u64,
    pub original_across: u64,
    pub contained_bytes: u64,
    pub contained_across: u64,
}

/// Counts both.
///
/// # Errors
/// Never: there is such a flash page.
pub(super) fn find(seed: u64) -> anyhow::Result<Found> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut pages = FlashPages::new(FLASH_PAGE_BYTES)?;
    let (mut at, mut original_across, mut contained_across) = (0, 0, 0);
    for _ in 0..RECORDS {
        let bytes = random.random_range(RECORD_BYTES);
        let is_across = at / FLASH_PAGE_BYTES != (at + bytes - 1) / FLASH_PAGE_BYTES;
        original_across += u64::from(is_across);
        at += bytes;
        contained_across += u64::from(pages.append(bytes).len() > 1);
    }
    Ok(Found {
        records: RECORDS,
        original_bytes: at,
        original_across,
        contained_bytes: pages.physical_length(),
        contained_across,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lie_across_as_the_paper_says_and_none_when_contained() {
        let found = find(1).unwrap();
        assert!((found.original_across as f64 / found.records as f64 - 0.067).abs() < 0.001, "{found:?}");
        assert_eq!(found.contained_across, 0);
        assert!((found.contained_bytes as f64) < 1.07 * found.original_bytes as f64, "{found:?}");
    }
}
