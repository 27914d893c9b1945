//! Images that the cleaner has copied to units that are not written yet.
//!
//! A page is told its new location only when the copy is on the device. Until then its old segment counts the
//! move as under way, and is not freed.

use std::collections::HashMap;

use super::locator::LocatorSlot;
use super::space::Space;
use super::{Location, UnitSequence};
use crate::header::PageId;
use crate::sync::{Arc, Mutex, PoisonError};

/// An image that was copied.
pub(super) struct Move {
    pub page: PageId,
    pub old: Location,
    pub new: Location,
    /// Segment of the old image.
    pub victim: usize,
}

/// Moves under way, by the unit that they are written with.
pub(super) struct Moves {
    under_way: Mutex<HashMap<UnitSequence, Vec<Move>>>,
    space: Arc<Space>,
    locator: Arc<LocatorSlot>,
}

impl Moves {
    pub fn new(space: &Arc<Space>, locator: &Arc<LocatorSlot>) -> Self {
        Self { under_way: Mutex::default(), space: Arc::clone(space), locator: Arc::clone(locator) }
    }

    /// The image is going to be written with this unit.
    pub fn begin(&self, unit: UnitSequence, moved: Move) {
        self.space.begin_move(moved.victim);
        if planted!(CleanerPointsAhead) {
            self.tell(&moved);
        }
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).entry(unit).or_default().push(moved);
    }

    /// Ends the moves of this unit, which is written: pages get their new locations. It returns whether there
    /// were any.
    pub fn end(&self, unit: UnitSequence) -> bool {
        let ended = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&unit);
        let Some(moves) = ended else { return false };
        for moved in moves {
            if !planted!(CleanerPointsAhead) {
                self.tell(&moved);
            }
            self.space.end_move(moved.victim);
        }
        true
    }

    /// Relocates a page, unless it has changed meanwhile, and releases the image that is not needed any more.
    fn tell(&self, moved: &Move) {
        let locator = self.locator.get();
        let relocated = locator.is_some_and(|locator| locator.relocate(moved.page, moved.old, moved.new));
        self.space.release(if relocated { moved.old } else { moved.new });
    }

    /// New locations of the moves under way.
    #[cfg(test)]
    pub fn new_places(&self) -> Vec<Location> {
        let moves = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        moves.values().flatten().map(|moved| moved.new).collect()
    }
}
