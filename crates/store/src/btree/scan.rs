//! Iterating in key order, one leaf at a time, with read-ahead.
//!
//! Between its steps a scan holds nothing but two keys, the bounds of the records still to come. Each step
//! copies the records of one leaf out; the next step begins at the leaf's fence, so that splits, merges and
//! evictions in between do not matter.

use std::ops::Range;

use super::node::Node;
use super::tree::BTree;
use crate::Error;
use crate::header::PageId;
use crate::index::{Direction, Piece};
use crate::pool::{Access, OptimisticGuard};

/// Leaves of a short scan. It should load few leaves in vain, and its leaves are as likely to be read again
/// as those of look-ups; a longer scan should not wait, nor evict pages that others need.
const SHORT: u32 = 4;

/// The part of a scan that is still to come.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    direction: Direction,
    /// The keys from here on...
    lower: Vec<u8>,
    /// ...up to but without this one.
    upper: Option<Vec<u8>>,
    ended: bool,
    ahead: Ahead,
}

/// Leaves that are being loaded before the scan comes to them.
#[derive(Clone, Debug)]
struct Ahead {
    /// The most leaves.
    most: u32,
    /// The number that may be loading so far: one more for each that the scan passes, half as many after a
    /// loss.
    reach: u32,
    /// The number that are loading.
    leaves: u32,
    /// The bound after them.
    behind: Vec<u8>,
    ended: bool,
}

impl Ahead {
    /// The number of leaves to have loading: as many as the scan has passed. The end of the scan is not
    /// known; this way it loads less than twice the leaves that it comes to.
    fn wanted(&self) -> u32 {
        self.reach.min(self.most)
    }

    /// The number of leaves to load along with one that has to be read, if they lie next to it: half as many
    /// as the scan has passed, and at least one, as that costs a drive much less than another read.
    fn along(&self) -> u32 {
        (self.reach / 2).max(1).min(self.most)
    }

    fn is_short(&self) -> bool {
        self.reach < SHORT
    }

    /// The scan has passed a leaf.
    fn pass(&mut self) {
        self.leaves = self.leaves.saturating_sub(1);
        self.reach = self.reach.saturating_add(1);
    }

    /// A leaf that was asked for is neither in memory nor on its way when the scan comes to it: there was no
    /// room, or other pages have evicted it, as scans get a share of the memory only. The leaves after it are
    /// probably lost too: they are asked for again, half as many, as a sender reduces its window if packets
    /// get lost. A scan that read them one by one would be slower than the others, and lose all that it asks
    /// for from then on. In a short scan the leaf was probably not asked for yet.
    fn miss(&mut self) {
        if self.leaves > 0 && !self.is_short() {
            self.leaves = 0;
            self.ended = false;
            self.reach = (self.wanted() / 2).max(SHORT);
        }
    }

    /// Whether it is time to ask for more: in a short scan when none are left, in a long one when half of
    /// them are.
    fn is_due(&self) -> bool {
        // The next leaf loads itself.
        let wanted = self.wanted();
        !self.ended && wanted > 1 && self.leaves <= wanted.saturating_sub(SHORT) / 2
    }
}

impl Scan {
    /// The keys from `lower` up to but without `upper`. At most `ahead` leaves are loaded before they are
    /// asked for.
    pub fn new(direction: Direction, lower: &[u8], upper: Option<&[u8]>, ahead: u32) -> Self {
        Self {
            direction,
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            ended: upper.is_some_and(|upper| upper <= lower),
            ahead: Ahead { most: ahead, reach: 0, leaves: 0, behind: Vec::new(), ended: ahead == 0 },
        }
    }

    /// Moves on to the far side of a leaf, where its fence is `fence`. `false` if the fence is not further
    /// on: with such a leaf no scan would end.
    fn pass(&mut self, fence: Option<&[u8]>) -> bool {
        let Some(fence) = fence else {
            self.ended = true;
            return true;
        };
        if !self.direction.is_further(fence, self.next_bound()) {
            return false;
        }
        match self.direction {
            Direction::Forward => {
                fence.clone_into(&mut self.lower);
                if planted!(ScanSkipsFence) {
                    self.lower.push(0);
                }
                self.ended = self.upper.as_deref().is_some_and(|upper| upper <= fence);
            }
            Direction::Backward => {
                fence.clone_into(self.upper.get_or_insert_default());
                self.ended = fence <= self.lower.as_slice();
            }
        }
        self.ahead.pass();
        true
    }

    /// The bound where the scan continues. `None` only backwards, before its first step.
    fn next_bound(&self) -> Option<&[u8]> {
        match self.direction {
            Direction::Forward => Some(&self.lower),
            Direction::Backward => self.upper.as_deref(),
        }
    }
}

/// The slot of the child where a scan that comes to `bound` goes on.
fn slot_at(node: Node<'_>, direction: Direction, bound: Option<&[u8]>) -> u32 {
    match direction {
        Direction::Forward => node.child_slot(bound.unwrap_or_default()),
        Direction::Backward => node.child_slot_below(bound),
    }
}

/// The slot after the last one of a scan up to `upper`, in a node with the upper fence `fence`.
fn end_at(node: Node<'_>, upper: Option<&[u8]>, fence: Option<&Vec<u8>>) -> u32 {
    match upper {
        Some(upper) if fence.is_none_or(|fence| upper <= fence.as_slice()) => node.position(upper),
        _ => node.count(),
    }
}

/// The slots of at most `most` children of an inner node, from `first` on, that a scan comes to.
fn slots_from(node: Node<'_>, scan: &Scan, first: u32, most: u32) -> Range<u32> {
    let mut fence = Vec::new();
    match scan.direction {
        Direction::Forward => {
            let bounded = node.upper_fence(&mut fence);
            let end = end_at(node, scan.upper.as_deref(), bounded.then_some(&fence));
            first..end.min(first.saturating_add(most))
        }
        Direction::Backward => {
            node.lower_fence(&mut fence);
            let start = if scan.lower > fence { node.child_slot(&scan.lower) } else { 0 };
            start.max(first.saturating_sub(most.saturating_sub(1)))..first.saturating_add(1)
        }
    }
}

/// The children at these slots, in the order of the scan.
fn children_of(node: Node<'_>, direction: Direction, slots: Range<u32>) -> Vec<PageId> {
    let mut children: Vec<_> = slots.map(|slot| node.child(slot)).collect();
    if direction == Direction::Backward {
        children.reverse();
    }
    children
}

impl BTree {
    /// Copies the next records of a scan into `piece`: those of one leaf, at least one. `false` at the scan's
    /// end.
    pub fn step(&self, scan: &mut Scan, piece: &mut Piece) -> Result<bool, Error> {
        let mut fence = Vec::new();
        while !scan.ended {
            self.until_whole(|| self.pass_leaf(scan, piece, &mut fence))?;
            if !piece.is_empty() {
                return Ok(true);
            }
            if planted!(ScanEndsAtEmptyLeaf) {
                break;
            }
        }
        piece.clear();
        Ok(false)
    }

    /// Copies the records of the next leaf, if it has any, and moves on; `None` if it changed meanwhile.
    fn pass_leaf(
        &self,
        scan: &mut Scan,
        piece: &mut Piece,
        fence: &mut Vec<u8>,
    ) -> Result<Option<()>, Error> {
        self.read_ahead(scan)?;
        let access = if scan.ahead.is_short() { Access::Normal } else { Access::Scan };
        let Some(leaf) = self.next_leaf(scan, access)? else { return Ok(None) };
        let node = Node::new(leaf.page());
        let is_there = match scan.direction {
            Direction::Forward => node.begins_before(&scan.lower),
            Direction::Backward => node.reaches(scan.upper.as_deref()),
        };
        let copied = Self::copy_out(node, scan, piece, fence, || leaf.is_valid());
        let Some(has_fence) = copied.filter(|_| leaf.is_valid()) else { return Ok(None) };
        // Otherwise records in between would be left out, or the same ones come again for ever.
        if !is_there || !scan.pass(has_fence.then_some(fence)) {
            piece.clear();
            let expected = "the keys where a scan goes on".to_owned();
            return Err(self.damaged(leaf.id(), expected, "others".into()));
        }
        Ok(Some(()))
    }

    /// The leaf where a scan goes on. If it has to be read, the leaves after it that lie next to it are read,
    /// too.
    fn next_leaf(&self, scan: &mut Scan, access: Access) -> Result<Option<OptimisticGuard<'_>>, Error> {
        let slot = |node: Node<'_>| slot_at(node, scan.direction, scan.next_bound());
        let parent = self.descend(1, Access::Normal, slot)?;
        let node = Node::new(parent.page());
        if node.is_leaf() {
            return Ok(Some(parent));
        }
        let first = slot(node);
        let child = node.child(first);
        let Some(is_absent) = self.is_leaf_absent(&parent, child) else { return Ok(None) };
        if is_absent {
            let slots = slots_from(node, scan, first, scan.ahead.along().saturating_add(1));
            let children = children_of(node, scan.direction, slots);
            if !parent.is_valid() {
                return Ok(None);
            }
            if self.pool.pages.is_only_on_device(child) {
                scan.ahead.miss();
            }
            self.pool.loader().load_together(&children, access);
        }
        self.enter(&parent, 1, child, access)
    }

    /// The records of a leaf that belong to the scan, and the fence at its far end: whether it has one.
    /// `None` if the leaf changed in between, even if it is unchanged again: then records are missing.
    fn copy_out(
        node: Node<'_>,
        scan: &Scan,
        piece: &mut Piece,
        fence: &mut Vec<u8>,
        is_valid: impl Fn() -> bool,
    ) -> Option<bool> {
        piece.clear();
        fence.clear();
        let bounded = node.upper_fence(fence);
        let end = end_at(node, scan.upper.as_deref(), bounded.then_some(fence));
        let is_backward = scan.direction == Direction::Backward;
        if is_backward {
            fence.clear();
            node.lower_fence(fence);
        }
        // Forwards the leaf was chosen by the lower bound, which therefore lies within its fences.
        let start = if is_backward && scan.lower <= *fence { 0 } else { node.position(&scan.lower) };
        for index in start..end {
            preempt!();
            // Nonsense could be long.
            if !is_valid() {
                return None;
            }
            piece.push_by(|bytes| node.key(index, bytes), |bytes| node.value(index, bytes));
        }
        Some(if is_backward { !fence.is_empty() } else { bounded })
    }

    /// Begins to load leaves that the scan will probably come to.
    fn read_ahead(&self, scan: &mut Scan) -> Result<(), Error> {
        while scan.ahead.is_due() {
            if scan.ahead.leaves == 0 {
                // The first time, or the scan has caught up with it.
                scan.ahead.behind.clear();
                if let Some(bound) = scan.next_bound().map(<[u8]>::to_vec) {
                    scan.ahead.behind = bound;
                }
            }
            self.ask_for_more(scan)?;
        }
        Ok(())
    }

    /// Begins to load leaves of one parent, after those that were asked for.
    fn ask_for_more(&self, scan: &mut Scan) -> Result<(), Error> {
        let direction = scan.direction;
        let from = |node: Node<'_>| slot_at(node, direction, Some(&scan.ahead.behind));
        let parent = self.descend(1, Access::Normal, from)?;
        let node = Node::new(parent.page());
        // Children after the scan's end are not loaded.
        let slots = slots_from(node, scan, from(node), scan.ahead.wanted() - scan.ahead.leaves);
        let mut behind = Vec::new();
        let more = match direction {
            Direction::Forward if slots.end >= node.count() => node.upper_fence(&mut behind),
            Direction::Forward => {
                node.key(slots.end, &mut behind);
                true
            }
            Direction::Backward => {
                node.key(slots.start, &mut behind);
                !behind.is_empty()
            }
        };
        let children = children_of(node, direction, slots);
        let is_leaf = node.is_leaf();
        if !parent.is_valid() {
            return Ok(());
        }
        let ahead = &mut scan.ahead;
        if is_leaf {
            ahead.ended = true;
            return Ok(());
        }
        let passed = match direction {
            Direction::Forward => scan.upper.as_ref().is_some_and(|upper| behind >= *upper),
            Direction::Backward => behind <= scan.lower,
        };
        // The leaf where the scan is loads itself.
        let loads_itself = usize::from(ahead.leaves == 0);
        // A bound that leads back, or a node without children, is damage, which the scan itself reports.
        let goes_on = direction.is_further(&behind, Some(&ahead.behind)) && !children.is_empty();
        ahead.ended = !more || passed || !goes_on;
        ahead.leaves += children.len() as u32;
        ahead.behind = behind;
        self.pool.prefetch_all(children.get(loads_itself..).unwrap_or_default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::btree::Change;
    use crate::pool::testing::pool_in_memory;

    /// A task that gathers a leaf has its latch for a moment and changes nothing. A scan that looked at just
    /// that moment left out the records that it had not copied yet, and took the leaf for whole as it was
    /// still the same.
    #[test]
    fn regression_a_leaf_that_was_latched_for_a_moment_is_not_copied_in_part() {
        let tree = BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap();
        (0..4_u32).for_each(|key| tree.update(&key.to_be_bytes(), &mut |_| Change::Put(b"value")).unwrap());
        let leaf = tree.leaf(b"").unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            let scan = Scan::new(direction, b"", None, 0);
            for latched in 0..=4 {
                let (looked, mut piece) = (Cell::new(0), Piece::default());
                let is_valid = || looked.replace(looked.get() + 1) != latched;
                let copied =
                    BTree::copy_out(Node::new(leaf.page()), &scan, &mut piece, &mut Vec::new(), is_valid);
                assert_eq!(copied.is_some(), latched == 4, "{direction:?}, look {latched}");
                assert!(copied.is_none() || piece.len() == 4);
            }
        }
    }
}
