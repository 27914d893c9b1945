//! Random operations through the C ABI and on a map have the same results.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::batch::{fg_batch_commit, fg_batch_free, fg_batch_new, fg_batch_put, fg_batch_remove};
use super::error::fg_free;
use super::handles::{BatchHandle, IteratorHandle, StoreHandle, TreeHandle};
use super::iterator::{
    fg_iterator_free, fg_iterator_next, fg_iterator_prev, fg_iterator_record, fg_iterator_seek,
    fg_iterator_seek_back, fg_iterator_seek_first, fg_iterator_seek_last, fg_iterator_valid,
};
use super::store::{fg_store_free, fg_store_in_memory};
use super::tree::{
    TreeKind, fg_tree_contains, fg_tree_free, fg_tree_get, fg_tree_iterate, fg_tree_open, fg_tree_put,
    fg_tree_remove, fg_tree_remove_range,
};
use crate::status::Status;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Few keys, so that operations meet.
const KEYS: u32 = 60;
const OPERATIONS: u32 = 3_000;

/// The result of a function that succeeds.
fn made<T>(function: impl FnOnce(Option<&mut MaybeUninit<T>>) -> Status) -> T {
    let mut place = MaybeUninit::uninit();
    assert_eq!(function(Some(&mut place)), Status::Ok);
    // SAFETY: a function that succeeds has written its result.
    unsafe { place.assume_init() }
}

/// The handle at a pointer that a function made.
fn handle<T>(made: *mut T) -> Box<T> {
    // SAFETY: the library made it so, and it is freed once.
    unsafe { Box::from_raw(made) }
}

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

fn key(rng: &mut Pcg64) -> Vec<u8> {
    format!("{:02}", rng.random_range(0..KEYS)).into_bytes()
}

fn value(rng: &mut Pcg64) -> Vec<u8> {
    vec![rng.random(); rng.random_range(0..300)]
}

/// A bound, or none.
fn bound(rng: &mut Pcg64) -> Option<Vec<u8>> {
    rng.random_bool(0.7).then(|| key(rng))
}

/// Its pointer and length in C.
fn parts(bound: Option<&Vec<u8>>) -> (*const c_void, usize) {
    bound.map_or((ptr::null(), 0), |bound| (start(bound), bound.len()))
}

fn get(tree: &TreeHandle, key: &[u8]) -> Option<Vec<u8>> {
    let mut length = MaybeUninit::uninit();
    let found = made(|place| fg_tree_get(Some(tree), start(key), key.len(), place, Some(&mut length), None));
    if found.is_null() {
        return None;
    }
    // SAFETY: the function wrote both, the value has that length.
    let bytes = unsafe { std::slice::from_raw_parts(found.cast::<u8>(), length.assume_init()) }.to_vec();
    fg_free(found);
    Some(bytes)
}

fn record(iterator: &IteratorHandle) -> Option<(Vec<u8>, Vec<u8>)> {
    if !fg_iterator_valid(Some(iterator)) {
        return None;
    }
    let (mut lengths, mut value) = ([MaybeUninit::uninit(); 2], MaybeUninit::uninit());
    let [key_length, value_length] = &mut lengths;
    let (key_length, value_length) = (Some(key_length), Some(value_length));
    let key =
        made(|key| fg_iterator_record(Some(iterator), key, key_length, Some(&mut value), value_length, None));
    // SAFETY: the function has written all of them.
    let (lengths, value) = unsafe { (lengths.map(|length| length.assume_init()), value.assume_init()) };
    let bytes = |start: *const c_void, length| {
        // SAFETY: they are the iterator's, which was not moved since.
        unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec()
    };
    Some((bytes(key, lengths[0]), bytes(value, lengths[1])))
}

/// Moves an iterator at random within random bounds, and a place among the map's records.
fn walk(rng: &mut Pcg64, tree: &TreeHandle, map: &Map) {
    let (lower, upper) = (bound(rng), bound(rng));
    let within: Vec<_> = map
        .iter()
        .filter(|(key, _)| lower.as_ref().is_none_or(|lower| *key >= lower))
        .filter(|(key, _)| upper.as_ref().is_none_or(|upper| *key < upper))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let ((lower, lower_length), (upper, upper_length)) = (parts(lower.as_ref()), parts(upper.as_ref()));
    let mut iterator = handle(made(|place| {
        fg_tree_iterate(Some(tree), lower, lower_length, upper, upper_length, place, None)
    }));
    let mut at: Option<usize> = None;
    for _ in 0..12 {
        let sought = key(rng);
        let (text, length) = (start(&sought), sought.len());
        let iterator = Some(&mut *iterator);
        let (status, expected) = match rng.random_range(0..6) {
            0 => (fg_iterator_seek_first(iterator, None), Some(0)),
            1 => (fg_iterator_seek_last(iterator, None), within.len().checked_sub(1)),
            2 => (
                fg_iterator_seek(iterator, text, length, None),
                Some(within.partition_point(|(key, _)| *key < sought)),
            ),
            3 => (
                fg_iterator_seek_back(iterator, text, length, None),
                within.partition_point(|(key, _)| *key <= sought).checked_sub(1),
            ),
            4 => (fg_iterator_next(iterator, None), at.map(|at| at + 1)),
            _ => (fg_iterator_prev(iterator, None), at.and_then(|at| at.checked_sub(1))),
        };
        assert_eq!(status, Status::Ok);
        at = expected.filter(|at| *at < within.len());
    }
    assert_eq!(record(&iterator), at.map(|at| within[at].clone()));
    fg_iterator_free(Some(iterator));
}

/// A batch with a few writes.
fn batch(rng: &mut Pcg64, store: &StoreHandle, tree: &TreeHandle, map: &mut Map) {
    let mut batch: Box<BatchHandle> = handle(made(|place| fg_batch_new(Some(store), place, None)));
    for _ in 0..rng.random_range(0..6) {
        let (key, value) = (key(rng), value(rng));
        let (text, length) = (start(&key), key.len());
        let status = if rng.random_bool(0.4) {
            map.remove(&key);
            fg_batch_remove(Some(&mut batch), Some(tree), text, length, None)
        } else {
            let bytes = value.len();
            let value_start = start(&value);
            let status = fg_batch_put(Some(&mut batch), Some(tree), text, length, value_start, bytes, None);
            map.insert(key.clone(), value.clone());
            status
        };
        assert_eq!(status, Status::Ok);
    }
    assert_eq!(fg_batch_commit(Some(&mut batch), None), Status::Ok);
    fg_batch_free(Some(batch));
}

fn operate(rng: &mut Pcg64, store: &StoreHandle, tree: &TreeHandle, map: &mut Map) {
    let key = key(rng);
    let (text, length) = (start(&key), key.len());
    match rng.random_range(0..100) {
        0..35 => {
            let value = value(rng);
            let status = fg_tree_put(Some(tree), text, length, start(&value), value.len(), None);
            assert_eq!(status, Status::Ok);
            map.insert(key, value);
        }
        35..50 => {
            assert_eq!(fg_tree_remove(Some(tree), text, length, None), Status::Ok);
            map.remove(&key);
        }
        50..52 => {
            let (lower, upper) = (bound(rng), bound(rng));
            let before = map.len();
            map.retain(|key, _| {
                lower.as_ref().is_some_and(|lower| key < lower)
                    || upper.as_ref().is_some_and(|upper| key >= upper)
            });
            let ((lower, lower_length), (upper, upper_length)) =
                (parts(lower.as_ref()), parts(upper.as_ref()));
            let removed = made(|place| {
                fg_tree_remove_range(Some(tree), lower, lower_length, upper, upper_length, place, None)
            });
            assert_eq!(removed, (before - map.len()) as u64);
        }
        52..70 => batch(rng, store, tree, map),
        70..85 => {
            assert_eq!(get(tree, &key).as_ref(), map.get(&key));
            let found = made(|place| fg_tree_contains(Some(tree), text, length, place, None));
            assert_eq!(found, map.contains_key(&key));
        }
        _ => walk(rng, tree, map),
    }
}

#[test]
fn trees_of_all_kinds_do_as_a_map_does() {
    for (seed, kind) in [(1, TreeKind::BTree), (2, TreeKind::Lsm), (3, TreeKind::BeTree)] {
        let mut rng = Pcg64::seed_from_u64(seed);
        let store = handle(made(|place| fg_store_in_memory(8 << 20, place, None)));
        let kind = kind as i32;
        let tree = handle(made(|place| fg_tree_open(Some(&store), c"t".as_ptr(), kind, 4096, place, None)));
        let mut map = Map::new();
        for _ in 0..OPERATIONS {
            operate(&mut rng, &store, &tree, &mut map);
        }
        let left: Vec<_> = map.keys().filter(|key| get(&tree, key).is_none()).collect();
        assert!(left.is_empty() && !map.is_empty(), "seed {seed}: {left:?}");
        fg_tree_free(Some(tree));
        fg_store_free(Some(store));
    }
}
