//! Taking writes into those of a batch or transaction.

use std::io::{self, Read};
use std::sync::Arc;

use super::content::{Content, is_overflow};
use super::core::Core;
use super::tree::Tree;
use super::value::Value;
use super::writes::Writes;
use crate::Error;
use crate::btree::overflow::VALUE_BYTES_MAX;

/// Bytes that are read from a source at a time.
const SOURCE_BYTES: usize = 1 << 20;

fn unreadable(error: io::Error) -> Error {
    Error::Source(Arc::new(error))
}

/// Fills `buffer` as far as the source goes. Returns the number of bytes.
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
    /// Takes a write into those of a batch or transaction.
    ///
    /// # Errors
    /// As [`Core::check_write`]; [`Error::BatchLength`] if they would be more than the log takes as one. They
    /// stay as they were then.
    pub(super) fn gather(
        self: &Arc<Self>,
        writes: &mut Writes,
        tree: &Tree,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), Error> {
        let tree = self.named_tree(tree)?;
        self.check_write(tree, key, value)?;
        let length = value.map(|value| value.len() as u64);
        writes.admit(self.engine(), tree, [(key, self.logged_bytes(tree, key, length))])?;
        writes.put(tree, key, value.map(|value| Content::Bytes(Value::from(value))));
        Ok(())
    }

    /// As [`Core::gather`], with a value that is read from `source` to its end. Returns the value's length in
    /// bytes. No more of it than some [`SOURCE_BYTES`] is in memory at a time.
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
            writes.check(self.engine(), known, [(key, self.logged_bytes(known, key, Some(got)))])?;
            self.engine().append_overflow(&mut parked, &buffer[..filled])?;
            drop(writing);
            filled = if filled < buffer.len() { 0 } else { fill(source, &mut buffer)? };
        }
        let _writing = self.announce(known)?;
        self.engine().seal_overflow(&mut parked)?;
        let length = parked.length();
        writes.admit(self.engine(), known, [(key, self.logged_bytes(known, key, Some(length)))])?;
        writes.put(known, key, Some(Content::Parked(Arc::new(parked))));
        Ok(length)
    }
}
