//! Contention splits: records that several threads change at the same time are moved to leaves of their own.
//!
//! A leaf has one latch. A leaf is split if threads often lose races at it, next to the record that was to be
//! changed, until the hot records lie apart or alone. The small leaves do no harm: they are few, and a merge
//! is only tried when records were removed.

use std::cell::RefCell;

use crate::header::PageId;

/// Leaves that a thread remembers.
const REMEMBERED: usize = 8;

/// This number of lost races...
const LOSSES: u32 = 32;

/// ...within this number of changes of the thread make a leaf contended.
const CHANGES: u64 = 512;

/// Lost races at leaves, as one thread sees them.
#[derive(Default)]
struct Races {
    changes: u64,
    leaves: [Leaf; REMEMBERED],
}

#[derive(Clone, Copy, Default)]
struct Leaf {
    page: u64,
    losses: u32,
    /// The thread's changes when the first of them was lost.
    since: u64,
}

thread_local! {
    static RACES: RefCell<Races> = const {
        RefCell::new(Races { changes: 0, leaves: [Leaf { page: 0, losses: 0, since: 0 }; REMEMBERED] })
    };
}

impl Races {
    fn lost(&mut self, page: PageId) -> bool {
        let leaf = &mut self.leaves[page.0 as usize % REMEMBERED];
        if leaf.page != page.0 || self.changes - leaf.since > CHANGES {
            *leaf = Leaf { page: page.0, losses: 0, since: self.changes };
        }
        leaf.losses += 1;
        let contended = leaf.losses >= LOSSES;
        if contended {
            *leaf = Leaf::default();
        }
        contended
    }
}

/// Counts a change of a record by the calling thread.
#[inline]
pub(super) fn note_change() {
    RACES.with_borrow_mut(|races| races.changes += 1);
}

/// Notes that another thread changed the leaf after the calling thread had looked at it and before it got the
/// latch. Returns whether that happens often.
#[cold]
pub(super) fn note_lost(page: PageId) -> bool {
    RACES.with_borrow_mut(|races| races.lost(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_contended_when_many_races_in_a_row_are_lost() {
        let mut races = Races::default();
        let contended: Vec<bool> = (0..2 * LOSSES)
            .map(|_| {
                races.changes += 1;
                races.lost(PageId(5))
            })
            .collect();
        let at: Vec<usize> =
            contended.iter().enumerate().filter(|(_, yes)| **yes).map(|(turn, _)| turn).collect();
        assert_eq!(at, [LOSSES as usize - 1, 2 * LOSSES as usize - 1]);
    }

    #[test]
    fn a_race_lost_now_and_then_is_no_contention() {
        let mut races = Races::default();
        for _ in 0..100 * LOSSES {
            races.changes += CHANGES / 4;
            assert!(!races.lost(PageId(5)));
        }
    }
}
