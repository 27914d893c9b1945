use std::cell::{Cell, RefCell};

use super::*;
use crate::index::Clearing;
use crate::{IndexKind, LsmLayout, LsmOptions};

/// Values of each tree; some are in nodes or tables, and some in memory.
const VALUES: usize = 90;

/// How a tree is cleared that is stopped when it asks for the `nth` time: the overflow values that were freed
/// by then, and those that it still has.
fn cleared_until(kind: IndexKind, nth: usize) -> [Vec<Vec<u8>>; 2] {
    let db = Db::in_memory(8 << 20).unwrap();
    let lsm = LsmOptions::new().layout(LsmLayout::Tiered).table_bytes(1);
    let tree = db.tree_with("t", &TreeOptions::new().kind(kind).lsm(lsm)).unwrap();
    for number in 0..VALUES {
        tree.insert((number * 31 % VALUES).to_be_bytes(), vec![number as u8; 20_000]).unwrap();
        if number % 20 == 19 {
            db.checkpoint().unwrap();
        }
    }
    let index = &db.core.engine().trees().named("t").unwrap().tree.index;
    let (freed, asked) = (RefCell::new(Vec::new()), Cell::new(0));
    let free_overflow = |reference: &[u8]| {
        freed.borrow_mut().push(reference.to_vec());
        Ok(())
    };
    let go_on = || {
        asked.set(asked.get() + 1);
        if asked.get() == nth { Err(Error::Closed) } else { Ok(()) }
    };
    let ended = index.clear(&Clearing { free_overflow: &free_overflow, go_on: &go_on });
    assert!(matches!(ended, Err(Error::Closed)), "{kind:?} {nth}: {ended:?}");
    let mut left = Vec::new();
    index
        .walk(&mut |_| (), &mut |_, version, reference| {
            if version.is_overflow() {
                left.push(reference.to_vec());
            }
        })
        .unwrap();
    [freed.into_inner(), left]
}

/// Nothing would refer to the rest after the store is closed, if a tree were stopped between the two.
#[test]
fn a_dropped_tree_is_stopped_only_where_all_that_has_left_it_is_free() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        for nth in 1..4 {
            let mut all = cleared_until(kind, nth).concat();
            assert_eq!(all.len(), VALUES, "{kind:?} {nth}");
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), VALUES, "{kind:?} {nth}: a value is freed that the tree still has");
        }
    }
}
