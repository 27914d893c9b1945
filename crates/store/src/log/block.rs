//! A block of the log, byte by byte.
//!
//! ```text
//! byte  bytes  field
//!    0      4  checksum: CRC-32C of bytes 4 up to *used*
//!    4      4  previous's checksum
//!    8      8  store identity
//!   16      8  LSN of the block
//!   24      8  durable up to this LSN
//!   32      8  timestamp of the first record that begins in this block
//!   40      4  used: bytes of the block, this header included
//!   44      4  records from: offset of that first record; *used* if none begins here
//!   48         bytes of records, up to *used*; zeros behind it
//! ```
//!
//! All numbers are little-endian. The checksum does not cover the zeros. *Previous's checksum* chains the
//! blocks: a stale block of a crash is not taken for the successor of a block that was written later. The
//! *store identity* is drawn when a store is created, so that blocks of an earlier store at the same place
//! are rejected. *Durable up to* is the position up to which the log was durable when the block was made:
//! damage before it is corruption, not a torn tail.
//!
//! The records of consecutive blocks are one stream. Each record is its length (u32) and its bytes, and
//! continues in the next block if it does not fit. Timestamps of records count up from that of the first
//! record of a block. A block that begins with a record, although the block before ended within one, was
//! written after a crash had torn that record, which is void.

use std::ops::Range;

use super::Lsn;
use crate::checksum::crc32c;

/// Bytes of a block's header.
pub(crate) const HEADER_BYTES: usize = 48;

/// Bytes before each record: its length.
pub(crate) const PREFIX_BYTES: usize = 4;

const CHECKSUM: Range<usize> = 0..4;
const PREVIOUS: Range<usize> = 4..8;
const STORE: Range<usize> = 8..16;
const LSN: Range<usize> = 16..24;
const DURABLE: Range<usize> = 24..32;
const TIMESTAMP: Range<usize> = 32..40;
const USED: Range<usize> = 40..44;
const RECORDS_FROM: Range<usize> = 44..48;

/// The fields of a block's header, except its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Checksum of the block before it.
    pub previous: u32,
    /// First half of the store's identity.
    pub store: u64,
    /// Its first byte's position.
    pub lsn: Lsn,
    /// The durable end when the block was made.
    pub durable: Lsn,
    /// Timestamp of the first record that begins in it.
    pub timestamp: u64,
    /// Bytes of it that are used, header included.
    pub used: u32,
    /// Offset of the first record that begins in it.
    pub records_from: u32,
}

/// The difference between the expected block and the bytes that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotIt {
    pub expected: String,
    pub got: String,
}

/// Completes `block`, which has the bytes of its records, with header and checksum. It returns the checksum.
pub(crate) fn seal(block: &mut [u8], header: &Header) -> u32 {
    put(block, PREVIOUS, &header.previous.to_le_bytes());
    put(block, STORE, &header.store.to_le_bytes());
    put(block, LSN, &header.lsn.0.to_le_bytes());
    put(block, DURABLE, &header.durable.0.to_le_bytes());
    put(block, TIMESTAMP, &header.timestamp.to_le_bytes());
    put(block, USED, &header.used.to_le_bytes());
    put(block, RECORDS_FROM, &header.records_from.to_le_bytes());
    let (covered, rest) = block.split_at_mut(header.used as usize);
    rest.fill(0);
    let checksum = crc32c(covered.get(PREVIOUS.start..).unwrap_or_default());
    put(block, CHECKSUM, &checksum.to_le_bytes());
    checksum
}

/// The header and the checksum of a block that is whole and is the one of `store` at `lsn`.
///
/// # Errors
/// The difference.
pub(crate) fn open(block: &[u8], store: u64, lsn: Lsn) -> Result<(Header, u32), NotIt> {
    let header = Header {
        previous: u32_at(block, PREVIOUS),
        store: u64_at(block, STORE),
        lsn: Lsn(u64_at(block, LSN)),
        durable: Lsn(u64_at(block, DURABLE)),
        timestamp: u64_at(block, TIMESTAMP),
        used: u32_at(block, USED),
        records_from: u32_at(block, RECORDS_FROM),
    };
    if (header.store, header.lsn) != (store, lsn) {
        let name = |store: u64, lsn: Lsn| format!("block {} of log {store:016x}", lsn.0);
        return Err(NotIt { expected: name(store, lsn), got: name(header.store, header.lsn) });
    }
    let ends = (HEADER_BYTES..=block.len(), HEADER_BYTES..=header.used as usize);
    if !ends.0.contains(&(header.used as usize)) || !ends.1.contains(&(header.records_from as usize)) {
        let got = format!("{} used, records from {}", header.used, header.records_from);
        return Err(NotIt { expected: format!("at most {} bytes used", block.len()), got });
    }
    let stored = u32_at(block, CHECKSUM);
    let computed = crc32c(block.get(PREVIOUS.start..header.used as usize).unwrap_or_default());
    if stored != computed && !planted!(LogChecksumIgnored) {
        return Err(NotIt { expected: format!("checksum {stored:08x}"), got: format!("{computed:08x}") });
    }
    Ok((header, stored))
}

fn put(block: &mut [u8], at: Range<usize>, bytes: &[u8]) {
    if let Some(place) = block.get_mut(at) {
        place.copy_from_slice(bytes);
    }
}

fn u32_at(block: &[u8], at: Range<usize>) -> u32 {
    block.get(at).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(block: &[u8], at: Range<usize>) -> u64 {
    block.get(at).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(used: u32) -> Header {
        Header {
            previous: 7,
            store: 8,
            lsn: Lsn(4096),
            durable: Lsn(512),
            timestamp: 9,
            used,
            records_from: 48,
        }
    }

    proptest! {
        #[test]
        fn a_block_comes_back_and_a_flipped_bit_is_seen(
            records in proptest::collection::vec(any::<u8>(), 0..464),
            flip in any::<prop::sample::Index>(),
        ) {
            let used = HEADER_BYTES + records.len();
            let mut block = vec![0xEE; 512];
            block[HEADER_BYTES..used].copy_from_slice(&records);
            let checksum = seal(&mut block, &header(used as u32));
            prop_assert_eq!(open(&block, 8, Lsn(4096)), Ok((header(used as u32), checksum)));
            prop_assert_eq!(&block[HEADER_BYTES..used], &records[..]);
            prop_assert!(open(&block, 9, Lsn(4096)).is_err() && open(&block, 8, Lsn(0)).is_err());
            let bit = flip.index(used * 8);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(open(&block, 8, Lsn(4096)).is_err());
        }

        #[test]
        fn nonsense_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(open(&bytes, 1, Lsn(0)).is_err());
        }
    }
}
