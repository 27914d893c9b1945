//! Trees of another kind, in tests that name none.

use std::cell::Cell;

use crate::IndexKind;

thread_local! {
    static KIND: Cell<IndexKind> = Cell::new(first());
}

/// With `FLASHGRAIN_TREES=lsm` all tests are played with LSM-trees.
fn first() -> IndexKind {
    match std::env::var("FLASHGRAIN_TREES").as_deref() {
        Ok("lsm") => IndexKind::Lsm,
        _ => IndexKind::BTree,
    }
}

/// As long as this lives, trees that are made on this thread without a kind have the given one.
#[must_use]
pub struct TreesOf(IndexKind);

/// See [`TreesOf`].
pub fn trees_of(kind: IndexKind) -> TreesOf {
    TreesOf(KIND.replace(kind))
}

/// The kind of trees that are made without one.
pub fn kind_of_trees() -> IndexKind {
    KIND.get()
}

impl Drop for TreesOf {
    fn drop(&mut self) {
        KIND.set(self.0);
    }
}
