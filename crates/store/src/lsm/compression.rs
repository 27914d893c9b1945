//! Data blocks with fewer bytes.
//!
//! ```text
//! | records as they are | 0, u8 |
//! | compressed records | bytes of the records, u32 | codec, u8 |
//! ```
//!
//! A block is kept compressed only if that gains. Where it does not, most blocks are not even tried. In
//! memory blocks are not compressed, so only blocks that come from the device are decompressed.

use super::block::Content;
use crate::compression::LsmCompression;

/// A compressed block has at most this part of its original bytes.
const GAIN: f64 = 7.0 / 8.0;

/// After `VAIN_MAX` blocks in a row that did not gain, one of `TRIED_EVERY` is tried.
const VAIN_MAX: u32 = 4;
const TRIED_EVERY: u32 = 16;

/// A block has at most `RATIO_MAX` times the bytes that it should have compressed.
const RATIO_MAX: f64 = 4.0;

/// The newest block's share in the ratio that the next one is expected to have.
const RATIO_WEIGHT: f64 = 0.25;

const LENGTH_BYTES: usize = size_of::<u32>();

/// See the module.
pub(super) struct Compressor {
    compression: LsmCompression,
    /// Bytes of records for each byte on the device, as of late.
    ratio: f64,
    /// Blocks in a row that did not gain.
    vain: u32,
}

impl Compressor {
    pub fn new(compression: LsmCompression) -> Self {
        Self { compression, ratio: 1.0, vain: 0 }
    }

    /// Bytes of records that will take about `bytes` on the device.
    pub fn expected(&self, bytes: usize) -> usize {
        (bytes as f64 * self.ratio) as usize
    }

    /// A block as it is written.
    pub fn pack(&mut self, mut records: Vec<u8>) -> Vec<u8> {
        let is_tried = self.vain < VAIN_MAX || self.vain.is_multiple_of(TRIED_EVERY);
        let compressed = if is_tried { self.compression.compress(&records) } else { None };
        // The length that follows it counts, too.
        let written = |packed: &Vec<u8>| (packed.len() + LENGTH_BYTES) as f64;
        let gains = |packed: &Vec<u8>| written(packed) <= GAIN * records.len() as f64;
        if let Some(mut packed) = compressed.filter(gains) {
            let newest = (records.len() as f64 / packed.len() as f64).min(RATIO_MAX);
            self.ratio += RATIO_WEIGHT * (newest - self.ratio);
            self.vain = 0;
            packed.extend_from_slice(&(records.len() as u32).to_le_bytes());
            packed.push(self.compression.code());
            return packed;
        }
        self.ratio += RATIO_WEIGHT * (1.0 - self.ratio);
        self.vain = self.vain.wrapping_add(1);
        records.push(LsmCompression::None.code());
        records
    }
}

/// The records of a block that was written; `None` if it is damaged, or compressed in a way that this build
/// does not know.
pub(super) fn unpack(mut packed: Vec<u8>) -> Option<Vec<u8>> {
    let compression = LsmCompression::of_code(packed.pop()?)?;
    if compression == LsmCompression::None {
        return Some(packed);
    }
    decompress(compression, &packed)
}

/// The same of a block among others.
pub(super) fn unpack_shared(packed: &Content) -> Option<Content> {
    let (code, rest) = packed.split_last()?;
    match LsmCompression::of_code(*code)? {
        LsmCompression::None => packed.part(0..rest.len()),
        compression => decompress(compression, rest).map(Content::from),
    }
}

fn decompress(compression: LsmCompression, packed: &[u8]) -> Option<Vec<u8>> {
    let (compressed, length) = packed.split_last_chunk::<LENGTH_BYTES>()?;
    compression.decompress(compressed, u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there() -> impl Iterator<Item = LsmCompression> {
        LsmCompression::ALL.into_iter().filter(|compression| compression.is_there())
    }

    #[test]
    fn what_does_not_gain_stays_as_it_is_and_is_seldom_tried() {
        let noise: Vec<u8> = (0..4000_u64).map(|place| (crate::hash::mix(place) >> 7) as u8).collect();
        for compression in there().filter(|compression| *compression != LsmCompression::None) {
            let mut compressor = Compressor::new(compression);
            assert!(compressor.pack(vec![7; 4000]).len() < 200);
            assert!(compressor.expected(4096) > 7000);
            for _ in 0..40 {
                assert_eq!(compressor.pack(noise.clone()).len(), noise.len() + 1);
            }
            assert!(compressor.expected(4096) < 4200);
            let is_small = |compressor: &mut Compressor| compressor.pack(vec![7; 4000]).len() < 1000;
            let after = (1..).find(|_| is_small(&mut compressor)).unwrap();
            assert!((1..=TRIED_EVERY).contains(&after), "{after}");
        }
    }

    proptest! {
        #[test]
        fn blocks_come_back(parts in proptest::collection::vec((any::<u8>(), 1_usize..200), 0..30), noise: Vec<u8>) {
            let mut records: Vec<u8> = parts.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect();
            records.extend(noise);
            for compression in there() {
                let packed = Compressor::new(compression).pack(records.clone());
                prop_assert!(packed.len() <= records.len() + 1);
                prop_assert_eq!(unpack(packed.clone()), Some(records.clone()));
                let beside = [&[1, 2, 3][..], &packed, &[4]].concat();
                let shared = Content::from(beside).part(3..3 + packed.len()).unwrap();
                prop_assert_eq!(unpack_shared(&shared).map(|content| content.to_vec()), Some(records.clone()));
            }
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>, code in 0_u8..4) {
            let packed = [bytes.as_slice(), &[code]].concat();
            let _any_answer = (unpack(packed.clone()), unpack_shared(&Content::from(packed)));
        }
    }
}
