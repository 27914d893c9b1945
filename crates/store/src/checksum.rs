//! The checksum of everything on the devices: CRC-32C.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli) of `bytes`.
#[inline]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The same for bytes that come in parts.
#[derive(Clone)]
pub(crate) struct Crc32c(Digest);

impl Crc32c {
    /// Of no bytes.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// The next part.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all parts so far.
    pub fn get(&self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_catalogue_of_crcs() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
        let mut parts = super::Crc32c::new();
        [&b"1234"[..], b"", b"56789"].iter().for_each(|part| parts.add(part));
        assert_eq!(parts.get(), 0xe306_9283);
    }
}
