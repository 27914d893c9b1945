//! Writes that are not committed yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::source::{Key, Overlay};
use super::value::Value;
use crate::catalog::{Known, TreeId};

/// The writes of a batch or transaction, by tree and key.
#[derive(Default)]
pub(crate) struct Writes {
    trees: BTreeMap<TreeId, (Arc<Known>, Overlay)>,
}

impl Writes {
    /// The last write to a key counts; `None` removes.
    pub fn put(&mut self, tree: &Arc<Known>, key: &[u8], value: Option<Value>) {
        let (_, writes) =
            self.trees.entry(tree.entry.id).or_insert_with(|| (Arc::clone(tree), Overlay::default()));
        writes.insert(Key::from_slice(key), value);
    }

    /// What is written to a key, if anything is.
    pub fn get(&self, tree: &Known, key: &[u8]) -> Option<&Option<Value>> {
        self.of(tree)?.get(key)
    }

    /// What is written to a tree.
    pub fn of(&self, tree: &Known) -> Option<&Overlay> {
        self.trees.get(&tree.entry.id).map(|(_, writes)| writes)
    }

    /// Keys.
    pub fn len(&self) -> usize {
        self.trees.values().map(|(_, writes)| writes.len()).sum()
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// As if nothing had been written.
    pub fn clear(&mut self) {
        self.trees.clear();
    }

    /// The trees that are written to.
    pub fn trees(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.trees.values().map(|(tree, _)| tree)
    }

    /// All writes.
    pub fn iter(&self) -> impl Iterator<Item = (&Known, &[u8], Option<&Value>)> {
        self.trees.values().flat_map(|(tree, writes)| {
            writes.iter().map(|(key, value)| (&**tree, key.as_slice(), value.as_ref()))
        })
    }
}
