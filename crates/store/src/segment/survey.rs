//! Surveys: lists of the live images in the segments that are cleaned next.
//!
//! A survey walks the page table once for several segments. So the cleaner reads hardly more than it moves.
//! The list of a segment may be outdated when its turn comes, but it never lacks a live image, because no
//! images are put into a full segment.

use std::collections::VecDeque;
use std::ops::Range;

use super::changes::Changes;
use super::space::Space;
use super::unit::Buffers;
use super::{Location, PageLocator, UnitSequence};
use crate::header::PageId;
use crate::poison::Poison;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A segment to be cleaned.
pub(super) struct Surveyed {
    pub index: usize,
    /// Opening sequence of the surveyed use of the segment. If the segment has another one now, the list is
    /// void.
    pub opening: UnitSequence,
    /// Its live images, in the order of their offsets.
    pub live: Vec<(PageId, Location)>,
}

/// The segments to be cleaned, the one with the largest benefit first.
pub(super) struct Survey {
    plan: Mutex<SurveyQueue>,
    poison: Poison,
    space: Arc<Space>,
    buffers: Arc<Buffers>,
    changes: Arc<Changes>,
}

#[derive(Default)]
struct SurveyQueue {
    next: VecDeque<Surveyed>,
    /// A new survey is being made.
    is_being_made: bool,
    /// The age of the store that makes the survey too old.
    until_bytes: u64,
    /// It was made when hardly a segment was free.
    emergency: bool,
}

/// The right to make a survey. Others wait for it until this is dropped.
struct Making<'a>(&'a Survey);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.plan().is_being_made = false;
        self.0.changes.wake_all();
    }
}

impl Survey {
    pub fn new(poison: Poison, space: &Arc<Space>, buffers: &Arc<Buffers>, changes: &Arc<Changes>) -> Self {
        let (space, buffers, changes) = (Arc::clone(space), Arc::clone(buffers), Arc::clone(changes));
        Self { plan: Mutex::default(), poison, space, buffers, changes }
    }

    fn plan(&self) -> MutexGuard<'_, SurveyQueue> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next segment to clean from the survey, making a new survey if need be. The segment counts as
    /// being cleaned from now on. `None` if no segment is worth cleaning, or if there is no room for its live
    /// images.
    pub fn next_victim(&self, locator: &dyn PageLocator) -> Option<Surveyed> {
        while self.space.may_clean() {
            let emergency = self.space.is_emergency();
            let making = {
                let mut plan = self.plan();
                if self.space.age_bytes() > plan.until_bytes || emergency && !plan.emergency {
                    plan.next.clear();
                }
                // Segments that became garbage or were reused meanwhile are skipped.
                while let Some(victim) = plan.next.pop_front() {
                    if self.space.begin_victim(victim.index, victim.opening) {
                        return Some(victim);
                    }
                }
                !std::mem::replace(&mut plan.is_being_made, true)
            };
            if making {
                let _others_wait = Making(self);
                if !self.make(locator, emergency) {
                    return None;
                }
            } else {
                let is_made = || self.poison.check().map(|()| !self.plan().is_being_made);
                self.changes.wait_until(is_made).ok()?;
            }
        }
        None
    }

    /// Whether all units of this range of the device are written.
    pub fn is_written(&self, range: Range<u64>) -> bool {
        !self.buffers.holds_any_of(range)
    }

    /// Returns whether there is anything to clean.
    fn make(&self, locator: &dyn PageLocator, emergency: bool) -> bool {
        let age_bytes = self.space.age_bytes();
        let victims = self.space.victims(|range| self.is_written(range));
        if victims.is_empty() {
            return false;
        }
        let victims_bytes: u64 = victims.iter().map(|index| self.space.sizes().length(*index)).sum();
        let surveyed = self.of(victims, locator);
        let mut plan = self.plan();
        plan.until_bytes = age_bytes + victims_bytes;
        plan.emergency = emergency;
        plan.next = surveyed.into();
        true
    }

    /// Lists the live images of these segments.
    pub fn of(&self, victims: Vec<usize>, locator: &dyn PageLocator) -> Vec<Surveyed> {
        let mut place_of = vec![None; victims.iter().max().map_or(0, |last| last + 1)];
        let mut surveyed: Vec<_> = victims
            .into_iter()
            .map(|index| Surveyed { index, opening: self.space.opening_of(index), live: Vec::new() })
            .collect();
        for (place, victim) in surveyed.iter().enumerate() {
            place_of[victim.index] = Some(place);
        }
        let place_of = |location: Location| {
            let index = self.space.index_of(location.offset_bytes())?;
            place_of.get(index).copied().flatten()
        };
        for (page, location) in locator.pages_where(&|location| place_of(location).is_some()) {
            if let Some(place) = place_of(location) {
                surveyed[place].live.push((page, location));
            }
        }
        for victim in &mut surveyed {
            victim.live.sort_unstable_by_key(|(_, location)| location.offset_bytes());
        }
        surveyed
    }
}

/// A range of the device that is read by one request, and the images in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub offset_bytes: u64,
    pub length_bytes: u32,
    pub images: Range<usize>,
}

/// Groups images, which are in the order of their offsets, into reads of whole sectors, of at most
/// `length_max` bytes each, unless a single image is longer. A gap of at most `gap_max` bytes is read along,
/// which is cheaper than another request.
pub(super) fn extents(
    live: &[(PageId, Location)],
    sector_bytes: u32,
    length_max: u32,
    gap_max: u32,
) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for (place, (_, location)) in live.iter().enumerate() {
        let (start, length, _) = location.span(sector_bytes);
        let end = start + u64::from(length);
        match extents.last_mut() {
            Some(last)
                if start <= last.offset_bytes + u64::from(last.length_bytes) + u64::from(gap_max)
                    && end <= last.offset_bytes + u64::from(length_max) =>
            {
                last.length_bytes = last.length_bytes.max((end - last.offset_bytes) as u32);
                last.images.end = place + 1;
            }
            _ => extents.push(Extent { offset_bytes: start, length_bytes: length, images: place..place + 1 }),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn live(images: &[(u64, u32)]) -> Vec<(PageId, Location)> {
        let location = |(offset, length): &(u64, u32)| Location::new(*offset, *length, 0);
        (1..).map(PageId).zip(images.iter().map(location)).collect()
    }

    #[test]
    fn neighbours_are_read_together_and_wide_gaps_are_left_out() {
        let live = live(&[(64, 512), (1024, 512), (9 << 10, 1024), (10 << 10, 1024)]);
        let extent = |offset_bytes, length_bytes, images| Extent { offset_bytes, length_bytes, images };
        assert_eq!(
            extents(&live, 512, 16 << 10, 4 << 10),
            [extent(0, 1536, 0..2), extent(9 << 10, 2048, 2..4)]
        );
        assert_eq!(extents(&live, 512, 16 << 10, 16 << 10), [extent(0, 11 << 10, 0..4)]);
        assert_eq!(extents(&live, 512, 1024, 16 << 10).len(), 4);
        assert_eq!(extents(&[], 512, 16 << 10, 0), []);
    }

    proptest! {
        #[test]
        fn every_image_lies_in_the_extent_that_has_it(
            images in proptest::collection::vec((0..40u64, 1..64u32), 0..50),
            gap_max in 0..9000u32,
        ) {
            let mut at = 0;
            let images: Vec<_> = images.iter().map(|(gap, grains)| {
                let start = at + gap * 64;
                at = start + u64::from(grains * 64);
                (start, grains * 64)
            }).collect();
            let live = live(&images);
            let extents = extents(&live, 512, 16 << 10, gap_max);
            prop_assert!(extents.iter().flat_map(|extent| extent.images.clone()).eq(0..live.len()));
            for extent in extents {
                let range = extent.offset_bytes..extent.offset_bytes + u64::from(extent.length_bytes);
                prop_assert!(range.start % 512 == 0 && range.end % 512 == 0 && extent.length_bytes <= 16 << 10);
                for (_, location) in &live[extent.images] {
                    let end = location.offset_bytes() + u64::from(location.length_bytes());
                    prop_assert!(range.start <= location.offset_bytes() && end <= range.end);
                }
            }
        }
    }
}
