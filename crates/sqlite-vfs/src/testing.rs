//! Decoders of data from drives and files, for the fuzzer and its tests. Each function takes any bytes and
//! panics if the decoded value breaks an invariant.

use flashgrain_layout::header::{ENCODED_BYTES, encode_log};

use crate::log_shape::{LogShape, logical_length, parts, physical_length};

pub use crate::volume::testing::volume_directory;

/// The beginning of a log that is aligned: with the checksum that it has, and with the right one.
pub fn log_statement(bytes: &[u8]) {
    statement(bytes);
    if let Some((checked, checksum)) =
        bytes.to_vec().first_chunk_mut::<ENCODED_BYTES>().and_then(|own| own.split_last_chunk_mut::<4>())
    {
        let right = crc_fast::crc32_iscsi(checked).to_le_bytes();
        checksum.copy_from_slice(&right);
        statement(&[&checked[..], &right].concat());
    }
}

fn statement(bytes: &[u8]) {
    let Ok(LogShape::Stated(stated)) = LogShape::of_file(bytes.len() as u64, bytes) else { return };
    assert!(bytes.starts_with(&encode_log(stated)), "a statement comes back");
    for logical in [0, 32, 56, 4152, 1 << 20, 1 << 40] {
        let physical = physical_length(stated, logical);
        assert!(logical_length(stated, physical) >= logical, "a log has room for its logical length");
        let lengths = parts(stated, logical, 70_000).into_iter().map(|(_, length)| length);
        assert_eq!(lengths.sum::<u64>(), 70_000, "a range has all of its parts");
    }
}
