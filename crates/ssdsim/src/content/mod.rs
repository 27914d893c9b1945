//! The bytes of a drive, stored sparsely, and which of them a power cut would lose.

/// See the module.
#[derive(Debug)]
pub(crate) struct Content {}

impl Content {
    /// All zeros. On a `volatile` drive, writes are lost in a power cut until they are settled.
    pub fn new(_capacity_bytes: u64, _volatile: bool) -> Self {
        Self {}
    }

    /// Stores `bytes` and returns the version of this write: larger than that of any write before.
    pub fn write(&mut self, _offset_bytes: u64, _bytes: &[u8]) -> u64 {
        todo!()
    }

    /// The newest bytes.
    pub fn read(&self, _offset_bytes: u64, _bytes: &mut [u8]) {
        todo!()
    }

    /// What the write `version` and those before it put into this range is on the medium and survives a power cut.
    pub fn settle(&mut self, _offset_bytes: u64, _length_bytes: u64, _version: u64) {
        todo!()
    }

    /// Zeros from now on, and no memory for them.
    pub fn discard(&mut self, _offset_bytes: u64, _length_bytes: u64) {
        todo!()
    }
}
