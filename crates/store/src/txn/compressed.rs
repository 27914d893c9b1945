//! Commits in the log with fewer bytes.
//!
//! ```text
//! 10, u8 | codec, u8 | bytes of the operations, varint | the operations, compressed
//! ```
//!
//! A record is kept so only if that gains. Where it does not, most records are not even tried. Each record
//! says for itself whether it is compressed, so a log may have both kinds.

use std::borrow::Cow;

use super::record::NoOperation;
use crate::compression::{BYTES_MAX, LsmCompression};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::varint;

/// In the place of the first operation's kind; no kind has this number.
const COMPRESSED: u8 = 10;

/// Shorter records are left as they are.
const BYTES_MIN: usize = 64;

/// A compressed record has at most this part of its original bytes.
const GAIN: f64 = 7.0 / 8.0;

/// After `VAIN_MAX` records in a row that did not gain, one of `TRIED_EVERY` is tried.
const VAIN_MAX: u32 = 4;
const TRIED_EVERY: u32 = 16;

/// See the module.
pub(super) struct RecordCompressor {
    compression: LsmCompression,
    /// Records in a row that did not gain.
    vain: AtomicU32,
}

impl RecordCompressor {
    pub fn new(compression: LsmCompression) -> Self {
        Self { compression, vain: AtomicU32::new(0) }
    }

    /// Replaces the operations of a commit by a compressed record, if that gains.
    pub fn pack(&self, record: &mut Vec<u8>) {
        if self.compression == LsmCompression::None || !(BYTES_MIN..=BYTES_MAX).contains(&record.len()) {
            return;
        }
        // That threads miscount together does not matter.
        let vain = self.vain.load(Ordering::Relaxed);
        let is_tried = vain < VAIN_MAX || vain.is_multiple_of(TRIED_EVERY);
        let compressed = if is_tried { self.compression.compress(record) } else { None };
        match compressed.filter(|compressed| compressed.len() as f64 <= GAIN * record.len() as f64) {
            Some(compressed) => {
                self.vain.store(0, Ordering::Relaxed);
                let bytes = record.len() as u64;
                record.clear();
                record.extend([COMPRESSED, self.compression.code()]);
                varint::put(bytes, record);
                record.extend_from_slice(&compressed);
            }
            None => self.vain.store(vain.wrapping_add(1), Ordering::Relaxed),
        }
    }
}

/// The operations of a record, compressed or not.
///
/// # Errors
/// [`NoOperation`] if they are damaged, or compressed in a way that this build does not know.
pub(crate) fn unpack(record: &[u8]) -> Result<Cow<'_, [u8]>, NoOperation> {
    let Some(([COMPRESSED, code], mut rest)) = record.split_first_chunk() else {
        return Ok(Cow::Borrowed(record));
    };
    let codec = LsmCompression::of_code(*code).ok_or(NoOperation)?;
    let bytes = varint::take(&mut rest).and_then(|bytes| usize::try_from(bytes).ok()).ok_or(NoOperation)?;
    codec.decompress(rest, bytes).map(Cow::Owned).ok_or(NoOperation)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there() -> impl Iterator<Item = LsmCompression> {
        LsmCompression::ALL.into_iter().filter(|compression| compression.is_there())
    }

    #[test]
    fn a_record_that_does_not_gain_stays_and_is_seldom_tried() {
        let noise: Vec<u8> = (0..1000_u64).map(|place| (crate::hash::mix(place) >> 7) as u8).collect();
        for compression in there().filter(|compression| *compression != LsmCompression::None) {
            let compressor = RecordCompressor::new(compression);
            let packed = |record: &[u8]| {
                let mut packed = record.to_vec();
                compressor.pack(&mut packed);
                packed
            };
            assert!(packed(&[7; 1000]).len() < 100);
            assert_eq!(packed(&[7; BYTES_MIN - 1]), [7; BYTES_MIN - 1]);
            (0..40).for_each(|_| assert_eq!(packed(&noise), noise));
            let after = (1..).find(|_| packed(&[7; 1000]).len() < 100).unwrap();
            assert!((1..=TRIED_EVERY).contains(&after), "{after}");
        }
    }

    proptest! {
        #[test]
        fn records_come_back(
            parts in proptest::collection::vec((any::<u8>(), 1_usize..200), 0..30),
            noise: Vec<u8>,
        ) {
            // The first byte is an operation's kind.
            let record: Vec<u8> = [1].into_iter().chain(parts.into_iter().flat_map(|(byte, count)| vec![byte; count]))
                .chain(noise).collect();
            for compression in there() {
                let mut packed = record.clone();
                RecordCompressor::new(compression).pack(&mut packed);
                prop_assert!(packed.len() <= record.len());
                prop_assert_eq!(unpack(&packed).map(Cow::into_owned), Ok(record.clone()));
            }
        }

        #[test]
        fn a_damaged_record_is_an_error_or_as_long_as_it_says(bytes: Vec<u8>, code in 0_u8..4, length in 0_u64..2000) {
            let mut record = vec![COMPRESSED, code];
            varint::put(length, &mut record);
            record.extend(bytes);
            if let Ok(operations) = unpack(&record) {
                prop_assert_eq!(operations.len() as u64, length);
            }
        }
    }
}
