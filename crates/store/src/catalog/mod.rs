//! The catalog: the list of trees. A tree of its own, with its root in the superblock, maps their names to
//! their entries.
//!
//! Only the commits that define trees ([`Transactions::define`](crate::txn::Transactions), which holds all
//! locks), and their replay, change the records of the catalog's tree and the names in memory, through
//! [`Trees`]. The rest of a dropped tree is changed by the task that frees it.

mod entry;
mod trees;

pub(crate) use entry::{Entry, NAME_BYTES_MAX};
pub(crate) use trees::{CATALOG_CLASS, NamedTree, Trees};
