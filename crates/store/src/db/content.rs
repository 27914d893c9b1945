//! The value of a write that is not committed yet: bytes in memory, or an overflow value that is in pages
//! already.

use std::io::{self, Read};
use std::sync::Arc;

use super::core::{Core, is_overflow};
use super::tree::Tree;
use super::value::Value;
use super::writes::Writes;
use crate::Error;
use crate::btree::overflow::VALUE_BYTES_MAX;
use crate::engine::{OverflowValue, Parked};
use crate::index::operands;

/// Bytes that are read of a source at a time.
const SOURCE_BYTES: usize = 1 << 20;

/// See the module.
#[derive(Clone)]
pub enum Content {
    Bytes(Value),
    /// Its pages are freed with the last reference, unless it was committed.
    Parked(Arc<Parked>),
    /// No value, but a list of operands over what the tree has.
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
    pub fn value(&self, core: &Core) -> Result<Value, Error> {
        match self {
            Self::Bytes(value) => Ok(value.clone()),
            Self::Parked(_) | Self::Operands(_) => {
                let mut bytes = Vec::new();
                self.append_to(core, &mut bytes)?;
                Ok(Value::from(bytes))
            }
        }
    }

    /// Appends all of it to `into`.
    ///
    /// # Errors
    /// As [`Content::value`].
    pub fn append_to(&self, core: &Core, into: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Bytes(value) => into.extend_from_slice(value),
            Self::Parked(parked) => core.engine().overflow_values().read(parked.reference(), into)?,
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

fn unreadable(error: io::Error) -> Error {
    Error::Source(Arc::new(error))
}

/// Fills `buffer` as far as the source goes; how many bytes that are.
fn fill(source: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(filled)
}

impl Core {
    /// As [`Core::gather`], with a value that is read of `source` to its end; how many bytes it has. No more
    /// of it than some [`SOURCE_BYTES`] is in memory at a time.
    ///
    /// # Errors
    /// As [`Core::gather`]; [`Error::Source`]; [`Error::Full`], [`Error::Poisoned`]. The writes stay as they
    /// were then.
    pub(super) fn gather_from(
        self: &Arc<Self>,
        writes: &mut Writes,
        tree: &Tree,
        key: &[u8],
        source: &mut dyn Read,
    ) -> Result<u64, Error> {
        let known = self.named_tree(tree)?;
        self.check_write(known, key, None)?;
        let overflow_values = self.engine().overflow_values();
        let part_bytes = overflow_values.part_bytes();
        let mut buffer = vec![0; part_bytes * (SOURCE_BYTES / part_bytes).max(1)];
        let mut filled = fill(source, &mut buffer)?;
        if filled < buffer.len() && !is_overflow(known, filled as u64) {
            self.gather(writes, tree, key, Some(&buffer[..filled]))?;
            return Ok(filled as u64);
        }
        let mut parked = overflow_values.begin();
        while filled > 0 {
            // A source may be slow: closing the store waits for this part, not for the whole value.
            let writing = self.announce(known)?;
            let got = parked.length() + filled as u64;
            if got > VALUE_BYTES_MAX {
                return Err(Error::ValueLength { got, limit: VALUE_BYTES_MAX });
            }
            writes.check(self, known, [(key, self.logged_bytes(known, key, Some(got)))])?;
            self.engine().append_overflow(&mut parked, &buffer[..filled])?;
            drop(writing);
            filled = if filled < buffer.len() { 0 } else { fill(source, &mut buffer)? };
        }
        let _writing = self.announce(known)?;
        self.engine().seal_overflow(&mut parked)?;
        let length = parked.length();
        writes.admit(self, known, [(key, self.logged_bytes(known, key, Some(length)))])?;
        writes.put(known, key, Some(Content::Parked(Arc::new(parked))));
        Ok(length)
    }
}
