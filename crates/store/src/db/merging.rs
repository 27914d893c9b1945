//! Merges: operands that are written without reading the value that they are over, and their result where it
//! is needed.

use std::sync::Arc;

use super::content::{Content, is_overflow};
use super::core::Core;
use super::tree::Tree;
use super::tree_options::TreeOptions;
use super::value::Value;
use super::writes::Writes;
use crate::catalog::NamedTree;
use crate::index::{TreeOperator, Write, Written, operands};
use crate::txn::Snapshot;
use crate::{Durability, Error};

impl NamedTree {
    /// Its merge operator.
    ///
    /// # Errors
    /// [`Error::NoOperator`].
    fn merging(&self) -> Result<&TreeOperator, Error> {
        self.operator.as_deref().ok_or_else(|| Error::NoOperator { tree: self.name.clone() })
    }

    /// The value that operands make of one, or of none.
    ///
    /// # Errors
    /// [`Error::OperatorMissing`], [`Error::OperatorFailed`].
    pub(super) fn merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        list: &[u8],
    ) -> Result<Option<Value>, Error> {
        let all = operands::all(list).unwrap_or_default();
        Ok(self.merging()?.full_merge(key, existing, &all)?.map(Value::from))
    }

    /// Whether a commit has to make a value of these operands, given their number of bytes.
    fn wants_value_of(&self, content: Option<&Content>) -> bool {
        let Some(Content::Operands(list)) = content else { return false };
        !self.tree.index.takes_operands() || is_overflow(self, list.len() as u64)
    }
}

impl Core {
    /// Refuses options of new trees whose merge operator is not registered.
    ///
    /// # Errors
    /// [`Error::Options`].
    pub(super) fn check_operator(&self, options: &TreeOptions) -> Result<(), Error> {
        match options.name_of_merge_operator() {
            Some(name) if self.engine().operators().named(name).is_none() => Err(Error::Options(format!(
                "no merge operator `{name}` is registered: register it with `Builder::merge_operator` first"
            ))),
            _ => Ok(()),
        }
    }

    /// Takes an operand into the writes of a batch or transaction. Over another write of theirs it becomes a
    /// value at once.
    ///
    /// # Errors
    /// As [`Core::gather`](Core::gather); [`Error::NoOperator`], [`Error::OperatorMissing`],
    /// [`Error::OperatorFailed`]. The writes stay as they were then.
    pub(super) fn gather_merge(
        self: &Arc<Self>,
        writes: &mut Writes,
        tree: &Tree,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(), Error> {
        let tree = self.named_tree(tree)?;
        self.check_write(tree, key, Some(operand))?;
        let operator = tree.merging()?;
        operator.registered()?;
        let content = match writes.get(tree, key) {
            None => Some(Content::of_operands(&[operand])),
            Some(Some(Content::Operands(list))) => Some(self.with_operand(tree, key, list, operand)),
            Some(Some(content)) => {
                let value = content.value(self.engine().overflow_values())?;
                operator.full_merge(key, Some(&value), &[operand])?.map(|value| Content::Bytes(value.into()))
            }
            Some(None) => {
                operator.full_merge(key, None, &[operand])?.map(|value| Content::Bytes(value.into()))
            }
        };
        let length = content.as_ref().map(Content::length);
        writes.admit(self.engine(), tree, [(key, self.logged_bytes(tree, key, length))])?;
        writes.put(tree, key, content);
        Ok(())
    }

    /// Operands followed by another one: as one, if the operator can combine them, and the result is short.
    fn with_operand(&self, tree: &NamedTree, key: &[u8], list: &[u8], operand: &[u8]) -> Content {
        let mut all = operands::all(list).unwrap_or_default();
        all.push(operand);
        let is_short = !is_overflow(tree, (list.len() + operand.len()) as u64);
        let operator = tree.operator.as_ref().filter(|_| is_short);
        match operator.and_then(|operator| operator.partial_merge(key, &all)) {
            Some(one) => Content::of_operands(&[&one]),
            None => Content::of_operands(&all),
        }
    }

    /// Writes with values in place of operands where a commit takes values only; `None` if there are no such
    /// operands.
    pub(super) fn with_values(&self, writes: &Writes, at: &Snapshot) -> Result<Option<Writes>, Error> {
        if !writes.iter().any(|(tree, _, content)| tree.wants_value_of(content)) {
            return Ok(None);
        }
        let mut made = Writes::default();
        for (tree, key, content) in writes.each() {
            let content = match content {
                Some(Content::Operands(list)) if tree.wants_value_of(content.as_ref()) => {
                    let existing = self.look_up_raw(tree, key, at)?;
                    let existing =
                        existing.map(|(version, bytes)| self.value(version, &bytes)).transpose()?;
                    tree.merge(key, existing.as_deref(), list)?.map(Content::Bytes)
                }
                other => other.clone(),
            };
            made.put(tree, key, content);
        }
        Ok(Some(made))
    }

    /// Commits writes without a snapshot of their own. Where operands have to become values, this is done
    /// again with the then present values if other commits were faster.
    pub(super) fn commit_batch(&self, writes: &Writes, durability: Durability) -> Result<(), Error> {
        if !writes.iter().any(|(tree, _, content)| tree.wants_value_of(content)) {
            return self.commit(writes, None, durability);
        }
        loop {
            let at = self.pin()?;
            let Some(made) = self.with_values(writes, &at)? else { return Ok(()) };
            match self.commit(&made, Some(at.timestamp()), durability) {
                // At least one commit has got further.
                Err(Error::Conflict) => {}
                done => return done,
            }
        }
    }

    /// One merge on its own.
    pub(super) fn merge(self: &Arc<Self>, tree: &Tree, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        let known = self.named_tree(tree)?;
        let length = operands::length(operand) as u64;
        if !known.tree.index.takes_operands() || is_overflow(known, length) {
            let mut writes = Writes::default();
            self.gather_merge(&mut writes, tree, key, operand)?;
            return self.commit_batch(&writes, self.durability());
        }
        self.check_write(known, key, Some(operand))?;
        known.merging()?.registered()?;
        let mut list = Vec::with_capacity(length as usize);
        operands::push(&mut list, operand);
        self.write_operands(known, key, &list, self.durability())
    }

    /// Writes a list of operands, however long, to a tree that takes such.
    pub(super) fn write_all_operands(
        &self,
        tree: &NamedTree,
        key: &[u8],
        list: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        let mut part = Vec::new();
        for operand in operands::all(list).unwrap_or_default() {
            if !part.is_empty() && is_overflow(tree, (part.len() + operands::length(operand)) as u64) {
                self.write_operands(tree, key, &part, durability)?;
                part.clear();
            }
            operands::push(&mut part, operand);
        }
        if part.is_empty() { Ok(()) } else { self.write_operands(tree, key, &part, durability) }
    }

    /// Writes a list of operands to a tree that takes such.
    pub(super) fn write_operands(
        &self,
        tree: &NamedTree,
        key: &[u8],
        list: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        let _writing = self.announce(tree)?;
        let written = Written { tree: &tree.tree, key, write: Write::Merge(list) };
        self.engine().transactions().write(written, durability).map(drop)
    }
}

impl Tree {
    /// Writes `operand` over the value of `key`, without reading that: the tree's [merge operator] makes a
    /// value of both when the key is read, or when tables are merged.
    ///
    /// An LSM-tree writes the operand, so that this costs as much as [`Tree::insert`]. A B+-tree, which has
    /// the record in memory for any change of it, makes the value at once, and so does an LSM-tree of an
    /// operand longer than a quarter of a block.
    ///
    /// # Errors
    /// [`Error::NoOperator`] if the tree has none, [`Error::OperatorMissing`] if it is not registered;
    /// [`Error::OperatorFailed`] where the value is made at once; otherwise as [`Tree::insert`].
    ///
    /// ```
    /// # use flashgrain::{AddOperator, Db, IndexKind, TreeOptions};
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let db = Db::in_memory(64 << 20)?;
    /// let options = TreeOptions::new().kind(IndexKind::Lsm).merge_operator(AddOperator::NAME);
    /// let words = db.tree_with("words", &options)?;
    /// for word in ["so", "what", "so"] {
    ///     words.merge(word, 1_u64.to_le_bytes())?;
    /// }
    /// assert_eq!(words.get("so")?.unwrap(), 2_u64.to_le_bytes());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [merge operator]: crate::MergeOperator
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<(), Error> {
        self.db.core.merge(self, key.as_ref(), operand.as_ref())
    }
}
