//! Which pages moved, came or went in which epoch: what a checkpoint adds to the map of its predecessor.
//!
//! A change is noted before anybody can see it, by whoever has the page to himself. All changes of a page are in one list, so their order is known.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::header::PageId;
use crate::segment::Location;

/// Pages whose numbers agree in the bits above these share a list.
pub(super) const BLOCK_BITS: u32 = 12;

const LISTS: u64 = 32;

/// A page is somewhere else than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The page.
    pub id: PageId,
    /// Where its newest image was; `None` if there was no such page, or no image yet.
    pub from: Option<Location>,
    /// Where it is; `None` if the page does not exist any longer.
    pub to: Option<Location>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Changes {
    lists: [Padded; LISTS as usize],
}

#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Epochs>);

/// At most two epochs have changes: the present one, and the one whose checkpoint is under way.
#[derive(Default)]
struct Epochs([Vec<Moved>; 2]);

impl Changes {
    fn list(&self, index: u64) -> MutexGuard<'_, Epochs> {
        self.lists[(index % LISTS) as usize].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a change.
    pub fn note(&self, epoch: u32, moved: Moved) {
        self.list(moved.id.0 >> BLOCK_BITS).0[epoch as usize % 2].push(moved);
    }

    /// Changes of an epoch so far.
    pub fn count(&self, epoch: u32) -> usize {
        (0..LISTS).map(|index| self.list(index).0[epoch as usize % 2].len()).sum()
    }

    /// All changes of an epoch: those of the same page in their order.
    pub fn take(&self, epoch: u32) -> Vec<Moved> {
        (0..LISTS).flat_map(|index| std::mem::take(&mut self.list(index).0[epoch as usize % 2])).collect()
    }

    /// Calls `see` with the changes in `epoch` of pages in the block of `id`, and of others, the last one first.
    pub fn look_back(&self, epoch: u32, id: PageId, mut see: impl FnMut(Moved)) {
        self.list(id.0 >> BLOCK_BITS).0[epoch as usize % 2].iter().rev().for_each(|moved| see(*moved));
    }
}
