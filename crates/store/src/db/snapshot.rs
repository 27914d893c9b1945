//! Snapshots.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::lookup::Lookup;
use super::source::{Source, View};
use super::tree::Tree;
use crate::{Error, txn};

/// The state of all trees at the moment when the snapshot was taken, for as long as it lives. It does not
/// delay writers; old versions that it still needs move to disk when memory runs short. Made by
/// [`Db::snapshot`](crate::Db::snapshot), read through [`Readable`](crate::Readable).
///
/// ```
/// # use flashgrain::{Db, Readable};
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let db = Db::in_memory(64 << 20)?;
/// # let tree = db.tree("t")?;
/// tree.insert("key", "old")?;
/// let snapshot = db.snapshot()?;
/// tree.insert("key", "new")?;
/// assert_eq!(snapshot.get(&tree, "key")?.unwrap(), "old");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(super) core: Arc<Core>,
    pub(crate) at: Arc<txn::Snapshot>,
}

impl Source for Snapshot {
    #[inline]
    fn lookup<'a>(&'a self, tree: &'a Tree) -> Result<Lookup<'a>, Error> {
        let tree = self.core.named_tree(tree)?;
        Ok(Lookup { core: &self.core, tree, at: Some(&self.at), overlay: None })
    }

    fn view(&self, tree: &Tree) -> Result<View, Error> {
        let tree = self.core.named_tree(tree)?;
        let (core, tree, at) = (Arc::clone(&self.core), Arc::clone(tree), Arc::clone(&self.at));
        Ok(View { core, tree, at, overlay: None })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
