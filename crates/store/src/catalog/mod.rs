//! The catalog: which trees there are. A tree of its own, whose root the superblock knows, maps their names
//! to what they are.

mod entry;
mod trees;

pub(crate) use entry::{Entry, NAME_BYTES_MAX};
pub(crate) use trees::{CATALOG_CLASS, NamedTree, Trees};
