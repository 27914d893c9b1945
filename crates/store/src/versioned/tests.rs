use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::btree::{BTree, Change};
use crate::index::{Clearing, Index, Snapshots, TreeId, Version};
use crate::log::Timestamp;
use crate::poison::Poison;
use crate::pool::testing::pool_over;

/// A sweep that a crash cut off frees once more the values that it finds, by numbers that may be other pages'
/// by then.
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
    tree.clear(&Clearing { free_overflow: &free_overflow, go_on: &|| Ok(()) }).unwrap();
    assert!(freed.borrow().iter().copied().eq(keys()));
    assert_eq!(tree.walk(&mut |_| (), &mut |_, _, _| ()).unwrap().records, 0);
}

/// Units and cache may allow the history no nodes that the longest records of a tree fit into.
#[test]
fn a_history_of_small_nodes_keeps_records_of_any_length() {
    let pool = pool_over(&Arc::default(), 4 << 20);
    let make = move || Ok(Arc::new(BTree::create(&pool, 0, true)?) as Arc<dyn OrderedMap>);
    let (history, snapshots) = (History::new(Box::new(make), 0, Poison::default()), Snapshots::default());
    let lengths = [(3, 10), (900, 900), (1100, 10), (5, 5000), (16_384, 16_000)];
    let key = |length: usize, number: u8| [vec![7; length - 1], vec![number]].concat();
    let value = |length: usize, number: u8, at: u64| {
        let version = Version::overflow(Timestamp(at)).bits().to_le_bytes();
        [version.to_vec(), vec![number ^ at as u8; length]].concat()
    };
    // Versions of 2, 4 and 6, each replaced by the next one.
    for (key_bytes, value_bytes) in lengths {
        for (number, at) in (0..5).flat_map(|number| [2, 4, 6].map(|at| (number, at))) {
            let (key, value) = (key(key_bytes, number), value(value_bytes, number, at));
            history.keep(&snapshots, TreeId(1), &key, &value, Timestamp(at + 2)).unwrap();
        }
    }
    for (key_bytes, value_bytes) in lengths {
        for (number, at) in (0..6).flat_map(|number| (1..=8).map(move |at| (number, at))) {
            let mut found = Vec::new();
            let is_found =
                history.find(TreeId(1), &key(key_bytes, number), Timestamp(at), &mut found).unwrap();
            let is_there = number < 5 && (2..8).contains(&at);
            let expected = if is_there { value(value_bytes, number, at / 2 * 2) } else { Vec::new() };
            assert!(is_found == is_there && found == expected, "{key_bytes} {number} {at}");
        }
    }
    let mut gone = Vec::new();
    let count = RefCell::new(&mut gone);
    history
        .settle(&snapshots, Timestamp(100), true, &|reference| count.borrow_mut().push(reference.len()))
        .unwrap();
    gone.sort_unstable();
    let expected: Vec<usize> = [10, 10, 900, 5000, 16_000].iter().flat_map(|length| [*length; 15]).collect();
    assert_eq!(gone, expected);
    assert_eq!(history.old_versions().records, 0);
}
