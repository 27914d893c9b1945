//! Doing again what the log says.
//!
//! Every record of a tree says which commit made it, so what a checkpoint contains already is left alone, and the log may be replayed from anywhere before what is missing, also twice.

use std::sync::Arc;

use crate::Error;
use crate::catalog::{Entry, TreeId, Trees};
use crate::index::Change;
use crate::log::Timestamp;
use crate::txn::{Operation, Operations, VERSION_BYTES, Version};

/// See the module.
pub(super) struct Replay {
    trees: Arc<Trees>,
    value: Vec<u8>,
}

impl Replay {
    pub fn new(trees: Arc<Trees>) -> Self {
        Self { trees, value: Vec::new() }
    }

    /// A commit, in the order of the log.
    pub fn record(&mut self, timestamp: Timestamp, record: &[u8]) -> Result<(), Error> {
        for operation in Operations::of(record) {
            let operation = operation.map_err(|_| Error::Corrupt {
                what: format!("commit {} in the log", timestamp.0),
                offset_bytes: 0,
                expected: "operations that this version knows".into(),
                got: "something else, under a right checksum".into(),
            })?;
            self.operation(timestamp, operation)?;
        }
        Ok(())
    }

    fn operation(&mut self, timestamp: Timestamp, operation: Operation<'_>) -> Result<(), Error> {
        match operation {
            Operation::Put { tree, key, value } => self.put(tree, key, Version::put(timestamp), value),
            Operation::PutOverflow { tree, key, reference } => {
                self.put(tree, key, Version::overflow(timestamp), reference)
            }
            Operation::Remove { tree, key } => self.change(tree, key, timestamp, Change::Remove),
            Operation::CreateTree { tree, name, entry } => self.create(tree, name, entry),
            Operation::DropTree { tree, name } => self.trees.remove(&String::from_utf8_lossy(name), tree),
        }
    }

    fn put(&mut self, tree: TreeId, key: &[u8], version: Version, rest: &[u8]) -> Result<(), Error> {
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        value.reserve(VERSION_BYTES + rest.len());
        value.extend_from_slice(&version.bits().to_le_bytes());
        value.extend_from_slice(rest);
        let result = self.change(tree, key, version.timestamp(), Change::Put(&value));
        self.value = value;
        result
    }

    fn change(
        &self,
        tree: TreeId,
        key: &[u8],
        timestamp: Timestamp,
        change: Change<'_>,
    ) -> Result<(), Error> {
        // A tree that was dropped later is not there any more.
        let Some(known) = self.trees.numbered(tree) else { return Ok(()) };
        known.tree.index.update(key, &mut |old| {
            let is_newer =
                old.and_then(Version::split).is_some_and(|(version, _)| version.timestamp() >= timestamp);
            if is_newer { Change::Keep } else { change }
        })
    }

    /// The root that the log names may belong to another page by now: the tree gets a new one.
    fn create(&self, tree: TreeId, name: &[u8], entry: &[u8]) -> Result<(), Error> {
        let name = String::from_utf8_lossy(name);
        let logged = Entry::decode(&name, entry)?;
        if self.trees.named(&name).is_some_and(|known| known.entry.id >= tree) {
            return Ok(());
        }
        self.trees.add(&name, Entry { root: self.trees.new_root(logged.class)?, ..logged })
    }

    /// Everything is done.
    pub fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
