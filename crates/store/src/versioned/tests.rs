use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::btree::{BTree, Change};
use crate::index::{Index, TreeId, Version};
use crate::log::Timestamp;
use crate::poison::Poison;
use crate::pool::testing::pool_over;

/// A sweep that a crash cut off frees what it finds once more, by numbers that may be other pages' by then.
#[test]
fn a_dropped_trees_overflow_values_are_taken_out_before_they_are_freed() {
    let pool = pool_over(&Arc::default(), 1 << 20);
    let map = Arc::new(BTree::create(&pool, 0, false).unwrap());
    let version = Version::overflow(Timestamp(1)).bits().to_le_bytes();
    let keys = || 0..2000_u32;
    for key in keys() {
        let value = [&version[..], &key.to_be_bytes()].concat();
        map.update(&key.to_be_bytes(), &mut |_| Change::Put(&value)).unwrap();
    }
    let history = History::new(Box::new(|| unreachable!()), 0, Poison::default());
    let tree = InPlace::new(TreeId(1), Arc::clone(&map), Arc::new(history));
    let freed = RefCell::new(Vec::new());
    let free_overflow = |reference: &[u8]| {
        let mut value = Vec::new();
        assert!(!map.get(reference, &mut value, &mut None).unwrap(), "{reference:?} is there");
        freed.borrow_mut().push(u32::from_be_bytes(reference.try_into().unwrap()));
        Ok(())
    };
    tree.clear(&free_overflow).unwrap();
    assert!(freed.borrow().iter().copied().eq(keys()));
    assert_eq!(tree.walk(&mut |_| (), &mut |_, _, _| ()).unwrap().records, 0);
}
