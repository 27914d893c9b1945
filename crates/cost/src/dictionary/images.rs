//! Images of pages that are written out of place: the demand of writing and reading them on a drive.
//!
//! A page's image has the bytes in use only. Images are gathered in write units; each unit is one request. A
//! cleaner copies live images out of segments that are mostly garbage.

use super::overflow::Stored;
use super::{Demand, Situation, Transfer, cleaning_amplification, victim_live_share};
use crate::Access;

/// Bytes of the page table in memory for each page.
pub(crate) const PAGE_TABLE_BYTES: f64 = 8.0;
/// Bytes of the page table that a checkpoint writes for each new image: a page's number and its location.
const MAP_ENTRY_BYTES: f64 = 16.0;
/// Images begin at multiples of this, and their page's header is as large as half of it.
pub(super) const GRAIN_BYTES: f64 = 64.0;
/// A read takes the sectors around an image.
pub(super) const SECTOR_BYTES: f64 = 512.0;
/// The cleaner reads live images together up to this size,
const CLEANER_READ_BYTES: f64 = 65_536.0;
/// if the garbage between them is not longer than this.
const CLEANER_GAP_BYTES: f64 = 8192.0;

/// Bytes of the image of a page that has `used_bytes` in use.
pub(super) fn image_bytes(used_bytes: f64) -> f64 {
    used_bytes + GRAIN_BYTES
}

/// Bytes that are read for a page: its image lies anywhere in its sectors, but no more than a page is read.
pub(super) fn image_read_bytes(image_bytes: f64, page_bytes: f64) -> f64 {
    (image_bytes + SECTOR_BYTES).min(page_bytes.max(SECTOR_BYTES))
}

/// Pages that a range query with `further` pages after its first reads, and the number that it reads at the
/// same time. Its length is not known in advance, so it asks for as many pages ahead as it has passed: from
/// the third page on, half as many again are read in vain, on average.
pub(super) fn further_reads(further: f64, read_ahead: f64) -> (f64, f64) {
    let vain = (0.5 * (further - 1.0)).clamp(0.0, 0.5 * read_ahead);
    (further + vain, (0.5 * further).clamp(1.0, read_ahead.max(1.0)))
}

/// The same of a tree in place, whose short ranges ask for nothing ahead.
pub(super) fn further_reads_in_place(further: f64, read_ahead: f64) -> (f64, f64) {
    match read_ahead > 1.0 && further > LEAVES_ALONE {
        true => further_reads(further, read_ahead),
        false => (further, 1.0),
    }
}

/// Leaves that are read one by one before others are asked for ahead.
const LEAVES_ALONE: f64 = 16.0;

/// Bytes of a unit that an image takes where none crosses a border unless it is longer than the distance of
/// these; it then begins at one.
pub(super) fn packed_bytes(image_bytes: f64, border_bytes: f64) -> f64 {
    let image_bytes = image_bytes.max(1.0);
    match image_bytes <= border_bytes {
        true => border_bytes / (border_bytes / image_bytes).floor(),
        false => border_bytes * (image_bytes / border_bytes).ceil(),
    }
}

/// How new images of pages get to the drive: in units, and some of them again by the cleaner.
pub(crate) struct Writes {
    pub image_bytes: f64,
    pub records_per_page: f64,
    pub write_unit_bytes: f64,
    /// See [`packed_bytes`].
    pub border_bytes: f64,
    pub utilisation: f64,
    /// Units that are written at the same time.
    pub concurrency: f64,
    pub cleaners: f64,
}

impl Writes {
    /// The same for overflow values.
    pub fn of_values(self, stored: &Stored<'_>) -> Self {
        Self { image_bytes: stored.value_bytes + GRAIN_BYTES, records_per_page: 1.0, ..self }
    }

    /// Bytes written for each byte of a new image: how much the cleaner makes of it.
    fn amplification(&self, situation: &Situation) -> f64 {
        let Situation { skew, records, .. } = situation;
        cleaning_amplification(self.utilisation, skew, records.count, self.records_per_page)
    }

    /// Adds the units that new images and the cleaner's copies fill, and the cleaner's reads.
    pub fn add(&self, demand: &mut Demand, images: f64, situation: &Situation) {
        let amplification = self.amplification(situation);
        let packed_bytes = packed_bytes(self.image_bytes, self.border_bytes);
        let written = images * amplification * (packed_bytes + MAP_ENTRY_BYTES);
        demand.add(Transfer {
            access: Access::Write,
            requests: written / self.write_unit_bytes,
            bytes_each: self.write_unit_bytes,
            random_share: 1.0,
            concurrency: self.concurrency,
            awaited: false,
        });
        let (images_per_read, bytes_each) =
            cleaner_read(self.image_bytes, victim_live_share(self.utilisation));
        demand.add(Transfer {
            access: Access::Read,
            requests: images * (amplification - 1.0) / images_per_read,
            bytes_each,
            random_share: 1.0,
            concurrency: self.cleaners,
            awaited: false,
        });
    }
}

/// Live images that one read of the cleaner gets, and its bytes, in a segment whose share `live` is live at
/// random.
///
/// Between two live images lie g dead ones with a probability of live · (1 - live)^g. Both are read together
/// if those are short enough.
fn cleaner_read(image_bytes: f64, live: f64) -> (f64, f64) {
    let gap_max = (CLEANER_GAP_BYTES / image_bytes).floor();
    let dead = 1.0 - live;
    let joined = 1.0 - dead.powf(gap_max + 1.0);
    // The mean of a geometric distribution, cut off above `gap_max`.
    let gap = dead / live.max(1e-9) - (gap_max + 1.0) * dead.powf(gap_max + 1.0) / joined.max(1e-9);
    let step_bytes = image_bytes * (1.0 + gap.max(0.0));
    let images_max = (1.0 + (CLEANER_READ_BYTES - image_bytes) / step_bytes).max(1.0);
    // A chain that goes on with this probability, cut off at `images_max`.
    let images = ((1.0 - joined.powf(images_max)) / (1.0 - joined).max(1e-9)).clamp(1.0, images_max);
    (images, image_bytes + (images - 1.0) * step_bytes + SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside images of drawn lengths that are put into units one after the other.
    #[test]
    fn borders_cost_what_a_packed_unit_leaves_free() {
        const UNIT: f64 = 262_144.0;
        for (image, border) in [(2868.0, 4096.0), (2868.0, UNIT), (5700.0, 4096.0), (1000.0, 16384.0)] {
            let (mut at, mut units, mut images) = (0.0, 0.0, 0.0);
            while units < 10.0 {
                let end = (f64::div_euclid(at, border) + 1.0) * border;
                if at + image > end && (image <= border || at % border != 0.0) {
                    at = end;
                }
                if at + image > UNIT {
                    (at, units) = (0.0, units + 1.0);
                }
                (at, images) = (at + image, images + 1.0);
            }
            let got = packed_bytes(image, border);
            let drawn = units * UNIT / images;
            assert!((got / drawn - 1.0).abs() < 0.05, "{image} {border}: {got}, drawn {drawn}");
        }
    }

    #[test]
    fn a_cleaner_reads_dense_segments_at_once_and_sparse_ones_image_by_image() {
        let (images, bytes) = cleaner_read(3000.0, 0.95);
        assert!(images > 15.0 && (50_000.0..70_000.0).contains(&bytes), "{images} {bytes}");
        let (images, bytes) = cleaner_read(12_000.0, 0.1);
        assert!((1.0..1.2).contains(&images) && bytes < 15_000.0, "{images} {bytes}");
    }
}
