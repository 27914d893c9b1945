//! Leaf hints: remembered positions of keys, which spare the descent when a thread returns to a key.
//!
//! Transactions return to keys: they look a record up, validate it and change it, and may have prefetched it
//! before. Each thread remembers the leaves of the keys that it found last, with the versions of their
//! latches. A leaf that still has that version is unchanged, and covers the key.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::hash;
use crate::header::PageId;
use crate::index::LeafHint;
use crate::task::in_task;

/// Keys that a worker remembers, for all of its tasks; a power of two.
const OF_WORKER: usize = 1 << 11;

/// Keys that an ordinary thread remembers, which does one thing at a time; a power of two.
const OF_THREAD: usize = 1 << 6;

/// Longer keys are not remembered.
const KEY_BYTES_MAX: usize = 31;

/// A key and its leaf.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct HintedKey {
    /// Tree of the key.
    tree: TreeNumber,
    hint: LeafHint,
    length: u8,
    key: [u8; KEY_BYTES_MAX],
}

/// Number of an open tree, unique over all stores of the process, including those that were closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeNumber(pub(super) u64);

impl TreeNumber {
    /// Marks an unused entry.
    const NONE: Self = Self(0);

    /// A number that no other tree has.
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

thread_local! {
    /// By the key's hash. Empty as long as the thread has found nothing.
    static HINTED_KEYS: RefCell<Box<[HintedKey]>> = RefCell::default();
}

/// The entry for a key. The tree's number is not part of the hash: it depends on how many trees were opened
/// before, and behaviour must be reproducible.
#[inline]
fn index(hinted_keys: &[HintedKey], root: PageId, key: &[u8]) -> usize {
    hash(root.0, key) as usize >> (usize::BITS - hinted_keys.len().trailing_zeros())
}

/// The remembered hint of `key` in a tree, by the tree's number and its root.
#[inline]
pub(super) fn recall((tree, root): (TreeNumber, PageId), key: &[u8]) -> Option<LeafHint> {
    HINTED_KEYS.with_borrow(|hinted_keys| {
        if hinted_keys.is_empty() {
            return None;
        }
        let place = &hinted_keys[index(hinted_keys, root, key)];
        let is_known = place.tree == tree && place.key.get(..place.length.into()) == Some(key);
        is_known.then_some(place.hint)
    })
}

/// Remembers the hint of `key`.
#[inline]
pub(super) fn remember((tree, root): (TreeNumber, PageId), key: &[u8], hint: LeafHint) {
    if key.len() > KEY_BYTES_MAX {
        return;
    }
    HINTED_KEYS.with_borrow_mut(|hinted_keys| {
        if hinted_keys.is_empty() {
            let unused = HintedKey { tree: TreeNumber::NONE, hint, length: 0, key: [0; KEY_BYTES_MAX] };
            *hinted_keys = vec![unused; if in_task() { OF_WORKER } else { OF_THREAD }].into();
        }
        let at = index(hinted_keys, root, key);
        let place = &mut hinted_keys[at];
        place.tree = tree;
        place.hint = hint;
        place.length = key.len() as u8;
        place.key[..key.len()].copy_from_slice(key);
    });
}
