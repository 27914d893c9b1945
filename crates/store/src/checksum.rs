//! The checksum of everything on the devices: CRC-32C.

/// CRC-32C (Castagnoli) of `bytes`.
#[inline]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_catalogue_of_crcs() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
