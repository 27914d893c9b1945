//! Positions and sizes of segments, computed from their numbers.
//!
//! A store that grows begins with small segments: sixteen of the first size, sixteen of twice that, and so on
//! as long as the size is below the layout's; all further segments have the layout's size. So a store of few
//! records takes little room, and the small segments are a small part of a large store. All segments have the
//! same size if the first size is the layout's.

use std::ops::Range;

use crate::layout::Layout;

/// Segments of each size below the layout's.
pub(crate) const SEGMENTS_PER_SIZE: u64 = 16;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    start_bytes: u64,
    first_bytes: u64,
    segment_bytes: u64,
    /// Sizes below the layout's.
    small_sizes: u32,
    /// Bytes of all segments of these sizes.
    small_bytes: u64,
}

impl Sizes {
    pub fn of(layout: &Layout) -> Self {
        let segment_bytes = layout.segment_bytes;
        // A layout without this number has segments of equal size.
        let first_bytes =
            if layout.first_segment_bytes == 0 { segment_bytes } else { layout.first_segment_bytes };
        let small_sizes =
            (0..u64::BITS).take_while(|size| first_bytes << size < segment_bytes).count() as u32;
        let small_bytes = SEGMENTS_PER_SIZE * first_bytes * ((1 << small_sizes) - 1);
        Self {
            start_bytes: layout.segments_start_bytes,
            first_bytes,
            segment_bytes,
            small_sizes,
            small_bytes,
        }
    }

    /// The segment that has this byte of the device, wherever the device ends. `None` before the first one.
    #[inline]
    pub fn index_of(&self, offset_bytes: u64) -> Option<usize> {
        let inside = offset_bytes.checked_sub(self.start_bytes)?;
        let Some(behind) = inside.checked_sub(self.small_bytes) else {
            let size = (inside / (SEGMENTS_PER_SIZE * self.first_bytes) + 1).ilog2();
            let before = SEGMENTS_PER_SIZE * self.first_bytes * ((1 << size) - 1);
            let number = u64::from(size) * SEGMENTS_PER_SIZE + (inside - before) / (self.first_bytes << size);
            return Some(number as usize);
        };
        Some((u64::from(self.small_sizes) * SEGMENTS_PER_SIZE + behind / self.segment_bytes) as usize)
    }

    /// Bytes of a segment.
    #[inline]
    pub fn length(&self, index: usize) -> u64 {
        let size = index as u64 / SEGMENTS_PER_SIZE;
        if size < u64::from(self.small_sizes) { self.first_bytes << size } else { self.segment_bytes }
    }

    /// A segment's bytes of the device.
    #[inline]
    pub fn range(&self, index: usize) -> Range<u64> {
        let (number, size) = (index as u64, index as u64 / SEGMENTS_PER_SIZE);
        let inside = if size < u64::from(self.small_sizes) {
            let before = SEGMENTS_PER_SIZE * self.first_bytes * ((1 << size) - 1);
            before + number % SEGMENTS_PER_SIZE * (self.first_bytes << size)
        } else {
            self.small_bytes + (number - u64::from(self.small_sizes) * SEGMENTS_PER_SIZE) * self.segment_bytes
        };
        let start = self.start_bytes + inside;
        start..start + self.length(index)
    }

    /// Segments of all sizes below the layout's.
    pub fn small_count(&self) -> usize {
        (u64::from(self.small_sizes) * SEGMENTS_PER_SIZE) as usize
    }

    /// Number of whole segments on a device of `device_bytes`.
    pub fn count(&self, device_bytes: u64) -> usize {
        // The segment that contains the first missing byte is not whole.
        self.index_of(device_bytes).unwrap_or(0)
    }

    /// Bytes of a device that ends with the last of `count` segments.
    pub fn device_bytes(&self, count: usize) -> u64 {
        self.range(count).start
    }

    /// The fewest segments, from the number `from` on, that have `bytes` together.
    pub fn count_for(&self, from: usize, bytes: u64) -> usize {
        let end = self.range(from).start.saturating_add(bytes);
        let last = self.index_of(end - 1).unwrap_or(from);
        if bytes == 0 { 0 } else { last + 1 - from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Placement;
    use crate::segment::tests::layout;

    fn sizes(first_bytes: u64, segment_bytes: u64) -> Sizes {
        Sizes::of(&Layout {
            first_segment_bytes: first_bytes,
            segment_bytes,
            ..layout(Placement::OutOfPlace)
        })
    }

    #[test]
    fn segments_lie_side_by_side_and_every_byte_finds_its_own() {
        for (first, segment) in [(512, 4096), (512, 512), (512, 3072), (1024, 2048), (512, 1 << 20)] {
            let sizes = sizes(first << 10, segment << 10);
            let mut end = sizes.range(0).start;
            assert_eq!(sizes.index_of(end - 1), None);
            assert_eq!((sizes.count(0), sizes.count(end)), (0, 0));
            for index in 0..300 {
                let range = sizes.range(index);
                assert_eq!((range.start, range.end - range.start), (end, sizes.length(index)));
                end = range.end;
                assert_eq!(
                    (sizes.index_of(range.start), sizes.index_of(end - 1)),
                    (Some(index), Some(index))
                );
                assert_eq!((sizes.count(end - 1), sizes.count(end)), (index, index + 1));
                assert_eq!(sizes.device_bytes(index + 1), end);
                assert_eq!(sizes.count_for(index, sizes.length(index)), 1);
                assert_eq!(sizes.count_for(index, sizes.length(index) + 1), 2);
            }
        }
    }

    #[test]
    fn small_segments_come_first_and_are_few() {
        let sizes = sizes(512 << 10, 4 << 20);
        let lengths = [0, 15, 16, 31, 32, 47, 48, 1000].map(|index| sizes.length(index) >> 10);
        assert_eq!(lengths, [512, 512, 1024, 1024, 2048, 2048, 4096, 4096]);
        assert_eq!(sizes.range(48).start - sizes.range(0).start, 56 << 20);
    }
}
