//! Splitting nodes.

use super::descent::Step;
use super::node::Node;
use super::reshape::{Cut, cut, cut_beside, split};
use super::scratch::with_page;
use super::tree::BTree;
use crate::Error;
use crate::header::PageId;
use crate::pool::{Denied, OptimisticGuard};

impl BTree {
    /// Splits a node on the way to the leaf of `key`: the leaf, or if its parent has no room for another
    /// child the parent, and so on. It changes nothing if another thread was faster. The caller tries its
    /// change again, and calls this again as long as that has no room.
    pub(super) fn make_room(&self, key: &[u8]) -> Result<(), Error> {
        self.split_on_the_way(key, |leaf, index| cut(leaf, index, key))
    }

    /// Splits the leaf of `key` next to its record, as [`BTree::make_room`] does, if it has enough records
    /// for that. Nothing depends on it.
    pub(super) fn part(&self, key: &[u8]) -> Result<(), Error> {
        self.split_on_the_way(key, cut_beside)
    }

    /// `cut_leaf` chooses the split of the leaf, if any, given the key's slot.
    fn split_on_the_way(
        &self,
        key: &[u8],
        cut_leaf: impl Fn(Node<'_>, u32) -> Option<Cut>,
    ) -> Result<(), Error> {
        let path = self.path(key, 0)?;
        let mut incoming = key.to_vec();
        for (depth, step) in path.iter().enumerate().rev() {
            let node = step.node();
            let index = node.find(&incoming).unwrap_or_else(|index| index);
            let is_leaf = depth + 1 == path.len();
            let found = if is_leaf { cut_leaf(node, index) } else { cut(node, index, &incoming) };
            // Halves of a damaged node may have no more room than it had, nor theirs.
            let is_sound = node.adds_up() && found.as_ref().is_none_or(|cut| node.has_within(&cut.separator));
            if !step.guard.is_valid() {
                return Ok(());
            }
            if !is_sound {
                let expected = "a node whose bytes add up and whose keys lie within its fences".into();
                return Err(self.damaged(step.guard.id(), expected, "something else".into()));
            }
            let Some(cut) = found else {
                // There is room in an empty leaf: another thread has emptied it, or made it by a split, since
                // the key was refused.
                return if is_leaf { Ok(()) } else { Err(self.no_room(step.guard.id())) };
            };
            let done = match depth.checked_sub(1).map(|above| &path[above]) {
                None => self.raise(&step.guard)?,
                Some(parent) if parent.node().has_room_for_child(&cut.separator, self.spare_bytes) => {
                    self.split_below(parent, &step.guard, &cut)?
                }
                Some(_) => {
                    incoming = cut.separator;
                    continue;
                }
            };
            return done.or_else(|denied| self.pool.images.recover(denied));
        }
        Ok(())
    }

    /// No sound node refuses a record or child while it has none, or one.
    #[cold]
    pub(super) fn no_room(&self, page: PageId) -> Error {
        self.damaged(page, "room for a record".into(), "none".into())
    }

    /// Moves the root's content to a new page, its only child.
    fn raise(&self, root: &OptimisticGuard<'_>) -> Result<Result<(), Denied>, Error> {
        let memory = self.pool.reserve(self.class)?;
        let section = self.pool.section();
        let upper = match section.lock(root) {
            Ok(locked) => locked,
            Err(denied) => return Ok(Err(denied)),
        };
        let lower = section.create(memory, self.kind, self.volatile);
        let (old, child) = (Node::new(upper.page()), Node::new(lower.page()));
        child.copy_node(old);
        Node::init(upper.page(), old.level().saturating_add(1), &[], None).set_first_child(lower.id());
        Ok(Ok(()))
    }

    /// Moves the right part of a node, the child that `parent` leads to, to a new page.
    pub(super) fn split_below(
        &self,
        parent: &Step<'_>,
        child: &OptimisticGuard<'_>,
        cut: &Cut,
    ) -> Result<Result<(), Denied>, Error> {
        // Before the section, which must not wait.
        let memory = self.pool.reserve(self.class)?;
        let section = self.pool.section();
        let locked = section.lock(&parent.guard).and_then(|upper| section.lock_below(upper, child));
        let (upper, left) = match locked {
            Ok(locked) => locked,
            Err(denied) => return Ok(Err(denied)),
        };
        let right = section.create(memory, self.kind, self.volatile);
        let (upper, node) = (Node::new(upper.page()), Node::new(left.page()));
        with_page(node.page().len_bytes(), |scratch| {
            if upper.insert_child(parent.slot + 1, &cut.separator, right.id(), scratch).is_ok() {
                split(node, cut, right.page(), scratch);
            } else {
                debug_assert!(false, "there was room, and no thread has taken it");
            }
        });
        Ok(Ok(()))
    }
}
