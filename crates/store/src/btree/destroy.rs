//! Giving up a tree, a few pages at a time.

use super::node::Node;
use super::tree::BTree;
use crate::Error;
use crate::pool::{Access, Denied, OptimisticGuard};
use crate::task::yield_now;

/// Leaves that are given up in one section.
const LEAVES_PER_SECTION: u32 = 32;

impl BTree {
    /// Removes all records and frees all pages but the root, the largest keys first; other tasks run in
    /// between. The tree is not in use any more. If it is interrupted, by an error or the end of the store,
    /// the rest is a tree that can be cleared later. Leaves are not read. It ends when `go_on` fails.
    ///
    /// # Errors
    /// The pool's; those of `go_on`.
    pub fn clear(&self, go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        let free_some = || {
            go_on()?;
            let freed = self.free_some();
            if !matches!(freed, Ok(true)) {
                yield_now();
            }
            freed.map(Some).or_else(|denied| self.pool.images.recover(denied).map(|()| None))
        };
        while !self.until_whole(free_some)? {}
        Ok(())
    }

    /// Whether it was being cleared when the store ended: its last leaves are gone, so that it can still be
    /// cleared, but not walked any more. The tree is not in use any more.
    ///
    /// # Errors
    /// The pool's.
    pub fn is_cut_off(&self) -> Result<bool, Error> {
        self.until_whole(|| {
            let mut guard = self.pool.read(self.root, Access::Normal)?;
            loop {
                let node = Node::new(guard.page());
                let Some(last) = node.count().checked_sub(1).filter(|_| !node.is_leaf()) else {
                    let is_cut_off = !node.is_leaf() || node.upper_fence(&mut Vec::new());
                    return Ok(guard.is_valid().then_some(is_cut_off));
                };
                let child = self.follow(&guard, node.level(), node.child(last), Access::Normal)?;
                let Some(child) = child else { return Ok(None) };
                guard = child;
            }
        })
    }

    /// Frees all pages. To be called only once: the root's number may soon belong to another page.
    ///
    /// # Errors
    /// The pool's; a part is left then.
    pub fn free_all(&self) -> Result<(), Error> {
        self.clear(&|| Ok(()))?;
        loop {
            let result = self.pool.section().free_unread(self.root);
            match result {
                Ok(()) => return Ok(()),
                Err(denied) => self.pool.images.recover(denied)?,
            }
            yield_now();
        }
    }

    /// Frees some of the last pages. Returns whether only the root is left.
    pub(super) fn free_some(&self) -> Result<bool, Denied> {
        let mut guard = self.pool.read(self.root, Access::Normal).map_err(Denied::Failed)?;
        loop {
            let node = Node::new(guard.page());
            let Some(last) = node.count().checked_sub(1).filter(|_| !node.is_leaf()) else {
                // Only the root gets here without children.
                let section = self.pool.section();
                let root = section.lock(&guard)?;
                Node::init(root.page(), 0, &[], None);
                return Ok(true);
            };
            if node.level() == 1 {
                return self.free_leaves(&guard).map(|()| false);
            }
            let child = self.follow(&guard, node.level(), node.child(last), Access::Normal);
            let child = child.map_err(Denied::Failed)?.ok_or(Denied::Changed)?;
            if Node::new(child.page()).count() == 0 {
                let section = self.pool.section();
                let (upper, lower) = (section.lock(&guard)?, section.lock(&child)?);
                Node::new(upper.page()).remove(last);
                section.free(lower);
                return Ok(false);
            }
            guard = child;
        }
    }

    /// Frees the last children of a node, which are leaves.
    fn free_leaves(&self, parent: &OptimisticGuard<'_>) -> Result<(), Denied> {
        let section = self.pool.section();
        let locked = section.lock(parent)?;
        let node = Node::new(locked.page());
        for _ in 0..LEAVES_PER_SECTION {
            let Some(last) = node.count().checked_sub(1) else { break };
            // Children that were freed before stay freed if this one cannot be freed now.
            section.free_unread(node.child(last))?;
            node.remove(last);
        }
        Ok(())
    }
}
