//! The bytes of a device at a point in time.

use std::ops::Range;

use flashgrain_device::StripeSet;

use crate::content::Content;
use crate::fault::PowerCut;

/// The bytes of a device at a point in time, including the unsettled writes that a power cut may undo. Taking
/// one copies nothing; image and device share all pages that neither changes.
#[derive(Clone, Debug)]
pub struct Image {
    pub(super) stripes: StripeSet,
    pub(super) drives: Vec<Content>,
    pub(super) on_link: Vec<OnLink>,
}

/// A write whose data were on the link.
#[derive(Clone, Debug)]
pub(super) struct OnLink {
    pub drive: u16,
    pub offset_bytes: u64,
    pub bytes: Vec<u8>,
}

/// A write that a power cut may undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsettledWrite {
    /// Number of the drive within a stripe set.
    pub drive: u16,
    /// From the first to the last byte on that drive that is not on the medium.
    pub range: Range<u64>,
    /// Whether its data were still on the link.
    pub on_link: bool,
}

impl Image {
    /// The writes that a power cut may undo, in the order of their arrival; those on the link come last.
    pub fn unsettled(&self) -> Vec<UnsettledWrite> {
        self.numbered().into_iter().map(|(_, write)| write).collect()
    }

    /// With their versions, for those that have arrived.
    fn numbered(&self) -> Vec<(u64, UnsettledWrite)> {
        let mut writes: Vec<(u64, UnsettledWrite)> = Vec::new();
        for (drive, content) in (0..).zip(&self.drives) {
            let unsettled = content.unsettled().into_iter();
            writes.extend(
                unsettled.map(|(version, range)| (version, UnsettledWrite { drive, range, on_link: false })),
            );
        }
        writes.sort_unstable_by_key(|(version, _)| *version);
        writes.extend(self.on_link.iter().map(|write| {
            let range = write.offset_bytes..write.offset_bytes + write.bytes.len() as u64;
            (u64::MAX, UnsettledWrite { drive: write.drive, range, on_link: true })
        }));
        writes
    }

    /// The image after a power cut at this point. It has no unsettled writes.
    #[must_use]
    pub fn after(&self, cut: &PowerCut) -> Self {
        let mut writes = self.numbered();
        let arrived = writes.len() - self.on_link.len();
        if !cut.in_flight {
            writes.truncate(arrived);
        }
        let ranges: Vec<Range<u64>> = writes.iter().map(|(_, write)| write.range.clone()).collect();
        let kept = cut.decide(&ranges);
        let mut drives = self.drives.clone();
        for content in &mut drives {
            content.cut_power(|version, sector| {
                let index = writes[..arrived].partition_point(|(other, _)| *other < version);
                let byte = sector * crate::content::SECTOR_BYTES;
                kept.get(index).is_some_and(|kept| kept.iter().any(|range| range.contains(&byte)))
            });
        }
        for (write, kept) in self.on_link.iter().zip(kept.iter().skip(arrived)) {
            for range in kept {
                let bytes =
                    (range.start - write.offset_bytes) as usize..(range.end - write.offset_bytes) as usize;
                drives[usize::from(write.drive)].put(range.start, &write.bytes[bytes]);
            }
        }
        Self { stripes: self.stripes, drives, on_link: Vec::new() }
    }

    /// The newest bytes from `offset_bytes` of the device on; zeros where nothing was written.
    ///
    /// # Panics
    /// If the range reaches over the device's end.
    pub fn read(&self, offset_bytes: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let remaining = u32::try_from(bytes.len() - done).unwrap_or(u32::MAX);
            let segment = self.stripes.first_segment(offset_bytes + done as u64, remaining);
            let end = done + segment.length_bytes as usize;
            self.drives[segment.member as usize].read(segment.offset_bytes, &mut bytes[done..end]);
            done = end;
        }
    }

    /// Puts these bytes there, on the medium.
    ///
    /// # Panics
    /// If the range reaches over the device's end.
    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let remaining = u32::try_from(bytes.len() - done).unwrap_or(u32::MAX);
            let segment = self.stripes.first_segment(offset_bytes + done as u64, remaining);
            let end = done + segment.length_bytes as usize;
            self.drives[segment.member as usize].put(segment.offset_bytes, &bytes[done..end]);
            done = end;
        }
    }

    /// Whether both are of equal devices.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let capacities =
            |image: &Self| -> Vec<u64> { image.drives.iter().map(Content::capacity_bytes).collect() };
        self.stripes == other.stripes && capacities(self) == capacities(other)
    }

    /// Number and size of the drives, for messages.
    pub(super) fn shape(&self) -> String {
        let bytes = self.drives.first().map_or(0, Content::capacity_bytes);
        format!("{} drives of {bytes} bytes", self.drives.len())
    }

    /// Whether both hold the same newest bytes everywhere.
    pub fn same_bytes(&self, other: &Self) -> bool {
        self.is_alike(other)
            && self.drives.iter().zip(&other.drives).all(|(one, other)| one.same_bytes(other))
    }

    /// Bytes of memory that hold written data.
    pub fn stored_bytes(&self) -> u64 {
        self.drives.iter().map(Content::stored_bytes).sum()
    }
}
