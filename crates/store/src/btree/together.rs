//! Looking for several keys at a time: the processor fetches the memory for all of them in parallel.
//!
//! A descent follows a chain of addresses: each is known when the memory at the previous one has come. For
//! one key the processor waits at each address; for many keys it fetches the first ones, then the second
//! ones, and so on (group prefetching: Chen, Ailamaki, Gibbons and Mowry, ICDE 2004).

use smallvec::SmallVec;

use super::leaf_hints;
use super::node::Node;
use super::tree::BTree;
use crate::header::PageId;
use crate::index::{KeySlot, LeafHint};
use crate::pool::OptimisticGuard;

/// Keys at a time: as many as the cache lines that a processor fetches in parallel, and no more than its
/// nearest cache holds.
const AT_A_TIME: usize = 16;

/// Keys on their way down.
type Ways<'a> = SmallVec<[Way<'a>; AT_A_TIME]>;

/// A key on its way down.
#[derive(Clone, Copy)]
struct Way<'a> {
    key: &'a [u8],
    guard: OptimisticGuard<'a>,
    child: PageId,
}

impl BTree {
    /// Finds the leaves of keys that are looked for next, and remembers them, as far as all on the way to
    /// them is in memory.
    pub fn find_leaves(&self, keys: &mut dyn Iterator<Item = &[u8]>) {
        let is_known = |key: &&[u8]| {
            leaf_hints::recall((self.number, self.root), key)
                .is_some_and(|hint| self.pool.pages.is_valid(hint.page_version))
        };
        let mut keys = keys.filter(|key| !is_known(key)).peekable();
        while keys.peek().is_some()
            && let Some(root) = self.pool.resident(self.root)
        {
            let on_its_way = |key| Way { key, guard: root, child: self.root };
            let mut ways: Ways<'_> = keys.by_ref().take(AT_A_TIME).map(on_its_way).collect();
            self.go_down(&mut ways);
            for way in ways {
                self.remember(
                    way.key,
                    LeafHint { page_version: way.guard.page_version(), slot: KeySlot::Unknown },
                );
            }
        }
    }

    /// Descends from the root to the leaves. A descent that meets a page that is not in memory, or that
    /// changes meanwhile, is dropped.
    fn go_down<'a>(&'a self, ways: &mut Ways<'a>) {
        let mut level = ways.first().map_or(0, |way| Node::new(way.guard.page()).level());
        while level > 0 && !ways.is_empty() {
            ways.retain(|way| {
                let node = Node::new(way.guard.page());
                way.child = node.child(node.child_slot(way.key));
                let is_valid = way.guard.is_valid();
                if is_valid {
                    self.pool.pages.prefetch_entry(way.child);
                }
                is_valid
            });
            ways.iter().for_each(|way| self.pool.pages.prefetch_frame(way.child));
            level -= 1;
            ways.retain(|way| {
                preempt!();
                let Some(next) = self.pool.resident(way.child) else { return false };
                preempt!();
                Node::prefetch(next.page(), level == 0);
                // Only now is it certain that the child, as it was found, covers the key.
                let is_whole = way.guard.is_valid();
                way.guard = next;
                is_whole
            });
            ways.retain(|way| Node::new(way.guard.page()).level() == level);
        }
    }
}
