//! B+-trees over the pool: search, change, iterate. Values are bytes; what they mean is up to the
//! transactions above.
//!
//! Readers descend without latches: they read a node, find the child, look the child up, and only then make
//! sure that the node was still the same, so that the child was the right one. Who changes a leaf descends
//! likewise and latches the leaf alone. Splits and merges latch a parent and its children, in one section, so
//! that every checkpoint has whole trees. A page's fences say which keys it covers: they lead a scan from
//! leaf to leaf.

mod check;
mod contention;
mod descent;
mod destroy;
mod grow;
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

pub(crate) use scan::Scan;
pub(crate) use tree::{BTree, Change};
