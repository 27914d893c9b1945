//! B+-trees over the pool: search, change, iterate. Values are bytes; only the transactions above know their
//! meaning.
//!
//! A search descends without latches:
//!
//! 1. Read the version of a node's latch, find the child's page id in the node, look the child up in the page
//!    table, and read the child's version.
//! 2. Validate the node's version. If it is unchanged, the child covers the key; otherwise start again from
//!    the root.
//! 3. Repeat from the child, down to the leaf. A [leaf hint](leaf_hints) of an earlier search spares the
//!    descent.
//!
//! A change of a record descends likewise, and then latches the leaf alone. A leaf without room is split
//! first, and a leaf that has become small is merged afterwards; splits and merges latch a parent and its
//! children in one [section](crate::pool::Section), so that every checkpoint has whole trees.
//!
//! Invariants:
//! - A node's fences are its parent's keys on either side of it, so a leaf alone tells which keys it covers.
//!   They lead a scan from leaf to leaf.
//! - The root keeps its page id; the tree grows and shrinks by moving the root's content.
//!
//! Only the holder of a node's latch changes the node, within a section. All other accesses read
//! optimistically and validate.

mod check;
mod contention;
mod descent;
mod destroy;
mod division;
mod form;
mod grow;
mod image;
mod leaf_hints;
pub(crate) mod node;
pub(crate) mod overflow;
mod records;
mod reshape;
mod scan;
mod scratch;
mod search;
mod shrink;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
mod together;
mod tree;
#[cfg(all(test, feature = "testing"))]
mod trouble;

pub(crate) use division::NodeDivision;
pub(crate) use form::NodeForm;
pub(crate) use scan::Scan;
pub(crate) use tree::{BTree, Change};
