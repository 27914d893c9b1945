//! The catalog: which trees there are. A tree of its own, whose root the superblock knows, maps their names
//! to what they are.
//!
//! Who may change what: the records of the catalog's tree, and the names in memory, only the commits that
//! define trees ([`Transactions::define`](crate::txn::Transactions), which holds all locks) and their replay,
//! through [`Trees`]. What is left of a dropped tree: the task that frees it.

mod entry;
mod trees;

pub(crate) use entry::{Entry, NAME_BYTES_MAX};
pub(crate) use trees::{CATALOG_CLASS, NamedTree, Trees};
