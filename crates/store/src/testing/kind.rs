//! Trees of another kind, in tests that name none.

use std::cell::Cell;

use crate::layout::NodeBlocks;
use crate::{BeTreeOptions, IndexKind, LsmOptions, TreeOptions};

/// How trees are kept that are made without options.
#[derive(Clone, Copy, Debug)]
struct Kept {
    kind: IndexKind,
    lsm: LsmOptions,
    be_tree: BeTreeOptions,
    /// See [`are_jobs_eager`].
    eager_jobs: bool,
    /// Blocks of the nodes of B+-trees, if these are not read whole.
    blocks: Option<u32>,
}

impl Kept {
    fn of(kind: IndexKind) -> Self {
        let be_tree = match kind {
            // Many nodes with few records.
            IndexKind::BeTree => BeTreeOptions::new().node_bytes(32 << 10).fanout(4),
            _ => BeTreeOptions::new(),
        };
        Self { kind, lsm: LsmOptions::new(), be_tree, eager_jobs: false, blocks: None }
    }
}

thread_local! {
    static KEPT: Cell<Kept> = Cell::new(first());
}

/// With `FLASHGRAIN_TREES=lsm` all tests are played with LSM-trees, with `be-tree` with Bε-trees, with
/// `blocks` with B+-trees whose nodes are in blocks.
fn first() -> Kept {
    match std::env::var("FLASHGRAIN_TREES").as_deref() {
        Ok("lsm") => Kept::of(IndexKind::Lsm),
        Ok("be-tree") => Kept::of(IndexKind::BeTree),
        Ok("blocks") => Kept { blocks: Some(BLOCKS), ..Kept::of(IndexKind::BTree) },
        _ => Kept::of(IndexKind::BTree),
    }
}

/// Blocks of the nodes of `FLASHGRAIN_TREES=blocks`.
const BLOCKS: u32 = 4;

/// As long as this lives, trees that are made on this thread without options have the given ones.
#[must_use]
pub struct TreesOf(Kept);

/// Trees of a kind: see [`TreesOf`].
pub fn trees_of(kind: IndexKind) -> TreesOf {
    TreesOf(KEPT.replace(Kept::of(kind)))
}

/// B+-trees whose nodes have `blocks` blocks: see [`TreesOf`].
pub fn trees_in_blocks(blocks: u32) -> TreesOf {
    TreesOf(KEPT.replace(Kept { blocks: Some(blocks), ..Kept::of(IndexKind::BTree) }))
}

/// LSM-trees with these numbers: see [`TreesOf`]. With `eager_jobs` as many jobs run at a time as may,
/// however little is due, and loads are tables however few their records.
pub fn lsm_trees_of(options: LsmOptions, eager_jobs: bool) -> TreesOf {
    TreesOf(KEPT.replace(Kept { lsm: options, eager_jobs, ..Kept::of(IndexKind::Lsm) }))
}

/// Bε-trees with these numbers: see [`TreesOf`]. With `eager_jobs` room is made ahead though there is much
/// left.
pub fn be_trees_of(options: BeTreeOptions, eager_jobs: bool) -> TreesOf {
    TreesOf(KEPT.replace(Kept { be_tree: options, eager_jobs, ..Kept::of(IndexKind::BeTree) }))
}

/// Whether trees begin jobs however little is due, and LSM-trees write loads as tables however few records
/// they have.
pub(crate) fn are_jobs_eager() -> bool {
    KEPT.get().eager_jobs
}

/// The kind of trees that are made without one.
pub fn kind_of_trees() -> IndexKind {
    KEPT.get().kind
}

/// Blocks of the nodes of trees that are made without options; one if nodes are read whole.
pub fn blocks_of_trees() -> u32 {
    KEPT.get().blocks.unwrap_or(1)
}

/// The options of trees that are made without any.
pub(crate) fn options_of_trees() -> TreeOptions {
    let Kept { kind, lsm, be_tree, blocks, .. } = KEPT.get();
    let blocks = blocks.map(NodeBlocks::Of);
    TreeOptions { kind, lsm, be_tree, node_bytes: None, blocks, operator: None }
}

impl Drop for TreesOf {
    fn drop(&mut self) {
        KEPT.set(self.0);
    }
}
