//! Encoding of a commit in the log: its operations, one after another.
//!
//! ```text
//! put           1, tree, length of the key, key, length of the value, value
//! remove        2, tree, length of the key, key
//! put overflow  3, tree, length of the key, key, length of the reference, reference
//! create tree   4, tree, length of its name, name, length of its entry, entry
//! drop tree     5, tree, length of its name, name
//! rename tree   6, tree, length of its new name, name
//! remove range  7, tree, length of its first key, key, length of its end, end
//! merge         8, tree, length of the key, key, length of the operands, operands
//! load          9, tree, length of its number, number
//! ```
//!
//! A record that begins with 10 is [compressed](super::compressed).
//!
//! The first number is a byte; trees and lengths are [varints](crate::varint). References to overflow pages
//! and catalog entries have formats of their own.

use crate::index::TreeId;
use crate::varint;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const PUT_OVERFLOW: u8 = 3;
const CREATE_TREE: u8 = 4;
const DROP_TREE: u8 = 5;
const RENAME_TREE: u8 = 6;
const REMOVE_RANGE: u8 = 7;
const MERGE: u8 = 8;
const LOAD: u8 = 9;

/// One operation of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    /// Gives a key a value.
    Put { tree: TreeId, key: &'a [u8], value: &'a [u8] },
    /// Takes a key out.
    Remove { tree: TreeId, key: &'a [u8] },
    /// Takes out the keys from one on up to, and without, another one.
    RemoveRange { tree: TreeId, lower: &'a [u8], upper: &'a [u8] },
    /// Writes operands over the value of a key.
    Merge { tree: TreeId, key: &'a [u8], operands: &'a [u8] },
    /// Commits records that were written before.
    Load { tree: TreeId, number: &'a [u8] },
    /// Gives a key a value that is in overflow pages.
    PutOverflow { tree: TreeId, key: &'a [u8], reference: &'a [u8] },
    /// Adds a tree to the catalog.
    CreateTree { tree: TreeId, name: &'a [u8], entry: &'a [u8] },
    /// Takes a tree out of the catalog.
    DropTree { tree: TreeId, name: &'a [u8] },
    /// Gives a tree another name.
    RenameTree { tree: TreeId, name: &'a [u8] },
}

impl Operation<'_> {
    /// Whether it changes the catalog.
    pub fn is_of_catalog(&self) -> bool {
        matches!(self, Self::CreateTree { .. } | Self::DropTree { .. } | Self::RenameTree { .. })
    }

    /// Appends it to a record.
    pub fn encode(&self, record: &mut Vec<u8>) {
        match *self {
            Self::Put { tree, key, value } => encode(record, PUT, tree, key, Some(value)),
            Self::Remove { tree, key } => encode(record, REMOVE, tree, key, None),
            Self::Merge { tree, key, operands } => encode(record, MERGE, tree, key, Some(operands)),
            Self::PutOverflow { tree, key, reference } => {
                encode(record, PUT_OVERFLOW, tree, key, Some(reference));
            }
            Self::CreateTree { tree, name, entry } => encode(record, CREATE_TREE, tree, name, Some(entry)),
            Self::DropTree { tree, name } => encode(record, DROP_TREE, tree, name, None),
            Self::RenameTree { tree, name } => encode(record, RENAME_TREE, tree, name, None),
            Self::RemoveRange { tree, lower, upper } => {
                encode(record, REMOVE_RANGE, tree, lower, Some(upper));
            }
            Self::Load { tree, number } => encode(record, LOAD, tree, number, None),
        }
    }
}

fn encode(record: &mut Vec<u8>, kind: u8, tree: TreeId, key: &[u8], value: Option<&[u8]>) {
    record.push(kind);
    varint::put(u64::from(tree.0), record);
    for bytes in [Some(key), value].into_iter().flatten() {
        varint::put(bytes.len() as u64, record);
        record.extend_from_slice(bytes);
    }
}

/// The operations of a record, in order. It ends with `Err` at bytes that are no operation.
pub(crate) struct Operations<'a> {
    rest: &'a [u8],
}

/// Bytes that are no operation: a newer version's, or a fault in memory before they were logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoOperation;

impl<'a> Operations<'a> {
    pub fn of(record: &'a [u8]) -> Self {
        Self { rest: record }
    }

    fn decode(&mut self) -> Option<Operation<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        let tree = TreeId(u32::try_from(varint::take(&mut self.rest)?).ok()?);
        let key = self.bytes()?;
        Some(match *kind {
            PUT => Operation::Put { tree, key, value: self.bytes()? },
            REMOVE => Operation::Remove { tree, key },
            PUT_OVERFLOW => Operation::PutOverflow { tree, key, reference: self.bytes()? },
            CREATE_TREE => Operation::CreateTree { tree, name: key, entry: self.bytes()? },
            DROP_TREE => Operation::DropTree { tree, name: key },
            RENAME_TREE => Operation::RenameTree { tree, name: key },
            MERGE => Operation::Merge { tree, key, operands: self.bytes()? },
            REMOVE_RANGE => Operation::RemoveRange { tree, lower: key, upper: self.bytes()? },
            LOAD => Operation::Load { tree, number: key },
            _ => return None,
        })
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(varint::take(&mut self.rest)?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>, NoOperation>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let operation = self.decode().ok_or(NoOperation);
        if operation.is_err() {
            self.rest = &[];
        }
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn operations_come_back(
            parts in proptest::collection::vec((0..8, any::<u32>(), any::<Vec<u8>>(), any::<Vec<u8>>()), 0..10)
        ) {
            let operations: Vec<_> = parts.iter().map(|(kind, tree, key, value)| {
                let tree = TreeId(*tree);
                match kind {
                    0 => Operation::Put { tree, key, value },
                    1 => Operation::Remove { tree, key },
                    2 => Operation::PutOverflow { tree, key, reference: value },
                    3 => Operation::CreateTree { tree, name: key, entry: value },
                    4 => Operation::DropTree { tree, name: key },
                    6 => Operation::Merge { tree, key, operands: value },
                    5 => Operation::RemoveRange { tree, lower: key, upper: value },
                    7 => Operation::Load { tree, number: key },
                    _ => Operation::RenameTree { tree, name: key },
                }
            }).collect();
            let mut record = Vec::new();
            operations.iter().for_each(|operation| operation.encode(&mut record));
            prop_assert_eq!(Operations::of(&record).collect::<Result<Vec<_>, _>>(), Ok(operations));
        }

        #[test]
        fn nonsense_ends_with_an_error(record: Vec<u8>) {
            let decoded: Vec<_> = Operations::of(&record).collect();
            let errors = decoded.iter().filter(|operation| operation.is_err()).count();
            prop_assert!(errors == 0 || (errors == 1 && decoded.last().unwrap().is_err()));
        }
    }
}
