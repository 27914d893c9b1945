//! Records that are known without their leaves (see [`RecordCache`](crate::pool::Pool::records)).

use super::form::InBlocks;
use super::image::{Above, FoundLeaf, Part};
use super::node::Node;
use super::scratch::with_bytes;
use super::tree::BTree;
use crate::Error;
use crate::hash::hash;
use crate::index::KeySlot;
use crate::pool::{Access, OptimisticGuard, Pages, RecordKey};

/// Result of searching a key.
pub(super) enum Way<'a> {
    /// The leaf that covers it; the key's slot, if that is known; and whether it had to be read.
    Leaf { leaf: OptimisticGuard<'a>, slot: KeySlot, was_absent: bool },
    /// The part of the leaf that covers it, as the leaf is on the device.
    Part(Part),
    /// Its record, found in the cache of records without the leaf.
    Record,
}

impl BTree {
    /// Appends the value of `key` to `into`; `false` if the key has none. Its leaf need not be in memory
    /// afterwards.
    ///
    /// # Errors
    /// As [`BTree::get`].
    pub fn read(&self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        let start = into.len();
        self.until_whole(|| {
            let way = self.way(key, &mut |of| self.pool.records().recall(of, into))?;
            let (leaf, slot, was_absent) = match way {
                Way::Leaf { leaf, slot, was_absent } => (leaf, slot, was_absent),
                Way::Part(part) => return Ok(self.copy_from_part(&part, key, into)),
                Way::Record => return Ok(Some(true)),
            };
            let copied = self.copy_value((leaf, slot), key, into, &mut None, Pages::overlap);
            if was_absent
                && copied == Some(true)
                && let Some(of) = self.record_key(key)
            {
                self.pool.records().keep(&of, &into[start..], || leaf.is_valid());
            }
            Ok(copied)
        })
    }

    /// As [`BTree::read`], if the pages for it are in memory; otherwise begins to load it, and `into` stays
    /// as it is.
    pub fn read_resident(&self, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        let copied = self.copy_resident(key, into, &mut None);
        if copied.is_some() {
            return copied;
        }
        if self.record_key(key).is_some_and(|of| self.pool.records().recall(&of, into)) {
            return Some(true);
        }
        self.begin_to_load(key);
        None
    }

    /// Searches a key. If the leaf is not in memory, `recall` may find the record in the cache of records.
    pub(super) fn way(
        &self,
        key: &[u8],
        recall: &mut dyn FnMut(&RecordKey<'_>) -> bool,
    ) -> Result<Way<'_>, Error> {
        if let Some((leaf, slot)) = self.hinted_leaf(key, None) {
            return Ok(Way::Leaf { leaf, slot, was_absent: false });
        }
        if let Some(blocks) = self.in_blocks {
            return self.until_whole(|| self.way_in_blocks(key, recall, blocks));
        }
        self.until_whole(|| {
            let parent = self.descend(1, Access::Normal, |node| node.child_slot(key))?;
            let node = Node::new(parent.page());
            if node.is_leaf() {
                let leaf = Way::Leaf { leaf: parent, slot: KeySlot::Unknown, was_absent: false };
                return Ok(parent.is_valid().then_some(leaf));
            }
            let child = node.child(node.child_slot(key));
            let Some(was_absent) = self.is_leaf_absent(&parent, child) else { return Ok(None) };
            if was_absent && self.record_key(key).is_some_and(|of| recall(&of)) {
                return Ok(Some(Way::Record));
            }
            let leaf = self.enter(&parent, 1, child, Access::Normal)?;
            Ok(leaf.map(|leaf| Way::Leaf { leaf, slot: KeySlot::Unknown, was_absent }))
        })
    }

    /// The same in a tree whose nodes are in blocks; `None` if something has changed meanwhile.
    fn way_in_blocks(
        &self,
        key: &[u8],
        recall: &mut dyn FnMut(&RecordKey<'_>) -> bool,
        blocks: InBlocks,
    ) -> Result<Option<Way<'_>>, Error> {
        let leaf = |leaf, was_absent| Way::Leaf { leaf, slot: KeySlot::Unknown, was_absent };
        let parent = match self.above_leaf(key, blocks)? {
            Some(Above::Parent(parent)) => parent,
            Some(Above::Root(root)) => return Ok(root.is_valid().then(|| leaf(root, false))),
            None => return Ok(None),
        };
        let was_absent = self.pool.pages.is_absent(parent.child);
        if was_absent && self.record_key(key).is_some_and(|of| recall(&of)) {
            return Ok(Some(Way::Record));
        }
        Ok(self.leaf_below(&parent, key, blocks)?.map(|found| match found {
            FoundLeaf::Page(page) => leaf(page, was_absent),
            FoundLeaf::Part(part) => Way::Part(part),
        }))
    }

    /// Appends the value of `key`, which a part of a leaf covers. Returns whether it has one. `None` if the
    /// leaf has changed meanwhile.
    pub(super) fn copy_from_part(&self, part: &Part, key: &[u8], into: &mut Vec<u8>) -> Option<bool> {
        let (start, node) = (into.len(), part.node());
        let found = node.find(key).ok();
        if let Some(index) = found {
            node.value(index, into);
        }
        let is_current = || self.pool.is_image_current(&part.image);
        if !is_current() {
            into.truncate(start);
            return None;
        }
        if found.is_some()
            && let Some(of) = self.record_key(key)
        {
            self.pool.records().keep(&of, &into[start..], is_current);
        }
        Some(found.is_some())
    }

    /// Keeps the record of a key whose leaf had to be read.
    pub(super) fn keep(&self, key: &[u8], leaf: &OptimisticGuard<'_>) {
        let (node, of) = (Node::new(leaf.page()), self.record_key(key));
        if let (Ok(index), Some(of)) = (node.find(key), of) {
            with_bytes(|value| {
                node.value(index, value);
                self.pool.records().keep(&of, value, || leaf.is_valid());
            });
        }
    }

    /// Updates a key's record in the cache to this value, or removes it. The caller has the leaf's latch.
    #[inline]
    pub(super) fn amend(&self, key: &[u8], value: Option<&[u8]>) {
        if let Some(of) = self.record_key(key) {
            self.pool.records().amend(&of, value);
        }
    }

    /// Old versions are gone before they are looked for twice.
    #[inline]
    fn record_key<'a>(&self, key: &'a [u8]) -> Option<RecordKey<'a>> {
        let of = || RecordKey { tree: self.number.0, hash: hash(self.root.0, key), key };
        (!self.volatile).then(of)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;
    use shuttle::thread::spawn;

    use super::*;
    use crate::btree::Change;
    use crate::pool::testing::pool_in_memory;
    use crate::sync::explored::explore;

    /// A fifth of the records fits into memory, and nine looks in ten are for one in forty of them.
    #[test]
    fn what_is_read_is_what_was_written_last_and_popular_records_need_no_leaves() {
        let seed = 1;
        let mut random = Pcg64::seed_from_u64(seed);
        let pool = pool_in_memory(1 << 20);
        let tree = BTree::create(&pool, 0, false).unwrap();
        let mut model: BTreeMap<[u8; 4], Vec<u8>> = BTreeMap::new();
        for number in 0..40_000_u32 {
            let (key, value) = (number.to_be_bytes(), vec![number as u8; 90]);
            tree.update(&key, &mut |_| Change::Put(&value)).unwrap();
            model.insert(key, value);
        }
        for step in 0..300_000_u32 {
            let popular = random.random_range(0..10) > 0;
            let number =
                if popular { random.random_range(0..1000) * 37 } else { random.random_range(0..40_000) };
            let key: [u8; 4] = u32::to_be_bytes(number);
            match random.random_range(0..20) {
                0 => {
                    let value = vec![step as u8; if step % 3 == 0 { 60 } else { 90 }];
                    tree.update(&key, &mut |_| Change::Put(&value)).unwrap();
                    model.insert(key, value);
                }
                1 if step % 8 == 0 => {
                    tree.update(&key, &mut |_| Change::Remove).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let mut value = Vec::new();
                    let found = match step % 2 {
                        0 => tree.read(&key, &mut value).unwrap(),
                        _ => match tree.read_resident(&key, &mut value) {
                            Some(found) => found,
                            None => tree.read(&key, &mut value).unwrap(),
                        },
                    };
                    assert_eq!(
                        found.then_some(&value),
                        model.get(&key),
                        "seed {seed}, step {step}, {number}"
                    );
                }
            }
        }
        let hits = pool.hits();
        assert!(hits.records > 50_000, "{hits:?}");
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let pool = pool_in_memory(1 << 20);
        let tree = BTree::create(&pool, 0, false).unwrap();
        let put = |value: &[u8]| tree.update(b"key", &mut |_| Change::Put(value)).unwrap();
        let known = || {
            let (mut value, of) = (Vec::new(), tree.record_key(b"key").unwrap());
            pool.records().recall(&of, &mut value).then_some(value)
        };
        put(b"old");
        let before = tree.leaf(b"key").unwrap();
        put(b"new");
        tree.keep(b"key", &before);
        assert_eq!(known(), None);
        tree.keep(b"key", &tree.leaf(b"key").unwrap());
        assert_eq!(known().as_deref(), Some(&b"new"[..]));
        put(b"1st");
        assert_eq!(known().as_deref(), Some(&b"1st"[..]), "changed in both places");
        tree.update(b"key", &mut |_| Change::Remove).unwrap();
        assert_eq!(known(), None);
    }

    #[test]
    fn whoever_keeps_a_record_and_whoever_changes_it_agree_explored() {
        explore(4000, || {
            let pool = pool_in_memory(1 << 20);
            let tree = BTree::create(&pool, 0, false).unwrap();
            let put = |tree: &BTree, value: &[u8]| tree.update(b"key", &mut |_| Change::Put(value)).unwrap();
            put(&tree, b"old");
            let changing = tree.clone();
            let changes = spawn(move || [b"1st", b"2nd"].iter().for_each(|value| put(&changing, *value)));
            let keeping = tree.clone();
            let keeps = spawn(move || {
                for _ in 0..2 {
                    let leaf = keeping.leaf(b"key").unwrap();
                    keeping.keep(b"key", &leaf);
                }
            });
            changes.join().unwrap();
            keeps.join().unwrap();
            let (mut known, of) = (Vec::new(), tree.record_key(b"key").unwrap());
            assert!(!pool.records().recall(&of, &mut known) || known == b"2nd", "{known:?}");
        });
    }
}
