//! Changes of pages' locations by epoch: a checkpoint adds those of its epoch to the map.
//!
//! A change is noted before the next change of the same page can happen. All changes of a page are in one
//! list, so their order is known.

use crate::sync::{Mutex, MutexGuard, PoisonError};

use crate::header::PageId;
use crate::segment::Location;

/// Pages whose numbers agree but for these bits share a list.
pub(super) const BLOCK_BITS: u32 = 12;

/// Lists.
const LISTS: usize = 32;

/// A change of a page's location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The page.
    pub id: PageId,
    /// Location of its newest image before; `None` if the page or its image did not exist yet.
    pub from: Option<Location>,
    /// Its location now; `None` if the page does not exist any longer.
    pub to: Option<Location>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Changes {
    lists: [Padded; LISTS],
}

#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Vec<InEpoch>>);

/// Changes of an epoch in their order. There are few epochs at a time: the present one, and those whose
/// checkpoints are under way or failed.
struct InEpoch {
    epoch: u32,
    moved: Vec<Moved>,
}

impl Changes {
    fn list(&self, index: usize) -> MutexGuard<'_, Vec<InEpoch>> {
        self.lists[index % LISTS].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_of(&self, id: PageId) -> MutexGuard<'_, Vec<InEpoch>> {
        self.list((id.0 >> BLOCK_BITS) as usize)
    }

    /// Notes a change.
    pub fn note(&self, epoch: u32, moved: Moved) {
        self.note_if(epoch, moved, || true);
    }

    /// Notes a change if `make` makes it. No other change of the page is noted meanwhile.
    pub fn note_if(&self, epoch: u32, moved: Moved, make: impl FnOnce() -> bool) -> bool {
        let mut list = self.list_of(moved.id);
        if !make() {
            return false;
        }
        let index = list.iter().rposition(|changes| changes.epoch <= epoch);
        match index.filter(|index| list[*index].epoch == epoch) {
            Some(index) => list[index].moved.push(moved),
            None => {
                let behind = index.map_or(0, |index| index + 1);
                list.insert(behind, InEpoch { epoch, moved: vec![moved] });
            }
        }
        true
    }

    /// All changes until the end of `epoch`, in parts: those of the same page in their order, in one part.
    pub fn take(&self, epoch: u32) -> impl Iterator<Item = Vec<Moved>> {
        (0..LISTS).map(move |index| {
            let mut list = self.list(index);
            let young = list.iter().position(|changes| changes.epoch > epoch).unwrap_or(list.len());
            let mut taken = list.drain(..young).map(|changes| changes.moved);
            let mut first = taken.next().unwrap_or_default();
            taken.for_each(|mut later| first.append(&mut later));
            first
        })
    }

    /// Calls `see` with the changes since the end of `epoch` of pages in the block of `id`, and of others,
    /// the last one first.
    pub fn since(&self, epoch: u32, id: PageId, mut see: impl FnMut(Moved)) {
        for changes in self.list_of(id).iter().rev().take_while(|changes| changes.epoch > epoch) {
            changes.moved.iter().rev().for_each(|moved| see(*moved));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_by_epoch_and_in_order() {
        let changes = Changes::default();
        let at = |number: u64| Some(Location::new(number * 512, 512, 0));
        let moved = |id: u64, from: u64, to: u64| Moved { id: PageId(id), from: at(from), to: at(to) };
        changes.note(2, moved(1, 1, 2));
        changes.note(3, moved(1, 3, 4));
        // Of an older epoch, noted late.
        changes.note(2, moved(1, 2, 3));
        changes.note(3, moved(9 << BLOCK_BITS, 7, 8));
        assert!(!changes.note_if(3, moved(1, 5, 6), || false));
        let mut seen = vec![];
        changes.since(2, PageId(5), |moved| seen.push(moved));
        assert_eq!(seen, [moved(1, 3, 4)]);
        let take = |epoch: u32| changes.take(epoch).flatten().collect::<Vec<_>>();
        assert_eq!(take(2), [moved(1, 1, 2), moved(1, 2, 3)]);
        changes.note(2, moved(2, 1, 2));
        assert_eq!(take(3), [moved(2, 1, 2), moved(1, 3, 4), moved(9 << BLOCK_BITS, 7, 8)]);
        assert_eq!(take(9), []);
    }
}
