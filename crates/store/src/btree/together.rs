//! Looking for several keys at a time: what the processor has to fetch for one of them, it fetches for all of them side by side.
//!
//! A way down is a chain of addresses, each of which is known when what is at the one before has come. Of one key the processor waits for each; of many it fetches the first ones, then the second ones, and so on
//! (group prefetching: Chen, Ailamaki, Gibbons and Mowry, ICDE 2004).

use super::node::Node;
use super::places;
use super::tree::BTree;
use crate::header::PageId;
use crate::pool::Seen;

/// Keys at a time: as many lines as a processor fetches side by side, and no more than its nearest cache holds.
const AT_A_TIME: usize = 16;

/// A key on its way down.
#[derive(Clone, Copy)]
struct Way<'a> {
    key: &'a [u8],
    seen: Seen<'a>,
    child: PageId,
}

impl BTree {
    /// Finds the leaves of keys that are looked for next, and remembers them, as far as all on the way to them is in memory.
    pub fn find_leaves(&self, keys: &[&[u8]]) {
        for keys in keys.chunks(AT_A_TIME) {
            self.find_some(keys);
        }
    }

    fn find_some(&self, keys: &[&[u8]]) {
        let tree = (self.number, self.root);
        let Some(root) = self.pool.at_hand(self.root) else { return };
        let mut ways: Vec<Way<'_>> = keys
            .iter()
            .filter(|key| !places::recall(tree, key).is_some_and(|sight| self.pool.is_still(sight)))
            .map(|key| Way { key, seen: root, child: self.root })
            .collect();
        let mut level = Node::new(root.page()).level();
        while level > 0 && !ways.is_empty() {
            ways.retain_mut(|way| {
                let node = Node::new(way.seen.page());
                way.child = node.child(node.child_slot(way.key));
                let is_still = way.seen.is_still();
                if is_still {
                    self.pool.prefetch_entry(way.child);
                }
                is_still
            });
            ways.iter().for_each(|way| self.pool.prefetch_frame(way.child));
            ways.retain_mut(|way| {
                let Some(next) = self.pool.at_hand(way.child) else { return false };
                Node::prefetch(next.page(), level == 1);
                // Only now is it certain that the child, as it was found, covers the key.
                let is_whole = way.seen.is_still();
                way.seen = next;
                is_whole
            });
            level -= 1;
            ways.retain(|way| Node::new(way.seen.page()).level() == level);
        }
        ways.iter().for_each(|way| places::remember(tree, way.key, way.seen.sight()));
    }
}
