//! How a flash page of a file of records begins.
//!
//! ```text
//!  0 ┌──────────────────────────────┐
//!    │ used bytes, u16              │ of the page, after this head; not zero
//!  2 ├──────────────────────────────┤
//!    │ zero                         │
//!  4 ├──────────────────────────────┤
//!    │ begin, u64                   │ logical offset of the first one
//! 12 ├──────────────────────────────┤
//!    │ not durable, u32             │ bytes at the end that may not have been synchronised when the page
//!    │                              │ was written; all ones: maybe none was
//! 16 ├──────────────────────────────┤
//!    │ shortened, u32               │ how often the file had become shorter
//! 20 ├──────────────────────────────┤
//!    │ CRC32C of the used bytes     │
//! 24 ├──────────────────────────────┤
//!    │ CRC32C of bytes 0 to 24 and  │
//!    │ the number of the page       │
//! 28 └──────────────────────────────┘
//! ```
//!
//! Numbers are little-endian. A page that a crash has torn has the bytes before the largest durable offset of
//! all heads. Pages follow each other if one begins where the one before it ends: after a crash, a page whose
//! predecessor was not written is not part of the file.

/// Bytes of a head.
pub const PAGE_HEAD_BYTES: u64 = 28;

const BYTES: usize = PAGE_HEAD_BYTES as usize;
const CHECKED_BYTES: usize = 24;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHead {
    /// Bytes in use, up to 65,508.
    pub used_bytes: u64,
    /// Logical offset of the first byte.
    pub begin: u64,
    /// Logical offset before which all bytes were known to be durable; at most the page's end.
    pub durable: u64,
    /// How often the file had become shorter.
    pub shortened: u32,
    /// Sum of the used bytes.
    pub used_sum: u32,
}

/// The sum that a head has of bytes of its page.
pub fn sum(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

fn sum_of_head(checked: &[u8], page: u64) -> u32 {
    let mut bytes = [0; CHECKED_BYTES + 8];
    bytes[..CHECKED_BYTES].copy_from_slice(checked);
    bytes[CHECKED_BYTES..].copy_from_slice(&page.to_le_bytes());
    sum(&bytes)
}

impl PageHead {
    /// Logical offset of the end.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.used_bytes)
    }

    /// The head of this page, by its number.
    pub fn encode(&self, page: u64) -> [u8; BYTES] {
        let not_durable = self.end().saturating_sub(self.durable);
        let mut bytes = [0; BYTES];
        bytes[0..2].copy_from_slice(&(self.used_bytes as u16).to_le_bytes());
        bytes[4..12].copy_from_slice(&self.begin.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::try_from(not_durable).unwrap_or(u32::MAX).to_le_bytes());
        bytes[16..20].copy_from_slice(&self.shortened.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.used_sum.to_le_bytes());
        let sum = sum_of_head(&bytes[..CHECKED_BYTES], page);
        bytes[CHECKED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The head of this page; `None` if nothing was ever written there.
    ///
    /// # Errors
    /// The defect of a head that was never written like this.
    pub fn decode(bytes: [u8; BYTES], page: u64, room_bytes: u64) -> Result<Option<Self>, &'static str> {
        if bytes == [0; BYTES] {
            return Ok(None);
        }
        if u32_at(&bytes, CHECKED_BYTES) != sum_of_head(&bytes[..CHECKED_BYTES], page) {
            return Err("its head does not have the checksum that it says");
        }
        let used_bytes = u64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let begin = u64::from(u32_at(&bytes, 4)) | u64::from(u32_at(&bytes, 8)) << 32;
        let not_durable = u32_at(&bytes, 12);
        if used_bytes == 0 || used_bytes > room_bytes {
            return Err("its head says that more bytes are in it than it has room for, or none");
        }
        let end = begin.saturating_add(used_bytes);
        let durable = if not_durable == u32::MAX { 0 } else { end.saturating_sub(not_durable.into()) };
        let (shortened, used_sum) = (u32_at(&bytes, 16), u32_at(&bytes, 20));
        Ok(Some(Self { used_bytes, begin, durable, shortened, used_sum }))
    }
}

fn u32_at(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> PageHead {
        PageHead { used_bytes: 400, begin: 1 << 40, durable: (1 << 40) + 7, shortened: 3, used_sum: 1 }
    }

    #[test]
    fn a_head_reads_back_and_knows_its_page() {
        assert_eq!(PageHead::decode(head().encode(5), 5, 484), Ok(Some(head())));
        assert!(PageHead::decode(head().encode(5), 6, 484).is_err());
        assert!(PageHead::decode(head().encode(5), 5, 399).is_err());
        assert_eq!(PageHead::decode([0; BYTES], 5, 484), Ok(None));
    }

    #[test]
    fn what_is_too_far_from_the_end_is_not_known_to_be_durable() {
        for (durable, told) in [((1 << 40) + 400, (1 << 40) + 400), (1 << 39, 0), (0, 0)] {
            let decoded =
                PageHead::decode(PageHead { durable, ..head() }.encode(0), 0, 484).unwrap().unwrap();
            assert_eq!(decoded.durable, told);
        }
    }

    #[test]
    fn every_flipped_bit_shows() {
        for bit in 0..BYTES * 8 {
            let mut bytes = head().encode(5);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(PageHead::decode(bytes, 5, 484).is_err(), "{bit}");
        }
    }
}
