//! Splitting a node in two, and merging two neighbours into one.

use super::node::{Full, Node};
use crate::index::separator;
use crate::page::{OwnPage, Page, padded};

/// Position of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first slot that goes to the right.
    pub slot: u32,
    /// The fence between the halves.
    pub separator: Vec<u8>,
}

/// Leaves with fewer records are not divided to part hot ones.
const DIVIDED_RECORDS_MIN: u32 = 4;

/// Chooses the split of `node` when `key` is to go to slot `incoming`: in the middle of its bytes, or at
/// `incoming` if keys come in ascending order, so that the nodes before them stay full. `None` for an inner
/// node of one child or an empty leaf: these always have room.
pub(crate) fn cut(node: Node<'_>, incoming: u32, key: &[u8]) -> Option<Cut> {
    let (count, is_leaf) = (node.count(), node.is_leaf());
    if count == 0 || (count == 1 && !is_leaf) {
        return None;
    }
    let ascending = incoming > 0 && node.is_ascending(incoming);
    // One side of a leaf may stay empty for the incoming key.
    let slot = match (ascending, is_leaf) {
        (true, true) => incoming.min(count),
        (true, false) => incoming.min(count - 1),
        (false, _) if count == 1 => incoming.min(1),
        (false, _) => middle(node, count, incoming, key),
    };
    // Fences are stored whole: where they are long, a side with many records may have no room for the new
    // one.
    let last = count - u32::from(count > 1);
    let others = (1..=count).flat_map(|away| [slot.checked_sub(away), Some(slot + away)]);
    let others = others.flatten().filter(|other| (1..=last).contains(other));
    let mut cuts =
        std::iter::once(slot).chain(others).map(|slot| cut_at(node, slot, incoming, key, ascending));
    cuts.find(|cut| fits(node, cut)).or_else(|| Some(cut_at(node, slot, incoming, key, ascending)))
}

/// The cut before `slot`.
fn cut_at(node: Node<'_>, slot: u32, incoming: u32, key: &[u8], ascending: bool) -> Cut {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    // An ascending key stays with those before it, and the records after it go to the right.
    let parts = node.is_leaf() && ascending && slot == incoming && slot < node.count();
    if slot == 0 || parts {
        left.extend_from_slice(key);
    } else {
        node.key(slot - 1, &mut left);
    }
    if slot == node.count() {
        right.extend_from_slice(key);
    } else {
        node.key(slot, &mut right);
    }
    let separator = if node.is_leaf() { separator(&left, right) } else { right };
    Cut { slot, separator }
}

/// Chooses the split of a leaf so that the record at `hot` comes to lie at the edge; `None` if the leaf has
/// too few records.
pub(crate) fn cut_beside(leaf: Node<'_>, hot: u32) -> Option<Cut> {
    let count = leaf.count();
    if count < DIVIDED_RECORDS_MIN || hot >= count {
        return None;
    }
    // The larger part is split off, so that the record is alone after few splits.
    let slot = if hot < count / 2 { hot + 1 } else { hot };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    leaf.key(slot - 1, &mut left);
    leaf.key(slot, &mut right);
    Some(Cut { slot, separator: separator(&left, right) }).filter(|cut| fits(leaf, cut))
}

/// Whether both sides of a cut have room for their fences and records. Their prefixes are not shorter than
/// the node's, so records do not become larger.
fn fits(node: Node<'_>, cut: &Cut) -> bool {
    let bytes =
        |slots: std::ops::Range<u32>| -> u64 { slots.map(|index| u64::from(node.slot_bytes(index))).sum() };
    let (lower, upper) = node.fences_bytes();
    let room = u64::from(node.capacity_bytes()) + u64::from(lower) + u64::from(upper);
    let separator = u64::from(padded(cut.separator.len() as u32));
    bytes(0..cut.slot) + u64::from(lower) + separator <= room
        && bytes(cut.slot..node.count()) + separator + u64::from(upper) <= room
}

/// The slot that divides the bytes of a node and of the key that is to go to slot `incoming` most evenly,
/// with at least one slot on each side; of two, the one that leaves the key's side shorter.
///
/// A node of few long keys would otherwise be full again as soon as it has the key: then each split of a leaf
/// splits all nodes above it, and the tree becomes higher with each.
fn middle(node: Node<'_>, count: u32, incoming: u32, key: &[u8]) -> u32 {
    // Lengths that are read while they change may add up to anything.
    let bytes = |index: u32| u64::from(node.slot_bytes(index));
    let own = u64::from(node.needed_bytes(key.len(), 0));
    let total: u64 = (0..count).map(bytes).sum();
    let (mut left, mut best) = (0, (u64::MAX, u64::MAX, count - 1));
    for slot in 1..count {
        left += bytes(slot - 1);
        let right = total.saturating_sub(left);
        let (own_side, other) = if incoming <= slot { (left + own, right) } else { (right + own, left) };
        best = best.min((own_side.max(other), own_side, slot));
    }
    best.2
}

/// Moves the slots from the cut on to the page `right`, whose header stays. `scratch` is as long as the
/// pages.
pub(crate) fn split(node: Node<'_>, cut: &Cut, right: Page<'_>, scratch: &OwnPage) {
    let old = Node::new(scratch.page());
    scratch.page().copy_page(node.page());
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    old.lower_fence(&mut lower);
    let bounded = old.upper_fence(&mut upper);
    let right = Node::init(right, old.level(), &cut.separator, bounded.then_some(upper.as_slice()));
    let from = cut.slot + u32::from(planted!(SplitLosesSeparator) && is_at_separator(old, cut));
    old.append_to(right, from..old.count());
    let left = Node::init(node.page(), old.level(), &lower, Some(&cut.separator));
    old.append_to(left, 0..cut.slot);
}

/// Whether the first record on the right of a leaf has the fence for its key.
fn is_at_separator(node: Node<'_>, cut: &Cut) -> bool {
    let mut first = Vec::new();
    node.key(cut.slot, &mut first);
    node.is_leaf() && cut.slot < node.count() && first == cut.separator
}

/// Moves all of `right` into its left neighbour.
///
/// # Errors
/// [`Full`] if both together do not fit into a page; nothing has changed then.
pub(crate) fn merge(left: Node<'_>, right: Node<'_>, scratch: &OwnPage) -> Result<(), Full> {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    left.lower_fence(&mut lower);
    let bounded = right.upper_fence(&mut upper);
    let merged = Node::init(scratch.page(), left.level(), &lower, bounded.then_some(upper.as_slice()));
    // Fences farther apart have less in common, so that keys may grow.
    append_checked(left, merged)?;
    append_checked(right, merged)?;
    left.copy_node(merged);
    Ok(())
}

/// Appends all slots of `from` to `to`, whose fences they lie in.
///
/// # Errors
/// [`Full`] if they do not fit; some have been appended then.
pub(super) fn append_checked(from: Node<'_>, to: Node<'_>) -> Result<(), Full> {
    let mut key = Vec::new();
    for index in 0..from.count() {
        key.clear();
        if !to.takes_lower_fence() {
            from.key(index, &mut key);
        }
        if to.needed_bytes(key.len(), from.value_length(index)) > to.free_bytes() {
            return Err(Full);
        }
        from.append_to(to, index..index + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::page::OwnPage;

    const PAGE_BYTES: u32 = 1024;

    #[derive(Clone, Debug)]
    enum Step {
        Put(Vec<u8>, Vec<u8>),
        Remove(Vec<u8>),
        Merge(usize),
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(0_u8..4, 1..12),
            (0_u32..500).prop_map(|number| number.to_be_bytes().to_vec()),
            (0_u16..300).prop_map(|number| format!("user/{number:05}/name").into_bytes()),
            // As long as keys may be, and different at the end.
            (0_usize..200, 0_u8..200)
                .prop_map(|(length, last)| [vec![b'k'; length], vec![last; 40]].concat()),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (key(), proptest::collection::vec(any::<u8>(), 0..170)).prop_map(|(key, value)| Step::Put(key, value)),
            3 => key().prop_map(Step::Remove),
            1 => any::<usize>().prop_map(Step::Merge),
        ]
    }

    /// Adjacent nodes, in the order of their fences: the leaves of a tree.
    struct Leaves {
        pages: Vec<OwnPage>,
        scratch: OwnPage,
    }

    impl Leaves {
        fn new() -> Self {
            let page = OwnPage::new(PAGE_BYTES);
            Node::init(page.page(), 0, b"", None);
            Self { pages: vec![page], scratch: OwnPage::new(PAGE_BYTES) }
        }

        fn node(&self, index: usize) -> Node<'_> {
            Node::new(self.pages[index].page())
        }

        fn leaf_of(&self, key: &[u8]) -> usize {
            let starts_behind = |page: &OwnPage| {
                let mut lower = Vec::new();
                Node::new(page.page()).lower_fence(&mut lower);
                lower.as_slice() > key
            };
            self.pages.iter().position(starts_behind).unwrap_or(self.pages.len()) - 1
        }

        fn put(&mut self, key: &[u8], value: &[u8]) {
            loop {
                let leaf = self.leaf_of(key);
                let node = self.node(leaf);
                let (done, at) = match node.find(key) {
                    Ok(index) => (node.replace(index, value, &self.scratch), index),
                    Err(index) => (node.insert(index, key, value, &self.scratch), index),
                };
                if done.is_ok() {
                    return;
                }
                let cut = cut(node, at, key).expect("a full leaf can be split");
                let right = OwnPage::new(PAGE_BYTES);
                split(node, &cut, right.page(), &self.scratch);
                self.pages.insert(leaf + 1, right);
            }
        }

        fn remove(&mut self, key: &[u8]) -> bool {
            let node = self.node(self.leaf_of(key));
            node.find(key).map(|index| node.remove(index)).is_ok()
        }

        fn merge(&mut self, index: usize) {
            if self.pages.len() > 1 {
                let left = index % (self.pages.len() - 1);
                if merge(self.node(left), self.node(left + 1), &self.scratch).is_ok() {
                    self.pages.remove(left + 1);
                }
            }
        }

        fn all(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
            let mut found = Vec::new();
            for page in &self.pages {
                let node = Node::new(page.page());
                for index in 0..node.count() {
                    let (mut key, mut value) = (Vec::new(), Vec::new());
                    node.key(index, &mut key);
                    node.value(index, &mut value);
                    found.push((key, value));
                }
            }
            found
        }

        fn check(&self) {
            let mut expected_lower = Vec::new();
            for (index, page) in self.pages.iter().enumerate() {
                let node = Node::new(page.page());
                let (mut lower, mut upper) = (Vec::new(), Vec::new());
                node.lower_fence(&mut lower);
                assert_eq!(lower, expected_lower, "fences of neighbours meet");
                assert!(node.adds_up(), "the parts of a node do not overlap");
                assert_eq!(node.upper_fence(&mut upper), index + 1 < self.pages.len());
                expected_lower = upper;
            }
        }
    }

    /// In a tree of such nodes each split of a leaf would split all nodes above it.
    #[test]
    fn a_node_is_not_full_again_when_it_has_the_key_it_was_split_for() {
        const KEYS: u8 = 200;
        let mut leaves = Leaves::new();
        leaves.put(b"", b"");
        // A node has room for two.
        (1..=KEYS).rev().for_each(|first| leaves.put(&[first; 400], b""));
        leaves.check();
        assert_eq!(leaves.pages.len(), usize::from(KEYS / 2));
    }

    proptest! {
        #[test]
        fn nodes_side_by_side_are_a_sorted_map(steps in proptest::collection::vec(step(), 1..400)) {
            let mut leaves = Leaves::new();
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(key, value) => {
                        leaves.put(&key, &value);
                        model.insert(key, value);
                    }
                    Step::Remove(key) => prop_assert_eq!(leaves.remove(&key), model.remove(&key).is_some()),
                    Step::Merge(index) => leaves.merge(index),
                }
                leaves.check();
            }
            prop_assert_eq!(leaves.all(), model.into_iter().collect::<Vec<_>>());
        }

        /// Bytes from a broken drive, or from a page that changes while it is read.
        #[test]
        fn nonsense_gives_nonsense_and_no_panic(
            words in proptest::collection::vec(any::<u32>(), (PAGE_BYTES / 4) as usize),
            wanted in key(),
        ) {
            let page = OwnPage::new(PAGE_BYTES);
            for (index, word) in words.iter().enumerate() {
                page.page().set_word(index as u32 * 4, *word);
            }
            let node = Node::new(page.page());
            let mut bytes = Vec::new();
            let found = node.find(&wanted);
            let _ = (node.child_slot(&wanted), node.level(), node.free_bytes(), node.upper_fence(&mut bytes), node.adds_up(), node.has_within(&wanted));
            node.lower_fence(&mut bytes);
            let _ = cut(node, found.unwrap_or_else(|index| index), &wanted);
            for index in 0..node.count() {
                bytes.clear();
                node.key(index, &mut bytes);
                node.value(index, &mut bytes);
                let _ = (node.child(index), node.slot_bytes(index));
            }
            prop_assert!(found.is_ok_and(|index| index < node.count()) || found.is_err_and(|index| index <= node.count()));
        }
    }

    #[test]
    fn ascending_keys_leave_full_nodes_behind() {
        let mut leaves = Leaves::new();
        for number in 0..1000_u64 {
            leaves.put(&number.to_be_bytes(), &[7; 20]);
        }
        let used: u32 = leaves.pages.iter().map(|page| Node::new(page.page()).used_bytes()).sum();
        let share = f64::from(used) / f64::from(PAGE_BYTES * leaves.pages.len() as u32);
        // Headers and fences take 92 bytes of each KiB; halves would be below 0.5.
        assert!(share > 0.75, "{share}");
    }
}
