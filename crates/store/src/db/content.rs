//! The value of a write that is not committed yet: bytes in memory, or an overflow value that is in pages
//! already.

use std::sync::Arc;

use super::value::Value;
use crate::Error;
use crate::catalog::NamedTree;
use crate::engine::{OverflowValue, OverflowValues, Parked};
use crate::index::operands;

/// See the module.
#[derive(Clone)]
pub enum Content {
    Bytes(Value),
    /// Its pages are freed with the last reference, unless it was committed.
    Parked(Arc<Parked>),
    /// No value, but a list of operands over the tree's own version.
    Operands(Arc<Vec<u8>>),
}

impl Content {
    /// These operands, the first one first.
    pub fn of_operands(all: &[&[u8]]) -> Self {
        let mut list = Vec::new();
        all.iter().for_each(|operand| operands::push(&mut list, operand));
        Self::Operands(Arc::new(list))
    }

    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(value) => value.len() as u64,
            Self::Parked(parked) => parked.length(),
            Self::Operands(list) => list.len() as u64,
        }
    }

    /// All of it, in memory; of operands the list.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn value(&self, values: &OverflowValues) -> Result<Value, Error> {
        match self {
            Self::Bytes(value) => Ok(value.clone()),
            Self::Parked(_) | Self::Operands(_) => {
                let mut bytes = Vec::new();
                self.append_to(values, &mut bytes)?;
                Ok(Value::from(bytes))
            }
        }
    }

    /// Appends all of it to `into`.
    ///
    /// # Errors
    /// As [`Content::value`].
    pub fn append_to(&self, values: &OverflowValues, into: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Bytes(value) => into.extend_from_slice(value),
            Self::Parked(parked) => values.read(parked.reference(), into)?,
            Self::Operands(list) => into.extend_from_slice(list),
        }
        Ok(())
    }

    pub fn as_overflow(&self) -> OverflowValue<'_> {
        match self {
            Self::Bytes(value) => OverflowValue::Bytes(value),
            Self::Parked(parked) => OverflowValue::Parked(parked),
            Self::Operands(list) => OverflowValue::Bytes(list),
        }
    }
}

/// Whether a value of `value_bytes` does not fit into a node of the tree.
pub(super) fn is_overflow(tree: &NamedTree, value_bytes: u64) -> bool {
    value_bytes > tree.tree.index.limits().value_bytes as u64
}
