//! Where the image of a page is on the data device, in one word.

/// Unit of offsets and lengths in a [`Location`].
pub(crate) const SECTOR_BYTES: u64 = 512;

const SECTORS_BITS: u32 = 12;
const CLASS_BITS: u32 = 4;

/// Never zero. The two highest bits are free for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location(u64);

impl Location {
    /// An image of `length_bytes` at `offset_bytes`, both multiples of 512, the length at most 1 MiB; the page's size class is `class`.
    pub fn new(offset_bytes: u64, length_bytes: u32, class: usize) -> Self {
        let (offset, length) = (offset_bytes / SECTOR_BYTES, u64::from(length_bytes) / SECTOR_BYTES);
        debug_assert!(length > 0 && length < 1 << SECTORS_BITS && class < 1 << CLASS_BITS);
        Self(offset << (SECTORS_BITS + CLASS_BITS) | (class as u64) << SECTORS_BITS | length)
    }

    /// From a page table; `None` for what no location is.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits & ((1 << SECTORS_BITS) - 1) != 0 && bits >> 62 == 0).then_some(Self(bits))
    }

    /// For a page table.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// First byte on the data device.
    pub fn offset_bytes(self) -> u64 {
        (self.0 >> (SECTORS_BITS + CLASS_BITS)) * SECTOR_BYTES
    }

    /// Bytes of the image.
    pub fn length_bytes(self) -> u32 {
        ((self.0 & ((1 << SECTORS_BITS) - 1)) * SECTOR_BYTES) as u32
    }

    /// The page's size class.
    pub fn class(self) -> usize {
        (self.0 >> SECTORS_BITS & ((1 << CLASS_BITS) - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_come_back() {
        let location = Location::new(512 * 123_456_789_012, 1 << 20, 8);
        let back = Location::from_bits(location.bits()).unwrap();
        assert_eq!(
            (back.offset_bytes(), back.length_bytes(), back.class()),
            (512 * 123_456_789_012, 1 << 20, 8)
        );
        assert_eq!(Location::from_bits(0), None);
    }
}
