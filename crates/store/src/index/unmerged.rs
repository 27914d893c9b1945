//! A record while its operands are not merged: their base, and the operands.
//!
//! ```text
//! | base, u8: 0 none, 1 a value, 2 a reference | bytes of that, varint | value or reference | operands |
//! ```

use crate::varint;

/// The base that operands were written over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    /// No record.
    #[default]
    Nothing,
    Value(Vec<u8>),
    /// An overflow value with this reference.
    Overflow(Vec<u8>),
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unmerged {
    pub base: Base,
    /// A list of [operands](super::operands).
    pub operands: Vec<u8>,
}

impl Unmerged {
    /// Appends it to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let (kind, bytes) = match &self.base {
            Base::Nothing => (0, &[][..]),
            Base::Value(value) => (1, value.as_slice()),
            Base::Overflow(reference) => (2, reference.as_slice()),
        };
        into.push(kind);
        varint::put(bytes.len() as u64, into);
        into.extend_from_slice(bytes);
        into.extend_from_slice(&self.operands);
    }

    /// `None` for bytes that no [`Unmerged::encode`] returned.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let length = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (base, operands) = rest.split_at_checked(length)?;
        let base = match kind {
            0 => Base::Nothing,
            1 => Base::Value(base.to_vec()),
            2 => Base::Overflow(base.to_vec()),
            _ => return None,
        };
        Some(Self { base, operands: operands.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back() {
        let bases = [Base::Nothing, Base::Value(b"value".to_vec()), Base::Overflow(b"reference".to_vec())];
        for base in bases {
            let record = Unmerged { base, operands: b"operands".to_vec() };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Unmerged::decode(&bytes), Some(record));
        }
        assert_eq!(
            (Unmerged::decode(&[]), Unmerged::decode(&[3, 0]), Unmerged::decode(&[1, 9])),
            (None, None, None)
        );
    }
}
