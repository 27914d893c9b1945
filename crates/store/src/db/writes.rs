//! Writes that are not committed yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{Content, is_overflow};
use super::overlay::{Key, Overlay};
use crate::catalog::NamedTree;
use crate::engine::Engine;
use crate::index::TreeId;
use crate::{Error, varint};

/// The kind of an operation in the log.
const LOGGED_KIND_BYTES: u64 = 1;

/// Bytes that a write takes in the log, with a value of `value_bytes`; `None`: a removal.
pub(super) fn logged_bytes(engine: &Engine, tree: &NamedTree, key: &[u8], value_bytes: Option<u64>) -> u64 {
    let with_length = |bytes: u64| varint::length(bytes) + bytes;
    let of_value = value_bytes.map_or(0, |bytes| match is_overflow(tree, bytes) {
        true => with_length(engine.overflow_values().logged_bytes(bytes)),
        false => with_length(bytes),
    });
    LOGGED_KIND_BYTES + varint::length(tree.entry.id.0.into()) + with_length(key.len() as u64) + of_value
}

/// The longest batch, as the log has it.
pub(super) fn batch_limit_bytes(engine: &Engine) -> u64 {
    engine.parts().log.record_limit_bytes()
}

/// The writes of a batch or transaction, by tree and key.
#[derive(Default)]
pub(crate) struct Writes {
    trees: BTreeMap<TreeId, (Arc<NamedTree>, Overlay)>,
    /// Upper bound for their bytes in the log: writes that later ones replaced are counted, too, until the
    /// limit makes it worth while to count anew.
    logged_bytes: u64,
    /// Whether replaced ones are not counted.
    is_exact: bool,
}

impl Writes {
    /// The last write to a key counts; `None` removes.
    pub fn put(&mut self, tree: &Arc<NamedTree>, key: &[u8], value: Option<Content>) {
        let (_, writes) =
            self.trees.entry(tree.entry.id).or_insert_with(|| (Arc::clone(tree), Overlay::default()));
        writes.insert(Key::from_slice(key), value);
    }

    /// Counts writes to a tree that are about to be [put](Writes::put): each key, and the bytes that it takes
    /// in the log.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if all of them are more than the log takes as one; nothing has changed then.
    pub fn admit<'k>(
        &mut self,
        engine: &Engine,
        tree: &NamedTree,
        added: impl IntoIterator<Item = (&'k [u8], u64), IntoIter: Clone>,
    ) -> Result<(), Error> {
        self.logged_bytes = self.check(engine, tree, added)?;
        Ok(())
    }

    /// Bytes of all writes in the log, with these ones.
    ///
    /// # Errors
    /// As [`Writes::admit`].
    pub fn check<'k>(
        &mut self,
        engine: &Engine,
        tree: &NamedTree,
        added: impl IntoIterator<Item = (&'k [u8], u64), IntoIter: Clone>,
    ) -> Result<u64, Error> {
        let (added, limit) = (added.into_iter(), batch_limit_bytes(engine));
        let added_bytes: u64 = added.clone().map(|(_, bytes)| bytes).sum();
        let bytes = |tree: &NamedTree, key: &[u8], content: Option<&Content>| {
            logged_bytes(engine, tree, key, content.map(Content::length))
        };
        if !self.is_exact && self.logged_bytes + added_bytes > limit {
            let all = self.iter().map(|(tree, key, content)| bytes(tree, key, content));
            (self.logged_bytes, self.is_exact) = (all.sum(), true);
        }
        let mut replaced_bytes = 0;
        if self.is_exact {
            let replaced = added.filter_map(|(key, _)| Some(bytes(tree, key, self.get(tree, key)?.as_ref())));
            replaced_bytes = replaced.sum();
        }
        let got = self.logged_bytes - replaced_bytes + added_bytes;
        if got > limit { Err(Error::BatchLength { got, limit }) } else { Ok(got) }
    }

    /// The write to a key, if there is one.
    pub fn get(&self, tree: &NamedTree, key: &[u8]) -> Option<&Option<Content>> {
        self.of(tree)?.get(key)
    }

    /// The writes to a tree.
    pub fn of(&self, tree: &NamedTree) -> Option<&Overlay> {
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
        *self = Self::default();
    }

    /// The trees that are written to.
    pub fn trees(&self) -> impl Iterator<Item = &Arc<NamedTree>> {
        self.trees.values().map(|(tree, _)| tree)
    }

    /// All writes, with the handles of their trees.
    pub fn each(&self) -> impl Iterator<Item = (&Arc<NamedTree>, &[u8], &Option<Content>)> {
        self.trees.values().flat_map(|(tree, writes)| {
            writes.iter().map(move |(key, content)| (tree, key.as_slice(), content))
        })
    }

    /// All writes.
    pub fn iter(&self) -> impl Iterator<Item = (&NamedTree, &[u8], Option<&Content>)> {
        self.trees.values().flat_map(|(tree, writes)| {
            writes.iter().map(|(key, value)| (&**tree, key.as_slice(), value.as_ref()))
        })
    }
}
