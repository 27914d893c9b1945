//! Merging nodes that have become small with their neighbours.

use super::descent::Step;
use super::node::Node;
use super::reshape::merge;
use super::scratch::with_page;
use super::tree::BTree;
use crate::Error;
use crate::pool::{Access, Denied, OptimisticGuard};

/// Whether a node is worth merging.
fn is_small(node: Node<'_>) -> bool {
    is_idle(node) || node.used_bytes() < node.capacity_bytes() / 4
}

/// Whether a node divides nothing: a leaf without records, an inner node with one child.
fn is_idle(node: Node<'_>) -> bool {
    node.count() <= u32::from(!node.is_leaf())
}

/// Whether two nodes leave room in one, so that the next insert does not split it again.
fn fit_well(left: Node<'_>, right: Node<'_>) -> bool {
    let capacity_min = left.capacity_bytes().min(right.capacity_bytes());
    is_idle(left) || is_idle(right) || left.used_bytes() + right.used_bytes() <= capacity_min / 4 * 3
}

impl BTree {
    /// Whether a change that began with `before` used bytes left so little that a merge is worth a try. Not
    /// after every change of a small node: when a merge was not possible, it is tried again an eighth of a
    /// node later.
    pub(super) fn has_shrunk(node: Node<'_>, before: u32) -> bool {
        let (after, eighth) = (node.used_bytes(), (node.capacity_bytes() / 8).max(1));
        after < before && is_small(node) && (after / eighth < before / eighth || node.count() == 0)
    }

    /// Merges the leaf of `key` with a neighbour if both fit well into one node, then its parent likewise,
    /// and so on. One attempt each: a node that stays as it was is tried again when it has become smaller.
    pub(super) fn shrink(&self, key: &[u8]) -> Result<(), Error> {
        // After a merge of inner nodes, children are neighbours under one parent that were not before.
        while self.shrink_upwards(key)? {}
        Ok(())
    }

    /// Returns whether any inner nodes were merged.
    fn shrink_upwards(&self, key: &[u8]) -> Result<bool, Error> {
        let mut inner_merged = false;
        for level in 0..u8::MAX {
            let path = self.path(key, level)?;
            let [.., parent, child] = path.as_slice() else {
                self.lower(&path)?;
                break;
            };
            let merged = is_small(child.node()) && self.merge_one(parent, child)?;
            inner_merged |= merged && level > 0;
            // An only child has no neighbour to merge with; its parent may have one.
            if !merged && parent.node().count() > 1 {
                break;
            }
        }
        Ok(inner_merged)
    }

    /// Merges a child with its right neighbour, or else with its left one. Returns whether it did.
    fn merge_one(&self, parent: &Step<'_>, child: &Step<'_>) -> Result<bool, Error> {
        let (upper, slot) = (parent.node(), parent.slot);
        let count = upper.count();
        for neighbour in [Some(slot + 1).filter(|right| *right < count), slot.checked_sub(1)] {
            let Some(neighbour) = neighbour else { continue };
            let id = upper.child(neighbour);
            let Some(other) = self.follow(&parent.guard, upper.level(), id, Access::Normal)? else {
                return Ok(false);
            };
            let (left, right) = if neighbour > slot { (child.guard, other) } else { (other, child.guard) };
            if !fit_well(Node::new(left.page()), Node::new(right.page())) {
                continue;
            }
            match self.try_merge(&parent.guard, slot.max(neighbour), &left, &right) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Changed | Denied::NoRoom) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// `right_slot` is the right one's in the parent.
    fn try_merge(
        &self,
        parent: &OptimisticGuard<'_>,
        right_slot: u32,
        left: &OptimisticGuard<'_>,
        right: &OptimisticGuard<'_>,
    ) -> Result<bool, Denied> {
        let section = self.pool.section();
        let (upper, left, right) = (section.lock(parent)?, section.lock(left)?, section.lock(right)?);
        let node = Node::new(left.page());
        let merged =
            with_page(node.page().len_bytes(), |scratch| merge(node, Node::new(right.page()), scratch));
        if merged.is_ok() {
            let right_slot = match right_slot > 1 && planted!(MergeForgetsNeighbour) {
                true => right_slot - 1,
                false => right_slot,
            };
            Node::new(upper.page()).remove(right_slot);
            section.free(right);
        }
        Ok(merged.is_ok())
    }

    /// While the root has only one child, moves the child's content into the root.
    fn lower(&self, path: &[Step<'_>]) -> Result<(), Error> {
        let Some(root) = path.last() else { return Ok(()) };
        let node = root.node();
        if node.is_leaf() || node.count() != 1 {
            return Ok(());
        }
        let Some(child) = self.follow(&root.guard, node.level(), node.child(0), Access::Normal)? else {
            return Ok(());
        };
        match self.try_lower(&root.guard, &child) {
            Ok(()) => self.lower(&self.path(&[], u8::MAX)?),
            Err(Denied::Failed(error)) => Err(error),
            Err(Denied::Changed | Denied::NoRoom) => Ok(()),
        }
    }

    fn try_lower(&self, root: &OptimisticGuard<'_>, child: &OptimisticGuard<'_>) -> Result<(), Denied> {
        let section = self.pool.section();
        let (upper, lower) = (section.lock(root)?, section.lock(child)?);
        Node::new(upper.page()).copy_node(Node::new(lower.page()));
        section.free(lower);
        Ok(())
    }
}
