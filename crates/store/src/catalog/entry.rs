//! What the catalog says about a tree, and its bytes.
//!
//! ```text
//! key    the tree's name, 1 to 256 bytes of UTF-8
//!
//! 0        1        2        4         8          16
//! | form   | kind   | class  | tree id | root     |
//! | u8 = 1 | u8 = 1 | u16    | u32     | page u64 |
//! ```
//!
//! All numbers are little-endian. *Form* is the version of this entry; *kind* is 1 for a B+-tree; *class* is the size class of its nodes, so that a node has 4096 << class bytes.

use crate::Error;
use crate::header::PageId;
use crate::pool::CLASSES;

const FORM: u8 = 1;
const BTREE: u8 = 1;
const ENTRY_BYTES: usize = 16;

/// The longest name of a tree.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// A tree's number. Numbers are given once and never again. 0 is the catalog itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TreeId(pub u32);

/// The structure that a tree is kept in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexKind {
    /// A B+-tree.
    #[default]
    BTree,
}

/// What the catalog says about a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: TreeId,
    pub kind: IndexKind,
    /// Size class of the nodes.
    pub class: u16,
    pub root: PageId,
}

impl Entry {
    /// For the catalog's leaf.
    pub fn encode(self) -> [u8; ENTRY_BYTES] {
        let IndexKind::BTree = self.kind;
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = FORM;
        bytes[1] = BTREE;
        bytes[2..4].copy_from_slice(&self.class.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.root.0.to_le_bytes());
        bytes
    }

    /// From the catalog's leaf.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for what this version never wrote; the page's checksum was right, so it is a newer version's or a fault in memory.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = |expected: &str, got: String| Error::Corrupt {
            what: format!("the catalog's entry of the tree `{name}`"),
            offset_bytes: 0,
            expected: expected.to_owned(),
            got,
        };
        let Ok(bytes) = <&[u8; ENTRY_BYTES]>::try_from(bytes) else {
            return Err(corrupt("16 bytes", format!("{} bytes", bytes.len())));
        };
        let [form, kind, c0, c1, i0, i1, i2, i3, root @ ..] = *bytes;
        if form != FORM || kind != BTREE {
            return Err(corrupt("form 1 of kind 1", format!("form {form} of kind {kind}")));
        }
        let class = u16::from_le_bytes([c0, c1]);
        let id = TreeId(u32::from_le_bytes([i0, i1, i2, i3]));
        if usize::from(class) >= CLASSES || id.0 == u32::MAX {
            return Err(corrupt(
                "a size class and a number that trees have",
                format!("class {class}, number {}", id.0),
            ));
        }
        Ok(Self { id, kind: IndexKind::BTree, class, root: PageId(u64::from_le_bytes(root)) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_entry_comes_back(id in 0..u32::MAX, class in 0..CLASSES as u16, root: u64) {
            let entry = Entry { id: TreeId(id), kind: IndexKind::BTree, class, root: PageId(root) };
            prop_assert_eq!(Entry::decode("t", &entry.encode()).unwrap(), entry);
        }

        #[test]
        fn an_entry_that_no_tree_has_is_an_error(class in CLASSES as u16.., root: u64) {
            for (id, class) in [(1, class), (u32::MAX, 0)] {
                let entry = Entry { id: TreeId(id), kind: IndexKind::BTree, class, root: PageId(root) };
                prop_assert!(Entry::decode("t", &entry.encode()).is_err());
            }
        }

        #[test]
        fn nonsense_is_an_error(bytes: Vec<u8>) {
            if let Ok(entry) = Entry::decode("t", &bytes) {
                prop_assert_eq!(&entry.encode()[..], &bytes[..]);
            }
        }
    }
}
