//! Checks every node of a tree.

use super::node::Node;
use super::tree::BTree;
use crate::Error;
use crate::class::class_bytes;
use crate::header::{Header, PageId};
use crate::index::Census;
use crate::page::Page;
use crate::pool::Access;

/// A node as its parent describes it.
struct Expected {
    id: PageId,
    level: u8,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// Content of a node.
struct Looked {
    used_bytes: u64,
    records: Vec<(Vec<u8>, Vec<u8>)>,
    children: Vec<Expected>,
}

impl BTree {
    /// As [`BTree::walk`], for callers that only need the records.
    #[cfg(test)]
    pub fn check(&self, record: &mut dyn FnMut(&[u8], &[u8])) -> Result<Census, Error> {
        self.walk(&mut |_| (), record)
    }

    /// Walks the whole tree, and shows the page of every node to `node` and every record to `record`: the
    /// fences of every node are those that its parent has, its keys lie within them and ascend, its level is
    /// one below, it is a node. The tree must not change meanwhile.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first node that violates this, or that cannot be read.
    pub fn walk(
        &self,
        node: &mut dyn FnMut(PageId),
        record: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Census, Error> {
        let mut census = Census::default();
        let root = self.pool.read(self.root, Access::Scan)?;
        let level = Node::new(root.page()).level();
        census.levels = u32::from(level) + 1;
        let mut pending = vec![Expected { id: self.root, level, lower: Vec::new(), upper: None }];
        while let Some(expected) = pending.pop() {
            node(expected.id);
            self.check_node(&expected, &mut pending, &mut census, record)?;
        }
        Ok(census)
    }

    fn check_node(
        &self,
        expected: &Expected,
        pending: &mut Vec<Expected>,
        census: &mut Census,
        record: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let node = loop {
            let guard = self.pool.read(expected.id, Access::Scan)?;
            let looked = self.look_at(expected, guard.page());
            // The page may have left memory meanwhile, and its frame may have another page.
            if guard.is_valid() {
                break looked?;
            }
        };
        census.used_bytes += node.used_bytes;
        census.page_bytes += class_bytes(self.class);
        match expected.level {
            0 => census.leaves += 1,
            _ => census.inner_nodes += 1,
        }
        census.records += node.records.len() as u64;
        node.records.iter().for_each(|(key, value)| record(key, value));
        pending.extend(node.children);
        Ok(())
    }

    /// The content of a page, if it is the expected node.
    fn look_at(&self, expected: &Expected, page: Page<'_>) -> Result<Looked, Error> {
        let expect = |what: &str, holds: bool| {
            let got = || "something else".to_owned();
            if holds { Ok(()) } else { Err(self.damaged(expected.id, what.to_owned(), got())) }
        };
        let node = Node::new(page);
        expect("a page of kind node", Header::of(page).kind == self.kind as u8)?;
        expect("the level below its parent's", node.level() == expected.level)?;
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        node.lower_fence(&mut lower);
        let bounded = node.upper_fence(&mut upper);
        expect("its parent's key as lower fence", lower == expected.lower)?;
        expect(
            "the next key of its parent as upper fence",
            bounded.then_some(&upper) == expected.upper.as_ref(),
        )?;
        expect("a child", node.is_leaf() || node.count() > 0)?;
        expect("bytes that add up", node.adds_up())?;
        let used_bytes = u64::from(page.len_bytes().saturating_sub(node.free_bytes()));
        let mut looked = Looked { used_bytes, records: Vec::new(), children: Vec::new() };
        let (mut last, mut key): (Option<Vec<u8>>, _) = (None, Vec::new());
        for index in 0..node.count() {
            key.clear();
            node.key(index, &mut key);
            expect("keys within its fences", key >= lower && (!bounded || key < upper))?;
            expect("ascending keys", last.as_ref().is_none_or(|last| *last < key))?;
            expect("keys that a search finds", node.find(&key) == Ok(index) || !node.is_leaf())?;
            if node.is_leaf() {
                let mut value = Vec::new();
                node.value(index, &mut value);
                looked.records.push((key.clone(), value));
            } else {
                if let Some(previous) = looked.children.last_mut() {
                    previous.upper = Some(key.clone());
                }
                let upper = bounded.then(|| upper.clone());
                let level = expected.level.saturating_sub(1);
                looked.children.push(Expected { id: node.child(index), level, lower: key.clone(), upper });
            }
            std::mem::swap(last.get_or_insert_default(), &mut key);
        }
        Ok(looked)
    }
}
