//! Trees of another kind, in tests that name none.

use std::cell::Cell;

use crate::{BeTreeOptions, IndexKind, LsmOptions, TreeOptions};

/// A kind, the numbers of LSM-trees, and whether these begin jobs however little is due.
type Kind = (IndexKind, LsmOptions, bool);

thread_local! {
    static KIND: Cell<Kind> = Cell::new(first());
}

/// With `FLASHGRAIN_TREES=lsm` all tests are played with LSM-trees, with `be-tree` with Bε-trees.
fn first() -> Kind {
    let kind = match std::env::var("FLASHGRAIN_TREES").as_deref() {
        Ok("lsm") => IndexKind::Lsm,
        Ok("be-tree") => IndexKind::BeTree,
        _ => IndexKind::BTree,
    };
    (kind, LsmOptions::new(), false)
}

/// As long as this lives, trees that are made on this thread without options have the given ones.
#[must_use]
pub struct TreesOf(Kind);

/// Trees of a kind: see [`TreesOf`].
pub fn trees_of(kind: IndexKind) -> TreesOf {
    TreesOf(KIND.replace((kind, LsmOptions::new(), false)))
}

/// LSM-trees with these numbers: see [`TreesOf`]. With `eager_jobs` as many jobs run at a time as may,
/// however little is due, and loads are tables however few their records.
pub fn lsm_trees_of(options: LsmOptions, eager_jobs: bool) -> TreesOf {
    TreesOf(KIND.replace((IndexKind::Lsm, options, eager_jobs)))
}

/// Whether LSM-trees begin jobs however little is due, and write loads as tables however few records they
/// have.
pub(crate) fn are_jobs_eager() -> bool {
    KIND.get().2
}

/// The kind of trees that are made without one.
pub fn kind_of_trees() -> IndexKind {
    KIND.get().0
}

/// The options of trees that are made without any.
pub(crate) fn options_of_trees() -> TreeOptions {
    let (kind, lsm, _) = KIND.get();
    TreeOptions { kind, lsm, be_tree: small_be_tree(), node_bytes: None, operator: None }
}

/// A Bε-tree that has many nodes with few records.
fn small_be_tree() -> BeTreeOptions {
    BeTreeOptions::new().node_bytes(32 << 10).fanout(4)
}

impl Drop for TreesOf {
    fn drop(&mut self) {
        KIND.set(self.0);
    }
}
