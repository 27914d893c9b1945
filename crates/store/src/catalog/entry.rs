//! The catalog's entry of a tree, and its encoding.
//!
//! ```text
//! key    the tree's name, 1 to 256 bytes of UTF-8
//!
//! B+-trees:
//! 0        1        2                4         8                16
//! | form   | kind   | parameters 0-1 | tree id | parameters 2-9 |
//! | u8 = 1 | u8 = 1 |                | u32     |                |
//!
//! all other kinds:
//! 0        1        2         6                    n
//! | form   | kind   | tree id | parameters         |
//! | u8 = 2 | u8     | u32     | up to 64 bytes     |
//!
//! trees with a merge operator:
//! 0        1        2         6               7      n                    m
//! | form   | kind   | tree id | name's length | name | parameters         |
//! | u8 = 3 | u8     | u32     | u8            |      | up to 64 bytes     |
//! ```
//!
//! All numbers are little-endian. *Form* is the version of this entry, *kind* the structure that the tree is
//! kept in. Only the kind knows the meaning of its [parameters](Parameters).

use crate::Error;
use crate::index::{IndexKind, OPERATOR_NAME_BYTES_MAX, Parameters, TreeId};

/// The form of B+-trees, and their kind.
const FIRST: [u8; 2] = [1, 1];
const FIRST_BYTES: usize = 16;

/// The form of all others.
const SECOND: u8 = 2;
/// The form of trees with a merge operator.
const THIRD: u8 = 3;
const PARAMETERS_BYTES_MAX: usize = 64;

const B_TREE: u8 = 1;
const LSM: u8 = 2;
const BE_TREE: u8 = 3;

/// The longest name of a tree.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// The catalog's entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: TreeId,
    pub kind: IndexKind,
    pub parameters: Parameters,
    /// The name of its merge operator.
    pub operator: Option<String>,
}

impl Entry {
    /// For the catalog's leaf.
    pub fn encode(&self) -> Vec<u8> {
        let id = self.id.0.to_le_bytes();
        if let Some(operator) = &self.operator {
            let length = [operator.len() as u8];
            return [&[THIRD, kind_byte(self.kind)][..], &id, &length, operator.as_bytes(), &self.parameters]
                .concat();
        }
        match self.kind {
            IndexKind::BTree => {
                let (front, back) = self.parameters.split_at(self.parameters.len().min(2));
                [&FIRST[..], front, &id, back].concat()
            }
            IndexKind::Lsm | IndexKind::BeTree => {
                [&[SECOND, kind_byte(self.kind)][..], &id, &self.parameters].concat()
            }
        }
    }

    /// From the catalog's leaf.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that this version never wrote; the page's checksum was right, so they are
    /// a newer version's or a fault in memory.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = |expected: &str, got: String| Error::Corrupt {
            what: format!("the catalog's entry of the tree `{name}`"),
            offset_bytes: 0,
            expected: expected.to_owned(),
            got,
        };
        if let [THIRD, kind, i0, i1, i2, i3, length, rest @ ..] = bytes {
            let id = TreeId(u32::from_le_bytes([*i0, *i1, *i2, *i3]));
            let entry = decode_third(*kind, id, usize::from(*length), rest);
            return entry
                .ok_or_else(|| corrupt("an entry of a tree with a merge operator", format!("{bytes:02x?}")));
        }
        let (kind, id, parameters): (_, _, Parameters) = match bytes {
            [form, kind, p0, p1, i0, i1, i2, i3, rest @ ..]
                if [*form, *kind] == FIRST && bytes.len() == FIRST_BYTES =>
            {
                (IndexKind::BTree, [i0, i1, i2, i3], [p0, p1].into_iter().chain(rest).copied().collect())
            }
            [SECOND, LSM, i0, i1, i2, i3, rest @ ..] if rest.len() <= PARAMETERS_BYTES_MAX => {
                (IndexKind::Lsm, [i0, i1, i2, i3], rest.into())
            }
            [SECOND, BE_TREE, i0, i1, i2, i3, rest @ ..] if rest.len() <= PARAMETERS_BYTES_MAX => {
                (IndexKind::BeTree, [i0, i1, i2, i3], rest.into())
            }
            _ => {
                let known = bytes.get(..2).unwrap_or(bytes);
                return Err(corrupt(
                    "form 1 of kind 1 in 16 bytes",
                    format!("form and kind {known:?} in {} bytes", bytes.len()),
                ));
            }
        };
        let id = TreeId(u32::from_le_bytes(id.map(|byte| *byte)));
        if id.0 == u32::MAX {
            return Err(corrupt("a number that trees have", format!("number {}", id.0)));
        }
        Ok(Self { id, kind, parameters, operator: None })
    }
}

fn kind_byte(kind: IndexKind) -> u8 {
    match kind {
        IndexKind::BTree => B_TREE,
        IndexKind::Lsm => LSM,
        IndexKind::BeTree => BE_TREE,
    }
}

/// An entry of the third form, from the bytes after its name's length; `None` for bytes that this version
/// never wrote.
fn decode_third(kind: u8, id: TreeId, length: usize, rest: &[u8]) -> Option<Entry> {
    let kind = match kind {
        B_TREE => IndexKind::BTree,
        LSM => IndexKind::Lsm,
        BE_TREE => IndexKind::BeTree,
        _ => return None,
    };
    let (name, parameters) = rest.split_at_checked(length)?;
    let operator = Some(std::str::from_utf8(name).ok()?.to_owned());
    let is_possible = id.0 != u32::MAX
        && (1..=OPERATOR_NAME_BYTES_MAX).contains(&length)
        && parameters.len() <= PARAMETERS_BYTES_MAX;
    is_possible.then(|| Entry { id, kind, parameters: parameters.into(), operator })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_entry_comes_back(id in 0..u32::MAX, parameters: [u8; 10]) {
            let entry = Entry { id: TreeId(id), kind: IndexKind::BTree, parameters: parameters.as_slice().into(), operator: None };
            prop_assert_eq!(Entry::decode("t", &entry.encode()).unwrap(), entry);
        }

        #[test]
        fn an_entry_with_an_operator_comes_back(
            operator in "[a-zä]{1,30}",
            parameters in proptest::collection::vec(any::<u8>(), 0..=64),
        ) {
            for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
                let (parameters, operator) = (parameters.as_slice().into(), Some(operator.clone()));
                let entry = Entry { id: TreeId(7), kind, parameters, operator };
                prop_assert_eq!(Entry::decode("t", &entry.encode()).unwrap(), entry);
            }
        }

        #[test]
        fn an_entry_of_another_kind_comes_back(id in 0..u32::MAX, parameters in proptest::collection::vec(any::<u8>(), 0..=64)) {
            for kind in [IndexKind::Lsm, IndexKind::BeTree] {
                let parameters = parameters.as_slice().into();
                let entry = Entry { id: TreeId(id), kind, parameters, operator: None };
                prop_assert_eq!(Entry::decode("t", &entry.encode()).unwrap(), entry);
            }
        }

        #[test]
        fn a_number_that_no_tree_has_is_an_error(parameters: [u8; 10]) {
            let parameters = parameters.as_slice().into();
            let entry = Entry { id: TreeId(u32::MAX), kind: IndexKind::BTree, parameters, operator: None };
            prop_assert!(Entry::decode("t", &entry.encode()).is_err());
        }

        #[test]
        fn nonsense_is_an_error(bytes: Vec<u8>) {
            if let Ok(entry) = Entry::decode("t", &bytes) {
                prop_assert_eq!(&entry.encode()[..], &bytes[..]);
            }
        }
    }
}
