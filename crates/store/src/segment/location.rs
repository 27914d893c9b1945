//! Location of a page's image on the data device, in one word.

use crate::class::{CLASSES, class_bytes};

/// Unit of offsets and lengths in a [`Location`]: images are not filled up to more than this, whatever the
/// sectors of the device. A page header fits into one.
pub(crate) const GRAIN_BYTES: u32 = 64;

/// For images of 1 MiB at most.
const GRAINS_BITS: u32 = 15;
const CLASS_BITS: u32 = 4;

const OFFSET_GRAINS: u64 = 1 << (62 - GRAINS_BITS - CLASS_BITS);

/// Bytes of a device from here on, 512 TiB, have no location.
pub(crate) const DEVICE_BYTES_MAX: u64 = OFFSET_GRAINS * GRAIN_BYTES as u64;

/// Size class of the location of a whole segment, which no page has.
const SEGMENT_CLASS: usize = (1 << CLASS_BITS) - 1;

/// The place of an image, or of a segment that is owned whole. Never zero. The two highest bits are free for
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location(u64);

impl Location {
    /// An image of `length_bytes` at `offset_bytes`, both multiples of [`GRAIN_BYTES`], the length at most 1
    /// MiB; the page's size class is `class`.
    pub fn new(offset_bytes: u64, length_bytes: u32, class: usize) -> Self {
        let (offset, length) = (offset_bytes / u64::from(GRAIN_BYTES), u64::from(length_bytes / GRAIN_BYTES));
        debug_assert!(offset < OFFSET_GRAINS && class < 1 << CLASS_BITS);
        debug_assert!(length > 0 && length < 1 << GRAINS_BITS);
        Self(offset << (GRAINS_BITS + CLASS_BITS) | (class as u64) << GRAINS_BITS | length)
    }

    /// Of the segment that begins at `offset_bytes`, which is owned whole. It has no length of its own.
    pub fn of_segment(offset_bytes: u64) -> Self {
        Self::new(offset_bytes, GRAIN_BYTES, SEGMENT_CLASS)
    }

    /// Whether it is that of a whole segment. No page is there.
    #[inline]
    pub fn is_segment(self) -> bool {
        self.class() == SEGMENT_CLASS
    }

    /// From the page table in memory; `None` for bits that are no location.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits & ((1 << GRAINS_BITS) - 1) != 0 && bits >> 62 == 0).then_some(Self(bits))
    }

    /// From a page table on a device: of an image, or of a whole segment.
    pub fn decode_any(bits: u64) -> Option<Self> {
        let segment =
            Self::from_bits(bits).filter(|location| *location == Self::of_segment(location.offset_bytes()));
        segment.or_else(|| Self::decode(bits))
    }

    /// Of an image, from a device; `None` for bits that no store ever wrote: a size class that does not
    /// exist, or an image longer than its page.
    pub fn decode(bits: u64) -> Option<Self> {
        let fits = |location: &Self| {
            location.class() < CLASSES && u64::from(location.length_bytes()) <= class_bytes(location.class())
        };
        Self::from_bits(bits).filter(fits)
    }

    /// For a page table.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The bytes of the device that must be read for it, as whole sectors: the first one, how many, and how
    /// many of these come before the image.
    pub fn span(self, sector_bytes: u32) -> (u64, u32, u32) {
        let skip = (self.offset_bytes() % u64::from(sector_bytes)) as u32;
        let length = (skip + self.length_bytes()).next_multiple_of(sector_bytes);
        (self.offset_bytes() - u64::from(skip), length, skip)
    }

    /// First byte on the data device.
    pub fn offset_bytes(self) -> u64 {
        (self.0 >> (GRAINS_BITS + CLASS_BITS)) * u64::from(GRAIN_BYTES)
    }

    /// Bytes of the image.
    pub fn length_bytes(self) -> u32 {
        (self.0 & ((1 << GRAINS_BITS) - 1)) as u32 * GRAIN_BYTES
    }

    /// The page's size class.
    pub fn class(self) -> usize {
        (self.0 >> GRAINS_BITS & ((1 << CLASS_BITS) - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_come_back() {
        for (offset, length, class) in
            [(64 * 123_456_789_012, 1 << 20, 8), (0, 64, 0), ((1 << 49) - 64, 128, 15)]
        {
            let location = Location::new(offset, length, class);
            let back = Location::from_bits(location.bits()).unwrap();
            assert_eq!((back.offset_bytes(), back.length_bytes(), back.class()), (offset, length, class));
        }
        assert_eq!(Location::from_bits(0), None);
    }

    #[test]
    fn what_no_page_has_is_no_location_on_a_device() {
        for (length, class) in [(64, 0), (4096, 0), (1 << 20, 8)] {
            let location = Location::new(512, length, class);
            assert_eq!(Location::decode(location.bits()), Some(location));
        }
        for (length, class) in [(64, 9), (64, 15), (4160, 0), (1 << 20, 7)] {
            assert_eq!(Location::decode(Location::new(512, length, class).bits()), None, "{length} {class}");
        }
        let segment = Location::of_segment(512);
        assert_eq!((Location::decode_any(segment.bits()), segment.is_segment()), (Some(segment), true));
        for (length, class) in [(64, 9), (128, 15), (4160, 0)] {
            assert_eq!(
                Location::decode_any(Location::new(512, length, class).bits()),
                None,
                "{length} {class}"
            );
        }
    }

    #[test]
    fn whole_sectors_around_an_image_are_read() {
        let span = |offset, length| Location::new(offset, length, 0).span(512);
        assert_eq!(span(1024, 512), (1024, 512, 0));
        assert_eq!(span(1088, 448), (1024, 512, 64));
        assert_eq!(span(1088, 512), (1024, 1024, 64));
        assert_eq!(Location::new(8128, 128, 0).span(4096), (4096, 8192, 4032));
    }
}
