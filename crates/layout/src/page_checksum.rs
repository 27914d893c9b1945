//! A checksum in the last bytes of each page of a database, which SQLite reserves: a page that a drive has
//! changed, or put in another place, is not taken for the original.
//!
//! ```text
//! page   ├ content ─────────────┬ … ┬ CRC32C, u32 ┬ the same with all bits flipped, u32 ┤
//! ```
//!
//! The checksum is that of the page's offset in the database, u64, and of all bytes of the page before it.
//! Numbers are little-endian. A page that is zero throughout was never written, and has none.

/// Bytes of a page that its checksum takes.
pub const PAGE_CHECKSUM_BYTES: u64 = 8;

fn checksum(content: &[u8], offset: u64) -> [u8; PAGE_CHECKSUM_BYTES as usize] {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&offset.to_le_bytes());
    digest.update(content);
    let sum = digest.finalize() as u32;
    (u64::from(sum) | u64::from(!sum) << 32).to_le_bytes()
}

/// Puts the checksum of a page at this offset of its database into its last bytes.
pub fn seal_page(page: &mut [u8], offset: u64) {
    if let Some((content, end)) = page.split_last_chunk_mut() {
        *end = checksum(content, offset);
    }
}

/// Whether a page at this offset of its database is the one that was written there; its last bytes are zero
/// then, as SQLite has left them.
pub fn open_page(page: &mut [u8], offset: u64) -> bool {
    let Some((content, end)) = page.split_last_chunk_mut() else { return false };
    let is_whole = *end == checksum(content, offset) || is_zero(end) && is_zero(content);
    if is_whole {
        *end = [0; PAGE_CHECKSUM_BYTES as usize];
    }
    is_whole
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_flipped_bit_and_every_other_place_shows(seed: u8, page in 0_u64..1 << 20, bit in 0_usize..512 * 8) {
            let content: Vec<u8> = (0..504_usize).map(|at| (at * 7) as u8 ^ seed).chain([9; 8]).collect();
            let mut sealed = content.clone();
            seal_page(&mut sealed, page * 512);
            prop_assert_eq!(&sealed[..504], &content[..504]);
            let mut opened = sealed.clone();
            prop_assert!(open_page(&mut opened, page * 512));
            prop_assert_eq!(&opened[504..], [0; 8]);
            prop_assert!(!open_page(&mut sealed.clone(), page * 512 + 512));
            sealed[bit / 8] ^= 1 << (bit % 8);
            let damaged = sealed.clone();
            prop_assert!(!open_page(&mut sealed, page * 512));
            prop_assert_eq!(sealed, damaged, "a damaged page stays as it is");
        }
    }

    #[test]
    fn pages_that_were_never_written_are_zero() {
        assert!(open_page(&mut [0; 512], 4096));
        let mut lost = [0; 512];
        lost[3] = 1;
        assert!(!open_page(&mut lost, 4096), "content without a checksum");
        assert!(!open_page(&mut [], 0));
    }
}
