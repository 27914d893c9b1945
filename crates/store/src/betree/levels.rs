//! The levels of a tree.

/// The level of a tree that has one leaf.
pub(super) const LEVEL_MIN: u16 = 1;

/// More levels than any tree has.
pub(super) const LEVEL_MAX: u16 = 64;
