//! Statistics of writes and of the cleaner.

use crate::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
use super::Stream;

/// Counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes sent to the device: of pages that were changed, moved, of overflow values, of the page
    /// table and of owners, in this order.
    pub by_stream_bytes: [u64; STREAMS],
    /// Bytes in memory of the changed pages that were sent.
    pub dirty_page_bytes: u64,
    /// Bytes sent in whole units at multiples of the unit.
    pub full_unit_bytes: u64,
    /// Bytes sent otherwise.
    pub partial_unit_bytes: u64,
    /// Segments that the cleaner went through.
    pub cleaned_segments: u64,
    /// Bytes that it read.
    pub cleaner_read_bytes: u64,
    /// Images that it moved.
    pub moved_images: u64,
    /// Bytes of the segments that were freed.
    pub freed_bytes: u64,
}

pub(super) const STREAMS: usize = 6;

impl Written {
    /// Bytes written to the device for each byte of a changed page: moved pages included, overflow values and
    /// the page table not.
    #[cfg(test)]
    pub fn write_amplification(&self) -> f64 {
        let pages =
            self.by_stream_bytes[Stream::Fresh as usize] + self.by_stream_bytes[Stream::Moved as usize];
        pages as f64 / self.dirty_page_bytes as f64
    }

    /// Bytes that the cleaner read for each byte that it moved.
    #[cfg(test)]
    pub fn read_per_moved_byte(&self) -> f64 {
        self.cleaner_read_bytes as f64 / self.by_stream_bytes[Stream::Moved as usize] as f64
    }

    /// The counts since `before`.
    #[must_use]
    #[cfg(test)]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            by_stream_bytes: std::array::from_fn(|stream| {
                self.by_stream_bytes[stream] - before.by_stream_bytes[stream]
            }),
            dirty_page_bytes: self.dirty_page_bytes - before.dirty_page_bytes,
            full_unit_bytes: self.full_unit_bytes - before.full_unit_bytes,
            partial_unit_bytes: self.partial_unit_bytes - before.partial_unit_bytes,
            cleaned_segments: self.cleaned_segments - before.cleaned_segments,
            cleaner_read_bytes: self.cleaner_read_bytes - before.cleaner_read_bytes,
            moved_images: self.moved_images - before.moved_images,
            freed_bytes: self.freed_bytes - before.freed_bytes,
        }
    }

    /// Of the written bytes, those in aligned units of the desirable size.
    #[cfg(test)]
    pub fn full_unit_share(&self) -> f64 {
        self.full_unit_bytes as f64 / (self.full_unit_bytes + self.partial_unit_bytes) as f64
    }
}

/// Counts of the bytes that are sent to the device: see [`Written`].
#[derive(Default)]
pub(super) struct WriteCounters {
    pub by_stream_bytes: [AtomicU64; STREAMS],
    pub dirty_page_bytes: AtomicU64,
    pub full_unit_bytes: AtomicU64,
    pub partial_unit_bytes: AtomicU64,
}

/// Counts of the cleaner's work: see [`Written`].
#[derive(Default)]
pub(super) struct CleanerCounters {
    pub cleaned_segments: AtomicU64,
    pub cleaner_read_bytes: AtomicU64,
    pub moved_images: AtomicU64,
}

/// Counts.
pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// All counts together.
pub(super) fn read(written: &WriteCounters, cleaned: &CleanerCounters, freed_bytes: u64) -> Written {
    let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Written {
        by_stream_bytes: std::array::from_fn(|stream| value(&written.by_stream_bytes[stream])),
        dirty_page_bytes: value(&written.dirty_page_bytes),
        full_unit_bytes: value(&written.full_unit_bytes),
        partial_unit_bytes: value(&written.partial_unit_bytes),
        cleaned_segments: value(&cleaned.cleaned_segments),
        cleaner_read_bytes: value(&cleaned.cleaner_read_bytes),
        moved_images: value(&cleaned.moved_images),
        freed_bytes,
    }
}
