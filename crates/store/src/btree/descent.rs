//! The way down, without latches.

use super::form::InBlocks;
use super::image::Above;
use super::leaf_hints;
use super::node::Node;
use super::records::Way;
use super::tree::BTree;
use crate::Error;
use crate::header::PageId;
use crate::index::{KeySlot, LeafHint};
use crate::pool::{Access, OptimisticGuard};

/// After this number of attempts a descent checks whether the store is poisoned, and whether records without
/// their pages take memory that descents need. Other threads rarely interfere more than a few times in a row.
const ATTEMPTS: u32 = 64;

/// A node on the way down, and which of its children came next.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub guard: OptimisticGuard<'a>,
    /// Zero for the node where the path ends.
    pub slot: u32,
}

impl<'a> Step<'a> {
    pub fn node(&self) -> Node<'a> {
        Node::new(self.guard.page())
    }
}

impl BTree {
    /// Repeats `attempt` until it succeeds. It returns `None` if something that it read has changed or left
    /// memory meanwhile.
    ///
    /// # Errors
    /// Those of `attempt`; [`Error::Poisoned`] if nothing is written any more: memory may be so full of
    /// changed pages that each node evicts the one above it, again and again.
    #[inline]
    pub(super) fn until_whole<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut attempts = 0;
        loop {
            if let Some(whole) = attempt()? {
                return Ok(whole);
            }
            attempts += 1;
            if attempts >= ATTEMPTS {
                self.pool.images.check()?;
                self.pool.records().give_up();
                self.pool.directories().give_up();
            }
        }
    }

    /// The leaf that covers `key`, and the key's slot there, if that is known; `hint` is where another key
    /// was found.
    #[inline]
    pub(super) fn leaf_of(
        &self,
        key: &[u8],
        hint: Option<LeafHint>,
    ) -> Result<(OptimisticGuard<'_>, KeySlot), Error> {
        match self.hinted_leaf(key, hint) {
            Some(place) => Ok(place),
            None => Ok((self.leaf(key)?, KeySlot::Unknown)),
        }
    }

    /// The leaf that covers `key`.
    #[inline]
    pub(super) fn leaf(&self, key: &[u8]) -> Result<OptimisticGuard<'_>, Error> {
        if let Some(blocks) = self.in_blocks {
            return self.until_whole(|| self.leaf_through_blocks(key, blocks));
        }
        self.descend(0, Access::Normal, |node| node.child_slot(key))
    }

    /// The same in a tree whose nodes are in blocks: the leaf is loaded whole, and of the nodes above it only
    /// the needed blocks. `None` if something has changed meanwhile.
    fn leaf_through_blocks(
        &self,
        key: &[u8],
        blocks: InBlocks,
    ) -> Result<Option<OptimisticGuard<'_>>, Error> {
        let parent = match self.above_leaf(key, blocks)? {
            Some(Above::Parent(parent)) => parent,
            Some(Above::Root(root)) => return Ok(Some(root)),
            None => return Ok(None),
        };
        let leaf = self.pool.read(parent.child, Access::Normal);
        if !self.is_parent_valid(&parent) {
            return Ok(None);
        }
        let leaf = leaf?;
        let level = Node::new(leaf.page()).level();
        if level != 0 && leaf.is_valid() {
            return Err(self.damaged(parent.child, "level 0".into(), format!("level {level}")));
        }
        Ok(Some(leaf))
    }

    /// As [`BTree::leaf_of`], if the key is in the leaf of the other one, or this thread has found it
    /// lately, and nothing has changed there since.
    #[inline]
    pub(super) fn hinted_leaf(
        &self,
        key: &[u8],
        hint: Option<LeafHint>,
    ) -> Option<(OptimisticGuard<'_>, KeySlot)> {
        let covers = |leaf: &OptimisticGuard<'_>| Node::new(leaf.page()).covers(key) && leaf.is_valid();
        if let Some(leaf) = hint.and_then(|hint| self.pool.pages.revisit(hint.page_version)).filter(covers) {
            return Some((leaf, KeySlot::Unknown));
        }
        let hint = leaf_hints::recall((self.number, self.root), key)?;
        let leaf = self.pool.pages.revisit(hint.page_version)?;
        if hint.slot == KeySlot::Unknown {
            Node::prefetch(leaf.page(), true);
        }
        Some((leaf, hint.slot))
    }

    /// Notes a leaf hint for the next [`BTree::leaf_of`].
    #[inline]
    pub(super) fn remember(&self, key: &[u8], hint: LeafHint) {
        leaf_hints::remember((self.number, self.root), key, hint);
    }

    /// Begins to load the whole leaf that covers `key`, and the pages above it that are not in memory; does
    /// not wait for them. It may do nothing.
    pub(super) fn begin_to_load_leaf(&self, key: &[u8]) {
        if self.in_blocks.is_none() {
            return self.begin_to_load(key);
        }
        let (tree, key) = (self.clone(), key.to_vec());
        self.pool.send_out(move |_| {
            // An error is reported when the leaf is needed.
            if let Ok(leaf) = tree.leaf(&key) {
                tree.remember(&key, LeafHint { page_version: leaf.page_version(), slot: KeySlot::Unknown });
            }
        });
    }

    /// Begins to load the pages for a look-up of `key`; does not wait for them. It may do nothing.
    pub(super) fn begin_to_load(&self, key: &[u8]) {
        let (tree, key) = (self.clone(), key.to_vec());
        self.pool.send_out(move |_| {
            // An error is reported when the leaf is needed.
            match tree.way(&key, &mut |_| false) {
                Ok(Way::Leaf { leaf, was_absent, .. }) => {
                    let page_version = leaf.page_version();
                    tree.remember(&key, LeafHint { page_version, slot: KeySlot::Unknown });
                    if was_absent {
                        tree.keep(&key, &leaf);
                    }
                }
                Ok(Way::Part(part)) => drop(tree.copy_from_part(&part, &key, &mut Vec::new())),
                Ok(Way::Record) | Err(_) => {}
            }
        });
    }

    /// As [`BTree::leaf_of`], if all on the way to it is in memory, as far as can be seen without waiting.
    pub(super) fn resident_leaf(
        &self,
        key: &[u8],
        hint: Option<LeafHint>,
    ) -> Option<(OptimisticGuard<'_>, KeySlot)> {
        if let Some(place) = self.hinted_leaf(key, hint) {
            return Some(place);
        }
        let mut guard = self.pool.resident(self.root)?;
        let mut level = Node::new(guard.page()).level();
        while level > 0 {
            let node = Node::new(guard.page());
            let child = node.child(node.child_slot(key));
            preempt!();
            let next =
                Some(child).filter(|_| guard.is_valid()).and_then(|child| self.pool.resident(child))?;
            Node::prefetch(next.page(), level == 1);
            let next_level = Node::new(next.page()).level();
            // Only now is it certain that the child covers the key. A node that is being changed may lead in
            // circles.
            if !guard.is_valid() || next_level.checked_add(1) != Some(level) {
                return None;
            }
            (guard, level) = (next, next_level);
        }
        Some((guard, KeySlot::Unknown))
    }

    /// The node of `level` that `choose` leads to, or the root if that is not above that level. `choose`
    /// returns the slot of the next child.
    #[inline]
    pub(super) fn descend(
        &self,
        level: u8,
        access: Access,
        choose: impl Fn(Node<'_>) -> u32,
    ) -> Result<OptimisticGuard<'_>, Error> {
        self.until_whole(|| {
            let mut guard = self.pool.read(self.root, Access::Normal)?;
            let mut own_level = Node::new(guard.page()).level();
            while own_level > level {
                let node = Node::new(guard.page());
                let child = node.child(choose(node));
                let access = if own_level == level + 1 { access } else { Access::Normal };
                let Some(next) = self.follow(&guard, own_level, child, access)? else { return Ok(None) };
                guard = next;
                own_level -= 1;
            }
            Ok(Some(guard))
        })
    }

    /// All nodes from the root down to the one of `level` that covers `key`, or only the root if it is not
    /// above that level.
    pub(super) fn path(&self, key: &[u8], level: u8) -> Result<Vec<Step<'_>>, Error> {
        self.until_whole(|| {
            let mut path = Vec::new();
            let mut guard = self.pool.read(self.root, Access::Normal)?;
            let mut own_level = Node::new(guard.page()).level();
            while own_level > level {
                let node = Node::new(guard.page());
                let slot = node.child_slot(key);
                let Some(next) = self.follow(&guard, own_level, node.child(slot), Access::Normal)? else {
                    return Ok(None);
                };
                path.push(Step { guard, slot });
                guard = next;
                own_level -= 1;
            }
            path.push(Step { guard, slot: 0 });
            Ok(Some(path))
        })
    }

    /// Whether the child, a leaf, has to be read; its word of the page table is at hand then. `None` if the
    /// parent has changed since it was read.
    #[inline]
    pub(super) fn is_leaf_absent(&self, parent: &OptimisticGuard<'_>, child: PageId) -> Option<bool> {
        // Not before this holds is the child worth looking at.
        if !parent.is_valid() {
            return None;
        }
        self.pool.pages.prefetch_entry(child);
        self.pool.pages.overlap();
        Some(self.pool.pages.is_absent(child))
    }

    /// The child of `parent`, which was a node of `level` when it was read; `None` if the parent has changed
    /// since.
    #[inline]
    pub(super) fn follow(
        &self,
        parent: &OptimisticGuard<'_>,
        level: u8,
        child: PageId,
        access: Access,
    ) -> Result<Option<OptimisticGuard<'_>>, Error> {
        // Not before this holds is the child worth reading.
        if !parent.is_valid() {
            return Ok(None);
        }
        if level == 1 {
            self.pool.pages.prefetch_entry(child);
            self.pool.pages.overlap();
        }
        self.enter(parent, level, child, access)
    }

    /// As [`BTree::follow`], when the page table's word of the child is at hand.
    #[inline]
    pub(super) fn enter(
        &self,
        parent: &OptimisticGuard<'_>,
        level: u8,
        child: PageId,
        access: Access,
    ) -> Result<Option<OptimisticGuard<'_>>, Error> {
        preempt!();
        let next = self.pool.read(child, access);
        preempt!();
        if let Ok(next) = &next {
            Node::prefetch(next.page(), level == 1);
            if level == 1 {
                self.pool.pages.overlap();
            }
        }
        // Only now is it certain that the child, as it was found, covered the key.
        if !parent.is_valid() {
            return Ok(None);
        }
        let next = next?;
        let next_level = Node::new(next.page()).level();
        if next_level.checked_add(1) != Some(level) && next.is_valid() {
            return Err(self.damaged(child, format!("level {}", level - 1), format!("level {next_level}")));
        }
        Ok(Some(next))
    }

    /// A tree that no sequence of changes could have led to.
    #[cold]
    pub(super) fn damaged(&self, page: PageId, expected: String, got: String) -> Error {
        let what = format!("node {} of the tree with root {}", page.0, self.root.0);
        Error::Corrupt { what, offset_bytes: 0, expected, got }
    }
}
