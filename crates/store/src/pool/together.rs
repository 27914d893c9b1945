//! Pages whose images lie next to each other on the device, loaded by one request.
//!
//! To a drive the next few kilobytes of a read cost much less than another read (the affine model's setup and
//! transfer cost: Bender et al., "Small Refinements to the DAM Can Have Big Consequences for Data-Structure
//! Design", §2). Leaves that were written in key order lie in key order, so a scan gets the following ones
//! along with the one that it needs.

use super::Access;
use super::fault::Loader;
use super::table::PageLocation;
use crate::header::PageId;
use crate::segment::{GAP_BYTES, Location};

/// Longest read.
const TOGETHER_BYTES: u64 = 32 << 10;

impl Loader<'_> {
    /// Loads the first of these pages, if it is on the device, and with the same request those others that
    /// lie close to it and are not in memory either, as if a scan had loaded them. It does nothing if there
    /// are none, or no memory for them; a later read of a page loads it in any case, and reports errors.
    /// Parks.
    pub fn load_together(self, ids: &[PageId], access: Access) {
        let near = self.side_by_side(ids);
        if near.len() < 2 {
            return;
        }
        let (mut images, mut loads) = (Vec::new(), Vec::new());
        for (id, location) in near {
            let Some(entry) = self.pages.table().entry(id) else { continue };
            let Some(frame) = self.pages.frames().spare(location.class()) else { break };
            if let Some(loading) = self.begin(id, entry, location, frame) {
                images.push((location, id, self.pages.frames().memory(frame)));
                loads.push(loading);
            }
        }
        if loads.is_empty() {
            return;
        }
        // SAFETY: the frames have no pages and were taken by this call, each has the bytes of its class, and
        // all begin at multiples of 4096.
        let are_read = unsafe { self.images.store().read_together(&images) };
        for ((loading, (location, id, _)), is_read) in loads.into_iter().zip(images).zip(are_read) {
            if is_read {
                loading.finish(location, if Some(&id) == ids.first() { access } else { Access::Scan });
            }
        }
    }

    /// Those of the pages that are on the device and lie close to the first one, and where.
    pub(super) fn side_by_side(self, ids: &[PageId]) -> Vec<(PageId, Location)> {
        let mut near: Vec<(PageId, Location)> = Vec::new();
        let (mut start, mut end) = (0, 0);
        for (place, id) in ids.iter().enumerate() {
            let location = match self.pages.table().entry(*id).map(|entry| entry.load().location()) {
                Some(PageLocation::Device(location)) if !location.is_segment() => location,
                _ if place == 0 => break,
                _ => continue,
            };
            let (first, behind) =
                (location.offset_bytes(), location.offset_bytes() + u64::from(location.length_bytes()));
            if place == 0 {
                (start, end) = (first, behind);
            }
            let gap = first.saturating_sub(end).max(start.saturating_sub(behind));
            let (all_start, all_end) = (start.min(first), end.max(behind));
            if gap > u64::from(GAP_BYTES) || all_end - all_start > TOGETHER_BYTES {
                break;
            }
            (start, end) = (all_start, all_end);
            near.push((*id, location));
        }
        near
    }
}
